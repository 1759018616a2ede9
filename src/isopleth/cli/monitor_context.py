"""Contexts of ``isopleth monitor``: which one is taken, and how pages are printed."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from isopleth.cli.program import say
from isopleth.cli.run import Run
from isopleth.core.errors import DataWarning, InputError, printable, quoted
from isopleth.files.file_table import FileTable
from isopleth.files.read import Reader
from isopleth.results.text import wrapped
from isopleth.tables.time_text import length_text, time_text
from isopleth.tasks.drift.page import PageEvent
from isopleth.tasks.drift.pages_result import SIZES, DriftPages
from isopleth.tasks.drift.stream_times import Absence, ClockState, StreamClock, late_message, told_late_rows

# A reference of fewer days does not show how days differ, so that its times are no context unless asked for.
_FEWEST_DAYS = 7.0
_SECONDS = 86400.0
_Rows = tuple[FileTable, InputError | None]


def with_context_columns(run: Run, reference: Path, asked: tuple[str, ...]) -> Run:
    """Return the run, whose --columns are those to watch, with the columns of the context that these leave out."""
    chosen = run.options.columns
    if chosen is None or asked == ("none",) or (not asked and _compares_windows()):
        return run
    first = Reader(reference, replace(run.options, columns=None)).first()
    times = [name for name in first.schema.names_of("time") if name not in run.options.exclude]
    wanted = [name for name in asked if name in first.names]
    wanted += times if len(times) == 1 else []  # without a clock in the context they say the times of pages
    added = [name for name in dict.fromkeys(wanted) if name not in chosen]
    if not added:
        return run
    say(f"{quoted(added)} {'is' if len(added) == 1 else 'are'} read for the context, beside --columns.")
    return replace(run, options=replace(run.options, columns=[*chosen, *added]))


def _compares_windows() -> bool:
    """Tell whether windows of rows are asked for."""
    given = click.get_current_context().get_parameter_source("window")
    return given == click.core.ParameterSource.COMMANDLINE


def in_context(table: FileTable, asked: tuple[str, ...]) -> tuple[FileTable, list[str] | None]:
    """Return the reference and the columns of the context: those asked for, or the one column of times of a week or more.

    Words are not watched in a context that was not asked for: numbers that follow the clock would alarm without it day by day.
    """
    if asked:
        return table, None if asked == ("none",) else list(asked)
    numbers = table.schema.measured
    times = [j for j, column in enumerate(numbers) if column.kind == "time"]
    if _compares_windows() or len(times) != 1 or len(numbers) < 2 or table.choices.time_columns:
        return table, None
    seconds = table.encoded().rows[:, times[0]]
    known = seconds[~np.isnan(seconds)]
    if not len(known) or np.ptp(known) < _FEWEST_DAYS * _SECONDS:
        return table, None
    name = str(numbers[times[0]].name)
    say(f"judged by hour and weekday of {name!r}; --context none compares windows of rows instead.")
    if words := table.schema.categorical_names:
        verb, them = ("holds", "it") if len(words) == 1 else ("hold", "them")
        both = f"--context {shlex.quote(','.join([name, words[0]]))}"
        say(
            f"{quoted(words)} {verb} words, which are not watched in a context: left out; --context none compares {them} with "
            f"the rest, and {both} takes rows of the same word for the context."
        )
        table = table.without(words)
    return table, [name]


def times_of(rows: FileTable, places: np.ndarray) -> list[str]:
    """Return the times of some rows as words; empty words without exactly one column of times."""
    name = _only_times(rows)
    if name is None:
        return [""] * len(places)
    cells = rows.data.column(name).take(places).to_pylist()
    return ["" if cell is None else str(cell) for cell in cells]


def _only_times(table: FileTable) -> str | None:
    """Return the name of the only column of times; None if there is none, or several."""
    names = table.schema.names_of("time")
    return names[0] if len(names) == 1 else None


def with_news_of_clocks(batches: Iterator[_Rows], reference: FileTable) -> Iterator[_Rows]:
    """Yield rows of a stream, and say once if their clock is ahead of that of the reference by another offset.

    An hour of the day is that of the offset in the reference; after a change to summer time every row would be an hour late.
    """
    name, said = _only_times(reference), False
    for rows, error in batches:
        if name is not None and not said and len(rows):
            had, has = (getattr(each.data.schema.field(name).type, "tz", None) for each in (reference, rows))
            said = had != has and has is not None
            if said:
                ours, theirs = (f"{zone} or several offsets" if zone == "UTC" else str(zone) for zone in (had, has))
                say(
                    f"times of standard input are of the clock {theirs}, and those of the reference of {ours}: hours of the day "
                    f"are those of {had}. If the clock was set, name its zone, as in --timezone Europe/Berlin."
                )
        yield rows, error


def print_pages(pages: DriftPages, as_json: bool) -> None:
    """Print what happened to pages at once, and where rows were absent, for a reader that waits for it."""
    pages = replace(pages, counted_from=1)
    news: list[PageEvent | Absence] = [*pages.absent, *pages.events]
    for event in sorted(news, key=lambda each: each.row):
        if isinstance(event, Absence):
            found, words = absence_object(pages, event), pages.absence_words(event)
        else:
            found, words = as_object(pages, event), printable(pages.event_words(event))
        click.echo(json.dumps(found) if as_json else wrapped(f"{pages.at(event.row, event.seconds)}: {words}"))


def absence_object(pages: DriftPages, absence: Absence) -> dict[str, Any]:
    """Return a time without rows as one JSON object."""
    return {
        "row": absence.row + pages.counted_from,
        "row_time": pages.time_text(absence.seconds) or None,
        "event": "absent",
        "since": absence.row - 1 + pages.counted_from,
        "time": pages.time_text(absence.before_seconds) or None,
        "seconds": absence.length,
    }


@contextmanager
def located_warnings(rows: FileTable, first_row: int) -> Iterator[None]:
    """Show warnings of the block about rows of a stream, the first of which has a number, by the lines of these rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message="words that were not among")  # each is said once in a run
        yield
    for each in caught:
        said = each.message
        if isinstance(said, DataWarning) and said.row is not None:
            place = rows.place(said.row - first_row)
            said = DataWarning(replace(said.message, source=str(rows.source), place=place))
        warnings.showwarning(said, each.category, each.filename, each.lineno)


