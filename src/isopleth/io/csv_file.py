"""Tables in CSV files: encoding, delimiter and records, read as a whole or in blocks."""

from __future__ import annotations

import csv
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TextIO

import numpy as np

from isopleth.errors import InputError
from isopleth.io.arrow_text import NotPlainError, PlainText, scan
from isopleth.io.source import Block, MissingCells, Origin, Progress, UncheckedTable, positions, regrouped
from isopleth.io.text_columns import (
    Column,
    Labels,
    RowNumbers,
    header_names,
    kind_of,
    look_at,
    warn_of_numbered_header,
)
from isopleth.tables.numerals import numerals_of

if TYPE_CHECKING:
    from _csv import Reader

# A longer line is no row, and would fill the memory before anything could be said about it.
LONGEST_LINE = 2**24

# The sample by which the delimiter and the decimal sign are found: at most so many lines, and no more of them than hold so
# many characters.
_SAMPLE_LINES = 500
_SAMPLE_CHARACTERS = 2**22

# In the order of preference: commas are also met inside numbers and sentences, tabs hardly ever.
_DELIMITERS = ("\t", ";", "|", ",")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Place(NamedTuple):
    """Place in a file between two lines: its byte, and the number of lines before it."""

    byte: int = 0
    lines: int = 0


class Sample(NamedTuple):
    """The first lines of a file, and whether they are the whole file."""

    lines: list[str]
    whole: bool


class Lines:
    """Lines of a text file from a place on, with the place at which the next line begins.

    Parameters
    ----------
    path : Origin
        The file, for messages.
    file : text file
        Open at the place, line ends untranslated.
    place : Place
        Position of the file.
    """

    def __init__(self, path: Origin, file: TextIO, place: Place) -> None:
        self.path = path
        self._byte, self._lines = place
        self._coming = self._checked(file, place.lines)

    @property
    def place(self) -> Place:
        """Place at which the next line begins."""
        return Place(self._byte, self._lines)

    def sample(self) -> Sample:
        """Return the first lines, which are still to come after this."""
        found: list[str] = []
        size = 0
        # Two lines at least: the last one may be the beginning of a record only.
        while len(found) < 2 or (len(found) < _SAMPLE_LINES and size < _SAMPLE_CHARACTERS):
            line = next(self._coming, None)
            if line is None:
                self._coming = iter(found)
                return Sample(found, whole=True)
            found.append(line)
            size += len(line)
        self._coming = chain(found, self._coming)
        return Sample(found, whole=False)

    def __iter__(self) -> Iterator[str]:
        for line in self._coming:
            self._lines += 1
            self._byte += len(line) if line.isascii() else len(line.encode())
            yield line

    def _checked(self, file: TextIO, before: int) -> Iterator[str]:
        limit = LONGEST_LINE
        for number, line in enumerate(iter(lambda: file.readline(limit + 1), ""), start=before + 1):
            if "\0" in line:
                raise InputError(f"{self.path}, line {number}: binary data and not text; save the table as UTF-8 text.")
            if len(line) > limit:
                raise InputError(
                    f"{self.path}: line {number} is longer than {limit:,} characters; expected one row a line, so check its "
                    "line ends and quotes."
                )
            yield line


