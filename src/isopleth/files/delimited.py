"""Delimited text through Arrow, piece by piece: one scan for quotes and line ends, then one parse.

Arrow is fast, but its errors name no line, and quotes in the middle of a word mislead it. So each piece of the text is scanned
first; from a place with such quotes on, Python's csv rewrites it, and where Arrow refuses text, Python's csv names the line.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO, TextIOWrapper
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as arrow_csv

from isopleth.core.errors import Hint, InputError
from isopleth.files.source import Source, likely_encoding
from isopleth.tables.cells import SPREADSHEET_ERRORS
from isopleth.tables.numerals import Numerals, numerals_of

_PIECE = 2**20  # bytes that are read, scanned and parsed at a time: their positions of quotes stay in the cache
LONGEST = 2**24  # a longer record is no row, and would fill the memory before anything could be said about it
# The sample by which delimiter and decimal sign are found: at most so many lines of at most so many bytes.
_SAMPLE_LINES, _FIRST_BYTES, _SAMPLE_BYTES = 500, 2**17, 2**22
# In the order of preference: commas are also met inside numbers and sentences, tabs hardly ever.
_DELIMITERS = ("\t", ";", "|", ",")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SEPARATOR = re.compile(r'"?sep=(.)"?')
_NEWLINE, _RETURN, _QUOTE, _COMMENT, _BLANK = 10, 13, 34, 35, 32
_MISSING = {word.lower() for word in SPREADSHEET_ERRORS} | {"", "na", "n/a", "nan", "null", "none", "?"}


class Place(NamedTuple):
    """Place between two records: rows, bytes and lines before it."""

    row: int = 0
    byte: int = 0
    line: int = 0


@dataclass(frozen=True)
class Dialect:
    """Delimiter, header and numerals of a text, and the place of its first row."""

    delimiter: str  # delimiter between cells; a blank means runs of blanks
    numerals: Numerals  # how numbers are written
    names: list[str]  # names of the columns; `x1`, `x2`, ... where the text has none
    named: bool  # whether the first line names them
    first: list[str]  # cells of the first line
    place: Place  # where the first row begins
    commented: bool = False  # whether lines that begin with # are comments: some stand above the header
    encoding: str = "utf-8"  # of the file


@dataclass(frozen=True, eq=False)
class Piece:
    """Some records: UTF-8 text in which Arrow finds them, the line on which each begins, and the place behind them."""

    text: bytes
    delimiter: str
    lines: np.ndarray
    behind: Place
    several_lines: bool = False


def kind_of(cell: str) -> str:
    """Return the kind of a cell: "missing", "boolean", "number" or "text"."""
    word = cell.strip().lower()
    if word in _MISSING:
        return "missing"
    if word in ("true", "false"):
        return "boolean"
    try:
        float("x" if "_" in word else word)
    except ValueError:
        return "text"
    return "number"


def cut(cell: str) -> str:
    """Return the cell in quotes, cut to a length that fits in a sentence."""
    return repr(cell) if len(cell) <= 40 else repr(cell[:37] + "...")


def recognised(source: Source, delimiter: str | None, decimal: str | None) -> Dialect:
    """Recognise the dialect of a text by its first lines."""
    lines, above, whole, start = _sample(source)
    if not any(map(str.strip, lines)):
        raise InputError(f"{source} is empty; a table is needed.")
    commented = above > 0
    named = _SEPARATOR.fullmatch(lines[0].strip())
    if named:  # Excel takes the delimiter from such a line
        delimiter, above = named[1], above + 1
        start, lines = Place(0, start.byte + len(lines[0].encode()), above), lines[1:]
    delimiter = delimiter or find_delimiter(lines, whole)
    refuse_head(source, lines, delimiter, above, whole)
    first, used = _first_record(source, lines, delimiter, above)
    numerals = numerals_of(_cells(lines, delimiter, above), source, decimal, delimiter=delimiter)
    names = header_names(source, first, numerals)
    lengths = [len(line.encode()) for line in lines[:used]]
    place = start if names is None else Place(0, start.byte + sum(lengths), start.line + used)
    found = names or [f"x{j + 1}" for j in range(len(first))]
    return Dialect(delimiter, numerals, found, names is not None, first, place, commented, source.encoding)


def _sample(source: Source) -> tuple[list[str], int, bool, Place]:
    """Return the first lines, how many comments stand above them, whether they are all, and where they begin."""
    source.file.seek(0)
    data = source.file.read(_FIRST_BYTES)
    if data.count(b"\n") <= _SAMPLE_LINES:
        data += source.file.read(_SAMPLE_BYTES)
    byte = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    whole = len(data) == source.size
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(f"{source}, line {line}: binary data and not text; save the table as UTF-8 text.")
    text = data[byte:] if whole or b"\n" not in data else data[byte : data.rindex(b"\n") + 1]
    parts = text.splitlines(keepends=True)
    above = next((i for i, part in enumerate(parts) if not part.startswith(b"#")), len(parts))
    start = Place(0, byte + sum(map(len, parts[:above])), above)
    lines = []
    for number, part in enumerate(parts[above : above + _SAMPLE_LINES], start=above + 1):
        try:
            lines.append(part.decode())
        except UnicodeDecodeError:
            if whole or len(parts) > 1:
                raise encoding_error(source, number) from None
            lines.append(part.decode(errors="ignore"))  # the sample ends inside a character
    return lines, above, whole and len(parts) - above <= _SAMPLE_LINES, start


def _first_record(source: Source, lines: list[str], delimiter: str, above: int) -> tuple[list[str], int]:
    """Return the first record of a text and the lines that it takes."""
    reader = _parser(iter(lines), delimiter, strict=True)
    try:
        for record in reader:
            if record:
                return [cell.strip() for cell in record], reader.line_num
    except csv.Error as error:
        raise InputError(
            f"{source}, line {above + 1}: a quoted cell is not closed properly ({error}); correct its quotes."
        ) from None
    raise InputError(f"{source} is empty; a table is needed.")


def _parser(lines: Iterator[str], delimiter: str, *, strict: bool = False) -> Any:
    if delimiter == " ":  # blanks at the ends of a line separate nothing
        lines = (f"{line.strip()}\n" for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)


def find_delimiter(lines: list[str], whole: bool) -> str:
    """Return the first delimiter that cuts sampled records alike, else the one with most cells in the first record."""
    widths = {delimiter: _widths(lines, delimiter, whole) for delimiter in _DELIMITERS}
    for delimiter, found in widths.items():
        if len(set(found)) == 1 and found[0] > 1:
            return delimiter
    if max(found[0] if found else 0 for found in widths.values()) == 1 and _is_cut_by_blanks(lines, whole):
        return " "
    usual = {delimiter: _usual(found) for delimiter, found in widths.items()}  # below a title
    best = max(reversed(_DELIMITERS), key=lambda d: usual[d][1] if usual[d][0] > 1 else 0.0)
    if usual[best][0] > 1 and usual[best][1] >= _USUAL:
        return best
    return max(reversed(_DELIMITERS), key=lambda d: widths[d][0] if widths[d] else 0)


# Least share of records with one number of cells among those of a table with a head or title.
_USUAL = 0.8


def _usual(widths: Sequence[int]) -> tuple[int, float]:
    """Return the usual number of cells of a record, and the share of the records that have it."""
    if not widths:
        return 0, 0.0
    width, count = Counter(widths).most_common(1)[0]
    return width, count / len(widths)


def _is_cut_by_blanks(lines: list[str], whole: bool) -> bool:
    """Return whether blanks cut every record into the same number of cells, numbers only below the first record.

    The first record may lack a cell, as in tables of R, and the first cells of the others be names.
    """
    rows = [line.split() for line in lines if line.strip()]
    rows = rows if whole else rows[:-1]
    if len(rows) < 2 or len({len(row) for row in rows[1:]}) != 1:
        return False
    short = len(rows[1]) - len(rows[0])
    # A time such as 2024-01-31 12:00 is no pair of numbers, and neither is a name of two words.
    numbers = all(kind_of(cell) in ("number", "missing") for row in rows[1:] for cell in row[max(short, 0) :])
    return short in (0, 1) and len(rows[1]) > 1 and numbers


def refuse_head(source: object, lines: list[str], delimiter: str, above: int, whole: bool) -> None:
    """Refuse a text whose first lines have other numbers of cells than nearly all lines below, and say why that may be."""
    records = _records_of(lines, delimiter, above, whole)
    if len(records) < _FEWEST_RECORDS:
        return
    (line, first), body = records[0], records[1:]
    width, share = _usual([len(record) for _, record in body])
    if len(first) == width or share < _USUAL:
        return
    sign = _IN_WORDS.get(delimiter, repr(delimiter))
    titled = _lines_without_values([record for _, record in body]) > 0
    if len(first) == width - 1 and share == 1.0 and not titled:
        if all(not record[-1].strip() for _, record in body):
            why = f"they end with {sign} and the header in line {line} does not; end the header with it, too"
        else:
            why = (
                f"the header in line {line} has no name for the first column, as tables of R have it; put a name and {sign} "
                "before it"
            )
        raise InputError(f"{source}: every line has one cell more than the header: {why}.")
    if len(first) == width + 1 and share == 1.0 and not first[-1].strip():
        raise InputError(
            f"{source}: the header in line {line} ends with {sign} and no other line does; delete it there."
        )
    start = next(i for i, (_, record) in enumerate(body) if len(record) == width)
    head = [number for number, _ in records[: start + 1]]
    extra = _lines_without_values([record for _, record in body[start + 1 :]])
    more = [number for number, _ in body[start + 1 : start + 1 + extra]]
    parts = [_in_lines(some) for some in (head, more) if some]
    raise InputError(
        f"{source}, line {body[start][0]}: {width} cells where the first line has {len(first)}, as in nearly all lines below; "
        f"if the names stand there, delete {' and '.join(parts)}, a title or the head of a logger, or begin them with #."
    )


# Records below which widths say nothing.
_FEWEST_RECORDS = 4
_IN_WORDS = {"\t": "a tab", " ": "a blank"}


def _records_of(lines: list[str], delimiter: str, above: int, whole: bool) -> list[tuple[int, list[str]]]:
    """Return the sampled records with their lines, as far as the text is cut into cells at all."""
    reader = _parser(iter(lines), delimiter)
    found: list[tuple[int, list[str]]] = []
    try:
        for record in reader:
            if record:
                found.append((above + reader.line_num, record))
    except csv.Error:
        return found
    return found if whole else found[:-1]


def _lines_without_values(records: Sequence[Sequence[str]]) -> int:
    """Return how many records at the beginning hold no digit, where most of the others do."""
    digits = [any(c.isdigit() for cell in record for c in cell) for record in records]
    without = next((i for i, has in enumerate(digits) if has), 0)
    return without if sum(digits) >= _USUAL * len(digits[without:]) else 0


def _in_lines(numbers: Sequence[int]) -> str:
    return f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]} to {numbers[-1]}"


def _widths(lines: list[str], delimiter: str, whole: bool) -> list[int]:
    """Return the number of cells of each sampled record, as far as the delimiter cuts the text into cells at all."""
    found = []
    try:
        for record in _parser(iter(lines), delimiter):
            if record:
                found.append(len(record))
    except csv.Error:  # the wrong delimiter makes one cell of a long line, longer than the parser takes
        return found
    return found if whole or len(found) < 2 else found[:-1]  # the sample may end inside a quoted cell


def _cells(lines: list[str], delimiter: str, above: int) -> Iterator[tuple[int, int, str]]:
    """Yield the sampled cells with line and column, as far as the text is cut into cells at all."""
    reader = _parser(iter(lines), delimiter)
    seen: set[str] = set()
    try:
        for record in reader:
            if not seen.issuperset(record):
                yield from ((above + reader.line_num, column, cell) for column, cell in enumerate(record))
                seen.update(record)
    except csv.Error:
        return


def header_names(source: object, first: list[str], numerals: Numerals = Numerals()) -> list[str] | None:  # noqa: B008
    """Return the column names in the first line, or None if it holds numbers."""
    kinds = [kind_of(numerals.plain(cell) or cell) for cell in first]
    if counts_columns(first) or ("number" not in kinds and "boolean" not in kinds):
        return [cell.strip() or f"x{j + 1}" for j, cell in enumerate(first)]
    if "text" in kinds:
        word = first[kinds.index("text")]
        value = next(cell for cell, kind in zip(first, kinds, strict=True) if kind in ("number", "boolean"))
        raise InputError(
            f"{source}: the first line mixes words ({cut(word)}) and numbers ({cut(value)}), so it is neither a header "
            "nor a row; put a header above it, or give every column a name that is not a number."
        )
    return None


def counts_columns(first: list[str]) -> bool:
    """Return whether a line is 0, 1, 2, ...: the header of a frame made of an array, with or without a blank for its index."""
    names = first[1:] if first and not first[0].strip() else first
    return len(names) > 1 and [name.strip() for name in names] == [str(j) for j in range(len(names))]


@dataclass
class Text:
    """Rows of a text, read in pieces."""

    source: Source  # text in UTF-8
    dialect: Dialect  # how it is cut into cells
    places: list[Place] = field(default_factory=list)  # where the pieces begin that were read so far

    def tables(self, where: Sequence[int], start: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the columns `where` as an Arrow table of strings, with the line on which each row begins, from a row on."""
        begin = next((place for place in reversed(self.places) if place.row <= start), self.dialect.place)
        skip = start - begin.row
        for piece in self._pieces(begin):
            if skip >= len(piece.lines):
                skip -= len(piece.lines)
                continue
            table = _parsed(self.source, piece, self.dialect, where)
            _refuse_repeated_header(self.source, self.dialect, table, piece.lines, where)
            yield table.slice(skip), piece.lines[skip:]
            skip = 0

    def _pieces(self, begin: Place) -> Iterator[Piece]:
        """Yield pieces of the text that end with a line."""
        if self.dialect.delimiter == " ":  # Arrow does not take runs of blanks for one delimiter
            yield from rewritten(self.source, self.dialect, begin)
            return
        here, rest = begin, b""
        while True:
            self.source.file.seek(here.byte + len(rest))
            more = self.source.file.read(_PIECE)
            data = rest + more
            if not data:
                return
            piece = _scanned(self.source, data, here, self.dialect, whole=not more)
            if piece is None:
                yield from rewritten(self.source, self.dialect, here)
                return
            if piece.behind.byte == here.byte:  # no record ends here
                if len(data) > LONGEST:
                    raise InputError(
                        f"{self.source}: line {here.line + 1} is longer than {LONGEST:,} characters; expected one row a line, "
                        "so check its line ends and quotes."
                    )
                rest = data
                continue
            if not self.places or self.places[-1].byte < here.byte:
                self.places.append(here)
            if len(piece.lines):
                yield piece
            rest, here = data[piece.behind.byte - here.byte :], piece.behind


