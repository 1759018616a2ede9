"""Cells of a table as numbers, words or times, column by column, from frames of any library or arrays."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, Self

import narwhals as nw
import numpy as np

from isopleth.backend import frame_names
from isopleth.errors import InputError, listed

# Cells of text that count as missing.
MISSING_WORDS = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "Null", "<NA>", "NaT"})

# Words that count as missing as well, in columns where nearly all other cells are numbers.
MISSING_NUMBERS = frozenset({"-", "--", ".", "none", "None", "unknown", "missing"})


def library_of(X: Any) -> str | None:
    """Return the library of a frame by its name in narwhals; None for arrays."""
    frame = as_frame(X)
    return None if frame is None else str(frame.implementation.name.lower())


def is_table_of_kinds(X: Any) -> bool:
    """Tell whether `X` is a frame with missing cells or columns other than numbers; false for arrays."""
    frame = as_frame(X)
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
    frame = as_frame(X)
    return frame is not None and all(_holds_numbers(frame.get_column(name)) for name in frame.columns)


def _holds_numbers(column: Any) -> bool:
    return bool(column.dtype.is_numeric())


class SourceTable:
    """Frame or array that is read column by column."""

    def __init__(self, names: list[Any], n: int, read: Any, named: bool) -> None:
        self.names, self.n, self._read, self.named = names, n, read, named

    @classmethod
    def of(cls, X: Any) -> Self:
        frame = as_frame(X)
        if frame is not None:
            names = list(frame.columns)
            return cls(names, len(frame), frame.get_column, True)
        array = np.asarray(X)
        if array.ndim != 2:
            raise InputError(f"X has {array.ndim} axes; expected a table with rows and columns.")
        return cls(list(range(array.shape[1])), len(array), lambda j: array[:, j], False)

    def cells(self, name: Any, missing: frozenset[str]) -> Cells:
        return Cells.of(name, self._read(name), missing)


def as_frame(X: Any) -> Any:
    """Return `X` as a frame of narwhals, or None if it is no frame.

    Raises
    ------
    InputError
        If X is a lazy frame or has several columns of the same name.
    """
    if isinstance(X, np.ndarray):
        return None
    frame = _narwhal(X)
    if isinstance(frame, nw.LazyFrame) and not hasattr(X, "__arrow_c_stream__"):
        raise InputError("X is a lazy frame, which holds no rows yet; pass X.collect().")
    if not isinstance(frame, nw.DataFrame):
        if not hasattr(X, "__arrow_c_stream__"):
            return None
        frame = _read_stream(X)
    if not frame.columns:
        raise InputError("X has no columns; expected at least one.")
    return frame


def _narwhal(X: Any) -> Any:
    """Return a frame as one of narwhals, and anything else as it is; refuse columns of the same name."""
    names = [] if hasattr(X, "collect") else frame_names(X) or []
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"X has several columns named {quoted(twice)}; give each a name of its own.")
    return nw.from_native(X, pass_through=True)


def in_memory(X: Any) -> Any:
    """Return `X`, or its rows as a frame if it is an Arrow stream, which can be read once only."""
    if not hasattr(X, "__arrow_c_stream__") or isinstance(_narwhal(X), nw.DataFrame):
        return X
    return _read_stream(X).to_native()


def with_columns(X: Any, names: Sequence[Any]) -> Any:
    """Return a frame with some of its columns, in this order."""
    if not isinstance(frame := _narwhal(X), nw.DataFrame):
        return X
    return frame.select(*names).to_native() if all(isinstance(name, str) for name in names) else X[list(names)]


def some_rows(X: Any, choose: Callable[[int], np.ndarray]) -> Any:
    """Return the rows of a frame or array at the positions that `choose` returns for their number."""
    frame = as_frame(X)
    if frame is not None:
        return frame[choose(len(frame)).tolist()].to_native()
    array = np.asarray(X)
    return array[choose(len(array))] if array.ndim == 2 else array


def _read_stream(X: Any) -> nw.DataFrame[Any]:
    """Return the rows of an Arrow stream; refuse one column alone, such as a series."""
    if getattr(X, "ndim", None) == 1 or isinstance(nw.from_native(X, allow_series=True, pass_through=True), nw.Series):
        raise InputError(
            "X is a single column; pass a table with this column, as X.to_frame() of a series or frame[['name']]."
        )
    return nw.from_arrow(X, backend=_arrow_library())


def _arrow_library() -> Literal["pyarrow", "polars"]:
    """Return the name of an installed library that reads Arrow streams."""
    libraries: tuple[Literal["pyarrow"], Literal["polars"]] = ("pyarrow", "polars")
    for name in libraries:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise InputError("X is an Arrow stream, which needs pyarrow or polars to be read", parameter="X")


@dataclass(frozen=True)
class Cells:
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
                column = np.array([np.nan if is_missing(cell) else cell for cell in column], dtype=np.float64)
        if column.dtype.kind in "iuf":
            return cls(name, "whole" if column.dtype.kind in "iu" else "real", column.astype(np.float64))
        if column.dtype.kind == "M":
            return cls(name, "time", _seconds(column))
        return cls._of_objects(name, column.tolist(), missing)

    @classmethod
    def _of_objects(cls, name: Any, cells: list[Any], missing: frozenset[str]) -> Self:
        first = next((cell for cell in cells if not is_missing(cell)), None)
        if isinstance(first, timedelta):
            return cls(
                name, "real", np.array([np.nan if is_missing(c) else c.total_seconds() for c in cells], dtype=float)
            )
        if isinstance(first, (date, time)):
            return cls(name, "time", np.array([_clock(cell) for cell in cells], dtype=float))
        texts = _texts(cells, missing)
        if isinstance(first, bool) and all(is_missing(cell) or isinstance(cell, bool) for cell in cells):
            return cls(name, "text", texts, ("False", "True"))
        return cls(name, "text", texts)

    @property
    def known(self) -> int:
        """Number of cells that are not missing."""
        return sum(c is not None for c in self.values) if self.form == "text" else int(np.isfinite(self.values).sum())

    def texts(self) -> list[str | None]:
        """Return cells as words."""
        if self.form == "text":
            return self.values
        return [None if np.isnan(v) else _number_text(v) for v in self.values]

    def numbers(self) -> np.ndarray:
        """Return cells as numbers; raise InputError for other text and for infinity."""
        if self.form == "text":
            return np.array([self._number(i, text) for i, text in enumerate(self.values)], dtype=float)
        if np.isinf(self.values).any():
            row = int(np.argmax(np.isinf(self.values)))
            raise InputError(
                "{column} holds infinity in {row}",
                column=self.name,
                row=row,
                value=float(self.values[row]),
                hint="replace it by a number, or empty the cell",
            )
        return np.asarray(self.values)

    def _number(self, row: int, text: str | None) -> float:
        if text is None or text in MISSING_NUMBERS:
            return np.nan
        value = parsed_number(text)
        if value is None:
            raise InputError(
                "{column} holds {value} in {row}; expected a number, as at fit, or an empty cell.",
                column=self.name,
                row=row,
                value=text,
            )
        return value

    def times(self) -> np.ndarray:
        """Return cells as seconds since 1970; raise InputError for text that is no time."""
        if self.form != "text":
            return np.asarray(self.values, dtype=float)
        out = np.full(len(self.values), np.nan)
        for i, text in enumerate(self.values):
            moment = None if text is None else parsed_time(text)
            if text is not None and moment is None:
                raise InputError(
                    "{column} holds {value} in {row}; expected a time such as 2024-01-31 12:00.",
                    column=self.name,
                    row=i,
                    value=text,
                )
            if moment is not None:
                out[i] = moment
        return out


def joined(cells: Sequence[Cells]) -> Cells:
    """Return the cells of a column of several tables below each other, in a form that holds all of them."""
    known = [each for each in cells if each.known] or cells[:1]
    forms = {each.form for each in known}
    if len(cells) == 1:
        return cells[0]
    levels = tuple(dict.fromkeys(word for each in known for word in each.levels or ()))
    declared = levels if any(each.levels is not None for each in known) else None
    if forms <= {"whole", "real"} or forms == {"time"}:
        form = "time" if forms == {"time"} else "real" if "real" in forms else "whole"
        parts = [each.values if each.known else np.full(len(each.values), np.nan) for each in cells]
        return Cells(cells[0].name, form, np.concatenate([np.asarray(part, dtype=np.float64) for part in parts]))
    return Cells(cells[0].name, "text", [text for each in cells for text in each.texts()], declared)


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is None, NaN, NaT or the NA of pandas, which cannot be compared with itself."""
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)


def _texts(cells: list[Any], missing: frozenset[str]) -> list[str | None]:
    """Return words without surrounding blanks, None for a missing cell."""
    out: list[str | None] = []
    for cell in cells:
        word = cell.strip() if isinstance(cell, str) else None if is_missing(cell) else str(cell)
        out.append(None if word in missing else word)
    return out


def _number_text(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def parsed_number(text: str) -> float | None:
    """Return the finite number in a text, or None. Text with underscores, which Python would accept, is none."""
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _clock(cell: Any) -> float:
    """Return seconds since 1970 of a date or date and time, since midnight of a time of day; NaN for a missing cell."""
    if is_missing(cell):
        return np.nan
    if isinstance(cell, time):
        return cell.hour * 3600.0 + cell.minute * 60.0 + cell.second + cell.microsecond * 1e-6
    if not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    # A time with a zone keeps the hour of the day that the table shows.
    return cell.replace(tzinfo=UTC).timestamp()


def parsed_time(text: str) -> float | None:
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


def quoted(names: Iterable[Any]) -> str:
    return listed([repr(name) for name in names])