def seconds_of(rows: FileTable) -> np.ndarray:
    """Return the times of rows in seconds since 1970; NaN without exactly one column of times, or times of day."""
    name = _only_times(rows)
    kind = None if name is None else rows.data.schema.field(name).type
    if kind is None or not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return np.full(len(rows), np.nan)
    cells = rows.data.column(name).cast(pa.timestamp("us", getattr(kind, "tz", None)))
    counts = cells.cast(pa.int64()).to_numpy()
    return np.asarray(counts, dtype=np.float64) / 1e6


class WindowTimes:
    """Times of a stream whose windows are compared, which the monitor leaves out: rows that come late, and absences."""

    def __init__(self, reference: FileTable) -> None:
        self._clock, self._state = StreamClock.of(seconds_of(reference)), ClockState()

    def take(self, rows: FileTable, first_row: int) -> None:
        """Say what is wrong with the times of the next rows."""
        before = self._state.times_late
        self._state, late, absent = self._clock.judge(seconds_of(rows), first_row, self._state)
        for row in told_late_rows(late, before):
            message = late_message(row, time_text(row.seconds), time_text(row.latest))
            say(f"warning: {message.located(rows.source, lambda place: rows.place(place - first_row))}")
        for each in absent:
            place = rows.place(each.row - first_row)
            say(
                f"warning: {rows.source}: no rows for {length_text(each.length)} before {place} ({time_text(each.seconds)})."
            )


def as_object(pages: DriftPages, event: PageEvent) -> dict[str, Any]:
    """Return what happened to a page as one JSON object."""
    page = event.page
    sizes = {name: getattr(page, name) for name in SIZES}
    return {
        "row": event.row + 1,
        "row_time": pages.time_text(event.seconds) or None,
        "event": event.event,
        "page": event.number + 1,
        "kind": page.kind,
        "columns": [pages.names[j] for j in page.columns],
        "direction": page.direction,
        **{name: value if np.isfinite(value) else None for name, value in sizes.items()},
        "since": page.start + 1,
        "time": pages.time_text(page.seconds) or None,
        "until": page.until + 1 if page.until >= 0 and page.closed >= 0 else None,
        "until_time": pages.time_text(page.until_seconds) or None,
        "turned": page.turned + 1 or None,
        "also": [pages.names[j] for j in page.also],
    }
