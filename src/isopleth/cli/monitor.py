"""``isopleth monitor``: read rows from standard input and print alarms when they differ from a reference."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np

from isopleth.cli.monitor_context import (
    WindowTimes,
    in_context,
    located_warnings,
    print_pages,
    seconds_of,
    times_of,
    with_context_columns,
    with_news_of_clocks,
)
from isopleth.cli.process import ALARM_CODE
from isopleth.cli.program import ShellWording, of_this_version, other_version, say
from isopleth.cli.run import Run, refuse_same
from isopleth.core.errors import InputError, printable
from isopleth.files.file_table import FileTable
from isopleth.files.stream import NewWords, OddTally, RowStream
from isopleth.io import load, save
from isopleth.io.output_files import atomic_write, check_target, remove_leftovers, sole_run
from isopleth.results.text import counted, wrapped
from isopleth.tables.time_text import time_text
from isopleth.tasks.drift.alarms import DriftAlarms, joined
from isopleth.tasks.drift.monitor import DriftMonitor, is_whole, watched_names
from isopleth.tasks.drift.page import Page
from isopleth.tasks.drift.pages_result import DriftPages, joined_pages

# Seconds between two writings of the metrics, unless there is an alarm.
_BETWEEN = 1.0

_Rows = tuple[FileTable, InputError | None]

# Last rows of a stream that a page shows; parts of a stream that are kept before they are joined.
_MOST_ROWS, _MOST_PARTS = 1_000_000, 10_000


def monitor(
    run: Run,
    reference: Path,
    state: Path | None,
    replay: bool,
    window: int,
    expected_run_length: float,
    min_effect: float,
    context: tuple[list[str], ...],
    timezone: str | None,
    ignore_missing: bool,
    metrics: Path | None,
) -> None:
    """Watch rows from standard input and print alarms."""
    _check(run, reference, state, metrics, replay=replay)
    run.stage("reading")
    asked = tuple(chain.from_iterable(context))
    run = with_context_columns(run, reference, asked)
    table, chosen = in_context(run.read(reference), asked)
    run.stage("fitting")
    how: dict[str, Any] = {
        "context": chosen,
        "timezone": timezone,
        "window": window,
        "expected_run_length": expected_run_length,
        "min_effect": min_effect,
        "compare_missing": not ignore_missing or chosen is not None,  # in a context missing cells say nothing
    }
    watching = _known(state, table, how) if state and state.exists() else None
    if watching is None:
        watching = _fitted(table, how)
        if state is not None:
            save(watching, state)
    run.stage.end()
    run.sources.clear()  # from here on rows are those of standard input
    # The page is written at an interrupt, too: an endless stream ends with one.
    with _paged(run) if run.report else nullcontext() as kept:
        skip = watching.state_.n_rows if replay else 0
        stream = RowStream(table, run.options.encoding, run.options.decimal, run.options.bad_cells)
        batches = stream.batches(sys.stdin.buffer)
        batches = with_news_of_clocks(batches, table) if watching.context and not timezone else batches
        batches = batches if run.options.bad_cells == "refuse" else _without_bad_lines(batches)
        batches = _behind(batches, skip, watching) if skip else batches
        times = None if watching.context else WindowTimes(table)
        alarmed = _watch(watching, batches, state, times, run.as_json, Metrics(metrics), kept)
    if state is None and not watching.state_.n_rows:  # with a state, a run may find that nothing new has come
        raise InputError(
            "standard input has no rows: send those to watch, one a line, as in isopleth monitor < new.csv."
        )
    if not run.as_json:
        noun = "page" if watching.context else "alarm"
        run.print(f"{counted(watching.state_.n_rows, 'row')}, {counted(watching.state_.alarms, noun)}")
    if alarmed:
        click.get_current_context().exit(ALARM_CODE)


def _check(run: Run, reference: Path, state: Path | None, metrics: Path | None, *, replay: bool) -> None:
    """Refuse files and options that do not go together, and lock the state."""
    if replay and state is None:
        raise InputError("--replay skips the rows that a state file has counted: name it with --state.")
    if run.options.encoding == "auto":
        raise InputError(
            "--encoding auto finds the encoding of a whole file, and standard input has not come yet: name that of both, as "
            "in --encoding latin-1."
        )
    refuse_same({"--reference": reference, "--state": state, "--metrics": metrics, "--report": run.report})
    for path in filter(None, (state, metrics)):
        check_target(path)
    if state is not None:
        click.get_current_context().with_resource(sole_run(state))
    for path in filter(None, (state, metrics)):
        remove_leftovers(path)  # of runs that were killed


@contextmanager
def _paged(run: Run) -> Iterator[list[Any]]:
    """Give a list for the alarms of the stream, and write their page in the end."""
    kept: list[Any] = []
    try:
        yield kept
    finally:
        if kept:
            whole = joined_pages(kept) if isinstance(kept[0], DriftPages) else joined(kept, _MOST_ROWS)
            found = replace(whole, counted_from=1)
            notes = [f"The page shows the last rows of the stream, from row {found.first_row + 1} on."] * (
                found.first_row > 0
            )
            run.write(found, notes=notes)


def _watch(
    watching: DriftMonitor,
    batches: Iterator[_Rows],
    state: Path | None,
    times: WindowTimes | None,
    as_json: bool,
    report: Metrics,
    kept: list[Any] | None,
) -> bool:
    """Process the rows of standard input, and return whether there was an alarm."""
    report.write(watching)
    odd, words, begin = OddTally(), NewWords(), watching.state_.n_rows
    for rows, error in batches:
        for note in (*odd.news(rows), *words.news(rows)):
            say(note)
        if len(rows):
            alarms = _judged(watching, rows, times, begin, as_json)
            if kept is not None:
                kept.append(alarms)
                if len(kept) > _MOST_PARTS:
                    kept[:] = [joined_pages(kept) if isinstance(alarms, DriftPages) else joined(kept, _MOST_ROWS)]
            if state is not None:
                save(watching, state)
            report.take(alarms)
            report.write(watching, now=bool(alarms))
        if error is not None:
            report.write(watching)
            raise error
    report.write(watching)
    return report.alarmed


def _without_bad_lines(batches: Iterator[_Rows]) -> Iterator[_Rows]:
    """Yield the rows without the lines that cannot be used, such as those with too few cells, and say which these are.

    The first, second, fourth, eighth, ... of them is named, so that a broken stream does not fill a log.
    """
    count = 0
    for rows, error in batches:
        if error is not None:
            count += 1
            if count & (count - 1) == 0:
                say(f"warning: {error.message.render(ShellWording()).removesuffix('.')}; the line is left out.")
        yield rows, None
    if count > 1:
        say(f"{counted(count, 'line')} of standard input could not be used.")


def _judged(
    watching: DriftMonitor, rows: FileTable, times: WindowTimes | None, begin: int, as_json: bool
) -> DriftAlarms | DriftPages:
    """Judge some rows of a run that began at a row of the stream, and print what is found."""
    first = watching.state_.n_rows
    if times is not None:
        times.take(rows, first)
    with located_warnings(rows, first):
        alarms: DriftAlarms | DriftPages = watching.update(rows.frame)
    if not isinstance(alarms, DriftPages):
        _print(alarms, rows, as_json)
        return alarms
    if any(row.row == begin for row in alarms.late):
        say("where the whole stream is sent again, --replay skips the rows that --state has counted.")
    print_pages(alarms, as_json)
    return alarms


def _behind(batches: Iterator[_Rows], skip: int, watching: DriftMonitor) -> Iterator[_Rows]:
    """Yield the rows behind those that the state has counted, which must be the first ones of the stream."""
    left = skip
    for rows, error in batches:
        skipped = min(left, len(rows))
        left -= skipped
        if skipped and not left and watching.context:
            had, has = watching.state_.clock.last, seconds_of(rows)[skipped - 1]
            if np.isfinite(had) and np.isfinite(has) and had != has:
                raise InputError(
                    f"--replay skips the {skip:,} rows that the state has counted, and the time of the last of them in the "
                    f"stream, {time_text(has)}, is another one than in the state, {time_text(had)}: was the file rotated? Send "
                    "only new rows, without --replay."
                )
        yield rows.take(np.arange(skipped, len(rows))), error
    if left:
        raise InputError(
            f"the stream has fewer rows ({skip - left:,}) than the state has counted ({skip:,}), and --replay has skipped all of "
            "them: was the file rotated? Send only new rows, without --replay."
        )


def _fitted(table: FileTable, how: dict[str, Any]) -> DriftMonitor:
    """Return a fitted monitor, with a fixed seed so that each run gives the same alarms."""
    watching = DriftMonitor(**how, random_state=0)
    return watching.fit(table.frame)


def _known(state: Path, table: FileTable, how: dict[str, Any]) -> DriftMonitor:
    """Load the monitor in a state file."""
    watching = load(state)
    if not isinstance(watching, DriftMonitor):
        raise InputError(f"{state} holds a {type(watching).__name__} and no monitor; name another file with --state.")
    with of_this_version(state):
        had = {name: getattr(watching, name) for name in how}
    if not is_whole(watching):
        raise other_version(state)
    if had != how:
        ignored = "" if had["compare_missing"] else " --ignore-missing"
        ignored += "".join(f" --context {name}" for name in had["context"] or ())
        ignored += f" --timezone {had['timezone']}" if had["timezone"] else ""
        ignored += f" --min-effect {had['min_effect']:g}" if had["min_effect"] else ""
        raise InputError(
            f"{state} was made with --window {had['window']} --run-length {had['expected_run_length']:g}{ignored}; give the same "
            "ones, or another file."
        )
    if not _same_reference(watching, table):
        raise InputError(
            f"{state} was made with another reference than {table.source}, or with other columns of it; give the same ones, "
            "or another file."
        )
    # A state that does not fit is refused at the first row, not in the middle of a stream.
    with of_this_version(state), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the row is of the reference, whose times are before those of the stream
        place = watching.state_
        watching.update(table.take([0]).frame)
        watching.state_ = place
    return watching


def _same_reference(watching: DriftMonitor, table: FileTable) -> bool:
    try:
        return watching.has_reference(table.frame)
    except (InputError, ValueError):  # other columns
        return False


def moved(found: dict[str, Any]) -> dict[str, str]:
    """Return the columns that moved by the changes of an alarm, with how, the largest change first."""
    if "description" in found:
        said = found["description"]
    else:
        numbers = zip(
            *(found[key] for key in ("median_before", "median_after", "spread_before", "spread_after")), strict=True
        )
        said = [f"median: {a:.4g} -> {b:.4g}; spread: {c:.4g} -> {d:.4g}" for a, b, c, d in numbers]
    return {name: text for name, text, far in zip(found["column"], said, found["moved"], strict=True) if far}


def shifts_given_others(found: dict[str, Any]) -> dict[str, float]:
    """Return the columns that moved given the others by the changes of an alarm, with the shifts of their residuals."""
    shifts = zip(found["column"], found["shift_given_others"], strict=True)
    return {name: float(shift) for name, shift in shifts if shift}


def _print(alarms: DriftAlarms, rows: FileTable, as_json: bool) -> None:
    """Print the alarms of some rows at once, for a reader that waits for them."""
    times = times_of(rows, alarms.rows - alarms.first_row)
    for place, (row, first, statistic, threshold) in enumerate(zip(*alarms._columns().values(), strict=True)):
        found = alarms.changes(place)
        changes = moved(found)
        if as_json:
            where = {"row": int(row) + 1, "row_time": times[place] or None, "first_row": int(first) + 1}
            numbers = {"statistic": float(statistic), "threshold": float(threshold)}
            given = shifts_given_others(found)
            click.echo(json.dumps({**where, **numbers, "changes": changes, "shift_given_others": given}))
        else:
            at = f"row {row + 1}" + (f" ({times[place]})" if times[place] else "")
            words = f"{at}: rows {first + 1} to {row + 1} differ from the reference"
            lines = [f"{words} (distance {statistic:.4g}, threshold {threshold:.4g})"]
            lines += [f"    {printable(name)}: {printable(text)}" for name, text in changes.items()]
            lines += [
                f"    {printable(name)}: {'higher' if by > 0.0 else 'lower'} by {abs(by):.2g} deviations from what the other "
                "columns let expect"
                for name, by in shifts_given_others(found).items()
            ]
            click.echo(wrapped("\n".join(lines)))


# Type and meaning of each metric.
_METRICS = {
    "rows_total": ("counter", "Rows of the stream."),
    "alarms_total": ("counter", "Alarms, or pages of a context."),
    "statistic": (
        "gauge",
        "Distance of the last window from the reference; NaN until it is full, and always with a context.",
    ),
    "threshold": ("gauge", "An alarm is raised above it."),
    "last_alarm_row": ("gauge", "Row of the last alarm of this run, counted from 1; 0 for none."),
    "last_alarm_timestamp_seconds": ("gauge", "Time of the last alarm of this run; 0 for none."),
}


class Metrics:
    """File of metrics in the text format of Prometheus, which is replaced as a whole."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._written = path, -np.inf
        self._statistic = np.nan
        self._last_row, self._last_time, self._shares = 0, 0.0, dict[str, float]()
        self.alarmed = False

    def take(self, alarms: DriftAlarms | DriftPages) -> None:
        """Take in the alarms or pages of some rows."""
        if isinstance(alarms, DriftPages):
            if alarms:
                self.alarmed, self._last_row, self._last_time = True, int(alarms.rows[-1]) + 1, time.time()
            return
        self._statistic = float(alarms.statistic[-1])
        if alarms:
            self.alarmed = True
            self._last_row, self._last_time = int(alarms.rows[-1]) + 1, time.time()
            found = alarms.changes(len(alarms) - 1)
            self._shares = dict(zip(found["column"], map(float, found["share"]), strict=True))

    def write(self, watching: DriftMonitor, *, now: bool = True) -> None:
        """Write the metrics, at most once a second unless `now`."""
        if self._path is None or not (now or time.monotonic() - self._written > _BETWEEN):
            return
        with atomic_write(self._path) as file:
            file.write(self.text(watching).encode())
        self._written = time.monotonic()

    def text(self, watching: DriftMonitor) -> str:
        """Return the metrics."""
        state, threshold = watching.state_, float(watching.threshold_)
        values = (state.n_rows, state.alarms, self._statistic, threshold, self._last_row, self._last_time)
        lines: list[str] = []
        for (name, (kind, about)), value in zip(_METRICS.items(), values, strict=True):
            lines += [*_head(name, kind, about), f"isopleth_monitor_{name} {_number(value)}"]
        if self._shares:
            about = "About the share of cells that changed in a column, at the last alarm of this run."
            lines += _head("column_share", "gauge", about)
            lines += [
                f'isopleth_monitor_column_share{{column="{_label(c)}"}} {_number(v)}' for c, v in self._shares.items()
            ]
        lines += _lines_of_pages(watching) if watching.context else []
        return "\n".join(lines) + "\n"


