"""Cells in the types of a table: filled cells among known ones, and new rows in the types of other rows."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isopleth.tables.cells import TRUTH, is_missing, word_of
from isopleth.tables.forms import form_of
from isopleth.tables.given import Given
from isopleth.tables.intervals import with_numbers
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema, decode_cells
from isopleth.tables.usual_types import holds_intervals, in_usual_type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86400.0
_WHOLE = re.compile(r"^(u?)int(\d+)\b", re.I)
_UNIT = re.compile(r"(?:\[|unit=')(s|ms|us|ns)\b")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-6}


# ---- filled cells among known ones --------------------------------------------------------------------------------------


def write_cells(X: Any, columns: Schema, filled: np.ndarray, gaps: np.ndarray) -> Any:
    """Copy a table and write encoded cells, in the order of :attr:`Schema.columns`, with the types of its other cells."""
    given = Given.of(X)
    X, frame = given.table, given.frame
    if frame is None:
        out = np.array(X)
        for j, column in enumerate(columns.columns):
            # Rows without names may follow a fit to a frame of complete numbers, all of whose columns are used.
            rows, place = np.flatnonzero(gaps[:, j]), j if columns.named else int(column.name)
            if len(rows):
                cells = _new_cells(column, filled[:, j], gaps[:, j], out[:, place].tolist(), str(out.dtype))
                for row, cell in zip(rows, cells, strict=True):  # at once, NumPy would take a list of lists for rows
                    out[row, place] = cell
        return out
    written = {}
    for j, column in enumerate(columns.columns):
        if gaps[:, j].any():
            name = column.name if columns.named else frame.columns[int(column.name)]  # a frame of complete numbers
            old = frame.get_column(name)
            native = _own_column(X, name, old)
            if holds_intervals(old.dtype):
                written[name] = with_numbers(native, old, np.flatnonzero(gaps[:, j]), filled[gaps[:, j], j])
                continue
            kind = str(getattr(native, "dtype", getattr(native, "type", "")))
            cells = _new_cells(column, filled[:, j], gaps[:, j], old.to_list(), kind)
            written[name] = _with_cells(native, np.flatnonzero(gaps[:, j]), cells)
    return _with_columns(X, frame, written)


def _own_column(X: Any, name: Any, old: Any) -> Any:
    """Return a column as its library has it, before periods became times."""
    kind = old.implementation
    return X[name] if kind.is_pandas() or kind.is_polars() or isinstance(X, pa.Table) else old.to_native()


def _with_columns(X: Any, frame: Any, written: dict[Any, Any]) -> Any:
    """Return a copy of a frame with other columns in the place of its own."""
    if frame.implementation.is_pandas():
        out = X.copy(deep=False)
        for name, column in written.items():
            out[name] = column
        return out
    if frame.implementation.is_polars():
        return X.with_columns(**written)
    if isinstance(X, pa.Table):
        for name, column in written.items():
            X = X.set_column(X.column_names.index(name), name, column)
        return X
    new = [nw.from_native(column, series_only=True).alias(cast(str, name)) for name, column in written.items()]
    return frame.with_columns(*new).to_native() if new else frame.to_native()


def _with_cells(native: Any, rows: np.ndarray, cells: list[Any]) -> Any:
    """Return a copy of a column of pandas, polars or pyarrow with other cells in some rows, of the same type."""
    if isinstance(native, pa.ChunkedArray):
        return _with_arrow_cells(native, rows, cells)
    name = type(native.dtype).__name__
    if name == "ArrowDtype":
        return _as_pandas(_with_arrow_cells(pa.chunked_array(pa.array(native.array)), rows, cells), native)
    if hasattr(native, "iloc"):
        new = native.copy()
        if name == "CategoricalDtype":
            lacking = [cell for cell in dict.fromkeys(cells) if cell not in new.cat.categories]
            new = new.cat.add_categories(lacking) if lacking else new
        kind = type(native)
        added = kind(cells).dt.to_period(new.dtype.freq) if name == "PeriodDtype" else kind(cells, dtype=new.dtype)
        new.iloc[rows] = added.array
        return new
    if name in ("Categorical", "Enum"):
        text = native.cast(type(native)([""]).dtype).scatter(rows.tolist(), cells)
        if name == "Categorical":
            return text.cast(native.dtype)
        known = native.dtype.categories.to_list()
        return text.cast(type(native.dtype)([*known, *(c for c in dict.fromkeys(cells) if c not in known)]))
    return native.clone().scatter(rows.tolist(), type(native)(native.name, cells, dtype=native.dtype))


def _as_pandas(arrow: Any, like: Any) -> Any:
    """Return an Arrow column as one of pandas, whose type it is, with the index of another."""
    found = arrow.to_pandas(
        types_mapper=type(like.dtype) if type(like.dtype).__name__ == "ArrowDtype" else _arrow_dtype()
    )
    return found.set_axis(like.index).rename(like.name)


def _arrow_dtype() -> Any:
    import pandas

    return pandas.ArrowDtype


def _with_arrow_cells(native: Any, rows: np.ndarray, cells: list[Any]) -> Any:
    """Return an Arrow column with other cells in some rows."""
    known = _unpacked(native)
    chunks = known.chunks
    place = np.arange(len(native))
    place[rows] = len(native) + np.arange(len(rows))
    return _packed(pa.chunked_array([*chunks, pa.array(cells, known.type)]).take(pa.array(place)), native.type)


def _unpacked(column: Any) -> Any:
    """Return an Arrow column of codes, runs or views as one of plain cells."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else in_usual_type(column)


