"""Training rows for all kinds of evidence: distinct rows, weights, an index, distances, and columns that are constant at fit.

Columns of numbers come first, in the frame of the model and NaN where a cell is missing; codes of categories follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from scipy.spatial.distance import cdist

from isopleth.core.budget import Budget
from isopleth.core.rows import column_blocks, merge_rows, row_keys

if TYPE_CHECKING:
    from isopleth.tasks.anomaly.pooled_rule import PooledRule
    from isopleth.tasks.anomaly.reference_rule import ReferenceRule


COMMON = 16  # copies beyond which a repeated row is a common value and not one observation that was copied
NEW = -1  # number of a row that is not a training row, or is a common value among them
_GAP = -1e300  # stands for a missing cell where rows are compared; cells in the frame are smaller


def discounted(copies: np.ndarray) -> np.ndarray:
    r"""Return the weight of c copies, :math:`\max(1, c^3/(c^2 + 16^2))`: few are one observation, many a common value."""
    c = np.asarray(copies, dtype=np.float64)
    return np.maximum(1.0, c**3 / (c**2 + COMMON**2))


def weights_of(copies: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Return `discounted` copies of complete rows. Rows with gaps that agree need not be copies of one another: in full."""
    return np.where(gaps, copies, discounted(copies))


def spread_of(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return standard deviations after clipping the extreme hundredths, which one cell could decide; gaps do not count."""
    if not rows.size:
        return np.zeros(rows.shape[1])
    missing = np.isnan(rows)
    if missing.any():
        known = [~gaps for gaps in missing.T]
        return np.concatenate(
            [spread_of(x[cells, None], weights[cells]) for x, cells in zip(rows.T, known, strict=True)] or [np.empty(0)]
        )
    share = weights / weights.sum()
    winsorized = np.concatenate([_winsorized_deviations(columns, share) for columns in column_blocks(rows)])
    if (winsorized > 0.0).all():
        return winsorized
    # With weights a column may have no deviation although its distinct rows differ.
    every = np.concatenate([_deviations(columns, share) for columns in column_blocks(rows)])
    return np.where(winsorized > 0.0, winsorized, np.where(every > 0.0, every, rows.std(axis=0)))


def _winsorized_deviations(columns: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return standard deviations of columns, (d, n), after clipping the extreme hundredths; overwrites `columns`."""
    n = columns.shape[1]
    low = min(-(-n // 100), max(n - 2, 0) // 2)
    ordered, high = columns.copy(), n - 1 - low
    # Two places are found one after the other: NumPy has fast code for one.
    ordered.partition(low, axis=1)
    if low < high:  # the lower place stays as it is: where it ends up among the others depends on the processor
        inner = ordered[:, low + 1 :]
        inner.partition(high - low - 1, axis=1)
    return _deviations(np.clip(columns, ordered[:, [low]], ordered[:, [high]], out=columns), share)


def _deviations(columns: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return standard deviations of columns, (d, n), which are overwritten."""
    columns -= (columns @ share)[:, None]
    return np.asarray(np.sqrt(np.square(columns, out=columns) @ share))


@dataclass(frozen=True)
class CategoryColumns:
    r"""Categorical columns of a table: the last columns of its rows, as codes.

    Unlike categories are :math:`1/\sqrt{\sum_c p_c (1 - p_c)}` apart: a column counts like one of numbers, and rare ones are far.
    """

    n_numeric: int  # number of columns before them
    weights: list[np.ndarray]  # for each column the weight of the rows of each code

    @property
    def spread(self) -> np.ndarray:
        """Root of the variance of the indicators of each column, all together."""
        shares = [w / w.sum() for w in self.weights]
        return np.array([np.sqrt(p @ (1.0 - p)) for p in shares])

    @property
    def mismatch(self) -> np.ndarray:
        """Distance of unlike categories of each column."""
        return 1.0 / self.spread


@dataclass(frozen=True)
class RowIndex:
    """Numbers of training rows by the keys of their contents, which rise; common values are left out."""

    keys: np.ndarray
    numbers: np.ndarray

    def find(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of the training row that each row equals, or NEW."""
        found = np.full(len(rows), NEW)
        if len(self.keys):
            keys = row_keys(rows)
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            equal = self.keys[place] == keys
            found[equal] = self.numbers[place[equal]]
        return found


@dataclass(frozen=True)
class TrainingTable:
    """Distinct training rows."""

    rows: np.ndarray  # (m, d): distinct rows, in lexical order, NaN where a cell is missing
    copies: np.ndarray  # (m,): number of times each row occurs
    place: np.ndarray  # (n,): index among the distinct rows of each original row
    # (m,): `discounted` copies of complete rows. Rows with gaps that agree in the cells they have need not be copies of
    # one another, and count in full
    weights: np.ndarray
    spread: np.ndarray  # (d,): `spread_of` the columns; 1 for codes of categories
    categories: CategoryColumns  # last columns, if they are codes
    gaps: np.ndarray  # (m,): mask of the rows with missing cells
    groups: np.ndarray | None = None  # (m,): group of each; equal rows of different groups are distinct then

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        n_numeric: int | None = None,
        groups: np.ndarray | None = None,
        occurs: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> Self:
        """Merge equal rows of a group; columns after the first `n_numeric` are codes of categories.

        Each row occurs once, or as often as `occurs` says, and then has one of the `weights`.
        """
        d = rows.shape[1] if n_numeric is None else n_numeric
        missing = np.isnan(rows)
        marked = np.where(missing, _GAP, rows) if missing.any() else rows
        if groups is not None:
            marked = np.column_stack([marked, groups])
        distinct, copies, place = merge_rows(marked, np.ones(len(rows)) if occurs is None else occurs)
        if groups is not None:
            distinct, groups = distinct[:, :-1], distinct[:, -1].astype(np.intp)
        distinct[distinct == _GAP] = np.nan
        gaps = np.isnan(distinct).any(axis=1)
        weights = weights_of(copies, gaps) if weights is None else np.bincount(place, weights)
        counted = [np.bincount(codes.astype(np.intp), weights) for codes in distinct[:, d:].T]
        spread = np.append(spread_of(distinct[:, :d], weights), np.ones(len(counted)))
        return cls(distinct, copies, place, weights, spread, CategoryColumns(d, counted), gaps, groups)

    @property
    def has_gaps(self) -> bool:
        """Tell whether any cell is missing."""
        return bool(self.gaps.any())

    def filled(self, rows: np.ndarray) -> TrainingTable:
        """Return this table with other rows in place of its distinct rows: the same with their gaps filled."""
        return replace(self, rows=rows)

    def of_columns(self, keep: np.ndarray) -> TrainingTable:
        """Return some columns of this table, in which the distinct rows still differ."""
        numeric = self.categories.n_numeric
        weights = [w for w, kept in zip(self.categories.weights, keep[numeric:], strict=True) if kept]
        categories = CategoryColumns(int(keep[:numeric].sum()), weights)
        return replace(self, rows=self.rows[:, keep], spread=self.spread[keep], categories=categories)

    @property
    def _single(self) -> np.ndarray:
        """Mask of the rows that are one observation; the others are common values, but no group judges its own rows."""
        if self.groups is not None:
            return np.ones(len(self.rows), dtype=bool)
        return self.copies <= np.where(self.gaps, 1, COMMON)

    @property
    def known(self) -> np.ndarray:
        """Number of each distinct row; NEW for common values, which are judged with their copies included."""
        return np.where(self._single, np.arange(len(self.rows)), NEW)

    @property
    def index(self) -> RowIndex:
        """Index that recognises training rows."""
        few = np.flatnonzero(self._single)
        keys = row_keys(self.rows[few])
        order = np.argsort(keys, kind="stable")
        return RowIndex(keys[order], few[order])

    def typical(self, count: int) -> np.ndarray:
        """Return the numbers of at most `count` distinct rows that represent all rows, with copies counted."""
        some = np.linspace(0, len(self.place) - 1, min(len(self.place), count)).astype(int)
        return np.sort(self.place)[some]


def distances_between(centers: np.ndarray, rows: np.ndarray, mismatch: np.ndarray) -> np.ndarray:
    """Return city-block distances (m, n), with `mismatch` (q,) for unlike categories in the last q columns."""
    first = centers.shape[1] - len(mismatch)
    if not len(mismatch):
        return cdist(centers, rows, "cityblock")
    # SciPy's weighted Hamming distance is a mean over the columns.
    words = cdist(centers[:, first:], rows[:, first:], "hamming", w=mismatch)
    words *= mismatch.sum()
    return words + cdist(centers[:, :first], rows[:, :first], "cityblock") if first else words


Rule = TypeVar("Rule", "PooledRule", "ReferenceRule")

# Relative differences from the constant that are rounding errors, and from which on a value is another one.
ROUNDING, OTHER = 2e-12, 1e-9


@dataclass(frozen=True)
class WithConstants:
    r"""A rule for the columns that vary, and the columns that were constant at fit.

    The tail share of a value that none of n training rows has is :math:`1 / (n + 1)`. Each such cell adds :math:`\log(n + 1)` to
    every kind of evidence, and so does a gap where no training row had one.
    """

    rule: PooledRule | ReferenceRule
    varies: np.ndarray  # (d,): mask of the columns that vary
    values: np.ndarray  # (d,): values of the others; numbers are in the frame of :func:`frame_of_constants`
    gap: np.ndarray  # (d,): 0 where training rows had gaps, 1 elsewhere
    step: float  # added to each kind of evidence for each cell with another value

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of evidence."""
        return self.rule.kinds

    def complete(self, rows: np.ndarray, budget: Budget) -> np.ndarray:
        """Return rows with their gaps filled."""
        out = np.where(np.isnan(rows), self.values, rows)
        out[:, self.varies] = self.rule.complete(rows[:, self.varies], budget)
        return out

    def surprises(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return minus the log tail shares of rows, of shape (n, kinds); `known` are numbers of training rows, or NEW."""
        found = self.rule.surprises(rows[:, self.varies], known, budget)
        return found + self.step * self.others(rows).sum(axis=1)[:, None]

    def others(self, rows: np.ndarray) -> np.ndarray:
        """Return 1 for cells of constant columns with another value or a new gap; 0 for other cells and rounding errors."""
        away = (np.abs(rows - self.values) - ROUNDING) / (OTHER - ROUNDING)
        return np.where(self.varies, 0.0, np.where(np.isnan(away), self.gap, np.clip(away, 0.0, 1.0)))


def frame_of_constants(values: np.ndarray) -> np.ndarray:
    """Return scales of constant numbers, by which differences from them become relative ones; of 0 every difference is large."""
    return np.where(values == 0.0, np.finfo(float).tiny, np.abs(values))


def fit_with_constants(
    fit: Callable[[TrainingTable], tuple[Rule, np.ndarray]], table: TrainingTable
) -> tuple[Rule | WithConstants, np.ndarray]:
    """Fit a rule to the columns that vary. Returns the rule for all columns, and the surprises of the training rows."""
    low, high = np.fmin.reduce(table.rows), np.fmax.reduce(table.rows)
    varies = low < high
    if varies.all():
        return fit(table)
    rule, surprises = fit(table.of_columns(varies))
    step = float(np.log(table.copies.sum() + 1.0))
    gap = np.where(np.isnan(table.rows).any(axis=0), 0.0, 1.0)
    return WithConstants(rule, varies, np.where(varies, 0.0, low), gap, step), surprises
