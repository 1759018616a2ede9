"""Parting rows for held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.rows import row_keys

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
    >>> from isopleth.folds import RunningFolds
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
