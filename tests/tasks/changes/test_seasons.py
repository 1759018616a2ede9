"""Days and weeks are no changes, found or given; a step beside them is, and so is a season that changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector, InputError
from isopleth.tasks.changes.autocorrelation import cycle_of
from isopleth.tasks.changes.periods import Cycle, period_of_differences, seasonal, seasons_of
from isopleth.tasks.changes.seasons_beside import SeasonSearch, SizedSeason

HOURS = 8 * 168


def weeks(seed, step=0.0):
    """Eight weeks of hours: a day with sharp edges, lower weekends, correlated noise, and a step after five weeks."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2024-01-01", periods=HOURS, freq="h")
    hours = times.hour.to_numpy()
    noise = lfilter([1.0], [1.0, -0.6], 0.6 * rng.normal(size=HOURS + 100))[100:]
    day = np.sin(2.0 * np.pi * hours / 24.0) + 1.5 * ((hours >= 7) & (hours < 19))
    return times, day - 2.5 * (np.arange(HOURS) // 24 % 7 >= 5) + noise + step * (np.arange(HOURS) >= 840)


@pytest.mark.parametrize("how", ["found", "given", "names"])
def test_edges_of_days_and_weekends_are_no_changes_and_a_step_is_one(how):
    times, series = weeks(0, 2.5)
    period = {"given": [24, 168], "names": ["day", "week"]}.get(how, "auto")
    arguments = {"times": times} if how == "names" else {}
    detector = ChangePointDetector(period=period, random_state=0).fit(series, **arguments)
    assert abs(int(detector.change_points_[0]) - 840) <= 2
    assert detector.kinds_.tolist() == ["level"]
    np.testing.assert_allclose(detector.periods_, [24.0, 168.0])


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.0, 2.5])
def test_missing_rows_and_cells_hide_neither_the_season_nor_the_step(step):
    right = 0
    for seed in range(6):
        times, series = weeks(seed, step)
        rng = np.random.default_rng(seed)
        series[rng.choice(HOURS, 40, replace=False)] = np.nan
        kept = np.sort(rng.choice(HOURS, HOURS - 35, replace=False))
        found = ChangePointDetector(random_state=0).fit_predict(series[kept], times=times[kept])
        places = kept[found].tolist()
        right += len(places) == (step > 0.0) and all(abs(place - 840) <= 3 for place in places)
    assert right >= 5


def test_a_square_wave_of_fourteen_days_is_no_change():
    steps = np.arange(14 * 96)
    series = 20.0 + 60.0 * ((steps % 96 >= 36) & (steps % 96 < 72)) + np.random.default_rng(0).normal(size=len(steps))
    detector = ChangePointDetector(random_state=0).fit(series)
    assert len(detector.change_points_) == 0
    assert detector.periods_.tolist() == [96.0]


def test_a_season_that_changes_is_a_change_of_no_level():
    steps = np.arange(1200)
    late = steps >= 600
    series = np.where(late, np.sin(2 * np.pi * steps / 24.0), np.sin(4 * np.pi * steps / 24.0))
    detector = ChangePointDetector(period=24, random_state=0)
    detector.fit(series + 0.3 * np.random.default_rng(1).normal(size=1200))
    assert len(detector.change_points_) == 1
    assert abs(int(detector.change_points_[0]) - 600) <= 24
    assert detector.kinds_[0] in ("shape", "frequency")


def test_months_have_their_own_lengths():
    """A level that falls from the first to the last day of each month, whatever its length."""
    times = pd.date_range("2019-01-01", "2022-12-31", freq="D")
    share = (times.day - 1) / times.days_in_month
    values = (10.0 * share.to_numpy() + np.random.default_rng(0).normal(size=len(times)))[:, None]
    seconds = times.to_numpy().astype("datetime64[s]").astype(np.float64)
    ((cycle,),) = seasons_of(values, "month", seconds)
    assert cycle.period == pytest.approx(30.44, abs=0.01)
    assert cycle.phases[[0, 31, 59]].tolist() == [0, 0, 0]
    assert cycle.phases[[30, 58]].tolist() == [cycle.count - 1, 29 if cycle.count == 31 else 28]
    assert seasons_of(values, None, seconds) == [[]]


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ("fortnight", "period = 'fortnight': expected 'auto'"),
        ([24, 1], "period = 1: expected"),
        (True, "period = True: expected"),
        ([], "period = "),
        ("day", "needs the times of the steps"),
        (900, "two periods"),
    ],
)
def test_periods_that_cannot_be_used_are_refused(period, message):
    with pytest.raises(InputError, match=message):
        ChangePointDetector(period=period).fit(weeks(0)[1])


