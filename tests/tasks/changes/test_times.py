"""Times of the steps: from a column, an index or beside the series."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest

from isopleth import ChangePointDetector, InputError
from isopleth.tasks.changes.zones import in_zone

RNG = np.random.default_rng(0)
FLOW = np.repeat([0.0, 4.0], [40, 30]) + RNG.normal(size=70)
TIMES = np.datetime64("2024-01-01T00:00", "us") + np.arange(70) * np.timedelta64(1, "h")


def times_of(series, **how):
    found = ChangePointDetector(random_state=0).fit(series, **how).result_
    assert found.change_points.tolist() == [40]
    return list(found.table()["time"])


@pytest.mark.parametrize(
    ("series", "how"),
    [
        (pd.Series(FLOW, index=pd.DatetimeIndex(TIMES)), {}),
        (pd.DataFrame({"flow": FLOW}, index=pd.DatetimeIndex(TIMES)), {}),
        (pd.DataFrame({"when": TIMES, "flow": FLOW}), {}),
        (pd.DataFrame({"when": [str(time) for time in TIMES], "flow": FLOW}), {}),  # as read_csv leaves them
        (pd.DataFrame({"flow": FLOW, "when": TIMES}), {"times": "when"}),
        (pd.Series(FLOW, index=pd.DatetimeIndex(TIMES).to_period("h")), {}),
        (pd.DataFrame({"when": pd.Series(TIMES).dt.to_period("h"), "flow": FLOW}), {}),
        (pl.DataFrame({"when": TIMES, "flow": FLOW}), {}),
        (FLOW, {"times": TIMES}),
        (FLOW.tolist(), {"times": list(TIMES)}),
    ],
)
def test_the_table_has_the_times_of_the_changes(series, how):
    assert [np.datetime64(str(time)) for time in times_of(series, **how)] == [TIMES[40]]


def test_the_column_of_times_is_no_part_of_the_series():
    frame = pd.DataFrame({"when": TIMES, "flow": FLOW})
    detector = ChangePointDetector(random_state=0).fit(frame, reference=frame[:30])
    assert detector.n_features_in_ == 1
    assert detector.feature_names_in_.tolist() == ["flow"]
    assert detector.result_._charts()[0].title.startswith("flow: ")
    assert "2024-01-02 16:00" in detector.result_.to_dict()["summary"][1].replace("T", " ")


def test_numbers_and_text_are_times_too():
    assert times_of(FLOW, times=np.arange(70) * 0.5) == [20.0]
    assert times_of(FLOW, times=[str(time) for time in TIMES]) == ["2024-01-02T16:00:00.000000"]
    assert "time" not in ChangePointDetector(random_state=0).fit(FLOW).result_.table()


def test_zones_count_in_the_order():
    """The clock goes back by one hour at step 20, the time does not."""
    summer, winter = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
    start = datetime(2024, 10, 26, tzinfo=UTC)
    times = [(start + timedelta(minutes=30 * i)).astimezone(summer if i < 20 else winter) for i in range(70)]
    assert times_of(FLOW, times=times) == [str(times[40])]
    with pytest.raises(InputError, match="row 20"):
        times_of(FLOW, times=[time.replace(tzinfo=None) for time in times])


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (TIMES[::-1], "times does not ascend: .* in row 1 "),
        (np.where(np.arange(70) == 7, TIMES[6], TIMES), "in row 7 is not later"),
        (np.where(np.arange(70) == 7, np.datetime64("NaT"), TIMES), "no time in row 7"),
        (np.where(np.arange(70) == 5, np.nan, np.arange(70.0)), "no time in row 5"),
        ([*map(str, TIMES[:69]), "later"], "'later' in row 69; expected a time"),
        (TIMES[:60], r"shape \(60,\); expected \(70,\)"),
        ("when", "no column 'when'"),
    ],
)
def test_times_that_cannot_be_used_are_refused(times, message):
    with pytest.raises(InputError, match=message):
        ChangePointDetector(random_state=0).fit(FLOW, times=times)


def test_frames_with_two_columns_of_times_or_nothing_else_are_refused():
    two = pd.DataFrame({"a": TIMES, "b": TIMES, "flow": FLOW})
    with pytest.raises(InputError, match=r"several columns of times, '?a'?, '?b'?;"):
        ChangePointDetector().fit(two)
    with pytest.raises(InputError, match="no column but 'a'"):
        ChangePointDetector().fit(two[["a"]])


def uneven(rng):
    return np.cumsum(rng.exponential(size=300))


def in_two_parts(rng):
    return np.r_[0:150, 200_000:200_150].astype("datetime64[s]")


def working_days(rng):
    return np.array([day for day in pd.bdate_range("2023-01-02", periods=300)], dtype="datetime64[us]")


def months(rng):
    return pd.date_range("1990-01-01", periods=300, freq="MS").to_numpy()


@pytest.mark.parametrize(
    ("times", "note"),
    [
        (uneven, "The times are uneven, "),
        (in_two_parts, "The times are uneven, 1 second to 2.31 days apart"),
        (working_days, "The times are uneven, 24 hours to 3 days apart"),
        (months, ""),
    ],
)
def test_uneven_times_are_said_and_months_are_steps(times, note):
    rng = np.random.default_rng(0)
    series = np.repeat([0.0, 3.0], 150) + rng.normal(size=300)
    result = ChangePointDetector(random_state=0).fit(series, times=times(rng)).result_
    assert result.change_points.tolist() == ChangePointDetector(random_state=0).fit_predict(series).tolist()
    assert result.spacing.startswith(note)
    assert bool(result.spacing) == bool(note)


@pytest.mark.parametrize("how", ["cells", "rows"])
def test_an_interval_that_ends_in_a_gap_holds_all_of_it(how):
    """The change is in a gap of 40 steps, of missing cells or of missing rows."""
    for seed in range(3):
        series = np.repeat([0.0, 5.0], 150) + np.random.default_rng(seed).normal(size=300)
        times = np.arange(300) * 0.5
        if how == "cells":
            series[130:170] = np.nan
            found = ChangePointDetector(random_state=0).fit(series, times=times)
            low, high = found.intervals_[0]
        else:
            known = np.r_[:130, 170:300]
            found = ChangePointDetector(random_state=0).fit(series[known], times=times[known])
            low, high = np.append(known, 300)[found.intervals_[0] - [1, 0]] + [1, 0]
            note = (
                "40 of 300 steps of 0.5 have no row and are taken as gaps; the longest gap is of 40 steps, after 64.5."
            )
            assert found.result_.spacing == note
        assert low <= 131
        assert high >= 170
        assert len(found.change_points_) == 1
        assert high - low < 60


def test_missing_rows_do_not_shorten_a_season():
    """A twelfth of the rows and some cells are missing in three weeks of hours: the step is found as in the complete series."""
    rng = np.random.default_rng(3)
    hours = np.arange(500)
    series = 6.0 * np.sin(2.0 * np.pi * hours / 24.0) + rng.normal(size=500) + 2.5 * (hours >= 300)
    series[rng.choice(500, 15, replace=False)] = np.nan
    known = np.sort(rng.choice(np.arange(1, 499), 460, replace=False))
    times = np.datetime64("2024-01-01T00", "us") + known * np.timedelta64(1, "h")
    found = ChangePointDetector(random_state=0).fit(series[known], times=times)
    (place,) = found.change_points_
    assert abs(known[place] - 300) <= 6


def dates_of(kind):
    day = pd.date_range("2024-01-01", periods=120, freq="D")
    return {
        "days as numbers": day.strftime("%Y%m%d").astype(int),
        "seconds since 1970": day.astype("datetime64[s]").astype("int64"),
        "hours": np.arange(120) * 0.25,
        "days of a spreadsheet, one missing": np.delete(np.arange(45292.0, 45413.0), 40),
        "months as text": [f"{2014 + i // 12}-{i % 12 + 1:02d}" for i in range(120)],
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["days as numbers", "seconds since 1970", "hours", "days of a spreadsheet, one missing", "months as text"],
)
def test_numbers_that_are_times_do_not_hide_a_change(kind):
    values = np.random.default_rng(3).normal(10, 1, 120)
    values[70:] += 3.0
    frame = pd.DataFrame({"date": np.asarray(dates_of(kind)), "v": values})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = ChangePointDetector(random_state=0).fit(frame).result_
    assert abs(result.change_points[0] - 70) <= 3
    assert len(result) == 1
    assert "time" in result.table()
    is_said = kind not in ("days as numbers", "months as text")
    assert any("'date' rises from row to row by equal steps" in str(each.message) for each in said) == is_said


@pytest.mark.parametrize("step", ["1ns", "250ns", "1500ns", "999us"])
def test_times_closer_than_a_microsecond_are_kept(step, tmp_path):
    rng = np.random.default_rng(1)
    times = pd.date_range("2024-01-01", periods=90, freq=step)
    series = pd.Series(np.r_[rng.normal(size=50), rng.normal(4.0, 1.0, 40)], times)
    result = ChangePointDetector(random_state=0).fit(series).result_
    assert result.table()["time"].tolist() == [times[50]]
    text = str(times[50])
    assert text.rstrip("0") in result.text()
    assert text.rstrip("0") in result.to_dict()["table"][0]["time"].replace("T", " ")
    result.report(tmp_path / "page.html")


def test_an_hour_that_a_clock_repeats_is_named():
    """Offsets or a zone are needed; one row of each time would lose an hour."""
    times = pd.date_range("2023-10-27", "2023-10-31", freq="h", tz="Europe/Berlin").tz_localize(None)
    values = np.random.default_rng(0).normal(size=len(times))
    with pytest.raises(InputError, match=r"02:00.* in row 51 is not later .*clock was set back.*offsets") as caught:
        ChangePointDetector().fit(pd.Series(values, times))
    assert "keep one row" not in str(caught.value)
    with pytest.raises(InputError, match="clock was set back"):
        ChangePointDetector().fit(values, times=[str(time) for time in times])
    plain = pd.date_range("2026-03-14", periods=len(times) - 1, freq="h")
    with pytest.raises(InputError, match="a time occurs twice: keep one row for each time"):
        ChangePointDetector().fit(pd.Series(values, plain[:12].append(plain[11:])))
    half_hours = pd.date_range("2024-01-01", periods=len(times), freq="30min")
    with pytest.raises(InputError, match="sort the rows"):
        ChangePointDetector().fit(pd.Series(values, half_hours[::-1]))


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", None])
def test_times_of_a_column_are_shown_in_their_zone_and_days_without_midnight(zone):
    values = np.random.default_rng(1).normal(size=90) + 4.0 * (np.arange(90) >= 50)
    times = pd.date_range("2024-02-01", periods=90, freq="D" if zone is None else "h", tz=zone)
    found = ChangePointDetector(random_state=0).fit(pd.DataFrame({"when": times, "value": values})).result_
    words = {"America/New_York": "2024-02-03 02:00:00-05:00", "UTC": "2024-02-03 02:00:00+00:00", None: "2024-03-22"}[
        zone
    ]
    assert f"(level, {words})" in found.text()


def test_times_of_a_zone_that_another_machine_does_not_know_are_not_shown_in_another_one():
    assert str(in_zone(TIMES[:1], "-3600")[0]) == "2023-12-31 23:00:00-01:00"
    with pytest.raises(InputError, match="'Nowhere/Else', which this machine does not know; install tzdata"):
        in_zone(TIMES[:1], "Nowhere/Else")


def test_two_weeks_of_a_calendar_are_enough_to_know_weekends():
    rng, n = np.random.default_rng(2), 2 * 7 * 24
    hour = np.arange(n)
    level = (2.0 + np.sin((hour % 24 - 6) / 12.0 * np.pi)) * np.where(hour // 24 % 7 >= 5, 0.6, 1.0)
    series = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=n, freq="h")})
    series["errors"] = level * np.exp(0.08 * rng.normal(size=n))
    assert len(ChangePointDetector(random_state=0).fit(series).result_) == 0
    step = int(0.7 * n)
    series.loc[step:, "errors"] *= 1.6
    found = ChangePointDetector(random_state=0).fit(series).result_.change_points
    assert len(found) == 1
    assert abs(found[0] - step) <= 1
