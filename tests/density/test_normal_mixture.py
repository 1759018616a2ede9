"""Mixtures of normal densities, by themselves and as candidates of a stack."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf

from isopleth import KDE, SOSREP
from isopleth.density.normal_mixture import (
    NormalMixture,
    _mixture,
    _products,
    _shrunken,
    fit_normals,
    held_out_normals,
)
from isopleth.density.stack_columns import StackColumns
from isopleth.tasks import make_rows

MEANS = np.array([[0.0, 0.0], [6.0, 1.0], [-2.0, 7.0]])
ROOTS = np.array([[[0.3, 0.0], [0.1, 0.2]], [[1.0, 0.0], [-0.6, 0.5]], [[1.5, 0.0], [0.0, 1.2]]])
SHARES = np.array([0.3, 0.3, 0.4])


def truth(X):
    laws = [multivariate_normal(mean, root @ root.T).pdf(X) for mean, root in zip(MEANS, ROOTS, strict=True)]
    return np.log(SHARES @ np.array(laws))


def drawn(n, seed=0):
    return NormalMixture(SHARES, MEANS, ROOTS).sample(n, np.random.default_rng(seed))


def test_values_gradients_and_draws(monkeypatch) -> None:
    monkeypatch.setattr("isopleth.density.normal_mixture._BLOCK", 60)  # ten rows in a block
    mixture, X = NormalMixture(SHARES, MEANS, ROOTS), drawn(4000)
    log_p, gradient = mixture.evaluate(X[:25])
    np.testing.assert_allclose(log_p, truth(X[:25]), rtol=1e-12)
    np.testing.assert_array_equal(mixture.log_unnormalized(X[:25]), log_p)
    steps = 1e-6 * np.eye(2)
    by_differences = np.stack([(truth(X[:25] + h) - truth(X[:25] - h)) / 2e-6 for h in steps], axis=1)
    np.testing.assert_allclose(gradient, by_differences, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(X.mean(axis=0), SHARES @ MEANS, atol=0.2)
    spread = np.einsum("k,kij->ij", SHARES, ROOTS @ ROOTS.transpose(0, 2, 1)) + np.cov(MEANS.T, aweights=SHARES, ddof=0)
    np.testing.assert_allclose(np.cov(X.T), spread, rtol=0.1, atol=0.3)
    # Deviations twice as large, the mean of each component where it was.
    np.testing.assert_allclose(
        NormalMixture(SHARES[:1] / 0.3, MEANS[:1], ROOTS[:1]).wider(2.0).log_unnormalized(X[:9]),
        multivariate_normal(MEANS[0], 4.0 * ROOTS[0] @ ROOTS[0].T).logpdf(X[:9]),
    )


def test_components_without_enough_rows_drop_out() -> None:
    X, new = drawn(600), drawn(2000, seed=1)
    unit = X.std(axis=0)
    found = fit_normals(X / unit, np.ones(600))
    loss = truth(new) - (found.log_unnormalized(new / unit) - np.log(unit).sum())
    assert abs(loss.mean()) < 0.06
    rng = np.random.default_rng(2)
    assert len(fit_normals(rng.normal(size=(300, 8)), np.ones(300)).shares) == 1
    centres = np.repeat(2.0 * rng.normal(size=(3, 6)), [100, 200, 300], axis=0)
    three = fit_normals((centres + 0.3 * rng.normal(size=(600, 6))) / 2.0, np.ones(600))
    np.testing.assert_allclose(np.sort(three.shares), [1 / 6, 2 / 6, 3 / 6], atol=0.02)


@pytest.mark.parametrize("exact", [1.0 - 1e-15, 1.0, 1.0 + 1e-15])
def test_rounding_does_not_decide_about_a_component_of_one_far_row(exact) -> None:
    """The component of the far row has the weight of one row, up to rounding, and so has the least weight."""
    X = np.vstack([drawn(49), [[99.0, -99.0]]])
    mixture = NormalMixture(
        np.array([0.5, 0.5]), np.array([[1.0, 2.0], [99.0, -99.0]]), np.tile(9.0 * np.eye(2), (2, 1, 1))
    )
    assert len(mixture.improved(_products(X, np.full(50, 0.02)), 0.02 * exact).shares) == 1


def test_all_rows_have_the_last_steps(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    centres = 3.0 * rng.normal(size=(3, 6))
    X = (np.repeat(centres, 1000, axis=0) + rng.normal(size=(3000, 6)))[rng.permutation(3000)] / 3.0
    monkeypatch.setattr("isopleth.density.normal_mixture._MOST_ROWS", 400)
    found = fit_normals(X, np.ones(3000))
    nearest = np.linalg.norm(found.means[:, None] - centres / 3.0, axis=2).min(axis=0)
    assert nearest.max() < 0.05  # of 130 rows alone .07


def test_steps_have_the_moments_of_their_definition() -> None:
    X, w = drawn(300), np.random.default_rng(1).uniform(0.5, 2.0, 300)
    w /= w.sum()
    covariances = ROOTS @ ROOTS.transpose(0, 2, 1)
    p = np.stack([s * multivariate_normal(m, c).pdf(X) for s, m, c in zip(SHARES, MEANS, covariances, strict=True)])
    r = p / p.sum(axis=0) * w
    found = NormalMixture(SHARES, MEANS, ROOTS).improved(_products(X, w), 0.0)
    np.testing.assert_allclose(found.shares, r.sum(axis=1), rtol=1e-9)
    for k, own in enumerate(r):
        np.testing.assert_allclose(found.means[k], np.average(X, axis=0, weights=own), rtol=1e-9)
        spread = np.cov(X.T, aweights=own, ddof=0) + 1e-3 * np.eye(X.shape[1])
        np.testing.assert_allclose(found.roots[k] @ found.roots[k].T, spread, rtol=1e-9, atol=1e-12)


def test_rows_far_from_0_are_described_as_others() -> None:
    X = drawn(200)
    here, there = fit_normals(X, np.ones(200)), fit_normals(X + 1e7, np.ones(200))
    np.testing.assert_allclose(there.log_unnormalized(X + 1e7), here.log_unnormalized(X), atol=1e-6)


@pytest.mark.parametrize("n", [12, 200])
def test_covariances_of_few_rows_are_shrunk_as_ledoit_and_wolf_do(n) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 30)) @ np.linalg.cholesky(0.6 + 0.4 * np.eye(30)).T
    X /= X.std(axis=0)
    expected, _ = ledoit_wolf(X)
    root = fit_normals(X, np.full(n, 0.3), one=True).roots[0]
    np.testing.assert_allclose(root @ root.T, expected + 1e-3 * np.eye(30), rtol=1e-9, atol=1e-12)


def test_few_rows_of_many_columns_are_described_like_a_shrunken_normal() -> None:
    rng = np.random.default_rng(5)
    turn = rng.normal(size=(20, 5))
    root = np.linalg.cholesky(turn @ turn.T / 5 + 0.1 * np.eye(20)).T
    rows = rng.normal(size=(1025, 20)) @ root
    X, new = np.split(rows / rows[:25].std(axis=0), [25])
    mean, covariance = X.mean(axis=0), ledoit_wolf(X)[0]
    assert SOSREP(n_jobs=1).fit(X).score(new) / 1000 > multivariate_normal(mean, covariance).logpdf(new).mean() - 0.3


@pytest.mark.parametrize("kind", [SOSREP, KDE])
def test_clusters_of_unlike_sizes_are_described(kind) -> None:
    X, new = drawn(500), drawn(2000, seed=1)
    model = kind().fit(X)
    assert np.mean(truth(new) - model.score_samples(new)) < 0.08  # .14 by kernels of one shape
    normals = [one for one in model.components_ if np.isnan(one.factor)]
    assert sum(one.weight for one in normals) > 0.5
    assert len(model.dual_coef_) == len(model.components_) - len(normals)
    assert "normals" in repr(model.search_path_)


def test_draws_of_normal_densities_name_a_near_row() -> None:
    X = drawn(200)
    model = SOSREP().fit(X)
    table = model._table_density()
    part = next(one for one in table.density.parts if one.own is None)
    rows, first, second = part.draw(50, np.random.default_rng(0), table.density.centers, evenly=False)
    assert isinstance(table.density, StackColumns)
    np.testing.assert_array_equal(first, second)
    apart = np.linalg.norm(rows[:, None] - table.density.centers, axis=2)
    assert np.mean(apart[np.arange(50), first] <= np.quantile(apart, 0.1, axis=1)) > 0.95
    assert make_rows(model, 30, random_state=0).shape == (30, 2)


def test_few_rows_of_many_columns_are_a_problem_in_the_space_of_the_rows():
    """By the steps of EM in all columns, for the fit and for rows that were held out."""
    rng = np.random.default_rng(0)
    X, fresh, w = rng.normal(size=(25, 40)), rng.normal(size=(6, 40)), rng.integers(1, 3, size=25).astype(float)
    X[:12] += 3.0
    middle = w @ X / w.sum()
    for one, slow in ((False, _mixture(X - middle, w, 40)), (True, _shrunken(X - middle, w, 40)[0])):
        expected = slow.log_density(fresh - middle)
        np.testing.assert_allclose(fit_normals(X, w, one).log_density(fresh), expected, rtol=1e-9)
        np.testing.assert_allclose(held_out_normals(X, w, fresh, one), expected, rtol=1e-9)
    # More rows than columns together, fewer in the fit.
    many = rng.normal(size=(30, 40))
    np.testing.assert_allclose(
        held_out_normals(X, w, many, True), fit_normals(X, w, one=True).log_density(many), rtol=1e-9
    )
