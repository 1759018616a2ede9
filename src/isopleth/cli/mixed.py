"""Read tables with words, times and missing cells, for the commands that take them whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isopleth.cli.columns import KindTable, read_for_model, read_kinds, read_two_kinds, refuse_mismatch
from isopleth.cli.messages import say
from isopleth.cli.models import columns_at_fit
from isopleth.cli.options import TableOptions
from isopleth.errors import InputError, Message
from isopleth.io import Frame, Table, read_frame, read_names, read_table
from isopleth.tables.schema import Schema, decode_cells

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class MixedTable(Table):
    """Table with words, times or missing cells.

    Its `values` are objects: numbers, words, times, and None for missing cells; floats with NaN if all columns hold numbers.

    Parameters
    ----------
    read : KindTable
        What a model is fitted to.
    """

    read: KindTable | None = None


def rows_of(table: Table) -> Any:
    """Return what a model is asked about: the frame of a table with words or gaps, numbers otherwise."""
    return table.read.data if isinstance(table, MixedTable) and table.read else table.values


def some_rows(table: Table, rows: np.ndarray) -> Any:
    """Return some rows of :func:`rows_of`."""
    data = rows_of(table)
    return data[rows] if isinstance(data, np.ndarray) else data.take(rows)


def kinds_in_words(table: Table) -> str:
    """Return how many columns of each kind a table has, and what was left out."""
    if isinstance(table, MixedTable) and table.read:
        return table.read.kinds.summary(len(table.values)).split(": ", 1)[1]
    return f"{len(table.names):,} number{'s' if len(table.names) > 1 else ''}"


def decided(estimator: T, table: Table) -> T:
    """Return an estimator whose next fit takes the columns of `table` as what they were decided to be."""
    if isinstance(table, MixedTable) and table.read:
        estimator._decided_columns = table.read.kinds  # type: ignore[attr-defined]
    return estimator


def read_two_mixed(a: Path, b: Path, options: TableOptions, *, by_name: bool) -> tuple[Table, Table]:
    """Read two tables whose columns are compared; the rows of both decide what the columns hold.

    Returns
    -------
    tuple of Table
        A :class:`MixedTable` each if there are words, times or missing cells in one of them.

    Raises
    ------
    InputError
        As :func:`~isopleth.cli.columns.read_two_kinds`.
    """
    both = read_two_kinds(a, b, options, by_name=by_name)
    first, second = (_mixed(path, read) for path, read in zip((a, b), both, strict=True))
    kinds = both[0].kinds
    if kinds.left_out:
        say(f"{a} and {b}: {kinds.summary(len(first.values) + len(second.values))}")
    for note in dict.fromkeys([*both[0].frame.notes, *both[1].frame.notes, *kinds.notes]):
        say(note)
    if _has_words(kinds) or any(np.isnan(table.values).any() for table in (first, second)):
        return first, second
    tables = []
    for path, read in zip((a, b), both, strict=True):
        # Files of numbers are read by a reader that also warns of integers that were rounded.
        own = read.names if not kinds.named else [read.names[both[0].names.index(str(name))] for name in kinds.names]
        own = list(map(str, kinds.names)) if kinds.named and by_name else own
        tables.append(read_table(path, own, min_rows=1, decimal=options.decimal))
    return tables[0], tables[1]


def read_mixed(path: Path, options: TableOptions, *, min_rows: int = 2) -> Table:
    """Read the columns of a table that a command uses, and say what each was taken as.

    Returns
    -------
    Table
        A :class:`MixedTable` if there are words, times or missing cells.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    read = read_kinds(path, options, min_rows=min_rows, silent=True)
    table = _mixed(path, read)
    _say(read.frame, read.kinds, table)
    if isinstance(read.data, np.ndarray) and np.isinf(read.data).any():
        read_table(path, read.names, min_rows=min_rows)  # which names the rows
    if _has_words(read.kinds) or np.isnan(table.values).any():
        return table
    # Files of numbers are read by a reader that also warns of integers that were rounded.
    return read_table(path, table.names, min_rows=min_rows, decimal=options.decimal)


