"""Rows far from all others: their factors, and scores at the other rows."""

import numpy as np
import pytest

from isopleth import KernelScore, NystromKEF
from isopleth.score import Tikhonov
from isopleth.score.pullback import far_discounts, without_far

ROOT = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] * [1.0, 0.1, 0.01]


def rows(n=120, seed=0):
    """Correlated normal rows."""
    return np.random.default_rng(seed).normal(size=(n, 3)) @ ROOT.T


def discounts(X):
    return far_discounts(X, np.full(len(X), 1.0 / len(X)), np.float64(X.shape[1]))


def with_far(X, distances):
    """Add a row at each distance, in standard deviations of the columns: many times that in the narrow direction."""
    return np.concatenate([X, np.outer(distances, [1.0, -0.5, 0.7]) * X.std(axis=0)])


@pytest.mark.parametrize("distances", [[8.0], [30.0], [1e8], [100.0, 1e4], [1e3, -1e3]])
def test_far_rows_do_not_count_and_all_others_do(distances):
    factors = discounts(with_far(rows(), distances))
    np.testing.assert_array_equal(factors[:120], 1.0)
    assert factors[120:].max() < 1e-6


def test_affine_maps_change_no_factor():
    X = np.random.default_rng(1).standard_t(2, size=(200, 3))
    A = np.array([[3.0, 1.0, 0.0], [0.5, 2.0, -1.0], [0.0, 0.2, 1e-3]])
    factors = discounts(X)
    assert 0 < np.sum(factors < 0.9) < 20
    np.testing.assert_allclose(discounts(X @ A.T + 5.0), factors, rtol=1e-6)


def test_a_group_of_some_size_counts():
    """One in twenty rows at one far place are a mode and not outliers."""
    X = rows(200)
    X[:10] += 50.0
    assert discounts(X).min() > 0.9
    rare = np.column_stack([rows(200)[:, 0], np.arange(200) < 10])  # mostly the same value
    assert discounts(rare).min() > 0.9


def test_copies_are_weights():
    X = with_far(rows(60), [40.0, 6.0])
    merged = without_far(X, np.full(62, 3.0))
    np.testing.assert_allclose(merged, 3.0 * without_far(X, np.ones(62)))
    assert merged[60] < 1e-6


def test_tensors_constant_columns_and_few_rows():
    X = with_far(rows(50), [1e5])
    X[:, 2] = 4.0
    torch = pytest.importorskip("torch")
    even = torch.full((51,), 1.0 / 51, dtype=torch.float64)
    tensors = far_discounts(torch.as_tensor(X), even, torch.tensor(2.0, dtype=torch.float64))
    want = far_discounts(X, np.full(51, 1.0 / 51), np.float64(2.0))
    np.testing.assert_allclose(tensors.numpy(), want, rtol=1e-6)
    np.testing.assert_array_equal(want[:50], 1.0)
    np.testing.assert_array_equal(discounts(np.ones((4, 2))), 1.0)
    wide = discounts(np.random.default_rng(0).normal(size=(10, 30)))  # fewer rows than columns
    np.testing.assert_allclose(wide, wide[0], rtol=1e-3)


def error(x, estimator=KernelScore, **given):
    """Return the error of the score at new rows."""
    new = rows(500, seed=1)
    truth = -new @ np.linalg.inv(ROOT @ ROOT.T)
    found = estimator(n_jobs=1, **given).fit(x).grad_log_density(new)
    return np.sum((found - truth) ** 2) / np.sum(truth**2)


@pytest.mark.parametrize("distances", [[10.0], [100.0, 1e4], [1e8]])
@pytest.mark.parametrize("frame", ["whiten", "smooth"])
def test_scores_of_the_other_rows_stay(frame, distances):
    given = {"frame": frame, "base": "gaussian", "regularizer": Tikhonov(1.0), "length_scale": 4.0}
    X = rows()
    assert error(with_far(X, distances), **given) < 1.2 * error(X, **given) + 0.02
    given |= {"landmarks": 20, "random_state": 0}
    assert error(with_far(X, distances), NystromKEF, **given) < 1.2 * error(X, NystromKEF, **given) + 0.02


def test_a_far_row_leaves_the_choice_to_the_others():
    """With equal weights for all rows the error is 1, because no frame and no base have a small loss at the far one."""
    assert error(with_far(rows(60), [1e4])) < 0.2
