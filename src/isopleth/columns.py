"""Kinds of columns: numbers, categories and times of a table, and what is left out as identifier or free text.

Frames of pandas, polars and pyarrow, and everything else that has the Arrow stream interface, are read alike. The kinds are
decided once, at fit, and hold for every table after that. Arrays are never guessed at: their columns are numbers, except those
that are said to be categories.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, Self, cast

import narwhals as nw
import numpy as np

from isopleth.backend import frame_names
from isopleth.errors import InputError, listed

# Cells of text that count as missing.
MISSING_WORDS = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "Null", "<NA>", "NaT"})

# Words that count as missing too where nearly all other cells are numbers.
_MISSING_NUMBERS = frozenset({"-", "--", ".", "none", "None", "unknown", "missing"})

_NUMBERS_SHARE = 0.9  # of the cells, for a column of text to be one of numbers in which some are missing
_FEWEST = 10  # rows below which distinct values prove nothing
_LONG = 25  # characters a cell, on average, from which distinct texts are free text
_DISTINCT = 0.8  # share of distinct cells of free text
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
        Its name in a frame, its number in an array.
    kind : {"numeric", "categorical", "time"}
        A time is encoded as seconds since `origin` and, where the span of the training rows holds two of them, the hour of the
        day and the day of the week as categories.
    levels : tuple of str
        Words of a categorical column, the most frequent one first.
    origin : float
        The first time, in seconds since 1970 (UTC, or the clock of the table where that has no zone).
    cycles : tuple of str
        Which of "hour" and "weekday" a time is encoded with.
    """

    name: str | int
    kind: str
    levels: tuple[str, ...] = ()
    origin: float = 0.0
    cycles: tuple[str, ...] = ()


