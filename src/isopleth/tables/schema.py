"""Schema of a table: the columns that are used and their encoding, and the columns that are left out.

Frames of pandas, polars and pyarrow, and any object with the Arrow stream interface, are read in the same way. The kinds are
decided in fit and used for every later table. The columns of an array are numbers, except those that are named as categories.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from isopleth.core.errors import InputError, Message, meant, quoted, warn_user
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.progress import Progress
from isopleth.tables.cells import (
    MISSING_IN_NUMBERS,
    MISSING_WORDS,
    NO_WORD,
    TRUTH,
    Cells,
    SourceTable,
    TextRule,
    joined,
    odd_cells_of,
    row_of,
)
from isopleth.tables.coded_cells import displayed_cells
from isopleth.tables.given import Given
from isopleth.tables.kinds import Column, KindRule
from isopleth.tables.numerals import Numerals
from isopleth.tables.unread import NO_ODD_CELLS, OddCells, refusal

UNSEEN = "a new word"  # how a word that was not among the training rows is shown


@dataclass(frozen=True)
class EncodedTable:
    """Table encoded as numbers."""

    # (n, p + q): p numbers and times, then the codes of q categories, NaN where a cell is missing. A code is an index in the
    # levels of its column, or their number for a word that is not in the training rows
    rows: np.ndarray
    n_numeric: int  # p
    # number of cells with a word that is not in the training rows, by column, if there are any
    unseen: dict[str | int, int] = field(default_factory=dict)
    # names of columns that the training rows did not have; they are not used
    extra: list[str | int] = field(default_factory=list)
    # cells that could not be read, or say a limit, by column: they are missing in `rows`
    odd: OddCells = NO_ODD_CELLS
    # cells of numbers of which an interval is known, by their place in the rows: they are missing in `rows`
    limits: IntervalCells = field(default_factory=lambda: IntervalCells.none(0))

    @property
    def numeric(self) -> np.ndarray:
        """Numbers and times, of shape (n, p); NaN where a cell is missing."""
        return self.rows[:, : self.n_numeric]

    @cached_property
    def codes(self) -> np.ndarray:
        """Codes of the categories as integers, of shape (n, q); -1 where a cell is missing."""
        codes = self.rows[:, self.n_numeric :]
        return np.where(np.isnan(codes), -1.0, codes).astype(np.intp)


@dataclass(frozen=True)
class ColumnChoices:
    """Choices of the user, for columns by name, or by number in an array."""

    # categorical, numeric, time_columns: columns of these kinds, whatever values they hold
    categorical: tuple = ()
    numeric: tuple = ()
    time_columns: tuple = ()
    identifiers: tuple = ()  # columns to leave out
    keep_identifiers: bool = False  # whether columns that look like identifiers are used
    missing: frozenset[str] | None = None  # words that count as missing cells, in the place of the usual ones
    written: tuple = ()  # columns of a text, in which everything is words
    unnamed: tuple = ()  # columns without a name in their file
    _LISTS: ClassVar = ("categorical", "numeric", "time_columns", "identifiers")

    @classmethod
    def of(cls, chosen: Mapping[str, Any]) -> Self:
        """Make choices of iterables of names, such as lists."""
        parts: dict[str, Any] = {
            name: value if value is None or isinstance(value, bool) else tuple(value) for name, value in chosen.items()
        }
        words = parts.get("missing")
        return cls(**parts | ({} if words is None else {"missing": frozenset(words)}))

    def check(self, names: list[Any]) -> None:
        """Refuse names of columns that are not used."""
        for what in self._LISTS:
            if unknown := [name for name in getattr(self, what) if name not in names]:
                offered = f"{meant(unknown, names)}; those that are used are {quoted(names)}."
                text = f"there is no column {quoted(unknown)} ({{parameter}}){offered}"
                raise InputError(text, parameter=what, column=unknown[0])
        kinds = Counter(name for what in self._LISTS[:3] for name in set(getattr(self, what)))
        if twice := [name for name, count in kinds.items() if count > 1]:
            text = f"{quoted(twice)} is named as more than one of categories, numbers and times; name it once."
            raise InputError(text, column=twice[0])

    def only(self, names: Iterable[Any]) -> ColumnChoices:
        """Return what is said of these columns."""
        kept = set(names)
        lists = (*self._LISTS, "written", "unnamed")
        some: dict[str, Any] = {key: tuple(n for n in getattr(self, key) if n in kept) for key in lists}
        return replace(self, **some)

    def joined(self, other: ColumnChoices) -> ColumnChoices:
        """Return what is said of the columns of two tables."""
        both: dict[str, Any] = {
            key: tuple(dict.fromkeys([*getattr(self, key), *getattr(other, key)]))
            for key in (*self._LISTS, "written", "unnamed")
        }
        return replace(self, **both, keep_identifiers=self.keep_identifiers or other.keep_identifiers)

    def numerals(self, tables: Iterable[SourceTable]) -> Numerals:
        """Return how the text of the columns of numbers writes them, by the first table that shows it."""
        ways = [table.numerals([name for name in self.numeric if name in table.names]) for table in tables]
        return next((way for way in ways if not way.ordinary), Numerals())

    def kind(self, name: Any) -> str | None:
        """Return the kind that was asked for a column."""
        kinds = (("categorical", self.categorical), ("numeric", self.numeric), ("time", self.time_columns))
        return next((kind for kind, names in kinds if name in names), None)

    def rule(self, name: Any, table: SourceTable) -> KindRule:
        """Return the rule by which the kind of a column is decided."""
        of_table = (name in self.written, table.typed and table.named, name == table.names[0], name in self.unnamed)
        return KindRule(self.kind(name), self.keep_identifiers, table.named, self.missing, *of_table)


@dataclass(frozen=True)
class Schema:
    """Columns of a table and their encoding.

    :meth:`of` decides the kinds from training rows; :meth:`encode` converts tables with these columns to numbers.

    Parameters
    ----------
    columns : tuple of Column
        Columns that are used, in the order of the table.
    left_out : dict
        Reason why a column is left out, by its name.
    notes : tuple of Message
        Sentences to show to the user.
    named : bool
        Whether the table was a frame.
    n_columns : int
        Number of columns of the table, used or not.
    numerals : Numerals
        How columns of text write numbers.
    constants : tuple of (int, Column)
        Columns that are left out since they hold one word, and their places in :meth:`with_constants`.
    missing : frozenset of str, optional
        Words that mean a missing cell, also in later tables, if the user has named them.

    Examples
    --------
    >>> import pandas as pd
    >>> from isopleth.tables.schema import Schema
    >>> table = pd.DataFrame({"order_no": range(12), "price": [9.5, 3.0, None] * 4, "colour": ["red", "blue", "red"] * 4})
    >>> schema = Schema.of(table)
    >>> schema.summary(len(table))
    '12 rows: 1 number, 1 category; left out: order_no (identifier)'
    >>> encoded = schema.encode(pd.DataFrame({"colour": ["green", None], "price": [1.0, 2.0]}))
    >>> encoded.codes.tolist(), encoded.unseen
    ([[2], [-1]], {'colour': 1})
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    columns: tuple[Column, ...]
    left_out: dict[str | int, str]
    notes: tuple[Message, ...]
    named: bool
    n_columns: int
    numerals: Numerals = Numerals()  # noqa: RUF009 - frozen
    constants: tuple[tuple[int, Column], ...] = ()
    missing: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        also: Any = None,
        *,
        typed: bool = False,
        odd: tuple[OddCells, ...] = (),
        choices: ColumnChoices | None = None,
        **chosen: Any,
    ) -> Self:
        """Decide the kinds of the columns of a table.

        Parameters
        ----------
        X : data frame, array or object with the Arrow stream interface
            Training rows.
        also : data frame, array or object with the Arrow stream interface, optional
            A second table with these columns: the rows of both decide together, and neither table counts more than the other.
        typed : bool, default=False
            Whether text holds nothing but words, since a reader has looked for numbers and times in it.
        odd : tuple of OddCells
            Cells of each table that its reader could not read.
        choices : ColumnChoices, optional
            What the user says of columns, or its parts as keywords.

        Raises
        ------
        InputError
            If a named column does not exist, two columns have the same name, a cell of a column in `numeric` is no number,
            or no column is left.
        """
        choices = choices or ColumnChoices.of(chosen)
        given = [each for each in (X, also) if each is not None]
        tables = [source_of(*each, typed=typed) for each in zip(given, odd or (None,) * len(given), strict=True)]
        table = tables[0]
        choices.check(table.names)
        numerals = choices.numerals(tables) if choices.numeric else Numerals()
        missing = NO_WORD if choices.missing is None else choices.missing
        found: dict[Any, Column | str] = dict.fromkeys(table.names, "identifier")
        notes: list[Message] = []
        considered = [name for name in table.names if name not in choices.identifiers]
        with Progress("kinds of columns", len(considered), verbose=False) as tick:
            for name in considered:
                rule = choices.rule(name, table)
                cells = _cells_of_all(tables, name, TextRule(missing, numerals, None, rule.wanted))
                found[name] = column = _column_of(cells, rule, notes)
                if isinstance(column, Column):
                    table.held[name] = cells[0]
                tick()
        used = [column for column in found.values() if isinstance(column, Column)]
        columns = tuple(column for column in used if not column.constant)
        constants = tuple((place, column) for place, column in enumerate(used) if column.constant)
        left_out = {
            name: why if isinstance(why, str) else "one value only"
            for name, why in found.items()
            if isinstance(why, str) or why.constant
        }
        if not columns:
            _refuse_empty(left_out, sum(each.n for each in tables))
        return cls(columns, left_out, tuple(notes), table.named, len(table.names), numerals, constants, choices.missing)

    @classmethod
    def of_numbers(cls, names: list[Any], named: bool) -> Self:
        """Make numeric columns with these names."""
        return cls(tuple(Column(name, "numeric") for name in names), {}, (), named, len(names))

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as a dict that JSON can hold."""
        return asdict(self) | {"missing": None if self.missing is None else sorted(self.missing)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a schema of the result of :meth:`to_dict`."""

        def column(held: Mapping[str, Any]) -> Column:
            limits = tuple((side, limit) for side, limit in held["limits"])
            return Column(
                **{**held, "levels": tuple(held["levels"]), "unread": tuple(held["unread"]), "limits": limits}
            )

        parts: dict[str, Any] = {
            "columns": tuple(map(column, values["columns"])),
            "notes": tuple(values["notes"]),
            "numerals": Numerals(**values["numerals"]),
            "constants": tuple((place, column(held)) for place, held in values["constants"]),
            "missing": None if values["missing"] is None else frozenset(values["missing"]),
        }
        return cls(**{**values, **parts})

    def __str__(self) -> str:
        lines = [f"{column.name}: {_about(column)}" for column in self.columns]
        return "\n".join(lines + [f"{name}: left out, {why}" for name, why in self.left_out.items()])

    def summary(self, n_rows: int) -> str:
        """Return one line with the numbers of columns by kind, and the columns that are left out."""
        counts = Counter(column.kind for column in self.columns)
        nouns = {"numeric": ("number", "numbers"), "categorical": ("category", "categories"), "time": ("time", "times")}
        parts = [f"{counts[kind]} {names[counts[kind] > 1]}" for kind, names in nouns.items() if counts[kind]]
        out = f"{n_rows:,} row{'s' * (n_rows != 1)}: {', '.join(parts)}"
        if self.left_out:
            out += "; left out: " + ", ".join(f"{name} ({why})" for name, why in self.left_out.items())
        return out

    def without(self, names: Iterable[Any], why: str) -> Schema:
        """Return the schema with some columns left out for a reason."""
        gone = dict.fromkeys(names, why)
        return replace(
            self, columns=tuple(c for c in self.columns if c.name not in gone), left_out=self.left_out | gone
        )

    def with_constants(self) -> Schema:
        """Return the schema with the columns of one word among those that are used."""
        columns, left_out = list(self.columns), dict(self.left_out)
        for place, column in self.constants:
            if left_out.pop(column.name, None):
                columns.insert(place, column)
        return replace(self, columns=tuple(columns), left_out=left_out, constants=())

    def with_truth_as_numbers(self) -> Schema:
        """Return the schema with columns of truth values as numbers, 0 and 1."""
        columns = [replace(c, kind="numeric", levels=()) if c.levels == TRUTH else c for c in self.columns]
        return replace(self, columns=tuple(columns))

    @property
    def only_numbers(self) -> bool:
        """Tell whether all columns that are used hold numbers."""
        return all(column.kind == "numeric" for column in self.columns)

    @property
    def measured(self) -> list[Column]:
        """Columns of numbers and times, in the order of :attr:`EncodedTable.numeric`."""
        return [column for column in self.columns if column.kind != "categorical"]

    @property
    def worded(self) -> list[Column]:
        """Columns of words, in the order of :attr:`EncodedTable.codes`."""
        return [column for column in self.columns if column.kind == "categorical"]

    def names_of(self, kind: str) -> list[str]:
        """Return the names of the columns of a kind."""
        return [str(column.name) for column in self.columns if column.kind == kind]

    @property
    def numeric_names(self) -> list[str]:
        """Names of the columns of :attr:`EncodedTable.numeric`."""
        return [str(column.name) for column in self.measured]

    @property
    def day_first(self) -> dict[str, bool]:
        """Order of dates in each column that was written with slashes: true where days come before months."""
        return {str(column.name): column.day_first for column in self.columns if column.day_first is not None}

    @property
    def detection_limits(self) -> dict[str, float]:
        """Limit of each column of which cells say one lower limit, for later cells such as ND."""
        below = {str(column.name): [end for side, end in column.limits if side == "below"] for column in self.columns}
        return {name: ends[0] for name, ends in below.items() if len(ends) == 1}

    @property
    def origins(self) -> dict[str, float]:
        """First time of each column of times, in seconds since 1970."""
        return {str(column.name): column.origin for column in self.columns if column.kind == "time"}

    @property
    def categorical_names(self) -> list[str]:
        """Names of the columns of :attr:`EncodedTable.codes`."""
        return self.names_of("categorical")

    @property
    def levels(self) -> list[tuple[str, ...]]:
        """Words of each categorical column, without the category for unseen words."""
        return [column.levels for column in self.worded]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each categorical column, with one for words that are not in the training rows."""
        return tuple(column.size for column in self.worded)

    @property
    def names(self) -> list[Any]:
        """Names of the columns that are used, in the order of the table."""
        return [column.name for column in self.columns]

    @property
    def plain_names(self) -> list[str]:
        """Names of the columns that are used; "column 0" and so on in an array."""
        return [str(name) if self.named else f"column {name}" for name in self.names]

    def renamed(self, names: Mapping[Any, Any]) -> Schema:
        """Return the schema with other names of its columns."""
        columns = [replace(column, name=names[column.name]) for column in self.columns]
        left_out = {names[name]: why for name, why in self.left_out.items()}
        constants = tuple((place, replace(column, name=names[column.name])) for place, column in self.constants)
        return replace(self, columns=tuple(columns), left_out=left_out, constants=constants)

    @property
    def order(self) -> np.ndarray:
        """Indices in :attr:`columns` that put numbers and times before categories."""
        words = np.array([column.kind == "categorical" for column in self.columns])
        return np.argsort(words, kind="stable")

    def shown(self, rows: np.ndarray) -> np.ndarray:
        """Return :attr:`EncodedTable.rows` as cells in the order of the table; numbers where there is nothing else.

        Cells are numbers, words and times, and None where one is missing.
        """
        if self.only_numbers:
            return rows
        out = np.empty(rows.shape, dtype=object)
        for i, cells in zip(self.order, rows.T, strict=True):
            column, known = self.columns[i], ~np.isnan(cells)
            if column.kind == "categorical":
                words = [*column.levels, UNSEEN]
                out[known, i] = [words[int(code)] for code in cells[known]]
            else:
                out[known, i] = displayed_cells(column, cells[known])
        return out

    def take(self, places: Iterable[int]) -> Schema:
        """Select columns by their index in :attr:`columns`; columns of an array are numbered anew."""
        chosen = [self.columns[i] for i in places]
        if not self.named:
            chosen = [replace(column, name=j) for j, column in enumerate(chosen)]
        return Schema(tuple(chosen), {}, (), self.named, len(chosen), self.numerals, missing=self.missing)

    def encode(self, X: Any, *, typed: bool = False, odd: OddCells | None = None) -> EncodedTable:
        """Encode a table with these columns, in any order.

        Cells that `odd` lists, or the table carries since a reader has accepted them, count as missing, as do texts that could
        not be read in the fit.

        Raises
        ------
        InputError
            If a column is missing, or cells of a column of numbers, times or truth values are neither empty nor of this kind.
        """
        table = source_of(X, odd, typed=typed)
        self._refuse_other_columns(table)
        read = self._cells_of(table)
        found = odd_cells_of(read)
        if not typed and found.unread:
            self._refuse_unread(found)
        order = self.order.tolist()
        rows, unseen = np.empty((table.n, len(order))), {}
        for place, j in enumerate(order):
            column = self.columns[j]
            rows[:, place] = self._encoded(column, read[j])
            strangers = np.count_nonzero(rows[:, place] == len(column.levels)) if column.kind == "categorical" else 0
            if strangers:
                unseen[column.name] = int(strangers)
        known = {column.name for column in self.columns} | set(self.left_out)
        extra = [name for name in table.names if name not in known]
        names = self.numeric_names
        return EncodedTable(rows, len(names), unseen, extra, found, interval_cells(found, names, table.n))

    def _encoded(self, column: Column, cells: Cells) -> np.ndarray:
        """Return the cells of a column as numbers, NaN where one is missing."""
        if column.kind == "categorical":
            codes = cells.codes(column.levels)
            return np.where(codes < 0, np.nan, codes)
        if column.kind == "time":
            return cells.times(column.zone) - column.origin
        return cells.numbers(self.missing)

    def _refuse_other_columns(self, table: SourceTable) -> None:
        """Refuse a table that lacks a column, or the names of columns."""
        if not self.named and len(table.names) != self.n_columns:
            raise InputError(f"X has {len(table.names)} columns; expected {self.n_columns} as at fit.")
        if self.named and not table.named:
            raise InputError("X has no names of columns; pass a data frame with the columns that were there at fit.")
        present = set(table.names)
        lost = [column.name for column in self.columns if column.name not in present]
        if lost:
            what = f"X lacks column{'s' if len(lost) > 1 else ''} {quoted(lost)} of the table of the fit"
            how = "add what is lacking, with empty cells if its values are unknown"
            raise InputError(what, column=lost[0], hint=how)

    def lacks_cells(self, table: SourceTable) -> bool:
        """Tell whether a column of numbers has a missing cell; what was read is kept for :meth:`encode`."""
        read = self._cells_of(table)
        table.held = dict(zip(self.names, read, strict=True))
        return any(
            np.isnan(self._encoded(column, cells)).any() for column, cells in zip(self.columns, read, strict=True)
        )

    def _cells_of(self, table: SourceTable) -> list[Cells]:
        """Return the cells of the columns: those by which the schema was decided, others read as the kind of their column."""
        forms = {"numeric": ("whole", "real"), "categorical": ("text",), "time": ("time",)}
        read = {
            column.name: cells
            for column in self.columns
            if (cells := table.held.get(column.name)) is not None
            and cells.form in forms[column.kind]
            and (table.typed or not cells.is_odd)  # else another reading, which knows the kind, may read more of them
        }
        others = [column for column in self.columns if column.name not in read]
        if others:
            gaps, numerals = {"categorical": NO_WORD, "numeric": MISSING_IN_NUMBERS}, self.numerals
            if numerals.ordinary:
                numerals = table.numerals([column.name for column in self.columns if column.kind == "numeric"])
            for column in others:
                missing = gaps.get(column.wanted, MISSING_WORDS) if self.missing is None else self.missing
                rule = TextRule(missing, numerals, column.day_first, column.wanted)
                read[column.name] = table.cells(column.name, rule)
        return [read[column.name] for column in self.columns]

    def _refuse_unread(self, odd: OddCells) -> None:
        """Refuse cells of a frame that cannot be read, all at once, except texts that the fit could not read either."""
        known = {column.name: set(column.unread) for column in self.columns}
        unread = {name: cells.without(known[name]) for name, cells in odd.unread.items()}
        new = {name: cells for name, cells in unread.items() if len(cells)}
        message = refusal([("", OddCells(new, {}), row_of)])
        if message is not None:
            raise InputError(replace(message, source=None, hint="correct them, or empty them"))


def _cells_of_all(tables: Sequence[SourceTable], name: Any, how: TextRule) -> list[Cells]:
    """Return a column of each table that has it; text of numbers in one of them is read as such if another has limits."""
    having = [each for each in tables if name in each.names]
    cells = [each.cells(name, how) for each in having]
    if len({each.form for each in cells}) > 1 and any(each.censored is not None for each in cells):
        return [each.cells(name, replace(how, wanted=how.wanted or "numeric")) for each in having]
    return cells


def _column_of(cells: Sequence[Cells], rule: KindRule, notes: list[Message]) -> Column | str:
    """Return a column by its cells in one table or in several, or the reason why it is left out."""
    below = cells[0] if len(cells) == 1 else joined(cells)
    if below.is_odd and not rule.read:
        _refuse_another_kind(below)
    column = rule(below, notes)
    if (below.is_odd or below.notes) and not rule.read and rule.wanted != "categorical":
        notes += [*below.notes, *odd_cells_of([below]).notes(row_of)]
    if isinstance(column, str):
        return column
    if len(cells) > 1 and rule.wanted is None:
        # Both tables may number their rows from the same number on.
        alone = {rule(each, []) for each in cells if each.known}
        if alone == {"identifier"}:
            return "identifier"
    return _with_odd_cells(column, below) if below.is_odd else column


def _refuse_empty(left_out: Mapping[Any, str], n: int) -> None:
    """Refuse a table without rows, or without columns to use."""
    if not n:
        raise InputError("X has no rows; expected at least one row.", parameter="X")
    reasons = "; ".join(f"{name} ({why})" for name, why in left_out.items())
    raise InputError(f"no column is left to use: {reasons}; keep one of them by naming it numeric or categorical.")


def _refuse_another_kind(cells: Cells) -> None:
    """Refuse a column of a frame that is said to be of a kind of which hardly any cell is."""
    message = refusal([("", odd_cells_of([cells]).of_another_kind({cells.name: cells.known}), row_of)])
    if message is not None:
        raise InputError(replace(message, source=None, hint=None))


def _with_odd_cells(column: Column, cells: Cells) -> Column:
    """Return a column with the texts that could not be read, and the limits that cells say."""
    texts = () if cells.unread is None else tuple(dict.fromkeys(cells.unread.texts))
    return replace(column, unread=texts, limits=() if cells.censored is None else cells.censored.limits)


def in_table_order(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return values of encoded columns in the order of the columns of the table."""
    out = np.empty_like(values)
    out[:, order] = values
    return out


