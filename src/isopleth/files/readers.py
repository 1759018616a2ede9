"""Formats other than delimited text: JSONL, Parquet, Arrow, workbooks and NumPy's own files, as Arrow tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from isopleth.core.errors import InputError, Message
from isopleth.core.rows import ALL_INTEGERS
from isopleth.files.source import Source, refuse_half_characters
from isopleth.io.input_files import ArrayHeader, read_array_header

# Prefix of the column in which pandas stores the labels of the rows.
_INDEX = "__index_level_"
_CELL = 8  # bytes of a cell in memory, at least
_MOST_BATCH = 65_536
_NULL = re.compile(rb"^[ \t]*[^{\s]", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns as a format gives them: an Arrow table, whether the file names them, and the lines of rows if it has lines.

    Columns with cells of several types are text; `mixed` has their positions. `cells` are those of a workbook as text, and
    `notes` say what is doubtful about it.
    """

    data: Any
    named: bool = True
    lines: np.ndarray | None = None
    mixed: frozenset[int] = frozenset()
    cells: Any = None
    notes: tuple[Message, ...] = ()
    files: np.ndarray | None = None  # name of the file of each row, where several are one table


def table_of_array(values: np.ndarray) -> Any:
    """Return an array as an Arrow table with the columns x1, x2, ..."""
    names = [f"x{j + 1}" for j in range(values.shape[1])]
    large = values.dtype.kind in "iu" and values.size and max(int(values.max()), -int(values.min())) >= ALL_INTEGERS
    values = values if large else np.asarray(values, dtype=np.float64)
    arrays = [pa.array(np.ascontiguousarray(column), from_pandas=True) for column in values.T]
    return pa.table(arrays, names=names)


def read_json(source: Source) -> Columns:
    """Read a file with one JSON object a line; keys that a line lacks are missing cells."""
    tables, names, rows, size = [], dict[str, None](), 0, 2**16
    source.file.seek(0)
    while data := source.file.read(size):
        data += source.file.readline()
        # Arrow takes a line of null for a row of gaps, and crashes if it is the first; records over several lines are none.
        if _NULL.search(data):
            return _json_records(source)
        try:
            table = (
                arrow_json.read_json(
                    pa.BufferReader(data), arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
                )
                if data.strip()
                else pa.table({})
            )
        except pa.ArrowInvalid:
            return _json_records(source)
        blank = len(data.strip()) and len(table) != len(data.splitlines())
        if blank:
            return _json_records(source)
        new = [name for name in table.column_names if name not in names]
        names.update(dict.fromkeys(new))
        rows += len(table)
        source.refuse_beyond(rows * len(names) * _CELL, f"a table of {rows:,} rows and {len(names):,} different keys")
        tables.append(table)
        # A table may grow by a key a line, so pieces are small until the keys stay the same.
        size = 2**16 if new and len(tables) > 1 else min(2 * size, 2**23)
    try:
        whole = pa.concat_tables([t for t in tables if len(t)], promote_options="permissive") if rows else None
    except pa.ArrowException:
        return _json_records(source)
    if whole is None or not whole.num_columns:
        raise InputError(f"{source} is empty; a table is needed.")
    return Columns(whole, lines=np.arange(1, rows + 1))


def _json_records(source: Source) -> Columns:
    """Read line by line, and say which line is wrong."""
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    source.file.seek(0)
    for number, line in enumerate(source.file, start=1):
        if not line.strip():
            continue
        record = _record(source, number, line)
        for name in record:
            columns.setdefault(name, [None] * len(lines))
        for name, cells in columns.items():
            cells.append(record.get(name))
        lines.append(number)
        source.refuse_beyond(len(lines) * len(columns) * _CELL, f"a table of {len(columns):,} different keys")
    if not columns:
        raise InputError(f"{source} is empty; a table is needed.")
    refuse_half_characters(f"{source}: the key", list(columns))
    where = np.array(lines, dtype=np.int64)
    arrays = {name: array_of(source, name, cells, lines) for name, cells in columns.items()}
    return Columns(pa.table(arrays), True, where, mixed_columns(arrays.values(), columns.values()))