@dataclass(frozen=True)
class EncodedTable:
    """A table as numbers.

    Parameters
    ----------
    numeric : array of shape (n, p)
        float64, NaN where a cell is missing.
    codes : array of shape (n, q)
        Places in the levels of each categorical column; their number for a word that was not among the training rows; -1
        where a cell is missing.
    unseen : dict
        How many cells hold such a word, by column, where there are any.
    extra : list
        Names of columns that were not there at fit; they are not used.
    """

    numeric: np.ndarray
    codes: np.ndarray
    unseen: dict[str | int, int] = field(default_factory=dict)
    extra: list[str | int] = field(default_factory=list)


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, as they are used.

    Made by :meth:`of` from training rows; :meth:`encode` turns tables with these columns into numbers.

    Parameters
    ----------
    columns : tuple of Column
        Those that are used, in the order of the table.
    left_out : dict
        Why each other column is not, by its name.
    notes : tuple of str
        What else should be known: one sentence each.
    named : bool
        Whether the table was a frame.
    n_columns : int
        Columns of the table, used or not.

    Examples
    --------
    >>> import pandas as pd
    >>> from isopleth.columns import TableColumns
    >>> table = pd.DataFrame({"order_no": range(12), "price": [9.5, 3.0, None] * 4, "colour": ["red", "blue", "red"] * 4})
    >>> columns = TableColumns.of(table)
    >>> columns.summary(len(table))
    '12 rows: 1 number, 1 category; left out: order_no (identifier)'
    >>> encoded = columns.encode(pd.DataFrame({"colour": ["green", None], "price": [1.0, 2.0]}))
    >>> encoded.codes.tolist(), encoded.unseen
    ([[2], [-1]], {'colour': 1})
    """

    columns: tuple[Column, ...]
    left_out: dict[str | int, str]
    notes: tuple[str, ...]
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
    ) -> Self:
        """Decide the kinds of the columns of a table.

        Parameters
        ----------
        X : data frame, array or object with the Arrow stream interface
            Training rows.
        categorical, numeric : iterable of names or numbers
            Columns of these kinds whatever they look like.
        exclude, identifiers : iterable of names or numbers
            Columns to leave out.
        keep_identifiers : bool, default=False
            Whether columns that look like identifiers are used.
        missing : iterable of str
            Texts that count as missing cells.
        cycles : bool, default=True
            Whether times become hours and days of the week too.

        Raises
        ------
        InputError
            For columns that do not exist or are named twice, cells that are no numbers in a column said to be numeric, and
            tables of which no column is left.
        """
        table = _Table.of(X)
        asked = {
            "categorical": set(categorical),
            "numeric": set(numeric),
            "exclude": set(exclude),
            "identifiers": set(identifiers),
        }
        for what, names in asked.items():
            for name in sorted(names - set(table.names), key=str):
                raise InputError(
                    f"{what} names column {name!r}, which the table does not have; it has {_listed(table.names)}."
                )
        words = frozenset(missing)
        columns: list[Column] = []
        left_out: dict[str | int, str] = {}
        notes: list[str] = []
        for name in table.names:
            if name in asked["exclude"] or name in asked["identifiers"]:
                left_out[name] = "identifier" if name in asked["identifiers"] else "excluded"
                continue
            wanted = next((kind for kind in ("categorical", "numeric") if name in asked[kind]), None)
            cells = table.cells(name, words)
            found = _decide(cells, wanted, keep_identifiers, table.named, notes)
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
        """One line on what was taken as what."""
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
    def categorical_names(self) -> list[str]:
        """Names of the columns of :attr:`EncodedTable.codes`."""
        return [
            str(column.name) if cycle is None else f"{column.name} ({cycle})"
            for column in self.columns
            for cycle in _coded(column)
        ]

    @property
    def levels(self) -> list[tuple[str, ...]]:
        """Words of each categorical column, without the one that unseen words are."""
        return [_levels_of(column, cycle) for column in self.columns for cycle in _coded(column)]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each, with one more for words that were not among the training rows."""
        return tuple(len(levels) + 1 for levels in self.levels)

    @property
    def names(self) -> list[Any]:
        """Names of the columns that are used, in the order of the table."""
        return [column.name for column in self.columns]

    @property
    def order(self) -> np.ndarray:
        """Places in :attr:`columns` of the encoded columns, numbers and times before categories; without cycles of times."""
        words = np.array([column.kind == "categorical" for column in self.columns])
        return np.argsort(words, kind="stable")

    def take(self, places: Iterable[int]) -> TableColumns:
        """The columns at some places of :attr:`columns`, as a table of their own; those of an array get new numbers."""
        chosen = [self.columns[i] for i in places]
        if not self.named:
            chosen = [replace(column, name=j) for j, column in enumerate(chosen)]
        return TableColumns(tuple(chosen), {}, (), self.named, len(chosen))

    @classmethod
    def of_numbers(cls, names: list[Any], named: bool) -> Self:
        """Numeric columns of these names."""
        return cls(tuple(Column(name, "numeric") for name in names), {}, (), named, len(names))

    def encode(self, X: Any, missing: Iterable[str] = MISSING_WORDS) -> EncodedTable:
        """A table with these columns, in whatever order, as numbers.

        Raises
        ------
        InputError
            For columns that are not there, and for cells that are no numbers or times in columns of these.
        """
        table = _Table.of(X)
        if not self.named and len(table.names) != self.n_columns:
            raise InputError(f"X has {len(table.names)} columns; expected {self.n_columns} as at fit.")
        if self.named and not table.named:
            raise InputError("X has no names of columns; pass a data frame with the columns that were there at fit.")
        lost = [column.name for column in self.columns if column.name not in set(table.names)]
        if lost:
            raise InputError(
                f"X lacks column {_listed(lost)}, which was there at fit; add it, with empty cells if it is unknown."
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
    """One cell as a number or a code; NaN if it is missing."""
    cell = np.empty(1, dtype=object)
    cell[0] = value
    cells = _Cells.of(column.name, cell, MISSING_WORDS)
    if column.kind == "categorical":
        code = _codes(cells.texts(), column.levels)[0][0]
        return np.nan if code < 0 else float(code)
    if column.kind == "time":
        return float(cells.times()[0] - column.origin)
    return float(cells.numbers()[0])


def decode_cells(column: Column, values: np.ndarray, like: Any = None) -> Any:
    """Numbers or codes as cells of a column: numbers, times, or words of the type of `like`, a cell of the table."""
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


def write_cells(X: Any, columns: TableColumns, filled: np.ndarray, gaps: np.ndarray) -> Any:
    """A copy of a table with some cells written.

    Parameters
    ----------
    X : data frame or array
        The table.
    columns : TableColumns
        Its columns.
    filled : array of shape (n, len(columns.columns))
        Encoded cells, by column of :attr:`TableColumns.columns`.
    gaps : array of the same shape, bool
        Which of them to write.

    Returns
    -------
    data frame or ndarray
        A frame of the library of `X`, or an array.
    """
    frame = _frame(X)
    if frame is None:
        return _write_array(np.array(X), columns, filled, gaps)
    written = []
    for j, column in enumerate(columns.columns):
        rows = np.flatnonzero(gaps[:, j])
        if len(rows):
            written.append(_written(frame, column, filled[:, j], rows))
    return frame.with_columns(*written).to_native() if written else frame.to_native()


def _written(frame: Any, column: Column, values: np.ndarray, rows: np.ndarray) -> Any:
    old = frame.get_column(column.name)
    if column.kind != "categorical":
        cells = decode_cells(column, values)
    else:
        cells = [None if _absent(cell) else cell for cell in old.to_list()]
        like = next((cell for cell in cells if cell is not None), None)
        for row, cell in zip(rows, decode_cells(column, values[rows], like), strict=True):
            cells[row] = cell
    new = nw.new_series(cast(str, column.name), cells, backend=frame.implementation)
    if frame.implementation.is_pandas_like():  # rows are matched by their index there
        native = new.to_native()
        native.index = frame.to_native().index
        new = nw.from_native(native, series_only=True)
    return new.cast(old.dtype) if old.dtype in (nw.Categorical, nw.Enum) else new


def _write_array(out: np.ndarray, columns: TableColumns, filled: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    for j, column in enumerate(columns.columns):
        rows = np.flatnonzero(gaps[:, j])
        if len(rows):
            known = [cell for cell in out[:, int(column.name)] if not _absent(cell)]
            cells = decode_cells(column, filled[rows, j], known[0] if known else None)
            for row, cell in zip(rows, cells, strict=True):
                out[row, int(column.name)] = cell
    return out


def new_table(columns: TableColumns, values: np.ndarray, library: str | None) -> Any:
    """A table of encoded cells, by column of :attr:`TableColumns.columns`: a frame of a library, or an array without one."""
    cells = [decode_cells(column, values[:, j]) for j, column in enumerate(columns.columns)]
    if library is not None:
        names = [str(name) for name in columns.names]
        return nw.from_dict(dict(zip(names, cells, strict=True)), backend=cast(Any, library)).to_native()
    words = [c for column in columns.columns if column.kind == "categorical" for c in column.levels]
    if all(_parsed(word) is not None for word in words):
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in cells])
    out = np.empty(values.shape, dtype=object)
    for j, column in enumerate(cells):
        out[:, j] = column
    return out


