"""Tables in text: comma, semicolon or tab between the cells."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from isopleth.errors import InputError
from isopleth.io.header import header_names, warn_of_numbered_header, without_row_numbers
from isopleth.io.raw import Raw
from isopleth.io.selection import listed, positions, refuse_text
from isopleth.io.text_column import Column, Labels, cut, has_decimal_comma
from isopleth.validation import DataWarning

if TYPE_CHECKING:
    from _csv import Reader

_CHUNK = 256
"""Rows converted at a time: few, because rows that die young are never looked at by the garbage collector."""

_SAMPLE_LINES = 50
_DELIMITERS = ("\t", ";", ",")
"""In the order of preference: commas are also met inside numbers and sentences, tabs hardly ever."""


def read_csv_names(path: Path, delimiter: str | None) -> list[str] | None:
    """Column names in the first line, or None if it holds numbers."""
    with _opened(path) as file:
        _, first = next(_records(_reader(file, path, delimiter)), (0, []))
        return header_names(path, first)


def read_csv(path: Path, delimiter: str | None, columns: Sequence[str] | None, but: str | None) -> Raw:
    """Read the chosen columns of a text file; `delimiter` None means: find out."""
    with _opened(path) as file:
        first, found, names, rows = _begun(path, file, delimiter)
        where = positions(path, names, columns, but)
        parsed = [Column(names[j]) for j in where]
        lines = _parse(path, rows, len(names), dict(zip(where, parsed, strict=True)))
    if not len(lines):
        raise InputError(f"{path} has a header but no rows; a table of numbers is needed.")
    if found:
        warn_of_numbered_header(path, first)
        parsed = parsed if columns is not None else without_row_numbers(path, [first[j] for j in where], parsed)
    _refuse_words(path, parsed, chosen=columns is not None)
    _warn_of_rounding(path, parsed)
    values = np.stack([column.values for column in parsed], axis=1)
    return Raw(values, [column.name for column in parsed], named=found is not None, lines=lines)


def read_csv_labels(path: Path, delimiter: str | None, column: str) -> tuple[list[str], list[int]]:
    """Cells of one column as they stand there, and the line on which the row of each begins."""
    with _opened(path) as file:
        _, _, names, rows = _begun(path, file, delimiter)
        labels = Labels()
        lines = _parse(path, rows, len(names), {positions(path, names, [column])[0]: labels})
    return labels.cells, lines.tolist()


def _begun(
    path: Path, file: TextIO, delimiter: str | None
) -> tuple[list[str], list[str] | None, list[str], Iterator[tuple[int, list[str]]]]:
    """The first line, the names in it or None, the names to go by, and the rows."""
    records = _records(_reader(file, path, delimiter))
    try:
        line, first = next(records)
    except StopIteration:
        raise InputError(f"{path} is empty; a table of numbers is needed.") from None
    found = header_names(path, first)
    names = found or [f"x{j + 1}" for j in range(len(first))]
    return first, found, names, records if found else chain([(line, first)], records)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file as text, with what text can suffer turned into sentences."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {_undecodable_line(path)}: not UTF-8 text; save the table as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"{path}: a quoted cell is not closed properly ({error}); correct its quotes.") from None


def _undecodable_line(path: Path) -> int:
    content = path.read_bytes()
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 1


def _text_only(path: Path, file: TextIO) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        if "\0" in line:
            raise InputError(f"{path}, line {number}: binary data and not text; save the table as UTF-8 text.")
        yield line


def _reader(file: TextIO, path: Path, delimiter: str | None) -> Reader:
    lines = _text_only(path, file)
    sample = list(islice(lines, _SAMPLE_LINES))
    return _parser(chain(sample, lines), delimiter or _delimiter(sample))


def _parser(lines: Iterator[str], delimiter: str, *, strict: bool = True) -> Reader:
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)


def _delimiter(sample: list[str]) -> str:
    """The first delimiter that cuts every sampled record into the same number of cells, more than one.

    Where none does, some row is ragged: the one that cuts the first record most will show which.
    """
    widths = {d: [len(record) for record in _parser(iter(sample), d, strict=False) if record] for d in _DELIMITERS}
    if len(sample) == _SAMPLE_LINES:
        widths = {d: found[:-1] for d, found in widths.items()}  # the sample may end inside a quoted cell
    for delimiter, found in widths.items():
        if len(set(found)) == 1 and found[0] > 1:
            return delimiter
    return max(reversed(_DELIMITERS), key=lambda d: widths[d][0] if widths[d] else 0)


def _records(reader: Reader) -> Iterator[tuple[int, list[str]]]:
    """Records with the number of the line each begins on; blank lines are none."""
    line = 1
    for record in reader:
        if record:
            yield line, record
        line = reader.line_num + 1


def _parse(
    path: Path, rows: Iterator[tuple[int, list[str]]], width: int, wanted: Mapping[int, Column | Labels]
) -> np.ndarray:
    """Fill the wanted columns and return the line number of every row."""
    lines = []
    while chunk := list(islice(rows, _CHUNK)):
        numbers, records = zip(*chunk, strict=True)
        if set(map(len, records)) != {width}:
            _refuse_ragged(path, chunk, width)
        cells = list(zip(*records, strict=True))
        for position, column in wanted.items():
            column.add(cells[position], numbers)
        lines.append(np.array(numbers, dtype=np.int64))
    return np.concatenate(lines) if lines else np.empty(0, dtype=np.int64)


def _refuse_ragged(path: Path, chunk: list[tuple[int, list[str]]], width: int) -> None:
    line, record = next((line, record) for line, record in chunk if len(record) != width)
    raise InputError(
        f"{path}, line {line}: {len(record)} cell{'s' if len(record) > 1 else ''} where the first line has {width}; "
        "correct that line."
    )


def _refuse_words(path: Path, columns: list[Column], *, chosen: bool) -> None:
    """Mostly words is a column that was not meant; mostly numbers is a cell that went wrong."""
    text = [column for column in columns if column.words and column.words >= column.kinds["number"]]
    numeric = [column.name for column in columns if column not in text]
    refuse_text(path, [column.name for column in text], numeric, chosen=chosen, hint=_hint_at_commas(text))
    for column in columns:
        if column.words:
            line, cell = column.first_word
            hint = " (decimals are written with a point)" if has_decimal_comma(cell) else ""
            others = f" and {column.words - 1} more" if column.words > 1 else ""
            raise InputError(
                f"{path}, line {line}: {cut(cell)}{others} in the numeric column {column.name!r} "
                f"{'are not numbers' if others else 'is not a number'}{hint}; correct it, or choose other columns with "
                "--columns."
            )


def _hint_at_commas(text: list[Column]) -> str:
    found = [column.first_word for column in text if has_decimal_comma(column.first_word[1])]
    return f" (line {found[0][0]} has {cut(found[0][1])}: decimals are written with a point)" if found else ""


def _warn_of_rounding(path: Path, columns: list[Column]) -> None:
    rounded = [column.name for column in columns if column.rounded]
    if rounded:
        warnings.warn(
            f"{path}: integers beyond 2**53 in {listed(rounded)} are rounded, so that different ones may become equal; "
            "subtract a constant from them first, or use other columns with --columns.",
            DataWarning,
            stacklevel=5,
        )