def _refuse_repeated_header(
    source: Source, dialect: Dialect, table: Any, lines: np.ndarray, where: Sequence[int]
) -> None:
    """Refuse a row that repeats the header, as files that were joined have it."""
    names = [dialect.first[j] for j in where]
    # A single one of several columns may well hold its own name.
    if not dialect.named or not any(names) or len(names) == 1 < len(dialect.first):
        return
    alike: Any = None
    for cells, name in zip(table.columns, names, strict=True):
        same = np.flatnonzero(compute.equal(cells if alike is None else cells.take(alike), name))
        alike = same if alike is None else alike[same]
        if not len(alike):
            return
    raise _repeated_header(source, dialect, int(lines[alike[0]]))


def _repeated_header(source: Source, dialect: Dialect, line: int) -> InputError:
    return InputError(f"{source}, line {line} repeats the header of line {dialect.place.line}; delete that line.")


def _scanned(source: Source, data: bytes, here: Place, dialect: Dialect, *, whole: bool) -> Piece | None:
    """Return the complete records of some text; None where its quotes can only be understood cell by cell."""
    bytes_ = np.frombuffer(data, np.uint8)
    ends = _line_ends(bytes_, data)
    every = ends
    several_lines = False
    if b'"' in data:
        quotes = np.flatnonzero(bytes_ == _QUOTE)
        inside = np.searchsorted(quotes, ends) % 2 == 1
        ends = ends[~inside]
        if whole and len(quotes) % 2:
            return None
        complete = len(quotes) // 2 * 2 if whole or not len(ends) else np.searchsorted(quotes, ends[-1])
        used = quotes[:complete]
        if _misplaced(bytes_, used, ord(dialect.delimiter)):
            return None
        several_lines = len(ends) < int(np.searchsorted(every, ends[-1] if len(ends) else -1, side="right"))
    if whole and (not len(ends) or ends[-1] + 1 < len(data)):
        ends = np.append(ends, len(data))
    if not len(ends):
        return Piece(b"", dialect.delimiter, np.empty(0, dtype=np.int64), here)
    size = min(int(ends[-1]) + 1, len(data))
    text = data[:size]
    _check_text(source, text, here)
    starts = np.concatenate([[0], ends[:-1] + 1])
    first = bytes_[np.minimum(starts, len(data) - 1)]
    blank = (starts == ends) | ((first == _RETURN) & (ends == starts + 1)) | (starts >= len(data))
    lines = here.line + 1 + (np.searchsorted(every, starts) if several_lines else np.arange(len(starts)))
    if dialect.commented and (comment := ~blank & (first == _COMMENT)).any():
        keep = np.ones(len(starts), dtype=bool) & ~comment
        text = b"".join(text[a : b + 1] for a, b in zip(starts[keep].tolist(), ends[keep].tolist(), strict=True))
        blank |= comment
    passed = int(np.searchsorted(every, size - 1, side="right"))
    behind = Place(here.row + int((~blank).sum()), here.byte + size, here.line + passed)
    return Piece(text, dialect.delimiter, lines[~blank], behind, several_lines)


