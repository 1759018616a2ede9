"""``isopleth monitor``: read rows from standard input and print alarms when they differ from a reference."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import click
import numpy as np

from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.mixed import MixedTable, decided, read_mixed, rows_of
from isopleth.cli.models import matched_columns, of_this_version
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import Outputs, refuse_same
from isopleth.cli.signals import ALARM_CODE
from isopleth.errors import InputError, printable
from isopleth.io import Table, check_target, load, save
from isopleth.io.frames import missing_words
from isopleth.io.source import listed
from isopleth.io.text_columns import Column, cut, header_names, kind_of
from isopleth.results.text import counted, wrapped
from isopleth.tables.files import atomic_write, remove_leftovers, sole_run
from isopleth.tables.schema import Schema
from isopleth.tables.typed import moment
from isopleth.tasks.drift.alarms import DriftAlarms, joined
from isopleth.tasks.drift.monitor import DriftMonitor

# Seconds between two writings of the metrics, unless there is an alarm.
_BETWEEN = 1.0

# Last rows of a stream that a page shows; parts of a stream that are kept before they are joined.
_MOST_ROWS, _MOST_PARTS = 1_000_000, 10_000


def monitor(
    reference: Path,
    state: Path | None,
    replay: bool,
    window: int,
    run_length: float,
    options: TableOptions,
    ignore_missing: bool,
    as_json: bool,
    metrics: Path | None,
    report: Path | None,
) -> None:
    """Watch rows from standard input and print alarms."""
    if replay and state is None:
        raise InputError("--replay skips the rows that a state file has counted: name it with --state.")
    if state is not None:
        refuse_same({"--reference": reference, "--state": state, "--report": report})
        check_target(state)
        click.get_current_context().with_resource(sole_run(state))
        remove_leftovers(state)  # of runs that were killed
    Outputs(page=report).check(**{"--reference": reference})
    if metrics is not None:
        check_target(metrics)
        remove_leftovers(metrics)
    with Stages(["reading", "fitting"]) as stage:
        stage("reading")
        table = read_mixed(reference, options)
        stage("fitting")
        how = {"window": window, "expected_run_length": run_length, "compare_missing": not ignore_missing}
        watching = _known(state, table, how) if state and state.exists() else None
        if watching is None:
            watching = _fitted(table, how)
            if state is not None:
                save(watching, state)
    # The page is written at an interrupt, too: an endless stream ends with one.
    with _paged(report, reference) if report else nullcontext() as kept:
        skip = watching.state_.n_rows if replay else 0
        alarmed = _watch(watching, table, options, state, skip, as_json, Metrics(metrics), kept)
    if not as_json:
        rows, alarms = watching.state_.n_rows, watching.state_.alarms
        click.echo(f"{counted(rows, 'row')}, {counted(alarms, 'alarm')}")
    if alarmed:
        click.get_current_context().exit(ALARM_CODE)


@contextmanager
def _paged(report: Path, reference: Path) -> Iterator[list[DriftAlarms]]:
    """Give a list for the alarms of the stream, and write their page in the end."""
    kept: list[DriftAlarms] = []
    try:
        yield kept
    finally:
        if kept:
            found = replace(joined(kept, _MOST_ROWS), counted_from=1)
            notes = [f"The page shows the last rows of the stream, from row {found.first_row + 1} on."] * (
                found.first_row > 0
            )
            Outputs(page=report).write(found, sources=[reference], notes=notes)


def _watch(
    watching: DriftMonitor,
    table: Table,
    options: TableOptions,
    state: Path | None,
    skip: int,
    as_json: bool,
    report: Metrics,
    kept: list[DriftAlarms] | None,
) -> bool:
    """Process the rows of standard input, and return whether there was an alarm."""
    report.write(watching)
    kinds = table.read.kinds if isinstance(table, MixedTable) and table.read and table.read.kinds.named else None
    for batch in RowReader(table.names, table.named, kinds, options.missing).batches(sys.stdin.buffer):
        skipped, skip = min(skip, len(batch.values)), max(0, skip - len(batch.values))
        if skipped < len(batch.values):
            with matched_columns():
                alarms = watching.update(batch.values[skipped:])
            _print(alarms, as_json)
            if kept is not None:
                kept.append(alarms)
                if len(kept) > _MOST_PARTS:
                    kept[:] = [joined(kept, _MOST_ROWS)]
            if state is not None:
                save(watching, state)
            report.take(alarms)
            report.write(watching, now=bool(alarms))
        if batch.error is not None:
            report.write(watching)
            raise batch.error
    report.write(watching)
    return report.alarmed


def _fitted(table: Table, how: dict[str, Any]) -> DriftMonitor:
    """Return a fitted monitor, with a fixed seed so that each run gives the same alarms."""
    watching = decided(DriftMonitor(**how, random_state=0), table)
    with naming_columns(table.names):
        watching.fit(rows_of(table))
    if table.named and not isinstance(table, MixedTable):
        watching.name_columns(table.names)
    return watching


def _known(state: Path, table: Table, how: dict[str, Any]) -> DriftMonitor:
    """Load the monitor in a state file.

    Raises
    ------
    InputError
        If it watches with another reference or other parameters.
    """
    watching = load(state)
    if not isinstance(watching, DriftMonitor):
        raise InputError(f"{state} holds a {type(watching).__name__} and no monitor; name another file with --state.")
    with of_this_version(state):
        had = {name: getattr(watching, name) for name in how}
        if not hasattr(watching, "_encoding"):
            raise AttributeError
    if had != how:
        ignored = "" if had["compare_missing"] else " --ignore-missing"
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
    with of_this_version(state), matched_columns():
        place = watching.state_
        watching.update(rows_of(table)[:1])
        watching.state_ = place
    return watching


def _same_reference(watching: DriftMonitor, table: Table) -> bool:
    try:
        with matched_columns():
            return watching.has_reference(rows_of(table))
    except (InputError, ValueError):  # other columns
        return False


def moved(alarms: DriftAlarms, place: int) -> dict[str, str]:
    """Return the columns that moved at an alarm, with how, the largest change first."""
    found = alarms.changes(place)
    if "description" in found:
        said = found["description"]
    else:
        numbers = zip(
            *(found[key] for key in ("median_before", "median_after", "spread_before", "spread_after")), strict=True
        )
        said = [f"median: {a:.4g} -> {b:.4g}; spread: {c:.4g} -> {d:.4g}" for a, b, c, d in numbers]
    return {name: text for name, text, far in zip(found["column"], said, found["moved"], strict=True) if far}


def _print(alarms: DriftAlarms, as_json: bool) -> None:
    """Print alarms at once, for a reader that waits for them."""
    for place, (row, first, statistic, threshold) in enumerate(zip(*alarms._columns().values(), strict=True)):
        changes = moved(alarms, place)
        if as_json:
            rows = {"row": int(row) + 1, "first_row": int(first) + 1}
            numbers = {"statistic": float(statistic), "threshold": float(threshold)}
            click.echo(json.dumps({**rows, **numbers, "changes": changes}))
        else:
            words = f"row {row + 1}: rows {first + 1} to {row + 1} differ from the reference"
            lines = [f"{words} (distance {statistic:.4g}, threshold {threshold:.4g})"]
            lines += [f"    {printable(name)}: {printable(text)}" for name, text in changes.items()]
            click.echo(wrapped("\n".join(lines)))


class Metrics:
    """File of metrics in the text format of Prometheus, which is replaced as a whole.

    Parameters
    ----------
    path : Path, optional
        The file; nothing is written without it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._written = path, -np.inf
        self._statistic = np.nan
        self._last_row, self._last_time, self._shares = 0, 0.0, dict[str, float]()
        self.alarmed = False

    def take(self, alarms: DriftAlarms) -> None:
        """Take in the alarms of some rows."""
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
        state = watching.state_
        values = [
            ("rows_total", "counter", "Rows of the stream.", state.n_rows),
            ("alarms_total", "counter", "Alarms.", state.alarms),
            (
                "statistic",
                "gauge",
                "Distance of the last window from the reference; NaN until it is full.",
                self._statistic,
            ),
            ("threshold", "gauge", "An alarm is raised above it.", float(watching.threshold_)),
            (
                "last_alarm_row",
                "gauge",
                "Row of the last alarm of this run, counted from 1; 0 for none.",
                self._last_row,
            ),
            (
                "last_alarm_timestamp_seconds",
                "gauge",
                "Time of the last alarm of this run; 0 for none.",
                self._last_time,
            ),
        ]
        lines = [
            line
            for name, kind, about, value in values
            for line in (*_head(name, kind, about), f"isopleth_monitor_{name} {_number(value)}")
        ]
        if self._shares:
            name, about = (
                "column_share",
                "Least share of cells that changed in a column, at the last alarm of this run.",
            )
            lines += _head(name, "gauge", about)
            lines += [f'isopleth_monitor_{name}{{column="{_label(c)}"}} {_number(v)}' for c, v in self._shares.items()]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP isopleth_monitor_{name} {about}", f"# TYPE isopleth_monitor_{name} {kind}"


