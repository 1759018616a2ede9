"""Landmarks of a density: a sample of the rows, each with the weight of all rows nearest to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from isopleth.backend import NUMPY
from isopleth.errors import InputError, TooLargeError
from isopleth.first_pass import ColumnMoments, RowSample
from isopleth.frames import BoundedMap
from isopleth.operators.threads import DEFAULT_N_JOBS, effective_n_jobs, map_threads
from isopleth.parts import Parts, take_columns
from isopleth.scaled_columns import bounded
from isopleth.tables.checks import Table

if TYPE_CHECKING:
    from isopleth.density.sosrep import SOSREP

# Rows in one block; larger blocks are not faster.
_CHUNK = 4096

# Copies of the landmarks in memory while chunks are merged and sorted, and while the density is fitted.
_COPIES = 8


def fit_parts(estimator: SOSREP, parts: Parts) -> SOSREP:
    """Fit SOSREP with landmarks to rows in parts in two passes; only the landmarks and their weights are kept.

    The first pass computes the standard deviation of each column and draws the landmarks. The second pass counts the rows nearest
    to each landmark. The model equals that of ``estimator.fit`` to all rows.

    Parameters
    ----------
    estimator : SOSREP
        The density to fit; its `landmarks` must be a number.
    parts : Parts
        The rows.

    Returns
    -------
    SOSREP
        `estimator`.

    Raises
    ------
    InputError
        If `landmarks` is None, or ``estimator.fit`` would refuse the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP
    >>> from isopleth.density.landmarks import fit_parts
    >>> from isopleth.parts import ArrayParts
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = SOSREP(landmarks=100)
    >>> there = model.fit(X).score_samples(X)
    >>> here = fit_parts(model, ArrayParts(X, part_rows=1000)).score_samples(X)
    >>> bool(np.allclose(here, there, rtol=1e-9))
    True
    """
    estimator._validate_params()
    if estimator.landmarks is None:
        raise InputError(
            "landmarks is None, and SOSREP with all rows as centres cannot be fitted to rows in parts; give a number, for "
            "example landmarks=500."
        )
    estimator._forget()
    take_columns(estimator, parts)
    rows, weights = choose_landmarks(
        parts, int(estimator.landmarks), estimator.bounds, estimator.memory_limit, estimator.n_jobs
    )
    if not len(rows):
        raise InputError("X has no rows of positive weight; expected at least two that differ.")
    return estimator._fit_table(Table(rows, weights, NUMPY))


def choose_landmarks(
    parts: Parts, size: int, bounds: object, memory_limit: float, n_jobs: int | None = DEFAULT_N_JOBS
) -> tuple[np.ndarray, np.ndarray]:
    """Draw landmarks in one pass, and sum the weights of the rows nearest to each in another.

    Distances are in standard deviations of the columns; bounded columns count as the logarithms or logits in which they are
    fitted.

    Parameters
    ----------
    parts : Parts
        The rows.
    size : int
        Number of landmarks; if there are no more distinct rows, all are taken with their own weights.
    bounds : None, mapping or sequence
        As for the estimator.
    memory_limit : float
        Bytes that the landmarks and the distances of a chunk of rows may take together.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.

    Returns
    -------
    rows : ndarray of shape (m, n_features)
        The landmarks, m at most `size`.
    weights : ndarray of shape (m,)
        Their weights. If not all rows are landmarks, the sum is m, because the rule for the length scale depends on the number
        of kernels, not on the number of rows.

    Raises
    ------
    InputError
        If the landmarks do not fit in the memory limit, or a row is on or beyond a bound.
    """
    each = 8.0 * _COPIES * (parts.n_features + 2)
    if size * each > memory_limit:
        most = int(memory_limit / each)
        raise TooLargeError(
            f"landmarks = {size} in {parts.n_features} columns need {size * each / 2**20:,.0f} MiB, more than the memory limit "
            f"of {memory_limit / 2**20:,.0f} MiB; use {most:,} at most.",
            size * each,
            memory_limit,
            most,
        )
    parsed = BoundedMap.of(bounds, parts.labels, parts.names)
    found = parts.sums(partial(_FirstPass, parts.n_features, size), partial(_add_to_first_pass, parsed, parts.labels))
    if found.sample.complete:
        return found.sample.rows.reshape(-1, parts.n_features), found.sample.weights
    deviation = found.moments.deviation
    unit = np.where(deviation > 0.0, deviation, np.inf)
    rows = found.sample.rows
    nearest = _Nearest(parsed, unit, found.moments.mean, rows, memory_limit, n_jobs)
    weights = parts.sums(partial(_Counts, len(rows)), partial(_add_counts, nearest)).weights
    counted = weights > 0.0
    return rows[counted], weights[counted] * (counted.sum() / weights.sum())


def nearest_rows(y: np.ndarray, landmarks: np.ndarray, memory_limit: float, n_jobs: int | None) -> np.ndarray:
    """Return the place of the landmark nearest to each row, by Euclidean distances."""
    d = y.shape[1]
    unbounded = BoundedMap(np.full(d, -np.inf), np.full(d, np.inf))
    return _Nearest(unbounded, np.ones(d), np.zeros(d), landmarks, memory_limit, n_jobs)(y)


class _FirstPass:
    """Column moments after the map of bounded columns to the real line, and a sample of the original rows."""

    def __init__(self, n_features: int, size: int) -> None:
        self.moments, self.sample = ColumnMoments(n_features), RowSample(size)

    def merge(self, other: Self) -> Self:
        """Add the rows that `other` has seen."""
        self.moments.merge(other.moments)
        self.sample.merge(other.sample)
        return self


def _add_to_first_pass(
    bounds: BoundedMap, labels: list[str], found: _FirstPass, rows: np.ndarray, weights: np.ndarray | None
) -> _FirstPass:
    rows, weights = _positive_weight(rows, weights)
    bounds.refuse_outside(rows, labels)
    found.moments.add(bounds.forward(rows), weights)
    found.sample.add(rows, weights)
    return found


def _positive_weight(rows: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows of positive weight; rows of weight 0 may be outside the bounds."""
    return (rows, None) if weights is None else (rows[weights > 0], weights[weights > 0])


