"""Landmarks of a density: a sample of the rows, each with the weight of all rows nearest to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from isopleth.core.budget import Budget
from isopleth.core.errors import refuse_too_large
from isopleth.core.parts import ColumnMoments, Parts, RowSample, positive_weight
from isopleth.core.progress import Progress
from isopleth.core.rows import merge_without_rounding
from isopleth.core.scales import bounded
from isopleth.core.threads import map_threads, slices
from isopleth.frames import BoundedMap

# Rows in one block; larger blocks are not faster.
_CHUNK = 4096

# Half squared distances are equal if they differ by less than this share of half the squares of row and landmark.
_ROUNDING = 1e-9

# Copies of the landmarks in memory while chunks are merged and sorted, and while the density is fitted.
_COPIES = 8


def choose_landmarks(parts: Parts, size: int, bounds: object, budget: Budget) -> tuple[np.ndarray, np.ndarray]:
    """Draw landmarks, and sum the weights of the rows nearest to each.

    Distances are in standard deviations of the columns; bounded columns count as the logarithms or logits in which they are
    fitted.
    If not all rows are landmarks, their weights have the sum m, because the rule for the length scale depends on the number
    of kernels, not on the number of rows.
    """
    each = 8.0 * _COPIES * (parts.n_features + 2)
    most = int(budget.memory / each)
    what = f"landmarks = {size} in {parts.n_features} columns"
    refuse_too_large(what, size * each, budget.memory, f"use {most:,} at most", most)
    parsed = BoundedMap.of(bounds, parts.labels, parts.names)
    moments = parts.sums(partial(ColumnMoments, parts.n_features), partial(_add_moments, parsed, parts.labels))
    standard = _Standard(parsed, moments.mean, np.where(moments.deviation > 0.0, moments.deviation, np.inf))
    sample = parts.sums(partial(_Sample, size, standard), _add_rows)
    if sample.complete:
        return sample.rows.reshape(-1, parts.n_features), sample.weights
    rows = sample.rows
    near = _Near(standard, rows, replace(budget, verbose=False))
    weights = parts.sums(partial(_Counts, len(rows)), partial(_add_counts, near)).weights
    counted = weights > 0.0
    return rows[counted], weights[counted] * (counted.sum() / weights.sum())


def mass_near(landmarks: np.ndarray, rows: np.ndarray, weights: np.ndarray, budget: Budget) -> np.ndarray:
    """Return the summed weights of the rows nearest to each landmark, by Euclidean distances."""
    return _Near(np.asarray, landmarks, budget).mass(rows, weights)


@dataclass(frozen=True)
class _Standard:
    """Coordinates in which landmarks are drawn and rows are counted: standard deviations of the unbounded columns."""

    bounds: BoundedMap
    middle: np.ndarray
    unit: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return bounded((self.bounds.forward(rows) - self.middle) / self.unit)


class _Sample(RowSample):
    """Sample by keys that a change of the last digits of a row hardly changes, unlike a hash.

    Waves are so short that rows close together have unrelated keys, and so long that keys keep ten digits. Waves of sums of waves
    make keys of a grid unrelated to its lines; the phase keeps columns of opposite signs from cancelling.
    """

    _merge = staticmethod(merge_without_rounding)

    def __init__(self, size: int, enter: _Standard) -> None:
        super().__init__(size)
        self._enter = enter

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Return a number for each row."""
        z = self._enter(rows)[:, np.isfinite(self._enter.unit)]  # constant columns must not change keys
        return np.asarray(np.sin(1e4 * np.sin(1e2 * z + 1.0).sum(axis=1)))


def _add_moments(
    bounds: BoundedMap, labels: list[str], moments: ColumnMoments, rows: np.ndarray, weights: np.ndarray | None
) -> ColumnMoments:
    """Add the rows of one part to the moments of the columns."""
    rows, weights = positive_weight(rows, weights)
    bounds.refuse_outside(rows, labels)
    return moments.add(bounds.forward(rows), weights)


def _add_rows(sample: RowSample, rows: np.ndarray, weights: np.ndarray | None) -> RowSample:
    return sample.add(*positive_weight(rows, weights))


class _Counts:
    """Summed weight of the rows nearest to each landmark."""

    def __init__(self, n_landmarks: int) -> None:
        self.weights = np.zeros(n_landmarks)

    def merge(self, other: Self) -> Self:
        """Add the rows that `other` has counted."""
        self.weights += other.weights
        return self


def _add_counts(near: _Near, counts: _Counts, rows: np.ndarray, weights: np.ndarray | None) -> _Counts:
    rows, weights = positive_weight(rows, weights)
    counts.weights += near.mass(rows, np.ones(len(rows)) if weights is None else weights)
    return counts


class _Near:
    """Search of the landmark nearest to each row."""

    def __init__(
        self,
        enter: Callable[[np.ndarray], np.ndarray],
        landmarks: np.ndarray,
        budget: Budget,
    ) -> None:
        self._enter, self._landmarks = enter, enter(landmarks)
        self._half = 0.5 * (self._landmarks**2).sum(axis=1)
        self._budget, self._workers = budget, budget.threads
        each = 17.0 * (len(landmarks) + landmarks.shape[1]) * self._workers
        self._step = min(_CHUNK, 0.5 * budget.memory / each)

    def mass(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the summed weight of the rows nearest to each landmark; landmarks equally near up to rounding share it."""

        def find(part: slice) -> np.ndarray:
            y, w = self._enter(rows[part]), weights[part]
            # Half the squared distance, minus half the square of the row itself, which is the same for all landmarks.
            gaps = self._half - y @ self._landmarks.T
            nearest = gaps.argmin(axis=1)
            least = gaps[np.arange(len(y)), nearest]
            own = 0.5 * (y * y).sum(axis=1)
            near = gaps <= (least + _ROUNDING * (own + self._half[nearest]))[:, None]
            several = near.sum(axis=1)
            tick()
            alone = several == 1
            mass = np.bincount(nearest[alone], w[alone], minlength=len(self._half))
            tied = np.flatnonzero(~alone)
            return mass + (w[tied] / several[tied]) @ near[tied] if len(tied) else mass

        parts = slices(len(rows), self._step)
        with Progress("rows near those with kernels", len(parts), self._budget.verbose) as tick:
            masses = map_threads(find, parts, max(1, min(self._workers, len(parts))))
        return np.sum([np.zeros(len(self._half)), *masses], axis=0)