def library_of(X: Any) -> str | None:
    """The library of a frame, as narwhals names it; None for arrays."""
    frame = _frame(X)
    return None if frame is None else str(frame.implementation.name.lower())


def is_table_of_kinds(X: Any) -> bool:
    """Tell whether `X` is a frame with missing cells or columns other than numbers; false for arrays."""
    frame = _frame(X)
    if frame is None:
        return False
    for name in frame.columns:
        column = frame.get_column(name)
        if not _holds_numbers(column):
            return True
        values = np.asarray(column.to_numpy())
        if values.dtype == object or np.isnan(np.asarray(values, dtype=np.float64)).any():
            return True
    return False


def holds_numbers_only(X: Any) -> bool:
    """Tell whether every column of a frame holds numbers."""
    frame = _frame(X)
    return frame is not None and all(_holds_numbers(frame.get_column(name)) for name in frame.columns)


def _holds_numbers(column: Any) -> bool:
    return bool(column.dtype.is_numeric())


def _coded(column: Column) -> Sequence[str | None]:
    """The categorical columns that a column becomes: itself (None), or the cycles of a time."""
    return (None,) if column.kind == "categorical" else column.cycles


def _levels_of(column: Column, cycle: str | None) -> tuple[str, ...]:
    if cycle is None:
        return column.levels
    return _WEEKDAYS if cycle == "weekday" else tuple(f"{hour:02d}:00" for hour in range(24))