def _packed(column: Any, kind: Any) -> Any:
    """Return plain cells as an Arrow column of codes, runs or views."""
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(column.cast(kind.value_type), run_end_type=kind.run_end_type)
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type).dictionary_encode().cast(kind)
    return column.cast(kind, safe=False)


def _new_cells(column: Column, values: np.ndarray, gaps: np.ndarray, others: list[Any], kind: str) -> list[Any]:
    """Decode the values at gaps to cells like the known cells of a column; `kind` is its type."""
    known = [cell for cell, gap in zip(others, gaps.tolist(), strict=True) if not gap and not is_missing(cell)]
    asked = values[gaps]
    if column.kind == "categorical" and column.levels != TRUTH:
        # Each word is written as the cell that it was read from.
        cells = {word_of(cell): cell for cell in reversed(known)}
        of_one_type = len(set(map(type, known))) == 1
        other = decode_cells(column, asked, _usual(known) if of_one_type else "")
        return [cells.get(text, cell) for text, cell in zip(decode_cells(column, asked, ""), other, strict=True)]
    like = _usual(known)
    if isinstance(like, str):
        rows = [i for i in np.flatnonzero(~gaps & ~np.isnan(values)).tolist() if isinstance(others[i], str)]
        right = values[rows]
        form = form_of([others[i] for i in rows], _plain(column, right), day_first=column.day_first)
        if column.kind == "time" and column.zone is None and len(right) and not ((right + column.origin) % _DAY).any():
            asked = np.rint((asked + column.origin) / _DAY) * _DAY - column.origin
        return [form(cell) for cell in _plain(column, asked)]
    if column.kind == "categorical":
        return list(decode_cells(column, asked, like))
    if column.kind == "time":
        return _times(column, asked, known, like, kind)
    whole = _WHOLE.match(kind) is not None or (isinstance(like, int) and all(isinstance(cell, int) for cell in known))
    return [_number(value, like, whole, kind) for value in asked.tolist()]


def _usual(known: Sequence[Any]) -> Any:
    """Return a cell of the type that most of the cells have; of the first type if several have as many."""
    if not known:
        return None
    kind = Counter(map(type, known)).most_common(1)[0][0]
    return next(cell for cell in known if type(cell) is kind)


def _plain(column: Column, values: np.ndarray) -> list[Any]:
    """Return values as numbers, truth values or datetimes."""
    if column.kind == "categorical":
        return [bool(value) for value in values]
    if column.kind == "numeric":
        return list(values.tolist())
    zone = None if column.zone is None else UTC
    return [(_EPOCH + timedelta(seconds=float(value) + column.origin)).replace(tzinfo=zone) for value in values]


def _times(column: Column, values: np.ndarray, known: Sequence[Any], like: Any, kind: str) -> list[Any]:
    """Return times of the type of a known one: whole days if all known ones are, else of the unit of the column."""
    seconds = values + column.origin
    unit = _UNIT.search(kind)
    step = _SECONDS[unit[1]] if unit else 1e-6
    if column.zone is None and known and all(map(_is_whole_day, known)):
        step = _DAY
    return [_time(value, like) for value in np.rint(seconds / step) * step]


