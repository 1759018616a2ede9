"""Rows that do not fit in memory or are not there yet: a file in chunks, and a stream line by line."""

from __future__ import annotations

import codecs
import csv
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.core.errors import Hint, InputError, Message, quoted
from isopleth.core.parts import rows_of_a_chunk
from isopleth.files.delimited import (
    LONGEST,
    Dialect,
    Place,
    Text,
    find_delimiter,
    header_names,
    kind_of,
)
from isopleth.files.file_table import FileTable, MissingCells, refuse_odd_cells, refuse_words
from isopleth.files.read import Reader, Reading
from isopleth.files.readers import Columns
from isopleth.files.source import (
    Source,
    decoder_of,
)
from isopleth.files.typed_columns import ParseOptions, typed_columns
from isopleth.tables.cells import MISSING_NUMBERS, MISSING_WORDS
from isopleth.tables.numerals import Numerals
from isopleth.tables.schema import Schema
from isopleth.tables.unread import NO_ODD_CELLS, behind, refusal

_KEPT = 100  # cells of a column of a long file that could not be read, and are kept to be named
_MOST_NEW_WORDS = 20  # of a column of a stream that are told
_BYTES = 2**16  # that are read from a stream at a time
_STREAM = Path("standard input")
_ENCODING = Hint("name its encoding with {encoding}", encoding=...)