def _stacked(columns: list[np.ndarray], n: int, dtype: Any) -> np.ndarray:
    return np.column_stack(columns).astype(dtype, copy=False) if columns else np.empty((n, 0), dtype=dtype)


def _codes(texts: list[str | None], levels: Sequence[str]) -> tuple[np.ndarray, int]:
    """Places in `levels`, and how many cells hold other words."""
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


# ---- reading tables ------------------------------------------------------------------------------------------------------


class _Table:
    """A frame or an array, read a column at a time."""

    def __init__(self, names: list[Any], n: int, read: Any, named: bool) -> None:
        self.names, self.n, self._read, self.named = names, n, read, named

    @classmethod
    def of(cls, X: Any) -> Self:
        frame = _frame(X)
        if frame is not None:
            names = list(frame.columns)
            return cls(names, len(frame), frame.get_column, True)
        array = np.asarray(X)
        if array.ndim != 2:
            raise InputError(f"X has {array.ndim} axes; expected a table with rows and columns.")
        return cls(list(range(array.shape[1])), len(array), lambda j: array[:, j], False)

    def cells(self, name: Any, missing: frozenset[str]) -> _Cells:
        return _Cells.of(name, self._read(name), missing)


def _frame(X: Any) -> Any:
    """`X` as a frame of narwhals, or None for what is no frame.

    Raises
    ------
    InputError
        For frames that hold no rows yet, and for several columns of one name.
    """
    if isinstance(X, np.ndarray):
        return None
    names = [] if hasattr(X, "collect") else frame_names(X) or []
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"X has several columns named {_listed(twice)}; give each a name of its own.")
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame) and not hasattr(X, "__arrow_c_stream__"):
        raise InputError("X is a lazy frame, which holds no rows yet; pass X.collect().")
    if not isinstance(frame, nw.DataFrame):
        if not hasattr(X, "__arrow_c_stream__"):
            return None
        frame = nw.from_arrow(X, backend=_arrow_library())
    if not frame.columns:
        raise InputError("X has no columns; expected at least one.")
    return frame


def _arrow_library() -> Literal["pyarrow", "polars"]:
    """A library that takes Arrow streams."""
    libraries: tuple[Literal["pyarrow"], Literal["polars"]] = ("pyarrow", "polars")
    for name in libraries:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise InputError("X is an Arrow stream, which needs pyarrow or polars to be read: pip install pyarrow.")


