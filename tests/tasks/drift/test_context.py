"""Streams that are judged in their context: pages of causes, and what they may not depend on."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from isopleth import DriftMonitor, InputError
from isopleth.core.errors import DataWarning
from isopleth.io import load, save

PER_DAY = 48


def stream(start, days, seed, rise=1.0):
    """Half hours of three columns with a day; the second column goes with the first."""
    rng, n = np.random.default_rng(seed), days * PER_DAY
    when = pd.date_range(start, periods=n, freq="30min")
    hour = np.asarray(when.hour + when.minute / 60.0)
    noise = rng.normal(size=(n, 3))
    noise[:, 1] = 0.6 * noise[:, 0] + 0.8 * noise[:, 1]
    level = np.sin(hour / 12.0 * np.pi) * np.where(np.asarray(when.day_of_week) < 5, 4.0, 2.0)
    rows = pd.DataFrame(rise * level[:, None] * [1.0, 0.5, 0.0] + noise, columns=["load", "requests", "errors"])
    return rows.assign(time=when)


REFERENCE = stream("2025-01-06", 21, 0)


@pytest.fixture(scope="module")
def fitted():
    return DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(REFERENCE)


@pytest.fixture
def monitor(fitted):
    fitted.state_ = fitted._watch.empty()
    return fitted


def test_a_step_has_one_page_that_names_its_column_and_its_time(monitor):
    rows = stream("2025-01-27", 8, 1)
    rows.loc[100:, "errors"] += 1.5
    pages = monitor.update(rows)
    assert len(pages) == 1
    page = pages.pages[0]
    assert (page.kind in ("level", "given"), page.columns, page.direction, page.closed) == (True, (2,), 1, -1)
    assert 100 < page.row < 148
    assert 94 <= page.start <= 106
    assert pages.to_dict()["table"][0]["time"] == str(rows["time"][page.start])[:16]
    assert "renew the reference with the rows from row" in " ".join(pages.to_dict()["summary"])
    assert 1.2 < page.observed - page.usual < 1.8
    assert 1.0 < page.size < 2.5
    assert pages.plot().axes


def test_sizes_are_in_the_units_of_the_columns_and_times_are_told_of_those_without_negative_cells(monitor):
    """Errors are twice what is usual; a temperature that crosses 0 has no ratio."""
    reference, rows = stream("2025-01-06", 14, 20), stream("2025-01-20", 6, 21)
    for part in (reference, rows):
        part["errors"] = np.exp(0.2 * part["errors"]) * 0.01
    rows.loc[100:, "errors"] *= 2.0
    rows.loc[200:, "load"] += 3.0
    own = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(reference)
    found = own.update(rows)
    errors = next(page for page in found.pages if page.columns == (2,))
    assert errors.times == pytest.approx(2.0, abs=0.3)
    assert errors.observed == pytest.approx(0.02, rel=0.15)
    assert "times)" in found.words(errors)
    load = next(page for page in found.pages if page.columns == (0,))
    assert np.isnan(load.times)


def test_an_incident_says_when_it_ended_and_one_that_goes_on_becomes_a_change(monitor):
    rows = stream("2025-01-27", 6, 22)
    rows.loc[100:104, "errors"] += 9.0
    pages = monitor.update(rows)
    first = next(page for page in pages.pages if page.row >= 100)
    assert (first.kind, first.until) == ("incident", 105)
    assert first.observed > 6.0
    events = [(event.event, event.row) for event in pages.events if event.page.row == first.row]
    assert [name for name, _ in events] == ["opened", "closed"]
    assert events[1][1] <= 105 + PER_DAY // 2
    monitor.state_ = monitor._watch.empty()
    rows.loc[100:, "errors"] += 9.0
    pages = monitor.update(rows)
    events = [event.event for event in pages.events if event.page.columns == (2,)]
    assert events[:2] == ["opened", "lasts"]
    page = next(page for page in pages.pages if page.columns == (2,))
    assert (page.kind, page.closed) == ("level", -1)


def test_small_counts_are_told_as_sums_whose_medians_do_not_change():
    """The median of errors is 0 before and after they are four times as frequent."""

    def counted(start, days, seed):
        rows = stream(start, days, seed)
        return rows.assign(errors=np.random.default_rng([seed, 4]).poisson(0.15, len(rows)))

    own = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(counted("2025-01-06", 21, 0))
    rows = counted("2025-01-27", 6, 1)
    rows.loc[60:, "errors"] += np.random.default_rng(2).poisson(0.45, len(rows) - 60)
    pages = own.update(rows)
    words = pages.words(pages.opened[0])
    found = re.match(
        r"errors is .*[:,] ([\d.]+) in (\d+) rows where ([\d.]+) are usual \(([\d.]+) times\), since", words
    )
    total, count, usual, times = map(float, found.groups())
    assert 2.5 < times < 6.0
    assert total / usual == pytest.approx(times, rel=0.1)
    assert 0.1 < usual / count < 0.2
    for page in pages.pages:
        assert (page.of_rows > 0) == (page.columns == (2,) and page.kind != "incident")


def test_numbers_that_contradict_a_direction_are_not_told(monitor):
    rows = stream("2025-01-27", 8, 1)
    rows.loc[100:, "errors"] += 1.5
    pages = monitor.update(rows)
    lower = replace(pages.pages[0], kind="level", observed=1.0, usual=2.0, times=0.5, size=0.4)
    assert pages.words(lower).startswith("errors is higher: by 0.4 deviations of its context, since")
    assert pages.words(replace(lower, size=-0.4)).startswith("errors is higher, since")


def test_one_row_far_out_is_an_incident_where_rows_are_rare(monitor):
    rows = stream("2025-01-27", 6, 2)
    rows.loc[150, "errors"] += 12.0
    found = [page for page in monitor.update(rows).pages if page.kind == "incident"]
    assert [(page.row, page.start, page.columns) for page in found] == [(150, 150, (2,))]


def test_a_level_that_turns_has_a_page_for_each_side(monitor):
    rows = stream("2025-01-27", 6, 2)
    rows.loc[60:, "errors"] += 2.5
    rows.loc[120:, "errors"] -= 5.0
    up, down = (page for page in monitor.update(rows).pages if page.columns == (2,))
    assert (up.direction, down.direction, down.closed) == (1, -1, -1)
    assert 118 <= up.until <= 122
    assert 118 <= down.start <= 122
    assert up.closed == down.row


def test_a_page_is_measured_in_the_units_of_its_own_column_where_others_join(monitor):
    rows = stream("2025-01-27", 6, 3)
    rows.loc[60:, "load"] += 2.0
    rows.loc[60:, "errors"] += 5.0
    page = monitor.update(rows).pages[0]
    assert page.also != ()
    assert abs(page.observed - page.usual - (5.0 if page.columns == (2,) else 2.0)) < 1.0


def test_what_ended_is_closed_and_armed_again(monitor):
    rows = stream("2025-01-27", 14, 2)
    rows.loc[100:200, "errors"] += 2.0
    rows.loc[500:600, "errors"] += 2.0
    pages = monitor.update(rows).pages
    assert [page.columns for page in pages if page.row - 100 < 60 or 0 < page.row - 500 < 60] == [(2,), (2,)]
    assert 200 < pages[0].closed < 420
    assert 195 <= pages[0].until <= 207  # the end is told as it was, though it is certain only later


@pytest.mark.parametrize(("kind", "columns"), [("spread", (0,)), ("together", (0, 1)), ("incident", (2,))])
def test_kinds_of_changes_are_named(monitor, kind, columns):
    rows = stream("2025-01-27", 6, 3)
    other = stream("2025-01-27", 6, 4)
    if kind == "spread":
        rows.loc[60:, "load"] += 2.0 * np.random.default_rng(5).normal(size=len(rows) - 60)
        rows.loc[60:, "requests"] = other.loc[60:, "requests"]
    if kind == "together":
        rows.loc[60:, "requests"] -= 1.5 * (rows.loc[60:, "load"] - other.loc[60:, "load"]) * 0.6
    if kind == "incident":
        rows.loc[60:63, "errors"] += 9.0
    first = next(page for page in monitor.update(rows).pages if page.row >= 60)
    assert first.kind == kind or kind == "spread"
    assert set(first.columns) & set(columns)


def test_rows_cut_in_any_way_and_saved_monitors_give_the_same_bits(monitor, tmp_path):
    rows = stream("2025-01-27", 5, 6)
    rows.loc[80:, "load"] += 2.0
    save(monitor, tmp_path / "monitor.isopleth")
    other = load(tmp_path / "monitor.isopleth")
    once = monitor.update(rows)
    for part in (rows[:1], rows[1:97], rows[97:]):
        again = other.update(part[["errors", "time", "load", "requests"]])
        save(other, tmp_path / "monitor.isopleth")
        other = load(tmp_path / "monitor.isopleth")
    assert repr(again.pages) == repr(once.pages)
    np.testing.assert_array_equal(other.state_.evidence.sums, monitor.state_.evidence.sums)
    assert other.has_reference(REFERENCE)
    assert not other.has_reference(rows)


def test_false_pages_are_as_rare_as_asked():
    """28 days are asked for; four streams of 28 days with references of their own."""
    pages = 0
    for seed in range(4):
        own = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(stream("2025-01-06", 14, [seed, 1]))
        pages += len(own.update(stream("2025-01-20", 28, [seed, 2])))
    assert pages <= 11  # Poisson of mean 4: one in 1,000


def test_running_totals_are_left_out_since_all_later_rows_are_beyond_the_reference():
    """A counter of requests had a page from the first rows of any stream on, without a word about what it is."""
    first, second = stream("2025-01-06", 14, 5), stream("2025-01-20", 7, 6)
    counts = np.random.default_rng(7).poisson(40.0, len(first) + len(second))
    total = 1000 + np.cumsum(counts)
    plain = DriftMonitor(context="time").fit(first)
    with pytest.warns(DataWarning, match=r"'requests_total' is a running total.*it is left out; give its increments"):
        watching = DriftMonitor(context="time").fit(first.assign(requests_total=total[: len(first)]))
    with_total = second.assign(requests_total=total[len(first) :])
    assert watching.update(with_total).to_dict()["table"] == plain.update(second).to_dict()["table"]
    alone = first[["time"]].assign(requests_total=total[: len(first)])
    with pytest.warns(DataWarning, match="give its increments to watch them"):
        DriftMonitor(context="time").fit(alone)


def test_a_holiday_that_is_named_is_no_incident():
    holiday = np.array(["no", "yes"])
    reference, later = stream("2025-01-06", 28, 7), stream("2025-02-03", 7, 8)
    for rows in (reference, later):
        day = rows["time"].dt.dayofyear % 7 == 3
        rows["holiday"] = holiday[day.astype(int)]
        rows.loc[day, "errors"] += 8.0
    named = DriftMonitor(context=["hour", "holiday"], expected_run_length=28 * PER_DAY).fit(reference)
    assert len(named.update(later)) <= 1
    assert len(named.update(later.assign(holiday="no"))) >= 1


def test_a_new_reference_closes_the_pages(monitor):
    rows = stream("2025-01-27", 5, 9)
    rows["errors"] += 3.0
    assert len(monitor.update(rows)) >= 1
    moved = stream("2025-01-27", 14, 10)
    moved["errors"] += 3.0
    own = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(REFERENCE)
    own.update(rows)
    own.update_reference(moved)
    assert own.state_.n_rows == len(rows)
    assert all(page.closed >= 0 for page in own.state_.pages)
    later = stream("2025-02-10", 3, 11)
    later["errors"] += 3.0
    assert len(own.update(later)) <= 1


def test_pages_after_a_new_reference_are_those_of_a_monitor_that_begins_with_it():
    """A change of the first row began in it, and not in row 0 of the stream, whose time is not kept."""
    reference, rows = stream("2025-01-27", 14, 12), stream("2025-02-10", 3, 13)
    rows["errors"] += 1.0
    fresh = DriftMonitor(context="time", expected_run_length=14 * PER_DAY).fit(reference)
    renewed = DriftMonitor(context="time", expected_run_length=14 * PER_DAY).fit(REFERENCE)
    renewed.update(stream("2025-01-27", 4, 14))
    renewed.update_reference(reference)
    before = renewed.state_.n_rows
    pages = [page for page in renewed.update(rows).pages if page.row >= before]
    expected = [(page.row + before, page.start + before, page.seconds) for page in fresh.update(rows).pages]
    assert expected
    assert [(page.row, page.start, page.seconds) for page in pages] == expected


@pytest.mark.parametrize(
    ("context", "change", "words"),
    [
        ("day", {}, "no column day"),
        (["load", "word"], {"word": "many"}, "'word' has more than 31 words; a context is a column of times"),
        (["load", "requests", "errors"], {}, "no column of numbers that vary is left"),
        (
            ["hour"],
            {"time": REFERENCE["time"].astype(str) + " h"},
            "taken from the one column of times, and there is none",
        ),
        ("time", {"word": "ab"}, "word holds words"),
    ],
)
def test_contexts_that_cannot_be_used(context, change, words):
    rows = REFERENCE.assign(**change)
    if "word" in change:
        rows["word"] = [f"word {k % (2 if change['word'] == 'ab' else 40)}" for k in range(len(rows))]
    if "time" in change:
        rows = rows.drop(columns="time")
    with pytest.raises(InputError, match=words):
        DriftMonitor(context=context).fit(rows)


def test_a_number_is_a_context_whose_rows_are_compared_with_those_of_about_the_same_number():
    """Latency follows the load in a curve: a busy day is no incident, and 4 deviations more at a low load are one."""

    def served(start, days, seed, busy=1.0):
        rows = stream(start, days, seed)
        rng = np.random.default_rng([seed, 3])
        load = busy * rng.uniform(10.0, 60.0, len(rows))
        latency = 50.0 + (load / 20.0) ** 3 + rng.normal(size=len(rows))
        return pd.DataFrame({"time": rows["time"], "load": load, "latency": latency})

    reference, later = served("2025-01-06", 21, 10), served("2025-01-27", 6, 11)
    later.loc[96:143, "load"] = 40.0 + (later.loc[96:143, "load"] - 10.0) / 3.0  # a busy day
    noise = np.random.default_rng(1).normal(size=48)
    later.loc[96:143, "latency"] = 50.0 + (later.loc[96:143, "load"] / 20.0) ** 3 + noise
    by_clock = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(reference.drop(columns="load"))
    assert len(by_clock.update(later[:192].drop(columns="load"))) >= 1
    later.loc[200:, "latency"] += np.where(later.loc[200:, "load"] < 30.0, 4.0, 0.0)
    by_load = DriftMonitor(context=["hour", "load"], expected_run_length=28 * PER_DAY).fit(reference)
    pages = by_load.update(later).pages
    assert 200 <= pages[0].row < 230
    assert by_load._watch.columns.names == ("latency",)


def test_several_numbers_and_words_are_a_context():
    """Latency follows load, temperature and a word of 12 sites, which times the weekdays would be 84 kinds of rows."""

    def served(start, days, seed):
        rows = stream(start, days, seed)[["time", "errors"]].rename(columns={"errors": "latency"})
        rng = np.random.default_rng([seed, 3])
        rows["load"] = rng.uniform(10.0, 60.0, len(rows))
        rows["temperature"] = np.repeat(rng.normal(15.0, 4.0, days), PER_DAY) + rng.normal(size=len(rows))
        site = rng.integers(12, size=len(rows))
        rows["site"] = np.array(list("abcdefghijkl"))[site]
        rows["latency"] += 50.0 + (rows["load"] / 20.0) ** 3 + 0.8 * rows["temperature"] + 3.0 * site
        return rows

    asked = ["load", "temperature", "site", "time"]
    own = DriftMonitor(context=asked, expected_run_length=28 * PER_DAY).fit(served("2025-01-06", 21, 10))
    later, begin = served("2025-01-27", 6, 11), own.state_
    assert len(own.update(later)) <= 1
    own.state_ = begin
    later.loc[100:, "latency"] += 2.5
    later.loc[120, "load"] = np.nan  # says nothing
    page = next(page for page in own.update(later).pages if page.row >= 100)
    assert page.columns == (0,)
    assert 98 <= page.start <= 104
    assert 1.5 < page.observed - page.usual < 3.5
    whole = own.state_
    own.state_ = begin
    for part in (later[:1], later[1:77], later[77:]):
        own.update(part[["site", "time", "load", "latency", "temperature"]])
    np.testing.assert_array_equal(own.state_.evidence.sums, whole.evidence.sums)
    with pytest.raises(InputError, match="ask for a reference of 120 rows, and this one has 110; give more rows"):
        DriftMonitor(context=asked, expected_run_length=1000).fit(served("2025-01-06", 3, 10)[:110])


def test_times_are_told_where_the_clock_is_no_context():
    rows = stream("2025-01-06", 21, 10)
    own = DriftMonitor(context="load", timezone="Europe/Berlin", expected_run_length=28 * PER_DAY).fit(rows)
    later = stream("2025-01-27", 3, 11)
    later.loc[60:, "errors"] += 3.0
    pages = own.update(later)
    page = pages.opened[0]
    assert pages.time_text(page.seconds) == str(later["time"][page.start] + pd.Timedelta(hours=1))[:16]
    assert not own._watch.columns.clock


def test_windows_and_contexts_exclude_each_other_and_short_references_are_refused(fitted):
    with pytest.raises(InputError, match="leave out window"):
        DriftMonitor(window=20, context="time").fit(REFERENCE)
    with pytest.raises(InputError, match="48 rows of 1 day; give 3 days"):
        DriftMonitor(context="time").fit(REFERENCE[:PER_DAY])
    fitted.state_ = replace(fitted._watch.empty(), key=1)
    with pytest.raises(InputError, match="state_ is not of this monitor"):
        fitted.update(REFERENCE[:3])


def test_hours_are_those_of_the_zone_also_where_its_clock_is_set_back():
    """The week before 30 March 2025 Berlin was an hour ahead of UTC, then two; in October the clock was set back."""
    when = pd.date_range("2025-03-20", "2025-04-10", freq="30min", inclusive="left")
    noise = np.random.default_rng(0).normal(size=len(when))
    fitted = []
    for zone, given in (
        ("Europe/Berlin", when),
        (None, when.tz_localize("UTC").tz_convert("Europe/Berlin")),
        (None, when),
    ):
        rows = pd.DataFrame({"x": noise, "time": given})
        fitted.append(DriftMonitor(context="time", timezone=zone, expected_run_length=1000).fit(rows)._watch.columns)
    local, aware, plain = fitted
    instants = pd.to_datetime(
        ["2025-03-29 12:00", "2025-03-31 12:00", "2025-10-26 00:30", "2025-10-26 01:30"]
    ).to_series()
    rows = np.zeros((4, 2))
    rows[:, local.time] = (instants - pd.Timestamp(0)).dt.total_seconds() - local.origin
    assert local.of_rows(rows).hour.tolist() == [13.0, 14.0, 2.5, 2.5]
    assert aware.of_rows(rows).hour.tolist() == [13.0, 14.0, 2.5, 2.5]
    assert plain.of_rows(rows).hour.tolist() == [12.0, 12.0, 0.5, 1.5]
    with pytest.raises(InputError, match="timezone = 'Berlin': expected the name of a time zone"):
        DriftMonitor(context="time", timezone="Berlin").fit(REFERENCE)
    with pytest.raises(InputError, match="timezone is for the hours of a context"):
        DriftMonitor(timezone="Europe/Berlin").fit(REFERENCE)


def test_clocks_that_were_set_are_named_once_where_pages_follow():
    """Of times in UTC without offsets nothing said why each day had pages at the same hours since 30 March."""
    own = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(stream("2025-03-03", 21, 29, rise=2.0))
    before, after = stream("2025-03-28", 2, 30, rise=2.0), stream("2025-03-30", 14, 31, rise=2.0)
    after["time"] -= pd.Timedelta(hours=1)  # the rows follow a clock that is an hour ahead since then
    said = []
    for rows in (before, *(after[first : first + PER_DAY] for first in range(2, len(after), PER_DAY))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            own.update(rows)
        said += [str(each.message) for each in caught]
    assert len(said) == 1
    assert "pages have opened since 2025-03-30, when clocks were set in Europe, and times have no offsets" in said[0]
    assert "name the zone whose clock the rows follow" in said[0]


def test_windows_of_rows_with_a_day_are_advised_to_judge_rows_in_their_context():
    """More rows or a shorter window would not tell a change from the time of day."""
    with pytest.warns(match="columns left out"), pytest.raises(InputError, match="depend on the time of day") as error:
        DriftMonitor(random_state=0).fit(stream("2025-01-06", 8, 0))
    assert "`context=['hour', 'weekday']`, with two weeks of rows" in str(error.value)
    assert "give" not in str(error.value)


def test_an_incident_is_found_at_the_hour_at_which_the_level_rises_fastest():
    rows = stream("2025-01-27", 4, 3)
    steep = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(REFERENCE)
    noon = 2 * PER_DAY + 24
    rows.loc[noon : noon + 3, "load"] += 8.0
    found = [page for page in steep.update(rows).opened if page.kind == "incident"]
    assert [page.columns for page in found if 0 <= page.row - noon < 6] == [(0,)]


def test_a_gap_of_a_day_is_no_change_and_hides_none_after_it(monitor):
    rows = stream("2025-01-27", 14, 5)
    gap = slice(100, 100 + PER_DAY)
    rows.iloc[gap, [0, 2]] = np.nan
    assert [page for page in monitor.update(rows).pages if 100 <= page.row <= 100 + 2 * PER_DAY] == []
    monitor.state_ = monitor._watch.empty()
    rows.loc[300:, "errors"] += 2.0
    pages = monitor.update(rows).pages
    found = [page for page in pages if 300 <= page.row < 330]
    assert [page.columns[0] for page in found] == [2]


def test_a_level_that_turns_is_not_told_as_usual(monitor):
    """The page of the other side takes its place: "closed" would say that the service is well again."""
    rows = stream("2025-01-27", 6, 2)
    rows.loc[60:, "errors"] += 2.5
    rows.loc[120:, "errors"] -= 5.0
    pages = monitor.update(rows)
    up, down = (page for page in pages.pages if page.columns == (2,))
    assert [event.event for event in pages.events if event.number == up.number] == ["opened", "turned"]
    assert (up.turned, down.turned, up.closed) == (down.number, -1, down.row)
    assert f", until row {up.until} (2025-01-29 " in pages.words(up)
    assert "as usual" not in pages.words(up)
    assert pages.to_dict()["table"][up.number]["turned"] == down.number + 1


def test_a_weak_change_that_goes_on_stays_open(monitor):
    """It gives no evidence of a page for longer than it took to find."""
    rows = stream("2025-01-27", 42, 31)
    rows.loc[10:, "errors"] += 0.45
    found = [page for page in monitor.update(rows).pages if 2 in page.columns and page.kind in ("level", "given")]
    assert [page.closed for page in found] == [-1]


def test_a_page_says_when_it_was_opened_and_closed(monitor):
    rows = stream("2025-01-27", 9, 3)
    rows.loc[60:150, "errors"] += 2.0
    pages = monitor.update(rows)
    page = next(page for page in pages.pages if page.columns == (2,))
    (row,) = (each for each in pages.to_dict()["table"] if each["row"] == page.row)
    assert (row["row_time"], row["closed_time"]) == tuple(
        str(rows["time"][each])[:16] for each in (page.row, page.closed)
    )
    assert f"Row {page.row} ({row['row_time']}): errors is higher" in " ".join(pages.to_dict()["summary"])
    assert [pages.time_text(event.seconds) for event in pages.events if event.page.row == page.row] == [
        row["row_time"],
        row["closed_time"],
    ]


def test_small_changes_are_told_when_they_are_large_enough():
    """Of 30 % more nothing is told where 60 % are asked for; of twice as many from row 240 on it is, at once."""
    reference, rows = stream("2025-01-06", 14, 20), stream("2025-01-20", 10, 21)
    for part in (reference, rows):
        part["errors"] = np.exp(0.2 * part["errors"])
    rows.loc[40:, "errors"] *= 1.3
    rows.loc[240:, "errors"] *= 1.6
    asked = {"context": "time", "expected_run_length": 28 * PER_DAY}
    every = DriftMonitor(**asked).fit(reference).update(rows)
    assert min(page.row for page in every.pages if page.columns == (2,)) < 100
    large = DriftMonitor(**asked, min_effect=0.6).fit(reference)
    parts = [large.update(rows[:200]), large.update(rows[200:])]
    assert (len(parts[0]), large.state_.alarms) == (0, len(parts[1]))
    page = next(page for page in parts[1].pages if page.columns == (2,))
    assert page.times > 1.6
    assert 240 <= page.row <= 260
    assert abs(page.start - 240) < 12
    assert next(event.event for event in parts[1].events if event.number == page.number) == "opened"


def test_hours_are_those_of_the_offset_in_the_times():
    reference = stream("2025-01-06", 14, 20)
    plain = DriftMonitor(context="time").fit(reference)
    reference["time"] = reference["time"].dt.tz_localize("Etc/GMT-9").dt.tz_convert("+09:00")
    own = DriftMonitor(context="time").fit(reference)
    rows = stream("2025-01-20", 3, 21)
    rows.loc[60:, "errors"] += 6.0
    first = plain.update(rows).pages[0]
    pages = own.update(rows.assign(time=rows["time"].dt.tz_localize("+09:00")))
    assert (pages.pages[0].row, pages.pages[0].usual, pages.pages[0].size) == (first.row, first.usual, first.size)
    assert pages.time_text(pages.pages[0].seconds) == plain_time(first) + "+09:00"


def plain_time(page):
    return str(pd.Timestamp(page.seconds, unit="s"))[:16]


def five_minutes(start, days, seed):
    """Five minutes of two columns that depend on nothing."""
    rng, n = np.random.default_rng(seed), 288 * days
    when = pd.date_range(start, periods=n, freq="5min")
    return pd.DataFrame({"time": when, "latency": rng.normal(170.0, 20.0, n), "queue": rng.normal(40.0, 5.0, n)})


@pytest.mark.parametrize("wide", [1.7, 3.0])
def test_an_incident_closes_once_and_soon_and_what_began_with_it_has_a_page_when_it_goes_on(wide):
    rows = five_minutes("2026-03-16", 4, 1)
    rows.loc[400:405, "latency"] = 600.0
    rows.loc[400:500, "queue"] = 40.0 + (rows.loc[400:500, "queue"] - 40.0) * wide
    pages = DriftMonitor(context="time").fit(five_minutes("2026-03-02", 14, 0)).update(rows)
    closed = [(event.number, event.row, event.page.until) for event in pages.events if event.event == "closed"]
    assert len({number for number, _, _ in closed}) == len(closed)
    assert closed[0] == (0, 418, 406)
    spread = next(page for page in pages.pages if page.kind == "spread")
    assert (spread.columns, 400 <= spread.row <= 500, 480 < spread.until <= 510) == ((1,), True, True)
    assert spread.size > 1.2


def test_times_that_go_back_or_repeat_are_told_and_no_end_is_before_its_start(monitor):
    rows = stream("2025-01-27", 6, 3)
    rows.loc[100:, "errors"] += 2.5
    again = pd.concat([rows, stream("2025-01-27", 6, 4)], ignore_index=True)
    with pytest.warns(DataWarning, match=r"time of row 288, 2025-01-27 00:00, is not later than 2025-02-01 23:30"):
        pages = monitor.update(again)
    (late,) = pages.late
    assert (late.row, pages.to_dict()["late_rows"]) == (288, [288])
    assert "Times go back or repeat at 1 row, first at row 288" in " ".join(pages.to_dict()["summary"])
    assert pages.closed
    assert all(page.until_seconds >= page.seconds for page in pages.closed)
    assert pages.plot().axes


def test_a_stream_in_no_order_is_told_now_and_then_and_one_like_its_reference_is_not(monitor):
    rows = stream("2025-01-27", 2, 3)
    with pytest.warns(DataWarning) as caught:
        found = monitor.update(rows.iloc[np.arange(len(rows)) ^ 1])  # each other row is late
    assert (len(found.late), len(caught)) == (48, 6)
    twice = REFERENCE.loc[REFERENCE.index.repeat(2)]
    like = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(twice)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not like.update(rows.loc[rows.index.repeat(2)]).late


def test_times_of_a_stream_are_judged_alike_however_its_rows_are_divided(monitor):
    rows = stream("2025-01-27", 4, 3).drop(index=range(60, 90))
    rows = pd.concat([rows[:100], rows[80:]], ignore_index=True)
    with pytest.warns(DataWarning, match="row 100"):
        whole = monitor.update(rows)
    monitor.state_ = monitor._watch.empty()
    with pytest.warns(DataWarning, match="row 100"):
        parts = [monitor.update(rows[k : k + 7]) for k in range(0, len(rows), 7)]
    assert [(each.row, each.length) for each in whole.absent] == [(60, 31 * 1800.0)]
    for name in ("late", "absent"):
        assert getattr(whole, name) == tuple(each for part in parts for each in getattr(part, name))
    assert "Row 60 (2025-01-28 21:00): no rows for 15.5 hours, since row 59 (2025-01-28 05:30)." in whole.text()


def test_nights_without_rows_are_no_absence_where_the_reference_has_them():
    def days(start, count, seed):
        rows = stream(start, count, seed)
        return rows[rows["time"].dt.hour.between(8, 18)].reset_index(drop=True)

    monitor = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(days("2025-01-06", 21, 0))
    assert not monitor.update(days("2025-01-27", 5, 1)).absent
    assert len(monitor.update(days("2025-02-03", 5, 1)).absent) == 1


def test_a_leak_beside_a_step_is_told(monitor):
    """A deploy makes errors higher at once, and a load that begins to rise is first seen beside them."""
    rows = stream("2025-01-27", 10, 55)
    rows.loc[100:, "errors"] += 2.0
    rows.loc[98:, "load"] += 0.4 + 0.1 * np.arange(len(rows) - 98)
    pages = monitor.update(rows)
    step, own = pages.pages
    joins = next(event for event in pages.events if event.event == "joins")
    assert (step.columns, step.also, own.columns) == ((2,), (0,), (0,))
    assert (joins.number, joins.page.columns, joins.page.kind) == (step.number, (0,), "level")
    assert 100 < step.row < joins.row < 124
    assert joins.row < own.row < 196
    assert own.start == joins.page.start
    grown = [event for event in pages.events if event.event == "grows"]
    assert {event.number for event in grown} == {own.number}
    assert 1 <= len(grown) <= 3
    summary = " ".join(pages.to_dict()["summary"])
    assert "also: load is higher" in summary
    assert "grows: load is higher" in summary


def test_a_leak_that_begins_as_an_incident_beside_another_is_told(monitor):
    rows = stream("2025-01-27", 10, 40)
    rows.loc[100:, "load"] += 8.0
    rows.loc[100:, "errors"] += 8.0 + 0.2 * np.arange(len(rows) - 100)
    pages = monitor.update(rows)
    told = [(event.event, event.page.kind) for event in pages.events if event.page.columns == (2,)]
    assert told[:3] == [("joins", "incident"), ("joins", "level"), ("opened", "level")]
    assert [page.columns for page in pages.pages] == [(0,), (2,)]


def test_a_leak_alone_is_told_again_where_it_has_grown(monitor):
    rows = stream("2025-01-27", 14, 31)
    rows.loc[100:, "errors"] += 0.1 * np.arange(len(rows) - 100)
    pages = monitor.update(rows)
    assert len(pages) == 1
    sizes = [pages.events[0].page.size, *(event.page.size for event in pages.events if event.event == "grows")]
    assert 2 <= len(sizes) <= 4
    assert all(after >= 3.0 * before for before, after in pairwise(sizes))


def test_a_step_does_not_grow(monitor):
    for seed in range(8):
        monitor.state_ = monitor._watch.empty()
        rows = stream("2025-01-27", 14, [32, seed])
        rows.loc[100:, "errors"] += 1.0 + 0.5 * seed
        assert not {event.event for event in monitor.update(rows).events} & {"grows", "joins"}


def test_a_small_change_beside_a_large_one_is_not_told():
    parts = stream("2025-01-06", 14, 20), stream("2025-01-20", 8, 22)
    for part in parts:
        part[["load", "errors"]] = np.exp(0.05 * part[["load", "errors"]])
    reference, rows = parts
    rows.loc[100:, "errors"] *= 1.5
    rows.loc[100:, "load"] *= 1.1
    found = DriftMonitor(context="time", expected_run_length=28 * PER_DAY, min_effect=0.2).fit(reference).update(rows)
    assert {event.page.columns for event in found.events} == {(2,)}
    assert not any(page.also for page in found.pages)


def test_the_start_of_a_large_step_is_not_early(monitor):
    starts = []
    for seed in range(12):
        monitor.state_ = monitor._watch.empty()
        rows = stream("2025-01-27", 6, [33, seed])
        rows.loc[150:, "errors"] += 2.5
        starts += [page.start for page in monitor.update(rows).pages if page.columns == (2,) and page.row >= 150][:1]
    assert len(starts) == 12
    assert 147 <= np.mean(starts) <= 150
    assert np.median(starts) == 150
