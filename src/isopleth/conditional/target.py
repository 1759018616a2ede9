"""The cells whose law is asked for, as numbers, and answers as cells."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from isopleth.core.arrays import is_foreign
from isopleth.core.errors import InputError
from isopleth.core.parameters import on_host
from isopleth.core.steps import TIME_STEPS, USUAL_STEPS, recorded_step
from isopleth.tables.cells import MISSING_WORDS, TRUTH, Cells, TextRule
from isopleth.tables.coded_cells import decode_cells
from isopleth.tables.kinds import Column, KindRule
from isopleth.tables.numerals import Numerals
from isopleth.tables.usual_types import in_usual_types


def target_cells(y: Any, n: int | None = None) -> Cells:
    """Read the target: a series of any library, an array or a list; `n` is the number of values that is expected.

    Raises
    ------
    InputError
        If it has another shape, or a value is missing or infinite.
    """
    if y is None:  # the words are those that scikit-learn's checks look for
        raise InputError("this estimator requires y to be passed, but the target y is None.", parameter="y")
    if is_foreign(y):
        y = on_host(y, "y")
    if type(getattr(y, "dtype", None)).__name__ == "IntervalDtype" and hasattr(y, "to_frame"):
        y = in_usual_types(y.to_frame("y"))["y"]
    series = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        cells = Cells.of("y", series, TextRule(MISSING_WORDS, Numerals()))
    else:
        column = _column(y)
        cells = Cells.of_array("y", column, MISSING_WORDS)
    if n is not None and len(cells.values) != n:
        raise InputError(
            f"{{parameter}} has {len(cells.values)} values for {n} rows of X; expected one a row.", parameter="y"
        )
    lost = cells.values < 0 if cells.form == "text" else ~np.isfinite(cells.values)
    if cells.censored is not None:
        lost[cells.censored.rows] = False
    if lost.any():
        raise InputError(
            "Input {parameter} contains NaN, infinity or an empty cell in {row}",
            parameter="y",
            row=int(lost.argmax()),
            hint="leave out the rows whose target is unknown",
        )
    return cells


def _column(y: Any) -> np.ndarray:
    """Return values of an array or list with one axis."""
    column = np.asarray(y)
    if column.dtype.kind in "US" and not isinstance(y, np.ndarray):
        column = np.asarray(y, dtype=object)  # a list that mixes words and numbers
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(f"{{parameter}} has shape {column.shape}; expected one value a row.", parameter="y")
    if column.dtype.kind == "c":
        raise InputError("Complex data not supported: {parameter} has complex numbers.", parameter="y")
    return column


def target_column(cells: Cells) -> Column:
    """Decide whether the target is a number, a word or a time."""
    found = KindRule(None, True, True)(cells, [])
    if isinstance(found, Column):
        return found
    found = KindRule("categorical", True, True)(cells, [])
    assert isinstance(found, Column)
    return found


def target_ends(cells: Cells, column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of the target: :func:`encoded_target`, and intervals where cells say limits."""
    low = encoded_target(cells, column)
    if cells.censored is None or column.kind != "numeric":
        return low, low
    low, high = low.copy(), low.copy()
    low[cells.censored.rows], high[cells.censored.rows] = cells.censored.lower, cells.censored.upper
    return low, high


def encoded_target(cells: Cells, column: Column) -> np.ndarray:
    """Return numbers, seconds since the origin, or codes of words; the number of words for one that no row of the fit has."""
    if column.kind == "categorical":
        return cells.codes(column.levels).astype(np.float64)
    return cells.times(column.zone) - column.origin if column.kind == "time" else cells.numbers()


def classes(column: Column) -> np.ndarray:
    """Return the words of the target in the order of codes, truth values as such."""
    if column.levels == TRUTH:
        return np.array([False, True])
    return np.array(column.levels, dtype=object)


def decoded_target(column: Column, values: np.ndarray) -> np.ndarray:
    """Return numbers as they are, and times as such, for arrays of any shape."""
    if column.kind != "time":
        return values
    flat = decode_cells(column, np.rint(values.ravel() + column.origin) - column.origin)
    return np.asarray(flat).reshape(values.shape)


def target_step(column: Column, values: np.ndarray) -> float:
    """Return the largest usual step of which all numbers or times are multiples; 0 for none."""
    times = column.kind == "time"
    if not len(values):
        return 0.0
    return recorded_step(np.unique(values + column.origin if times else values), TIME_STEPS if times else USUAL_STEPS)