@dataclass(frozen=True)
class _Cells:
    """Cells of a column in one of four forms: `values` is an array of numbers, of times (datetime64), or a list of texts."""

    name: Any
    form: str
    values: Any
    levels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, name: Any, column: Any, missing: frozenset[str]) -> Self:
        if isinstance(column, np.ndarray):
            return cls._of_array(name, column, missing)
        dtype = column.dtype
        if dtype.is_numeric():
            whole = dtype.is_integer()
            values = np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
            return cls(name, "whole" if whole else "real", values)
        if dtype == nw.Boolean:
            return cls(name, "text", _texts(column.to_list(), missing), ("False", "True"))
        if dtype in (nw.Categorical, nw.Enum):
            declared = tuple(map(str, dtype.categories)) if dtype == nw.Enum else ()
            return cls(name, "text", _texts(column.to_list(), missing), declared)
        return cls._of_objects(name, column.to_list(), missing)

    @classmethod
    def _of_array(cls, name: Any, column: np.ndarray, missing: frozenset[str]) -> Self:
        if column.dtype == object and not any(isinstance(cell, (str, bool, date, time, timedelta)) for cell in column):
            with suppress(TypeError, ValueError):
                column = np.array([np.nan if _absent(cell) else cell for cell in column], dtype=np.float64)
        if column.dtype.kind in "iuf":
            return cls(name, "whole" if column.dtype.kind in "iu" else "real", column.astype(np.float64))
        if column.dtype.kind == "M":
            return cls(name, "time", _seconds(column))
        return cls._of_objects(name, column.tolist(), missing)

    @classmethod
    def _of_objects(cls, name: Any, cells: list[Any], missing: frozenset[str]) -> Self:
        first = next((cell for cell in cells if not _absent(cell)), None)
        if isinstance(first, timedelta):
            return cls(
                name, "real", np.array([np.nan if _absent(c) else c.total_seconds() for c in cells], dtype=float)
            )
        if isinstance(first, (date, time)):
            return cls(name, "time", np.array([_clock(cell) for cell in cells], dtype=float))
        texts = _texts(cells, missing)
        if isinstance(first, bool) and all(_absent(cell) or isinstance(cell, bool) for cell in cells):
            return cls(name, "text", texts, ("False", "True"))
        return cls(name, "text", texts)

    @property
    def known(self) -> int:
        """How many are not missing."""
        return sum(c is not None for c in self.values) if self.form == "text" else int(np.isfinite(self.values).sum())

    def texts(self) -> list[str | None]:
        """Cells as words."""
        if self.form == "text":
            return self.values
        return [None if np.isnan(v) else _number_text(v) for v in self.values]

    def numbers(self) -> np.ndarray:
        """Cells as numbers; refuses a text that is none, and infinity."""
        if self.form == "text":
            return np.array([self._number(i, text) for i, text in enumerate(self.values)], dtype=float)
        if np.isinf(self.values).any():
            row = int(np.argmax(np.isinf(self.values)))
            raise InputError(
                f"column {self.name!r} holds infinity in row {row}; replace it by a number, or empty the cell."
            )
        return np.asarray(self.values)

    def _number(self, row: int, text: str | None) -> float:
        if text is None or text in _MISSING_NUMBERS:
            return np.nan
        value = _parsed(text)
        if value is None:
            raise InputError(
                f"column {self.name!r} holds {text!r} in row {row}; expected a number, as at fit, or an empty cell."
            )
        return value

    def times(self) -> np.ndarray:
        """Cells as seconds since 1970; refuses what is no time."""
        if self.form != "text":
            return np.asarray(self.values, dtype=float)
        out = np.full(len(self.values), np.nan)
        for i, text in enumerate(self.values):
            moment = None if text is None else _moment(text)
            if text is not None and moment is None:
                raise InputError(
                    f"column {self.name!r} holds {text!r} in row {i}; expected a time such as 2024-01-31 12:00."
                )
            if moment is not None:
                out[i] = moment
        return out


def _absent(cell: Any) -> bool:
    """Tell whether a cell is None, NaN, NaT or the NA of pandas, which cannot be compared with itself."""
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)


def _texts(cells: list[Any], missing: frozenset[str]) -> list[str | None]:
    """Words without the blanks around them, None where a cell is missing."""
    out: list[str | None] = []
    for cell in cells:
        word = cell.strip() if isinstance(cell, str) else None if _absent(cell) else str(cell)
        out.append(None if word in missing else word)
    return out