def _number(value: float, like: Any, whole: bool, kind: str) -> Any:
    """Return a number as the type of another cell of its column."""
    unit = _UNIT.search(kind)
    step = _SECONDS[unit[1]] if unit else 1e-6
    if isinstance(like, timedelta):
        return timedelta(seconds=round(value / step) * step)
    if isinstance(like, np.timedelta64):
        return np.timedelta64(round(value * 1e6), "us")
    if isinstance(like, Decimal) and not whole:
        return round(Decimal(value), max(0, -cast(int, like.as_tuple().exponent)))
    if not whole:
        return value
    if (held := _WHOLE.match(kind)) is None:
        return round(value)
    bits = int(held[2])
    least, most = (0, 2**bits - 1) if held[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return min(max(round(value), least), most)


def _is_whole_day(cell: Any) -> bool:
    """Tell whether a cell is a date, or a time without a zone at midnight."""
    if isinstance(cell, datetime):
        return cell.tzinfo is None and cell.time() == time() and not getattr(cell, "nanosecond", 0)
    return isinstance(cell, date)


def _time(seconds: float, like: Any) -> Any:
    """Return seconds since 1970 as the type of another cell of its column."""
    moment = _EPOCH + timedelta(seconds=float(seconds))
    if isinstance(like, datetime):
        return moment.astimezone(like.tzinfo) if like.tzinfo else moment.replace(tzinfo=None)
    if isinstance(like, date):
        return moment.date()
    if isinstance(like, time):
        return moment.time()
    return np.datetime64(moment.replace(tzinfo=None), "us")


# ---- new rows in the types of others ------------------------------------------------------------------------------------


def types_of(X: Any) -> dict[str, str]:
    """Return the type of each column of a frame as text that :func:`in_types` reads; nothing for arrays."""
    if isinstance(X, np.ndarray):
        return {}
    frame = nw.from_native(X, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        if not hasattr(X, "__arrow_c_stream__"):
            return {}
        frame = nw.from_native(pa.table(X))
    native = frame.to_native()
    return {str(name): _type_of(native, name) for name in frame.columns}


def _type_of(native: Any, name: Any) -> str:
    """Return the type of a column; categories with their words, objects of pandas with the type of their first cell."""
    if isinstance(native, pa.Table):
        return _arrow_text(native.schema.field(name).type)
    column = native[name]
    kind, dtype = str(column.dtype), type(column.dtype).__name__
    if dtype == "ArrowDtype":
        return _arrow_text(column.dtype.pyarrow_dtype)
    if dtype == "CategoricalDtype":
        categories = column.cat.categories.tolist()
        if all(isinstance(word, str | int | float) for word in categories):
            return f"category{json.dumps([categories, bool(column.cat.ordered)])}"
    if dtype == "Enum":
        return f"Enum{json.dumps(column.dtype.categories.to_list())}"
    if kind == "object":
        first = next((cell for cell in column if not is_missing(cell)), None)
        places = f":{max(0, -cast(int, first.as_tuple().exponent))}" if isinstance(first, Decimal) else ""
        return f"object:{type(first).__name__}{places}"
    return kind


def _arrow_text(kind: Any) -> str:
    return _ARROW + base64.b64encode(pa.schema([("x", kind)]).serialize()).decode()


_ARROW = "arrow:"


def is_whole(kind: str) -> bool:
    """Tell whether a type holds whole numbers."""
    if kind.startswith(_ARROW):
        return bool(pa.types.is_integer(_arrow_type(kind)))
    return _WHOLE.match(kind) is not None or kind == "object:int"


def is_length_of_time(kind: str) -> bool:
    """Tell whether a type holds durations."""
    if kind.startswith(_ARROW):
        return bool(pa.types.is_duration(_arrow_type(kind)))
    return kind.startswith(("timedelta", "Duration", "object:timedelta"))


def _arrow_type(kind: str) -> Any:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kind.removeprefix(_ARROW)))).field(0).type


def in_types(frame: Any, types: dict[str, str]) -> Any:
    """Return a frame of numbers, words and times with the types of other rows, where these can hold its gaps."""
    if isinstance(frame, pa.Table):
        kinds = [(name, types.get(name)) for name in frame.column_names]
        columns = [_in_arrow(frame.column(n), k) if k and k.startswith(_ARROW) else frame.column(n) for n, k in kinds]
        return pa.table(columns, names=frame.column_names)
    if hasattr(frame, "iloc"):
        return frame.assign(**{name: _in_pandas(frame[name], types[name]) for name in frame.columns if name in types})
    return frame.with_columns([_in_polars(frame[name], types[name]) for name in frame.columns if name in types])


