"""Kernels that are products over columns, against sums and integrals taken one column at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from isopleth import InputError
from isopleth.kernels import ProductLaplacian, Workspace
from isopleth.kernels.product import GAUSSIAN_FACTOR, LAPLACIAN_FACTOR, ColumnKernel
from isopleth.operators import LOG_SUM, Operator

PROFILES = {GAUSSIAN_FACTOR: lambda u: math.exp(-0.5 * u * u), LAPLACIAN_FACTOR: lambda u: math.exp(-abs(u))}
FACTORS = pytest.mark.parametrize("factor", PROFILES, ids=lambda factor: type(factor).__name__)
WIDE = {"limit": 400, "epsabs": 1e-13, "epsrel": 1e-12}


def slow_kernel(kernel, x, y):
    """The product, one factor after the other."""
    d = kernel.n_numeric
    value = math.prod(PROFILES[kernel.factor](a - b) for a, b in zip(x[:d], y[:d], strict=True))
    return value * math.prod(1.0 if a == b else r for a, b, r in zip(x[d:], y[d:], kernel.rho, strict=True))


def points(rng, n, sizes=(3, 5), dim=2):
    return np.column_stack([rng.normal(size=(n, dim)), *[rng.integers(m, size=n) for m in sizes]]).astype(float)


@FACTORS
@pytest.mark.parametrize("dim", [0, 1, 2, 5])
def test_the_tile_loop_makes_the_product(factor, dim):
    rng = np.random.default_rng(0)
    kernel = ColumnKernel(dim + 2, factor, (0.1, 0.7), (3, 5))
    x, y = points(rng, 30, dim=dim), points(rng, 600, dim=dim)
    expected = np.array([[slow_kernel(kernel, a, b) for b in y] for a in x])
    np.testing.assert_allclose(Operator(kernel, x, y).dense(), expected, rtol=1e-13)
    v = rng.uniform(size=600)
    np.testing.assert_allclose(Operator(kernel, x, y).matvec(v), expected @ v, rtol=1e-13)
    state = Operator(kernel, x, y, block=LOG_SUM).matvec(np.log(v))
    np.testing.assert_allclose(state[:, 0] + np.log(state[:, 1]), np.log(expected @ v), rtol=1e-12)


@FACTORS
def test_overlaps_are_the_integrals_and_sums_of_products(factor):
    profile = PROFILES[factor]
    kernel = ColumnKernel(2, factor, (0.2,), (4,))
    convolution = kernel.self_convolution()
    for x, y in [((0.0, 1), (0.0, 1)), ((0.0, 1), (1.3, 1)), ((-0.4, 0), (2.2, 3)), ((0.0, 2), (9.0, 0))]:
        numeric = quad(lambda t, a=x[0], b=y[0]: profile(a - t) * profile(b - t), -40, 40, points=[x[0], y[0]], **WIDE)[
            0
        ]
        words = sum(math.prod(1.0 if c == code else 0.2 for code in (x[1], y[1])) for c in range(4))
        relative = Operator(convolution.kernel, np.array([x, y])).dense()[0, 1]
        assert math.exp(convolution.log_constant) * relative == pytest.approx(numeric * words, rel=1e-10)
        separation = convolution.kernel.separation(np.array([x]), np.array([y]), Workspace())
        assert convolution(separation)[0, 0] == pytest.approx(relative, rel=1e-13)


@FACTORS
def test_the_integral_is_over_numbers_and_categories(factor):
    numeric = 2.0 * quad(PROFILES[factor], 0, 60, **WIDE)[0]
    kernel = ColumnKernel(3, factor, (0.2,), (4,))
    assert kernel.log_integral() == pytest.approx(2 * math.log(numeric) + math.log(1 + 3 * 0.2), rel=1e-12)


def test_the_overlap_of_many_laplacian_columns_does_not_overflow():
    kernel = ProductLaplacian(300).overlap
    x, y = np.zeros((1, 300)), np.full((1, 300), 0.25)
    expected = 300 * (math.log(1.25) - 0.25)
    assert kernel.log(kernel.separation(x, y, Workspace()))[0, 0] == pytest.approx(expected, rel=1e-12)
    far = kernel.separation(x, np.full((1, 300), 1e9), Workspace())
    assert np.exp(-far)[0, 0] == 0.0


@FACTORS
@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (0.5, -1.0), (-3.0, 4.0)])
def test_the_law_of_a_pair(factor, a, b):
    profile, low, high = PROFILES[factor], min(a, b), max(a, b)

    def density(t):
        return profile(t - a) * profile(t - b)

    total = quad(density, low - 30, high + 30, points=[low, high], **WIDE)[0]
    law = factor.pair_mixture(np.array([a, b]))
    law.add(slice(0, 2), np.array([[0.0, 0.5], [0.5, 0.0]]))
    for t in np.linspace(low - 2, high + 2, 9):
        below = quad(density, low - 30, t, points=[p for p in (low, high) if p < t] or None, **WIDE)[0]
        assert law.cumulative(t) == pytest.approx(below / total, abs=5e-7)
    mean = quad(lambda t: t * density(t), low - 30, high + 30, points=[low, high], **WIDE)[0] / total
    assert mean == pytest.approx(0.5 * (a + b), abs=1e-9)
    draws = factor.sample_pair(np.full(4000, a), np.full(4000, b), np.random.default_rng(0))
    assert kstest(draws, np.vectorize(law.cumulative)).pvalue > 1e-3
    single = factor.sample(4000, np.random.default_rng(1))
    assert kstest(single, lambda t: factor.cumulative(t, np.array(0.0))).pvalue > 1e-3


@FACTORS
def test_a_mixture_of_pairs_is_the_sum_of_their_laws(factor):
    rng = np.random.default_rng(0)
    values = np.round(3 * rng.normal(size=12), 1)  # some are equal
    weights = rng.uniform(size=(12, 12))
    weights += weights.T
    whole = factor.pair_mixture(values)
    for rows in (slice(0, 5), slice(5, 12)):
        whole.add(rows, weights[rows])
    for t in (-4.0, 0.3, 2.0):
        expected = 0.0
        for i, j in itertools.product(range(12), repeat=2):
            pair = factor.pair_mixture(values[[i, j]])
            pair.add(slice(0, 2), np.array([[0.0, 0.5], [0.5, 0.0]]))
            expected += weights[i, j] * pair.cumulative(t)
        assert whole.cumulative(t) == pytest.approx(expected, rel=1e-6)


@FACTORS
def test_slopes_are_derivatives(factor):
    rng = np.random.default_rng(0)
    x, centers, shares = rng.normal(size=4), rng.normal(size=6), rng.dirichlet(np.ones(6), size=4)
    step = 1e-6
    logs = np.vectorize(lambda u: math.log(PROFILES[factor](u)))
    rise = logs(x[:, None] + step - centers) - logs(x[:, None] - step - centers)
    np.testing.assert_allclose(factor.slope(x, centers, shares), (shares * rise).sum(axis=1) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("rho", [0.01, 0.5, 0.99])
def test_the_matrix_is_positive_definite(rho):
    every = np.array(list(itertools.product([0.0, 1.0], range(3), range(2))), dtype=float)
    k = Operator(ColumnKernel(3, LAPLACIAN_FACTOR, (rho, 0.3), (3, 2)), every).dense()
    assert np.linalg.eigvalsh(k).min() > 0.0


def test_the_heat_kernel_of_the_complete_graph():
    """exp(-t L) by its eigenvalues, over its diagonal."""
    m, t = 4, 0.3
    laplacian = m * np.eye(m) - np.ones((m, m))
    values, vectors = np.linalg.eigh(laplacian)
    heat = vectors @ np.diag(np.exp(-t * values)) @ vectors.T
    rho = (1 - math.exp(-m * t)) / (1 + (m - 1) * math.exp(-m * t))
    codes = np.arange(m, dtype=float)[:, None]
    np.testing.assert_allclose(Operator(ColumnKernel(1, rho=(rho,), sizes=(m,)), codes).dense(), heat / heat[0, 0])


def test_part_of_the_columns_has_the_kernel_of_these():
    kernel = ColumnKernel(4, LAPLACIAN_FACTOR, (0.1, 0.7), (3, 5))
    assert kernel.take(np.array([1, 3])) == ColumnKernel(2, LAPLACIAN_FACTOR, (0.7,), (5,))


def test_what_cannot_be_a_kernel_is_refused():
    with pytest.raises(InputError, match="0 < rho < 1"):
        ColumnKernel(1, rho=(1.0,), sizes=(3,))
    with pytest.raises(InputError, match="one each"):
        ColumnKernel(1, rho=(0.5,))
    with pytest.raises(InputError, match="does not define phi'"):
        ProductLaplacian(2).derivative(1.0, 1)
