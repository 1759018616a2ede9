"""Days of a series whose clock is set, as to summer time and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.steps import grid_of
from isopleth.tasks.changes.wall_clock import WallClock


def working_days(clock):
    hour = clock.hour + clock.minute / 60.0
    return np.asarray((0.3 + np.exp(-(((hour - 13.0) / 4.0) ** 2))) * np.where(clock.day_of_week >= 5, 0.5, 1.0))


def noise(rng, count):
    return np.exp(lfilter([1.0], [1.0, -0.5], 0.06 * rng.normal(size=count)))


def flow(start, zone, seed, freq="30min", weeks=5, by_clock=True):
    """A load that follows the clock of a zone, or that of UTC, at times of the zone."""
    times = pd.date_range(start, periods=int(weeks * 7 * pd.Timedelta("1D") / pd.Timedelta(freq)), freq=freq, tz="UTC")
    local = times.tz_convert(zone)
    values = 100.0 * working_days(local if by_clock else times) * noise(np.random.default_rng(seed), len(times))
    return pd.Series(values, local, name="load")


def found(series, **how):
    return ChangePointDetector(random_state=0).fit(series, **how).result_


CLOCKS = [
    ("2025-10-06", "Europe/Berlin", "30min"),  # set back after three weeks
    ("2025-03-10", "Europe/Berlin", "30min"),  # forward
    ("2025-10-13", "America/New_York", "1h"),
    ("2025-03-17", "Australia/Lord_Howe", "1h"),  # back by half an hour, which is half a step
]


@pytest.mark.parametrize(("start", "zone", "freq"), CLOCKS)
@pytest.mark.parametrize("step", [None, 0.7])
def test_days_follow_a_clock_that_is_set(start, zone, freq, step):
    """Without that, weekends were incidents and the day of the change a step."""
    series = flow(start, zone, 11, freq)
    place = int(0.6 * len(series))
    if step is None:
        assert len(found(series)) == 0
        return
    series.iloc[place:] *= step
    result = found(series)
    assert len(result) == 1
    assert abs(result.change_points[0] - place) <= 2
    assert str(result.table()["time"][0]) == str(series.index[result.change_points[0]])


@pytest.mark.parametrize("start", ["2025-10-06", "2025-03-10"])
def test_what_follows_utc_keeps_its_days_at_local_times(start):
    series = flow(start, "Europe/Berlin", 12, by_clock=False)
    result = found(series)
    assert len(result) == 0
    assert "days of 24 hours describe the series better than days by this clock" in result.spacing


@pytest.mark.parametrize("how", ["frame", "polars", "text", "datetimes"])
def test_the_clock_is_that_of_the_times_in_every_form(how):
    series = flow("2025-10-06", "Europe/Berlin", 13, "1h", 4)
    series.iloc[400:] *= 0.7
    times = series.index
    utc = pl.Series("when", times.tz_convert(None))
    of_polars = utc.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    forms = {
        "frame": lambda: found(pd.DataFrame({"when": times, "load": series.to_numpy()})),
        "polars": lambda: found(pl.DataFrame({"when": of_polars, "load": series.to_numpy()})),
        "text": lambda: found(series.to_numpy(), times=[time.isoformat() for time in times]),
        "datetimes": lambda: found(series.to_numpy(), times=times.to_pydatetime()),
    }
    result = forms[how]()
    assert result.change_points.tolist() == found(series).change_points.tolist()
    assert result.spacing.startswith("Days and weeks follow the clock of the times, which was set back by 60 minutes")


def test_a_counter_does_not_run_twice_as_fast_in_the_hour_that_a_clock_repeats():
    series = flow("2025-10-06", "Europe/Berlin", 14)
    result = found(series.round().cumsum())
    assert result.totals == (0,)
    assert len(result) == 0


def test_rows_of_a_repeated_hour_share_steps_and_a_left_out_hour_is_a_gap():
    def rows(start, periods, freq="15min", without=()):
        times = pd.date_range(start, periods=periods, freq=freq, tz="Europe/Berlin").delete(list(without))
        grid = grid_of(np.array(times.to_pydatetime(), dtype=object), len(times))
        return grid, grid.rows.tolist()

    grid, steps = rows("2025-10-26 01:45", 12)
    assert steps == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7]
    assert grid.first_rows(np.array([2, 5])).tolist() == [3, 9]
    values = grid.on_steps(grid.spread(np.array([[0.0, 1, 3, 5, np.nan, 7, 7, 8, 9, 10, 11, 12]]).T))
    assert values.ravel().tolist() == [0.0, 2.0, 5.0, 7.0, 8.5, 10.0, 11.0, 12.0]
    assert rows("2025-10-26 01:45", 12, without=[3])[1] == [0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7]
    assert rows("2025-10-26 00:00", 6, "1h")[1] == [0, 1, 2, 2, 3, 4]
    assert rows("2025-03-30 01:30", 5)[1] == [0, 1, 6, 7, 8]
    assert rows("2025-10-24 00:00", 6, "D")[0].note == ""


def test_offsets_of_several_sources_are_no_clock():
    times = pd.date_range("2025-06-01", periods=60, freq="h", tz="UTC")
    mixed = [time.tz_convert("Asia/Tokyo" if i % 2 else "UTC").isoformat() for i, time in enumerate(times)]
    assert WallClock.of(np.array(mixed)) is None
    assert WallClock.of(np.array([time.isoformat() for time in times])) is None
    assert WallClock.of(times.tz_localize(None).to_numpy()) is None


def test_a_clock_that_is_set_twice_is_said_so():
    series = flow("2024-10-07", "Europe/Berlin", 15, "1h", 26)
    result = found(series)
    assert len(result) == 0
    assert "which was set 2 times, first back by 60 minutes before 2024-10-27" in result.spacing
