"""Large tables: scores are fitted to some labelled rows, and all rows enter the shares."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import ClassPriorEstimator
from isopleth.tasks.class_prior import estimator as module
from isopleth.tasks.classifier import balanced_subsample


@pytest.fixture
def few(monkeypatch):
    """Let tables of more than 300 rows be large."""
    monkeypatch.setattr(module, "MOST_ROWS", 300)


def rows(counts, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    return rng.normal(size=(len(y), 3)) + 1.5 * y[:, None], y


def test_shares_of_large_tables_are_near_those_of_a_fit_to_all_rows(monkeypatch):
    X, y = rows([900, 600], 0)
    new, _ = rows([1500, 500], 1)
    whole = ClassPriorEstimator(centers=50, random_state=0).fit(X, y).estimate(new)
    monkeypatch.setattr(module, "MOST_ROWS", 300)
    large = ClassPriorEstimator(centers=50, random_state=0).fit(X, y).estimate(new)
    assert abs(large.priors[1] - whole.priors[1]) < 0.02
    assert large.lower[1] < 0.25 < large.upper[1]
    wide, narrow = (found.upper[1] - found.lower[1] for found in (large, whole))
    assert 0.8 < wide / narrow < 1.3


def test_intervals_hold_the_shares(few):
    held = 0
    for seed in range(40):
        X, y = rows([500, 200], 3 * seed)
        new, _ = rows([450, 150], 3 * seed + 1)
        found = ClassPriorEstimator(centers=20, random_state=seed).fit(X, y).estimate(new)
        held += found.lower[1] <= 0.25 <= found.upper[1]
    assert held >= 34  # 95 % of 40 are 38, less three standard deviations


def test_all_rows_of_a_rare_class_are_fitted_to():
    _, y = rows([2000, 20], 0)
    assert np.bincount(y[balanced_subsample(y, 300, 0)]).tolist() == [280, 20]


def test_the_order_of_unlabelled_rows_has_no_effect(few):
    X, y = rows([200, 90], 0)
    new, _ = rows([450, 150], 1)
    fitted = ClassPriorEstimator(centers=20, random_state=0).fit(X, y)
    mixed = new[np.random.default_rng(0).permutation(len(new))]
    np.testing.assert_allclose(fitted.estimate(mixed).priors, fitted.estimate(new).priors, atol=1e-10)


def test_one_fit_for_each_row_gives_the_scores_of_that_fit(few):
    X, y = rows([200, 90], 0)
    fits = ClassPriorEstimator(centers=20, random_state=0).fit(X, y)._fits
    z, folds = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 10
    np.testing.assert_allclose(fits.one_each(z, folds), fits(z)[np.arange(40), folds], atol=1e-8)
