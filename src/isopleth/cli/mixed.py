"""Read tables with words, times and missing cells, for the commands that take them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.cli.columns import (
    decided_kinds,
    finite_numbers,
    missing_of,
    read_for_model,
    read_kinds_frame,
    refuse_mismatch,
)
from isopleth.cli.messages import say
from isopleth.cli.models import columns_at_fit
from isopleth.cli.options import TableOptions
from isopleth.columns import TableColumns, decode_cells
from isopleth.errors import InputError
from isopleth.io import Frame, Table, open_rows, read_frame, read_frame_chunks, read_names, read_table
from isopleth.io.source import Block

# Rows of a file larger than memory by which the types of its columns are decided.
_FIRST_ROWS = 100_000

# A column of text with this share of numbers, and more different ones than codes have, is one of numbers with mistakes.
_NUMBER = r"^[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?$"
_MOSTLY, _DIFFERENT = 0.9, 20


@dataclass(frozen=True, eq=False)
class MixedTable(Table):
    """Table with words, times or missing cells; its `values` are objects: numbers, words, times, and None for missing cells.

    Parameters
    ----------
    data : pyarrow.Table
        What a model is given.
    kinds : TableColumns
        What its columns are taken as.
    """

    data: Any = None
    kinds: TableColumns | None = None


def rows_of(table: Table) -> Any:
    """Return what a model is given: the data of a table with words, numbers otherwise."""
    return table.data if isinstance(table, MixedTable) else table.values


def kinds_in_words(table: Table) -> str:
    """Return how many columns of each kind a table has, and what was left out."""
    if isinstance(table, MixedTable) and table.kinds is not None:
        return table.kinds.summary(len(table.values)).split(": ", 1)[1]
    return _counted(len(table.names), "number", "numbers")


def read_mixed(path: Path, options: TableOptions, *, min_rows: int = 2) -> Table:
    """Read the columns of a table that a command uses, and say what each was taken as.

    Returns
    -------
    Table
        A :class:`MixedTable` if there are words or times. A table of numbers has NaN in missing cells.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    frame = read_kinds_frame(path, options, min_rows)
    if isinstance(frame.data, np.ndarray):
        gaps = np.isnan(frame.data)
        if not gaps.any():
            return read_table(path, frame.names, min_rows=min_rows)
        if np.isinf(frame.data).any():
            read_table(path, frame.names, min_rows=min_rows)  # which names the rows
        say(f"{len(gaps):,} rows: {_counted(gaps.shape[1], 'number', 'numbers')}{_missing_cells(gaps, frame.names)}")
        return Table(frame.data, frame.names, False, path)
    with _lines_of(path, frame):
        kinds = decided_kinds(path, frame, options)
        _refuse_stray_words(path, frame, kinds, options)
        encoded = kinds.encode(frame.data, missing_of(options))
    names = [str(name) for name in kinds.names]
    missing = np.column_stack([np.isnan(encoded.numeric), encoded.codes < 0])[:, np.argsort(kinds.order)]
    if kinds.left_out or missing.any() or any(column.kind != "numeric" for column in kinds.columns):
        say(kinds.summary(len(frame.data)) + _missing_cells(missing, names))
    for note in [*frame.notes, *kinds.notes]:
        say(note)
    if all(column.kind == "numeric" for column in kinds.columns):
        values = finite_numbers(path, names, encoded.numeric, frame, options, min_rows)
        return Table(values, names, frame.named, path, frame.lines)
    return _mixed(path, frame, kinds, options)


def _refuse_stray_words(path: Path, frame: Frame, kinds: TableColumns, options: TableOptions) -> None:
    """Refuse a few words in a column of many different numbers, which are more likely a mistake than categories."""
    import pyarrow.compute as compute

    for column in kinds.columns:
        if column.kind != "categorical" or column.name in (options.categorical or []):
            continue
        cells = frame.data.column(str(column.name))
        if str(cells.type) not in ("string", "large_string"):
            continue
        numbers = cells.filter(compute.match_substring_regex(cells, _NUMBER))
        if len(numbers) >= _MOSTLY * (len(cells) - cells.null_count) and len(numbers.unique()) > _DIFFERENT:
            read_table(path, [str(column.name)], min_rows=1, decimal=options.decimal)  # which names the line


