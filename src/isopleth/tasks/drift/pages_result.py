"""Pages of a drift monitor that judges rows in their context: one page a cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timezone
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from isopleth.results.charts import Chart, Series, thinned
from isopleth.results.keys import Fact, Key
from isopleth.results.result import Result, ShownTable, shown
from isopleth.results.text import counted, in_words
from isopleth.tables.time_text import length_text
from isopleth.tables.zones import zone_of
from isopleth.tasks.drift.page import Page, PageEvent
from isopleth.tasks.drift.stream_rows import StreamRows
from isopleth.tasks.drift.stream_times import Absence, LateRow

_WORDS = {
    "level": ("higher", "lower"),
    "given": ("higher given the other columns", "lower given the other columns"),
    "spread": ("more spread", "less spread"),
    "together": ("go together differently", "go together differently"),
    "incident": ("far above what is usual for some rows", "far below what is usual for some rows"),
}
_VERBS = {
    "opened": "",
    "joins": "also: ",
    "lasts": "goes on: ",
    "grows": "grows: ",
    "turned": "turned: ",
    "closed": "closed: ",
}
# Columns that are drawn, and the last rows of a stream that pictures are made of.
_MOST_DRAWN, _MOST_ROWS = 6, 200_000
# Times without a row that are told in sentences, the longest ones.
_MOST_ABSENCES = 3
# Counts are told as totals of at most so many rows, and of more rows as means.
_MOST_SUMMED = 10_000
# Length of a time to the minute, without the offset of its clock.
_MINUTES = 16
# Ratios from here on are told as "2.1 times", smaller ones in per cent.
_FEW_TIMES = 1.5
# Smaller differences of a ratio from 1 would be told as 0 %.
_LEAST_SHARE = 0.005


_SIZE_KEYS = {
    "usual": "what is usual in the context, in the unit of the column (of small counts the mean a row); of two columns their "
    "correlation",
    "observed": "what was observed in its place",
    "times": "observed over usual, of columns without negative cells",
    "size": "of a level and an incident in deviations; given the other columns in deviations from what they let expect; of a "
    "spread the ratio to the usual one",
}
SIZES = tuple(_SIZE_KEYS)


@dataclass(frozen=True, eq=False, repr=False)
class DriftPages(Result):
    """Pages that a :class:`isopleth.DriftMonitor` with a `context` opened or closed in some rows of a stream: one a cause.

    It is true if a page was opened, its length is the number of these, and iteration gives the rows at which they were opened.

    Parameters
    ----------
    first_row : int
        Number of the first of these rows in the stream, counted from 0.
    n_rows : int
        Number of these rows.
    pages : tuple of Page
        All pages of the stream so far, the first one first. A page has the `row` at which it was opened, the row `start` since
        which there was evidence, and its time in `seconds`; its `number`; its `kind` ("level", "spread", "together" for two
        columns, "given" for a level given the other columns, "incident" for a few rows), `columns` (numbers among `names`), the
        `direction` (1 or -1), what was `observed` where what was `usual` in the context, `times` as much, the `size` of the
        change, columns in which the same cause showed `also`, the row at which it was `closed`, -1 while it is open, the first
        row `until` which it lasted, which is before that, and the number of the page that took its place if its level `turned`.
    names : tuple of str
        Names of the columns that are watched.
    per_day : int
        Usual number of rows a day.
    events : tuple of PageEvent
        What happened in these rows, in their order: the `row`, the `event` ("opened", "joins" for another column in which the
        cause shows, "lasts" for an incident that has become a change of the level, "grows" for a change that is three times as
        large as was last said, "turned" to the other side of what is usual, where another page takes its place, "closed"), the
        `number` of the page, counted from 0, the `page` as it was then, and the time of the row in `seconds`. Of "joins" the
        `page` is the change of the column that joins; of "grows" it is measured in the rows of the last day.
    zone : str, optional
        Time zone of the clock that times are shown by.
    stream : StreamRows, optional
        The rows as they were judged, for pictures.
    counted_from : int, default=0
        Number of the first row of the stream in tables, sentences and pages.
    late : tuple of LateRow
        Rows at which the times of the stream went back or stood still, though those of the reference do not: the `row`, its time
        in `seconds`, and the `latest` time before it.
    absent : tuple of Absence
        Times without a row that are longer than those of the reference: the `row` after it, its time in `seconds`, that of the
        row before, `before_seconds`, and the `length` between them.

    Examples
    --------
    >>> from isopleth.tasks.drift.page import Page
    >>> from isopleth.tasks.drift.pages_result import DriftPages
    >>> page = Page(120, 110, "level", (1,), 1, 120, usual=2.0, observed=4.2, times=2.1)
    >>> pages = DriftPages(100, 50, (page,), ("requests", "errors"), per_day=24)
    >>> list(pages), pages.words(pages.opened[0])
    ([120], 'errors is higher: 4.2 where 2 is usual (2.1 times), since row 110')
    """

    first_row: int
    n_rows: int
    pages: tuple[Page, ...]
    names: tuple[str, ...]
    per_day: int
    events: tuple[PageEvent, ...] = ()
    zone: str | None = None
    stream: StreamRows | None = None
    counted_from: int = 0
    late: tuple[LateRow, ...] = ()
    absent: tuple[Absence, ...] = ()

    kind = "drift_pages"
    title = "Drift of a stream in its context"

    @property
    def opened(self) -> list[Page]:
        """Pages that were opened in these rows."""
        return [page for page in self.pages if page.row >= self.first_row]

    @property
    def closed(self) -> list[Page]:
        """Pages that were closed in these rows: no more evidence had come for a day, or for three times as long as to find it."""
        return [page for page in self.pages if page.closed >= self.first_row]

    @property
    def open(self) -> list[Page]:
        """Pages that are still open."""
        return [page for page in self.pages if page.closed < 0]

    @property
    def rows(self) -> np.ndarray:
        """Row numbers in the stream at which pages were opened."""
        return np.array([page.row for page in self.opened], dtype=np.intp)

    def __len__(self) -> int:
        return len(self.opened)

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows.tolist())

    def __repr__(self) -> str:
        return (
            f"DriftPages({counted(len(self), 'page')} in rows {self.first_row} to {self.first_row + self.n_rows - 1})"
        )

    def time_text(self, seconds: float) -> str:
        """Return a time as the clock of the rows shows it; empty if it is not known."""
        if not np.isfinite(seconds):
            return ""
        clock = UTC if self.zone is None else zone_of(self.zone)
        text = datetime.fromtimestamp(seconds, clock).isoformat(" ", "minutes")
        return text if isinstance(clock, timezone) and self.zone is not None else text[:_MINUTES]

    def at(self, row: int, seconds: float) -> str:
        """Return a row and its time in words, as "row 12 (2026-03-02 10:15)"."""
        time = self.time_text(seconds)
        return f"row {row + self.counted_from}" + (f" ({time})" if time else "")

    def words(self, page: Page) -> str:
        """Return a page in words: what changed, by how much, since when and, of a page that is closed, until when."""
        columns = in_words([self.names[j] for j in page.columns])
        also = [self.names[j] for j in page.also]
        verb = "" if page.kind == "together" else "is "
        words = f"{columns} {verb}{_WORDS[page.kind][page.direction < 0]}{_size_text(page)}"
        words += f", since {self.at(page.start, page.seconds)}"
        if page.closed >= 0 and page.until >= 0:
            end = self.at(page.until, page.until_seconds)
            words += f"; as usual again since {end}" if page.turned < 0 else f", until {end}, when it turned"
        return words + (f"; also seen in {in_words(also)}" if also else "")

    def event_words(self, event: PageEvent) -> str:
        """Return an event in words: the page as it was then, after "also: " of a column that joins, "grows: ", "closed: "."""
        return f"{_VERBS[event.event]}{self.words(event.page)}"

    def _columns(self) -> dict[str, Any]:
        """Return a row for each page: where it was opened, since when, what changed, and where it was closed."""
        found = self.pages

        def rows(name: str) -> np.ndarray:
            places = np.array([getattr(page, name) for page in found], dtype=np.intp)
            return np.where(places >= 0, places + self.counted_from, -1)

        return {
            "row": rows("row"),
            "row_time": [self.time_text(page.row_seconds) for page in found],
            "since": rows("start"),
            "time": [self.time_text(page.seconds) for page in found],
            "kind": [page.kind for page in found],
            "columns": [", ".join(self.names[j] for j in page.columns) for page in found],
            "direction": np.array([page.direction for page in found], dtype=np.intp),
            **{name: np.array([getattr(page, name) for page in found]) for name in SIZES},
            "also": [", ".join(self.names[j] for j in page.also) for page in found],
            "until": np.where(rows("closed") >= 0, rows("until"), -1),
            "until_time": [self.time_text(page.until_seconds) for page in found],
            "closed": rows("closed"),
            "closed_time": [self.time_text(page.closed_seconds) for page in found],
            "turned": np.array([page.turned + 1 for page in found], dtype=np.intp),
        }

    facts: ClassVar[dict[str, Fact]] = {
        "first_row": Fact(
            "integer", "first of these rows in the stream", lambda found: found.first_row + found.counted_from
        ),
        "rows": Fact("integer", "number of rows", lambda found: found.n_rows),
        "pages": Fact("integer", "pages that were opened in them", len),
        "open": Fact("integer", "pages that are still open", lambda found: len(found.open)),
        "columns": Fact("list of string", "columns that are watched", lambda found: list(found.names)),
        "rows_a_day": Fact("integer", "rows of a day", lambda found: found.per_day),
        "late_rows": Fact(
            "list of integer", "rows at which times go back or repeat", lambda found: found._numbers(found.late)
        ),
        "rows_after_absence": Fact(
            "list of integer",
            "rows before which there were no rows for longer than in the reference",
            lambda found: found._numbers(found.absent),
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "row": Key("integer", "row at which the page was opened"),
        "row_time": Key("string", "its time, if rows have times"),
        "since": Key("integer", "row since which there is evidence"),
        "time": Key("string", "its time, if rows have times"),
        "kind": Key("string", "level, given (given the other columns), spread, together, or incident"),
        "columns": Key("string", "columns that changed"),
        "direction": Key("integer", "1 for higher, more spread or more alike, -1 for the contrary"),
        "usual": Key("number or null", _SIZE_KEYS["usual"]),
        "observed": Key("number or null", _SIZE_KEYS["observed"]),
        "times": Key("number or null", _SIZE_KEYS["times"]),
        "size": Key("number or null", _SIZE_KEYS["size"]),
        "also": Key("string", "columns in which the same cause showed"),
        "until": Key("integer", "first row after the change; -1 while the page is open or if that is not known"),
        "until_time": Key("string", "its time, if rows have times"),
        "closed": Key("integer", "row at which the page was closed; -1 while it is open"),
        "closed_time": Key("string", "its time, if rows have times"),
        "turned": Key(
            "integer",
            "page that took its place, counted from 1, as the level turned to the other side of what is usual; else 0",
        ),
    }

    def _sentences(self) -> list[str]:
        rows = counted(self.n_rows, "row")
        if not len(self):
            words = [
                f"No page: in {rows} of the stream no cell differs from its context in the reference more than by chance."
            ]
        else:
            words = [f"{counted(len(self), 'page')} in {rows} of the stream:"]
            words += [
                f"{self.at(page.row, page.row_seconds).capitalize()}: {self.words(page)}." for page in self.opened
            ]
        before = [page for page in self.closed if page.row < self.first_row]
        words += [
            f"{'Closed' if page.turned < 0 else 'Turned'} at {self.at(page.closed, page.closed_seconds)}: {self.words(page)}."
            for page in before
        ]
        words += [
            f"{self.at(event.row, event.seconds).capitalize()}: {self.event_words(event)}."
            for event in self.events
            if event.event in ("joins", "grows")
        ]
        return words + self._sentences_of_times() + self._advice()

    def _numbers(self, rows: Sequence[LateRow | Absence]) -> list[int]:
        """Return the numbers of rows as they are shown."""
        return [each.row + self.counted_from for each in rows]

    def absence_words(self, absence: Absence) -> str:
        """Return a time without a row in words: "no rows for 3 days, since row 863 (2026-03-25 14:30)"."""
        before = self.at(absence.row - 1, absence.before_seconds)
        return f"no rows for {length_text(absence.length)}, since {before}"

    def _sentences_of_times(self) -> list[str]:
        """Return sentences about rows that are absent, late or there twice."""
        longest = sorted(self.absent, key=lambda each: -each.length)[:_MOST_ABSENCES]
        words = [
            f"{self.at(each.row, each.seconds).capitalize()}: {self.absence_words(each)}."
            for each in sorted(longest, key=lambda each: each.row)
        ]
        if more := len(self.absent) - len(longest):
            words.append(f"There {'was' if more == 1 else 'were'} {counted(more, 'shorter absence')} besides.")
        if self.late:
            first = self.at(self.late[0].row, self.late[0].seconds)
            words.append(
                f"Times go back or repeat at {counted(len(self.late), 'row')}, first at {first}: sort the stream, and leave out "
                "rows that come twice."
            )
        return words

    def _advice(self) -> list[str]:
        """Return what to do about pages that stay open."""
        end = self.first_row + self.n_rows
        long = [page for page in self.open if page.kind != "incident" and end - page.row > 2 * self.per_day]
        if not long:
            return []
        days = max(3.0, (end - max(page.start for page in long)) / self.per_day)
        since = self.at(max(page.start for page in long), max(page.seconds for page in long))
        return [
            f"{counted(len(long), 'page')} {'has' if len(long) == 1 else 'have'} been open for more than two days: if the change "
            f"is to stay, renew the reference with the rows from {since} on, {days:.0f} days by now; two weeks hold every "
            "weekday (update_reference; in the shell a new file for --reference and a new --state)."
        ]

    def _tables(self) -> list[ShownTable]:
        return [shown("Pages", self._columns(), "One page a cause; closed is -1 while it is open.")]

    def _charts(self) -> list[Chart]:
        """Return a picture of each column that has a page, or of the first columns: what was observed, and what is usual."""
        if self.stream is None or not len(self.stream.seconds):
            return []
        paged = [j for page in self.pages for j in page.columns + page.also]
        drawn = list(dict.fromkeys([*paged, *range(len(self.names))]))[:_MOST_DRAWN]
        return [self._chart(j) for j in drawn]

    def _chart(self, column: int) -> Chart:
        stream, n = self.stream, self.n_rows
        assert stream is not None  # as _charts has asked
        rows = self.first_row + n - len(stream.seconds) + np.arange(len(stream.seconds))
        timed = bool(np.isfinite(stream.seconds).all() and (np.diff(stream.seconds) >= 0.0).all())
        places = stream.seconds + self._ahead(stream.seconds) if timed else rows + float(self.counted_from)
        found = [page for page in self.pages if column in page.columns + page.also]
        ends = [(page.start, page.until if page.until >= 0 else page.closed) for page in found]
        inside = _merged([(a, b if b >= 0 else int(rows[-1])) for a, b in ends if b < 0 or b > rows[0]])
        bands = [(float(np.interp(a, rows, places)), float(np.interp(b, rows, places))) for a, b in inside]
        opened = [page for page in found if page.row >= rows[0]]
        lines = [
            (float(np.interp(page.row, rows, places)), f"{page.kind} (row {page.row + self.counted_from})")
            for page in opened
        ]
        series = [
            Series(name, places[steps], values, "line", colour, self._notes_of(rows[steps], values))
            for name, colour, (steps, values) in (
                ("observed", "blue", thinned(stream.cells[:, column])),
                ("usual in this context", "text", thinned(stream.usual[:, column])),
            )
        ]
        title = f"{self.names[column]}: " + (counted(len(found), "page") if found else "no page")
        about = (
            "What was observed, and the median of the reference in the same context, of small counts the mean; shaded while it "
            "was changed."
        )
        axis = "time" if timed else "row"
        return Chart(
            title, axis, self.names[column], series, about, bands=bands, lines=lines, times="x" * timed, wide=True
        )

    def _ahead(self, seconds: np.ndarray) -> float:
        """Return by how much the clock of the zone is ahead of UTC at the last row: axes show times without a zone."""
        if self.zone is None:
            return 0.0
        ahead = datetime.fromtimestamp(float(seconds[-1]), zone_of(self.zone)).utcoffset()
        return 0.0 if ahead is None else ahead.total_seconds()

    def _notes_of(self, rows: np.ndarray, values: np.ndarray) -> list[str]:
        return [f"row {row + self.counted_from}: {value:.4g}" for row, value in zip(rows, values, strict=True)]

    def _notes(self) -> list[str]:
        return [
            f"Rows are counted from {self.counted_from}.",
            "Each cell is ranked among the reference rows of its context: time of day, day of the week, and named columns.",
        ]


def _size_text(page: Page) -> str:
    """Return how large a change is, in words: ": 4.2 where 2 is usual (2.1 times)"; empty if that is not known."""
    if page.kind == "spread":
        said = [*_spread_text(page), *([_observed_text(page)] * (page.of_rows > 0))]
        return f": {', '.join(said)}" if said else ""
    if not np.isfinite(page.observed) or not np.isfinite(page.usual):
        return ""
    if page.kind == "together":
        return f": a correlation of {page.observed:.2f} in place of {page.usual:.2f}"
    consistent = (page.observed - page.usual) * page.direction > 0.0
    if page.kind == "given":
        return f": {_observed_text(page)}, by {abs(page.size):.2g} deviations from what the other columns let expect"
    if not consistent:  # middles of all rows, which may be of many contexts, go the other way than the rows in theirs
        return f": by {abs(page.size):.2g} deviations of its context" if page.size * page.direction > 0.0 else ""
    most = {"incident": "up to " if page.direction > 0 else "down to "}.get(page.kind, "")
    return f": {most}{_observed_text(page)}"


def _spread_text(page: Page) -> list[str]:
    """Return how much more or less a column is spread, if it is known and no mere rounding."""
    if not np.isfinite(page.size) or (page.size - 1.0) * page.direction < _LEAST_SHARE:
        return []
    if page.size >= _FEW_TIMES:
        return [f"{page.size:.2g} times the usual deviations"]
    return [f"deviations {100.0 * abs(page.size - 1.0):.0f} % {'larger' if page.size > 1.0 else 'smaller'} than usual"]


def _observed_text(page: Page) -> str:
    """Return "4.2 where 2 is usual (2.1 times)"; of small counts their sums in some rows."""
    if 0 < page.of_rows <= _MOST_SUMMED:
        total, usual = (each * page.of_rows for each in (page.observed, page.usual))
        words = f"{_number(total)} in {counted(page.of_rows, 'row')} where {_number(usual)} are usual"
    else:
        words = f"{_number(page.observed)} where {_number(page.usual)} is usual"
    return words + (
        f" ({_times_text(page.times)})" if np.isfinite(page.times) and abs(page.times - 1.0) >= _LEAST_SHARE else ""
    )


def _merged(bands: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return bands of which none overlaps another."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(bands):
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return out


def _times_text(times: float) -> str:
    if times >= _FEW_TIMES:
        return f"{times:.1f} times" if times < 10.0 else f"{times:,.0f} times"
    return f"{100.0 * abs(times - 1.0):.0f} % {'more' if times > 1.0 else 'less'}"


def _number(value: float) -> str:
    """Return a number of three digits; whole ones of more digits as they are."""
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def joined_pages(parts: list[DriftPages]) -> DriftPages:
    """Return the pages of consecutive rows of a stream as one result."""
    events = tuple(event for part in parts for event in part.events)
    streams = [part.stream for part in parts if part.stream is not None]
    stream = reduce(StreamRows.then, streams).last(_MOST_ROWS) if streams else None
    n_rows = sum(part.n_rows for part in parts)
    late = tuple(row for part in parts for row in part.late)
    absent = tuple(absence for part in parts for absence in part.absent)
    about = replace(parts[-1], late=late, absent=absent)
    return replace(about, first_row=parts[0].first_row, n_rows=n_rows, events=events, stream=stream)