def interval_cells(odd: OddCells, names: list[str], n: int) -> IntervalCells:
    """Return the cells that say limits by the place of their column among those of numbers."""
    some = {names.index(str(name)): cells for name, cells in odd.censored.items() if str(name) in names}
    columns = np.array(sorted(some), dtype=np.intp)
    lower, upper = np.full((2, n, len(columns)), np.nan)
    for k, j in enumerate(columns.tolist()):
        lower[some[j].rows, k], upper[some[j].rows, k] = some[j].lower, some[j].upper
    return IntervalCells(columns, lower, upper)


def _about(column: Column) -> str:
    if column.kind == "categorical":
        return f"categorical ({', '.join(column.levels[:5])}{', ...' if len(column.levels) > 5 else ''})"
    return column.kind + (f" ({column.zone})" if column.zone else "")


# Key of the schema in the metadata of an Arrow table.
_KEY = b"isopleth"


@dataclass(frozen=True)
class Attached:
    """Schema that an Arrow table carries, what the user said of its columns, and whether its file names them."""

    schema: Schema
    choices: ColumnChoices
    named: bool
    odd: OddCells = NO_ODD_CELLS

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Return what a table carries; None if it has not been read by :func:`isopleth.read_table`."""
        X = X.table if isinstance(X, Given) else X
        metadata = None if hasattr(X, "collect") else getattr(getattr(X, "schema", None), "metadata", None)
        if not isinstance(metadata, dict) or _KEY not in metadata:
            return None
        held, names = json.loads(metadata[_KEY]), X.schema.names
        odd, schema = OddCells.unpacked(held["odd"]), Schema.from_dict(held["schema"])
        if held["n_rows"] != len(X):  # rows that were taken from the table have other numbers
            _warn_of_lost_limits(odd.of_columns({name: name for name in names}))
            odd = NO_ODD_CELLS
        read = cls(schema, ColumnChoices.of(held["choices"]), held["named"], odd)
        return read if names == held["names"] else read._of_columns(names)

    def _of_columns(self, names: list[str]) -> Self | None:
        """Return what is known of some of the columns; None if others stand beside them, or none of them is used."""
        schema = self.schema
        columns = tuple(column for column in schema.columns if str(column.name) in names)
        left_out = {name: why for name, why in schema.left_out.items() if str(name) in names}
        if not columns or len(columns) + len(left_out) < len(names):
            return None
        schema = replace(schema, columns=columns, left_out=left_out, n_columns=len(names), constants=())
        return replace(
            self,
            schema=schema,
            choices=self.choices.only(names),
            odd=self.odd.of_columns({name: name for name in names}),
        )

    def of_tables(
        self, tables: Sequence[SourceTable], other: Attached | None, categorical: Iterable[str], *, again: bool = False
    ) -> Schema:
        """Return the schema; it is decided anew if there is another table or a new category, or `again` by some of the rows."""
        if not categorical and len(tables) == 1 and not again:
            return self.schema
        choices = self.choices if other is None else self.choices.joined(other.choices)
        choices = replace(choices, categorical=(*choices.categorical, *categorical))
        return Schema.of(*tables, typed=True, choices=choices)

    def numbers(self, X: Any, names: list[str]) -> Any:
        """Return some columns, truth values as 0 and 1: a frame, or an array if the file has no names."""
        columns = [X.column(name) for name in names]
        plain = [c.cast(pa.int8()) if pa.types.is_boolean(c.type) else c for c in columns]
        table = pa.table(plain, names=names)
        if self.named or not self.schema.only_numbers:
            return table
        return np.column_stack([c.cast(pa.float64()).to_numpy() for c in table.columns])


def _warn_of_lost_limits(odd: OddCells) -> None:
    """Warn that cells which say a limit are not known any more in rows that were taken from a table that was read."""
    name, limits = next(iter(odd.censored.items()), (None, None))
    if limits is not None and len(limits):
        first = limits.texts[0]
        warn_user(
            f"cells of {{column}} that say a limit, such as {first}, count as missing in rows that were taken from the table",
            column=name,
            hint="take rows by the method `take` of the answer of read_table, which keeps them",
        )


def source_of(X: Any, odd: OddCells | None = None, *, typed: bool = False) -> SourceTable:
    """Return a table to be read column by column; what a reader has `typed` has the odd cells that it carries, if not others."""
    if isinstance(X, SourceTable):
        return X
    carried = Attached.of(X) if typed and odd is None else None
    odd = odd or (NO_ODD_CELLS if carried is None else carried.odd)
    given = X if isinstance(X, Given) else Given.of(X)
    if given.frame is not None:
        return SourceTable(given.names or [], len(given.frame), given.frame.get_column, True, typed, odd)
    given.refuse_no_table(np.shape(given.table))
    array = np.asarray(given.table)
    return SourceTable(list(range(array.shape[1])), len(array), lambda j: array[:, j], False, True)


def attached(data: Any, schema: Schema, choices: ColumnChoices, named: bool, odd: OddCells) -> Any:
    """Return an Arrow table that carries a schema, and the cells that could not be read."""
    said = {**asdict(choices), "missing": None if choices.missing is None else sorted(choices.missing)}
    held = {"schema": {**schema.to_dict(), "notes": []}, "choices": said, "named": named}
    held |= {"odd": odd.packed(), "n_rows": len(data), "names": data.column_names}
    return data.replace_schema_metadata({_KEY: json.dumps(held)})
