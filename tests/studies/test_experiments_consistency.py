"""The study of consistency: its quadrature, its units, and its errors against sums over a grid."""

import math

import numpy as np
import pytest
from experiments import consistency
from experiments.consistency import Support, errors, length_scale
from scipy.integrate import quad

from isopleth import SOSREP
from isopleth.kernels import SDO, Gaussian, Laplacian


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
