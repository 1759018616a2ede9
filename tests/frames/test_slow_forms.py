"""Whitening, sinh-arcsinh maps and means between quantiles against slow, independent forms."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import inv, sqrtm
from scipy.optimize import minimize
from scipy.stats import norm

from frames.contract import table
from isopleth.core.laws import quantile_means
from isopleth.frames import Gaussianize, LocalScale, Scale, SinhArcsinh, Whiten
from isopleth.frames.base import END_MEAN, ENDS, QUARTILES


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_whitening_by_the_root_of_the_correlation_matrix(ridge):
    X, w = table(50, 4), np.random.default_rng(0).integers(1, 4, size=50)
    repeated = np.repeat(X, w, axis=0)
    root = inv(sqrtm(np.corrcoef(repeated.T) + ridge * np.eye(4)))
    expected = ((X - X[0]) / repeated.std(axis=0)) @ root
    z = Whiten(ridge=ridge).fit(X, w.astype(float)).forward(X)
    np.testing.assert_allclose(z - z[0], expected, atol=1e-8)


@pytest.mark.parametrize("components", [False, True])
def test_whitening_of_fewer_rows_than_columns(components):
    X = np.random.default_rng(0).normal(size=(5, 9))
    fitted = Whiten(ridge=0.01, components=components).fit(X, np.ones(5))
    expected = np.corrcoef(X.T) + 0.01 * np.eye(9)  # A^T A is the inverse of this, for every root A
    np.testing.assert_allclose(fitted.matrix.T @ fitted.matrix, inv(expected), atol=1e-9)
    np.testing.assert_allclose(fitted.matrix @ fitted.matrix_inverse, np.eye(9), atol=1e-11)
    assert fitted.log_determinant == pytest.approx(-0.5 * np.linalg.slogdet(expected)[1])


@pytest.mark.parametrize("levels", [QUARTILES, ENDS, np.array([0.0, 1.0]), np.linspace(0, 1, 8)])
def test_means_between_quantiles_of_many_repeated_rows(levels):
    rng = np.random.default_rng(0)
    X, w = np.round(rng.normal(size=(30, 2)), 1), rng.integers(1, 6, size=30)
    many = np.sort(np.repeat(X, 420 * w, axis=0), axis=0)
    edges = np.rint(levels * len(many)).astype(int)
    expected = [many[a:b].mean(axis=0) for a, b in pairwise(edges)]
    np.testing.assert_allclose(quantile_means(X, w.astype(float), levels), expected, atol=1e-3)
    assert quantile_means(X + 1e12, w.astype(float), levels) == pytest.approx(np.array(expected) + 1e12)
    np.testing.assert_allclose(quantile_means(X * 1e300, w.astype(float), levels) / 1e300, expected, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_sinh_arcsinh_by_a_general_optimiser(seed):
    rng = np.random.default_rng(seed)
    x, w = (
        [rng.standard_t(3, size=80), np.exp(rng.normal(size=80)), rng.uniform(size=80)][seed],
        rng.uniform(1, 3, size=80),
    )
    fitted = SinhArcsinh().fit(x[:, None], w)
    y = (x - fitted.shift) / fitted.scale
    low, _, high = quantile_means(x[:, None], w, ENDS)[:, 0]
    y = np.clip(y, *(np.array([-4, 4]) * (high - low) / 2 / END_MEAN / fitted.scale))

    def loss(v):
        u = v[0] * np.arcsinh(y) - v[1]
        log_slope = np.log(v[0] * np.cosh(u) / np.sqrt(1 + y**2))
        return -np.average(norm.logpdf(np.sinh(u)) + log_slope, weights=w) + 0.02 * ((v[0] - 1) ** 2 + v[1] ** 2)

    best = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 10_000})
    np.testing.assert_allclose([fitted.tail[0], fitted.skew[0]], best.x, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
@pytest.mark.parametrize("frame", [SinhArcsinh(), Whiten(), Gaussianize(2)])
def test_numbers_of_any_size(frame, scale):
    X = table(40, 2) / table(40, 2).std(axis=0)
    one, other = frame.fit(X, np.ones(40)), frame.fit(X * scale, np.ones(40))
    np.testing.assert_allclose(other.forward(X * scale), one.forward(X), atol=1e-7)
    np.testing.assert_allclose(other.log_volume(X * scale), one.log_volume(X) - 2 * np.log(scale), rtol=1e-9, atol=1e-7)


def test_normal_rows_are_hardly_changed_by_the_smooth_map():
    rng = np.random.default_rng(0)
    fitted = SinhArcsinh().fit(rng.normal(size=(20_000, 1)), np.ones(20_000))
    np.testing.assert_allclose([fitted.tail[0], fitted.skew[0]], [1.0, 0.0], atol=0.03)
    np.testing.assert_allclose([fitted.scale[0], fitted.shift[0]], [1.0, 0.0], atol=0.03)


def test_one_far_row_hardly_moves_the_smooth_map_and_the_marginal_one():
    X = table(300, 2)
    far = X.copy()
    far[7] = 1e6 * X.std(axis=0)
    for frame in (SinhArcsinh(), Gaussianize()):
        one, other = frame.fit(X, np.ones(300)), frame.fit(far, np.ones(300))
        if isinstance(frame, Gaussianize):
            one, other = one.maps[0], other.maps[0]
        assert np.median(np.abs(one.forward(X) - other.forward(X))) < 0.2


def test_a_column_below_the_least_deviation_is_neither_scaled_nor_stretched():
    rows = np.array([[1.0, 0.4], [1.0, -0.4], [-1.0, 0.4], [-1.0, -0.4]])
    np.testing.assert_allclose(Whiten(0.0, least_deviation=0.5).fit(rows, np.ones(4)).forward(rows), rows, atol=1e-12)
    np.testing.assert_allclose(Whiten(0.0).fit(rows, np.ones(4)).forward(rows), rows / [1.0, 0.4], atol=1e-12)


def test_a_dozen_rows_are_too_few_for_near_pairs():
    X = table(12, 3)
    local, whole = (frame.fit(X, np.ones(12)) for frame in (LocalScale(), Scale()))
    np.testing.assert_allclose(local.forward(X), whole.forward(X), rtol=1e-12, atol=1e-12)
