"""Columns of intervals in frames: a pair of numbers a cell, the ends between which the value is.

pandas has a type for them, IntervalDtype, of which `pandas.arrays.IntervalArray.from_arrays(lower, upper, closed="both")` makes
one of two columns. In polars and Arrow it is a struct of two numbers, `lower` and `upper`. Equal ends are a known number. An
end that is infinite or missing is unknown; with both unknown, or no pair at all, the cell is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import InputError
from isopleth.tables.amounts import amount_of
from isopleth.tables.unread import CensoredCells


def read_intervals(name: Any, column: Any) -> tuple[np.ndarray, CensoredCells | None]:
    """Return the known numbers of a column of intervals, NaN for other cells, and the cells with an interval."""
    arrow = column.to_arrow()
    arrow = pa.chunked_array([arrow]) if isinstance(arrow, pa.Array) else arrow
    lower, upper = (
        compute.struct_field(arrow, [side]).cast(pa.float64()).to_numpy(zero_copy_only=False) for side in (0, 1)
    )
    lower, upper = np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)
    lower, upper = np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
    wrong = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if wrong.any():
        row = int(wrong.argmax())
        text = "{column} holds an interval from {value} in {row}; expected a lower end that is not above the upper one."
        raise InputError(text, column=name, row=row, value=f"{lower[row]:g} to {upper[row]:g}")
    known = lower == upper
    rows = np.flatnonzero(~known & ~(np.isinf(lower) & np.isinf(upper)))
    values = np.where(known, lower, np.nan)
    if not len(rows):
        return values, None
    texts = tuple(interval_text(low, high) for low, high in zip(lower[rows], upper[rows], strict=True))
    return values, CensoredCells(rows, texts, lower[rows], upper[rows], declared=True)


def stretch_text(low: float, high: float) -> str:
    """Return where values are, in words: below 0.5, above 240, from 0.5 to 1."""
    if np.isinf(low):
        return f"below {high:.12g}"
    return f"above {low:.12g}" if np.isinf(high) else f"from {low:.12g} to {high:.12g}"


def with_numbers(native: Any, column: Any, rows: np.ndarray, numbers: np.ndarray) -> Any:
    """Return a column of intervals with numbers in some rows: a column of numbers if no interval is left, pairs otherwise."""
    values, limits = read_intervals("", column)
    values[rows] = numbers
    left = np.empty(0, dtype=np.intp) if limits is None else np.setdiff1d(limits.rows, rows)
    lower, upper = values.copy(), values.copy()
    if limits is not None:
        kept = np.isin(limits.rows, left)
        lower[left], upper[left] = limits.lower[kept], limits.upper[kept]
    if hasattr(native, "iloc"):
        import pandas

        cells = values if not len(left) else pandas.arrays.IntervalArray.from_arrays(lower, upper, closed="both")
        return pandas.Series(cells, index=native.index, name=native.name)
    missing = np.isnan(upper)
    ends = [pa.array(end, pa.float64(), mask=missing) for end in (lower, upper)]
    arrow = ends[0] if not len(left) else pa.StructArray.from_arrays(ends, names=["lower", "upper"])
    if isinstance(native, pa.ChunkedArray):
        return pa.chunked_array([arrow])
    return type(native)(native.name, arrow)


def given_interval(value: Any) -> tuple[float, float] | None:
    """Return the interval that a given value says: text such as <0.5, or an interval of pandas; None for other values."""
    if isinstance(value, str):
        amount = amount_of(value.strip())
        if amount is None or not amount.side:
            return None
        return (-np.inf, amount.value) if amount.side == "below" else (amount.value, np.inf)
    if hasattr(value, "left") and hasattr(value, "right") and value.left < value.right:
        return float(value.left), float(value.right)
    return None


def interval_text(low: float, high: float) -> str:
    """Return an interval as people write it: <0.5, >240, 0.5 to 1."""
    if np.isinf(low):
        return f"<{high:.12g}"
    return f">{low:.12g}" if np.isinf(high) else f"{low:.12g} to {high:.12g}"
