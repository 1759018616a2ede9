"""Columns of frames of polars: other cells in them, and numbers, words and times in the types of other columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from isopleth.tables.arrow_columns import UNITS

_NOT_CAST = ("Object", "Null", "Unknown", "Binary")  # types that columns are not converted to


def with_columns(frame: Any, columns: dict[Any, Any]) -> Any:
    """Return a copy of a frame with other columns in the place of its own."""
    return frame.with_columns(**columns)


def with_cells(column: Any, rows: np.ndarray, cells: list[Any]) -> Any:
    """Return a copy of a column with other cells in some rows, of the same type."""
    kind, series = type(column.dtype).__name__, type(column)
    if kind not in ("Categorical", "Enum"):
        return column.clone().scatter(rows.tolist(), series(column.name, cells, dtype=column.dtype))
    text = column.cast(series([""]).dtype).scatter(rows.tolist(), cells)
    if kind == "Categorical":
        return text.cast(column.dtype)
    known = column.dtype.categories.to_list()
    return text.cast(type(column.dtype)([*known, *(c for c in dict.fromkeys(cells) if c not in known)]))


def type_of(frame: Any, name: Any) -> str:
    """Return the type of a column as text: an Enum with its words."""
    dtype = frame[name].dtype
    return f"Enum{json.dumps(dtype.categories.to_list())}" if type(dtype).__name__ == "Enum" else str(dtype)


def in_types(frame: Any, types: dict[str, str]) -> Any:
    """Return a frame with the types of other rows."""
    return frame.with_columns([in_type(frame[name], types[name]) for name in frame.columns if name in types])


def in_type(column: Any, kind: str) -> Any:
    """Return a column of numbers, words or times with a type; as it is if the text says none that is known."""
    name = re.split(r"[(\[]", kind, maxsplit=1)[0]
    if column.dtype.is_float():
        column = column.fill_nan(None)
    return _CONVERSIONS.get(name, _plain)(column, kind)


def _part(kind: str, name: str) -> Any:
    """Return a parameter of a type, such as its unit; None without it."""
    return next(iter(re.findall(rf"{name}='([^']+)'", kind)), None)


def _durations(column: Any, kind: str) -> Any:
    """Return seconds as lengths of time."""
    import polars

    unit = _part(kind, "time_unit") or "us"
    return (column * UNITS[unit]).round().cast(polars.Int64).cast(polars.Duration(cast(Any, unit)))


def _datetimes(column: Any, kind: str) -> Any:
    """Return times of a zone, or of none."""
    import polars

    zone = _part(kind, "time_zone")
    if zone is not None and column.dtype == polars.Object:
        column = polars.Series(column.name, column.to_list(), polars.Datetime("us", zone))
    return column.cast(polars.Datetime(cast(Any, _part(kind, "time_unit") or "us"), zone))


def _enums(column: Any, kind: str) -> Any:
    import polars

    return column.cast(polars.Enum(json.loads(kind.removeprefix("Enum"))))


def _decimals(column: Any, kind: str) -> Any:
    """Return numbers with the decimals of a type."""
    import polars

    precision, scale = (int(number) for number in re.findall(r"\d+", kind)[:2])
    return column.round(scale).cast(polars.Decimal(precision, scale))


def _plain(column: Any, kind: str) -> Any:
    """Return a column of a type that polars converts to; whole numbers are rounded."""
    import polars

    name = kind.partition("(")[0]
    if name in _NOT_CAST or not hasattr(polars, name):
        return column
    known = getattr(polars, name)
    return (column.round() if known.is_integer() and column.dtype.is_float() else column).cast(known)


# How a column is converted to a type that needs more than a cast.
_CONVERSIONS: dict[str, Callable[[Any, str], Any]] = {
    "Duration": _durations,
    "Datetime": _datetimes,
    "Enum": _enums,
    "Decimal": _decimals,
}
