"""Rows that share a value of one column are far for one reason: none is certain by it, and a sentence names it."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from isopleth import AnomalyDetector


def towns(n, seed, far=20):
    """Return ordinary rows of people, some of whom live in one town that is far larger than the others."""
    rng = np.random.default_rng(seed)
    size = np.round(rng.gamma(1.0, 60.0, 40))[rng.integers(40, size=n)]
    size[:far] = 7300.0
    return np.column_stack([size, rng.integers(18, 90, n), rng.integers(1, 8, n), rng.normal(size=n)])


@pytest.mark.parametrize("seed", range(3))
def test_people_of_a_large_town_are_not_certain_anomalies_and_the_town_is_named(seed):
    rows = towns(900, seed)
    detector = AnomalyDetector(random_state=0).fit(rows)
    assert (detector.training_scores_[:20].max() < detector.training_scores_[20:].min()).all()
    assert not detector.select().any()
    assert (detector.anomaly_probability() < 0.5).all()
    found = detector.anomalies(pandas.DataFrame(rows, columns=["size", "age", "left", "x"]).to_numpy())
    assert found.gap == 20
    assert "All 20 have column 0 7300, as hardly any other row" in found.text()


def test_a_row_of_the_town_that_is_far_without_it_stays_certain():
    rows = towns(900, 5)
    rows[3, 3] = 40.0
    assert np.flatnonzero(AnomalyDetector(random_state=0).fit(rows).select()).tolist() == [3]


def test_words_that_few_rows_have_and_a_sample_of_the_rows():
    rows = towns(900, 6)
    frame = pandas.DataFrame(
        {"town": np.where(rows[:, 0] == 7300.0, "large", "small"), "age": rows[:, 1], "x": rows[:, 3]}
    )
    assert not AnomalyDetector(random_state=0).fit(frame).select()[:20].any()
    sampled = AnomalyDetector(random_state=0, max_fit_rows=500).fit(rows)
    assert not sampled.select()[:20].any()


def test_far_rows_with_values_of_their_own_stay_certain():
    rows = np.random.default_rng(7).normal(size=(900, 4))
    rows[:6, 3] = np.linspace(30.0, 50.0, 6)
    assert AnomalyDetector(random_state=0).fit(rows).select()[:6].all()
