"""Text files as records of cells: encoding, delimiter, and where in the file each line begins."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from isopleth.errors import InputError

if TYPE_CHECKING:
    from _csv import Reader

_SAMPLE_LINES = 50
# In the order of preference: commas are also met inside numbers and sentences, tabs hardly ever.
_DELIMITERS = ("\t", ";", ",")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Place(NamedTuple):
    """A place in a file between two lines: its byte, and the number of lines before it."""

    byte: int = 0
    lines: int = 0


class Lines:
    """Lines of a text file from some place on, that know where the next one begins.

    Parameters
    ----------
    path : Path
        The file, for messages.
    file : text file
        Open at the place, line ends untranslated.
    place : Place
        Where it is open.
    """

    def __init__(self, path: Path, file: TextIO, place: Place) -> None:
        self.path = path
        self._byte, self._lines = place
        self._coming = (self._text(number, line) for number, line in enumerate(file, start=place.lines + 1))

    @property
    def place(self) -> Place:
        """Where the line begins that comes next."""
        return Place(self._byte, self._lines)

    def sample(self) -> list[str]:
        """The first lines, which are still to come after this."""
        found = list(islice(self._coming, _SAMPLE_LINES))
        self._coming = chain(found, self._coming)  # type: ignore[assignment]
        return found

    def __iter__(self) -> Iterator[str]:
        for line in self._coming:
            self._lines += 1
            self._byte += len(line) if line.isascii() else len(line.encode())
            yield line

    def _text(self, number: int, line: str) -> str:
        if "\0" in line:
            raise InputError(f"{self.path}, line {number}: binary data and not text; save the table as UTF-8 text.")
        return line


@contextmanager
def opened(path: Path, place: Place = Place()) -> Iterator[Lines]:  # noqa: B008 - a tuple of numbers
    """The file as text, with what text can suffer turned into sentences."""
    try:
        with open(path, "rb") as file:
            if not place.byte and file.read(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK:
                place = Place(len(_BYTE_ORDER_MARK))
            file.seek(place.byte)
            with TextIOWrapper(file, encoding="utf-8", newline="") as text:
                yield Lines(path, text, place)
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {_undecodable_line(path)}: not UTF-8 text; save the table as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"{path}: a quoted cell is not closed properly ({error}); correct its quotes.") from None


def _undecodable_line(path: Path) -> int:
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def records(lines: Lines, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records with the number of the line each begins on; blank lines are none."""
    reader, before = _parser(iter(lines), delimiter), lines.place.lines
    line = before + 1
    for record in reader:
        if record:
            yield line, record
        line = before + reader.line_num + 1


def _parser(lines: Iterator[str], delimiter: str, *, strict: bool = True) -> Reader:
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)


def find_delimiter(sample: list[str]) -> str:
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