class _Counts:
    """Summed weight of the rows nearest to each landmark."""

    def __init__(self, n_landmarks: int) -> None:
        self.weights = np.zeros(n_landmarks)

    def merge(self, other: Self) -> Self:
        """Add the rows that `other` has counted."""
        self.weights += other.weights
        return self


def _add_counts(nearest: _Nearest, counts: _Counts, rows: np.ndarray, weights: np.ndarray | None) -> _Counts:
    rows, weights = _positive_weight(rows, weights)
    counts.weights += np.bincount(nearest(rows), weights, minlength=len(counts.weights))
    return counts


class _Nearest:
    """Search of the nearest landmark of each row."""

    def __init__(
        self,
        bounds: BoundedMap,
        unit: np.ndarray,
        middle: np.ndarray,
        landmarks: np.ndarray,
        memory_limit: float,
        n_jobs: int | None,
    ) -> None:
        self._bounds, self._unit, self._middle = bounds, unit, middle
        self._landmarks = self._enter(landmarks)
        self._half = 0.5 * (self._landmarks**2).sum(axis=1)
        self._workers = effective_n_jobs(n_jobs)
        each = 16.0 * (len(landmarks) + landmarks.shape[1]) * self._workers
        self._chunk = max(1, min(_CHUNK, int(0.5 * memory_limit / each)))

    def _enter(self, rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return bounded((self._bounds.forward(rows) - self._middle) / self._unit)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        def find(start: int) -> np.ndarray:
            # Half the squared distance, minus half the square of the row itself, which is the same for all landmarks.
            return np.argmin(self._half - self._enter(rows[start : start + self._chunk]) @ self._landmarks.T, axis=1)

        starts = range(0, len(rows), self._chunk)
        found = map_threads(find, starts, max(1, min(self._workers, len(starts))))
        return np.concatenate(found) if found else np.empty(0, dtype=np.intp)
