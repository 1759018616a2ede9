"""The Gaussian base: shrinkage against scikit-learn's, derivatives, draws."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf

from isopleth.score.field import GaussianBase


def covariance(base):
    return (base.axes * base.variances) @ base.axes.T


def rows(n=60, dim=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim)) + 3.0


def test_shrinkage_is_that_of_ledoit_and_wolf():
    X = rows()
    base = GaussianBase.fit(X, np.ones(len(X)))
    want, shrinkage = ledoit_wolf(X)
    assert shrinkage > 1 / 60
    np.testing.assert_allclose(covariance(base), want, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(base.mean, X.mean(axis=0))


def test_weights_equal_repetition():
    X, counts = rows(), np.random.default_rng(1).integers(1, 4, size=60)
    a, b = (
        GaussianBase.fit(X, counts.astype(float)),
        GaussianBase.fit(np.repeat(X, counts, axis=0), np.ones(counts.sum())),
    )
    np.testing.assert_allclose(covariance(a), covariance(b), rtol=1e-10)


def test_density_score_and_divergence():
    base = GaussianBase.fit(rows(), np.ones(60))
    x = rows(7, seed=2)
    np.testing.assert_allclose(base.energy(x), multivariate_normal(base.mean, covariance(base)).logpdf(x))
    np.testing.assert_allclose(base.value(x), -np.linalg.solve(covariance(base), (x - base.mean).T).T, atol=1e-10)
    np.testing.assert_allclose(base.divergence(x), -np.trace(np.linalg.inv(covariance(base))))
    draws = base.sample(200_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(draws.T), covariance(base), atol=0.02 * np.abs(covariance(base)).max())


@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (3, 40), (40, 40)])
def test_few_rows_leave_it_invertible(shape):
    base = GaussianBase.fit(rows(*shape), np.ones(shape[0]))
    assert (base.variances > 0).all()
    assert base.variances.max() < 1e3 * base.variances.min() * shape[0]
    assert np.isfinite(base.value(rows(3, shape[1], seed=1))).all()


def test_rows_of_any_size_have_the_covariance_of_their_shape():
    z = np.random.default_rng(3).normal(size=(40, 3))
    want = GaussianBase.fit(z, np.ones(40))
    for size in (2.0**480, 2.0**-480):
        got = GaussianBase.fit(size * z, np.ones(40))
        np.testing.assert_allclose(got.variances / size**2, want.variances, rtol=1e-12)
