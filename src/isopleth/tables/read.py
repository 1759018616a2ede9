"""Read a table in any format, in one pass, with columns of all kinds."""

from __future__ import annotations

import codecs
import csv
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.errors import DataWarning, Hint, InputError, Message
from isopleth.tables.cells import MISSING_WORDS, TRUTH
from isopleth.tables.formats import READERS, Columns, mapped, parquet_batches
from isopleth.tables.numerals import Numerals
from isopleth.tables.schema import Choices, Schema
from isopleth.tables.source import (
    PACKED_SUFFIXES,
    Source,
    as_utf8,
    check_beginning,
    choice,
    decoder_of,
    listed,
    opened,
    positions,
)
from isopleth.tables.table import FileTable
from isopleth.tables.text import (
    LONGEST,
    Dialect,
    Place,
    Text,
    counts_columns,
    find_delimiter,
    header_names,
    kind_of,
    recognised,
)
from isopleth.tables.typed import trimmed, typed, without_missing

# Delimiters of text files by suffix; None means that it is found from the text.
_DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t"}
# Rows of a file larger than memory by which the kinds of its columns are decided.
FIRST_ROWS = 100_000
_BYTES = 2**16  # that are read from a stream at a time
_STREAM = Path("standard input")
_ENCODING = Hint("name its encoding with {encoding}", encoding=...)
_CHUNK = 2**20  # numbers of a chunk, unless something else is asked for: 8 MiB of them


