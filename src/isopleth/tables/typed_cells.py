"""Cells in the types of a table: filled cells among known ones, and new rows in the types of other rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any, cast

import narwhals as nw
import numpy as np
import pyarrow as pa

from isopleth.tables import arrow_columns, pandas_columns, polars_columns
from isopleth.tables.cells import TRUTH, is_missing, word_of
from isopleth.tables.coded_cells import decode_cells
from isopleth.tables.forms import form_of
from isopleth.tables.given import Given
from isopleth.tables.intervals import with_numbers
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema
from isopleth.tables.usual_types import holds_intervals

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
    library, written = _library(X), {}
    for j, column in enumerate(columns.columns):
        rows = np.flatnonzero(gaps[:, j])
        if not len(rows):
            continue
        name = column.name if columns.named else frame.columns[int(column.name)]  # a frame of complete numbers
        old, native = frame.get_column(name), X[name]
        if holds_intervals(old.dtype):
            written[name] = with_numbers(native, old, rows, filled[rows, j])
        else:
            kind = str(getattr(native, "dtype", getattr(native, "type", "")))
            others = _typical(column, old)
            if others is None:
                cells = _new_cells(column, filled[:, j], gaps[:, j], old.to_list(), kind)
            else:
                new, gone = filled[rows, j], np.arange(len(rows) + len(others)) < len(rows)
                values = np.append(new, np.full(len(others), np.nan))
                cells = _new_cells(column, values, gone, [None] * len(rows) + others, kind)
            written[name] = library.with_cells(native, rows, cells)
    return library.with_columns(X, written)


def _typical(column: Column, cells: nw.Series) -> list[Any] | None:
    """Return known cells that say how new ones of a column are written, fewer than all of them; None if its type does not."""
    if cells.dtype.is_numeric() or cells.dtype in (nw.Boolean, nw.Duration):
        return cells.drop_nulls().head(1).to_list()
    if column.kind == "categorical" and cells.dtype in (nw.String, nw.Categorical, nw.Enum) and column.levels != TRUTH:
        return [cell for cell in cells.unique(maintain_order=True).to_list() if not is_missing(cell)]
    return None


def _library(frame: Any) -> ModuleType:
    """Return the module of columns of the library of a frame."""
    if isinstance(frame, pa.Table):
        return arrow_columns
    return pandas_columns if hasattr(frame, "iloc") else polars_columns


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
    if isinstance(like, timedelta | np.timedelta64):
        unit = _UNIT.search(kind)
        step = _SECONDS[unit[1]] if unit else 1e-6
        length = timedelta(seconds=round(value / step) * step)
        return length if isinstance(like, timedelta) else np.timedelta64(length, "us")
    if whole:
        return _whole(value, kind)
    if isinstance(like, Decimal):
        return round(Decimal(value), max(0, -cast(int, like.as_tuple().exponent)))
    return value


def _whole(value: float, kind: str) -> int:
    """Return a whole number that its type can hold."""
    held = _WHOLE.match(kind)
    if held is None:
        return round(value)
    bits = int(held[2]) - (not held[1])
    return min(max(round(value), 0 if held[1] else -(2**bits)), 2**bits - 1)


def _is_whole_day(cell: Any) -> bool:
    """Tell whether a cell is a date, or a time without a zone at midnight."""
    if isinstance(cell, datetime):
        return cell.tzinfo is None and cell.time() == time() and not getattr(cell, "nanosecond", 0)
    return isinstance(cell, date)


def _time(seconds: float, like: Any) -> Any:
    """Return seconds since 1970 as the type of another cell of its column."""
    moment = _EPOCH + timedelta(seconds=float(seconds))
    zone = getattr(like, "tzinfo", None) if isinstance(like, datetime) else None
    moment = moment.astimezone(zone) if zone is not None else moment.replace(tzinfo=None)
    return next(said(moment) for kind, said in _CLOCKS if isinstance(like, kind))


# Parts of a time that cells of a type hold; a datetime is a date, too.
_CLOCKS: tuple[tuple[type, Callable[[datetime], Any]], ...] = (
    (datetime, lambda moment: moment),
    (date, datetime.date),
    (time, datetime.time),
    (object, lambda moment: np.datetime64(moment, "us")),
)


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
    return {str(name): _library(native).type_of(native, name) for name in frame.columns}


def in_types(frame: Any, types: dict[str, str]) -> Any:
    """Return a frame of numbers, words and times with the types of other rows, where these can hold its gaps."""
    return _library(frame).in_types(frame, types)


def is_whole(kind: str) -> bool:
    """Tell whether a type holds whole numbers."""
    if kind.startswith(arrow_columns.PREFIX):
        return bool(pa.types.is_integer(arrow_columns.type_of_text(kind)))
    return _WHOLE.match(kind) is not None or kind == "object:int"


def is_length_of_time(kind: str) -> bool:
    """Tell whether a type holds durations."""
    if kind.startswith(arrow_columns.PREFIX):
        return bool(pa.types.is_duration(arrow_columns.type_of_text(kind)))
    return kind.startswith(("timedelta", "Duration", "object:timedelta"))
