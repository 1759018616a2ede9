"""Tables in files with all kinds of columns: numbers, words, times, and missing cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from isopleth.errors import InputError, require
from isopleth.io.arrow_text import NotPlainError, trimmed
from isopleth.io.csv_file import Begun, opened, parse, repeated_header
from isopleth.io.parquet_file import column_names, floats, opened_parquet
from isopleth.io.source import Origin, UncheckedTable, positions, refuse_text
from isopleth.io.text_columns import Labels, warn_of_numbered_header
from isopleth.tables.cells import MISSING_WORDS
from isopleth.tables.numerals import Numerals
from isopleth.tables.typed import typed, without_missing

# Rows that the exact reader turns into Arrow arrays at a time.
_ROWS_AT_A_TIME = 8192


@dataclass(frozen=True, eq=False)
class Frame:
    """Table of a file with columns of all kinds.

    Parameters
    ----------
    data : pyarrow.Table or ndarray
        The columns: numbers, words, booleans or times, null where a cell is missing. Files of arrays give an array.
    names : list of str
        One a column; ``x1``, ``x2``, ... where the file has none.
    named : bool
        Whether the names come from the file.
    source : Path
        The file.
    lines : ndarray of shape (n,), optional
        For text files and workbooks, the line on which each row begins, counted from 1.
    notes : tuple of str
        Sentences about the format that was recognised, such as a decimal comma.
    """

    data: Any
    names: list[str]
    named: bool
    source: Path
    lines: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def place(self, row: int) -> str:
        """Return where a row, counted from 0, stands in the file: "line 3" or "row 2"."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"


@dataclass(frozen=True)
class Reading:
    """Options for reading a file.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns to read, in this order; all by default.
    exclude : sequence of str
        Columns that are not read.
    missing : frozenset of str
        Words that mean a missing cell.
    decimal : {".", ","}, optional
        The decimal sign; recognised by default.
    most : int, optional
        Read so many rows at most.
    """

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    missing: frozenset[str] = MISSING_WORDS
    decimal: str | None = None
    most: int | None = None

    def chosen(self, path: Origin, names: Sequence[str]) -> list[int]:
        """Return the positions of the columns to read."""
        unknown = [name for name in self.exclude if name not in names]
        if unknown:
            positions(path, names, unknown)  # which refuses them
        return [j for j in positions(path, names, self.columns) if names[j] not in self.exclude]


def csv_frame(path: Origin, delimiter: str | None, how: Reading) -> Frame:
    """Read a text file."""
    with opened(path) as lines:
        begun = Begun(path, lines, delimiter, how.decimal)
        if begun.named:
            warn_of_numbered_header(path, begun.first)
        where = how.chosen(path, begun.names)
        names = [begun.names[j] for j in where]
        columns, numbers = _plain_columns(path, begun, where, how.most) or _exact_columns(path, begun, where, how.most)
    return _text_frame(path, begun, names, columns, numbers, how)


def _text_frame(
    path: Origin, begun: Begun, names: list[str], columns: list[Any], lines: np.ndarray, how: Reading
) -> Frame:
    import pyarrow as pa

    if not len(lines):
        raise InputError(f"{path} has a header but no rows; a table is needed.")
    found = [
        typed(name, cells, how.missing, begun.numerals, lambda row: f"{path}, line {lines[row]}")
        for name, cells in zip(names, columns, strict=True)
    ]
    return Frame(pa.table(found, names=names), names, begun.named, path.shown, lines, _notes(path, begun.numerals))


def _notes(path: Origin, numerals: Numerals) -> tuple[str, ...]:
    if numerals.decimal == ",":
        return (f"{path}: the comma is taken as the decimal sign.",)
    return (f"{path}: signs between groups of three digits are left out of numbers.",) if numerals.grouped else ()


def _plain_columns(
    path: Origin, begun: Begun, where: list[int], most: int | None
) -> tuple[list[Any], np.ndarray] | None:
    """Return the columns as strings and the lines of the rows; None where the exact reader is needed."""
    import pyarrow as pa

    if begun.plain is None or not where:
        return None
    batches, rows = [], 0
    try:
        for batch in begun.plain.batches(where):
            batches.append(batch)
            rows += batch.num_rows
            if most is not None and rows >= most:
                break
    except NotPlainError:
        return None
    table = pa.Table.from_batches(batches).slice(0, most) if batches else None
    if table is None:
        return None
    lines = begun.plain.lines(0, len(table))
    if begun.named:
        _refuse_repeated_header(path, begun, where, table, lines)
    return table.columns, lines


def _refuse_repeated_header(path: Origin, begun: Begun, where: list[int], table: Any, lines: np.ndarray) -> None:
    import pyarrow.compute as compute

    same = None
    for j, cells in zip(where, table.columns, strict=True):
        equal = compute.equal(cells, begun.first[j])
        same = equal if same is None else compute.and_(same, equal)
        if not compute.any(same).as_py():
            return
    # Cells of other columns may differ; the exact reader, which sees them, refuses those rows only.
    row = compute.index(same, True).as_py()
    if len(where) == len(begun.names):
        raise repeated_header(path, int(lines[row]), begun.plain.first_line - 1 if begun.plain else 1)