def test_a_season_that_grows_steadily_is_no_change():
    rng = np.random.default_rng(3)
    length = 360
    season = np.tile(rng.normal(size=12), length // 12) * np.linspace(1.0, 3.0, length)
    detector = ChangePointDetector(random_state=0).fit(season + 0.3 * rng.normal(size=length))
    assert len(detector.change_points_) == 0
    assert detector.periods_.tolist() == [12.0]


def test_a_change_of_frequency_is_named_and_placed_in_the_series_with_its_season():
    steps = 2.0 * np.pi / np.where(np.arange(400) < 200, 20.0, 14.0)
    series = np.sin(np.cumsum(steps)) + 0.3 * np.random.default_rng(0).normal(size=400)
    found = ChangePointDetector(random_state=0).fit(series)
    assert len(found.periods_) == 1  # a multiple of both periods, nearly
    assert found.kinds_.tolist() == ["frequency"]
    assert abs(found.change_points_[0] - 200) <= 10
    assert np.diff(found.intervals_[0]) < 60


def test_a_season_of_one_column_is_found_beside_its_steps():
    rng = np.random.default_rng(6)
    series = rng.normal(size=(240, 3))
    series[:, 1] += (
        2.0 * np.resize(rng.normal(size=7), 240) + 8.0 * (np.arange(240) >= 90) - 5.0 * (np.arange(240) >= 170)
    )
    assert [[cycle.period for cycle in cycles] for cycles in seasons_of(series, "auto", None)] == [[], [7.0], []]


def test_the_period_of_differences_is_that_of_every_period_by_its_phases():
    rng = np.random.default_rng(4)
    column = np.resize(rng.normal(size=9), 9 * 40 + 1) + 0.5 * rng.normal(size=9 * 40 + 1)
    steps = np.diff(column) - np.diff(column).mean()
    costs = []
    for period in range(2, 90):
        sums = np.bincount(np.arange(360) % period, steps)
        left = 1.0 - np.sum(sums**2) * period / 360 / (steps @ steps)
        costs.append(360 * np.log(left) + (period + 1) * np.log(360))
    assert period_of_differences(column) == 9 == int(np.argmin(costs)) + 2
    column[rng.choice(361, 30, replace=False)] = np.nan
    assert period_of_differences(column) == 9
    assert period_of_differences(rng.normal(size=400)) is None
    assert period_of_differences(np.zeros(50)) is None


def test_noise_with_memory_seldom_looks_like_a_cycle():
    noise = lfilter([1.0], [1.0, -0.8], np.random.default_rng(5).normal(size=(40, 1200)), axis=1)[:, 200:]
    assert sum(cycle_of(one[:, None]) is not None for one in noise) <= 3
    waves = noise + 4.0 * np.sin(2.0 * np.pi * np.arange(1000) / 50.0)
    assert all(abs(cycle_of(one[:, None]) - 50.0) < 1.0 for one in waves)


def test_whole_periods_begin_a_cycle_however_their_quotient_is_rounded():
    """In double precision 49 / 4.9 is less than 10."""
    for period in np.arange(21, 400) / 10.0:
        cycle = Cycle.of_steps(1001, period)
        whole = np.arange(0, 1001, round(10 * period))
        assert set(cycle.phases[whole]) == {0}
        assert cycle.phases.max() == cycle.count - 1


@pytest.mark.parametrize("size", [0.0, 0.8])
def test_a_reference_is_compared_without_the_season(size):
    hours = np.arange(480)
    season = 4.0 * np.sin(2 * np.pi * hours / 24) + 4.0 * (hours % 24 >= 8)
    series = season + size * (hours >= 300) + 0.5 * np.random.default_rng(3).normal(size=480)
    detector = ChangePointDetector(random_state=0).fit(series, reference=series[:200])
    assert detector.periods_.tolist() == [24]
    assert detector.kinds_.tolist() == ["level"] * (size > 0.0)
    assert np.abs(detector.change_points_ - 300).max(initial=0) <= 6


@pytest.mark.parametrize("cycles", [3, 5])
def test_a_cycle_that_rises_leaves_no_steps_between_cycles(cycles):
    t = np.arange(50 * cycles)
    saw = 3.0 * (t % 50) / 50
    rising = seasonal((saw + 0.1 * t)[:, None], [[Cycle.of_steps(len(t), 50.0)]])
    np.testing.assert_allclose(rising[:, 0], saw - saw.mean(), atol=1e-9)
    noise = 0.1 * np.random.default_rng(0).normal(size=len(t))
    assert ChangePointDetector(period=50, random_state=0).fit(saw + noise).change_points_.tolist() == []


def test_the_period_of_a_short_season_is_its_own_and_not_that_of_a_peak_nearby():
    """A peak at 3.99 for a season of 4 lets the phases of 39 cycles drift, which looks like a change of shape."""
    seen = 0
    for seed in range(8):
        noise = np.random.default_rng(500 + seed).normal(0.0, 0.3, 156)
        series = np.resize([2.0, 0.0, -1.0, 1.0], 156) + noise
        assert cycle_of(series[:, None], 4.0) == 4.0
        seen += len(ChangePointDetector(random_state=0).fit(series).change_points_) > 0
    assert seen <= 1
    # Of a long season the peak counts, and of a short one that is another.
    slow = np.sin(2.0 * np.pi * np.arange(600) / 29.5)[:, None]
    assert cycle_of(slow, 30.0) == pytest.approx(29.5, abs=0.1)
    quick = np.sin(2.0 * np.pi * np.arange(600) / 7.4)[:, None]
    assert cycle_of(quick, 8.0) == pytest.approx(7.4, abs=0.1)


def test_a_doubled_rate_with_days_and_weeks_is_one_change():
    """The first season, of days only, leaves weekends that look like levels; its size doubles, too."""
    times = pd.date_range("2024-03-04", periods=28 * 24, freq="h")
    base = (2.0 + np.sin(2.0 * np.pi * (times.hour - 8) / 24.0)) * np.where(times.day_of_week >= 5, 0.6, 1.0)
    noise = 0.2 * np.random.default_rng(3).normal(size=len(times))
    series = base * np.where(np.arange(len(times)) >= 440, 2.0, 1.0) + noise
    found = ChangePointDetector(random_state=0).fit(series, times=times)
    assert found.kinds_.tolist() == ["level"]
    assert abs(found.change_points_[0] - 440) <= 1
    assert found.periods_.max() == 168.0


def test_a_large_step_hides_no_season_and_makes_none():
    steps = np.arange(500)
    noise = 0.3 * np.random.default_rng(2).normal(size=500)
    found = ChangePointDetector(random_state=0).fit(
        2.0 * np.sin(2.0 * np.pi * steps / 25.0) + noise - 10.0 * (steps >= 250)
    )
    assert found.change_points_.tolist() == [250]
    assert found.periods_.tolist() == [25.0]


def test_a_season_has_a_size_and_a_level_of_its_own_between_changes():
    wave = np.sin(2.0 * np.pi * np.arange(600) / 24.0)
    sizes, levels = np.repeat([1.0, 0.0, 2.0], 200), np.repeat([0.0, 1.0, -1.0], 200)
    column = sizes * wave + levels + 0.1 * np.random.default_rng(0).normal(size=600)
    column[50:60] = np.nan
    found = SizedSeason.of(column, wave, np.array([100, 200, 300, 400, 590]), 48.0)
    assert found.bounds == [0, 200, 400, 600]
    np.testing.assert_allclose(found.sizes, sizes, atol=0.05)
    np.testing.assert_allclose(found.levels, levels, atol=0.05)


def test_the_seasons_that_were_taken_out_are_said():
    wave = 3.0 * np.sin(2.0 * np.pi * np.arange(240) / 24.0) + np.random.default_rng(0).normal(size=240)
    result = ChangePointDetector(random_state=0, period=24).fit(wave).result_
    assert "Taken out: a season of 24 steps (period=None leaves them in)." in result.text()
    assert "Taken out" not in ChangePointDetector(random_state=0, period=None).fit(wave).result_.text()


MINUTES = np.arange(1440)
TURNS = np.arange(600)
CYCLES = {"wave": -3.0 * np.cos(2.0 * np.pi * TURNS / 600), "shift": 6.0 * ((TURNS >= 198) & (TURNS < 450))}


@pytest.mark.parametrize("kind", CYCLES)
def test_seven_long_cycles_without_times_are_a_season_beside_a_step(kind):
    noise = np.random.default_rng(0).normal(size=4200)
    series = np.tile(CYCLES[kind], 7) + noise + 3.0 * (np.arange(4200) >= 1830)
    detector = ChangePointDetector(random_state=0).fit(series)
    assert len(detector.periods_) == 1
    assert abs(detector.periods_[0] - 600.0) <= 15.0
    assert detector.kinds_.tolist() == ["level"]
    assert abs(int(detector.change_points_[0]) - 1830) <= 3


def test_counts_with_a_daily_load_have_no_line():
    rng = np.random.default_rng(1)
    load = 0.3 + np.exp(-0.5 * ((MINUTES / 60.0 - 14.0) / 4.0) ** 2)
    detector = ChangePointDetector(random_state=0).fit(rng.poisson(12.0 * np.tile(load, 7)))
    assert (len(detector.change_points_), detector.result_.trend) == (0, "")


def test_the_flank_of_a_longer_period_is_no_peak():
    values = CYCLES["wave"][np.arange(4200) % 600] + np.random.default_rng(0).normal(size=4200)
    assert cycle_of(values[:, None]) is None  # seven cycles; eight of 520 steps would be in reach


def test_a_cycle_in_levels_has_these_in_another_series_too():
    cycle = Cycle.of_steps(600, 150.0).in_levels((40, 90))
    assert cycle.freedom == 5
    np.testing.assert_array_equal(cycle.over(300).phases, cycle.phases[:300])


def test_an_incident_of_one_cycle_is_no_level_of_the_season():
    series = np.random.default_rng(0).normal(size=1400)
    series[500:520] += 40.0
    assert not any(own.edges for own in seasons_of(series[:, None], "auto", np.arange(1400) * 432.0)[0])


def test_a_stretch_that_differs_is_no_part_of_its_season():
    """A day off in five weeks would make the same day of the other weeks look like days of more."""
    rng = np.random.default_rng(3)
    series = np.tile(np.repeat(rng.normal(size=10), 10), 5) + 0.2 * rng.normal(size=500)
    series[230:260] -= 2.0
    search = SeasonSearch(series[:, None], None, np.random.default_rng(0))
    seasons = seasons_of(search.cells, 100, None)
    (first,) = search.fitted(seasons, seasonal(search.cells, seasons))
    assert first.changes >= 4
    best, _ = search._without_stretch(first, np.zeros(500, dtype=bool))
    assert best.found.location.changes.tolist() == [230, 260]
    assert best.cost < first.cost


@pytest.mark.parametrize("seed", [0, 1])
def test_a_smooth_day_beside_weekends_is_a_day_and_levels_of_days(seed):
    """The first harmonics of a week cost less than a day alone, and left both edges of weekends as changes."""
    steps = np.arange(35 * 96)
    load = 0.9 * np.sin(2.0 * np.pi * steps / 96) - 0.6 * (steps // 96 % 7 >= 5) - 0.7 * (steps // 96 == 18)
    load += 0.08 * np.random.default_rng(seed).normal(size=len(steps))
    monday = 4.0 * 86_400.0
    (found,) = seasons_of(load[:, None], "auto", monday + 900.0 * steps)
    assert [(cycle.count, cycle.harmonics) for cycle in found] == [(96, 1), (7, 0)]
