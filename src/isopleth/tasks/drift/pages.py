"""Pages of a drift monitor that judges rows in their context: one page a cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np

from isopleth.results.charts import Chart, Series
from isopleth.results.keys import Fact, Key
from isopleth.results.result import Result, ShownTable, shown
from isopleth.results.text import counted, in_words
from isopleth.tasks.drift.causes import Page

_WORDS = {
    "level": ("higher", "lower"),
    "given": ("higher given the other columns", "lower given the other columns"),
    "spread": ("more spread", "less spread"),
    "together": ("go together differently: more alike", "go together differently: less alike"),
    "incident": ("far above what is usual for some rows", "far below what is usual for some rows"),
}


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
        which there was evidence, and its time in `seconds`; its `kind` ("level", "spread", "together" for two columns, "given"
        for a level given the other columns, "incident" for a few rows), `columns` (numbers among `names`), the `direction`
        (1 or -1), columns in which the same cause showed `also`, and the row at which it was `closed`, -1 while it is open.
    names : tuple of str
        Names of the columns that are watched.
    per_day : int
        Usual number of rows a day.
    counted_from : int, default=0
        Number of the first row of the stream in tables, sentences and pages.

    Examples
    --------
    >>> from isopleth.tasks.drift.causes import Page
    >>> from isopleth.tasks.drift.pages import DriftPages
    >>> pages = DriftPages(100, 50, (Page(120, 110, "level", (1,), 1, 120),), ("requests", "errors"), per_day=24)
    >>> list(pages), pages.words(pages.opened[0])
    ([120], 'errors is higher, since row 110')
    """

    first_row: int
    n_rows: int
    pages: tuple[Page, ...]
    names: tuple[str, ...]
    per_day: int
    counted_from: int = 0

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

    def words(self, page: Page) -> str:
        """Return a page in words: what changed, and since when."""
        columns = in_words([self.names[j] for j in page.columns])
        also = [self.names[j] for j in page.also]
        since = f"row {page.start + self.counted_from}" + (f" ({time_text(page)})" if time_text(page) else "")
        verb = "" if page.kind == "together" else "is "
        words = f"{columns} {verb}{_WORDS[page.kind][page.direction < 0]}, since {since}"
        return words + (f"; also seen in {in_words(also)}" if also else "")

    def _columns(self) -> dict[str, Any]:
        """Return a row for each page: where it was opened, since when, what changed, and where it was closed."""
        found = self.pages
        return {
            "row": np.array([page.row + self.counted_from for page in found], dtype=np.intp),
            "since": np.array([page.start + self.counted_from for page in found], dtype=np.intp),
            "time": [time_text(page) for page in found],
            "kind": [page.kind for page in found],
            "columns": [", ".join(self.names[j] for j in page.columns) for page in found],
            "direction": np.array([page.direction for page in found], dtype=np.intp),
            "also": [", ".join(self.names[j] for j in page.also) for page in found],
            "closed": np.array(
                [page.closed + self.counted_from if page.closed >= 0 else -1 for page in found], dtype=np.intp
            ),
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
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "row": Key("integer", "row at which the page was opened"),
        "since": Key("integer", "row since which there is evidence"),
        "time": Key("string", "its time, if rows have times"),
        "kind": Key("string", "level, given (given the other columns), spread, together, or incident"),
        "columns": Key("string", "columns that changed"),
        "direction": Key("integer", "1 for higher, more spread or more alike, -1 for the contrary"),
        "also": Key("string", "columns in which the same cause showed"),
        "closed": Key("integer", "row at which the page was closed; -1 while it is open"),
    }

    def _sentences(self) -> list[str]:
        rows = counted(self.n_rows, "row")
        if not len(self):
            words = [
                f"No page: in {rows} of the stream no cell differs from its context in the reference more than by chance."
            ]
        else:
            words = [f"{counted(len(self), 'page')} in {rows} of the stream:"]
            words += [f"Row {page.row + self.counted_from}: {self.words(page)}." for page in self.opened]
        words += [f"Closed at row {page.closed + self.counted_from}: {self.words(page)}." for page in self.closed]
        long = [page for page in self.open if self.first_row + self.n_rows - page.row > 2 * self.per_day]
        if long:
            words.append(
                f"{counted(len(long), 'page')} {'has' if len(long) == 1 else 'have'} been open for more than two days: if the "
                "change is to stay, renew the reference with rows from after it (update_reference; a new file in the shell)."
            )
        return words

    def _tables(self) -> list[ShownTable]:
        return [shown("Pages", self._columns(), "One page a cause; closed is -1 while it is open.")]

    def _charts(self) -> list[Chart]:
        series = []
        for kind, colour in zip(_WORDS, ("blue", "vermillion", "orange", "green", "text"), strict=True):
            found = [page for page in self.pages if page.kind == kind]
            if found:
                heights = [page.columns[0] for page in found]
                notes = [self.words(page) for page in found]
                rows = [page.row + self.counted_from for page in found]
                series.append(Series(kind, rows, heights, "dots", colour, notes, strong=True))
        if not series:
            return []
        about = "Each page at the row at which it was opened, at the number of its first column."
        return [Chart(counted(len(self.pages), "page"), "row", "column", series, about, wide=True)]

    def _notes(self) -> list[str]:
        return [
            f"Rows are counted from {self.counted_from}.",
            "Each cell is ranked among the reference rows of its context: time of day, day of the week, and named columns.",
        ]


def time_text(page: Page) -> str:
    """Return the time since which there was evidence, as the clock of the rows showed it; empty if it is not known."""
    if not np.isfinite(page.seconds):
        return ""
    return datetime.fromtimestamp(page.seconds, UTC).strftime("%Y-%m-%d %H:%M")


def joined_pages(parts: list[DriftPages]) -> DriftPages:
    """Return the pages of consecutive rows of a stream as one result."""
    return replace(parts[-1], first_row=parts[0].first_row, n_rows=sum(part.n_rows for part in parts))
