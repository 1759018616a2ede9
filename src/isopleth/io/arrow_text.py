"""Fast reading of plain text tables through Arrow, block by block.

Arrow reads a table several times faster than Python's parser, but its errors name neither line nor column, and it accepts
what is no table: quotes in the middle of a word, invalid text in columns that are not read. A file is therefore scanned first.
Whatever is out of the ordinary is left to the exact reader (:mod:`isopleth.io.csv_file`), which reads or refuses it.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.tables.numerals import Numerals

# Bytes that are scanned at a time, and that Arrow parses at a time.
_PIECE = 2**20

_LINE_END = ord("\n")

# From here on, float64 holds only some of the integers.
_ALL_INTEGERS = 2.0**53


@dataclass(frozen=True)
class PlainText:
    """Text table with one record a line, without blank lines and without line breaks in quotes.

    Parameters
    ----------
    path : Path
        The file.
    delimiter : str
        Delimiter between cells.
    width : int
        Number of cells in a record.
    first_line : int
        Number of the line of the first record, counted from 1.
    n_rows : int
        Number of records.
    places : list of (int, int)
        Number of a record and the byte at which it begins, for every mebibyte.
    """

    path: Path
    delimiter: str
    width: int
    first_line: int
    n_rows: int
    places: list[tuple[int, int]]

    def batches(self, where: Sequence[int], start: int = 0) -> Iterator[Any]:
        """Yield the cells of the columns `where` as Arrow arrays of strings, from record `start` on.

        Raises
        ------
        NotPlainError
            If Arrow finds a record with more or fewer cells, or finds other records than the lines.
        """
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        if start >= self.n_rows:
            return
        passed, byte = next(place for place in reversed(self.places) if place[0] <= start)
        skip, found = start - passed, passed
        names = [str(j) for j in range(self.width)]
        wanted = [names[j] for j in where]
        try:
            with pa.OSFile(str(self.path)) as file:
                file.seek(byte)
                reader = arrow_csv.open_csv(
                    file,
                    arrow_csv.ReadOptions(use_threads=False, block_size=_PIECE, column_names=names),
                    arrow_csv.ParseOptions(delimiter=self.delimiter),
                    arrow_csv.ConvertOptions(
                        include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), check_utf8=False
                    ),
                )
                for batch in reader:
                    found += batch.num_rows
                    if skip < batch.num_rows:
                        yield batch.slice(skip)
                    skip = max(0, skip - batch.num_rows)
        except pa.ArrowInvalid as error:
            raise NotPlainError(str(error)) from error
        if found != self.n_rows:
            raise NotPlainError(f"{found} records in {self.n_rows} lines")

    def lines(self, start: int, rows: int) -> np.ndarray:
        """Return the lines on which `rows` records from `start` on begin."""
        return np.arange(self.first_line + start, self.first_line + start + rows, dtype=np.int64)

    def numbers(self, where: Sequence[int], numerals: Numerals, start: int = 0) -> Iterator[np.ndarray]:
        """Yield the columns `where` as numbers, a block of rows at a time.

        Raises
        ------
        NotPlainError
            If some cell is no finite number, or an integer that float64 may not hold.
        """
        for batch in self.batches(where, start):
            values = np.empty((batch.num_rows, len(where)))
            for j, cells in enumerate(batch.columns):
                values[:, j] = _numbers(cells, numerals)
            if not (np.abs(values) < _ALL_INTEGERS).all():
                raise NotPlainError("a cell that is missing or large")
            yield values


class NotPlainError(Exception):
    """Text that only the exact reader can read or explain."""


def _numbers(cells: Any, numerals: Numerals) -> np.ndarray:
    import pyarrow as pa

    try:
        plain = numerals.plain_array(cells).cast(pa.float64())
    except pa.ArrowInvalid:  # blanks around a number are allowed, and rare
        try:
            plain = numerals.plain_array(trimmed(cells)).cast(pa.float64())
        except pa.ArrowInvalid as error:
            raise NotPlainError(str(error)) from error
    return plain.to_numpy(zero_copy_only=False)


def trimmed(cells: Any) -> Any:
    """Return an Arrow array of strings without the blanks around them."""
    import pyarrow.compute as compute

    return compute.utf8_trim_whitespace(cells)


def scan(path: Path, byte: int, lines: int, delimiter: str, width: int) -> PlainText | None:
    """Look through a text table from a place on, and return it if it is plain.

    Parameters
    ----------
    path : Path
        The file.
    byte, lines : int
        Byte at which the first record begins, and the number of lines before it.
    delimiter : str
        Delimiter between cells.
    width : int
        Number of cells in a record.

    Returns
    -------
    PlainText or None
        None if there are blank lines, old line ends, NUL characters, other text than UTF-8 or quotes inside of words.
    """
    if delimiter == " ":  # runs of blanks count as one delimiter, which Arrow does not do
        return None
    misplaced = re.compile(rb'[^%b\r\n"]"[^%b\r\n"]|\A"[^%b\r\n"]*"[^%b\r\n"]' % ((re.escape(delimiter.encode()),) * 4))
    unclosed = re.compile(rb'^[^"\n]*"(?:[^"\n]*"[^"\n]*")*[^"\n]*$', re.MULTILINE)
    decoder = getincrementaldecoder("utf-8")()
    n_rows, places = 0, []
    with open(path, "rb") as file:
        file.seek(byte)
        while piece := file.read(_PIECE):
            piece += file.readline(_PIECE)
            places.append((n_rows, byte))
            if not _is_plain(piece) or (b'"' in piece and (misplaced.search(piece) or unclosed.search(piece))):
                return None
            if not piece.isascii():
                try:
                    decoder.decode(piece)
                except UnicodeDecodeError:
                    return None
            ends = np.frombuffer(piece, np.uint8) == _LINE_END
            if (ends[1:] & ends[:-1]).any():  # a blank line
                return None
            n_rows += int(np.count_nonzero(ends)) + (not piece.endswith(b"\n"))
            byte += len(piece)
    return PlainText(path, delimiter, width, lines + 1, n_rows, places)


def _is_plain(piece: bytes) -> bool:
    if b"\0" in piece or piece.startswith((b"\n", b"\r\n")):
        return False
    return b"\r" not in piece or (b"\n\r\n" not in piece and piece.count(b"\r") == piece.count(b"\r\n"))
