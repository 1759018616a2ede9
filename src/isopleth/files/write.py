"""Write tables of results."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from io import TextIOWrapper
from itertools import chain
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, TextIO

import numpy as np
import pyarrow as pa

from isopleth.core.errors import InputError
from isopleth.io.output_files import atomic_write, check_suffix, check_target

if TYPE_CHECKING:
    from isopleth.files.delimited import Dialect

TABLE_SUFFIXES = (".csv", ".parquet")

# Formats of whole tables with columns of all kinds; arrays hold numbers only.
FRAME_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".npy")

# A spreadsheet runs a cell that begins so as a formula; after + or - a plain number, or a telephone number, is only that.
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_SIGN = r"[=@\uff1d\uff20\ufe66\ufe6b\uff0b\uff0d\ufe62\ufe63]"
_END = r"(?:\Z|[;\t])"
_FORMULA = re.compile(rf"[\t\r]|{_SIGN}|-(?!(?:{_NUMBER})?{_END})|\+(?!(?:{_NUMBER}|\d[\d ()]*)?{_END})", re.ASCII)
# A spreadsheet whose list separator is one of these cuts cells there, even inside quotes.
_SEPARATORS = ";\t,"


def check_table_target(path: str | os.PathLike[str], suffixes: tuple[str, ...] = TABLE_SUFFIXES) -> None:
    """Check before the work that :func:`write_table` can write `path`."""
    check_suffix(path, suffixes)
    check_target(path)


def spreadsheet_safe(cell: str, delimiter: str = ",") -> str:
    """Return `cell` with ``'`` before what a spreadsheet would run as a formula, also behind separators of other files."""
    cell = f"'{cell}" if _FORMULA.match(cell) else cell
    for sign in _SEPARATORS:
        if sign != delimiter and sign in cell:
            first, *others = cell.split(sign)
            cell = sign.join([first, *(f"'{part}" if _FORMULA.match(part) else part for part in others)])
    return cell


def write_table(path: str | os.PathLike[str], columns: Mapping[str, np.ndarray], *, raw_text: bool = False) -> None:
    """Write named columns to .csv or .parquet, whole or not at all; `raw_text` leaves text that a spreadsheet would run."""
    check_table_target(path)
    write_blocks(path, iter([columns]), raw_text=raw_text)


def write_blocks(
    path: str | os.PathLike[str], blocks: Iterator[Mapping[str, np.ndarray]], *, raw_text: bool = False
) -> None:
    """Write named columns, given in blocks of rows, whole or not at all. All blocks, at least one, have the same columns."""
    parquet = check_suffix(path, TABLE_SUFFIXES) == ".parquet"
    with atomic_write(path) as file:
        if parquet:
            _write_parquet(file, blocks)
        else:
            _write_csv(file, blocks, raw_text=raw_text)


def write_frame(
    path: str | os.PathLike[str],
    table: Any,
    *,
    raw_text: bool = False,
    like: Dialect | None = None,
    numbers: Collection[str] = (),
    header: Sequence[str] | None = None,
    limits: Mapping[str, Mapping[int, str]] = MappingProxyType({}),
) -> None:
    """Write an Arrow table, whole or not at all, with empty cells for nulls; text as the file `like` is written.

    Columns of text that hold `numbers` or times are written as they are, and in text the names are those of `header`. In
    .jsonl, `limits` are texts among the numbers of a column, by row.
    """
    suffix = check_suffix(path, FRAME_SUFFIXES)
    if suffix == ".npy":
        write_array(path, table.shape, iter([_numbers_only(path, table)]))
        return
    with atomic_write(path) as file:
        if suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, file)
        elif suffix == ".jsonl":
            cells = [
                _with_texts(_plain_cells(column), limits.get(name, {}))
                for name, column in zip(table.column_names, table.columns, strict=True)
            ]
            for row in zip(*cells, strict=True):
                record = {name: cell for name, cell in zip(table.column_names, row, strict=True) if cell is not None}
                file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        else:
            columns = {name: _object_array(_plain_cells(table.column(name))) for name in table.column_names}
            how: dict[str, Any] = {"raw_text": raw_text, "numbers": numbers, "header": header}
            how |= {} if like is None else {"encoding": like.encoding, "decimal": like.numerals.decimal}
            delimiter = "," if like is None or like.delimiter in ("\t", " ") else like.delimiter
            delimiter = "\t" if suffix == ".tsv" else delimiter
            _write_csv(file, iter([columns]), delimiter, **how)