def _in_arrow(column: Any, text: str) -> Any:
    """Return a column with the Arrow type of that name."""
    kind = _arrow_type(text)
    value = getattr(kind, "value_type", kind)
    if pa.types.is_floating(column.type):  # with gaps in the place of NaN
        column = pa.chunked_array([pa.array(column.to_numpy(), from_pandas=True)])
    if pa.types.is_time(value):
        column = pa.chunked_array([pa.array([cell and cell.time() for cell in column.to_pylist()], pa.time64("us"))])
    if pa.types.is_duration(value):
        column = _rounded_arrow(column, _SECONDS_IN[value.unit]).cast(pa.int64())
    if pa.types.is_decimal(value):
        step = Decimal(1).scaleb(-value.scale)
        cells = [None if cell is None else Decimal(repr(cell)).quantize(step) for cell in column.to_pylist()]
        return pa.chunked_array([pa.array(cells, value)])
    if pa.types.is_integer(value) and pa.types.is_floating(column.type):
        column = _rounded_arrow(column, 1)
    return _packed(column, kind)


_SECONDS_IN = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _rounded_arrow(column: Any, times: int) -> Any:
    return pc.round(pc.multiply(column, float(times)))


def _in_pandas(column: Any, kind: str) -> Any:
    """Return a column of pandas with a type; as it is where the type cannot hold its gaps."""
    if kind.startswith(_ARROW):
        return _as_pandas(_in_arrow(pa.chunked_array([pa.array(column, from_pandas=True)]), kind), column)
    if kind.startswith("category["):
        categories, ordered = json.loads(kind.removeprefix("category"))
        cells = column.map({word_of(word): word for word in categories})
        return cells.astype("category").cat.set_categories(categories, ordered=ordered)
    if kind.startswith("object"):
        return _objects_of_pandas(column, kind.removeprefix("object:"))
    if kind.startswith("timedelta"):
        return _durations_of_pandas(column).astype(kind)
    if kind.startswith("period["):
        return column.dt.to_period(kind[len("period[") : -1])
    if _WHOLE.match(kind) and column.dtype.kind == "f":
        column = column.round()
        if column.isna().any() and kind == kind.lower():  # NumPy has no whole numbers with gaps
            kind = kind.replace("int", "Int").replace("uI", "UI")
    with suppress(ValueError, TypeError):
        return column.astype(kind)
    return column


def _durations_of_pandas(column: Any) -> Any:
    import pandas

    return pandas.to_timedelta(column, unit="s").dt.round("us")


def _objects_of_pandas(column: Any, kind: str) -> Any:
    """Return a column of pandas as objects of the type of its first cell, such as dates; others as they are."""
    name, _, places = kind.partition(":")
    if name == "Decimal":
        step = Decimal(1).scaleb(-int(places))
        cells = [None if is_missing(cell) else Decimal(repr(cell)).quantize(step) for cell in column]
    elif name == "timedelta":
        cells = [None if is_missing(cell) else cell.to_pytimedelta() for cell in _durations_of_pandas(column)]
    elif name in ("date", "time", "datetime") and column.dtype.kind == "M":
        times = [None if is_missing(cell) else cell.to_pydatetime() for cell in column]
        cells = times if name == "datetime" else [cell and getattr(cell, name)() for cell in times]
    else:
        return column if column.dtype.kind in "fM" else column.astype(object)
    return type(column)(cells, index=column.index, name=column.name, dtype=object)


def _in_polars(column: Any, kind: str) -> Any:
    """Return a column of polars with a type; as it is if the text says none that is known."""
    import polars

    name, _, more = kind.partition("(")
    if column.dtype.is_float():
        column = column.fill_nan(None)
    unit = next(iter(re.findall(r"time_unit='(\w+)'", more)), "us")
    if name == "Duration":
        return (column * _SECONDS_IN[unit]).round().cast(polars.Int64).cast(polars.Duration(cast(Any, unit)))
    if name == "Datetime":
        zone = next(iter(re.findall(r"time_zone='([^']+)'", more)), None)
        if zone is not None and column.dtype == polars.Object:
            column = polars.Series(column.name, column.to_list(), polars.Datetime("us", zone))
        return column.cast(polars.Datetime(cast(Any, unit), zone))
    if kind.startswith("Enum["):
        return column.cast(polars.Enum(json.loads(kind.removeprefix("Enum"))))
    if name == "Decimal":
        precision, scale = (int(number) for number in re.findall(r"\d+", more)[:2])
        return column.round(scale).cast(polars.Decimal(precision, scale))
    whole = _WHOLE.match(kind) is not None
    known = getattr(polars, name, None)
    if known is None or name in ("Object", "Null", "Unknown", "Binary"):
        return column
    return (column.round() if whole and column.dtype.is_float() else column).cast(known)