def _say(frame: Frame, kinds: Schema, table: Table) -> None:
    missing = _missing_cells(table.values)
    counts = missing.sum(axis=0)
    notes = [*frame.notes, *kinds.notes]
    if counts.any() or kinds.left_out or notes or _has_words(kinds):
        where = (
            f"of {table.names[counts.argmax()]}"
            if np.count_nonzero(counts) == 1
            else f"in {(counts > 0).sum()} columns"
        )
        cells = "missing cell" if counts.sum() == 1 else "missing cells"
        say(
            f"{frame.source}: {kinds.summary(len(missing))}"
            + (f"; {counts.sum():,} {cells} {where}" if counts.any() else "")
        )
    for note in notes:
        say(note.located(None, frame.place) if isinstance(note, Message) else note)


def _has_words(kinds: Schema) -> bool:
    return any(column.kind != "numeric" for column in kinds.columns)


def _missing_cells(values: np.ndarray) -> np.ndarray:
    if values.dtype != object:
        return np.isnan(values)
    return np.array([[cell is None for cell in row] for row in values])


def _mixed(path: Path, read: KindTable) -> MixedTable:
    """Return a table with the cells of the columns that are used."""
    frame, kinds = read.frame, read.kinds
    names = [str(name) if kinds.named else read.names[int(name)] for name in kinds.names]
    try:
        encoded = kinds.encode(read.data)
    except InputError as error:
        raise error.located(path, frame.place) from None
    if not _has_words(kinds):
        return MixedTable(encoded.numeric, names, frame.named, path, frame.lines, read)
    numbers, codes = iter(encoded.numeric.T), iter(encoded.codes.T)
    cells = np.empty((len(encoded.numeric), len(kinds.columns)), dtype=object)
    for j, column in enumerate(kinds.columns):
        if column.kind == "categorical":
            cells[:, j] = _words(read, column, next(codes))
            continue
        values = next(numbers)
        known = ~np.isnan(values)
        cells[known, j] = decode_cells(column, values[known]) if column.kind == "time" else values[known]
    return MixedTable(cells, names, frame.named, path, frame.lines, read)


def _words(read: KindTable, column: Any, codes: np.ndarray) -> list[Any]:
    """Return the words of a column; words that no row of the fit had as they are in the file."""
    count = len(column.levels)
    words: list[Any] = [column.levels[code] if 0 <= code < count else None for code in codes]
    unseen = np.flatnonzero(codes == count)
    if len(unseen):
        data = read.data
        cells = data[:, column.name] if isinstance(data, np.ndarray) else data.column(str(column.name)).to_pylist()
        for row in unseen:
            words[int(row)] = str(cells[int(row)])
    return words


def read_for_detector(path: Path, options: TableOptions, detector: Any) -> Table:
    """Read the columns that a detector, or another model of whole tables, was fitted on, in its order.

    Raises
    ------
    InputError
        As :func:`~isopleth.cli.columns.read_for_model`.
    """
    kinds = getattr(detector, "_table_columns", None)
    if kinds is None:
        return _numbers(path, options, detector)
    how: dict[str, Any] = {"missing": options.missing, "decimal": options.decimal}
    names = None
    if kinds.named:
        names, present = [str(name) for name in kinds.names], read_names(path)
        if present is None:
            raise InputError(f"{path} names no columns; add a header with those of the model: {', '.join(names)}.")
        refuse_mismatch(path, names, options.columns or present, chosen=options.columns is not None)
    frame = read_frame(path, names, min_rows=1, **how)
    read = KindTable(frame.data, frame.names, kinds, frame)
    table = _mixed(path, read)
    _say(frame, kinds, table)
    return table


def _numbers(path: Path, options: TableOptions, detector: Any) -> Table:
    """Read the columns of a detector that was fitted to complete rows of numbers; the file may have gaps."""
    count, names = columns_at_fit(detector)
    try:
        return read_for_model(path, options, count, names)
    except InputError:
        try:
            frame = read_frame(
                path, options.columns or names, missing=options.missing, decimal=options.decimal, min_rows=1
            )
            numbers = Schema.of_numbers(list(frame.names), True)
            data = frame.data
            values = data if isinstance(data, np.ndarray) else numbers.encode(data).numeric
        except InputError:
            values = np.empty((0, 0))
        if values.shape[1] != count or np.isinf(values).any():
            raise
        return Table(values, names or frame.names, frame.named, path, frame.lines)
