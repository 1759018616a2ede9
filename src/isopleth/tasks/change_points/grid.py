"""Regular grid of the times of a series: steps without a row become gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.tables.clock_times import axis_of, length_text

# Largest distance of a time difference from a whole number of steps, in steps: months and quarters are of unequal length, and
# clocks are not exact. Times are uneven if more than a small share of the differences are farther from one.
_OFF, _UNEVEN_SHARE = 0.25, 0.05
# Largest share of steps without a row. On working days 2 of 7 days have none: then rows are the steps.
_MOST_MISSING = 0.25


@dataclass(frozen=True, eq=False)
class Grid:
    """Steps of equal length on which the rows of a series stand."""

    rows: np.ndarray  # (T,), int: step of each row, from 0, ascending
    note: str  # sentence on what the times are, empty if each step has a row

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return the values at all steps, NaN where there is no row."""
        out = np.full((self.rows[-1] + 1, values.shape[1]), np.nan)
        out[self.rows] = values
        return out

    def first_rows(self, steps: np.ndarray) -> np.ndarray:
        """Return the first rows that are not before these steps."""
        return np.searchsorted(self.rows, steps)


def grid_of(times: np.ndarray | None, count: int) -> Grid:
    """Return the grid of ascending times, or that of `count` rows one step apart if they have none or uneven ones."""
    each = np.arange(count)
    if times is None or count < 3:
        return Grid(each, "")
    seconds, dates = axis_of(times)
    apart = np.diff(seconds)
    middle = float(np.median(apart))
    step = float(np.mean(apart[np.abs(apart - middle) <= _OFF * middle]))
    steps = np.maximum(np.round(apart / step), 1.0)
    missing = steps.sum() - len(steps)
    uneven = np.mean(np.abs(apart / step - steps) > _OFF) > _UNEVEN_SHARE

    def length(value: float) -> str:
        return length_text(value) if dates else f"{value:.6g}"

    if uneven or missing > _MOST_MISSING * (steps.sum() + 1.0):
        shortest, longest = length(float(apart.min())), length(float(apart.max()))
        return Grid(
            each,
            f"The times are uneven, {shortest} to {longest} apart: each row is taken as one step, and all steps as equally long.",
        )
    if not missing:
        return Grid(each, "")
    places = np.concatenate([[0], np.cumsum(steps)]).astype(np.intp)
    told = f"{int(missing)} of {places[-1] + 1} steps of {length(middle)} have no row and are taken as gaps."
    return Grid(places, told)