def _number(value: float) -> str:
    return "NaN" if np.isnan(value) else repr(value)


def _label(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_SOURCE = Path("standard input")
_BYTES = 2**16
# Longest line in bytes. A longer one is refused, because it would fill the memory.
_LONGEST = 2**24

_DELIMITERS = ("\t", ";", ",")


@dataclass(eq=False)
class Batch:
    """Rows that were read together.

    Parameters
    ----------
    values : ndarray of shape (k, d) or pyarrow.Table
        Rows before the first line that cannot be used.
    error : InputError or None
        Error about that line.
    """

    values: Any
    error: InputError | None = None


@dataclass(eq=False)
class RowReader:
    """Reader of rows from lines of text: columns by name where both have names, else by position.

    Parameters
    ----------
    names : list of str
        The columns, in the order of the reference.
    named : bool
        Whether the names mean something.
    kinds : Schema, optional
        What the columns of the reference hold, if there are words or times.
    missing : sequence of str, optional
        Words that mean a missing cell.
    """

    names: list[str]
    named: bool
    kinds: Schema | None = None
    missing: Sequence[str] | None = None
    _line: int = 0
    _delimiter: str = ","
    _where: list[int] = field(default_factory=list)
    _width: int = 0

    def batches(self, stream: BinaryIO) -> Iterator[Batch]:
        """Yield rows as soon as their lines are complete or the stream has ended."""
        read = getattr(stream, "read1", stream.read)
        left = b""
        while chunk := read(_BYTES):
            *lines, left = (left + chunk).split(b"\n")
            if lines:
                yield self._batch(lines)
            if len(left) > _LONGEST:
                self._line += 1
                raise InputError(
                    f"{self._here}: more than {_LONGEST:,} bytes without an end of line; send one row a line."
                )
        if left.strip():
            yield self._batch([left])

    def _batch(self, lines: list[bytes]) -> Batch:
        records, numbers, error = self._records(lines)
        if records:
            values, wrong = self._values(records, numbers)
            return Batch(values, wrong or error)
        return Batch(np.empty((0, len(self.names))), error)

    def _records(self, lines: list[bytes]) -> tuple[list[list[str]], list[int], InputError | None]:
        """Return the cells of each line, up to the first line that cannot be used."""
        records: list[list[str]] = []
        numbers: list[int] = []
        for line in lines:
            self._line += 1
            if not line.strip():
                continue
            try:
                cells = self._cells(line)
                if cells and not self._where and not self._begin(cells):
                    continue
                if cells and len(cells) != self._width:
                    raise InputError(
                        f"{self._here}: {len(cells)} cell{'s' if len(cells) > 1 else ''} where the first line has "
                        f"{self._width}; correct that line."
                    )
            except InputError as error:
                return records, numbers, error
            if cells:
                records.append([cells[position] for position in self._where])
                numbers.append(self._line)
        return records, numbers, None

    @property
    def _here(self) -> str:
        return f"{_SOURCE}, line {self._line}"

    def _cells(self, line: bytes) -> list[str]:
        try:
            text = line.decode("utf-8-sig" if self._line == 1 else "utf-8").strip("\r")
        except UnicodeDecodeError:
            raise InputError(f"{self._here}: not UTF-8 text; send the rows as UTF-8.") from None
        if not self._where:
            widths = {delimiter: text.count(delimiter) for delimiter in _DELIMITERS}
            self._delimiter = max(reversed(_DELIMITERS), key=lambda d: widths[d])
        try:
            return next(csv.reader([text], delimiter=self._delimiter, skipinitialspace=True, strict=True), [])
        except csv.Error as error:
            raise InputError(f"{self._here}: no row of CSV ({error}); send one row a line, quotes closed.") from None

    def _begin(self, first: list[str]) -> bool:
        """Find the columns by the first line; return whether that line is a row."""
        found = header_names(_SOURCE, first)
        self._width = len(first)
        if found is not None and not set(self.names) <= set(found) and all(kind_of(cell) == "number" for cell in first):
            found = None  # 0, 1, 2, ... is a header only where the reference has that one
        if found is None or not self.named:
            if len(first) != len(self.names):
                raise InputError(
                    f"{_SOURCE} has {len(first)} columns where the reference has {len(self.names)}; send those of the "
                    f"reference, or a header with their names: {listed(self.names)}."
                )
            self._where = list(range(len(first)))
            return found is None
        missing = [name for name in self.names if name not in found]
        if missing:
            raise InputError(
                f"{_SOURCE} lacks {listed(missing)} of the reference's columns; it has {listed(found)}; give both the same "
                "names, or choose the columns with --columns."
            )
        self._where = [found.index(name) for name in self.names]
        return False

    def _values(self, records: list[list[str]], numbers: list[int]) -> tuple[Any, InputError | None]:
        """Return the cells of lines, up to the first one that cannot be used, and what is wrong with that one."""
        missing = missing_words(self.missing)
        gone = np.array([[cell.strip() in missing for cell in record] for record in records])
        cells = [list(column) for column in zip(*records, strict=True)]
        read = [self._column(j, column, gone[:, j], numbers) for j, column in enumerate(cells)]
        bad = np.stack([wrong for _, wrong in read], axis=1) & ~gone
        stop, error = len(records), None
        if bad.any():
            stop = int(np.argmax(bad.any(axis=1)))
            place = int(np.argmax(bad[stop]))
            wanted = "time such as 2024-01-31 12:00" if self._kind(place) == "time" else "finite number"
            error = InputError(
                f"{_SOURCE}, line {numbers[stop]}: {cut(records[stop][place])} in column {self.names[place]!r} is no {wanted}; "
                "leave that row out, or fill the cell."
            )
        if self.kinds is None:
            return np.stack([values for values, _ in read], axis=1)[:stop], error
        import pyarrow as pa

        return pa.table([values for values, _ in read], names=self.names).slice(0, stop), error

    def _kind(self, j: int) -> str:
        return "numeric" if self.kinds is None else self.kinds.columns[j].kind

    def _column(self, j: int, cells: list[str], gone: np.ndarray, lines: list[int]) -> tuple[Any, np.ndarray]:
        """Return the cells of a column, and which of them it cannot hold."""
        if self._kind(j) == "numeric":
            column = Column(self.names[j])
            column.add(["0" if lost else cell for cell, lost in zip(cells, gone, strict=True)], lines)
            wrong = ~np.isfinite(column.values)
            return np.where(gone | wrong, np.nan, column.values), wrong
        import pyarrow as pa

        found: list[Any] = [None if lost else cell.strip() for cell, lost in zip(cells, gone, strict=True)]
        if self._kind(j) == "time":
            moments = [None if cell is None else moment(cell) for cell in found]
            return pa.array(moments, pa.timestamp("us")), np.array([at is None for at in moments])
        if self.kinds is not None and set(self.kinds.columns[j].levels) <= {"True", "False"}:
            found = [cell and cell.capitalize() for cell in found]
        return pa.array(found, pa.string()).dictionary_encode(), np.zeros(len(found), dtype=bool)
