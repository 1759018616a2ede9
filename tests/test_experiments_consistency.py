"""The study of consistency: its quadrature, its units, and its errors against sums over a grid."""

import math

import numpy as np
import pytest
from experiments import consistency
from experiments.consistency import Support, errors, length_scale, log_total, slope
from scipy.integrate import quad

from isopleth import SOSREP
from isopleth.kernels import SDO, Gaussian, Laplacian


@pytest.mark.parametrize("power", [0, 3])
@pytest.mark.parametrize("dim", [1, 2])
def test_the_quadrature_integrates_against_the_root(power, dim):
    points, weights = Support(power, dim, 20).quadrature()
    square = quad(lambda x: (1 - x * x) ** (2 * power), -1, 1)[0]
    expected = (quad(lambda x: (1 - x * x) ** power * (1 + x + x**4), -1, 1)[0] / math.sqrt(square)) ** dim
    found = weights @ np.prod(1 + points + points**4, axis=1)
    assert found == pytest.approx(expected, rel=1e-12)


def test_rows_have_the_density_of_the_square():
    x = Support(3, 1, 5).sample(100_000, np.random.default_rng(0))
    square = quad(lambda x: (1 - x * x) ** 6, -1, 1)[0]
    variance = quad(lambda x: x * x * (1 - x * x) ** 6, -1, 1)[0] / square
    fourth = quad(lambda x: x**4 * (1 - x * x) ** 6, -1, 1)[0] / square
    assert np.mean(x**2) == pytest.approx(variance, rel=0.03)
    assert np.mean(x**4) == pytest.approx(fourth, rel=0.03)


@pytest.mark.parametrize("kernel", [Gaussian(dim=1), Laplacian(dim=1), SDO(1)])
def test_the_integral_of_a_kernel(kernel):
    expected = 2 * quad(lambda r: float(kernel(np.array((r / 0.7) ** 2))), 0, 60, limit=200)[0]
    assert math.exp(log_total(kernel, 1, 0.7)) == pytest.approx(expected, rel=1e-6)


def test_length_scales_stand_for_one_over_n():
    # The norms of the spaces have the spectrum 1 + (ell |omega|)^(2m), and a = ell^(2m).
    assert length_scale("SDO", 1000, 1) ** 4 == pytest.approx(1e-3)
    assert length_scale("SDO", 1000, 3) ** 6 == pytest.approx(1e-3)
    assert length_scale("Laplacian", 1000, 2) ** 3 == pytest.approx(1e-3)


@pytest.mark.parametrize("method", ["Gaussian", "Laplacian", "SDO"])
def test_errors_are_those_of_sums_over_a_grid(method):
    support, n = Support(3, 1, 400), 60
    found = errors(method, support, n, np.random.default_rng(1))
    X = support.sample(n, np.random.default_rng(1))
    scale = length_scale(method, n, 1)
    kernel = {"Gaussian": Gaussian, "Laplacian": Laplacian, "SDO": SDO}[method](dim=1)
    model = SOSREP(kernel, scale, tol=consistency.TOL, frame="scale").fit(X)
    x = np.linspace(-9.0, 9.0, 90_001)
    pairs = ((x[:, None] - model.centers_[:, 0]) / scale) ** 2
    total = 2 * quad(lambda r: float(kernel(np.array((r / scale) ** 2))), 0, 80 * scale, limit=300)[0]
    # With a kernel of integral 1, coefficients and values scale by the root of its value at 0.
    u = kernel(pairs) @ model.dual_coef_ / math.sqrt(total)
    inside = np.clip(1 - x * x, 0, None)
    v = inside**3 / math.sqrt(quad(lambda x: (1 - x * x) ** 6, -1, 1)[0])
    z = np.trapezoid(u * u, x)
    overlap = np.trapezoid(u * v, x)
    expected = [np.trapezoid((u - v) ** 2, x), 1 - overlap / math.sqrt(z), z - 1]
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_slopes_leave_out_the_smallest_samples():
    rows = (100, 300, 1000, 3000)
    means = np.array([5.0, *(2.0 * n**-0.75 for n in rows[1:])])
    assert slope(rows, means) == pytest.approx(-0.75)
    assert math.isnan(slope((100, 300), means[:2]))


def test_the_command_prints_three_tables(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(consistency, "NODES", {1: 50, 2: 10, 3: 6})
    out, figure = tmp_path / "table.txt", tmp_path / "figure.png"
    results = tmp_path / "runs.csv"
    given = ["--columns", "1", "--runs", "2", "--out", str(out), "--figure", str(figure), "--results", str(results)]
    consistency.main([*given, "--rows", "100"])
    capsys.readouterr()
    first = results.read_text()
    consistency.main([*given, "--rows", "100", "200"])
    assert results.read_text().startswith(first)
    assert len(results.read_text().splitlines()) == 2 * len(first.splitlines())
    printed = capsys.readouterr().out
    assert printed == out.read_text()
    assert printed.count("slope") == 3
    assert "runs: at most 2 with 100 rows, at most 2 with 200 rows" in printed
    assert figure.stat().st_size > 0
    consistency.main([*given, "--rows", "100", "200", "400", "--report"])
    (line, *_) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("bump")]
    assert line.split()[-2] == "-"
    assert line.split()[-1] == next(part for part in printed.splitlines() if part.startswith("bump")).split()[-1]
