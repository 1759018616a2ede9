"""Tables in files: formats, reading as a whole or in chunks, and labels of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.errors import InputError
from isopleth.io.csv_file import CsvSource, read_csv, read_csv_labels, read_csv_names
from isopleth.io.frames import (
    Frame,
    Reading,
    array_frame,
    csv_chunks,
    csv_frame,
    json_frame,
    missing_words,
    numbers_of,
    parquet_chunks,
    parquet_frame,
    whole_in_chunks,
    workbook_frame,
)
from isopleth.io.numpy_file import NpySource, read_npz
from isopleth.io.parquet_file import ParquetSource, read_parquet_labels, read_parquet_names
from isopleth.io.source import PACKED_SUFFIXES, Block, MissingCells, Origin, Progress, Source, UncheckedTable, unpacked
from isopleth.io.text_columns import kind_of
from isopleth.tables.files import check_source

Columns = Sequence[str] | None


@dataclass(frozen=True)
class Format:
    """File format.

    Its first bytes; how to read numbers as a whole, or in blocks (None: not possible); its column names; and how to read columns
    of all kinds.
    """

    magic: tuple[bytes, ...]
    read: Callable[[Origin, Columns, str | None, str | None], UncheckedTable]
    open: Callable[[Origin, Columns, str | None, Progress, str | None], Source] | None
    names: Callable[[Origin], list[str] | None]
    frame: Callable[[Origin, Reading], Frame]


def _no_names(path: Origin) -> None:
    """Return None: arrays have no column names."""


def _delimited(delimiter: str | None) -> Format:
    return Format(
        (),
        lambda path, columns, but, decimal: read_csv(path, delimiter, columns, but, decimal),
        lambda path, columns, but, progress, decimal: CsvSource(path, delimiter, columns, but, progress, decimal),
        partial(read_csv_names, delimiter=delimiter),
        lambda path, how: csv_frame(path, delimiter, how),
    )


def _in_blocks(
    magic: bytes,
    source: Callable[[Origin, Columns, str | None], Source],
    names: Callable[[Origin], list[str] | None],
    frame: Callable[[Origin, Reading], Frame],
) -> Format:
    """Return a format that is read as a whole as one block."""

    def whole(path: Origin, columns: Columns, but: str | None, decimal: str | None) -> UncheckedTable:
        found = source(path, columns, but)
        values = next((block.values for block in found.blocks(max(found.n_rows, 1))), None)
        if values is None:
            values = np.empty((0, len(found.names)))
        return UncheckedTable(values, found.names, found.named)

    return Format(
        (magic,), whole, lambda path, columns, but, progress, decimal: source(path, columns, but), names, frame
    )


def _by_frame(magic: tuple[bytes, ...], frame: Callable[[Origin, Reading], Frame]) -> Format:
    """Return a format of which the numbers are those of its frame."""

    def whole(path: Origin, columns: Columns, but: str | None, decimal: str | None) -> UncheckedTable:
        found = frame(path, Reading(columns, () if but is None else (but,)))
        return numbers_of(found, path, chosen=columns is not None)

    return Format(magic, whole, None, lambda path: frame(path, Reading(most=1)).names, frame)


def _npy_frame(path: Origin, how: Reading) -> Frame:
    source = NpySource(path, None, None)
    rows = source.n_rows if how.most is None else min(source.n_rows, how.most)
    return array_frame(path, next(source.blocks(max(rows, 1))).values, source.names, how)


def _npz_frame(path: Origin, how: Reading) -> Frame:
    table = read_npz(path, None, None)
    return array_frame(path, table.values, table.names, how)


# Delimiters of text files by suffix; None means that it is found from the text.
_DELIMITERS = {".csv": None, ".tsv": "\t"}

_FORMATS = {
    ".csv": _delimited(_DELIMITERS[".csv"]),
    ".tsv": _delimited(_DELIMITERS[".tsv"]),
    ".jsonl": _by_frame((), json_frame),
    ".xlsx": _by_frame((b"PK\x03\x04",), workbook_frame),
    ".parquet": _in_blocks(b"PAR1", ParquetSource, read_parquet_names, parquet_frame),
    ".npy": _in_blocks(b"\x93NUMPY", NpySource, _no_names, _npy_frame),
    ".npz": Format(
        (b"PK\x03\x04", b"PK\x05\x06"),
        lambda path, columns, but, decimal: read_npz(path, columns, but),
        None,
        _no_names,
        _npz_frame,
    ),
}

# Each holds a byte that no text begins with: a column may well be called PK or PAR1.
_BINARY = {
    b"PAR1\x15": "a Parquet file",
    b"\x93NUMPY": "an .npy file",
    b"PK\x03\x04": "a zip archive (an .npz file or a workbook)",
    b"\x1f\x8b": "compressed by gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"\x80": "a pickle or other binary data",
}


def recognised(path: str | os.PathLike[str]) -> tuple[Origin, Format]:
    """Return where the bytes of a file are, and its format.

    Raises
    ------
    InputError
        If it is no readable file, of no kind that is read, or of another one than its name says.
    """
    source = unpacked(check_source(path))
    kind = _FORMATS.get(source.suffix)
    if kind is None:
        names = f"{', '.join(_FORMATS)} (of text also {', '.join(PACKED_SUFFIXES)})"
        raise InputError(f"{source}: {source.suffix!r} files are not read; use one of {names}.")
    _check_beginning(source, kind)
    return source, kind


def _check_beginning(source: Origin, kind: Format) -> None:
    """Refuse a file whose first bytes are of another format than its suffix."""
    with open(source.path, "rb") as file:
        beginning = file.read(8)
    if not beginning:
        raise InputError(f"{source} is empty; a table is needed.")
    if kind.magic and beginning.startswith(kind.magic):
        return
    other = next((name for magic, name in _BINARY.items() if beginning.startswith(magic)), None)
    if other:
        raise InputError(f"{source} is named {source.suffix} but is {other}; rename it or save it again.")
    if kind.magic:
        raise InputError(f"{source} is named {source.suffix} but its content is not; rename it or save it again.")


def check_shape(source: Origin, rows: int, width: int, min_rows: int) -> None:
    """Refuse a table without columns, or with fewer than `min_rows` rows."""
    if not width:
        raise InputError(f"{source} has no columns; a table is needed.")
    if rows < min_rows:
        has = "only one row" if rows == 1 else f"{rows or 'no'} rows"
        raise InputError(f"{source} has {has}; at least {min_rows} {'are' if min_rows > 1 else 'is'} needed.")


@dataclass(frozen=True, eq=False)
class Table:
    """Table of numbers, with the origin of its rows and columns.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        float64, all finite.
    names : list of str
        One a column; ``x1``, ``x2``, ... where the file has none.
    named : bool
        Whether the names come from the file.
    source : Path
        The file.
    lines : ndarray of shape (n,), optional
        For text files, the line of the file on which each row begins, counted from 1.
    """

    values: np.ndarray
    names: list[str]
    named: bool
    source: Path
    lines: np.ndarray | None = None


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    but: str | None = None,
    min_rows: int = 2,
    decimal: str | None = None,
) -> Table:
    """Read a table of numbers.

    The suffix decides the format: .csv (cells between tabs, semicolons, bars, commas or blanks; a first line without
    numbers is the header), .tsv, .jsonl (one object a line), .xlsx (the first sheet), .parquet, .npy, and .npz (its array
    ``X``, or its only two-dimensional one). A further suffix .gz, .bz2 or .zst says that the file is compressed. The path
    ``-`` is standard input. Decimal commas and signs between groups of three digits are recognised in text. Booleans are
    read as 0 and 1. Of text that pandas wrote, an index without a name that counts the rows is left out, and 0, 1, 2, ...
    in the first line are a header; a warning says so.

    Parameters
    ----------
    path : path-like
        The file.
    columns : sequence of str, optional
        Columns to read, in this order; all by default. Files without names have ``x1``, ``x2``, ...
    but : str, optional
        The column that "all" leaves out, as the classes of the rows.
    min_rows : int, default=2
        Fewer rows than this are refused.
    decimal : {".", ","}, optional
        Decimal sign of text; recognised by default.

    Returns
    -------
    Table
        Every value finite. Its arrays begin with row 0; messages name a row of a text file by its line and a row of another
        file by its number, both counted from 1.

    Raises
    ------
    InputError
        If the file cannot be read as a table of finite numbers. The message says what is wrong, where, and what to do.
    MissingExtraError
        If the format needs a package that is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n")
    >>> table = read_table(path, columns=["b"])
    >>> table.names, table.values.tolist()
    (['b'], [[2.0], [4.0]])
    >>> folder.cleanup()
    """
    source, kind = recognised(path)
    table = kind.read(source, columns, but, decimal)
    check_shape(source, len(table.values), table.values.shape[1], min_rows)
    missing = MissingCells(len(table.names))
    missing.add(Block(table.values, table.lines))
    missing.refuse(source, table.names)
    return Table(table.values, table.names, table.named, source.shown, table.lines)


def read_frame(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    decimal: str | None = None,
    min_rows: int = 2,
    most: int | None = None,
) -> Frame:
    """Read a table with columns of all kinds: numbers, words, booleans, times and missing cells.

    A column is one of numbers if all cells that are not missing are numbers, and one of times if all are dates in one
    format. :class:`isopleth.tables.schema.Schema` decides what each column is used as.

    Parameters
    ----------
    path : path-like
        The file, in a format of :func:`read_table`.
    columns : sequence of str, optional
        Columns to read, in this order; all by default. Files without names have ``x1``, ``x2``, ...
    exclude : sequence of str
        Columns that are not read.
    missing : sequence of str, optional
        Words that mean a missing cell, besides the empty cell; by default NA, N/A, NaN, null, ? and a few others.
    decimal : {".", ","}, optional
        Decimal sign of text; recognised by default.
    min_rows : int, default=2
        Fewer rows than this are refused.
    most : int, optional
        Read the first rows only, so many at most: a file larger than memory shows its kinds of columns so.

    Returns
    -------
    Frame

    Raises
    ------
    InputError
        If the file cannot be read as a table, or a column has dates in two formats. The message says what is wrong, where,
        and what to do.
    MissingExtraError
        If the format needs a package that is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "orders.csv"
    >>> _ = path.write_text("day;price;colour\\n31.01.2024;1,50;red\\n01.02.2024;NA;blue\\n")
    >>> frame = read_frame(path)
    >>> frame.data.column("price").to_pylist(), frame.data.column("colour").to_pylist()
    ([1.5, None], ['red', 'blue'])
    >>> folder.cleanup()
    """
    source, kind = recognised(path)
    frame = kind.frame(source, Reading(columns, exclude, missing_words(missing), decimal, most))
    check_shape(source, len(frame.data), len(frame.names), min_rows)
    return frame


def read_frame_chunks(
    path: str | os.PathLike[str],
    like: Frame,
    rows: int,
    *,
    missing: Sequence[str] | None = None,
    decimal: str | None = None,
) -> Iterator[Frame]:
    """Read a table with columns of all kinds in chunks, for files larger than memory.

    Text and Parquet files are read chunk by chunk, and files of other formats as a whole.

    Parameters
    ----------
    path : path-like
        The file, in a format of :func:`read_table`.
    like : Frame
        The first rows of it, by :func:`read_frame` with `most`: they decide the columns, and which of these hold words.
    rows : int
        Rows of a chunk; the last may have fewer.
    missing, decimal
        As for :func:`read_frame`.

    Yields
    ------
    Frame

    Raises
    ------
    InputError
        As :func:`read_frame`, when the chunk is reached.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "orders.csv"
    >>> _ = path.write_text("price,colour\\n1.5,red\\n2,blue\\n3,red\\n")
    >>> first = read_frame(path, most=2)
    >>> [chunk.data.column("colour").to_pylist() for chunk in read_frame_chunks(path, first, 2)]
    [['red', 'blue'], ['red']]
    >>> folder.cleanup()
    """
    source, kind = recognised(path)
    how = Reading(like.names, (), missing_words(missing), decimal)
    if source.suffix in _DELIMITERS:
        return csv_chunks(source, _DELIMITERS[source.suffix], how, like, rows)
    if source.suffix == ".parquet":
        return parquet_chunks(source, how, like, rows)
    return whole_in_chunks(kind.frame(source, how), rows)


def read_names(path: str | os.PathLike[str]) -> list[str] | None:
    """Return the column names of a file, or None where it has none.

    Parameters
    ----------
    path : path-like
        The file, in a format of :func:`read_table`.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`read_table`.
    """
    source, kind = recognised(path)
    return kind.names(source)


# Numbers of a chunk, unless something else is asked for: 8 MiB of them.
_CELLS = 2**20


def rows_of_a_chunk(columns: int) -> int:
    """Return the number of rows of so many columns that fit 8 MiB."""
    return max(1, _CELLS // columns)


def _unheard(share: float) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, eq=False)
class FileRows:
    """Table of finite numbers in a file, checked once as a whole and read in chunks.

    Parameters
    ----------
    source : Path
        The file.
    names : list of str
        One a column; ``x1``, ``x2``, ... where the file has none.
    named : bool
        Whether the names come from the file.
    n_rows : int
        Number of rows.
    """

    source: Path
    names: list[str]
    named: bool
    n_rows: int
    _blocks: Source
    _stamp: tuple[int, int]
    _origin: Origin

    @property
    def chunk_rows(self) -> int:
        """Number of rows in a chunk of 8 MiB."""
        return rows_of_a_chunk(len(self.names))

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Block]:
        """Yield the rows from `start` on, `rows` at a time; the last chunk may have fewer.

        Parameters
        ----------
        rows : int, optional
            Rows of a chunk; :attr:`chunk_rows` by default.
        start : int, default=0
            The first row, counted from 0. Nothing before it is converted.

        Yields
        ------
        Block
            ``values``, a float64 array of shape (rows, n_columns), and ``lines``, for text files the line on which each row
            begins.

        Raises
        ------
        InputError
            If the file has changed since it was checked, or has been removed.
        """
        found = start
        for block in self._blocks.blocks(rows or self.chunk_rows, start):
            found += len(block.values)
            self._check(found)
            yield block
        self._check(found, whole=True)

    def _check(self, found: int, *, whole: bool = False) -> None:
        try:
            same = _stamp(self._origin.path) == self._stamp
        except OSError as error:
            raise InputError(f"{self.source} has gone while it was read; run again when it is back.") from error
        if not same or (whole and found < self.n_rows):
            raise InputError(f"{self.source} has changed while it was read; run again when nobody writes to it.")


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def open_rows(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    but: str | None = None,
    min_rows: int = 2,
    progress: Progress = _unheard,
    decimal: str | None = None,
) -> FileRows:
    """Check a table of numbers in one pass and open it to be read in chunks.

    The rows are those of :func:`isopleth.io.read_table`, bit for bit, and so are refusals and warnings: all of them come here,
    before any work is done. It takes one pass over the file, and memory for a few rows; for a Parquet file also 1 MiB a
    column, and what its dictionaries take.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv, .parquet or .npy file.
    columns, but, min_rows, decimal
        As for :func:`isopleth.io.read_table`.
    progress : callable, optional
        Called with the share of the file that has been checked.

    Returns
    -------
    FileRows

    Raises
    ------
    InputError, MissingExtraError
        As :func:`isopleth.io.read_table`; for .npz files, which can only be read as a whole.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    >>> rows = open_rows(path)
    >>> rows.names, rows.n_rows, [chunk.values.tolist() for chunk in rows.chunks(2, start=1)]
    (['a', 'b'], 3, [[[3.0, 4.0], [5.0, 6.0]]])
    >>> folder.cleanup()
    """
    source, kind = recognised(path)
    if kind.open is None:
        raise InputError(
            f"{source}: {source.suffix} files are only read as a whole; save the table as .npy or .parquet."
        )
    stamp = _stamp(source.path)
    blocks = kind.open(source, columns, but, progress, decimal)
    check_shape(source, blocks.n_rows, len(blocks.names), min_rows)
    rows = FileRows(source.shown, blocks.names, blocks.named, blocks.n_rows, blocks, stamp, source)
    missing = blocks.missing or _missing_cells(rows, progress)
    missing.refuse(source, rows.names)
    return rows


def _missing_cells(rows: FileRows, progress: Progress) -> MissingCells:
    missing, seen = MissingCells(len(rows.names)), 0
    for chunk in rows.chunks():
        missing.add(chunk)
        seen += len(chunk.values)
        progress(seen / rows.n_rows)
    return missing


def read_labels(path: Path, column: str) -> np.ndarray:
    """Read one column as it is: words of text files, numbers or words of Parquet files, numbers of arrays.

    Parameters
    ----------
    path : Path
        The table, in a format of :func:`isopleth.io.read_table`.
    column : str
        Name of the column.

    Returns
    -------
    ndarray of shape (n,)
        One class a row.

    Raises
    ------
    InputError
        If there is no such column, or a row has no class; the message names the first.
    """
    origin, _ = recognised(path)
    if origin.suffix in (".csv", ".tsv"):
        cells, lines = read_csv_labels(origin, "\t" if origin.suffix == ".tsv" else None, column)
        _refuse_missing(path, column, _missing_words(cells), [f"line {line}" for line in lines])
        return np.array(cells)
    if origin.suffix == ".parquet":
        values = read_parquet_labels(origin, column)
        _refuse_missing(path, column, [_is_missing(v) for v in values], [f"row {i + 1}" for i in range(len(values))])
        return np.array(values)
    frame = read_frame(path, [column])
    if isinstance(frame.data, np.ndarray):
        return read_table(path, [column]).values[:, 0]
    values = frame.data.column(column).to_pylist()
    _refuse_missing(path, column, [_is_missing(v) for v in values], [frame.place(i) for i in range(len(values))])
    return np.array(values)


def _missing_words(cells: list[str]) -> list[bool]:
    """Return which cells are missing. Among words, "none" may be a class; among numbers it stands for a missing one."""
    kinds = [kind_of(cell) for cell in cells]
    return [cell == "" for cell in cells] if "text" in kinds else [kind == "missing" for kind in kinds]


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _refuse_missing(path: Path, column: str, missing: list[bool], places: list[str]) -> None:
    if any(missing):
        place = places[missing.index(True)]
        raise InputError(f"{path}, {place}: no class in column {column!r}; fill the cell or drop the row.")
