"""Kinds of columns of a table: numbers, categories and times, and columns left out as identifiers or free text.

Frames of pandas, polars and pyarrow, and any object with the Arrow stream interface, are read in the same way. The kinds are
decided in fit and used for every later table. The columns of an array are numbers, except those that are named as categories.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import narwhals as nw
import numpy as np

from isopleth.errors import InputError, Message
from isopleth.tables.cells import (
    MISSING_NUMBERS,
    MISSING_WORDS,
    Cells,
    SourceTable,
    joined,
    parsed_number,
    parsed_time,
    quoted,
)

_NUMBERS_SHARE = (
    0.9  # least share of numbers among the cells of a text column that counts as numeric with missing cells
)
_FEW_WORDS = 20  # distinct cells up to which numbers among words, as in 0, 1, 2 and 3+, are words
_FEWEST = 10  # rows below which distinct values are no sign of an identifier
_LONG = 25  # mean characters of a cell from which distinct texts are free text
_DISTINCT = 0.8  # least share of distinct cells of free text
_ID_NAME = re.compile(
    r"(^|[_\W])(id|ids|uid|uuid|guid|key|index|idx|no|nr|number|num|code|rownum)$|^unnamed: ?0$", re.I
)
_ID_CASE = re.compile(r"(?<=[a-z])(Id|ID|Uuid|UUID|Key|No|Nr)$")
_MEASURED_NAME = re.compile(r"year|month|week|day|date|time|hour|minute|second|age|stamp|epoch", re.I)
_DAY, _WEEK = 86400.0, 7 * 86400.0
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Column:
    """Kind and encoding of a column of a table.

    Parameters
    ----------
    name : str or int
        Name in a frame, number in an array.
    kind : {"numeric", "categorical", "time"}
        A time is encoded as seconds since `origin` and, where the span of the training rows holds two of them, the hour of the
        day and the day of the week as categories.
    levels : tuple of str
        Words of a categorical column, the most frequent one first.
    origin : float
        The first time, in seconds since 1970 (UTC, or the clock of the table where that has no zone).
    cycles : tuple of str
        Cycles that encode a time: "hour", "weekday", both or none.
    """

    name: str | int
    kind: str
    levels: tuple[str, ...] = ()
    origin: float = 0.0
    cycles: tuple[str, ...] = ()


@dataclass(frozen=True)
class EncodedTable:
    """Table encoded as numbers.

    Parameters
    ----------
    numeric : array of shape (n, p)
        float64, NaN where a cell is missing.
    codes : array of shape (n, q)
        Index in the levels of each categorical column; the number of levels for a word that is not in the training rows; -1
        for a missing cell.
    unseen : dict
        Number of cells with a word that is not in the training rows, by column, if there are any.
    extra : list
        Names of columns that the training rows did not have; they are not used.
    """

    numeric: np.ndarray
    codes: np.ndarray
    unseen: dict[str | int, int] = field(default_factory=dict)
    extra: list[str | int] = field(default_factory=list)


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
    notes : tuple of str
        Sentences to show to the user.
    named : bool
        Whether the table was a frame.
    n_columns : int
        Number of columns of the table, used or not.

    Examples
    --------
    >>> import pandas as pd
    >>> from isopleth.tables.schema import Schema
    >>> table = pd.DataFrame({"order_no": range(12), "price": [9.5, 3.0, None] * 4, "colour": ["red", "blue", "red"] * 4})
    >>> columns = Schema.of(table)
    >>> columns.summary(len(table))
    '12 rows: 1 number, 1 category; left out: order_no (identifier)'
    >>> encoded = columns.encode(pd.DataFrame({"colour": ["green", None], "price": [1.0, 2.0]}))
    >>> encoded.codes.tolist(), encoded.unseen
    ([[2], [-1]], {'colour': 1})
    """

    columns: tuple[Column, ...]
    left_out: dict[str | int, str]
    notes: tuple[Message, ...]
    named: bool
    n_columns: int

    @classmethod
    def of(
        cls,
        X: Any,
        *,
        categorical: Iterable[str | int] = (),
        numeric: Iterable[str | int] = (),
        exclude: Iterable[str | int] = (),
        identifiers: Iterable[str | int] = (),
        keep_identifiers: bool = False,
        missing: Iterable[str] = MISSING_WORDS,
        cycles: bool = True,
        also: Any = None,
    ) -> Self:
        """Decide the kinds of the columns of a table.

        Parameters
        ----------
        X : data frame, array or object with the Arrow stream interface
            Training rows.
        categorical, numeric : iterable of names or numbers
            Columns of these kinds, whatever values they hold.
        exclude, identifiers : iterable of names or numbers
            Columns to leave out.
        keep_identifiers : bool, default=False
            Whether columns that look like identifiers are used.
        missing : iterable of str
            Texts that count as missing cells.
        cycles : bool, default=True
            Whether times are also encoded as hours and days of the week.
        also : data frame, array or object with the Arrow stream interface, optional
            A second table with these columns: the rows of both decide together, and neither table counts more than the other.

        Raises
        ------
        InputError
            If a named column does not exist, two columns have the same name, a cell of a column in `numeric` is no number,
            or no column is left.
        """
        tables = [SourceTable.of(X), *([] if also is None else [SourceTable.of(also)])]
        table = tables[0]
        asked = {
            "categorical": set(categorical),
            "numeric": set(numeric),
            "exclude": set(exclude),
            "identifiers": set(identifiers),
        }
        for what, names in asked.items():
            for name in sorted(names - set(table.names), key=str):
                raise InputError(
                    f"{what} names column {name!r}, which the table does not have; it has {quoted(table.names)}."
                )
        words = frozenset(missing)
        columns: list[Column] = []
        left_out: dict[str | int, str] = {}
        notes: list[Message] = []
        for name in table.names:
            if name in asked["exclude"] or name in asked["identifiers"]:
                left_out[name] = "identifier" if name in asked["identifiers"] else "excluded"
                continue
            wanted = next((kind for kind in ("categorical", "numeric") if name in asked[kind]), None)
            cells = [each.cells(name, words) for each in tables if name in each.names]
            found = _decide(joined(cells), wanted, keep_identifiers, table.named, notes)
            if len(cells) > 1 and isinstance(found, Column) and wanted is None:
                # Both tables may number their rows from the same number on.
                alone = [_decide(each, None, keep_identifiers, table.named, []) for each in cells if each.known]
                found = "identifier" if set(alone) == {"identifier"} else found
            if isinstance(found, Column):
                columns.append(found if cycles else replace(found, cycles=()))
            else:
                left_out[name] = found
        if not columns:
            reasons = "; ".join(f"{name} ({why})" for name, why in left_out.items())
            raise InputError(
                f"no column is left to use: {reasons}; keep one of them by naming it numeric or categorical."
            )
        return cls(tuple(columns), left_out, tuple(notes), table.named, len(table.names))

    def summary(self, n_rows: int) -> str:
        """Return one line with the numbers of columns by kind, and the columns that are left out."""
        counts = Counter(column.kind for column in self.columns)
        nouns = {"numeric": ("number", "numbers"), "categorical": ("category", "categories"), "time": ("time", "times")}
        parts = [f"{counts[kind]} {names[counts[kind] > 1]}" for kind, names in nouns.items() if counts[kind]]
        out = f"{n_rows:,} rows: {', '.join(parts)}"
        if self.left_out:
            out += "; left out: " + ", ".join(f"{name} ({why})" for name, why in self.left_out.items())
        return out

    @property
    def numeric_names(self) -> list[str]:
        """Names of the columns of :attr:`EncodedTable.numeric`."""
        return [str(column.name) for column in self.columns if column.kind != "categorical"]

    @property
    def origins(self) -> dict[str, float]:
        """First time of each column of times, in seconds since 1970."""
        return {str(column.name): column.origin for column in self.columns if column.kind == "time"}

    @property
    def categorical_names(self) -> list[str]:
        """Names of the columns of :attr:`EncodedTable.codes`."""
        return [
            str(column.name) if cycle is None else f"{column.name} ({cycle})"
            for column in self.columns
            for cycle in _coded(column)
        ]

    @property
    def levels(self) -> list[tuple[str, ...]]:
        """Words of each categorical column, without the category for unseen words."""
        return [_levels_of(column, cycle) for column in self.columns for cycle in _coded(column)]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each categorical column, with one more for words that are not in the training rows."""
        return tuple(len(levels) + 1 for levels in self.levels)

    @property
    def names(self) -> list[Any]:
        """Names of the columns that are used, in the order of the table."""
        return [column.name for column in self.columns]

    @property
    def order(self) -> np.ndarray:
        """Indices in :attr:`columns` that put numbers and times before categories; without cycles of times."""
        words = np.array([column.kind == "categorical" for column in self.columns])
        return np.argsort(words, kind="stable")

    def take(self, places: Iterable[int]) -> Schema:
        """Select columns by their index in :attr:`columns`; columns of an array are numbered anew."""
        chosen = [self.columns[i] for i in places]
        if not self.named:
            chosen = [replace(column, name=j) for j, column in enumerate(chosen)]
        return Schema(tuple(chosen), {}, (), self.named, len(chosen))

    @classmethod
    def of_numbers(cls, names: list[Any], named: bool) -> Self:
        """Make numeric columns with these names."""
        return cls(tuple(Column(name, "numeric") for name in names), {}, (), named, len(names))

    def encode(self, X: Any, missing: Iterable[str] = MISSING_WORDS) -> EncodedTable:
        """Encode a table with these columns, in any order.

        Raises
        ------
        InputError
            If a column is missing, or a cell of a column of numbers or times is neither empty nor of this kind.
        """
        table = SourceTable.of(X)
        if not self.named and len(table.names) != self.n_columns:
            raise InputError(f"X has {len(table.names)} columns; expected {self.n_columns} as at fit.")
        if self.named and not table.named:
            raise InputError("X has no names of columns; pass a data frame with the columns that were there at fit.")
        lost = [column.name for column in self.columns if column.name not in set(table.names)]
        if lost:
            raise InputError(
                f"X lacks column {quoted(lost)}, which was there at fit; add it, with empty cells if it is unknown."
            )
        words = frozenset(missing)
        numeric, codes, unseen = [], [], {}
        for column in self.columns:
            cells = table.cells(column.name, words)
            if column.kind == "categorical":
                coded, strangers = _codes(cells.texts(), column.levels)
                codes.append(coded)
                if strangers:
                    unseen[column.name] = strangers
            elif column.kind == "time":
                seconds = cells.times()
                numeric.append(seconds - column.origin)
                codes += [_cycle(seconds, cycle) for cycle in column.cycles]
            else:
                numeric.append(cells.numbers())
        known = {column.name for column in self.columns} | set(self.left_out)
        extra = [name for name in table.names if name not in known]
        return EncodedTable(_stacked(numeric, table.n, np.float64), _stacked(codes, table.n, np.intp), unseen, extra)


def encode_cell(column: Column, value: Any) -> float:
    """Encode one cell as a number or a code; NaN if it is missing."""
    cell = np.empty(1, dtype=object)
    cell[0] = value
    cells = Cells.of(column.name, cell, MISSING_WORDS)
    if column.kind == "categorical":
        code = _codes(cells.texts(), column.levels)[0][0]
        return np.nan if code < 0 else float(code)
    if column.kind == "time":
        return float(cells.times()[0] - column.origin)
    return float(cells.numbers()[0])


def decode_cells(column: Column, values: np.ndarray, like: Any = None) -> Any:
    """Decode numbers or codes to numbers, times, or words of the type of `like`, a cell of the table."""
    if column.kind == "numeric":
        return values
    if column.kind == "time":
        return np.rint((values + column.origin) * 1e6).astype("datetime64[us]")
    if like is None and set(column.levels) <= {"False", "True"}:
        like = True
    return [None if np.isnan(code) else _typed(column.levels[int(code)], like) for code in values]


def _typed(word: str, like: Any) -> Any:
    if isinstance(like, (bool, np.bool_)):
        return word == "True"
    if isinstance(like, (int, np.integer)):
        return int(word)
    return float(word) if isinstance(like, (float, np.floating)) else word


def new_table(columns: Schema, values: np.ndarray, library: str | None) -> Any:
    """Make a table of encoded cells in the order of :attr:`Schema.columns`: a frame of a library, or an array if None."""
    cells = [decode_cells(column, values[:, j]) for j, column in enumerate(columns.columns)]
    if library is not None:
        names = [str(name) for name in columns.names]
        return nw.from_dict(dict(zip(names, cells, strict=True)), backend=cast(Any, library)).to_native()
    words = [c for column in columns.columns if column.kind == "categorical" for c in column.levels]
    if all(parsed_number(word) is not None for word in words):
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in cells])
    out = np.empty(values.shape, dtype=object)
    for j, column in enumerate(cells):
        out[:, j] = column
    return out


def _coded(column: Column) -> Sequence[str | None]:
    """Return the categorical columns that encode a column: itself (None), or the cycles of a time."""
    return (None,) if column.kind == "categorical" else column.cycles


def _levels_of(column: Column, cycle: str | None) -> tuple[str, ...]:
    if cycle is None:
        return column.levels
    return _WEEKDAYS if cycle == "weekday" else tuple(f"{hour:02d}:00" for hour in range(24))


def _stacked(columns: list[np.ndarray], n: int, dtype: Any) -> np.ndarray:
    return np.column_stack(columns).astype(dtype, copy=False) if columns else np.empty((n, 0), dtype=dtype)


def _codes(texts: list[str | None], levels: Sequence[str]) -> tuple[np.ndarray, int]:
    """Return indices in `levels`, and the number of cells with other words."""
    place = {word: i for i, word in enumerate(levels)}
    other = len(levels)
    out = np.fromiter(
        (-1 if text is None else place.get(text, other) for text in texts), dtype=np.intp, count=len(texts)
    )
    return out, int(np.count_nonzero(out == other))


def _cycle(seconds: np.ndarray, cycle: str) -> np.ndarray:
    """Hour of the day or day of the week of times in seconds since 1970, which was a Thursday; -1 where there is none."""
    known = np.isfinite(seconds)
    whole = np.where(known, seconds, 0.0)
    out = np.floor(whole / _DAY + 3) % 7 if cycle == "weekday" else np.floor(whole % _DAY / 3600.0)
    return np.where(known, out, -1).astype(np.intp)


def _decide(
    cells: Cells, wanted: str | None, keep_identifiers: bool, named: bool, notes: list[Message]
) -> Column | str:
    """Return the column, or the reason why it is left out."""
    if cells.known == 0:
        return "no value"
    if wanted == "categorical":
        return _category(cells)
    if wanted == "numeric" or (not named and cells.form != "text"):
        cells.numbers()
        return Column(cells.name, "numeric")
    if not named:
        row = next(i for i, text in enumerate(cells.values) if text is not None)
        raise InputError(
            "{column} of the array holds {value} in {row}",
            column=cells.name,
            row=row,
            value=cells.values[row],
            hint="name it in categorical, or pass a data frame",
        )
    if cells.form == "time":
        return _time(cells.name, cells.values)
    if cells.form in ("whole", "real"):
        if not keep_identifiers and _counts_rows(cells):
            return "identifier"
        cells.numbers()
        return Column(cells.name, "numeric")
    return _decide_text(cells, keep_identifiers, notes)


def _decide_text(cells: Cells, keep_identifiers: bool, notes: list[Message]) -> Column | str:
    if cells.levels is not None:  # declared: booleans and categories
        return _category(cells)
    words = Counter(text for text in cells.values if text is not None)
    strange = {word for word in words if parsed_number(word) is None}
    if _is_numbers(words, strange, cells.known):
        return _decide_numbers(cells, len(words), strange - MISSING_NUMBERS, strange, keep_identifiers, notes)
    if all(parsed_time(word) is not None for word in words):
        return _time(cells.name, cells.times())
    if cells.known >= _FEWEST:
        length = sum(len(word) * count for word, count in words.items()) / cells.known
        if len(words) >= _DISTINCT * cells.known and length >= _LONG and any(" " in word for word in words):
            return "free text"
        if len(words) == cells.known and not keep_identifiers:
            return "identifier"
    return _category(cells)


def _decide_numbers(
    cells: Cells, distinct: int, words: set[str], strange: set[str], keep_identifiers: bool, notes: list[Message]
) -> Column | str:
    """Decide the kind of a column of which nearly all cells are numbers; `strange` cells are none, and `words` mean something."""
    if words:
        if distinct > _FEW_WORDS:
            row = next(i for i, text in enumerate(cells.values) if text in words)
            notes.append(
                Message(
                    "{column} holds {value} in {row}, and nearly all other cells are numbers: the column is taken as categories",
                    column=cells.name,
                    row=row,
                    value=cells.values[row],
                    hint="correct the cell, or empty it",
                )
            )
        return _category(cells)
    if strange:
        text = f"{{column}}: {quoted(sorted(strange))} among numbers counts as missing."
        notes.append(Message(text, column=cells.name, value=sorted(strange)))
    numbers = Cells(cells.name, "real", cells.numbers())
    whole = np.all(np.mod(numbers.values[np.isfinite(numbers.values)], 1.0) == 0.0)
    if not keep_identifiers and whole and _counts_rows(numbers):
        return "identifier"
    return Column(cells.name, "numeric")


def _is_numbers(words: Counter, strange: set[str], known: int) -> bool:
    """Tell whether nearly all cells are numbers."""
    count = sum(words[word] for word in strange)
    return count < known and (not strange or count <= (1.0 - _NUMBERS_SHARE) * known or strange <= MISSING_NUMBERS)


def _category(cells: Cells) -> Column | str:
    """Return a categorical column, with declared levels that do not occur after those that do."""
    counts = Counter(text for text in cells.texts() if text is not None)
    found = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    rest = [word for word in cells.levels or () if word not in counts]
    if len(found) == 1 and cells.known == len(cells.values):
        return "one value only"
    return Column(cells.name, "categorical", tuple(found + rest))


def _counts_rows(cells: Cells) -> bool:
    """Tell whether whole numbers are all distinct and are named as an identifier or count the rows."""
    values = cells.values
    if len(values) < _FEWEST or not np.isfinite(values).all() or len(np.unique(values)) < len(values):
        return False
    if (np.mod(values, 1.0) != 0.0).any():
        return False
    name = str(cells.name)
    if _ID_NAME.search(name) or _ID_CASE.search(name):
        return True
    if cells.form != "whole" or _MEASURED_NAME.search(name):
        return False
    gapless = values.max() - values.min() + 1 == len(values)
    return bool(gapless or (np.diff(values) > 0.0).all())


def _time(name: Any, seconds: np.ndarray) -> Column:
    """Return a time column with the cycles that it spans at least twice and in which it varies."""
    known = seconds[np.isfinite(seconds)]
    span = float(known.max() - known.min())
    cycles = []
    if span >= 2.0 * _DAY and len(np.unique(_cycle(known, "hour"))) > 1:
        cycles.append("hour")
    if span >= 2.0 * _WEEK and len(np.unique(_cycle(known, "weekday"))) > 1:
        cycles.append("weekday")
    return Column(name, "time", origin=float(known.min()), cycles=tuple(cycles))