def _number_text(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _parsed(text: str) -> float | None:
    """A finite number, or None; underscores and words that Python takes for numbers are none."""
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _clock(cell: Any) -> float:
    """Seconds since 1970 of a date or a time with a date, since midnight of a time of day; NaN for none."""
    if _absent(cell):
        return np.nan
    if isinstance(cell, time):
        return cell.hour * 3600.0 + cell.minute * 60.0 + cell.second + cell.microsecond * 1e-6
    if not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    # Clocks with a zone keep their hour of the day: that is what a table means by it.
    return cell.replace(tzinfo=UTC).timestamp()


def _moment(text: str) -> float | None:
    if not re.match(r"\d{4}-\d{1,2}-\d{1,2}", text):
        return None
    try:
        return _clock(datetime.fromisoformat(text))
    except ValueError:
        return None


def _seconds(column: np.ndarray) -> np.ndarray:
    out = column.astype("datetime64[us]").astype(np.float64) * 1e-6
    out[np.isnat(column)] = np.nan
    return out


# ---- deciding kinds ------------------------------------------------------------------------------------------------------


def _decide(cells: _Cells, wanted: str | None, keep_identifiers: bool, named: bool, notes: list[str]) -> Column | str:
    """The column, or why it is left out."""
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
            f"column {cells.name} of the array holds {cells.values[row]!r} in row {row}; "
            "name it in categorical, or pass a data frame."
        )
    if cells.form == "time":
        return _time(cells.name, cells.values)
    if cells.form in ("whole", "real"):
        if not keep_identifiers and _counts_rows(cells):
            return "identifier"
        cells.numbers()
        return Column(cells.name, "numeric")
    return _decide_text(cells, keep_identifiers, notes)


def _decide_text(cells: _Cells, keep_identifiers: bool, notes: list[str]) -> Column | str:
    if cells.levels is not None:  # declared: booleans and categories
        return _category(cells)
    words = Counter(text for text in cells.values if text is not None)
    strange = {word for word in words if _parsed(word) is None}
    if _is_numbers(words, strange, cells.known):
        if strange - _MISSING_NUMBERS:
            return _category(cells)
        if strange:
            notes.append(f"column {cells.name!r}: {_listed(sorted(strange))} among numbers counts as missing.")
        numbers = _Cells(cells.name, "real", cells.numbers())
        if (
            not keep_identifiers
            and np.all(np.mod(numbers.values[np.isfinite(numbers.values)], 1.0) == 0.0)
            and _counts_rows(numbers)
        ):
            return "identifier"
        return Column(cells.name, "numeric")
    if all(_moment(word) is not None for word in words):
        return _time(cells.name, cells.times())
    if cells.known >= _FEWEST:
        length = sum(len(word) * count for word, count in words.items()) / cells.known
        if len(words) >= _DISTINCT * cells.known and length >= _LONG and any(" " in word for word in words):
            return "free text"
        if len(words) == cells.known and not keep_identifiers:
            return "identifier"
    return _category(cells)


def _is_numbers(words: Counter, strange: set[str], known: int) -> bool:
    """Tell whether nearly all cells are numbers."""
    count = sum(words[word] for word in strange)
    return count < known and (not strange or count <= (1.0 - _NUMBERS_SHARE) * known or strange <= _MISSING_NUMBERS)


def _category(cells: _Cells) -> Column | str:
    """A categorical column, its declared levels behind those that occur."""
    counts = Counter(text for text in cells.texts() if text is not None)
    found = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    rest = [word for word in cells.levels or () if word not in counts]
    if len(found) == 1 and cells.known == len(cells.values):
        return "one value only"
    return Column(cells.name, "categorical", tuple(found + rest))


def _counts_rows(cells: _Cells) -> bool:
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
    """A time with the cycles that it goes through at least twice, and does not always meet at the same place."""
    known = seconds[np.isfinite(seconds)]
    span = float(known.max() - known.min())
    cycles = []
    if span >= 2.0 * _DAY and len(np.unique(_cycle(known, "hour"))) > 1:
        cycles.append("hour")
    if span >= 2.0 * _WEEK and len(np.unique(_cycle(known, "weekday"))) > 1:
        cycles.append("weekday")
    return Column(name, "time", origin=float(known.min()), cycles=tuple(cycles))


def _listed(names: Iterable[Any]) -> str:
    return listed([repr(name) for name in names])