@dataclass(frozen=True)
class Reading:
    """How to read a file; see :func:`read_table`."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    labels: Sequence[str] = ()
    missing: frozenset[str] = MISSING_WORDS
    decimal: str | None = None
    encoding: str | None = None
    schema: Schema | None = None
    choices: Choices = field(default_factory=Choices)
    max_unpacked: int | None = None


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    time_columns: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    keep_identifiers: bool = False,
    labels: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    schema: Schema | None = None,
    min_rows: int = 1,
    max_unpacked: int | None = None,
    warn: bool = True,
) -> FileTable:
    """Read a table with columns of all kinds: numbers, words, truth values, times and missing cells.

    The suffix decides the format: .csv and .txt (cells between tabs, semicolons, bars, commas or blanks; a first line without
    numbers is the header, and lines that begin with # above it are comments), .tsv, .jsonl (one object a line), .parquet,
    .feather and .arrow, .xlsx (the first sheet), .npy, and .npz (its array ``X``, or its only two-dimensional one). A further
    suffix .gz, .bz2, .xz or .zst says that the file is compressed. The path ``-`` is standard input. The file is opened once.

    A column holds numbers if all cells that are not missing are numbers, and times if all are dates in one format. Decimal commas
    and signs between groups of three digits are recognised by the first lines. Columns of identifiers and of free text are not
    used. What was decided is in :attr:`FileTable.schema`, and a fit to the table honours it.

    Parameters
    ----------
    path : path-like
        The file.
    columns : sequence of str, optional
        Columns to read, in this order; all by default. Files without names have ``x1``, ``x2``, ... Columns that are asked for
        by name are used even if they look like identifiers.
    exclude : sequence of str
        Columns that are not read.
    categorical, numeric, time_columns : sequence of str
        Columns of these kinds, whatever values they hold.
    identifiers : sequence of str
        Columns to leave out since they name the rows.
    keep_identifiers : bool, default=False
        Whether columns that look like identifiers are used.
    labels : sequence of str
        Columns with the class or group of each row: they are kept apart as they are written, in :attr:`FileTable.labels`.
    missing : sequence of str, optional
        Words that mean a missing cell, besides the empty cell; by default NA, N/A, NaN, null, ? and a few others.
    decimal : {".", ","}, optional
        Decimal sign of text; recognised by default.
    encoding : str, optional
        Encoding of text, such as "latin-1" or "cp1252"; "auto" guesses it. By default text is UTF-8, or UTF-16 with a mark.
    schema : Schema, optional
        Read the columns of this schema, as what they are there: that of a table to which a model was fitted.
    min_rows : int, default=1
        Fewer rows than this are refused.
    max_unpacked : int, optional
        Bytes that a compressed file may have when it is unpacked, and that a table in a workbook, an archive or JSONL may take;
        1 GiB by default.
    warn : bool, default=True
        Whether warnings say which columns are left out and what was recognised. It is in :attr:`FileTable.notes` in any case.

    Returns
    -------
    FileTable

    Raises
    ------
    InputError
        If the file cannot be read as a table, or a cell is not of the kind of its column. The message says what is wrong, where,
        and what to do.
    MissingExtraError
        If the format needs a package that is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import isopleth
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,x\\n")
    >>> table = isopleth.read_table(path, columns=["a"])
    >>> table, table.numbers().tolist()
    (<Table ...points.csv: 3 rows: 1 number>, [[1.0], [3.0], [5.0]])
    >>> folder.cleanup()
    """
    choices = Choices(
        tuple(categorical),
        tuple(numeric),
        tuple(time_columns),
        (),
        tuple(identifiers),
        keep_identifiers or columns is not None,
        missing_words(missing),
    )
    how = Reading(columns, exclude, labels, missing_words(missing), decimal, encoding, schema, choices, max_unpacked)
    table = Reader(path, how).read(min_rows)
    if schema is not None:
        table.encoded()  # which names a cell that is not of the kind of its column
    if warn:
        left_out = [f"{str(name)!r} ({why})" for name, why in table.schema.left_out.items() if name not in identifiers]
        notes = [Message(f"columns left out: {', '.join(left_out)}.", source=str(table.source))]
        for note in [*notes[: bool(left_out) and schema is None], *table.notes]:
            warnings.warn(DataWarning(note), stacklevel=2)
    return table


def missing_words(words: Sequence[str] | None) -> frozenset[str]:
    """Return the words that mean a missing cell; the default ones for None. An empty cell is always missing."""
    return MISSING_WORDS if words is None else frozenset({"", *words})


class Reader:
    """Open file of a table, which is read as a whole or in chunks.

    Parameters
    ----------
    path : path-like
        The file.
    how : Reading
        How to read it.

    Attributes
    ----------
    names : list of str
        Names of the columns that are read.
    named : bool
        Whether the file has names.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`read_table`.
    """

    def __init__(self, path: str | os.PathLike[str], how: Reading = Reading()) -> None:
        source = opened(path, how.max_unpacked)
        self.how = how
        if source.suffix not in _DELIMITERS and source.suffix not in READERS:
            known = f"{', '.join([*_DELIMITERS, *READERS])} (also {', '.join(PACKED_SUFFIXES)})"
            raise InputError(f"{source}: {source.suffix!r} files are not read; use one of {known}.")
        self.text: Text | None = None
        if source.suffix in _DELIMITERS:
            source = as_utf8(source, how.encoding) if source.size else source
            check_beginning(source, ())
            self.text = Text(source, recognised(source, _DELIMITERS[source.suffix], how.decimal))
        else:
            check_beginning(source, READERS[source.suffix][0])
        self.source: Source = source
        self._whole: Columns | None = None
        if self.text is not None:
            offered, self.named = self.text.dialect.names, self.text.dialect.named
        elif source.suffix == ".npy":
            offered, self.named = [f"x{j + 1}" for j in range(mapped(source).shape[1])], False
        else:
            self._whole = READERS[source.suffix][1](source)
            offered, self.named = list(self._whole.data.column_names), self._whole.named
        self._refuse_unknown_labels(offered)
        labels = [offered.index(name) for name in how.labels]
        self.where = [j for j in self._chosen(offered) if j not in labels]
        self.names = [offered[j] for j in self.where]
        self.where += labels
        # By the names of the file, which are matched by position where it has none.
        own = {} if how.schema is None else how.schema.day_first
        theirs = [] if how.schema is None else map(str, how.schema.names)
        self._day_first = {mine: own[name] for mine, name in zip(self.names, theirs, strict=False) if name in own}

    def _refuse_unknown_labels(self, offered: list[str]) -> None:
        for name in self.how.labels:
            if name not in offered:
                text = f"{self.source} has no column {name!r} ({{parameter}}); it has {listed(offered)}."
                raise InputError(text, parameter="labels", column=name)

    def _chosen(self, offered: list[str]) -> list[int]:
        how, schema = self.how, self.how.schema
        if schema is None:
            return positions(self.source, offered, how.columns, how.exclude)
        if schema.named and self.named:
            needed = [str(name) for name in schema.names]
            refuse_mismatch(
                self.source, needed, offered if how.columns is None else how.columns, how.columns is not None
            )
            return positions(self.source, offered, needed, ())
        where = positions(self.source, offered, how.columns, how.exclude)
        names = [str(name) for name in schema.names]
        if len(where) != len(names):
            count = f"{len(where)} column{'s' if len(where) != 1 else ''}"
            these = f"the {len(names)} columns" if len(names) > 1 else "the one column"
            # Of too few columns there is nothing to choose.
            hint = f"choose {these} with {{columns}}" if len(where) > len(names) else f"give a table with {these}"
            text = f"{self.source}: {count} where the model was fitted on {len(names)}"
            raise InputError(text, parameter="columns", hint=Hint(hint, columns=...))
        return where

    @property
    def dialect(self) -> Dialect | None:
        """How text is cut into cells; None for other formats."""
        return None if self.text is None else self.text.dialect

    def read(self, min_rows: int = 1) -> FileTable:
        """Return the whole table."""
        return self._table(self._all(None), min_rows)

    def first(self, rows: int = FIRST_ROWS, min_rows: int = 1) -> FileTable:
        """Return the first rows."""
        return self._table(self._all(rows), min_rows)

    def _all(self, most: int | None) -> Columns:
        import pyarrow as pa

        if self.text is not None:
            tables, lines, count = [], [], 0
            for table, more in self.text.tables(self.where):
                tables.append(table)
                lines.append(more)
                count += len(more)
                if most is not None and count >= most:
                    break
            if not count:
                raise InputError(f"{self.source} has a header but no rows; a table is needed.")
            return Columns(pa.concat_tables(tables).slice(0, most), self.named, np.concatenate(lines)[:most])
        if self._whole is None:
            if self.source.suffix == ".npy" and most is not None:
                from isopleth.tables.formats import _table_of

                return Columns(_table_of(np.asarray(mapped(self.source)[:most])).select(self.where), False)
            self._whole = READERS[self.source.suffix][1](self.source)
        data, lines_ = self._whole.data.select(self.where), self._whole.lines
        return Columns(data.slice(0, most), self.named, None if lines_ is None else lines_[:most])

    def _table(self, columns: Columns, min_rows: int) -> FileTable:
        rows, how = len(columns.data), self.how
        if not self.names and how.labels:
            raise InputError(
                f"{self.source} has no column besides {listed(list(how.labels))}; there is nothing to learn from."
            )
        if not self.names:
            raise InputError(f"{self.source} has no columns; a table is needed.")
        if rows < max(min_rows, 1):
            has = "only one row" if rows == 1 else f"{rows or 'no'} rows"
            raise InputError(
                f"{self.source} has {has}; at least {max(min_rows, 1)} {'are' if min_rows > 1 else 'is'} needed."
            )
        labels = {name: self._labels(columns, name) for name in how.labels}
        data = self.typed(columns, how.schema)
        if how.schema is not None:
            data = data.rename_columns([str(name) for name in how.schema.names])
            return FileTable(
                data, how.schema, self.source.shown, self.named, columns.lines, self._notes(), how.choices, labels
            )
        empty = Schema.of_numbers(self.names, True)
        table = FileTable(data, empty, self.source.shown, self.named, columns.lines, (), how.choices, labels)
        for option, names in (
            ("identifiers", how.choices.identifiers),
            ("categorical", how.choices.categorical),
            ("numeric", how.choices.numeric),
            ("time_columns", how.choices.times),
        ):
            unknown = [name for name in names if name not in self.names]
            if unknown:
                text = f"{self.source} has no column {listed(unknown)} ({{parameter}}); it has {listed(self.names)}."
                raise InputError(text, parameter=option, column=unknown[0])
        try:
            schema = Schema.of(data, typed=True, choices=how.choices)
            columns_ = (replace(c, day_first=self._day_first.get(str(c.name))) for c in schema.columns)
            schema = replace(schema, columns=tuple(columns_))
        except InputError as error:
            raise error.located(self.source, table.place) from None
        notes = [note.located(self.source, table.place) for note in schema.notes]
        return replace(table, schema=schema, notes=(*self._notes(), *notes))

    def _labels(self, columns: Columns, name: str) -> np.ndarray:
        """Return a column as it is written: words of text, numbers or words of other formats."""
        cells = columns.data.column(len(self.names) + list(self.how.labels).index(name))
        values = cells.to_pylist()
        if self.text is not None:
            values = [cell.strip() for cell in values]
            kinds = {kind_of(cell) for cell in values}
            # Among words, "none" may be a class; among numbers it stands for a missing one.
            missing = [cell == "" if "text" in kinds else kind_of(cell) == "missing" for cell in values]
        else:
            missing = [cell is None or cell != cell for cell in values]
        if any(missing):
            row = missing.index(True)
            place = f"row {row + 1}" if columns.lines is None else f"line {columns.lines[row]}"
            raise InputError(
                f"{self.source}, {place}: no class in {{column}}",
                column=name,
                row=row,
                hint="fill the cell or drop the row",
            )
        return np.array(values)

    def _notes(self) -> tuple[Message, ...]:
        notes = []
        if self.text is not None:
            dialect = self.text.dialect
            if dialect.numerals.decimal == ",":
                notes.append("the comma is taken as the decimal sign.")
            elif dialect.numerals.grouped:
                notes.append("signs between groups of three digits are left out of numbers.")
            if dialect.named and counts_columns(dialect.first):
                notes.append("the first line counts the columns from 0, so it is taken as a header and not as a row.")
            if dialect.commented:
                notes.append("lines that begin with # are taken as comments.")
        return tuple(Message(note, source=str(self.source)) for note in notes)

    def typed(self, columns: Columns, schema: Schema | None) -> Any:
        """Return columns with types of their own; columns that hold words in `schema` stay words."""
        numerals = self.text.dialect.numerals if self.text is not None else Numerals()
        kinds = None if schema is None else schema.columns
        return typed_columns(self.source, columns, self.names, kinds, self.how, numerals, self._day_first)

    def chunks(self, rows: int, like: FileTable, start: int = 0) -> Iterator[FileTable]:
        """Yield tables of `rows` rows with the schema and kinds of `like`, from a row on.

        Text, Parquet and .npy files are read chunk by chunk, other formats as a whole.
        """
        import pyarrow as pa

        held, lines = None, np.empty(0, dtype=np.int64)
        for piece in self._pieces(rows, start):
            held = piece.data if held is None else pa.concat_tables([held, piece.data])
            if piece.lines is not None:
                lines = np.concatenate([lines, piece.lines])
            while len(held) >= rows:
                yield self._chunk(held.slice(0, rows), lines[:rows], like)
                held, lines = held.slice(rows), lines[rows:]
        if held is not None and len(held):
            yield self._chunk(held, lines, like)

    def _pieces(self, rows: int, start: int) -> Iterator[Columns]:
        from isopleth.tables.formats import _table_of

        if self.text is not None:
            for table, lines in self.text.tables(self.where, start):
                yield Columns(table, self.named, lines)
        elif self.source.suffix == ".npy":
            for first in range(start, len(mapped(self.source)), rows):
                # A new memory map for each block, because the pages that a map has read count as memory of the process.
                yield Columns(
                    _table_of(np.asarray(mapped(self.source)[first : first + rows])).select(self.where), False
                )
        else:
            parquet = self.source.suffix == ".parquet"
            tables = parquet_batches(self.source, rows) if parquet else [self._all(None).data]
            for table in tables:
                if start < len(table):
                    whole = table.select(self.where) if parquet else table
                    yield Columns(whole.slice(start), self.named)
                start = max(0, start - len(table))

    def _chunk(self, data: Any, lines: np.ndarray, like: FileTable) -> FileTable:
        columns = Columns(data, self.named, lines if len(lines) else None)
        words = [
            replace(column, kind="categorical") if str(kind) == "string" else replace(column, kind="numeric")
            for column, kind in zip(Schema.of_numbers(self.names, True).columns, like.data.schema.types, strict=True)
        ]
        typed_ = self.typed(columns, Schema(tuple(words), {}, (), True, len(words)))
        return replace(like, data=typed_.rename_columns(like.data.column_names), lines=columns.lines)


def typed_columns(
    source: Source,
    columns: Columns,
    names: list[str],
    kinds: Sequence[Any] | None,
    how: Reading,
    numerals: Numerals,
    day_first: dict[str, bool],
) -> Any:
    """Return columns with types of their own; those that `kinds` takes as words stay words.

    The order of days and months of each column is looked up in `day_first`, or added.
    """
    import pyarrow as pa

    table = FileTable(columns.data, Schema.of_numbers([], True), source.shown, True, columns.lines)
    found = []
    for j, (name, cells) in enumerate(zip(names, columns.data.columns, strict=False)):  # labels come behind
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if pa.types.is_nested(cells.type):
            text = "{column} holds lists or records; leave it out, or make columns of them."
            raise InputError(text, column=name).located(source)
        if pa.types.is_null(cells.type):
            cells = cells.cast(pa.string())
        elif pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
            cells = cells.cast(pa.string())
            kept = kinds is not None and kinds[j].kind == "categorical" and kinds[j].levels != TRUTH
            if kept or name in how.choices.categorical:
                cells = without_missing(trimmed(cells), how.missing)
            else:
                try:
                    cells = typed(name, cells, how.missing, numerals, table.place, day_first)
                except InputError as error:
                    raise error.located(source, table.place) from None
        found.append(cells)
    return pa.table(found, names=names)


def refuse_mismatch(path: object, names: list[str], offered: Sequence[str], chosen: bool) -> None:
    """Refuse missing columns. Other columns of the file are ignored; others that were chosen by name are refused.

    Raises
    ------
    InputError
        If there are any; the message names those missing and those left over.
    """
    there, known = set(offered), set(names)
    missing = [name for name in names if name not in there]
    extra = [name for name in offered if name not in known]
    if not missing and not (extra and chosen):
        return
    where = "{parameter}" if chosen else str(path)
    if not missing:
        raise InputError(
            f"{where} names {listed(extra, most=4)}, which the model was not fitted on; its columns are {listed(names)}.",
            parameter="columns",
            column=extra[0],
        )
    if len(missing) == len(names):
        raise InputError(
            f"{where} has none of the columns that the model was fitted on, {listed(names)}; give a table with these columns.",
            parameter="columns",
        )
    others = f", and has {listed(extra, most=4)}, which the model does not know" if extra else ""
    raise InputError(
        f"{where} lacks {listed(missing)} of the columns that the model was fitted on{others}; add or rename columns.",
        parameter="columns",
        column=missing[0],
    )


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a table as numbers, and for text files the line on which each begins."""

    values: np.ndarray
    lines: np.ndarray | None = None


class FileRows:
    """Rows of a table in a file that need not fit in memory, as numbers: read in chunks, and checked before any work is done.

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

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isopleth.tables.read import FileRows
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    >>> rows = FileRows(path)
    >>> rows.names, rows.n_rows, [chunk.values.tolist() for chunk in rows.chunks(2, start=1)]
    (['a', 'b'], 3, [[[3.0, 4.0], [5.0, 6.0]]])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        how: Reading = Reading(),
        schema: Schema | None = None,
        progress: Callable[[float], None] = lambda share: None,
        min_rows: int = 2,
    ) -> None:
        self.file = Reader(path, how if schema is None else replace(how, schema=schema))
        self._stamp = self.file.source.stamp
        first = self.file.first(FIRST_ROWS)
        if schema is None:
            first = first.with_truth_as_numbers()
            refuse_words(first)
        kept = first if schema is None else first.using(schema)
        self.first = kept
        self._encode = schema is not None
        self.names, self.named = kept.names, self.file.named
        self.source: Path = self.file.source.shown
        self.n_rows, self.unseen = 0, Counter[str]()
        if schema is None:
            self._check(progress, min_rows)

    @property
    def chunk_rows(self) -> int:
        """Number of rows in a chunk of 8 MiB."""
        return rows_of_a_chunk(len(self.names))

    def _check(self, progress: Callable[[float], None], min_rows: int) -> None:
        """Pass over the file once: all cells are finite numbers."""
        missing, rows, size = MissingCells(self.names), 0, max(self.file.source.size, 1)
        for table in self.file.chunks(self.chunk_rows, self.first):
            missing.add(table, table.encoded().numeric)
            rows += len(table)
            places = self.file.text.places if self.file.text is not None else []
            progress(places[-1].byte / size if places else 0.0)
        missing.refuse(self.source)
        if rows < min_rows:
            has = "only one row" if rows == 1 else f"{rows or 'no'} rows"
            raise InputError(f"{self.source} has {has}; at least {min_rows} are needed.")
        self.n_rows = rows

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Block]:
        """Yield the rows from `start` on, `rows` at a time; the last chunk may have fewer.

        Raises
        ------
        InputError
            If the file has changed since it was checked, or has been removed, or a cell is not of the kind of its column.
        """
        found = start
        for table in self.file.chunks(rows or self.chunk_rows, self.first, start):
            self._refuse_changed()
            encoded = table.encoded()
            found += len(table)
            if self._encode:
                self.n_rows = found
                self.unseen.update({str(name): count for name, count in encoded.unseen.items()})
            codes = np.where(encoded.codes < 0, np.nan, encoded.codes)
            yield Block(np.column_stack([encoded.numeric, codes]), table.lines)
        if found < self.n_rows:
            self._refuse_changed(certain=True)

    def _refuse_changed(self, *, certain: bool = False) -> None:
        if certain or self.file.source.stamp != self._stamp:
            raise InputError(f"{self.source} has changed while it was read; run again when nobody writes to it.")
        if not self.source.exists() and str(self.source) != "standard input":
            gone = FileNotFoundError(str(self.source))  # a cause that tells a run to keep what it has done
            raise InputError(f"{self.source} has gone while it was read; run again when it is back.") from gone

    def tables(self, rows: int, start: int = 0) -> Iterator[FileTable]:
        """Yield the rows from `start` on with their types, `rows` at a time."""
        self.n_rows = start if self._encode else self.n_rows
        for table in self.file.chunks(rows, self.first, start):
            self._refuse_changed()
            if self._encode:
                self.n_rows += len(table)
                self.unseen.update({str(name): count for name, count in table.encoded().unseen.items()})
            yield table


def rows_of_a_chunk(columns: int) -> int:
    """Return the number of rows of so many columns that fit 8 MiB."""
    return max(1, _CHUNK // max(columns, 1))


def complete_numbers(table: FileTable) -> FileTable:
    """Return a table of complete numbers, truth values as 0 and 1.

    Raises
    ------
    InputError
        If a column holds words or times, or a cell is missing.
    """
    table = table.with_truth_as_numbers()
    refuse_words(table)
    missing = MissingCells(table.names)
    missing.add(table, table.values)
    missing.refuse(table.source)
    return table


class MissingCells:
    """Count of missing and infinite cells in each column: found chunk by chunk, refused at the end.

    Parameters
    ----------
    names : list of str
        The columns.
    """

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._counts = np.zeros(len(names), dtype=np.int64)
        self._first = [""] * len(names)
        self._rows = 0

    def add(self, table: FileTable, values: np.ndarray) -> None:
        """Count the missing cells of the rows that follow."""
        bad = ~np.isfinite(values)
        for j in np.flatnonzero(bad.any(axis=0)):
            if not self._counts[j]:
                row = int(bad[:, j].argmax())
                self._first[j] = table.place(row if table.lines is not None else row + self._rows)
            self._counts[j] += np.count_nonzero(bad[:, j])
        self._rows += len(bad)

    def refuse(self, path: object) -> None:
        """Refuse the file if any was found.

        Raises
        ------
        InputError
            If there is one; the message has the number of such rows in each column and the first of them.
        """
        bad = np.flatnonzero(self._counts).tolist()
        if not bad:
            return
        worst = [f"{self._names[j]!r} {self._where(j)}" for j in bad[:5]]
        more = len(bad) - len(worst)
        if more:
            worst.append(f"{more} more column{'s' if more > 1 else ''}")
        raise InputError(
            f"{path}: empty, NaN or infinite cells in {', '.join(worst)}",
            column=self._names[bad[0]],
            hint=Hint("fill or drop these rows, or choose other columns with {columns}", columns=...),
        )

    def _where(self, j: int) -> str:
        count, place = self._counts[j], self._first[j]
        return f"({count} rows, the first in {place})" if count > 1 else f"({place})"


# Columns that an advice names in full.
_MOST_ADVISED = 6


def refuse_words(table: FileTable) -> None:
    """Refuse columns of words and times, for what takes numbers only.

    Raises
    ------
    InputError
        If there are any; the message says the shorter way to do without them.
    """
    text = [str(column.name) for column in table.schema.columns if column.kind != "numeric"]
    numbers = [str(column.name) for column in table.schema.columns if column.kind == "numeric"]
    if not text:
        return
    several = len(text) > 1
    if not numbers:
        held = f"all {len(text)} columns hold" if several else f"the only column, {text[0]!r}, holds"
        raise InputError(f"{table.source}: {held} words or times; a table of numbers is needed.", column=text[0])
    if len(numbers) < len(text) and len(numbers) <= _MOST_ADVISED:
        hint = Hint("choose the numbers with {columns}", columns=choice(numbers))
    elif len(text) <= _MOST_ADVISED:
        hint = Hint(f"leave {'them' if several else 'it'} out with {{exclude}}", exclude=choice(text))
    else:
        hint = Hint("choose columns of numbers, such as {columns}", columns=choice(numbers[:2]))
    subject = f"{table.source}: no numbers in column{'s' if several else ''} {listed(text, most=4)}"
    raise InputError(subject, column=text[0], hint=hint)


class RowStream:
    """Rows that arrive one after another as lines of text, with the columns and kinds of a table.

    Parameters
    ----------
    like : FileTable
        Its columns are matched by name where both have names, and by position otherwise.
    encoding : str, optional
        Encoding of the text; UTF-8 by default and for "auto", since the first rows of a stream are too few to guess by.
    """

    def __init__(self, like: FileTable, encoding: str | None = None) -> None:
        self.like = like
        self._encoding = "utf-8" if encoding in (None, "auto") else encoding
        self._dialect: Dialect | None = None
        self._where: list[int] = []
        self._line = 0

    def batches(self, stream: Any) -> Iterator[tuple[FileTable, InputError | None]]:
        """Yield rows as soon as their lines are complete or the stream has ended, and what is wrong with the row behind them.

        Raises
        ------
        InputError
            For a line without an end.
        """
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
            if not head.strip():
                self._line = before + 1
                if text_:
                    yield from self._tables(text_)
                return
            is_row = self._begin(head + end, before)
            text, before = (text, before) if is_row else (text_, before + 1)
        if not text.strip():
            return
        try:
            yield self._table(text, before), None
        except InputError as error:
            if text.rstrip(b"\n").count(b"\n") == 0:
                yield self._table(b"", before), error
                return
            for number, line in enumerate(text.splitlines(keepends=True)):  # up to the one that is wrong
                for table, wrong in self._one(line, before + number):
                    yield table, wrong
                    if wrong is not None:
                        return

    def _one(self, line: bytes, before: int) -> Iterator[tuple[FileTable, InputError | None]]:
        if line.strip():
            try:
                yield self._table(line, before), None
            except InputError as error:
                yield self._table(b"", before), error

    def _source(self, text: bytes) -> Source:
        return Source(BytesIO(text), _STREAM, ".csv")

    def _begin(self, head: bytes, before: int) -> bool:
        """Find the columns by the first line; return whether that line is a row."""
        like = self.like
        try:
            text = head.decode()
        except UnicodeDecodeError:
            raise InputError(f"{_STREAM}, line {before + 1}: not UTF-8 text", hint=_ENCODING) from None
        delimiter = find_delimiter([text], True)
        try:
            first = next(csv.reader([text.strip("\r\n")], delimiter=delimiter, skipinitialspace=True, strict=True), [])
        except csv.Error as error:
            raise InputError(
                f"{_STREAM}, line {before + 1}: no row of CSV ({error}); send one row a line, quotes closed."
            ) from None
        first = [cell.strip() for cell in first]
        try:
            found = header_names(_STREAM, first)
        except InputError:
            if len(first) != len(like.names):
                raise
            found = None
        if found is not None and not set(like.names) <= set(found) and all(kind_of(cell) == "number" for cell in first):
            found = None  # 0, 1, 2, ... is a header only where the reference has that one
        names = found or [f"x{j + 1}" for j in range(len(first))]
        place = Place(0, 0, before + (found is not None))
        self._dialect = Dialect(delimiter, Numerals(), names, False, first, place)
        if found is None or not like.named:
            if len(first) != len(like.names):
                raise InputError(
                    f"{_STREAM} has {len(first)} columns where the reference has {len(like.names)}; send those of the "
                    f"reference, or a header with their names: {listed(like.names)}."
                )
            self._where = list(range(len(first)))
            return found is None
        missing = [name for name in like.names if name not in found]
        if missing:
            raise InputError(
                f"{_STREAM} lacks {listed(missing)} of the reference's columns; it has {listed(found)}",
                column=missing[0],
                hint=Hint("give both the same names, or choose the columns with {columns}", columns=...),
            )
        self._where = [found.index(name) for name in like.names]
        return False

    def _table(self, text: bytes, before: int) -> FileTable:
        """Return the rows of complete lines."""
        import pyarrow as pa

        like = self.like
        if not text:
            empty = like.data.select(like.names).slice(0, 0)
            return replace(like, data=empty, lines=None)
        source = self._source(text)
        assert self._dialect is not None
        dialect = replace(self._dialect, place=Place(0, 0, before))
        parts = list(Text(source, dialect).tables(self._where))
        strings, lines = pa.concat_tables([part for part, _ in parts]), np.concatenate([more for _, more in parts])
        data = typed_columns(
            source,
            Columns(strings, True, lines),
            like.names,
            like.schema.columns,
            Reading(choices=like.choices, missing=like.choices.missing),
            Numerals(),
            like.schema.day_first,
        )
        table = replace(like, data=data, lines=lines, source=_STREAM)
        encoded = table.encoded()
        if np.isinf(encoded.numeric).any():
            raise InputError(f"{_STREAM}: a number is infinite")
        return table
