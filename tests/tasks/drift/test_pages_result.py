"""Pages of a monitor in words, tables and pictures: of pages made by hand, so that no monitor is fitted."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from isopleth.tasks.drift.page import Page, PageEvent
from isopleth.tasks.drift.pages_result import DriftPages, _merged, joined_pages
from isopleth.tasks.drift.stream_rows import StreamRows
from isopleth.tasks.drift.stream_times import Absence, LateRow

NAMES = ("requests", "errors", "queue")
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()


def page(row, start, closed=-1, kind="level", columns=(0,), direction=1, **known):
    return Page(row, start, kind, columns, direction, row, closed, **known)


def pages(*found, first_row=0, n_rows=100, **about):
    return DriftPages(first_row, n_rows, found, NAMES, per_day=24, **about)


def stream(n, first=0, seconds=np.nan):
    """Rows whose cells are their numbers, so that pictures can be compared with them."""
    cells = np.arange(first, first + n)[:, None] + np.array([0.0, 0.25, 0.5])
    return StreamRows(np.zeros((n, 3)), cells, cells - 10.0, np.full(n, seconds))


def table(found):
    """Columns of the table of pages."""
    rows = found.to_dict()["table"]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize(
    ("direction", "usual", "observed", "said"),
    [
        (1, 2.0, 4.2, "requests is higher: 4.2 where 2 is usual (2.1 times), since row 5"),
        (1, 2.0, 3.0, "(1.5 times)"),
        (1, 2.0, 2.98, "(49 % more)"),
        (-1, 2.0, 1.0, "requests is lower: 1 where 2 is usual (50 % less), since row 5"),
        (1, 2.0, 19.9, "(9.9 times)"),
        (1, 2.0, 20.0, "(10 times)"),
        (1, 2.0, 2468.0, "2,468 where 2 is usual (1,234 times)"),
        (1, 999.4, 1000.0, "1,000 where 999 is usual, since"),  # less than half a per cent is not told
        (1, 100.0, 100.6, "(1 % more)"),
        (-1, 2.0, 4.2, "requests is lower, since"),  # middles of all rows that go the other way are not told
        (1, np.nan, 4.2, "requests is higher, since"),
        (1, 2.0, np.nan, "requests is higher, since"),
    ],
)
def test_a_level_is_told_with_what_was_observed_and_usual(direction, usual, observed, said):
    one = page(9, 5, direction=direction, usual=usual, observed=observed, times=observed / usual)
    assert said in pages(one).words(one)


def test_each_kind_is_told_in_its_own_words():
    said = pages().words
    both = page(9, 5, kind="together", columns=(0, 2), usual=0.81, observed=-0.123)
    assert (
        said(both) == "requests and queue go together differently: a correlation of -0.12 in place of 0.81, since row 5"
    )
    incident = page(9, 5, kind="incident", usual=2.0, observed=8.0, times=4.0)
    assert "is far above what is usual for some rows: up to 8 where 2 is usual (4.0 times)" in said(incident)
    assert "far below what is usual for some rows: down to 1" in said(replace(incident, direction=-1, observed=1.0))
    given = page(9, 5, kind="given", usual=2.0, observed=1.0, size=-2.34, times=0.5)
    assert "other columns: 1 where 2 is usual (50 % less), by 2.3 deviations from what the other" in said(given)
    contrary = page(9, 5, usual=2.0, observed=1.0, size=2.34)
    assert "requests is higher: by 2.3 deviations of its context, since" in said(contrary)
    assert "requests is higher, since" in said(replace(contrary, size=-2.34))
    sums = page(9, 5, usual=0.5, observed=1.25, of_rows=20, times=2.5)
    assert "higher: 25 in 20 rows where 10 are usual (2.5 times)" in said(sums)
    assert "higher: 25 in 20 rows where 10 are usual, since" in said(replace(sums, times=np.nan))
    assert "higher: 1.25 where 0.5 is usual" in said(replace(sums, of_rows=10_001))
    assert "higher: 12,500 in 10,000 rows where 5,000" in said(replace(sums, of_rows=10_000))


def test_a_spread_is_told_by_its_size_or_without_one():
    one = page(9, 5, kind="spread", size=1.04)
    said = pages().words
    assert "requests is more spread: deviations 4 % larger than usual, since" in said(one)
    assert "spread: 2.1 times the usual deviations" in said(replace(one, size=2.1))
    assert "spread: 1.5 times the usual deviations" in said(replace(one, size=1.5))
    assert "less spread: deviations 60 % smaller" in said(replace(one, size=0.4, direction=-1))
    assert "is more spread, since" in said(replace(one, size=1.001))
    of_counts = replace(one, size=np.nan, of_rows=4, observed=2.0, usual=1.0)
    assert "is more spread: 8 in 4 rows where 4 are usual, since" in said(of_counts)


def test_a_page_says_until_when_and_what_else_showed():
    said = pages().words
    assert said(page(9, 5, 40, until=30, also=(1, 2))) == (
        "requests is higher, since row 5; as usual again since row 30; also seen in errors and queue"
    )
    assert said(page(9, 5, 40, until=0, turned=0)) == "requests is higher, since row 5, until row 0, when it turned"
    for unknown in (page(9, 5, 40), page(9, 5, until=30)):
        assert said(unknown) == "requests is higher, since row 5"


def test_numbers_of_rows_are_those_counted_from_where_they_are_told():
    """From row 0 in Python and from row 1 in the shell; what did not happen stays -1."""
    found = page(9, 5, 40, until=30), page(60, 0, 90), page(70, 66)
    stream_rows = LateRow(8, NOON, NOON), Absence(20, NOON + 7200.0, NOON)
    zero, one = (
        pages(*found, counted_from=k, late=stream_rows[:1], absent=stream_rows[1:], stream=stream(100)) for k in (0, 1)
    )
    for name in ("row", "since", "until", "closed"):
        column, later = table(zero)[name], table(one)[name]
        np.testing.assert_array_equal(later, np.where(column >= 0, column + 1, -1))
    assert table(zero)["until"].tolist() == [30, -1, -1]
    assert table(zero)["closed"].tolist() == [40, 90, -1]
    for name in ("first_row", "late_rows", "rows_after_absence"):
        early, late = (np.array(each.to_dict()[name]) for each in (zero, one))
        np.testing.assert_array_equal(late, early + 1)
    assert zero.at(7, np.nan) == "row 7"
    assert one.at(7, np.nan) == "row 8"
    assert one.absence_words(stream_rows[1]) == "no rows for 2 hours, since row 20 (2026-07-01 12:00)"
    assert zero.absence_words(stream_rows[1]) == "no rows for 2 hours, since row 19 (2026-07-01 12:00)"


def test_times_are_those_of_the_clock_that_is_named():
    assert pages().time_text(NOON) == "2026-07-01 12:00"
    assert pages(zone="Europe/Berlin").time_text(NOON) == "2026-07-01 14:00"
    assert pages(zone="+05:30").time_text(NOON) == "2026-07-01 17:30+05:30"
    assert pages().time_text(np.nan) == ""


def test_pages_of_a_part_are_those_opened_in_it_or_closed_in_it():
    before, within, later = page(40, 30, 49), page(49, 45, 50), page(50, 48)
    part = pages(before, within, later, first_row=50, n_rows=10)
    assert part.opened == [later]
    assert part.closed == [within]
    assert part.open == [later]
    assert (list(part), len(part), bool(part)) == ([50], 1, True)
    said = part.to_dict()["summary"]
    assert said[0] == "1 page in 10 rows of the stream:"
    assert said[1].startswith("Row 50: requests is higher")
    assert said[2].startswith("Closed at row 50: requests is higher, since row 45")
    turned = pages(replace(within, turned=3), first_row=50).to_dict()["summary"]
    assert turned[0].startswith("No page: in 100 rows")
    assert turned[1].startswith("Turned at row 50")
    assert table(part)["turned"].tolist() == [0, 0, 0]


def test_the_longest_absences_are_told_in_the_order_of_the_stream():
    lengths = [5.0, 1.0, 9.0, 2.0, 7.0]
    absent = tuple(Absence(10 * k, NOON + 3600.0 * length, NOON) for k, length in enumerate(lengths, 1))

    def said(count):
        return pages(absent=absent[:count]).to_dict()["summary"][1:]

    assert [each.partition(" (")[0] for each in said(5)[:3]] == ["Row 10", "Row 30", "Row 50"]
    assert said(5)[3] == "There were 2 shorter absences besides."
    assert said(4)[3] == "There was 1 shorter absence besides."
    assert len(said(3)) == 3


@pytest.mark.parametrize(
    ("found", "n_rows", "said"),
    [
        ([page(52, 50)], 100, None),  # two days of 24 rows and no row more
        ([page(51, 40)], 100, "1 page has been open for more than two days: .* from row 40 on, 3 days by now"),
        ([page(10, 4), page(51, 40)], 160, "2 pages have been open .* from row 40 on, 5 days by now"),
        ([page(10, 4), page(51, 40, 90)], 160, "1 page has been open .* from row 4 on, 6 days by now"),
        ([page(10, 4, kind="incident")], 160, None),
    ],
)
def test_pages_that_stay_open_for_more_than_two_days_ask_for_a_new_reference(found, n_rows, said):
    words = " ".join(pages(*found, n_rows=n_rows).to_dict()["summary"])
    assert re.search(said, words) if said else "two days" not in words


def test_parts_of_a_stream_joined_are_the_whole():
    found = page(9, 5, 40), page(60, 55)
    events = [
        PageEvent(row, event, number, found[number]) for row, event, number in ((9, "opened", 0), (40, "closed", 0))
    ]
    late, absent = [LateRow(row, NOON, NOON) for row in (3, 70)], [Absence(row, NOON, NOON) for row in (4, 80)]
    rows = stream(100)

    def part(start, end):
        def inside(each):
            return tuple(one for one in each if start <= one.row < end)

        cut = StreamRows(*(column[start:end] for column in vars(rows).values()))
        now = tuple(replace(one, closed=one.closed if one.closed < end else -1) for one in inside(found))
        known = tuple(one for one in found if one.row < start) + now
        about = {name: inside(each) for name, each in (("events", events), ("late", late), ("absent", absent))}
        return pages(*known, first_row=start, n_rows=end - start, stream=cut, **about)

    joined = joined_pages([part(*ends) for ends in ((0, 8), (8, 9), (9, 50), (50, 100))])
    whole = part(0, 100)
    for name in ("first_row", "n_rows", "events", "late", "absent", "opened", "closed"):
        left, right = getattr(joined, name), getattr(whole, name)
        assert (
            [vars(each) for each in left] == [vars(each) for each in right]
            if name in ("opened", "closed")
            else left == right
        )
    np.testing.assert_array_equal(joined.stream.cells, rows.cells)
    without = replace(part(0, 50), stream=None)
    np.testing.assert_array_equal(joined_pages([without, part(50, 100)]).stream.cells, rows.cells[50:])
    np.testing.assert_array_equal(
        joined_pages([part(0, 50), replace(part(50, 100), stream=None)]).stream.cells, rows.cells[:50]
    )
    assert joined_pages([without, replace(without, first_row=50)]).stream is None


@pytest.mark.parametrize("seed", range(20))
def test_bands_that_touch_or_overlap_are_merged(seed):
    rng = np.random.default_rng(seed)
    bands = [tuple(sorted(rng.integers(0, 40, 2).tolist())) for _ in range(rng.integers(1, 9))]
    merged = _merged(bands)
    # Twice as fine, so that bands which meet in a point are one.
    inside = {x for low, high in bands for x in range(2 * low, 2 * high + 1)}
    assert {x for low, high in merged for x in range(2 * low, 2 * high + 1)} == inside
    assert all(high < low for (_, high), (low, _) in pairwise(merged))


def test_a_picture_shows_the_last_rows_and_shades_what_had_changed():
    found = (
        page(9, 5, 40, until=30),
        page(75, 70, 85),
        page(95, 93),
        page(94, 92, 97, until=96, columns=(1,), also=(2,)),
    )
    last = pages(*found, stream=stream(40, 60), counted_from=1)
    charts = last._charts()
    assert [chart.title for chart in charts] == ["requests: 3 pages", "errors: 1 page", "queue: 1 page"]
    first = charts[0]
    assert first.bands == [(71.0, 86.0), (94.0, 100.0)]  # the first page had ended before
    assert first.lines == [(76.0, "level (row 76)"), (96.0, "level (row 96)")]
    observed, usual = first.series
    np.testing.assert_array_equal(observed.x, np.arange(61, 101))
    np.testing.assert_array_equal(observed.y, np.arange(60, 100))
    np.testing.assert_array_equal(usual.y, np.arange(50, 90))
    assert observed.notes[0] == "row 61: 60"
    assert first.times == ""
    assert charts[1].bands == charts[2].bands == [(93.0, 97.0)]
    still = pages(page(9, 5), stream=stream(40, 60))._charts()[0]
    assert (still.bands, still.lines) == ([(60.0, 99.0)], [])
    assert pages(*found)._charts() == []


def test_pictures_have_the_time_of_the_clock_where_times_rise():
    seconds = NOON + 60.0 * np.arange(40)
    timed = replace(stream(40, 60), seconds=seconds)
    for zone, ahead in ((None, 0.0), ("Europe/Berlin", 7200.0)):
        chart = pages(page(75, 70, 85), stream=timed, zone=zone)._charts()[0]
        assert chart.times == "x"
        np.testing.assert_allclose(chart.series[0].x, seconds + ahead)
        assert chart.bands == [(seconds[10] + ahead, seconds[25] + ahead)]
    for wrong in (seconds[::-1], np.where(np.arange(40) == 7, np.nan, seconds)):
        assert pages(page(75, 70), stream=replace(timed, seconds=wrong))._charts()[0].times == ""


def test_at_most_six_columns_are_drawn_those_with_pages_first():
    wide = np.zeros((5, 9))
    rows = StreamRows(wide, wide, wide, np.full(5, np.nan))
    names = tuple("abcdefghi")
    found = DriftPages(0, 5, (page(2, 1, columns=(8,), also=(4,)),), names, per_day=24, stream=rows)
    assert [chart.title[0] for chart in found._charts()] == ["i", "e", "a", "b", "c", "d"]
