"""Two samples as one set of distinct rows with two weights each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from isopleth.core.arrays import to_numpy
from isopleth.core.errors import InputError, warn_user
from isopleth.core.interval_cells import IntervalCells, coarsened, drawn_inside, rare_wide_intervals
from isopleth.core.rows import distinct_rows
from isopleth.core.threads import interruptible
from isopleth.tables.checks import CheckedRows, enter, keep_stretches, warn_of_stretches
from isopleth.tables.empty_rows import as_numbers, empty_rows, is_read
from isopleth.tables.given import Given

_MOST_UNITS = 1e8


def enter_both(
    estimator: BaseEstimator,
    X: Any,
    Y: Any,
    weight_x: Any = None,
    weight_y: Any = None,
    *,
    min_samples: int = 1,
    missing: bool = False,
    draws: bool = False,
) -> tuple[CheckedRows, CheckedRows]:
    """Check the rows and weights of two samples, and store their columns on `estimator`.

    With `draws`, a few limits that hide most of a column get numbers, and `estimator.drawn_limits_` has how many by column.
    """
    X, Y = Given.of(X), Given.of(Y, "Y")
    how: dict[str, Any] = {"min_samples": min_samples, "missing": missing, "merge": False}
    x = enter(estimator, X, weight_x, reset=True, name="X", weight_name="sample_weight_x", also=Y, **how)
    y = enter(estimator, Y, weight_y, name="Y", weight_name="sample_weight_y", **how)
    return _merged(estimator, x, y, draws)


def _merged(estimator: BaseEstimator, x: CheckedRows, y: CheckedRows, draws: bool) -> tuple[CheckedRows, CheckedRows]:
    """Return two samples with the values equal that limits of either of them hide: what only one tells is no difference."""
    rows, limits = np.vstack([x.rows, y.rows]), x.limits.below(y.limits)
    wide = rare_wide_intervals(rows, limits) if draws else np.zeros(limits.upper.shape, dtype=bool)
    complete, found = coarsened(rows, limits.without_cells(wide))
    complete, drawn = drawn_inside(rows, complete, limits, wide)
    keep_stretches(estimator, found)
    if draws:
        estimator.drawn_limits_ = drawn
    if not found and not drawn:
        return x, y
    if hasattr(estimator, "fit"):  # the result of a test says so itself
        warn_of_stretches(estimator, found)
    both = np.split(complete, [len(x.rows)])
    x, y = (
        replace(each, rows=part, limits=IntervalCells.none(len(part))) for each, part in zip((x, y), both, strict=True)
    )
    return x, y


def without_empty_rows(
    estimator: BaseEstimator, X: Given, Y: Given, x: CheckedRows, y: CheckedRows
) -> tuple[CheckedRows, CheckedRows]:
    """Return two samples of complete numbers in which rows without a known cell have the weight 0, and warn of these.

    If other cells are missing, or there are words, gaps are categories, and the samples are as they were; so in a single column,
    of which they are the only ones.
    """
    gaps = [np.asarray(table.missing.any(axis=1)) for table in (x, y)]
    other = (gap & ~empty_rows(table) & (table.weights > 0.0) for gap, table in zip(gaps, (x, y), strict=True))
    categories = x.rows.shape[1] == 1 or len(x.limits) or len(y.limits)
    if categories or not any(gap.any() for gap in gaps) or any(each.any() for each in other):
        return x, y
    numbers = y.columns is None or Y.only_numbers or is_read(Y)
    if not numbers or as_numbers(estimator, X, x).columns is not None:
        return x, y
    return _uncounted("X", x, gaps[0]), _uncounted("Y", y, gaps[1])


def _uncounted(name: str, table: CheckedRows, gaps: np.ndarray) -> CheckedRows:
    """Return a sample whose rows with gaps have the weight 0 and the cells of another row; folds of rows keep their places."""
    counted = table.weights > 0.0
    if not (counted & ~gaps).any() and counted.any():
        raise InputError(f"no row of {name} with a positive weight has a known cell; a difference needs both samples.")
    if n := int((gaps & counted).sum()):
        warn_user(f"rows of {name} without a known cell are left out: {n}.")
    first = table.rows[np.argmax(~gaps)]
    rows, weights = np.where(gaps[:, None], first, table.rows), np.where(gaps, 0.0, table.weights)
    return replace(table, rows=rows, weights=weights, columns=None)


@dataclass(frozen=True)
class TwoSamples:
    """Distinct rows of both samples, in an order that depends on the order of neither rows nor columns."""

    rows: np.ndarray  # (m, n_features): rows that have a positive weight in one of the samples
    weights: np.ndarray  # (m, 2): number of times each row was drawn, in the first and in the second sample
    place: np.ndarray  # (n + n',): index in `rows` of each row of X and then of Y; -1 for weight 0
    given: np.ndarray  # (n + n',): weights of these rows
    split: int  # n, the number of rows of the first sample before merging

    @classmethod
    def of(cls, x: CheckedRows, y: CheckedRows) -> Self:
        """Merge equal rows of both samples."""
        together = np.concatenate([x.weights, y.weights])
        both = np.vstack([x.rows, y.rows])
        rows, _, place = interruptible(100.0 * both.size, distinct_rows, both, together)
        weights = np.zeros((len(rows), 2))
        for sample, part in enumerate((slice(0, len(x.rows)), slice(len(x.rows), None))):
            counted = place[part] >= 0
            weights[:, sample] = np.bincount(place[part][counted], together[part][counted], minlength=len(rows))
            total, distinct = weights[:, sample].sum(), np.count_nonzero(weights[:, sample])
            if total < distinct:  # weights of sum 1 are shares, not counts
                weights[:, sample] *= distinct / total
        return cls(rows, weights, place, together, len(x.rows))

    @property
    def counts(self) -> np.ndarray:
        """Sums of the weights of each sample."""
        return self.weights.sum(axis=0)

    @property
    def contrast(self) -> np.ndarray:
        """Weight of each row in the mean over the first sample and, in the second column, over the second sample."""
        return self.weights / self.counts

    @property
    def units(self) -> np.ndarray:
        """Number of draws of each row in each sample that a split may separate: weights rounded up."""
        shrink = min(1.0, _MOST_UNITS / float(self.weights.sum()))
        return np.ceil(self.weights * shrink * (1.0 - 1e-12)).astype(np.int64)

    @property
    def order(self) -> tuple[int, int]:
        """Indices of the samples in an order that does not depend on which of them was called X."""
        differ = self.weights[:, 0] != self.weights[:, 1]
        i = int(np.argmax(differ))
        return (0, 1) if self.weights[i, 0] >= self.weights[i, 1] else (1, 0)


def split_at_random(samples: TwoSamples, folds: int, seed: int) -> np.ndarray:
    """Draw folds, and return weights by row, sample and fold. Copies are split like draws; otherwise estimates are biased."""
    out = np.zeros((*samples.weights.shape, folds))
    rng = np.random.default_rng(seed)
    for sample in samples.order:
        left = samples.units[:, sample]
        each = samples.weights[:, sample] / np.maximum(left, 1)
        total = int(left.sum())
        for fold in range(folds):
            size = total // folds + (fold < total % folds)
            drawn = rng.multivariate_hypergeometric(left, size, method="marginals")
            out[:, sample, fold] = drawn * each
            left = left - drawn
    return out


def split_as_given(samples: TwoSamples, cv: Any) -> np.ndarray:
    """Return weights by row, sample and fold for folds given by the user, one label for each row of each sample."""
    sizes = (samples.split, len(samples.place) - samples.split)
    labels = [np.asarray(to_numpy(part)) for part in cv]
    if len(labels) != 2 or any(part.shape != (size,) for part, size in zip(labels, sizes, strict=True)):
        raise InputError(
            f"cv: expected a number of folds, or two arrays with the fold of each row of X ({sizes[0]},) and Y ({sizes[1]},)."
        )
    names, fold = np.unique(np.concatenate(labels), return_inverse=True)
    out = np.zeros((*samples.weights.shape, len(names)))
    sample = (np.arange(len(samples.place)) >= samples.split).astype(int)
    counted = samples.place >= 0
    np.add.at(out, (samples.place[counted], sample[counted], fold.ravel()[counted]), samples.given[counted])
    out *= (samples.counts / out.sum(axis=(0, 2)))[None, :, None]
    bad = (out.sum(axis=0) == 0).any(axis=0)
    if bad.any():
        raise InputError(f"cv: fold {names[np.argmax(bad)]} has no rows of one of the samples; every fold needs both.")
    return out
