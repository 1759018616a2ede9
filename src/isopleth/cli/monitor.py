"""``isopleth monitor``: read rows from standard input and print alarms when they differ from a reference."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import click
import numpy as np

from isopleth.cli.columns import read_numbers
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.models import matched_columns, of_this_version
from isopleth.cli.options import TableOptions
from isopleth.cli.text import counted
from isopleth.errors import InputError
from isopleth.io import Table, check_target, load, save
from isopleth.io.files import remove_leftovers, sole_run
from isopleth.io.source import listed
from isopleth.io.text_columns import Column, cut, header_names, kind_of
from isopleth.rows import row_keys
from isopleth.tasks.drift.alarms import DriftAlarms
from isopleth.tasks.drift.monitor import DriftMonitor


def monitor(
    reference: Path,
    state: Path | None,
    replay: bool,
    window: int,
    run_length: float,
    options: TableOptions,
    as_json: bool,
) -> None:
    """Watch rows from standard input and print alarms."""
    if replay and state is None:
        raise InputError("--replay skips the rows that a state file has counted: name it with --state.")
    if state is not None:
        check_target(state)
        click.get_current_context().with_resource(sole_run(state))
        remove_leftovers(state)  # of runs that were killed
    with Stages(["reading", "fitting"]) as stage:
        stage("reading")
        table = read_numbers(reference, options)
        stage("fitting")
        watching = _known(state, table, window, run_length) if state and state.exists() else None
        if watching is None:
            watching = _fitted(table, window, run_length)
            if state is not None:
                save(watching, state)
    skip = watching.state_.rows if replay else 0
    for batch in RowReader(table.names, table.named).batches(sys.stdin.buffer):
        skipped, skip = min(skip, len(batch.values)), max(0, skip - len(batch.values))
        if skipped < len(batch.values):
            with matched_columns():
                _print(watching.update(batch.values[skipped:]), as_json)
            if state is not None:
                save(watching, state)
        if batch.error is not None:
            raise batch.error
    if not as_json:
        rows, alarms = watching.state_.rows, watching.state_.alarms
        click.echo(f"{counted(rows, 'row')}, {counted(alarms, 'alarm')}")


def _fitted(table: Table, window: int, run_length: float) -> DriftMonitor:
    """Return a fitted monitor, with a fixed seed so that each run gives the same alarms."""
    with naming_columns(table.names):
        watching = DriftMonitor(window, run_length, random_state=0).fit(table.values)
    if table.named:
        watching.feature_names_in_ = np.array(table.names, dtype=object)
    return watching


def _known(state: Path, table: Table, window: int, run_length: float) -> DriftMonitor:
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
        had = (watching.window, watching.expected_run_length)
        same = watching._reference_key == int(row_keys(table.values).sum())
    if had != (window, run_length):
        raise InputError(
            f"{state} was made with --window {had[0]} --run-length {had[1]:g}; give the same ones, or another file."
        )
    if not same:
        raise InputError(
            f"{state} was made with another reference than {table.source}, or with other columns of it; give the same ones, "
            "or another file."
        )
    # A state that does not fit is refused at the first row, not in the middle of a stream.
    with of_this_version(state), matched_columns():
        place = watching.state_
        watching.update(table.values[:1])
        watching.state_ = place
    return watching


def _print(alarms: DriftAlarms, as_json: bool) -> None:
    """Print alarms at once, for a reader that waits for them."""
    for row, first, statistic, threshold in zip(*alarms.table().values(), strict=True):
        if as_json:
            values = {"row": int(row) + 1, "first_row": int(first) + 1}
            click.echo(json.dumps(values | {"statistic": float(statistic), "threshold": float(threshold)}))
        else:
            click.echo(
                f"row {row + 1}: rows {first + 1} to {row + 1} differ from the reference "
                f"(distance {statistic:.4g}, threshold {threshold:.4g})"
            )


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
    values : ndarray of shape (k, d)
        Rows before the first line that cannot be used.
    error : InputError or None
        Error about that line.
    """

    values: np.ndarray
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
    """

    names: list[str]
    named: bool
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
            raise InputError(f"{_SOURCE} lacks {listed(missing)} of the reference's columns; it has {listed(found)}.")
        self._where = [found.index(name) for name in self.names]
        return False

    def _values(self, records: list[list[str]], numbers: list[int]) -> tuple[np.ndarray, InputError | None]:
        columns = [Column(name) for name in self.names]
        for column, cells in zip(columns, zip(*records, strict=True), strict=True):
            column.add(cells, numbers)
        values = np.stack([column.values for column in columns], axis=1)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if not len(bad):
            return values, None
        row = int(bad[0])
        place = int(np.argmin(np.isfinite(values[row])))
        return values[:row], InputError(
            f"{_SOURCE}, line {numbers[row]}: {cut(records[row][place])} in column {self.names[place]!r} is no finite number; "
            "leave that row out, or fill the cell."
        )