def _exact_columns(path: Origin, begun: Begun, where: list[int], most: int | None) -> tuple[list[Any], np.ndarray]:
    import pyarrow as pa

    kept = {j: Labels() for j in where}
    numbers: list[np.ndarray] = []
    for few in parse(path, begun.rows, len(begun.names), kept):
        numbers.append(few)
        if most is not None and sum(map(len, numbers)) >= most:
            break
    lines = np.concatenate(numbers)[:most] if numbers else np.empty(0, dtype=np.int64)
    return [pa.chunked_array([pa.array(kept[j].cells[:most], pa.string())]) for j in where], lines


def csv_chunks(path: Origin, delimiter: str | None, how: Reading, like: Frame, rows: int) -> Iterator[Frame]:
    """Yield the rows of a text file, `rows` at a time, with the columns and kinds of `like`."""
    import pyarrow as pa

    with opened(path) as lines:
        begun = Begun(path, lines, delimiter, how.decimal)
        where = positions(path, begun.names, like.names)
        kinds = like.data.schema.types
        held, numbers = None, np.empty(0, dtype=np.int64)
        for table, more in _string_pieces(path, begun, where):
            held = table if held is None else pa.concat_tables([held, table])
            numbers = np.concatenate([numbers, more])
            while len(numbers) >= rows:
                yield _chunk(path, begun, held.slice(0, rows), numbers[:rows], kinds, how, like)
                held, numbers = held.slice(rows), numbers[rows:]
        if held is not None and len(numbers):
            yield _chunk(path, begun, held, numbers, kinds, how, like)


def _chunk(
    path: Origin, begun: Begun, strings: Any, lines: np.ndarray, kinds: list[Any], how: Reading, like: Frame
) -> Frame:
    import pyarrow as pa

    found = []
    for name, kind, cells in zip(like.names, kinds, strings.columns, strict=True):
        if pa.types.is_string(kind):  # digits among words stay as they are written
            found.append(without_missing(trimmed(cells), how.missing))
        else:
            found.append(typed(name, cells, how.missing, begun.numerals, lambda row: f"{path}, line {lines[row]}"))
    return Frame(pa.table(found, names=like.names), like.names, like.named, path.shown, lines)


def _string_pieces(path: Origin, begun: Begun, where: list[int]) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the columns as strings with the lines of the rows: by Arrow as far as it gets, then by the exact reader."""
    import pyarrow as pa

    names, done = [begun.names[j] for j in where], 0
    if begun.plain is not None:
        try:
            for batch in begun.plain.batches(where):
                yield pa.table(batch.columns, names=names), begun.plain.lines(done, batch.num_rows)
                done += batch.num_rows
            return
        except NotPlainError:
            pass
    begun.rows = islice(begun.rows, done, None)
    while few := list(islice(begun.rows, _ROWS_AT_A_TIME)):
        kept = {j: Labels() for j in where}
        lines = np.concatenate(list(parse(path, iter(few), len(begun.names), kept)))
        yield pa.table([pa.array(kept[j].cells, pa.string()) for j in where], names=names), lines


def whole_in_chunks(frame: Frame, rows: int) -> Iterator[Frame]:
    """Yield the rows of a frame in memory, `rows` at a time."""
    for start in range(0, len(frame.data), rows):
        data = frame.data[start : start + rows] if isinstance(frame.data, np.ndarray) else frame.data.slice(start, rows)
        yield replace(frame, data=data, lines=None if frame.lines is None else frame.lines[start : start + rows])


def parquet_chunks(path: Origin, how: Reading, like: Frame, rows: int) -> Iterator[Frame]:
    """Yield the rows of a Parquet file, `rows` at a time, with the columns of `like`."""
    import pyarrow as pa

    with opened_parquet(path) as file:
        for batch in file.iter_batches(rows, columns=like.names):
            yield _arrow_frame(path, pa.Table.from_batches([batch]).select(like.names), like.names, how)


def parquet_frame(path: Origin, how: Reading) -> Frame:
    """Read a Parquet file."""
    import pyarrow as pa

    with opened_parquet(path) as file:
        known = column_names(file)
        names = [known[j] for j in how.chosen(path, known)]
        if how.most is None:
            table = file.read(columns=names, use_threads=False)
        else:
            first = next(file.iter_batches(how.most, columns=names), None)
            table = file.schema_arrow.empty_table().select(names) if first is None else pa.Table.from_batches([first])
    return _arrow_frame(path, table.select(names), names, how)


def _arrow_frame(path: Origin, table: Any, names: list[str], how: Reading, lines: np.ndarray | None = None) -> Frame:
    """Return the frame of a table that has types of its own; columns of text may still hold numbers or times."""
    import pyarrow as pa

    def place(row: int) -> str:
        return f"{path}, " + (f"row {row + 1}" if lines is None else f"line {lines[row]}")

    found = []
    for name, cells in zip(names, table.columns, strict=True):
        kind = cells.type
        if pa.types.is_nested(kind):
            raise InputError(f"{path}: column {name!r} holds lists or records; leave it out, or make columns of them.")
        if pa.types.is_decimal(kind):
            cells = cells.cast(pa.float64())
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            cells = typed(name, cells.cast(pa.string()), how.missing, Numerals(), place)
        elif pa.types.is_null(kind):
            cells = cells.cast(pa.string())
        found.append(cells)
    return Frame(pa.table(found, names=names), names, True, path.shown, lines)


def json_frame(path: Origin, how: Reading) -> Frame:
    """Read a file with one JSON object a line; keys that a line lacks are missing cells."""
    import pyarrow as pa
    import pyarrow.json as arrow_json

    try:
        table = arrow_json.read_json(str(path.path), arrow_json.ReadOptions(use_threads=False, block_size=2**24))
        lines = np.arange(1, len(table) + 1) if _one_record_a_line(path, len(table)) else None
    except pa.ArrowInvalid:
        table, lines = _json_records(path)
    if lines is None:
        table, lines = _json_records(path)
    names = [table.column_names[j] for j in how.chosen(path, table.column_names)]
    table = table.slice(0, how.most)
    return _arrow_frame(path, table.select(names), names, how, lines[: len(table)])


def _one_record_a_line(path: Origin, rows: int) -> bool:
    with open(path.path, "rb") as file:
        return sum(1 for _ in file) == rows


def _json_records(path: Origin) -> tuple[Any, np.ndarray]:
    """Read line by line, and say which line is no object."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    with open(path.path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"{path}, line {number}: no JSON; write one object a line.") from None
            if not isinstance(record, dict):
                raise InputError(f"{path}, line {number}: no JSON object; write one object with named cells a line.")
            for name in record:
                columns.setdefault(name, [None] * len(lines))
            for name, cells in columns.items():
                cells.append(record.get(name))
            lines.append(number)
    if not lines:
        raise InputError(f"{path} is empty; a table is needed.")
    arrays = {name: _of_objects(path, name, cells, lines) for name, cells in columns.items()}
    return pa.table(arrays), np.array(lines, dtype=np.int64)


