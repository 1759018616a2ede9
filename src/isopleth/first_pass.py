"""First pass over rows in parts, before a fit computes its own sums: moments of columns, and a sample of rows."""

from __future__ import annotations

from typing import Self

import numpy as np

from isopleth.rows import distinct_rows, merge_rows, mixed, row_keys, symmetric_keys


class ColumnMoments:
    """Mean, standard deviation and range of each column over the rows of positive weight, for numbers of any size.

    Deviations are merged without computing their squares, which could over- or underflow. Means are stored as differences from
    the middle of some rows, so that no digits are lost far from 0.
    The results are `weight`, `n_rows` of positive weight, `deviation`, `low` and `high`.
    """

    def __init__(self, n_features: int) -> None:
        self.weight, self.n_rows = 0.0, 0
        self.deviation = np.zeros(n_features)
        self._anchor, self._offset = np.zeros(n_features), np.zeros(n_features)  # the mean is their sum
        self.low, self.high = np.full(n_features, np.inf), np.full(n_features, -np.inf)

    def add(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows."""
        if weights is not None:
            rows, weights = rows[weights > 0], weights[weights > 0]
        if not len(rows):
            return self
        new = type(self)(rows.shape[1])
        new.weight = float(len(rows) if weights is None else weights.sum())
        new.n_rows = len(rows)
        share = np.full(len(rows), 1.0 / len(rows)) if weights is None else weights / new.weight
        new.low, new.high = rows.min(axis=0), rows.max(axis=0)
        middle = 0.5 * new.low + 0.5 * new.high
        about = rows - middle
        largest = np.abs(about).max(axis=0)
        about /= np.where(largest > 0.0, largest, 1.0)
        shift = share @ about
        about -= shift
        new._anchor, new._offset = middle, largest * shift
        new.deviation = largest * np.sqrt(share @ (about * about))
        return self.merge(new)

    def merge(self, other: ColumnMoments) -> Self:
        """Add the rows of `other`, and return this one."""
        total = self.weight + other.weight
        if total > 0.0:
            mine, theirs = self.weight / total, other.weight / total
            if not self.weight:
                self._anchor, self._offset = other._anchor, other._offset
            apart = (other._anchor - self._anchor) + (other._offset - self._offset)
            self.deviation = np.hypot(
                np.hypot(np.sqrt(mine) * self.deviation, np.sqrt(theirs) * other.deviation),
                np.sqrt(mine * theirs) * np.abs(apart),
            )
            self._offset = self._offset + theirs * apart
        self.weight, self.n_rows = total, self.n_rows + other.n_rows
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return self

    @property
    def mean(self) -> np.ndarray:
        """Weighted mean of each column."""
        return np.asarray(self._anchor + self._offset)

    @property
    def varying(self) -> np.ndarray:
        """Mask of the columns that are not constant."""
        return np.asarray(self.low < self.high)


class RowSample:
    """Random sample of distinct rows: those with the smallest keys, by default hashes of the row and a seed.

    Equal rows have equal keys. A row that is in the sample at the end was in it since its first occurrence, so its weight is the
    sum over all equal rows. Keys do not depend on the position of a row, nor on the order of the columns, except if rows that
    are permutations of one another compete for the last place.
    The results are `rows`, in the order of :func:`~isopleth.rows.distinct_rows`, their summed `weights`, and `complete`, True
    if the sample has all distinct rows.
    """

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size, self.seed = size, seed
        self._rows, self._weights, self._keys = np.empty((0, 0)), np.empty(0), np.empty(0)
        self.complete = True

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Return a number for each row."""
        return mixed(symmetric_keys(rows), self.seed)

    def add(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows."""
        keys = self.keys(rows)
        counted = np.ones(len(rows), dtype=bool) if weights is None else weights > 0
        if not self.complete and len(self._keys):  # this excludes most rows of a long file
            counted &= keys <= self._keys.max()
        return self._take(rows[counted], np.ones(counted.sum()) if weights is None else weights[counted])

    def merge(self, other: RowSample) -> Self:
        """Add the rows of `other`, and return this one."""
        self.complete &= other.complete
        return self._take(other._rows, other._weights)

    def _take(self, rows: np.ndarray, weights: np.ndarray) -> Self:
        if not len(rows):
            return self
        both = np.concatenate([self._rows, rows]) if len(self._rows) else rows
        merged, summed, _ = merge_rows(both, np.concatenate([self._weights, weights]))
        keys = self.keys(merged)
        if len(merged) > self.size:
            self.complete = False
            kept = np.sort(np.lexsort([mixed(row_keys(merged), self.seed), keys])[: self.size])
            merged, summed, keys = merged[kept], summed[kept], keys[kept]
        self._rows, self._weights, self._keys = merged, summed, keys
        return self

    @property
    def rows(self) -> np.ndarray:
        return self._ordered[0]

    @property
    def weights(self) -> np.ndarray:
        return self._ordered[1]

    @property
    def _ordered(self) -> tuple[np.ndarray, np.ndarray]:
        return distinct_rows(self._rows, self._weights)[:2] if len(self._rows) else (self._rows, self._weights)


class FirstPass:
    """First pass of a fit: column moments, and a sample of rows."""

    def __init__(self, n_features: int, size: int, seed: int = 0) -> None:
        self.moments, self.sample = ColumnMoments(n_features), RowSample(size, seed)

    def add(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows."""
        self.moments.add(rows, weights)
        self.sample.add(rows, weights)
        return self

    def merge(self, other: FirstPass) -> Self:
        """Add the rows of `other`, and return this one."""
        self.moments.merge(other.moments)
        self.sample.merge(other.sample)
        return self

    @property
    def n_rows(self) -> float:
        """Number of rows with repetitions: the sum of the weights, or the number of rows if that is larger.

        For weights of a small sum, equal rows count as one if the sample is complete; otherwise each of them counts.
        """
        return max(self.moments.weight, float(len(self.sample.rows) if self.sample.complete else self.moments.n_rows))

    def pair(self, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two rows and weights with the deviations and the count of all rows; scale rules give the same for both."""
        deviation = self.moments.deviation[keep]
        return np.stack([-deviation, deviation]), np.full(2, 0.5 * self.n_rows)
