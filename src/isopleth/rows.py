"""Rows that occur more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np


def merge_rows(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows of positive weight in lexical order, their summed weights, and the place of each row of `X` (-1: none)."""
    positive = w > 0
    kept = X[positive] + 0.0  # -0.0 is 0.0
    if kept.shape[1] == 1:
        rows, inverse = np.unique(kept, return_inverse=True)
        rows = rows[:, None]
    else:
        rows, inverse = _unique_rows(kept)
    place = np.full(len(X), -1)
    place[positive] = inverse.ravel()
    return rows, np.bincount(inverse.ravel(), weights=w[positive], minlength=len(rows)), place


def _unique_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """np.unique over rows, without its slow comparison of structured rows: one stable sort a column.

    Where the first column has no ties, it decides.
    """
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    if (first[1:] == first[:-1]).any():
        order = np.lexsort(X.T[::-1])
    ordered = X[order]
    starts = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    inverse = np.empty(len(X), dtype=np.intp)
    inverse[order] = np.cumsum(starts) - 1
    return ordered[starts], inverse


def row_keys(X: np.ndarray) -> np.ndarray:
    """A 64-bit number for each row, the same for equal rows and in all likelihood for no others."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    # Fixed odd multipliers and shifts: a mixing function must be the same in every process that loads a model.
    keys = np.full(len(X), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(X.shape[1]):
        keys ^= bits[:, j]
        keys *= np.uint64(0xBF58476D1CE4E5B9)
        keys ^= keys >> np.uint64(29)
    return keys


FOLDS = 5


def folds_of(n: int, seed: int, folds: int = FOLDS) -> np.ndarray:
    """Fold of each of `n` distinct rows, as even as can be."""
    return np.random.default_rng(seed).permutation(n) % max(1, min(folds, n))


def held_out_parts(n: int, cv: int | float, seed: int = 0) -> list[np.ndarray]:
    """Masks of the rows held out in turn: of `cv` folds that part `n` distinct rows, or of one share `cv` of them."""
    if cv >= 1:
        fold = folds_of(n, seed, int(cv))
        return [fold == k for k in range(fold.max() + 1)]
    count = min(max(1, round(cv * n)), n - 1)  # something is left on both sides
    return [np.random.default_rng(seed).permutation(n) < count]


@dataclass
class RunningFolds:
    """Folds of rows that come one after another, without a look at their values.

    Each run of as many rows as there are folds has one row in every fold, in an order of its own: folds are even at any time, and
    no period in the rows is that of a fold. Where one part of the rows begins does not matter for another, so each has the
    key of its first row in these orders: many parts of a few rows would all fill the same folds otherwise.

    Parameters
    ----------
    folds : int
        How many.
    seed : int
        Another seed, other orders.
    seen : int
        Rows that have been dealt so far.
    mark : int
        Key of the first of them.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.rows import RunningFolds
    >>> rows = np.arange(10.0)[:, None]
    >>> at_once, in_parts = RunningFolds(5, seed=0), RunningFolds(5, seed=0)
    >>> at_once.deal(rows).tolist() == [*in_parts.deal(rows[:3]), *in_parts.deal(rows[3:])]
    True
    """

    folds: int
    seed: int
    seen: int = 0
    mark: int = 0

    def deal(self, rows: np.ndarray) -> np.ndarray:
        """The folds of the next rows."""
        if not len(rows):
            return np.empty(0, dtype=np.intp)
        if not self.seen:
            self.mark = int(row_keys(rows[:1])[0])
        first, ahead = divmod(self.seen, self.folds)
        runs = -(-(ahead + len(rows)) // self.folds)
        draws = -(-self.folds // 4)  # a counter of the generator is worth four numbers
        numbers = np.random.Philox(key=np.array([self.seed, self.mark], dtype=np.uint64), counter=first * draws)
        order = np.argsort(numbers.random_raw(4 * draws * runs).reshape(runs, -1)[:, : self.folds], axis=1)
        self.seen += len(rows)
        return np.asarray(order.ravel()[ahead : ahead + len(rows)])

    def merge(self, other: RunningFolds) -> Self:
        """Count the rows that `other` has dealt."""
        if not self.seen:
            self.mark = other.mark
        self.seen += other.seen
        return self
