"""p-values and the threshold that follows from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from isopleth.tasks.anomaly.conformal import benjamini_hochberg, cross_conformal, tail_p_values


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=60), st.floats(0.01, 0.5))
def test_benjamini_hochberg_rejects_what_scipy_s_adjusted_p_values_reject(p, rate):
    p = np.array(p)
    adjusted = false_discovery_control(p)
    if np.any(np.abs(adjusted - rate) < 1e-12):
        return  # on the line, where rounding decides
    np.testing.assert_array_equal(p <= benjamini_hochberg(p, rate), adjusted <= rate)


def test_cross_conformal_by_counting():
    held_out = [np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0])]
    new = [np.array([2.0, 9.0]), np.array([2.5, -1.0])]
    # 2 and 0 rows are as extreme as the first, 0 and 2 as the second, of 5
    np.testing.assert_allclose(cross_conformal(held_out, new), [3 / 6, 3 / 6])


SCORES = {
    "gaussian": lambda rng, n: (rng.normal(size=(n, 5)) ** 2).sum(axis=1) / 2,
    "exponential": lambda rng, n: rng.exponential(size=n),
    "power law": lambda rng, n: np.log1p((rng.standard_t(3, size=(n, 2)) ** 2).sum(axis=1) / 3),
    "bounded": lambda rng, n: rng.uniform(size=n),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("n", [50, 1000])
def test_ordinary_tables_are_seldom_flagged(name, n):
    rng = np.random.default_rng(0)
    flagged = sum(benjamini_hochberg(tail_p_values(SCORES[name](rng, n)), 0.1) > 0 for _ in range(300))
    assert flagged / 300 <= 0.1 + 2 * np.sqrt(0.09 / 300)


def test_planted_outliers_are_flagged_and_the_others_not():
    rng = np.random.default_rng(1)
    scores = np.concatenate([SCORES["gaussian"](rng, 500), 60 + rng.uniform(size=20)])
    p = tail_p_values(scores)
    flagged = p <= benjamini_hochberg(p, 0.1)
    assert flagged[500:].all()
    assert flagged[:500].sum() <= 4


def test_tail_p_values_are_ranks_in_the_body_and_monotone_throughout():
    rng = np.random.default_rng(2)
    scores = rng.exponential(size=400)
    p = tail_p_values(scores)
    order = np.argsort(scores)
    assert (np.diff(p[order]) <= 0).all()
    assert ((p > 0) & (p <= 1)).all()
    np.testing.assert_allclose(p[order[:300]], 1 - np.arange(300) / 400)
    # p at the largest score of an exponential tail is of the size of its true value, 1/400, and never far below it.
    assert 0.2 < p.min() / np.exp(-scores.max()) < 20
    extreme = tail_p_values(np.append(scores, 1e9))
    assert 0 < extreme[-1] < 1e-6


@pytest.mark.parametrize("scores", [np.zeros(10), np.array([0.0, 1.0]), np.r_[np.zeros(99), 5.0]])
def test_ties_fall_back_to_ranks(scores):
    p = tail_p_values(scores)
    np.testing.assert_allclose(p, [(scores >= s).mean() for s in scores])
