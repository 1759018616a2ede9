"""Fill missing cells of a table and leave everything else as it is: known cells, types of columns, index."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import narwhals as nw
import numpy as np

from isopleth.tables.cells import as_frame, is_missing
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema, decode_cells

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_cells(X: Any, columns: Schema, filled: np.ndarray, gaps: np.ndarray) -> Any:
    """Copy a table and write encoded cells, in the order of :attr:`Schema.columns`, with the types of its other cells."""
    frame = as_frame(X)
    if frame is None:
        out = np.array(X)
        for j, column in enumerate(columns.columns):
            rows, place = np.flatnonzero(gaps[:, j]), int(column.name)
            if len(rows):
                out[rows, place] = _cells(column, filled[rows, j], out[:, place].tolist())
        return out
    written = []
    for j, column in enumerate(columns.columns):
        rows = np.flatnonzero(gaps[:, j])
        if len(rows):
            written.append(_written(frame.get_column(column.name), column, filled[rows, j], rows))
    return frame.with_columns(*written).to_native() if written else frame.to_native()


def _written(old: Any, column: Column, values: np.ndarray, rows: np.ndarray) -> Any:
    cells = _cells(column, values, old.to_list())
    if old.implementation.is_pandas_like():  # its own types, such as Int64 with gaps, are kept by an assignment
        native = old.to_native().copy()
        native.iloc[rows] = type(native)(cells, dtype=native.dtype).array
        return nw.from_native(native, series_only=True)
    new = nw.new_series(cast(str, column.name), cells, old.dtype, backend=old.implementation)
    return old.scatter(rows.tolist(), new)


def _cells(column: Column, values: np.ndarray, others: list[Any]) -> list[Any]:
    """Decode values to cells of the type of the other cells of the column."""
    known = [cell for cell in others if not is_missing(cell) and cell != ""]
    like = known[0] if known else None
    if (
        column.kind == "categorical" and len(set(map(type, known))) > 1
    ):  # each word is written as the cell that it was read from
        cells = {str(cell): cell for cell in known}
        return [cells.get(word, word) for word in decode_cells(column, values, "")]
    if column.kind == "categorical":
        return list(decode_cells(column, values, like))
    if column.kind == "time":
        return [_time(value + column.origin, like) for value in values]
    whole = isinstance(like, int) and all(isinstance(cell, int) for cell in known)
    return [_number(value, like, whole) for value in values.tolist()]


def _number(value: float, like: Any, whole: bool) -> Any:
    if isinstance(like, timedelta):
        return timedelta(seconds=value)
    if isinstance(like, np.timedelta64):
        return np.timedelta64(round(value * 1e6), "us")
    if isinstance(like, Decimal):
        return round(Decimal(value), max(0, -cast(int, like.as_tuple().exponent)))
    if isinstance(like, str):
        return repr(value)
    return round(value) if whole else value


def _time(seconds: float, like: Any) -> Any:
    moment = _EPOCH + timedelta(seconds=float(seconds))
    if isinstance(like, datetime):
        return moment.astimezone(like.tzinfo) if like.tzinfo else moment.replace(tzinfo=None)
    if isinstance(like, date):
        return moment.date()
    if isinstance(like, time):
        return moment.time()
    if isinstance(like, str):
        return moment.replace(tzinfo=None).isoformat(sep=" ")
    return np.datetime64(moment.replace(tzinfo=None), "us")
