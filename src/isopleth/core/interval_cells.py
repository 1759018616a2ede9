"""Cells of which an interval is known, such as those below a limit of detection.

Every cell of a column of numbers is an interval: a number x is [x, x], a missing cell the whole line, and a cell that says
``<0.5`` or ``>240`` a half-line. This is the one representation that all packages read:

- The schema keeps which limits a column had at fit (``Column.limits``). A column of intervals in Python (``IntervalDtype`` of
  pandas, or a struct of ``lower`` and ``upper``) and the text of a file give the same cells (``tables/intervals.py``).
- ``enter`` returns rows with NaN in each cell that is not a number, and in ``CheckedRows.limits`` the :class:`IntervalCells`:
  those of them of which an end is known. What reads only the rows sees a gap, which is true but says less than is known.
- The package whose law it is integrates. The law of a column takes F(upper) - F(lower) as the likelihood of the cell, and is cut
  off at the interval to fill it (``conditional``); a joint density is integrated along it (``density/interval_sums.py``).
- Where a point is needed, as a centre of a kernel or an input of a tree, `core/interval_laws.py` gives quantiles or the mean
  of a law that was fitted by the same likelihood, within the interval.
- Comparisons merge what cannot be told apart (:func:`coarsened`): values that a limit hides are equal in all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

_FEW = 0.05  # largest share of the cells of a column whose wide limits do not decide for the others


@dataclass(frozen=True, eq=False)
class IntervalCells:
    """Intervals of cells in some columns of encoded rows; NaN in the place of cells that are known or missing."""

    columns: np.ndarray  # (k,): places of the columns, ascending
    lower: np.ndarray  # (n, k): minus infinity where there is no lower limit
    upper: np.ndarray  # (n, k)

    @classmethod
    def none(cls, n: int) -> Self:
        """Return no intervals in n rows."""
        return cls(np.empty(0, dtype=np.intp), np.empty((n, 0)), np.empty((n, 0)))

    def __len__(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.upper)))

    @property
    def mask(self) -> np.ndarray:
        """Mask, (n, k), of the cells with an interval."""
        return ~np.isnan(self.upper)

    @property
    def rows(self) -> np.ndarray:
        """Rows that hold an interval, in ascending order."""
        return np.flatnonzero(self.mask.any(axis=1))

    def take(self, rows: np.ndarray) -> Self:
        """Return the intervals of some rows, by their numbers or a mask."""
        return type(self)(self.columns, self.lower[rows], self.upper[rows])

    def select(self, columns: Sequence[int] | np.ndarray) -> Self:
        """Return the intervals of some columns, which are numbered anew in this order."""
        place = {int(j): k for k, j in enumerate(self.columns)}
        found = [(new, place[int(j)]) for new, j in enumerate(columns) if int(j) in place]
        new, old = np.array(found, dtype=np.intp).reshape(-1, 2).T
        return type(self)(new, self.lower[:, old], self.upper[:, old])

    def without_cells(self, mask: np.ndarray) -> Self:
        """Return the intervals without those of a mask, (n, k), whose cells are missing then."""
        return type(self)(self.columns, np.where(mask, np.nan, self.lower), np.where(mask, np.nan, self.upper))

    def without(self, column: int, width: int) -> Self:
        """Return the intervals of the other ones of `width` columns."""
        return self.select(np.delete(np.arange(width), column))

    def of(self, column: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows of one column whose cell is an interval, and both ends of each."""
        k = np.flatnonzero(self.columns == column)
        if not len(k):
            return np.empty(0, dtype=np.intp), np.empty(0), np.empty(0)
        rows = np.flatnonzero(self.mask[:, k[0]])
        return rows, self.lower[rows, k[0]], self.upper[rows, k[0]]

    def column(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return both ends of the intervals of one column, (n,); NaN where the cell is none."""
        k = np.flatnonzero(self.columns == column)
        if not len(k):
            return np.full(len(self.upper), np.nan), np.full(len(self.upper), np.nan)
        return self.lower[:, k[0]], self.upper[:, k[0]]

    def ends(self, cells: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return both ends of all cells of one column: known ones are points, missing ones NaN."""
        low, high = cells.copy(), cells.copy()
        rows, lower, upper = self.of(column)
        low[rows], high[rows] = lower, upper
        return low, high

    def below(self, other: IntervalCells) -> IntervalCells:
        """Return the intervals of these rows and of others below them, which have the same columns."""
        columns = np.union1d(self.columns, other.columns).astype(np.intp)
        n, m = len(self.upper), len(other.upper)
        ends = np.full((2, n + m, len(columns)), np.nan)
        for part, rows in ((self, slice(0, n)), (other, slice(n, n + m))):
            at = np.searchsorted(columns, part.columns)
            ends[0, rows, at], ends[1, rows, at] = part.lower.T, part.upper.T
        return IntervalCells(columns, ends[0], ends[1])


@dataclass(frozen=True, eq=False)
class Coarsening:
    """Stretches of a column in which not all rows tell values apart, and the value that stands for each."""

    lower: np.ndarray  # (s,): ascending
    upper: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, lower: np.ndarray, upper: np.ndarray) -> Self:
        """Join overlapping intervals. A stretch without a lower end has its upper end as its value, and so on."""
        order = np.lexsort([upper, lower])
        low, high = lower[order], np.maximum.accumulate(upper[order])
        first = np.concatenate([[True], low[1:] >= high[:-1]]) if len(low) else np.empty(0, dtype=bool)
        starts = np.flatnonzero(first)
        low, high = low[starts], high[np.append(starts[1:], len(high)) - 1] if len(starts) else high[:0]
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (low + high)
        value = np.where(np.isfinite(middle), middle, np.where(np.isfinite(high), high, low))
        return cls(low, high, value)

    def holds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Return the stretch that holds each whole interval; -1 for none."""
        place = np.searchsorted(self.lower, lower, side="right") - 1
        inside = (place >= 0) & (upper <= self.upper[np.maximum(place, 0)]) if len(self.lower) else place >= 0
        return np.where(inside, place, -1)

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return known cells with those inside a stretch at its value; NaN stays."""
        out = cells.copy()
        for low, high, value in zip(self.lower, self.upper, self.value, strict=True):
            out[(cells > low) & (cells < high)] = value
        return out


