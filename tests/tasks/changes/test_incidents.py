"""An incident is told as one thing, with both ends and its height."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.incidents import Incident, apart, odd_cycles, sharp_incidents, with_incidents
from isopleth.tasks.changes.odd_cycles import OddCycles
from isopleth.tasks.changes.result import ChangePoints
from isopleth.tasks.changes.stretches import SkewScale, beyond_others


@pytest.mark.parametrize(("height", "length"), [(12.0, 2), (-12.0, 3), (12.0, 5)])
def test_a_sharp_level_in_the_last_steps_is_told_as_what_it_is(height, length):
    series = np.random.default_rng(length).normal(size=300)
    series[-length:] += height
    found = ChangePointDetector(random_state=0).fit(series)
    assert found.change_points_.tolist() == [300 - length]
    assert found.result_.kinds.tolist() == ["level"]
    assert found.states_.tolist() == [0, 1]
    row = found.result_.table().iloc[0]
    assert row["after"] - row["before"] == pytest.approx(height, abs=1.5)


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_nothing_begins_at_the_end_of_noise(memory):
    ends = 0
    for seed in range(100):
        series = lfilter([1.0], [1.0, -memory], np.random.default_rng(seed).standard_t(4.0, size=250))[50:, None]
        ends += len(sharp_incidents(series, np.zeros(series.shape, dtype=bool), [], 0.05))
    assert ends <= 3


def _counts_of_days(seed, burst):
    """Counts by quarters of an hour that are high about noon, with five rows of a burst there; and the usual counts."""
    rng = np.random.default_rng(seed)
    usual = np.exp(0.2 + 2.0 * np.exp(-(((np.arange(14 * 96) % 96 - 48) / 14.0) ** 2)))
    wander = lfilter([0.25], [1.0, -0.7], rng.normal(size=len(usual)))
    counts = rng.poisson(usual * np.exp(wander)).astype(float)
    counts[816:821] += burst * rng.integers(50, 110, 5)
    return counts, usual


def test_a_burst_of_counts_at_the_busy_hour_is_an_incident():
    right = before = false = 0
    for seed in range(12):
        counts, usual = _counts_of_days(seed, 1)
        calm, _ = _counts_of_days(seed, 0)
        none = np.zeros((len(counts), 1), dtype=bool)
        rest, usual_rest = (np.log((some + 1.0) / (usual + 1.0))[:, None] for some in (counts, calm))

        def found(values, logs, none=none):
            return [(one.start, one.end) for one in sharp_incidents(values, none, (96.0,), 0.05, logs)]

        right += found(rest, [0]) == [(816, 821)]
        before += found(rest, []) == [(816, 821)]
        false += bool(found(usual_rest, [0]))
    assert right >= 10
    assert before <= 4
    assert not false


def test_a_burst_of_counts_is_told_without_the_days_that_hid_it():
    counts, _ = _counts_of_days(0, 1)
    times = pd.date_range("2025-03-03", periods=len(counts), freq="15min")
    result = ChangePointDetector(random_state=0).fit(counts, times=times).result_
    assert result.incidents.tolist() == [[816, 821]]
    assert len(result) == 2


@pytest.mark.parametrize("height", [10.0, -10.0])
def test_a_short_level_that_comes_back_is_one_incident(height):
    times = pd.date_range("2024-03-04", periods=500, freq="5min")
    series = np.random.default_rng(0).normal(size=500)
    series[200:212] += height
    result = ChangePointDetector(random_state=0).fit(pd.Series(series, times)).result_
    assert result.kinds.tolist() == ["incident", "incident"]
    assert np.abs(result.incidents - [[200, 212]]).max() <= 1
    text = result.text()
    assert "changes once." in text
    direction = "higher" if height > 0.0 else "lower"
    assert re.search(
        rf"steps 200 to 211 \(incident, \d+(\.\d+)? {direction}, 2024-03-04 16:40.* to 2024-03-04 17:35", text
    )


def test_what_is_long_or_does_not_come_back_is_no_incident():
    kinds, columns = np.array(["level", "level"], dtype="<U9"), [(0,), (0,)]

    def named(levels, lengths):
        values = np.repeat(levels, lengths)[:, None].astype(float)
        return with_incidents(values, np.cumsum(lengths)[:-1], kinds, columns).tolist()

    assert named([0, 5, 0], [200, 20, 200]) == ["incident", "incident"]
    assert named([0, 5, 3], [200, 20, 200]) == ["level", "level"]
    assert named([0, 5, 0], [200, 60, 200]) == ["level", "level"]
    assert named([0, 5, 0], [200, 20, 30]) == ["level", "level"]
    values = np.repeat([0.0, 5.0, 0.0], [200, 20, 200])[:, None] * [1.0, 1.0]
    assert with_incidents(values, np.array([200, 220]), kinds, [(0,), (1,)]).tolist() == ["level", "level"]


def _hours_of_weeks(seed, days=28):
    """Hours with days and weekends, and noise of a deviation of .2."""
    times = pd.date_range("2024-03-04", periods=24 * days, freq="h")
    level = (2.0 + np.sin(2.0 * np.pi * (times.hour - 8) / 24.0)) * np.where(times.day_of_week >= 5, 0.6, 1.0)
    return times, level.to_numpy() + 0.2 * np.random.default_rng(seed).normal(size=len(times))


def test_an_incident_of_hours_in_a_series_with_days_and_weeks_is_told_with_both_ends():
    times, series = _hours_of_weeks(1)
    series[300:302] *= 4.0
    result = ChangePointDetector(random_state=0).fit(pd.Series(series, times)).result_
    assert result.kinds.tolist() == ["incident", "incident"]
    assert result.incidents.tolist() == [[300, 302]]
    (row,) = result.to_dict()["table"]
    assert (row["change"], row["until"]) == (300, 301)
    assert isinstance(row["until"], int)
    assert row["height"] > 3.0
    assert row["before"] == pytest.approx(row["after"], abs=0.1)


def test_an_incident_of_minutes_beside_days_hides_no_step():
    rng = np.random.default_rng(2)
    minutes = 5.0 * np.arange(6 * 288)
    series = 5.0 * np.exp(-0.5 * ((minutes % 1440 - 840) / 200.0) ** 2) + rng.normal(size=len(minutes))
    series[700:708] += 10.0
    series[1200:] += 3.0
    times = pd.date_range("2026-03-02", periods=len(minutes), freq="5min")
    detector = ChangePointDetector(random_state=0).fit(series, times=times)
    assert detector.kinds_.tolist() == ["incident", "incident", "level"]
    assert np.abs(detector.change_points_ - [700, 708, 1200]).max() <= 3
    # The part after an incident is in the state of that before it.
    assert detector.states_[0] == detector.states_[2]
    assert len(set(detector.states_.tolist())) == 3


def test_an_incident_beside_a_smooth_curve_is_told_and_the_curve_is_none():
    rng = np.random.default_rng(4)
    series = 6.0 * (1.0 - np.exp(-np.arange(800) / 150.0)) + rng.normal(size=800)
    series[500:520] -= 10.0
    result = ChangePointDetector(random_state=0).fit(series).result_
    assert result.kinds.tolist() == ["incident", "incident"]
    assert result.incidents.tolist() == [[500, 520]]
    assert "along a smooth curve" in result.text()


def test_what_has_no_two_sharp_edges_or_recurs_is_taken_for_no_incident():
    rng = np.random.default_rng(5)
    none = np.zeros((600, 1), dtype=bool)

    def found(values, periods=()):
        return [(one.start, one.end) for one in sharp_incidents(values[:, None], none, periods, 0.05)]

    noise = rng.normal(size=600)
    assert found(noise + 12.0 * ((np.arange(600) >= 200) & (np.arange(600) < 230))) == [(200, 230)]
    fading = np.where(np.arange(600) >= 200, 20.0 * 0.9 ** (np.arange(600.0) - 200), 0.0)
    assert found(noise + fading) == []
    assert found(noise + 12.0 * (np.arange(600) == 200)) == []  # a single value
    assert found(noise + 12.0 * (np.arange(600) >= 200)) == []  # a step
    assert found(noise + 12.0 * (np.arange(600) % 50 < 3)) == []  # a habit
    daily = noise + 12.0 * ((np.arange(600) % 150 >= 40) & (np.arange(600) % 150 < 44))
    assert found(daily, (150.0,)) == []  # at the same phase elsewhere, too
    for tails in (1.0, 2.0, 3.0):
        assert sum(bool(found(np.random.default_rng(s).standard_t(tails, size=600))) for s in range(30)) <= 1
        assert sum(bool(found(np.cumsum(np.random.default_rng(s).standard_t(tails, size=600)))) for s in range(30)) <= 2


def test_an_incident_of_several_columns_is_one():
    rng = np.random.default_rng(6)
    series = rng.normal(size=(500, 3))
    series[200:215, 0] += 12.0
    series[201:215, 2] -= 12.0
    detector = ChangePointDetector(random_state=0).fit(series)
    assert detector.change_points_.tolist() == [200, 215]
    assert detector.columns_ == [(0, 2), (0, 2)]


def test_stretches_of_a_skewed_series_with_memory_are_no_incidents_and_one_far_beyond_them_is():
    def found(series):
        none = np.zeros((len(series), 1), dtype=bool)
        return [(one.start, one.end) for one in sharp_incidents(series[:, None], none, (), 0.05)]

    false = right = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        false += bool(found(np.exp(lfilter([0.6], [1.0, -0.8], rng.normal(size=400)))[100:]))
        counts = rng.poisson(2.0, 840).astype(float)
        counts[400:404] += 20.0
        right += found(counts) == [(400, 404)]
    assert false <= 1
    assert right >= 36


def test_two_incidents_alike_do_not_hide_one_another():
    series = np.random.default_rng(0).normal(size=1000)
    series[300:306] += 10.0
    series[700:706] += 10.0
    found = sharp_incidents(series[:, None], np.zeros((1000, 1), dtype=bool), (), 0.05)
    assert [(one.start, one.end) for one in found] == [(300, 306), (700, 706)]
    assert max(one.pvalue for one in found) < 0.01
    assert beyond_others(series, (300, 306), []) > 0.1


def test_the_scale_of_skewed_differences_is_that_of_their_law():
    rng = np.random.default_rng(1)
    assert SkewScale.of(np.exp(rng.normal(size=20_000))).scale == pytest.approx(1.0, abs=0.15)
    assert SkewScale.of(-np.exp(rng.normal(size=20_000))).sign == -1.0
    assert SkewScale.of(rng.normal(size=20_000)).scale > 10.0
    even = SkewScale(1.0, 2.0)
    np.testing.assert_allclose(even.sizes(np.array([2.0, -2.0, 0.0])), [np.log(2.0), 1.0, 0.0])


def _working_days(seed, days=28, dips=False):
    """Hours of a load on working days, from 8 to 18 o'clock, or of one that stops then; noise of a deviation of 1; the load."""
    steps = np.arange(24 * days)
    load = 4.0 * ((steps % 24 >= 8) & (steps % 24 < 18) & (steps // 24 % 7 < 5)) * (-1.0 if dips else 1.0)
    return load + lfilter([0.9], [1.0, -0.4], np.random.default_rng(seed).normal(size=len(steps) + 50))[50:], load


@pytest.mark.parametrize("dips", [False, True])
@pytest.mark.parametrize("day", [8, 15, 19])
def test_a_day_without_its_load_is_odd_and_so_is_a_day_off_with_one(day, dips):
    right = 0
    for seed in range(8):
        series, load = _working_days(seed, dips=dips)
        hours = slice(24 * day + 8, 24 * day + 18)
        series[hours] += load[24 + 8] if day % 7 >= 5 else -load[24 + 8]
        found = OddCycles.of(series, load, (168.0,)).found(0.008)
        right += len(found) == 1 and np.abs(np.array(found[0][:2]) - [hours.start, hours.stop]).max() <= 1
    assert right >= 5


def test_usual_days_are_not_odd_and_many_odd_ones_are_a_habit():
    false = 0
    for seed in range(60):
        series, load = _working_days(seed)
        false += bool(OddCycles.of(series, load, (24.0, 168.0)).found(0.05))
    assert false <= 6
    series, load = _working_days(0)
    for count in (3, 5):
        calmer = load + 0.3 * (series - load)
        for day in (1, 9, 14, 17, 25)[:count]:
            calmer[24 * day + 8 : 24 * day + 18] -= 4.0
        assert len(OddCycles.of(calmer, load, (24.0, 168.0)).found(0.05)) == count % 5
    assert OddCycles.of(series[:200], load[:200], (24.0,)) is None  # too few
    assert OddCycles.of(series, np.tile(np.arange(4.0), 168), (4.0,)) is None  # too short


@pytest.mark.parametrize("step", [26, 14])
def test_days_that_grow_with_the_level_of_a_rate_are_not_odd(step):
    false = 0
    for seed in range(40):
        _, load = _working_days(seed, days=42)
        grown = np.where(np.arange(len(load)) >= 24 * step, 2.0, 1.0)
        rate = (10.0 + 1.5 * load + 6.0 * np.sin(2.0 * np.pi * (np.arange(len(load)) - 8) / 24)) * grown
        counts = np.random.default_rng(seed).poisson(rate) - rate.mean() * grown
        season = rate / grown * 1.5
        false += bool(OddCycles.of(counts, season - season.mean(), (24.0, 168.0)).found(0.008))
    assert false <= 2


def test_a_cycle_that_is_late_is_not_absent():
    series, load = _working_days(1, days=30)
    wave = np.where(np.arange(len(load)) % 24 < 8, 4.0, 0.0)
    late, absent = wave + 0.5 * (series - load), wave + 0.5 * (series - load)
    late[24 * 12 : 24 * 13] += np.roll(wave[:24], 6) - wave[:24]
    absent[24 * 12 : 24 * 13] -= wave[:24]
    assert not OddCycles.of(late, wave, (24.0,)).found(0.05)
    assert len(OddCycles.of(absent, wave, (24.0,)).found(0.05)) == 1


def test_a_holiday_beside_weekends_is_one_incident():
    series, _ = _working_days(3, days=21)
    series[24 * 10 + 8 : 24 * 10 + 18] -= 4.0
    result = (
        ChangePointDetector(random_state=0)
        .fit(series, times=pd.date_range("2024-03-04", periods=504, freq="h"))
        .result_
    )
    assert result.kinds.tolist() == ["incident", "incident"]
    assert np.abs(result.incidents - [[248, 258]]).max() <= 1


def test_incidents_that_overlap_are_one():
    first, second, third = (Incident(*ends, columns, pvalue) for ends, columns, pvalue in _OVERLAPPING)
    assert apart([third, second, first]) == [Incident(10, 30, (0, 1), 0.01), third]


_OVERLAPPING = [((10, 20), (1,), 0.02), ((15, 30), (0,), 0.01), ((40, 50), (0,), 0.03)]


def test_the_picture_has_a_band_for_an_incident_which_hides_no_peak():
    series = np.random.default_rng(5).normal(size=(5000, 1))
    series[2000:2010] += 30.0
    places = np.array([2000, 2010, 4000])
    kinds = np.array(["incident", "incident", "level"])
    (chart,) = ChangePoints(places, kinds, series, np.zeros(3), [(0,)] * 3, np.column_stack([places, places]))._charts()
    assert [round(place) for place, _ in chart.lines] == [4000]
    low, high = chart.bands[-1]
    assert (low < 2000 and high > 2009, high - low) == (True, pytest.approx(40.0, abs=1.0))
    assert max(chart.series[0].y) == series.max()


def test_p_values_of_incidents_allow_for_the_columns_and_for_the_share_of_the_rate():
    """With a column more, which has none, each p-value is twice as large, and none is beyond the rate."""
    series, load = _working_days(2, days=30)
    series[24 * 10 + 8 : 24 * 10 + 18] -= 4.0
    calm, _ = _working_days(5, days=30)
    season = load[:, None]
    (alone,) = odd_cycles((series - load)[:, None], season, (168.0,), 0.05)
    (beside,) = odd_cycles(np.column_stack([calm - load, series - load]), np.hstack([season, season]), (168.0,), 0.05)
    assert (alone.start, alone.end, beside.columns) == (beside.start, beside.end, (1,))
    assert 0.0 < alone.pvalue <= beside.pvalue <= 0.05
    assert beside.pvalue == pytest.approx(2.0 * alone.pvalue)
    noise = np.random.default_rng(0).normal(size=(400, 2))
    noise[200:204, 0] += 30.0
    missing = np.zeros((400, 2), dtype=bool)
    (alone,), (beside,) = (sharp_incidents(noise[:, :d], missing[:, :d], (), 0.05) for d in (1, 2))
    assert (alone.start, alone.end, alone.columns) == (beside.start, beside.end, beside.columns) == (200, 204, (0,))
    assert 0.0 < alone.pvalue <= beside.pvalue <= 0.05
    assert beside.pvalue == pytest.approx(2.0 * alone.pvalue)