# Metrics of each open page, and the values that they hold.
_OF_PAGES: dict[str, tuple[str, Callable[[Page], float]]] = {
    "page": ("1 for each cause whose page is open.", lambda page: 1),
    "page_start_timestamp_seconds": ("Time since which there is evidence.", lambda page: page.seconds),
    "page_usual": ("What is usual in the context; of two columns their correlation.", lambda page: page.usual),
    "page_observed": ("What was observed in its place.", lambda page: page.observed),
    "page_size": ("Deviations; of a spread the ratio to the usual one.", lambda page: page.size),
}


def _lines_of_pages(watching: DriftMonitor) -> list[str]:
    """Return the metrics of the pages that are open, by kind, columns and direction, so that a known cause can be silenced."""
    names, opened = watched_names(watching), [page for page in watching.state_.pages if page.closed < 0]
    lines = [*_head("open_pages", "gauge", "Pages that are open."), f"isopleth_monitor_open_pages {len(opened)}"]
    labelled = {}
    for page in opened:  # of two pages with the same labels the last one counts
        columns = _label(", ".join(names[j] for j in page.columns))
        labelled[f'kind="{page.kind}",columns="{columns}",direction="{"up" if page.direction > 0 else "down"}"'] = page
    for name, (about, value) in _OF_PAGES.items():
        lines += _head(name, "gauge", about) * bool(labelled)
        lines += [f"isopleth_monitor_{name}{{{labels}}} {_number(value(page))}" for labels, page in labelled.items()]
    return lines


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP isopleth_monitor_{name} {about}", f"# TYPE isopleth_monitor_{name} {kind}"


def _number(value: float) -> str:
    return "NaN" if np.isnan(value) else repr(value)


def _label(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
