"""The Gaussian base: its shrinkage, derivatives, draws."""

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


def test_shrinkage_and_width_have_the_least_loss_of_rows_left_out():
    X, w = rows(24), np.random.default_rng(1).integers(1, 4, size=24).astype(float)

    def loss(rho, wider):
        total = 0.0
        for i, x in enumerate(X):
            others = np.delete(X, i, axis=0)
            mean = np.average(others, axis=0, weights=np.delete(w, i))
            S = np.cov(others.T, aweights=np.delete(w, i), ddof=0)
            size = np.trace(np.cov(X.T, aweights=w, ddof=0)) / 4
            P = np.linalg.inv(wider * ((1.0 - rho) * S + rho * size * np.eye(4)))
            total += w[i] * (0.5 * np.sum((P @ (x - mean)) ** 2) - np.trace(P))
        return total

    base, S = GaussianBase.fit(X, w), np.cov(X.T, aweights=w, ddof=0)
    size = np.trace(S) / 4
    wider = np.trace(covariance(base)) / (4 * size)
    rho = 1.0 - (base.variances[-1] - base.variances[0]) / np.ptp(np.linalg.eigvalsh(S)) / wider
    np.testing.assert_allclose(base.mean, np.average(X, axis=0, weights=w))
    assert 1e-6 < rho < 0.5
    assert loss(rho, 1.0) < min(loss(rho * 1.02, 1.0), loss(rho / 1.02, 1.0))
    assert wider > 1.02
    assert loss(rho, wider) < min(loss(rho, wider * 1.01), loss(rho, wider / 1.01))


def test_few_normal_rows_do_not_make_scores_too_large():
    """The inverse of the covariance of 24 rows of 4 columns is 1.35 times too large on average."""
    sizes, errors = [], []
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(24, 4))
        precision = np.linalg.inv(covariance(GaussianBase.fit(X, np.ones(24))))
        plain = np.linalg.inv(np.cov(X.T, bias=True))
        sizes.append([np.trace(precision) / 4, np.trace(plain) / 4])
        errors.append([np.sum((each - np.eye(4)) ** 2) for each in (precision, plain)])
    found, plain = np.mean(sizes, axis=0)
    assert found < 1.1 < 1.25 < plain
    assert np.mean(errors, axis=0)[0] < 0.25 * np.mean(errors, axis=0)[1]


@pytest.mark.parametrize("condition", [1.0, 100.0, 1e4])
def test_small_eigenvalues_are_not_shrunk_away(condition):
    """Relative errors of the score, compared with no shrinkage and with that of Ledoit and Wolf."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        root = np.linalg.qr(rng.normal(size=(8, 8)))[0] * np.geomspace(1.0, condition**-0.5, 8)
        X, new = rng.normal(size=(100, 8)) @ root.T, rng.normal(size=(1000, 8)) @ root.T
        truth = -new @ np.linalg.inv(root @ root.T)
        plain = -(new - X.mean(axis=0)) @ np.linalg.inv(np.cov(X.T, bias=True))
        shrunk = -(new - X.mean(axis=0)) @ np.linalg.inv(ledoit_wolf(X)[0])
        found = GaussianBase.fit(X, np.ones(100)).value(new)
        errors.append([np.sum((s - truth) ** 2) / np.sum(truth**2) for s in (found, plain, shrunk)])
    found, plain, shrunk = np.mean(errors, axis=0)
    assert found < 1.05 * min(plain, shrunk)


def test_weights_are_shares():
    X, counts = rows(), np.random.default_rng(1).integers(1, 4, size=60).astype(float)
    a, b = GaussianBase.fit(X, counts), GaussianBase.fit(X, 0.1 * counts)
    np.testing.assert_allclose(covariance(a), covariance(b), rtol=1e-9)


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