def _plain_cells(column: Any) -> list[Any]:
    """Return the cells of an Arrow column as numbers, words and booleans: times as text, dates alone if all are midnight."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    cells = column.to_pylist()
    if pa.types.is_temporal(column.type):
        times = [
            None if cell is None else cell.isoformat(sep=" ") if isinstance(cell, datetime) else str(cell)
            for cell in cells
        ]
        days = all(text is None or text.endswith("00:00:00") for text in times)
        return [None if text is None else text.removesuffix(" 00:00:00") if days else text for text in times]
    if pa.types.is_boolean(column.type):
        return [None if cell is None else str(cell).lower() for cell in cells]
    return cells


def _with_texts(cells: list[Any], texts: Mapping[int, str]) -> list[Any]:
    return [texts.get(row, cell) for row, cell in enumerate(cells)] if texts else cells


def _object_array(cells: list[Any]) -> np.ndarray:
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


def _numbers_only(path: str | os.PathLike[str], table: Any) -> np.ndarray:
    """Return the columns of a table as an array; refuse words."""
    words = [
        name
        for name in table.column_names
        if not (pa.types.is_integer(t := table.schema.field(name).type) or pa.types.is_floating(t))
    ]
    if words:
        raise InputError(
            f"{path}: an array holds numbers only, and column {words[0]!r} has none; choose another format."
        )
    return np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])


def write_array(path: str | os.PathLike[str], shape: tuple[int, int], blocks: Iterator[np.ndarray]) -> None:
    """Write a float64 array, given in blocks of rows, to an .npy file, whole or not at all."""
    with atomic_write(path) as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype="<f8").tobytes())


def _write_csv(
    file: IO[bytes],
    blocks: Iterator[Mapping[str, np.ndarray]],
    delimiter: str = ",",
    encoding: str = "utf-8",
    decimal: str = ".",
    raw_text: bool = False,
    numbers: Collection[str] = (),
    header: Sequence[str] | None = None,
) -> None:
    """Write blocks of columns; text of other columns than `numbers` as what no spreadsheet runs, unless it is `raw_text`."""

    def written(cell: str) -> str:
        return cell if raw_text else spreadsheet_safe(cell, delimiter)

    text = TextIOWrapper(file, encoding=encoding, newline="")
    writer = csv.writer(_UnixLines(text), delimiter=delimiter, lineterminator=_LINE_END)
    for number, columns in enumerate(blocks):
        if not number:
            writer.writerow(map(written, columns if header is None else header))
        each = (
            _cells(column, str if name in numbers else written, "." if name in numbers else decimal)
            for name, column in columns.items()
        )
        writer.writerows(zip(*each, strict=True))
    text.detach()  # a wrapper that is collected would close the file under the one who opened it


# The writer quotes cells that hold a character of the end of a line: those that other programs may take for separators, too.
_LINE_END = ";\t\r\n"


class _UnixLines:
    r"""Text file that turns the end of a line of a CSV writer into ``\n``."""

    def __init__(self, text: TextIO) -> None:
        self._text = text

    def write(self, line: str) -> int:
        return self._text.write(f"{line.removesuffix(_LINE_END)}\n")


def _cells(column: np.ndarray, written: Callable[[str], str], decimal: str = ".") -> list[Any]:
    """Return the cells of a column as they are written to a text."""
    cells = column.tolist()
    if decimal != ".":
        cells = [repr(cell).replace(".", decimal) if isinstance(cell, float) else cell for cell in cells]
    if column.dtype.kind in "biuf":
        return cells
    return [written(cell) if isinstance(cell, str) else cell for cell in cells]


def _write_parquet(file: IO[bytes], blocks: Iterator[Mapping[str, np.ndarray]]) -> None:
    """Write blocks of columns as one Parquet file."""
    from pyarrow import parquet

    tables = (pa.table(dict(columns)) for columns in blocks)
    first = next(tables)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