def _of_objects(path: Origin, name: str, cells: list[Any], lines: Sequence[int]) -> Any:
    """Return Python objects as an Arrow array; objects of several types become words."""
    import pyarrow as pa

    for line, cell in zip(lines, cells, strict=True):
        if isinstance(cell, (list, dict)):
            raise InputError(f"{path}, line {line}: column {name!r} holds lists or records; expected numbers or words.")
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def workbook_frame(path: Origin, how: Reading) -> Frame:
    """Read the first sheet of a workbook: names in its first row, a row of the table in each other one."""
    import pyarrow as pa

    openpyxl = require("openpyxl", "xlsx", "Reading workbooks")
    try:
        # Opened here: openpyxl refuses names with other suffixes, as those of temporary files.
        with open(path.path, "rb") as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            rows = [(i, row) for i, row in enumerate(book.worksheets[0].iter_rows(values_only=True), start=1)]
            book.close()
    except (BadZipFile, KeyError, IndexError, ValueError, OSError):
        raise InputError(f"{path} is damaged, or no workbook with a sheet; save it again.") from None
    rows = [(line, row) for line, row in rows if any(cell is not None for cell in row)]
    if len(rows) < 2:
        raise InputError(f"{path}: the first sheet has no rows below a header; a table is needed.")
    (first, header), body = rows[0], rows[1:]
    width = max(len(row) for _, row in rows)
    names = [str(cell).strip() if cell is not None else f"x{j + 1}" for j, cell in enumerate(header)]
    names += [f"x{j + 1}" for j in range(len(names), width)]
    for line, row in body:
        if row == header:
            raise repeated_header(path, line, first)
    where = how.chosen(path, names)
    lines = np.array([line for line, _ in body][: how.most], dtype=np.int64)
    cells = {
        names[j]: _of_objects(
            path, names[j], [row[j] if j < len(row) else None for _, row in body][: how.most], lines.tolist()
        )
        for j in where
    }
    return _arrow_frame(path, pa.table(cells), list(cells), how, lines)


def array_frame(path: Origin, values: np.ndarray, names: list[str], how: Reading) -> Frame:
    """Return the frame of an array."""
    where = how.chosen(path, names)
    return Frame(values[: how.most, where], [names[j] for j in where], False, path.shown)


def numbers_of(frame: Frame, path: Origin, *, chosen: bool) -> UncheckedTable:
    """Return the numbers of a frame, NaN for missing cells; booleans are 0 and 1.

    Raises
    ------
    InputError
        If a column holds words or times.
    """
    text = [name for name in frame.names if not _is_numeric(frame.data.column(name).type)]
    refuse_text(path, text, [name for name in frame.names if name not in text], chosen=chosen)
    values = np.empty((len(frame.data), len(frame.names)))
    for j, name in enumerate(frame.names):
        values[:, j] = floats(frame.data.column(name))
    return UncheckedTable(values, frame.names, frame.named, frame.lines)


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_null))


def missing_words(words: Sequence[str] | None) -> frozenset[str]:
    """Return the words that mean a missing cell; the default ones for None. An empty cell is always missing."""
    return MISSING_WORDS if words is None else frozenset({"", *words})