class FileRows:
    """Rows of a table in a file that need not fit in memory: read in chunks, and checked before any work is done.

    Parameters
    ----------
    path : path-like
        The file.
    how : Reading
        How to read it.
    schema : Schema, optional
        Encode the columns as this schema does: words as codes, NaN where a cell is missing. Without it all columns must hold
        complete numbers.
    progress : callable, optional
        Called with the share of the rows of .parquet and .npy, or of the bytes of text, that has been checked.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    named : bool
        Whether the file has names.
    n_rows : int
        Number of rows; with `schema`, of those read so far.
    unseen : Counter
        How many cells of each column hold words that the schema does not have.
    odd : OddTally
        Cells of the rows read so far that count as missing, since they could not be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isopleth.files.stream import FileRows
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    >>> rows = FileRows(path)
    >>> rows.names, rows.n_rows, [table.numbers().tolist() for table in rows.tables(2, start=1)]
    (['a', 'b'], 3, [[[3.0, 4.0], [5.0, 6.0]]])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        how: Reading = Reading(),  # noqa: B008 - frozen
        schema: Schema | None = None,
        progress: Callable[[float], None] = lambda share: None,
        min_rows: int = 2,
    ) -> None:
        self.file = Reader(path, how if schema is None else replace(how, schema=schema))
        self._stamp = self.file.source.stamp
        first = self.file.first()
        if schema is None:
            first = first.with_truth_as_numbers()
            refuse_words(first)
        kept = first if schema is None else first.using(schema)
        self.first = kept
        self._encode = schema is not None
        self.names, self.named = kept.names, self.file.named
        self.source: Path = self.file.source.shown
        self.n_rows, self.unseen, self.odd = 0, Counter[str](), OddTally()
        if schema is None:
            self._check_and_count(progress, min_rows)

    @property
    def chunk_rows(self) -> int:
        """Number of rows in a chunk of 8 MiB."""
        return rows_of_a_chunk(len(self.names))

    def _check_and_count(self, progress: Callable[[float], None], min_rows: int) -> None:
        """Pass over the file once: count the rows, and refuse cells that are no finite numbers and fewer than `min_rows` rows."""
        missing, odd, rows = MissingCells(self.names), OddTally(), 0
        for table in self.file.chunks(self.chunk_rows, self.first):
            odd.add(table)
            missing.add(table, table.encoded().numeric)
            rows += len(table)
            progress(self.file.share_of(rows))
        if self.file.how.bad_cells == "refuse":
            odd.refuse(self.source)
        missing.refuse(self.source)
        if rows < min_rows:
            has = "only one row" if rows == 1 else f"{rows or 'no'} rows"
            raise InputError(f"{self.source} has {has}; at least {min_rows} are needed.")
        self.n_rows = rows

    def _refuse_changed(self, *, certain: bool = False) -> None:
        """Refuse to go on in a file that has changed since it was opened."""
        if certain or self.file.source.stamp != self._stamp:
            raise InputError(f"{self.source} has changed while it was read; run again when nobody writes to it.")
        if not self.source.exists() and str(self.source) != "standard input":
            gone = FileNotFoundError(str(self.source))  # a cause that tells a run to keep what it has done
            raise InputError(f"{self.source} has gone while it was read; run again when it is back.") from gone

    def tables(self, rows: int | None = None, start: int = 0) -> Iterator[FileTable]:
        """Yield the rows from `start` on with their types, `rows` at a time; the last table may have fewer.

        Raises
        ------
        InputError
            If the file has changed since it was checked, or has been removed, or a cell is not of the kind of its column.
        """
        found = start
        for table in self.file.chunks(rows or self.chunk_rows, self.first, start):
            self._refuse_changed()
            found += len(table)
            if self.file.how.bad_cells == "refuse":
                refuse_odd_cells(table)
            self.odd.add(table)
            if self._encode:
                self.n_rows = found
                self.unseen.update({str(name): count for name, count in table.encoded().unseen.items()})
            yield table
        if found < self.n_rows:
            self._refuse_changed(certain=True)


class OddTally:
    """Cells that could not be read, or say a limit: found chunk by chunk, refused at the end."""

    def __init__(self) -> None:
        self._odd, self._places, self._rows = NO_ODD_CELLS, dict[int, str](), 0
        self._said = set[str]()

    def add(self, table: FileTable) -> None:
        """Keep the odd cells of the rows that follow, and their places."""
        self._odd = behind(self._odd, table.odd, self._rows).first(_KEPT)
        for row in self._odd.rows.tolist():
            if row >= self._rows:
                self._places[row] = table.place(row - self._rows)
        self._rows += len(table)

    def news(self, table: FileTable) -> list[Message]:
        """Return what counts as missing in rows of an endless stream, for columns of which nothing has been said."""
        names = {name: name for name in (*table.odd.unread, *table.odd.censored) if name not in self._said}
        self._said |= names.keys()
        return [note.located(table.source, table.place) for note in table.odd.of_columns(names).notes(table.place)]

    def _place(self, row: int) -> str:
        return self._places.get(row, f"row {row + 1}")

    def notes(self, path: object) -> list[Message]:
        """Return what counted as missing."""
        return [note.located(path, self._place) for note in self._odd.notes(self._place)]

    def refuse(self, path: object) -> None:
        """Refuse the file if any was found."""
        message = refusal([(str(path), self._odd, self._place)])
        if message is not None:
            raise InputError(message)


class NewWords:
    """Words of an endless stream that its reference does not have; each is said once, and of a column at most so many."""

    def __init__(self) -> None:
        self._said: dict[str, set[str]] = {}

    def news(self, table: FileTable) -> list[str]:
        """Return a sentence about each column with words that are new in these rows."""
        names = table.schema.categorical_names
        if not names:
            return []
        news, encoded = [], table.encoded()
        for name, levels, codes in zip(names, table.schema.levels, encoded.codes.T, strict=True):
            said = self._said.setdefault(str(name), set())
            places = np.flatnonzero(codes == len(levels))
            if not len(places) or len(said) >= _MOST_NEW_WORDS:
                continue
            words = map(str, table.data.column(str(name)).take(places).to_pylist())
            new = [word for word in dict.fromkeys(words) if word not in said][: _MOST_NEW_WORDS - len(said)]
            said.update(new)
            if new:
                last = "; further ones are not told" if len(said) == _MOST_NEW_WORDS else ""
                news.append(
                    f"{table.source}, {table.place(int(places[0]))}: {name} has words that the reference does not have, "
                    f"{quoted(new)}; they count as one more category{last}."
                )
        return news


class RowStream:
    """Rows that arrive one after another as lines of text, with the columns and kinds of a table.

    Where cells that cannot be read count as missing, rows go on behind a line that cannot be used.
    """

    def __init__(
        self,
        like: FileTable,
        encoding: str | None = None,
        decimal: str | None = None,
        bad_cells: str = "refuse",
    ) -> None:
        """Take the rows as those of a table are written: with its decimal sign, or `decimal` where it has none."""
        self.like = like
        self._refuses = bad_cells == "refuse"
        self._numerals = Numerals() if decimal is None else Numerals(decimal, grouped=True)
        if like.dialect is not None and not like.dialect.numerals.ordinary:
            self._numerals = like.dialect.numerals
        self._encoding = encoding or "utf-8"
        self._dialect: Dialect | None = None
        self._where: list[int] = []
        self._line = 0

    def batches(self, stream: Any) -> Iterator[tuple[FileTable, InputError | None]]:
        """Yield rows as soon as their lines are complete or the stream has ended, and what is wrong with the row behind them."""
        left = b""
        for chunk in self._as_utf8(getattr(stream, "read1", stream.read)):
            complete, end, left = (left + chunk).rpartition(b"\n")
            if end:
                yield from self._tables(complete + end)
            if len(left) > LONGEST:
                raise InputError(
                    f"{_STREAM}, line {self._line + 1}: more than {LONGEST:,} bytes without an end of line; send one row a line."
                )
        if left.strip():
            yield from self._tables(left)

    def _as_utf8(self, read: Callable[[int], bytes]) -> Iterator[bytes]:
        """Yield the bytes of a stream in UTF-8."""
        decoder = decoder_of(self._encoding)
        if codecs.lookup(self._encoding).name == "utf-8":  # whose errors name their lines
            yield from iter(lambda: read(_BYTES), b"")
            return
        try:
            while chunk := read(_BYTES):
                yield decoder.decode(chunk).encode()
            decoder.decode(b"", final=True)
        except UnicodeError:
            raise InputError(f"{_STREAM} is not {self._encoding} text", hint=_ENCODING, parameter="encoding") from None

    def _tables(self, text: bytes) -> Iterator[tuple[FileTable, InputError | None]]:
        before = self._line
        self._line += text.count(b"\n") + (not text.endswith(b"\n"))
        if self._dialect is None:
            text = text.removeprefix(b"\xef\xbb\xbf") if before == 0 else text
            head, end, text_ = text.partition(b"\n")
            while not head.strip():
                if not text_:
                    return
                text, before = text_, before + 1
                head, end, text_ = text.partition(b"\n")
            is_row = self._begin(head + end, before)
            text, before = (text, before) if is_row else (text_, before + 1)
        if not text.strip():
            return
        try:
            yield self._table(text, before), None
        except InputError:
            for line_before, line in enumerate(text.splitlines(keepends=True), before):  # up to the one that is wrong
                if line.strip():
                    try:
                        yield self._table(line, line_before), None
                    except InputError as error:
                        yield self._table(b"", line_before), error
                        if self._refuses:
                            return

    def _begin(self, head: bytes, before: int) -> bool:
        """Find the columns by the first line; return whether that line is a row."""
        like = self.like
        try:
            text = head.decode()
        except UnicodeDecodeError:
            raise InputError(f"{_STREAM}, line {before + 1}: not UTF-8 text", hint=_ENCODING) from None
        own = "" if self.like.dialect is None else self.like.dialect.delimiter
        delimiter = own if own and own in text.strip("\r\n") else find_delimiter([text], True)
        try:
            first = next(csv.reader([text.strip("\r\n")], delimiter=delimiter, skipinitialspace=True, strict=True), [])
        except csv.Error as error:
            raise InputError(
                f"{_STREAM}, line {before + 1}: no row of CSV ({error}); send one row a line, quotes closed."
            ) from None
        first = [cell.strip() for cell in first]
        try:
            found = header_names(_STREAM, first, self._numerals)
        except InputError:
            if len(first) != len(like.names):
                raise
            found = None
        if found is not None and not set(like.names) <= set(found) and all(kind_of(cell) == "number" for cell in first):
            found = None  # 0, 1, 2, ... is a header only where the reference has that one
        names = found or [f"x{j + 1}" for j in range(len(first))]
        place = Place(0, 0, before + (found is not None))
        self._dialect = Dialect(delimiter, self._numerals, names, False, first, place)
        if found is None or not like.named:
            if len(first) != len(like.names):
                raise InputError(
                    f"{_STREAM} has {len(first)} columns where the reference has {len(like.names)}; send those of the "
                    f"reference, or a header with their names: {quoted(like.names)}."
                )
            self._where = list(range(len(first)))
            return found is None
        missing = [name for name in like.names if name not in found]
        if missing:
            raise InputError(
                f"{_STREAM} lacks {quoted(missing)} of the reference's columns; it has {quoted(found)}",
                column=missing[0],
                hint=Hint("give both the same names, or choose the columns with {columns}", columns=...),
            )
        self._where = [found.index(name) for name in like.names]
        return False

    def _table(self, text: bytes, before: int) -> FileTable:
        """Return the rows of complete lines."""
        like = self.like
        if not text:
            empty = like.data.select(like.names).slice(0, 0)
            return replace(like, data=empty, lines=None, odd=NO_ODD_CELLS)
        source = Source(BytesIO(text), _STREAM, ".csv")
        assert self._dialect is not None
        dialect = replace(self._dialect, place=Place(0, 0, before))
        parts = list(Text(source, dialect).tables(self._where))
        strings, lines = pa.concat_tables([part for part, _ in parts]), np.concatenate([more for _, more in parts])
        kinds = {str(column.name): column.wanted for column in like.schema.columns}
        kinds |= dict.fromkeys(like.choices.categorical, "categorical")
        wanted = {name: kind for name, kind in kinds.items() if kind is not None}
        said = like.schema.missing
        words = (MISSING_WORDS, MISSING_NUMBERS) if said is None else (said, frozenset[str]())
        way = ParseOptions(*words, self._numerals, like.schema.day_first, like.schema.detection_limits)
        read = typed_columns(source, Columns(strings, True, lines), like.names, wanted, like.names, way)
        table = replace(like, data=read.data, lines=lines, source=_STREAM, odd=read.odd)
        if self._refuses:
            refuse_odd_cells(table)
        encoded = table.encoded()
        if np.isinf(encoded.numeric).any():
            raise InputError(f"{_STREAM}: a number is infinite")
        return table
