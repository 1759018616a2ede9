"""Columns of frames of pandas: other cells in them, and numbers, words and times in the types of other columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa

from isopleth.tables import arrow_columns
from isopleth.tables.cells import is_missing, word_of

_WHOLE = re.compile(r"^u?int\d+\b", re.I)


def with_columns(frame: Any, columns: dict[Any, Any]) -> Any:
    """Return a copy of a frame with other columns in the place of its own."""
    out = frame.copy(deep=False)
    for name, column in columns.items():
        out[name] = column
    return out


def with_cells(column: Any, rows: np.ndarray, cells: list[Any]) -> Any:
    """Return a copy of a column with other cells in some rows, of the same type."""
    kind, series = type(column.dtype).__name__, type(column)
    if kind == "ArrowDtype":
        return _of_arrow(arrow_columns.with_cells(pa.chunked_array(pa.array(column.array)), rows, cells), column)
    new = column.copy()
    if kind == "CategoricalDtype":
        lacking = [cell for cell in dict.fromkeys(cells) if cell not in new.cat.categories]
        new = new.cat.add_categories(lacking) if lacking else new
    added = series(cells).dt.to_period(new.dtype.freq) if kind == "PeriodDtype" else series(cells, dtype=new.dtype)
    new.iloc[rows] = added.array
    return new


def _of_arrow(arrow: Any, like: Any) -> Any:
    """Return an Arrow column with the index of a column of pandas."""
    import pandas

    return arrow.to_pandas(types_mapper=pandas.ArrowDtype).set_axis(like.index).rename(like.name)


def type_of(frame: Any, name: Any) -> str:
    """Return the type of a column as text: categories with their words, objects with the type of their first cell."""
    column = frame[name]
    kind, dtype = str(column.dtype), type(column.dtype).__name__
    if dtype == "ArrowDtype":
        return arrow_columns.text_of_type(column.dtype.pyarrow_dtype)
    if dtype == "CategoricalDtype" and all(
        isinstance(word, str | int | float) for word in column.cat.categories.tolist()
    ):
        return f"category{json.dumps([column.cat.categories.tolist(), bool(column.cat.ordered)])}"
    if kind != "object":
        return kind
    first = next((cell for cell in column if not is_missing(cell)), None)
    places = f":{max(0, -cast(int, first.as_tuple().exponent))}" if isinstance(first, Decimal) else ""
    return f"object:{type(first).__name__}{places}"


def in_types(frame: Any, types: dict[str, str]) -> Any:
    """Return a frame with the types of other rows, where these can hold its gaps."""
    return frame.assign(**{name: in_type(frame[name], types[name]) for name in frame.columns if name in types})


def in_type(column: Any, kind: str) -> Any:
    """Return a column of numbers, words or times with a type; as it is where the type cannot hold its gaps."""
    convert = next(convert for prefix, convert in _CONVERSIONS if kind.startswith(prefix))
    return convert(column, kind)


def _arrow(column: Any, kind: str) -> Any:
    """Return a column of an Arrow type."""
    return _of_arrow(arrow_columns.in_type(pa.chunked_array([pa.array(column, from_pandas=True)]), kind), column)


def _categories(column: Any, kind: str) -> Any:
    """Return words as categories."""
    categories, ordered = json.loads(kind.removeprefix("category"))
    cells = column.map({word_of(word): word for word in categories})
    return cells.astype("category").cat.set_categories(categories, ordered=ordered)


def _objects(column: Any, kind: str) -> Any:
    """Return a column as objects of the type of the first cell of another, such as dates; others as they are."""
    name, _, places = kind.removeprefix("object:").partition(":")
    times = column.dtype.kind == "M"
    if name == "Decimal":
        step = Decimal(1).scaleb(-int(places))
        cells = [None if is_missing(cell) else Decimal(repr(cell)).quantize(step) for cell in column]
    elif name == "timedelta":
        lengths = _durations(column, "timedelta64[us]")
        cells = [None if is_missing(cell) else cell.to_pytimedelta() for cell in lengths]
    elif name in _CLOCKS and times:
        cells = [None if is_missing(cell) else _CLOCKS[name](cell.to_pydatetime()) for cell in column]
    else:
        return column if times or column.dtype.kind == "f" else column.astype(object)
    return type(column)(cells, index=column.index, name=column.name, dtype=object)


# Parts of a time that objects may be.
_CLOCKS: dict[str, Callable[[Any], Any]] = {
    "datetime": lambda moment: moment,
    "date": lambda moment: moment.date(),
    "time": lambda moment: moment.time(),
}


def _durations(column: Any, kind: str) -> Any:
    """Return seconds as lengths of time."""
    import pandas

    return pandas.to_timedelta(column, unit="s").dt.round("us").astype(kind)


def _periods(column: Any, kind: str) -> Any:
    return column.dt.to_period(kind[len("period[") : -1])


def _plain(column: Any, kind: str) -> Any:
    """Return a column of a type that pandas converts to; whole numbers with gaps are of the type that holds these."""
    if _WHOLE.match(kind) and column.dtype.kind == "f":
        column = column.round()
        if column.isna().any() and kind == kind.lower():  # NumPy has no whole numbers with gaps
            kind = kind.replace("int", "Int").replace("uI", "UI")
    with suppress(ValueError, TypeError):
        return column.astype(kind)
    return column


# What types begin with, and how a column is converted to them.
_CONVERSIONS: tuple[tuple[str, Callable[[Any, str], Any]], ...] = (
    (arrow_columns.PREFIX, _arrow),
    ("category[", _categories),
    ("object", _objects),
    ("timedelta", _durations),
    ("period[", _periods),
    ("", _plain),
)