@contextmanager
def opened(path: Origin, place: Place = Place()) -> Iterator[Lines]:  # noqa: B008 - a tuple of numbers
    """Open a file as text; errors in its encoding become one sentence."""
    try:
        with open(path.path, "rb") as file:
            if not place.byte and file.read(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK:
                place = Place(len(_BYTE_ORDER_MARK))
            file.seek(place.byte)
            with TextIOWrapper(file, encoding="utf-8", newline="") as text:
                yield Lines(path, text, place)
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {_undecodable_line(path)}: not UTF-8 text; save the table as UTF-8.") from None


def _undecodable_line(path: Origin) -> int:
    """Return the number of the line that is no UTF-8, without holding a long line in memory."""
    decoder = getincrementaldecoder("utf-8")()
    number = 1
    with open(path.path, "rb") as file:
        while piece := file.readline(_SAMPLE_CHARACTERS):
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                return number
            number += piece.endswith(b"\n")
    return number


def records(lines: Lines, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield records, each with the number of the line it begins on. Blank lines are skipped."""
    reader, before = _parser(iter(lines), delimiter), lines.place.lines
    line = before + 1
    try:
        for record in reader:
            if record:
                yield line, record
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise InputError(_sentence(lines.path, line, before + reader.line_num, error)) from None


def _sentence(path: Origin, first: int, last: int, error: csv.Error) -> str:
    """Say what is wrong with the record that begins on line `first` and is read up to line `last`."""
    limit = csv.field_size_limit()
    if first == last and "limit" in str(error):
        return f"{path}, line {first}: a cell is longer than {limit:,} characters; shorten it, or leave its column out."
    return f"{path}, line {first}: a quoted cell is not closed properly ({error}); correct its quotes."


def _parser(lines: Iterator[str], delimiter: str, *, strict: bool = True) -> Reader:
    if delimiter == " ":  # blanks at the ends of a line separate nothing
        lines = (f"{line.strip()}\n" for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)


def find_delimiter(sample: Sample) -> str:
    """Return the first delimiter that cuts every sampled record into the same number of cells, more than one.

    If none does, some row has too many or too few cells; the delimiter that gives the most cells in the first record is returned.
    """
    widths = {delimiter: _widths(sample, delimiter) for delimiter in _DELIMITERS}
    for delimiter, found in widths.items():
        if len(set(found)) == 1 and found[0] > 1:
            return delimiter
    if max(found[0] if found else 0 for found in widths.values()) == 1 and _is_cut_by_blanks(sample):
        return " "
    return max(reversed(_DELIMITERS), key=lambda d: widths[d][0] if widths[d] else 0)


def _is_cut_by_blanks(sample: Sample) -> bool:
    """Return whether blanks cut every record into the same number of cells, numbers only below the first record."""
    rows = [line.split() for line in sample.lines if line.strip()]
    if not sample.whole:
        rows = rows[:-1]
    # A time such as 2024-01-31 12:00 is no pair of numbers, and neither is a name of two words.
    return (
        len(rows) > 1
        and len({len(row) for row in rows}) == 1
        and len(rows[0]) > 1
        and all(kind_of(cell) in ("number", "missing") for row in rows[1:] for cell in row)
    )


def _widths(sample: Sample, delimiter: str) -> list[int]:
    """Return the number of cells of each sampled record, as far as the delimiter cuts the text into cells at all."""
    found = []
    try:
        for record in _parser(iter(sample.lines), delimiter, strict=False):
            if record:
                found.append(len(record))
    except csv.Error:  # the wrong delimiter makes one cell of a long line, longer than the parser takes
        return found
    # The sample may end inside a quoted cell.
    return found if sample.whole or len(found) < 2 else found[:-1]


# Rows converted at a time: few, so that their cells are freed before the garbage collector scans them.
_FEW = 256

# Rows between the places that are remembered.
_APART = 64 * _FEW


def read_csv_names(path: Origin, delimiter: str | None) -> list[str] | None:
    """Return the column names in the first line, or None if it holds numbers."""
    with opened(path) as lines:
        sample = lines.sample()
        _, first = next(records(lines, delimiter or find_delimiter(sample)), (0, []))
        return header_names(path, first)


def read_csv(
    path: Origin, delimiter: str | None, columns: Sequence[str] | None, but: str | None, decimal: str | None = None
) -> UncheckedTable:
    """Read the chosen columns of a text file. With `delimiter` or `decimal` None, the first lines decide."""
    with opened(path) as lines:
        begun = Begun(path, lines, delimiter, decimal)
        where = positions(path, begun.names, columns, but)
        values = _plain_values(begun, where)
        if values is None:
            parsed = begun.columns(where)
            numbers = list(parse(path, begun.rows, len(begun.names), dict(zip(where, parsed, strict=True))))
        else:
            parsed = [Column(begun.names[j], [values[:, k]]) for k, j in enumerate(where)]
            numbers = [begun.plain.lines(0, len(values))] if begun.plain else []
    _refuse_no_rows(path, sum(map(len, numbers)))
    counting = RowNumbers([begun.first[j] for j in where])
    counting.add(parsed[0].values if parsed else np.empty(0))
    dropped = _left_out(path, begun, counting, columns)
    look_at(path, parsed[dropped:], chosen=columns is not None)
    lines_of_rows = np.concatenate(numbers)
    stacked = _stacked(parsed[dropped:], len(lines_of_rows)) if values is None else values[:, dropped:]
    return UncheckedTable(
        np.ascontiguousarray(stacked), [column.name for column in parsed[dropped:]], begun.named, lines_of_rows
    )


def _plain_values(begun: Begun, where: list[int]) -> np.ndarray | None:
    """Return all numbers of a plain table; None where the exact reader is needed."""
    if begun.plain is None or not where:
        return None
    try:
        blocks = list(begun.plain.numbers(where, begun.numerals))
    except NotPlainError:
        return None
    return np.concatenate(blocks) if blocks else np.empty((0, len(where)))


def read_csv_labels(path: Origin, delimiter: str | None, column: str) -> tuple[list[str], list[int]]:
    """Return the cells of one column as text, and the line on which the row of each begins."""
    with opened(path) as lines:
        begun = Begun(path, lines, delimiter)
        labels = Labels()
        wanted = {positions(path, begun.names, [column])[0]: labels}
        numbers = list(parse(path, begun.rows, len(begun.names), wanted))
    return labels.cells, np.concatenate(numbers).tolist() if numbers else []


class CsvSource:
    """Chosen columns of a text file, read in blocks. One pass checks all cells and remembers where rows begin.

    Parameters
    ----------
    path : Origin
        The file.
    delimiter : str or None
        Delimiter between cells; None means that it is found from the text.
    columns, but
        As for :func:`isopleth.io.read_table`.
    progress : callable
        Called with the share of the file that has been read.
    decimal : str, optional
        Decimal sign; None means that it is found from the text.

    Raises
    ------
    InputError
        In the same cases as :func:`read_csv`.
    """

    def __init__(
        self,
        path: Origin,
        delimiter: str | None,
        columns: Sequence[str] | None,
        but: str | None,
        progress: Progress,
        decimal: str | None = None,
    ) -> None:
        self._path, self.n_rows = path, 0
        with opened(path) as lines:
            begun = Begun(path, lines, delimiter, decimal)
            where = positions(path, begun.names, columns, but)
            self.missing: MissingCells | None = MissingCells(len(where))
            self._numerals, self._plain = begun.numerals, begun.plain
            counting = RowNumbers([begun.first[j] for j in where])
            parsed = begun.columns(where)
            if not self._first_pass_of_plain(where, counting, progress):
                self._plain = None
                counting = RowNumbers([begun.first[j] for j in where])
                self._places, size = [begun.place], path.path.stat().st_size
                for block in _blocks_parsed(path, begun, where, parsed):
                    self.missing.add(block)
                    counting.add(block.values[:, 0] if where else block.values)
                    self.n_rows += len(block.values)
                    if self.n_rows % _APART == 0:
                        self._places.append(lines.place)
                        progress(lines.place.byte / size)
        _refuse_no_rows(path, self.n_rows)
        dropped = _left_out(path, begun, counting, columns)
        self._width, self._delimiter, self._where = len(begun.names), begun.delimiter, where[dropped:]
        look_at(path, parsed[dropped:], chosen=columns is not None)
        self.names, self.named = [column.name for column in parsed[dropped:]], begun.named

    def _first_pass_of_plain(self, where: list[int], counting: RowNumbers, progress: Progress) -> bool:
        """Check all cells of a plain table; return False where the exact reader is needed."""
        if self._plain is None or not where:
            return False
        rows = 0
        try:
            for values in self._plain.numbers(where, self._numerals):
                counting.add(values[:, 0])
                rows += len(values)
                progress(rows / self._plain.n_rows)
        except NotPlainError:
            return False
        self.n_rows = rows
        return True

    def blocks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Yield blocks of `size` rows from row `start` on; the last may be smaller."""
        if start >= self.n_rows:
            return
        yield from (
            self._exact_blocks(size, start) if self._plain is None else self._plain_blocks(self._plain, size, start)
        )

    def _plain_blocks(self, plain: PlainText, size: int, start: int) -> Iterator[Block]:
        try:
            for values in regrouped(plain.numbers(self._where, self._numerals, start), size):
                yield Block(values, plain.lines(start, len(values)))
                start += len(values)
        except NotPlainError:  # the file has changed since the first pass, which the caller finds by its time
            return

    def _exact_blocks(self, size: int, start: int) -> Iterator[Block]:
        passed = start // _APART
        with opened(self._path, self._places[passed]) as lines:
            rows = islice(records(lines, self._delimiter), start - passed * _APART, self.n_rows - passed * _APART)
            while start < self.n_rows:
                parsed = [Column(name, numerals=self._numerals) for name in self.names]
                wanted = dict(zip(self._where, parsed, strict=True))
                numbers = np.concatenate(
                    [*parse(self._path, islice(rows, size), self._width, wanted), np.empty(0, dtype=np.int64)]
                )
                if not len(numbers):
                    return
                yield Block(_stacked(parsed, len(numbers)), numbers)
                start += len(numbers)


class Begun:
    """Text file whose first line has been read.

    `first` are its cells, `names` the names to go by, `named` whether they stand there, `rows` the records that follow,
    `place` where they begin, and `plain` these records for the fast reader, if they are plain.
    """

    def __init__(self, path: Origin, lines: Lines, delimiter: str | None, decimal: str | None = None) -> None:
        self.place = lines.place
        sample = lines.sample()
        self.delimiter = delimiter or find_delimiter(sample)
        self.numerals = numerals_of(_sampled_cells(sample, self.delimiter, lines.place.lines), path, decimal)
        coming = records(lines, self.delimiter)
        try:
            line, self.first = next(coming)
        except StopIteration:
            raise InputError(f"{path} is empty; a table is needed.") from None
        found = header_names(path, self.first, self.numerals)
        self.named = found is not None
        self.names = found or [f"x{j + 1}" for j in range(len(self.first))]
        self.rows = coming if self.named else chain([(line, self.first)], coming)
        if self.named:
            self.rows = self._without_header(path, line, coming)
            self.place = lines.place
        self.plain = scan(path.path, self.place.byte, self.place.lines, self.delimiter, len(self.names))

    def columns(self, where: Sequence[int]) -> list[Column]:
        """Return columns to be filled by the exact reader."""
        return [Column(self.names[j], numerals=self.numerals) for j in where]

    def _without_header(
        self, path: Origin, first: int, rows: Iterator[tuple[int, list[str]]]
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield the records; refuse the header of line `first` among them, as files that were joined have it."""
        for line, record in rows:
            if record == self.first and self.first != [""]:
                raise repeated_header(path, line, first)
            yield line, record


def repeated_header(path: Origin, line: int, first: int) -> InputError:
    """Return the refusal of a row that repeats the header."""
    return InputError(f"{path}, line {line} repeats the header of line {first}; delete that line.")


def _sampled_cells(sample: Sample, delimiter: str, before: int) -> Iterator[tuple[int, str]]:
    """Yield the sampled cells with the lines of their records, as far as the text is cut into cells at all."""
    reader = _parser(iter(sample.lines), delimiter, strict=False)
    try:
        for record in reader:
            yield from ((before + reader.line_num, cell) for cell in record)
    except csv.Error:
        return


def _blocks_parsed(path: Origin, begun: Begun, where: list[int], columns: list[Column]) -> Iterator[Block]:
    """Yield all rows, a few at a time; the columns count their cells and do not keep them."""
    for numbers in parse(path, begun.rows, len(begun.names), dict(zip(where, columns, strict=True))):
        yield Block(_stacked(columns, len(numbers)), numbers)
        for column in columns:
            column.forget()


def parse(
    path: Origin, rows: Iterator[tuple[int, list[str]]], width: int, wanted: Mapping[int, Column | Labels]
) -> Iterator[np.ndarray]:
    """Fill the wanted columns, a few rows at a time, and yield the line numbers of these."""
    while few := list(islice(rows, _FEW)):
        numbers, found = zip(*few, strict=True)
        if set(map(len, found)) != {width}:
            _refuse_ragged(path, few, width)
        cells = list(zip(*found, strict=True))
        for position, column in wanted.items():
            column.add(cells[position], numbers)
        yield np.array(numbers, dtype=np.int64)


def _stacked(columns: list[Column], rows: int) -> np.ndarray:
    return np.stack([column.values for column in columns], axis=1) if columns else np.empty((rows, 0))


def _left_out(path: Origin, begun: Begun, counting: RowNumbers, columns: Sequence[str] | None) -> int:
    """Return the number of first columns to leave out: 1 for row numbers without a name, if no columns were chosen."""
    if not begun.named:
        return 0
    warn_of_numbered_header(path, begun.first)
    return int(columns is None and counting.found(path))


def _refuse_no_rows(path: Origin, rows: int) -> None:
    if not rows:
        raise InputError(f"{path} has a header but no rows; a table is needed.")


def _refuse_ragged(path: Origin, chunk: list[tuple[int, list[str]]], width: int) -> None:
    line, record = next((line, record) for line, record in chunk if len(record) != width)
    raise InputError(
        f"{path}, line {line}: {len(record)} cell{'s' if len(record) > 1 else ''} where the first line has {width}; "
        "correct that line."
    )