def _record(source: Source, number: int, line: bytes) -> dict[str, Any]:
    """Return one line of JSON as a record with distinct keys."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"{source}, line {number}: the key {twice!r} occurs more than once; give every cell its own name."
            )
        return found

    try:
        record = json.loads(line, object_pairs_hook=unique)
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError(f"{source}, line {number}: no JSON; write one object a line.") from None
    if not isinstance(record, dict):
        raise InputError(f"{source}, line {number}: no JSON object; write one object with named cells a line.")
    return record


def array_of(source: Source, name: str, cells: list[Any], lines: Sequence[int]) -> Any:
    """Return Python objects as an Arrow array; objects of several types become words."""
    for line, cell in zip(lines, cells, strict=True):
        if isinstance(cell, (list, dict)):
            raise InputError(
                f"{source}, line {line}: column {name!r} holds lists or records; expected numbers or words."
            )
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        words = [None if cell is None else str(cell) for cell in cells]
    except UnicodeEncodeError:
        words = cells
    try:
        return pa.array(words, pa.string())
    except UnicodeEncodeError:
        line = next(n for n, word in zip(lines, words, strict=True) if word and _is_not_utf8(word))
        raise InputError(
            f"{source}, line {line}: column {name!r} holds half of a character (a lone surrogate); correct the cell."
        ) from None


def mixed_columns(arrays: Iterable[Any], cells: Iterable[list[Any]]) -> frozenset[int]:
    """Return the positions of columns of text in which some cells are none."""
    each = enumerate(zip(arrays, cells, strict=True))
    return frozenset(
        j
        for j, (array, held) in each
        if pa.types.is_string(array.type) and not all(cell is None or isinstance(cell, str) for cell in held)
    )


def _is_not_utf8(word: Any) -> bool:
    """Tell whether a word cannot be written as UTF-8."""
    try:
        str(word).encode()
    except UnicodeEncodeError:
        return True
    return False


@contextmanager
def _opened_parquet(source: Source) -> Iterator[Any]:
    """Open a Parquet file; errors of its reader become one sentence."""
    from pyarrow import parquet

    source.file.seek(0)
    try:
        # Read in pieces: a group of rows may be as large as the file.
        yield parquet.ParquetFile(source.file, buffer_size=2**20, pre_buffer=False)
    except (pa.ArrowException, OSError):
        raise InputError(f"{source} is damaged or cut short, and is no Parquet table; save it again.") from None


def _parquet_names(file: Any) -> list[str]:
    return [name for name in file.schema_arrow.names if not name.startswith(_INDEX)]


def parquet_shape(source: Source) -> tuple[int, list[str]]:
    """Return the number of rows of a Parquet file and the names of its columns."""
    with _opened_parquet(source) as file:
        rows, names = file.metadata.num_rows, _parquet_names(file)
    # A file can say that a number is there a thousand million times.
    if rows * len(names) * _CELL > 100 * source.size:
        source.refuse_beyond(rows * len(names) * _CELL, f"a table of {rows:,} rows and {len(names):,} columns")
    return rows, names


def read_parquet(source: Source) -> Columns:
    """Read a Parquet file, whose shape has been looked at."""
    with _opened_parquet(source) as file:
        return Columns(file.read(columns=_parquet_names(file), use_threads=False))


def read_arrow(source: Source) -> Columns:
    """Read an Arrow file, also called Feather."""
    source.file.seek(0)
    try:
        table = pa.ipc.open_file(source.file).read_all()
    except (pa.ArrowException, OSError):
        raise InputError(f"{source} is damaged or cut short, and is no Arrow table; save it again.") from None
    return Columns(table.select([name for name in table.column_names if not name.startswith(_INDEX)]))


def parquet_batches(source: Source, rows: int) -> Iterator[Any]:
    """Yield the rows of a Parquet file as Arrow tables."""
    with _opened_parquet(source) as file:
        for batch in file.iter_batches(min(rows, _MOST_BATCH), columns=_parquet_names(file)):
            yield pa.Table.from_batches([batch])


# Largest ratio of unpacked to packed size; deflate compresses no better.
_DENSEST = 1100


def read_npy(source: Source) -> Columns:
    """Read an .npy file."""
    return Columns(table_of_array(np.asarray(mapped(source))), named=False)


def mapped(source: Source) -> np.ndarray:
    """Return the array of an .npy file, whose numbers are read when they are needed."""
    return _checked(source, "the array", _loaded(source, "the array", partial(_map, source)))


def _map(source: Source) -> np.ndarray:
    """Map the numbers of an .npy file that is as long as its header says."""
    source.file.seek(0)
    header = read_array_header(source.file)
    if header.dtype.hasobject:
        raise ValueError("needs allow_pickle")
    if header.end > source.size:
        raise ValueError("shorter than its header says")
    order: Literal["F", "C"] = "F" if header.fortran_order else "C"
    if not math.prod(header.shape):  # no bytes cannot be mapped
        return np.empty(header.shape, header.dtype, order)
    return np.memmap(source.file, header.dtype, "r", header.offset, header.shape, order)


def read_npz(source: Source) -> Columns:
    """Read the array X of an .npz file, or its only two-dimensional one."""
    source.file.seek(0)
    with _loaded(source, "the archive", lambda: ZipFile(source.file)) as archive:
        keys = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        key = "X" if "X" in keys else _only_table(source, archive, keys)
        what = f"array {key!r}"
        return Columns(
            table_of_array(_checked(source, what, _loaded(source, what, lambda: _read(source, archive, key)))), False
        )


def _header(archive: ZipFile, key: str) -> ArrayHeader:
    """Return the header of an array in an archive, if the archive can hold as much as it says."""
    member = archive.getinfo(f"{key}.npy")
    with archive.open(member) as file:
        header = read_array_header(file)
    if header.end > member.file_size or member.file_size > _DENSEST * (member.compress_size + 1):
        raise ValueError("shorter than its header says")
    return header


def _read(source: Source, archive: ZipFile, key: str) -> np.ndarray:
    """Read an array of an archive, if memory may hold it."""
    source.refuse_beyond(
        _header(archive, key).end, f"the array {key!r}"
    )  # memory is taken before the numbers are there
    with archive.open(f"{key}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _loaded(source: Source, what: str, load: Callable[[], Any]) -> Any:
    """Return what `load` reads; refuse damaged files and pickles in a sentence."""
    try:
        return load()
    except (MemoryError, InputError):
        raise
    except Exception as error:  # damaged headers make NumPy raise whatever its parsers do
        if "allow_pickle" in str(error):
            raise InputError(
                f"{source}: {what} holds pickled Python objects, which are not read because they could run code; "
                "save it as an array of numbers."
            ) from None
        raise InputError(f"{source}: {what} is damaged or cut short; save the file again.") from None


def _only_table(source: Source, archive: ZipFile, keys: list[str]) -> str:
    """Return the key of the two-dimensional array, if there is exactly one."""
    headers = {key: _loaded(source, f"array {key!r}", partial(_header, archive, key)) for key in keys}
    # Arrays of objects may be stored beside the table.
    shapes = {key: None if header.dtype.hasobject else header.shape for key, header in headers.items()}
    tables = [key for key, shape in shapes.items() if shape is not None and len(shape) == 2]
    if len(tables) == 1:
        return tables[0]
    held = ", ".join(f"{key!r} {'of objects' if shape is None else shape}" for key, shape in shapes.items())
    count = "more than one" if tables else "no"
    raise InputError(f"{source} holds {count} two-dimensional array (it holds {held or 'nothing'}); name the table X.")


def _checked(source: Source, what: str, array: Any) -> np.ndarray:
    """Refuse arrays that are no tables of real numbers."""
    if array.ndim != 2:
        raise InputError(f"{source}: {what} has shape {array.shape}; a table has two axes, rows and columns.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{source}: {what} holds {array.dtype}, not real numbers; convert it before saving.")
    return array


READERS: dict[str, tuple[tuple[bytes, ...], Callable[[Source], Columns]]] = {
    ".jsonl": ((), read_json),
    ".parquet": ((b"PAR1",), read_parquet),
    ".feather": ((b"ARROW1",), read_arrow),
    ".arrow": ((b"ARROW1",), read_arrow),
    ".npy": ((b"\x93NUMPY",), read_npy),
    ".npz": ((b"PK\x03\x04", b"PK\x05\x06"), read_npz),
}
"""First bytes and reader of each format, by suffix."""
