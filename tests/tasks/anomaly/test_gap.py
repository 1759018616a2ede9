"""The gap that sets the least likely rows apart: its level, its places, and far rows that are far from each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f as f_law

from isopleth import AnomalyDetector
from isopleth.tasks.anomaly.gap import rows_before_gap


def scores_of(products):
    """Return scores whose gaps times their places are these numbers."""
    products = np.asarray(products, dtype=float)
    return np.append(0.0, np.cumsum(products / np.arange(1, len(products) + 1)))


def test_a_gap_is_clear_where_its_f_test_times_the_places_has_p_below_a_twentieth():
    clear = f_law.isf(0.05 / 20, 2, 2 * (40 - 3))
    for step, gap in ((0.9995 * clear, 0), (1.0005 * clear, 3)):
        products = np.where(np.arange(1, 60) == 3, step, 1.0)
        assert rows_before_gap(scores_of(products), 2) == gap


def test_a_gap_behind_many_rows_is_wide_beside_the_scores_that_follow():
    """A gap of 0.13 was named where scores reached 1,800: behind the 100th row a fourteenth of the usual step is enough for F."""
    products = np.ones(300)
    products[99] = 20.0
    assert rows_before_gap(scores_of(products), 120) == 0
    products[99] = 26.0
    assert rows_before_gap(scores_of(products), 120) == 100


def test_false_gaps_are_rare_where_scores_fall_off_exponentially():
    rng = np.random.default_rng(0)
    found = [rows_before_gap(scores_of(rng.exponential(size=200)), flagged) > 0 for flagged in [0, 7, 40] * 200]
    assert 0.01 < np.mean(found) < 0.075


@pytest.mark.parametrize("far", [1, 2, 5, 12, 30])
def test_far_rows_that_are_far_from_each_other_are_all_before_the_gap(far):
    rng = np.random.default_rng(far)
    ordinary = -np.sort(rng.exponential(size=150))[::-1]
    beyond = ordinary[0] - 30.0 - np.cumsum(rng.uniform(5.0, 50.0, far) * np.linspace(1.0, 9.0, far))
    scores = rng.permutation(np.append(ordinary, beyond))
    assert rows_before_gap(scores, far) == rows_before_gap(1e-6 * scores + 3.0, far) == far


@pytest.mark.parametrize("scores", [[0.0], [0.0, 1.0], np.zeros(50), np.repeat([0.0, 1.0], 20)])
def test_few_or_equal_scores(scores):
    assert rows_before_gap(np.array(scores), 0) == (20 if len(scores) == 40 else 0)


def test_five_loads_of_fifty_stand_apart():
    """Far rows were compared with each other, and no gap was seen behind them."""
    usual = 0.25 + 0.15 * np.linspace(0.0, 1.0, 45)
    rows = np.append(usual, [31.0, 44.5, 58.2, 71.9, 90.4])[:, None]
    found = AnomalyDetector(random_state=0).fit(rows).anomalies(rows)
    assert found.gap == 5
    assert "A gap in the scores sets the 5 least likely rows apart from the others" in found.text()
