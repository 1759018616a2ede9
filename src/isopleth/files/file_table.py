"""Table of a file: typed columns, the schema that tells what each is used as, and where its rows stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from isopleth.core.errors import Hint, InputError, Message, quoted
from isopleth.files.delimited import Dialect
from isopleth.files.source import choice
from isopleth.tables.schema import ColumnChoices, EncodedTable, Schema, attached
from isopleth.tables.unread import NO_ODD_CELLS, OddCells, behind, refusal


@dataclass(frozen=True, eq=False)
class FileTable:
    """Table that was read from a file, by :func:`isopleth.read_table`; estimators take it as they take data frames.

    Parameters
    ----------
    data : pyarrow.Table
        All columns that were read, with their types: numbers, words, truth values or times, null where a cell is missing.
    schema : Schema
        What each column is used as, and why others are left out. A fit to the table honours it.
    source : Path
        The file.
    named : bool
        Whether the file names the columns; otherwise they are ``x1``, ``x2``, ...
    lines : ndarray of shape (n,), optional
        For text files and workbooks, the line on which each row begins, counted from 1.
    notes : tuple of Message
        Messages on what was recognised, such as a decimal comma.
    choices : ColumnChoices
        Choices of the user for columns.
    labels : mapping of str to ndarray
        Columns that hold the class or group of each row, which are not among the others.
    dialect : Dialect, optional
        How a text file is written: its delimiter, decimal sign and encoding.
    before : int
        How many rows of the file stand before these, of which it is one chunk.
    cells : pyarrow.Table, optional
        The columns as they stand in the file, where this was asked for: text of a text file or workbook, types of other formats.
    header : tuple of str, optional
        Names of the columns as they stand there, if its cells are text.
    files : ndarray of shape (n,), optional
        Name of the file of each row, where several files are one table.
    odd : OddCells
        Cells that are not of the kind of their column, and cells that say a limit in the place of a number. They are null in
        `data`: ``table.odd.unread["price"]`` has their ``rows``, counted from 0, and ``texts``, and
        ``table.odd.censored["lead"]`` their ``rows`` and the ends ``lower`` and ``upper`` of the interval of each.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import isopleth
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "orders.csv"
    >>> _ = path.write_text("day;price;colour\\n31.01.2024;1,50;red\\n01.02.2024;NA;blue\\n")
    >>> table = isopleth.read_table(path)
    >>> print(table.schema)
    day: time
    price: numeric
    colour: categorical (blue, red)
    >>> table.data.column("price").to_pylist(), table.place(1)
    ([1.5, None], 'line 3')
    >>> folder.cleanup()
    """

    data: Any
    schema: Schema
    source: Path
    named: bool = True
    lines: np.ndarray | None = None
    notes: tuple[Message, ...] = ()
    choices: ColumnChoices = field(default_factory=ColumnChoices)
    labels: Mapping[str, np.ndarray] = field(default_factory=dict)
    dialect: Dialect | None = None
    before: int = 0
    cells: Any = None
    header: tuple[str, ...] | None = None
    odd: OddCells = NO_ODD_CELLS
    files: np.ndarray | None = None

    @classmethod
    def of_array(cls, values: np.ndarray, names: list[str], source: Path) -> Self:
        """Make a table of an array of complete numbers."""
        data = pa.table([np.ascontiguousarray(column) for column in values.T], names=list(names))
        return cls(data, Schema.of_numbers(list(names), True), source)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def names(self) -> list[str]:
        """Names of the columns that are used."""
        return [str(name) for name in self.schema.names]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns that are used."""
        return len(self), len(self.names)

    def __repr__(self) -> str:
        return f"<Table {self.source}: {self.schema.summary(len(self))}>"

    @property
    def frame(self) -> Any:
        """All columns as an Arrow table that carries the schema in its metadata; estimators honour it there.

        Cells that say a limit, such as <0.5, are null in its columns and intervals in its metadata. Estimators warn where rows
        were taken from it, which have lost them; :meth:`take` keeps them. Other libraries see missing cells.
        """
        return attached(self.data, self.schema, self.choices, self.named, self.odd)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Give the columns to any library that reads Arrow streams."""
        return self.frame.__arrow_c_stream__(requested_schema)

    def place(self, row: int) -> str:
        """Return where a row, counted from 0, stands in the file: "line 3", or "row 2" counted from 1."""
        place = f"row {self.before + row + 1}" if self.lines is None else f"line {self.lines[row]}"
        if self.files is None:
            return place
        name = self.files[row]
        if self.lines is None:  # rows of each file are counted from 1
            place = f"row {row + 1 - int(np.argmax(self.files == name))}"
        return f"{place} of {name}"

    def take(self, rows: Sequence[int] | np.ndarray) -> Self:
        """Return some rows."""
        lines, files = (None if each is None else each[rows] for each in (self.lines, self.files))
        labels = {name: values[rows] for name, values in self.labels.items()}
        odd = self.odd.take(np.asarray(rows)) if len(self.odd) else self.odd
        data = self.data.take(np.asarray(rows))
        return replace(self, data=data, lines=lines, labels=labels, cells=None, odd=odd, files=files)

    def select(self, names: Sequence[str]) -> Self:
        """Return some of the columns, and what the user said of them; the schema, which several tables may decide, stays."""
        choices, odd = self.choices.only(names), self.odd.of_columns({name: name for name in names})
        return replace(self, data=self.data.select(list(names)), choices=choices, cells=None, odd=odd)

    def without(self, names: Sequence[str]) -> Self:
        """Leave columns out, in the schema too."""
        kept = [name for name in self.names if name not in names]
        places = [i for i, column in enumerate(self.schema.columns) if column.name not in names]
        return replace(self.select(kept), schema=self.schema.take(places))

    def followed_by(self, other: FileTable) -> Self:
        """Return the rows of both tables."""
        data = pa.concat_tables([self.data, other.data]).combine_chunks()
        return replace(self, data=data, lines=None, files=None, cells=None, odd=behind(self.odd, other.odd, len(self)))

    def using(self, schema: Schema) -> Self:
        """Return the table with another schema, such as that of the rows a model was fitted to."""
        return replace(self, schema=schema)

    def with_truth_as_numbers(self) -> Self:
        """Return the table with truth values taken as 0 and 1, for what takes numbers only."""
        return self.using(self.schema.with_truth_as_numbers())

    def encoded(self) -> EncodedTable:
        """Return the columns as numbers and codes.

        Raises
        ------
        InputError
            For cells that are not of the kind of their column; the message names file and line.
        """
        try:
            return self.schema.encode(self.data, typed=True, odd=self.odd)
        except InputError as error:
            raise error.located(self.source, self.place) from None

    @property
    def missing(self) -> np.ndarray:
        """Mask of the missing cells of the columns that are used; cells that say a limit are not missing."""
        rows = self.encoded().rows
        found = np.empty(rows.shape, dtype=bool)
        found[:, self.schema.order] = np.isnan(rows)
        return found & ~self.limited

    @property
    def limited(self) -> np.ndarray:
        """Mask of the cells of the columns that are used which say a limit, such as <0.5."""
        found, limits = np.zeros(self.shape, dtype=bool), self.encoded().limits
        found[:, self.schema.order[limits.columns]] = limits.mask
        return found

    def with_limits(self, values: np.ndarray) -> np.ndarray:
        """Return cells of the columns that are used with the text of those that say a limit, such as <0.5."""
        out, names = values, self.names
        for name, cells in self.odd.censored.items():
            if str(name) in names and len(cells.rows):
                out = out.astype(object) if out is values else out
                out[cells.rows, names.index(str(name))] = cells.texts
        return out

    def numbers(self) -> np.ndarray:
        """Return the columns that hold numbers and times as an array, NaN for missing cells; times in seconds since 1970."""
        encoded = self.encoded()
        origins = [column.origin for column in self.schema.measured]
        return encoded.numeric + np.array(origins)

    @property
    def is_plain(self) -> bool:
        """Tell whether all columns that are used hold complete numbers."""
        return self.schema.only_numbers and not np.isnan(self.values).any()

    @cached_property
    def values(self) -> np.ndarray:
        """The used columns as they are shown: numbers where there is nothing else, otherwise objects.

        Objects are numbers, words and times, None for missing cells.
        """
        encoded = self.encoded()
        out = self.schema.shown(encoded.rows)
        for name in encoded.unseen:  # words that no row of a fit had are shown as they are in the file
            column = next(column for column in self.schema.columns if column.name == name)
            codes = encoded.codes[:, self.schema.categorical_names.index(str(name))]
            cells = self.data.column(str(name)).to_pylist()
            for row in np.flatnonzero(codes == len(column.levels)).tolist():
                out[row, self.schema.names.index(name)] = str(cells[row])
        return out


def together(tables: Sequence[FileTable]) -> Schema:
    """Return the schema of several tables with the same columns: the rows of all decide what each column is used as."""
    first, second = tables

    def place(row: int) -> str:
        n = len(first)  # the rows of the second are counted on
        return f"{first.place(row)} of {first.source}" if row < n else f"{second.place(row - n)} of {second.source}"

    try:
        choices, odd = first.choices.joined(second.choices), (first.odd, second.odd)
        return Schema.of(first.data, also=second.data, typed=True, odd=odd, choices=choices)
    except InputError as error:
        raise error.located(None, place) from None


def refuse_odd_cells(*tables: FileTable, categories: bool = True) -> None:
    """Refuse cells that could not be read or say a limit, those of all columns and tables in one sentence."""
    message = refusal([(str(table.source), table.odd, table.place) for table in tables], categories=categories)
    if message is not None:
        raise InputError(message)


def refuse_other_kinds(table: FileTable) -> None:
    """Refuse columns that are said to be of a kind of which hardly any cell is."""
    known = {name: len(table) - table.data.column(name).null_count for name in table.odd.unread}
    wrong = table.odd.of_another_kind(known)
    if len(wrong):
        refuse_odd_cells(replace(table, odd=wrong))


def numbers_with_gaps(table: FileTable) -> FileTable:
    """Return a table of numbers, truth values as 0 and 1; cells may be missing."""
    table = table.with_truth_as_numbers()
    refuse_words(table)
    return table


class MissingCells:
    """Count of missing cells in each column: found chunk by chunk, refused at the end."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._counts = np.zeros(len(names), dtype=np.int64)
        self._first = [""] * len(names)

    def add(self, table: FileTable, values: np.ndarray) -> None:
        """Count the missing cells of the rows that follow."""
        bad = np.isnan(values)
        for j in np.flatnonzero(bad.any(axis=0)):
            if not self._counts[j]:
                self._first[j] = table.place(int(bad[:, j].argmax()))
            self._counts[j] += np.count_nonzero(bad[:, j])

    def refuse(self, path: object) -> None:
        """Refuse the file if any was found."""
        bad = np.flatnonzero(self._counts).tolist()
        if not bad:
            return
        worst = [f"{self._names[j]!r} {self._where(j)}" for j in bad[:5]]
        more = len(bad) - len(worst)
        if more:
            worst.append(f"{more} more column{'s' if more > 1 else ''}")
        raise InputError(
            f"{path}: empty cells in {', '.join(worst)}",
            column=self._names[bad[0]],
            hint=Hint("fill or drop these rows, or choose other columns with {columns}", columns=...),
        )

    def _where(self, j: int) -> str:
        count, place = self._counts[j], self._first[j]
        return f"({count} rows, the first in {place})" if count > 1 else f"({place})"


# Columns that an advice names in full.
_MOST_ADVISED = 6


def refuse_words(table: FileTable) -> None:
    """Refuse columns of words and times, for what takes numbers only."""
    text = [str(column.name) for column in table.schema.columns if column.kind != "numeric"]
    numbers = table.schema.names_of("numeric")
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
    subject = f"{table.source}: no numbers in column{'s' if several else ''} {quoted(text, most=4)}"
    raise InputError(subject, column=text[0], hint=hint)