def read_two_mixed(a: Path, b: Path, options: TableOptions, *, by_name: bool) -> tuple[Table, Table]:
    """Read two tables whose columns are compared, by name or by position; the rows of both decide what the columns hold.

    Raises
    ------
    InputError
        If a file cannot be read, or they do not have the same number of columns.
    """
    frames = [read_kinds_frame(path, options, 1) for path in (a, b)]
    if len(frames[0].names) != len(frames[1].names):
        raise InputError(
            f"{a} has {len(frames[0].names)} columns and {b} has {len(frames[1].names)}; choose the same ones with --columns."
        )
    first, second = (_with_names(frame, frames[0].names, by_name=by_name) for frame in frames)
    if isinstance(first.data, np.ndarray) or isinstance(second.data, np.ndarray):
        return _numbers_of(a, first, options), _numbers_of(b, second, options)
    kinds = decided_kinds(a, first, options, second)
    names = [str(name) for name in kinds.names]
    if kinds.left_out:
        say(kinds.summary(len(first.data) + len(second.data)))
    for note in [*first.notes, *second.notes, *kinds.notes]:
        say(note)
    tables: list[Table] = []
    for path, frame in ((a, first), (b, second)):
        with _lines_of(path, frame):
            if all(column.kind == "numeric" for column in kinds.columns):
                values = kinds.encode(frame.data, missing_of(options)).numeric
                finite_numbers(path, names, values, frame, options, 1)
                tables.append(Table(values, names, frame.named, path, frame.lines))
            else:
                tables.append(_mixed(path, frame, kinds, options))
    return tables[0], tables[1]


def _with_names(frame: Frame, names: list[str], *, by_name: bool) -> Frame:
    """Return a frame with its columns in the order of `names`, or by these names if they are matched by position."""
    if isinstance(frame.data, np.ndarray):
        return frame
    data = frame.data.select(names) if by_name else frame.data.rename_columns(names)
    return replace(frame, data=data, names=list(names))


def _numbers_of(path: Path, frame: Frame, options: TableOptions) -> Table:
    """Return the table of a frame that is compared with an array."""
    if isinstance(frame.data, np.ndarray):
        if np.isinf(frame.data).any():
            read_table(path, frame.names, min_rows=1)  # which names the rows
        return Table(frame.data, frame.names, False, path)
    kinds = TableColumns.of_numbers(list(frame.names), True)
    with _lines_of(path, frame):
        values = kinds.encode(frame.data, missing_of(options)).numeric
    return Table(
        finite_numbers(path, frame.names, values, frame, options, 1), frame.names, frame.named, path, frame.lines
    )


def _mixed(path: Path, frame: Frame, kinds: TableColumns, options: TableOptions) -> MixedTable:
    """Return the used columns, with types that say what they were taken as, and their cells."""
    import pyarrow as pa

    encoded = kinds.encode(frame.data, missing_of(options))
    numbers, codes = iter(encoded.numeric.T), iter(encoded.codes.T)
    arrays, cells = [], np.empty((len(frame.data), len(kinds.columns)), dtype=object)
    for j, column in enumerate(kinds.columns):
        if column.kind == "categorical":
            coded = next(codes)
            words = [*column.levels, None]
            texts: list[Any] = [words[code] if code < len(column.levels) else None for code in coded]
            if column.name in encoded.unseen:
                written = frame.data.column(str(column.name)).to_pylist()
                for row in np.flatnonzero(coded == len(column.levels)):
                    texts[int(row)] = str(written[row])
            arrays.append(pa.array(texts, pa.string()).dictionary_encode())
            cells[:, j] = texts
        else:
            values = next(numbers)
            known = ~np.isnan(values)
            objects: Any = np.where(known, values, None)
            if column.kind == "time":
                objects[known] = decode_cells(column, values[known])
                arrays.append(pa.array(list(objects), pa.timestamp("us")))
            else:
                arrays.append(pa.array(values, pa.float64(), from_pandas=True))
            cells[:, j] = list(objects)
    names = [str(name) for name in kinds.names]
    return MixedTable(cells, names, frame.named, path, frame.lines, pa.table(arrays, names=names), kinds)


def _absent(cells: np.ndarray) -> np.ndarray:
    return np.array([[cell is None for cell in row] for row in cells])