def _line_ends(bytes_: np.ndarray, data: bytes) -> np.ndarray:
    """Return the positions of line ends: newlines, and carriage returns that no newline follows."""
    ends = np.flatnonzero(bytes_ == _NEWLINE)
    if b"\r" not in data or data.count(b"\r\n") == data.count(b"\r"):
        return ends
    returns = np.flatnonzero(bytes_[:-1] == _RETURN)  # the last byte may be half of a line end
    return np.sort(np.concatenate([ends, returns[bytes_[returns + 1] != _NEWLINE]]))


def _misplaced(bytes_: np.ndarray, quotes: np.ndarray, delimiter: int) -> bool:
    """Return whether a quote opens inside a cell, or closes before its end; a quote in quotes is doubled."""
    opening, closing = quotes[0::2], quotes[1::2]
    if not len(opening):
        return False
    if len(closing) < len(opening):
        return True
    around = np.zeros(256, dtype=bool)
    around[[delimiter, _NEWLINE, _RETURN]] = True
    inner = np.flatnonzero(~around.take(bytes_.take(opening - 1, mode="wrap")))
    early = np.flatnonzero(~around.take(bytes_.take(closing + 1, mode="clip")))
    # Of those that are not beside a delimiter, the others are at an end of the text or doubled.
    inner = inner[(opening[inner] > 0) & (opening[inner] != closing[inner - 1] + 1)]
    early = early[closing[early] < len(bytes_) - 1]
    return bool(len(inner)) or bool((closing[early] + 1 != opening[np.minimum(early + 1, len(opening) - 1)]).any())