def hides_most(rows: np.ndarray, limits: IntervalCells) -> np.ndarray:
    """Return a mask, (n, k), of the intervals that hold more than half of the known numbers of their column."""
    out = np.zeros(limits.upper.shape, dtype=bool)
    for k, j in enumerate(limits.columns.tolist()):
        known = np.sort(rows[~np.isnan(rows[:, j]), j])
        with np.errstate(invalid="ignore"):
            inside = np.searchsorted(known, limits.upper[:, k], side="left")
            inside = inside - np.searchsorted(known, limits.lower[:, k], side="right")
        out[:, k] = limits.mask[:, k] & (2 * inside > len(known))
    return out


def rare_wide_intervals(rows: np.ndarray, limits: IntervalCells) -> np.ndarray:
    """Return a mask, (n, k), of such intervals in columns where they are at most one cell in twenty, as of diluted samples."""
    wide = hides_most(rows, limits)
    cells = (~np.isnan(rows[:, limits.columns]) | limits.mask).sum(axis=0)
    return wide & (wide.sum(axis=0) <= _FEW * cells)


def drawn_inside(
    rows: np.ndarray, complete: np.ndarray, limits: IntervalCells, mask: np.ndarray
) -> tuple[np.ndarray, dict[int, int]]:
    """Return complete rows with numbers of the column in the place of some intervals, and how many by column.

    The numbers are those of other rows inside the interval, at even steps, in the order of the rows' other cells: where a row
    stands, and in which of two samples, makes no difference.
    """
    out, count = complete.copy(), {}
    for k, j in enumerate(limits.columns.tolist()):
        where = np.flatnonzero(mask[:, k])
        if not len(where):
            continue
        others = np.delete(rows[where], j, axis=1)
        _, place, sizes = np.unique(np.nan_to_num(others, nan=np.inf), axis=0, return_inverse=True, return_counts=True)
        level = ((np.cumsum(sizes) - 0.5 * sizes) / len(where))[place.ravel()]  # rows with equal cells get one number
        known = np.sort(complete[~np.isnan(complete[:, j]), j])
        first = np.searchsorted(known, limits.lower[where, k], side="right")
        last = np.searchsorted(known, limits.upper[where, k], side="left")
        out[where, j] = known[np.minimum(first + (level * (last - first)).astype(np.intp), last - 1)]
        count[j] = len(where)
    return out, count


def coarsened(rows: np.ndarray, limits: IntervalCells) -> tuple[np.ndarray, dict[int, Coarsening]]:
    """Return rows in which values are equal that some row does not tell apart, and the stretches by column.

    A function of the true value alone, the same for all rows: rows that are exchangeable stay so, whatever the limits of each.
    """
    out, found = rows.copy(), {}
    for j in limits.columns.tolist():
        where, lower, upper = limits.of(j)
        if len(where):
            found[j] = Coarsening.of(lower, upper)
            out[:, j] = found[j](rows[:, j])
            out[where, j] = found[j].value[found[j].holds(lower, upper)]
    return out, found


def coarsened_as(
    rows: np.ndarray, limits: IntervalCells, known: dict[int, Coarsening]
) -> tuple[np.ndarray, np.ndarray]:
    """Return other rows in the stretches of :func:`coarsened`, and a mask of cells that cannot be placed: they stay NaN."""
    out, lost = rows.copy(), np.zeros(rows.shape, dtype=bool)
    for j, stretches in known.items():
        out[:, j] = stretches(rows[:, j])
    for j in limits.columns.tolist():
        where, lower, upper = limits.of(j)
        place = known[j].holds(lower, upper) if j in known else np.full(len(where), -1)
        out[where[place >= 0], j] = known[j].value[place[place >= 0]] if j in known else np.nan
        lost[where[place < 0], j] = True
    return out, lost
