"""Times of the steps of a series: a column or index of its frame, or given beside it."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import narwhals as nw
import numpy as np

from isopleth.backend import to_numpy
from isopleth.errors import InputError, listed
from isopleth.results.result import frame_library
from isopleth.tables.cells import as_frame, in_memory, is_missing, with_columns
from isopleth.tables.clock_times import as_datetime


def split_times(series: Any, times: Any) -> tuple[Any, np.ndarray | None]:
    """Return a series without its column of times, and the times.

    By default the times are the only column of times of a frame, or its index if that holds times.
    """
    if not hasattr(series, "__len__"):
        series = in_memory(series)
    frame = None if frame_library(series) is None else as_frame(series)
    if isinstance(times, str):
        if frame is None or times not in frame.columns:
            there = "it is no data frame" if frame is None else f"it has {listed(list(map(str, frame.columns)))}"
            raise InputError(f"series has no column {times!r} (times); {there}.")
        return _taken(series, frame, times)
    if times is None and frame is not None:
        found = [name for name in frame.columns if frame.get_column(name).dtype in (nw.Date, nw.Datetime)]
        if len(found) > 1:
            raise InputError(
                f"series has several columns of times, {listed(list(map(str, found)))}; name that of the steps with times, and "
                "leave the others out."
            )
        if found:
            return _taken(series, frame, found[0])
    if times is None:
        index = getattr(series, "index", None)
        if type(index).__name__ != "DatetimeIndex":
            return series, None
        times = index
    cells = np.asarray(times if isinstance(times, (list, tuple)) else to_numpy(times))
    if cells.shape != (len(series),):
        raise InputError(f"times has the shape {cells.shape}; expected ({len(series)},), a time for each step.")
    return series, ascending_times(cells, "times")


def _taken(series: Any, frame: Any, name: str) -> tuple[Any, np.ndarray]:
    rest = [column for column in frame.columns if column != name]
    if not rest:
        raise InputError(f"series has no column but {name!r}, which holds its times; add the values.")
    cells = np.asarray(frame.get_column(name).to_numpy())
    return with_columns(frame.to_native(), rest), ascending_times(cells, f"column {name!r}")


def ascending_times(cells: np.ndarray, name: str) -> np.ndarray:
    """Return times if each is later than the one before. Times without a zone are taken as UTC."""
    missing = _missing(cells)
    if missing.any():
        row = int(missing.argmax())
        raise InputError(f"{name} has no time in {{row}}", row=row, hint="fill it in, or leave the times out")
    moments = _moments(cells, name)
    late = np.flatnonzero(moments[1:] <= moments[:-1])
    shown = cells.astype("datetime64[us]") if cells.dtype.kind == "M" else cells
    if len(late):
        row = int(late[0]) + 1
        raise InputError(
            f"{name} does not ascend: {shown[row]} in {{row}} is not later than {shown[row - 1]} before it",
            row=row,
            value=shown[row],
            hint="sort the rows by time, keep one row for each time, or leave the times out",
        )
    return shown


def _missing(cells: np.ndarray) -> np.ndarray:
    if cells.dtype.kind == "M":
        return np.isnat(cells)
    if cells.dtype.kind == "O":
        return np.array([is_missing(cell) for cell in cells], dtype=bool)
    return np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(len(cells), dtype=bool)


def _moments(cells: np.ndarray, name: str) -> np.ndarray:
    """Return numbers that have the order of the times."""
    if cells.dtype.kind == "M":
        return cells.astype(np.int64)
    if cells.dtype.kind in "iuf":
        return cells
    return np.array([_moment(cell, row, name) for row, cell in enumerate(cells.tolist())])


def _moment(cell: Any, row: int, name: str) -> float:
    try:
        moment = as_datetime(cell)
        if moment is None:
            return float(cell)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError):
        text = f"{name} holds {{value}} in {{row}}; expected a time such as 2024-01-31 12:00."
        raise InputError(text, row=row, value=cell) from None