def _check_text(source: Source, text: bytes, here: Place) -> None:
    """Refuse binary data and other encodings, with the line."""
    if b"\0" in text:
        line = here.line + text.count(b"\n", 0, text.index(b"\0")) + 1
        raise InputError(f"{source}, line {line}: binary data and not text; save the table as UTF-8 text.")
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise encoding_error(source, here.line + text.count(b"\n", 0, error.start) + 1) from None


def _parsed(source: Source, piece: Piece, dialect: Dialect, where: Sequence[int]) -> Any:
    """Return the chosen columns of a piece of text as an Arrow table of strings."""
    columns = [str(j) for j in range(len(dialect.names))]
    wanted = [columns[j] for j in where]
    try:
        # Not read_csv, which takes over the handling of signals and complains when descriptors are closed at an exit.
        table = arrow_csv.open_csv(
            pa.BufferReader(piece.text),
            arrow_csv.ReadOptions(use_threads=False, column_names=columns, block_size=len(piece.text) + 1),
            arrow_csv.ParseOptions(delimiter=piece.delimiter, newlines_in_values=piece.several_lines),
            arrow_csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), check_utf8=False
            ),
        ).read_all()
    except pa.ArrowInvalid as error:
        _refuse_ragged(source, piece, dialect)
        raise InputError(f"{source}: {error}") from None
    if len(table) != len(piece.lines):
        _refuse_ragged(source, piece, dialect)
        raise InputError(f"{source}: {len(table)} rows in {len(piece.lines)} records; check its line ends and quotes.")
    return table.rename_columns([dialect.names[j] for j in where])


