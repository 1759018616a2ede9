"""The forest kernel: shares of leaves, at new rows and out of bag."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from isopleth.conditional.forest import Forest, Growth, squared

RNG = np.random.default_rng(0)
X = RNG.integers(0, 6, size=(70, 3)).astype(np.float32)
X[RNG.random(X.shape) < 0.1] = np.nan
TARGET = np.nan_to_num(X[:, 0]) + 0.3 * RNG.normal(size=70)


def fitted(weights, trees=12):
    return Forest.fit(X, TARGET, weights, Growth(trees, seed=3))


def test_weights_are_shares_of_leaves():
    forest = fitted(np.ones(70))
    leaves, W = forest.leaves(X), forest.weights_at(X).toarray()
    np.testing.assert_array_equal(leaves, forest.own)
    bags = np.stack([np.random.default_rng([3, t]).multinomial(70, np.full(70, 1 / 70)) for t in range(12)], axis=1)
    expected = np.zeros((70, 70))
    for t in range(12):
        same = (leaves[:, [t]] == leaves[:, t]) * bags[:, t]
        expected += same / same.sum(axis=1, keepdims=True) / 12
    np.testing.assert_allclose(W, expected, atol=1e-12)
    unseen = bags == 0
    out = np.zeros((70, 70))
    for i in range(70):
        for t in np.flatnonzero(unseen[i]):
            same = (leaves[i, t] == leaves[:, t]) * bags[:, t]
            out[i] += same / same.sum() / unseen[i].sum()
    np.testing.assert_allclose(forest.out_of_bag().toarray(), out, atol=1e-12)
    assert np.diag(out).max() == 0.0


def test_a_weight_counts_as_equal_rows():
    # A row of weight 3 is three equal rows: without one of them, trees count by the chance that they did not draw this one.
    weights = np.ones(70)
    weights[0] = 3.0
    weights *= 70 / weights.sum()
    forest = fitted(weights, trees=300)
    own = forest.out_of_bag(np.array([0])).toarray()[0]
    copies = np.concatenate([[0, 0], np.arange(70)])
    twin = (
        Forest.fit(X[copies], TARGET[copies], np.ones(72), Growth(300, seed=1)).out_of_bag(np.array([0])).toarray()[0]
    )
    # Leaves hold two rows at least, and equal rows count as one of them in one forest and as several in the other.
    assert abs(own[0] - twin[1:3].sum()) < 0.2
    assert own[0] > 0.1


def test_kernels_are_positive_definite_and_sum_to_one():
    forest = fitted(np.ones(70))
    leaves = forest.leaves(X)
    kernel = (leaves[:, None] == leaves[None]).mean(axis=2)
    assert np.linalg.eigvalsh(kernel).min() > -1e-12
    for W in (forest.weights_at(X), forest.out_of_bag(), squared(forest.weights_at(X))):
        np.testing.assert_allclose(np.asarray(W.sum(axis=1)).ravel(), 1.0)


def test_a_row_that_every_tree_saw_has_equal_weights():
    W = fitted(np.ones(70), trees=1).out_of_bag().toarray()
    saw = fitted(np.ones(70), trees=1).unseen[:, 0] == 0.0
    np.testing.assert_allclose(W[saw], (1.0 - np.eye(70))[saw] / 69)


def test_large_leaves_are_thinned():
    forest = Forest.fit(np.zeros((500, 1), dtype=np.float32), np.zeros(500), np.ones(500), Growth(2))
    assert np.diff(forest.indptr).max() <= 32


@pytest.mark.slow
def test_predictions_are_as_accurate_as_those_of_a_random_forest():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(600, 4)).astype(np.float32)
    y = np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.1 * rng.normal(size=600)
    ours = Forest.fit(rows[:400], y[:400], np.ones(400)).weights_at(rows[400:]) @ y[:400]
    theirs = RandomForestRegressor(100, min_samples_leaf=2, max_features=0.7, random_state=0).fit(rows[:400], y[:400])
    error = [np.mean((p - y[400:]) ** 2) for p in (ours, theirs.predict(rows[400:]))]
    assert error[0] < 1.1 * error[1]


@pytest.mark.parametrize("gaps", [False, True])
def test_rows_are_placed_in_the_leaves_of_the_compiled_trees(gaps):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    X[:, 3] = rng.integers(0, 3, 300)
    X[rng.random(X.shape) < 0.1 * gaps] = np.nan
    target = np.nan_to_num(X[:, 0] + X[:, 3])
    forest, leaves = Forest.fit_placing(X, target, np.ones(300), Growth(8))
    others = np.vstack([X, X + np.float32(0.1), np.zeros((1, 4), dtype=np.float32)])
    assert np.array_equal(forest.leaves(others), leaves(others))
    assert np.array_equal(forest.leaves(others[:1]), leaves(others[:1]))
