"""Means of the target by word: what a column of many words, such as articles or countries, says of the target.

Only the most frequent words have an input of their own, and trees would have to divide the others one by one. At a row of the
fit a mean is that of the rows in other folds, so that it does not tell the row's own target. It has fewer rows than that of a new
row, so that of a number is shrunk towards that of all rows by as many rows as the variance within words has of that between them:
not at all where a word decides, or all prices of articles with few rows would be taken for higher ones. Means of words, and of
numbers where rows of the fit are judged, are shrunk by one row: a wrong cell among few rows is not sure of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.rows import FOLDS, folds_of

# Columns of a target that have means.
MOST_TARGETS = 8
# Most rows towards whose mean a mean is shrunk, where words hardly differ.
_MOST_ROWS = 100.0
# Means are multiples of this: rounding errors do not divide equal ones.
_STEP = 2.0**-16


@dataclass(frozen=True)
class WordMeans:
    """Means of the targets of the rows that have each word of a column, less those of all rows."""

    place: int
    means: np.ndarray  # (words, k)

    @classmethod
    def fit(
        cls, place: int, cells: np.ndarray, targets: np.ndarray, held: np.ndarray, rows: float | None = None
    ) -> tuple[Self, np.ndarray]:
        """Return the means and, for each row of the fit, those of the other folds, (n, k); `held` is its weight in each fold.

        They are shrunk by some `rows`, or as many as the variances say.
        """
        known = ~np.isnan(cells)
        codes = np.where(known, cells, 0.0).astype(np.intp)
        w, size = held.sum(axis=1), int(codes.max(initial=0)) + 1
        centered = targets - (w @ targets) / w.sum()

        def sums(mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mass = np.where(known, mass, 0.0)
            return np.bincount(codes, mass, size), np.stack(
                [np.bincount(codes, mass * column, size) for column in centered.T], axis=1
            )

        count, total = sums(w)
        squares = np.where(known, w, 0.0) @ centered**2
        by = _rows_of_shrinkage(count, total, squares) if rows is None else np.full(len(squares), rows)
        found = np.zeros(targets.shape)
        for part in held.T:
            n, s = sums(part)
            others = _shrunk(total - s, np.maximum(count - n, 0.0), by)
            found += (part / w)[:, None] * others[codes]
        return cls(place, _rounded(_shrunk(total, count, by))), _rounded(np.where(known[:, None], found, 0.0))

    def at(self, cells: np.ndarray) -> np.ndarray:
        """Return the means for words, (n, k): 0, that of all rows, where the word is missing or new."""
        known = cells < len(self.means)  # not NaN
        return np.where(known[:, None], self.means[np.where(known, cells, 0.0).astype(np.intp)], 0.0)


def _rows_of_shrinkage(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the variance within words over that between them, (k,), by the moments of an analysis of variance.

    `count` (words,) and `total` (words, k) are sums of weights and targets, `squares` (k,) those of squared targets.
    """
    used = count > 0.0
    count, total = count[used], total[used]
    n, words = count.sum(), len(count)
    free = float(np.maximum(count - 1.0, 0.0).sum())
    evenly = (n - float(count @ count) / n) / max(words - 1, 1)
    if not free or evenly <= 0.0:
        return np.ones(len(squares))
    of_words = (total**2 / count[:, None]).sum(axis=0)
    within = np.maximum(squares - of_words, 0.0) / free
    between = (of_words - total.sum(axis=0) ** 2 / n) / (words - 1)
    between = np.maximum(between - within, 0.0) / evenly
    return np.asarray(within / np.maximum(between, np.maximum(within / _MOST_ROWS, 1e-300)))


def _shrunk(total: np.ndarray, count: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the means of words, (words, k), after `rows` more rows with the mean of all; 0 without rows."""
    return np.asarray(total / np.maximum(count[:, None] + rows, 1e-300))


def _rounded(means: np.ndarray) -> np.ndarray:
    return np.asarray(np.rint(means / _STEP) * _STEP)


def held_weights(w: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """Return the weight of each row in each fold, (n, folds): equal rows that it stands for are dealt to the folds in turn."""
    first = folds_of(len(w), 0, FOLDS)
    turn = (np.arange(FOLDS) - first[:, None]) % FOLDS
    part = np.clip(copies[:, None] - turn, 0.0, 1.0)
    return np.asarray(w[:, None] * part / part.sum(axis=1, keepdims=True))


def codes_of_target(counts: np.ndarray) -> np.ndarray:
    """Return the numbers of the words of a target that have means, (words, k): each word's own, or signs that tell many apart."""
    if len(counts) <= MOST_TARGETS:
        return np.eye(len(counts))
    signs = np.random.default_rng(0).integers(0, 2, (len(counts), MOST_TARGETS)) * 2.0 - 1.0
    out = np.empty(signs.shape)
    out[np.argsort(-counts, kind="stable")] = signs
    return out