_ROWS = 8192  # rows that are rewritten at a time


def encoding_error(source: Source, line: int) -> InputError:
    """Return the refusal of text that is not UTF-8; it names the encoding that the text has most likely."""
    likely = likely_encoding(source)
    hint = Hint(
        "read it with {encoding}, which fits, or save it as UTF-8" if likely else "name its encoding with {encoding}",
        encoding=likely or ...,
    )
    return InputError(f"{source}, line {line}: not UTF-8 text", parameter="encoding", hint=hint)


def _refuse_ragged(source: Source, piece: Piece, dialect: Dialect) -> None:
    """Refuse the first record that has more or fewer cells than the first line, or repeats it."""
    # Unlike str.splitlines, which ends lines at vertical tabs and form feeds, too.
    lines = StringIO(piece.text.decode(), newline="")
    records = filter(None, csv.reader(lines, delimiter=piece.delimiter))
    for line in piece.lines.tolist():
        try:
            record = next(records, None)
        except csv.Error as error:
            raise _not_a_record(source, line, error, one_line=not piece.several_lines) from None
        if record is not None:
            _check_record(source, line, record, dialect)


def _not_a_record(source: Source, line: int, error: csv.Error, *, one_line: bool) -> InputError:
    """Return the refusal of a record that cannot be read: its cells are too long, or its quotes are wrong."""
    if one_line and "limit" in str(error):
        return InputError(
            f"{source}, line {line}: a cell is longer than {csv.field_size_limit():,} characters; "
            "shorten it, or leave its column out."
        )
    return InputError(f"{source}, line {line}: a quoted cell is not closed properly ({error}); correct its quotes.")


