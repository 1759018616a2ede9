"""Residuals given the other columns: against a regression, and what they may not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from isopleth.context.residuals import RankRegression, left_out_residuals
from isopleth.core.covariance import ledoit_wolf
from isopleth.core.laws import normal_scores_of_ranks


def correlated(n, d=6, correlation=0.95, seed=0):
    covariance = np.full((d, d), correlation) + (1.0 - correlation) * np.eye(d)
    return np.random.default_rng(seed).normal(size=(n, d)) @ np.linalg.cholesky(covariance).T


def scores(rows):
    return ndtri((rankdata(rows, axis=0) - 0.5) / len(rows))


def test_scores_are_those_of_mean_ranks_and_shares_are_repeated_rows():
    rows = np.random.default_rng(0).integers(0, 5, (40, 3)).astype(float)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    np.testing.assert_allclose(normal_scores_of_ranks(rows, np.full(40, 1 / 40)), scores(rows), atol=1e-12)
    once = normal_scores_of_ranks(distinct, counts / 40)
    np.testing.assert_allclose(np.repeat(once, counts, axis=0), scores(np.repeat(distinct, counts, axis=0)), atol=1e-12)


def test_a_residual_is_what_a_ridge_regression_on_the_other_columns_leaves():
    """The ridge is that of the shrunk correlation; a column of two coordinates is regressed on the others only."""
    rows, columns = correlated(120, 5, 0.6), np.array([0, 1, 1, 2, 3])
    fitted = RankRegression.of(rows, columns)
    z = scores(rows)
    z /= z.std(axis=0)
    matrix = ledoit_wolf(z, np.full(120, 1 / 120), 120)[0]
    found = fitted(rows)
    for j, column in enumerate(columns):
        others = np.flatnonzero(columns != column)
        slope = np.linalg.solve(matrix[np.ix_(others, others)], matrix[others, j])
        left = z[:, j] - z[:, others] @ slope
        error = np.sqrt(matrix[j, j] - matrix[others, j] @ slope)
        np.testing.assert_allclose(found[:, j], left / error, rtol=1e-7, atol=1e-7)


def test_shares_are_repeated_rows_and_order_units_and_columns_do_not_matter():
    rows, counts = correlated(60, 4), np.random.default_rng(1).integers(1, 4, 60)
    found = RankRegression.of(rows, share=counts / counts.sum(), count=counts.sum())(rows)
    repeated = RankRegression.of(np.repeat(rows, counts, axis=0))(np.repeat(rows, counts, axis=0))
    np.testing.assert_allclose(np.repeat(found, counts, axis=0), repeated, atol=1e-9)
    order, turn = np.random.default_rng(2).permutation(60), [2, 0, 3, 1]
    plain = RankRegression.of(rows)(rows)
    np.testing.assert_allclose(RankRegression.of(rows[order])(rows)[:, turn], plain[:, turn], atol=1e-9)
    np.testing.assert_allclose(RankRegression.of(rows[:, turn])(rows[:, turn]), plain[:, turn], atol=1e-9)
    np.testing.assert_allclose(RankRegression.of(1e3 * rows - 7.0)(1e3 * rows - 7.0), plain, atol=1e-9)


def test_a_small_move_is_large_given_the_other_columns():
    fitted, later = RankRegression.of(correlated(400)), correlated(400, seed=1)
    later[:, 2] += 0.3  # 1.2 of what the other columns leave open, and less after shrinkage
    moved = fitted(later).mean(axis=0)
    assert np.argmax(np.abs(moved)) == 2
    assert 0.8 < moved[2] < 1.3
    assert np.isfinite(fitted(1e6 * later)).all()


def test_columns_that_are_constant_or_follow_from_others_have_finite_residuals():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    rows = np.column_stack([rows, rows[:, 0] * 2.0, np.ones(30)])
    found = RankRegression.of(rows)(rows)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 3], 0.0, atol=1e-12)
    many = np.random.default_rng(1).normal(size=(20, 50))
    assert np.isfinite(RankRegression.of(many)(many)).all()


def test_a_column_that_is_left_out_is_no_regressor_any_more():
    rows = correlated(100, 4)
    some = RankRegression.of(rows).among(np.array([0, 2, 3]))
    np.testing.assert_allclose(
        some(rows[:, [0, 2, 3]]), RankRegression.of(rows[:, [0, 2, 3]])(rows[:, [0, 2, 3]]), atol=0.1
    )
    np.testing.assert_allclose(some.correlation, RankRegression.of(rows).correlation[np.ix_([0, 2, 3], [0, 2, 3])])


def test_residuals_of_rows_that_are_left_out_vary_as_those_of_new_rows():
    found = np.zeros(3)
    for seed in range(20):
        rows, later = correlated(60, 10, 0.5, seed), correlated(200, 10, 0.5, 100 + seed)
        fitted = RankRegression.of(rows)
        found += [fitted(rows).var(), left_out_residuals(rows).var(), fitted(later).var()]
    inside, left_out, new = found / 20
    assert inside < left_out - 0.1
    assert left_out == pytest.approx(new, rel=0.1)
    assert left_out_residuals(correlated(8)).shape == (8, 6)
