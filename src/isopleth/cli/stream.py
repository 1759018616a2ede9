"""Read rows from lines of text on standard input, as they come."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from isopleth.errors import InputError
from isopleth.io.source import listed
from isopleth.io.text_columns import Column, cut, header_names, kind_of

_SOURCE = Path("standard input")
_BYTES = 2**16
# Bytes of a line: a longer one is no row, and would fill the memory.
_LONGEST = 2**24

_DELIMITERS = ("\t", ";", ",")


@dataclass(eq=False)
class Batch:
    """Rows that were read together.

    Parameters
    ----------
    values : ndarray of shape (k, d)
        Those before the first line that cannot be used.
    error : InputError or None
        What is wrong with that line.
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
