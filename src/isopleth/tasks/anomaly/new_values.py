r"""Evidence of values that no other row of a clean reference holds, and of numbers outside the range of the others.

A code of 17 between 16 and 18 is near for distances and trees, also where no reference row has it. How often a new row holds a
value that n rows do not hold is the share of these rows whose value occurs once (Good 1953): nearly 1 where numbers are measured,
which then says nothing, and 0 in columns of codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.rows import rounding_of
from isopleth.tasks.anomaly.training_table import NEW, TrainingTable


@dataclass(frozen=True)
class ColumnValues:
    """Values of a column, and by how many rows, or groups of rows, each is held."""

    values: np.ndarray  # (k,): distinct known values, rising
    counts: np.ndarray  # (k,)
    place: np.ndarray  # (m,): index of the value of each distinct training row, NEW for gaps
    ends: np.ndarray  # (2, 2): least value and the least without the group that holds it; the same of the greatest
    holders: np.ndarray  # (2,): these groups
    word: bool  # values are codes, which have no range
    near: float  # numbers that differ by less are equal

    @classmethod
    def of(cls, column: np.ndarray, copies: np.ndarray, groups: np.ndarray, word: bool) -> Self:
        """Count the values of distinct rows that occur `copies` times; a group holds each of its values once."""
        known = np.flatnonzero(~np.isnan(column))
        x, copies, groups = column[known], copies[known], groups[known]
        place = np.full(len(column), NEW)
        values, inverse = np.unique(x, return_inverse=True)
        place[known] = inverse.ravel()
        held, first = np.unique(np.column_stack([place[known], groups]), axis=0, return_index=True)
        counts = np.bincount(held[:, 0], copies[first], len(values))
        ends, holders = np.zeros((2, 2)), np.full(2, NEW)
        for i, sign in enumerate((1.0, -1.0) if len(x) else ()):
            extreme = int(np.argmin(sign * x))
            others = x[groups != groups[extreme]]
            alone = copies[extreme] == 1.0 and len(others)
            ends[i] = x[extreme], sign * (sign * others).min() if alone else x[extreme]
            holders[i] = groups[extreme]
        return cls(values, counts, place, ends, holders, word, float(rounding_of(values)) if len(values) else 0.0)

    def terms(self, x: np.ndarray, known: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the evidence of values outside the range of the rows of other groups, and of unseen values; 0 for gaps."""
        if not len(self.values):
            return np.zeros(x.shape), np.zeros(x.shape)
        own = np.where(known == NEW, NEW, self.place[known])
        others = self.counts.sum() - (own != NEW)
        lonely = (own != NEW) & (self.counts[own] == 1.0)  # held by the judged row only
        below = np.clip(np.searchsorted(self.values, x) - 1, 0, len(self.values) - 1)
        above = np.minimum(below + 1, len(self.values) - 1)
        away = np.full(x.shape, np.inf)  # from the nearest value of another row
        for at in (below, above):
            away = np.minimum(away, np.where(lonely & (at == own), np.inf, np.abs(x - self.values[at])))
        outside, apart = np.zeros(x.shape), _beyond(away, self.near)
        if not self.word:
            low, high = (np.where(group == g, *end[::-1]) for g, end in zip(self.holders, self.ends, strict=True))
            outside = _beyond(np.maximum(low - x, x - high), self.near)
        single = float((self.counts == 1.0).sum()) - lonely + ((own != NEW) & (self.counts[own] == 2.0))
        unseen = np.log((others + 1.0) / (single + 1.0)) * np.maximum(apart - outside, 0.0)
        gap = np.isnan(x)
        return np.where(gap, 0.0, np.log(others + 1.0) * outside), np.where(gap, 0.0, unseen)


def _beyond(away: np.ndarray, near: float) -> np.ndarray:
    """Return 1 from twice the rounding error on, 0 up to it, and shares between, so that no digit decides."""
    if near == 0.0:
        return np.asarray(away > 0.0, dtype=np.float64)
    return np.clip(away / near - 1.0, 0.0, 1.0)


@dataclass(frozen=True)
class NewValues:
    r"""The sum of :math:`\log(n + 1)` over the numbers outside the range of the n other rows, and the largest unseen cell.

    An unseen value adds :math:`\log((n + 1)/(s + 1))`, where s rows hold a value that no other row holds. Of several the largest
    counts: in tables of counts most ordinary rows have some.
    """

    columns: list[ColumnValues]
    groups: np.ndarray  # (m,): group of each distinct training row
    without: int  # number of the training row without which new rows are judged, as training rows are without themselves; or NEW

    @classmethod
    def of(cls, table: TrainingTable, without: int = NEW) -> Self:
        """Count the values of the training rows."""
        numeric = table.categories.n_numeric
        groups = np.arange(len(table.rows)) if table.groups is None else table.groups
        columns = [ColumnValues.of(x, table.copies, groups, j >= numeric) for j, x in enumerate(table.rows.T)]
        return cls(columns, groups, without)

    def evidence(self, rows: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the evidence of rows, which may have gaps; `known` are numbers of training rows that do not count, or NEW."""
        known = np.where(known == NEW, self.without, known)
        group = np.where(known == NEW, NEW, self.groups[known])
        total, most = np.zeros(len(rows)), np.zeros(len(rows))
        for column, x in zip(self.columns, rows.T, strict=True):
            outside, unseen = column.terms(x, known, group)
            total += outside
            most = np.maximum(most, unseen)
        return total + most