def _check_record(source: Source, line: int, record: list[str], dialect: Dialect) -> None:
    """Refuse a record with another number of cells than the first line, and a header that is repeated."""
    if dialect.named and any(record) and record == dialect.first:
        raise _repeated_header(source, dialect, line)
    if len(record) != (width := len(dialect.names)):
        title = "if the lines above it are a title, delete them or begin them with #; otherwise "
        raise InputError(
            f"{source}, line {line}: {len(record)} cell{'s' if len(record) > 1 else ''} where the first line has {width}; "
            f"{title if width == 1 else ''}correct that line."
        )


def rewritten(source: Source, dialect: Dialect, begin: Place) -> Iterator[Piece]:
    """Yield text with blanks after delimiters, quotes inside of words, or runs of blanks as Arrow reads it."""
    source.file.seek(begin.byte)
    text = TextIOWrapper(source.file, encoding="utf-8", newline="")
    row = begin.row
    try:
        records = _records(source, text, dialect, begin.line)
        while few := list(islice(records, _ROWS)):
            out = StringIO()
            writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerows(record for _, record in few)
            row += len(few)
            lines = np.array([line for line, _ in few], dtype=np.int64)
            yield Piece(out.getvalue().encode(), ",", lines, Place(row), several_lines=True)
    except UnicodeDecodeError:
        raise encoding_error(source, begin.line + 1) from None
    finally:
        text.detach()  # which would close the file


def _records(source: Source, text: Any, dialect: Dialect, before: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text, each with its line."""
    kept = (line for line in text)
    if dialect.commented:
        kept = ("\n" if line.startswith("#") else line for line in kept)
    if dialect.delimiter == " ":
        kept = (f"{line.strip()}\n" for line in kept)
    reader = csv.reader(kept, delimiter=dialect.delimiter, skipinitialspace=True, strict=True)
    line = before + 1
    try:
        for record in reader:
            if record:
                _check_record(source, line, record, dialect)
                yield line, record
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise _not_a_record(source, line, error, one_line=before + reader.line_num == line) from None