def _missing_cells(missing: np.ndarray, names: list[str]) -> str:
    """Return how many cells are missing, as the end of a summary."""
    counts = missing.sum(axis=0)
    if not counts.any():
        return ""
    most = int(np.argmax(counts))
    where = f" of {names[most]}" if np.count_nonzero(counts) == 1 else f" in {np.count_nonzero(counts)} columns"
    return f"; {_counted(int(counts.sum()), 'missing cell', 'missing cells')}{where}"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


@contextmanager
def _lines_of(path: Path, frame: Frame) -> Iterator[None]:
    """Name the file, and lines in the place of rows, in refusals."""
    try:
        yield
    except InputError as error:
        message = re.sub(r"\bin row (\d+)\b", lambda found: f"at {frame.place(int(found[1]))}", str(error))
        raise InputError(message if message.startswith(str(path)) else f"{path}: {message}") from None


def kinds_of_model(model: Any) -> TableColumns | None:
    """Return the kinds of the columns that a model was fitted on; None if they are numbers without gaps."""
    return getattr(model, "_table_columns", None)


def read_for_detector(path: Path, options: TableOptions, detector: Any) -> Table:
    """Read the columns that a detector was fitted on, in its order.

    Raises
    ------
    InputError
        As :func:`~isopleth.cli.columns.read_for_model`.
    """
    kinds = kinds_of_model(detector)
    if kinds is not None:
        frame = _frame_of(path, options, kinds)
        with _lines_of(path, frame):
            table = _mixed(path, frame, kinds, options)
        say(kinds.summary(len(table.values)) + _missing_cells(_absent(table.values), table.names))
        return table
    expected = columns_at_fit(detector)
    try:
        return read_for_model(path, options, *expected)
    except InputError:
        numbers = _with_gaps(path, options, *expected)
        if numbers is None:
            raise
        return numbers


def _with_gaps(path: Path, options: TableOptions, count: int, names: list[str] | None) -> Table | None:
    """Return a table of numbers and missing cells; None if the file holds anything else or other columns."""
    try:
        frame = read_frame(path, options.columns or names, missing=options.missing, decimal=options.decimal, min_rows=1)
        if isinstance(frame.data, np.ndarray):
            values = frame.data
        else:
            values = TableColumns.of_numbers(list(frame.names), True).encode(frame.data, missing_of(options)).numeric
    except InputError:
        return None
    if values.shape[1] != count or np.isinf(values).any():
        return None
    return Table(values, names or frame.names, frame.named, path, frame.lines)


def _frame_of(path: Path, options: TableOptions, kinds: TableColumns, most: int | None = None) -> Frame:
    names, present = [str(name) for name in kinds.names], read_names(path)
    if present is None:
        raise InputError(f"{path} names no columns; the model was fitted on {', '.join(names)}.")
    refuse_mismatch(path, names, options.columns or present, chosen=options.columns is not None)
    return read_frame(path, names, missing=options.missing, decimal=options.decimal, min_rows=1, most=most)


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows of a file for a model of a table with words, read in chunks; as :class:`~isopleth.io.FileRows`."""

    source: Path
    names: list[str]
    n_rows: int
    _first: Frame
    _kinds: TableColumns
    _options: TableOptions

    @property
    def chunk_rows(self) -> int:
        """Number of rows in a chunk."""
        return max(1, 2**20 // len(self.names))

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Block]:
        """Yield the rows from `start` on, `rows` at a time, as frames."""
        done = 0
        for frame in _chunks(self.source, self._first, rows or self.chunk_rows, self._options):
            done += len(frame.data)
            if done > start:
                with _lines_of(self.source, frame):
                    yield Block(_mixed(self.source, frame, self._kinds, self._options).data, frame.lines)


def _chunks(path: Path, first: Frame, rows: int, options: TableOptions) -> Iterator[Frame]:
    return read_frame_chunks(path, first, rows, missing=options.missing, decimal=options.decimal)


def open_for_model(path: Path, options: TableOptions, model: Any, progress: Any) -> Any:
    """Open the columns that a model was fitted on, to be read in chunks."""
    kinds = kinds_of_model(model)
    if kinds is None:
        return read_for_model(
            path, options, *columns_at_fit(model), lambda *a, **k: open_rows(*a, progress=progress, **k)
        )
    first = _frame_of(path, options, kinds, _FIRST_ROWS)
    count = sum(len(frame.data) for frame in _chunks(path, first, 2**16, options))
    say(kinds.summary(count))
    return MixedRows(path, first.names, count, first, kinds, options)
