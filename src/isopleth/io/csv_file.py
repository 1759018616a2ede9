"""Tables in text: comma, semicolon or tab between the cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from isopleth.errors import InputError
from isopleth.io.raw import Raw
from isopleth.io.selection import positions, refuse_text

if TYPE_CHECKING:
    from _csv import Reader

_CHUNK = 256
"""Rows converted at a time: few, because rows that die young are never looked at by the garbage collector."""

_SAMPLE_LINES = 50
_DELIMITERS = ("\t", ";", ",")
"""In the order of preference: commas are also met inside numbers and sentences, tabs hardly ever."""

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_BOOLEANS = {"true": 1.0, "false": 0.0}


def read_csv_names(path: Path, delimiter: str | None) -> list[str] | None:
    """Column names in the first line, or None if it holds numbers."""
    with _opened(path) as file:
        _, first = next(_records(_reader(file, path, delimiter)), (0, []))
        return _names(path, first)


def read_csv(path: Path, delimiter: str | None, columns: Sequence[str] | None) -> Raw:
    """Read the chosen columns of a text file; `delimiter` None means: find out."""
    with _opened(path) as file:
        records = _records(_reader(file, path, delimiter))
        try:
            line, first = next(records)
        except StopIteration:
            raise InputError(f"{path} is empty; a table of numbers is needed.") from None
        found = _names(path, first)
        names = found or [f"x{j + 1}" for j in range(len(first))]
        where = positions(path, names, columns)
        rows = records if found else chain([(line, first)], records)
        parsed = [_Column(names[j]) for j in where]
        lines = _parse(path, rows, len(names), dict(zip(where, parsed, strict=True)))
    if not len(lines):
        raise InputError(f"{path} has a header but no rows; a table of numbers is needed.")
    _refuse_words(path, parsed, chosen=columns is not None)
    values = np.stack([np.concatenate(column.parts) for column in parsed], axis=1)
    return Raw(values, [column.name for column in parsed], named=found is not None, lines=lines)


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


def _number(cell: str) -> float | None:
    """Python would read 2021_01 as 202101; in a table it is a word."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _kind(cell: str) -> str:
    word = cell.strip().lower()
    if word in _MISSING:
        return "missing"
    if word in _BOOLEANS:
        return "boolean"
    return "text" if _number(cell) is None else "number"


def _names(path: Path, first: list[str]) -> list[str] | None:
    kinds = [_kind(cell) for cell in first]
    if "number" not in kinds and "boolean" not in kinds:
        return [cell.strip() or f"x{j + 1}" for j, cell in enumerate(first)]
    if "text" in kinds:
        word = first[kinds.index("text")]
        value = next(cell for cell, kind in zip(first, kinds, strict=True) if kind in ("number", "boolean"))
        raise InputError(
            f"{path}: the first line mixes words ({_cut(word)}) and numbers ({_cut(value)}), so it is neither a header "
            "nor a row; put a header above it, or give every column a name that is not a number."
        )
    return None


def _cut(cell: str) -> str:
    return repr(cell) if len(cell) <= 40 else repr(cell[:37] + "...")


@dataclass
class _Column:
    """One column as it is read: its numbers, and a count of everything that is not one."""

    name: str
    parts: list[np.ndarray] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        try:
            if "_" in "".join(cells):
                raise ValueError("_ is no part of a number")
            self.parts.append(np.fromiter(map(float, cells), dtype=np.float64, count=len(cells)))
            self.kinds["number"] += len(cells)
        except ValueError:
            self.parts.append(np.array([self._value(cell, line) for cell, line in zip(cells, lines, strict=True)]))

    def _value(self, cell: str, line: int) -> float:
        kind = _kind(cell)
        self.kinds[kind] += 1
        self.first.setdefault(kind, (line, cell))
        if kind == "boolean":
            return _BOOLEANS[cell.strip().lower()]
        return float(cell) if kind == "number" else np.nan

    @property
    def words(self) -> int:
        """How many cells are neither numbers nor missing; booleans count only where numbers stand beside them."""
        mixed = self.kinds["number"] or self.kinds["text"]
        return self.kinds["text"] + (self.kinds["boolean"] if mixed else 0)

    @property
    def first_word(self) -> tuple[int, str]:
        return min(self.first[kind] for kind in ("text", "boolean") if kind in self.first)


def _parse(path: Path, rows: Iterator[tuple[int, list[str]]], width: int, wanted: dict[int, _Column]) -> np.ndarray:
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


def _refuse_words(path: Path, columns: list[_Column], *, chosen: bool) -> None:
    """Mostly words is a column that was not meant; mostly numbers is a cell that went wrong."""
    text = [column.name for column in columns if column.words and column.words >= column.kinds["number"]]
    numeric = [column.name for column in columns if column.name not in text]
    refuse_text(path, text, numeric, chosen=chosen)
    for column in columns:
        if column.words:
            line, cell = column.first_word
            hint = " (decimals are written with a point)" if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", cell) else ""
            others = f" and {column.words - 1} more" if column.words > 1 else ""
            raise InputError(
                f"{path}, line {line}: {_cut(cell)}{others} in the numeric column {column.name!r} "
                f"{'are not numbers' if others else 'is not a number'}{hint}; correct it, or choose other columns with "
                "--columns."
            )
