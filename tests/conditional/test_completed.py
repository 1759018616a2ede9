"""Points of targets that are known as intervals: their weights, and means by row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isopleth.conditional.completed import WeightedTarget, spread_over


@pytest.fixture(scope="module")
def target():
    """60 rows, of which every fourth has an interval."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 2))
    low = A[:, 0] + rng.normal(size=60)
    high = low + np.where(np.arange(60) % 4 == 0, 1.5, 0.0)
    weights = rng.uniform(0.5, 2.0, size=60)
    return A, low, high, weights, WeightedTarget.of(A, low, high, weights)


def test_points_are_in_their_intervals_and_have_the_weight_of_their_rows(target):
    _, low, high, weights, found = target
    assert (found.values >= low[found.origin]).all()
    assert (found.values <= high[found.origin]).all()
    np.testing.assert_array_equal(found.origin[:60], np.arange(60))
    np.testing.assert_allclose(np.bincount(found.origin, found.weights), weights)
    single = low == high
    np.testing.assert_array_equal(found.known, single[found.origin])
    np.testing.assert_array_equal(np.bincount(found.origin), np.where(single, 1, 4))
    np.testing.assert_array_equal(found.copies, np.bincount(found.origin)[found.origin])
    np.testing.assert_array_equal(found.values[:60][single], low[single])
    points = found.values[found.origin == 0]
    assert len(np.unique(points)) == 4


def test_means_by_row_are_those_of_a_loop_and_residuals_are_about_them(target):
    *_, found = target
    means = np.array([found.values[found.origin == i].mean() for i in range(60)])
    np.testing.assert_allclose(found.means_by_row(found.values), means)
    fitted = np.random.default_rng(1).normal(size=60)  # what is left of the mean of each row
    left = found.about(found.values, means - fitted)
    np.testing.assert_allclose(left, found.values - fitted[found.origin])
    weights = np.random.default_rng(2).random((5, 60))
    spread = spread_over(csr_array(weights), found.origin, found.copies).toarray()
    np.testing.assert_allclose(spread @ found.values, weights @ means)


def test_known_numbers_are_themselves(target):
    A, low, _, weights, _ = target
    found = WeightedTarget.of(A, low, low, weights)
    assert found.known.all()
    assert found.means_by_row(low) is low
    assert found.about(low, weights) is weights
    W = csr_array(np.eye(60))
    assert spread_over(W, found.origin, found.copies) is W


def test_the_order_of_rows_moves_the_points_along(target):
    A, low, high, weights, found = target
    order = np.random.default_rng(3).permutation(60)
    moved = WeightedTarget.of(A[order], low[order], high[order], weights[order])
    means = found.means_by_row(found.values)
    np.testing.assert_allclose(moved.means_by_row(moved.values), means[order], atol=1e-6)
