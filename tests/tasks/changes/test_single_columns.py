"""A change in one of many columns."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.legs import columns, given_others, location
from isopleth.tasks.changes.search import changes_of
from isopleth.tasks.changes.series import ObservedSeries


def found(values, legs=(columns.LEG,)):
    series = ObservedSeries(values, values, np.zeros(values.shape, dtype=bool), rate=0.05)
    return changes_of(series, np.random.default_rng(0), legs)


def test_a_step_in_one_of_many_columns_is_seen_and_named():
    values = np.random.default_rng(1002).normal(size=(400, 20))
    values[200:, 2] += 1.0
    one = found(values)
    (step,) = one.steps
    assert abs(step - 200) <= 12
    assert one.columns == [(2,)]


def test_columns_without_a_change_have_none_and_one_column_is_no_leg():
    noise = np.random.default_rng(0).normal(size=(300, 12))
    assert not len(found(noise).steps)
    step = noise[:, :1] + 3.0 * (np.arange(300) >= 150)[:, None]
    assert not len(found(step).steps)


def test_columns_whose_changes_are_known_are_not_tested_again(monkeypatch):
    values = np.random.default_rng(1).normal(size=(200, 3)) + 4.0 * (np.arange(200) >= 100)[:, None] * [1.0, 1.0, 0.0]
    values[40:, 2] += 4.0
    tested, tests = [], columns.described
    monkeypatch.setattr(columns, "described", lambda one, rng: tested.append(one.values) or tests(one, rng))
    assert np.abs(found(values, (location.LEG, columns.LEG)).steps - [40, 100]).max() <= 1
    assert len(tested) < 2  # both are changes of the joint description; one column looks as if it had another one
    news = [change.column for one in columns.each_alone(*told_of(values), "location") for change in one.changes]
    assert {0, 1} <= set(news)


def told_of(values):
    series = ObservedSeries(values, values, np.zeros(values.shape, dtype=bool), rate=0.05)
    return series, np.array([40]), np.random.default_rng(0)


def test_a_column_that_moves_given_the_others_is_seen_and_named():
    """Six columns of correlation .95; one moves by .3, which is 1.3 of what the others leave open."""
    root = np.linalg.cholesky(np.full((6, 6), 0.95) + 0.05 * np.eye(6)).T
    values = np.random.default_rng(3).normal(size=(600, 6)) @ root
    assert not len(found(values, [given_others.LEG]).steps)
    values[300:, 2] += 0.3
    one = found(values, [given_others.LEG])
    assert np.abs(one.steps - 300).max() <= 12
    assert one.kinds.tolist() == ["relation"]
    assert one.columns == [(2,)]
    assert (one.intervals[0, 0] <= 300) & (one.intervals[0, 1] >= 300)


def test_a_bend_of_one_column_beside_a_step_of_another_is_a_slope_of_its_column():
    """The step cut short the segment in which the bend was named and placed: it was a level of a third column."""
    rng, time = np.random.default_rng([1, 606]), np.arange(1500)
    series = lfilter([1.0], [1.0, -0.5], rng.normal(size=(5, 1600)))[:, 100:].T
    series[:, 0] += rng.uniform(2.0, 4.0) * (time >= 900)
    series[:, 1] += rng.uniform(5.0, 9.0) * np.maximum(time / 750.0 - 1.0, 0.0)
    found = ChangePointDetector(random_state=0).fit(series)
    assert (found.kinds_.tolist(), found.columns_) == (["slope", "level"], [(1,), (0,)])
    assert np.abs(found.change_points_ - [750, 900]).max() <= 10
