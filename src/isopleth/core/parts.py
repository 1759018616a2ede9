"""Rows in parts, such as chunks of a file: the interface that fits use, moments and a sample of a first pass, partial fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from isopleth.core.errors import InputError
from isopleth.core.parameters import check_weights, column_labels
from isopleth.core.rows import distinct_rows, merge_rows, mixed, row_keys, symmetric_keys


class ColumnMoments:
    """Mean, deviation and range of each column over the rows of positive weight, for numbers of any size.

    Deviations are merged without squares, which could overflow; means are stored relative to the middle of some rows.
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


# Smallest keys of a first part, over the size of a sample, that are looked at before all others.
_AMPLE = 4


class RowSample:
    """Random sample of distinct rows: those with the smallest keys, by default hashes of the row and a seed.

    Keys depend on neither position nor order of columns, and equal rows share one, so that a row in the sample was in it from its
    first occurrence on and its weight is complete. `complete` is True if all distinct rows are in it.
    """

    # Rows that differ by rounding have unrelated hashes, so only equal rows are merged.
    _merge = staticmethod(merge_rows)

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
        elif counted.sum() > _AMPLE * self.size:  # and this most of its first part
            few = counted & (keys <= np.partition(keys[counted], _AMPLE * self.size)[_AMPLE * self.size])
            if len(self._merge(rows[few], np.ones(few.sum()))[0]) > self.size:
                self.complete, counted = False, few
        return self._take(rows[counted], np.ones(counted.sum()) if weights is None else weights[counted])

    def merge(self, other: RowSample) -> Self:
        """Add the rows of `other`, and return this one."""
        self.complete &= other.complete
        return self._take(other._rows, other._weights)

    def _take(self, rows: np.ndarray, weights: np.ndarray) -> Self:
        """Merge rows into the sample, and keep those with the smallest keys."""
        if not len(rows):
            return self
        both = np.concatenate([self._rows, rows]) if len(self._rows) else rows
        merged, summed, _ = self._merge(both, np.concatenate([self._weights, weights]))
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
        """Sum of the weights, or the number of rows if that is larger; equal rows count once if the sample is complete."""
        return max(self.moments.weight, float(len(self.sample.rows) if self.sample.complete else self.moments.n_rows))

    def pair(self, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two rows and weights with the deviations and the count of all rows; scale rules give the same for both."""
        deviation = self.moments.deviation[keep]
        return np.stack([-deviation, deviation]), np.full(2, 0.5 * self.n_rows)


class Sums(Protocol):
    """Sums over rows that can be merged with sums over other rows."""

    def merge(self, other: Self) -> Self:
        """Add the sums of `other` to this one, and return it."""
        ...


# Largest weight, so that sums over any number of rows are finite.
HEAVIEST = 1e290

S = TypeVar("S", bound=Sums)
# ``add(sums, rows, weights)`` adds the rows of one part to sums. Rows are float64, finite and read-only.
Add = Callable[[S, np.ndarray, np.ndarray | None], S]


class Parts(ABC):
    """Rows in parts, such as chunks of a file or partitions of a collection. They need not be in memory at the same time.

    A subclass sets `names` and `n_features`, defines :meth:`sums`, and calls ``isopleth.core.parts.check_part`` for each part.

    Attributes
    ----------
    names : list of str or None
        Names of the columns, if they have any.
    n_features : int
        Number of columns.
    """

    names: list[str] | None
    n_features: int

    @property
    def labels(self) -> list[str]:
        """Names of the columns in messages."""
        return column_labels(self.names, self.n_features)

    @abstractmethod
    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return sums over all rows: each part is added to a fresh ``start()``, and these are merged in the order of the parts.

        Parameters
        ----------
        start : callable
            ``start()`` returns sums over no rows.
        add : callable
            ``add(sums, rows, weights)`` returns the sums with the rows of one part; weights are None if all are 1. It may run in
            another process, so it should hold little data.

        Returns
        -------
        sums
            The result does not depend on timing.
        """

    def sample(self, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Draw distinct rows of positive weight, uniformly without replacement, in one pass.

        Parameters
        ----------
        size : int
            Number of rows; all distinct rows if there are fewer.
        seed : int
            Seed of the draw.

        Returns
        -------
        rows : ndarray of shape (min(size, distinct rows), n_features)
            They do not depend on the order of rows or columns, nor on how rows are divided into parts.
        weights : ndarray of that length
            Summed weights of all equal rows.
        """
        drawn = self.sums(lambda: RowSample(size, seed), RowSample.add)
        rows, weights = drawn.rows, drawn.weights
        return rows.reshape(-1, self.n_features), weights


# Numbers in a chunk: 8 MiB.
_CHUNK = 2**20


def rows_of_a_chunk(columns: int) -> int:
    """Return the number of rows of so many columns that fit 8 MiB."""
    return max(1, _CHUNK // max(columns, 1))


class ArrayParts(Parts):
    """Array in memory, divided into parts."""

    def __init__(self, X: Any, weights: Any = None, part_rows: int = 65536, names: list[str] | None = None) -> None:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) != 2 or not shape[1]:
            raise InputError(f"X has shape {shape}; expected an array of two dimensions with at least one column.")
        if weights is not None and len(weights) != shape[0]:
            raise InputError(f"sample_weight has {len(weights)} values for {shape[0]} rows; expected one a row.")
        self.X, self.weights, self.part_rows, self.names = X, weights, part_rows, names
        self.n_features = int(shape[1])

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return sums over all rows; see :meth:`Parts.sums`."""
        total = start()
        for first in range(0, len(self.X), self.part_rows):
            part = slice(first, first + self.part_rows)
            weights = None if self.weights is None else self.weights[part]
            total = total.merge(part_sums(start, add, self.X[part], weights, self.labels, f"rows from {first} on"))
        return total


def positive_weight(rows: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows of positive weight; others may be outside the bounds."""
    return (rows, None) if weights is None else (rows[weights > 0], weights[weights > 0])


def take_columns(estimator: Any, parts: Parts) -> None:
    """Set number and names of the columns on an estimator, as a fit to rows in memory does."""
    estimator.n_features_in_ = parts.n_features
    estimator._column_labels = parts.labels
    estimator.__dict__.pop("feature_names_in_", None)
    if parts.names is not None:
        estimator.feature_names_in_ = np.asarray(parts.names, dtype=object)


def part_sums(
    start: Callable[[], S], add: Add[S], rows: Any, weights: Any, labels: list[str], place: str, what: str = "X"
) -> S:
    """Return sums over one part, which is checked as by :func:`check_part`."""
    checked, counted = check_part(rows, weights, labels, place, what)
    try:
        return add(start(), checked, counted)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def check_part(
    rows: Any, weights: Any, labels: list[str], place: str, what: str = "X"
) -> tuple[np.ndarray, np.ndarray | None]:
    """Check rows and weights of one part, and return them in float64."""
    _refuse_masked(rows, what, place)
    try:
        table = _real(rows)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} has something other than numbers in {place} ({error}); drop or encode the column."
        ) from error
    if table.ndim != 2 or table.shape[1] != len(labels):
        raise InputError(f"{what} has shape {table.shape} in {place}; expected {len(labels)} columns.")
    bad = ~np.isfinite(table)
    if bad.any():
        j = int(np.argmax(bad.any(axis=0)))
        kind = "NaN" if np.isnan(table[:, j]).any() else "inf"
        count = int(bad[:, j].sum())
        raise InputError(
            f"{what} contains {kind} in {labels[j]} ({count} row{'s' if count > 1 else ''} in {place}); drop those rows or fill "
            "them first."
        )
    return table, None if weights is None else _check_weights(weights, len(table), place)


def _refuse_masked(values: Any, what: str, place: str) -> None:
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        count = int(np.ma.getmaskarray(values).sum())
        raise InputError(f"{what} has {count} masked cells in {place}; fill them or drop their rows first.")


def _real(values: Any) -> np.ndarray:
    """Return `values` in float64; TypeError for dates and complex numbers, which NumPy would convert."""
    plain = np.asarray(values)
    if plain.dtype.kind in "cmM":
        raise TypeError(f"values of dtype {plain.dtype}")
    return plain.astype(np.float64, copy=False)


def _check_weights(weights: Any, n: int, place: str) -> np.ndarray:
    """Return the weights of one part in float64; errors name the part."""
    _refuse_masked(weights, "sample_weight", place)
    try:
        w = check_weights(weights, n, added=True)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    if (w > HEAVIEST).any():
        raise InputError(f"{place}: sample_weight has values above {HEAVIEST:g}; expected smaller ones.")
    return w


class Streaming:
    """Base class of estimators whose ``partial_fit`` adds rows to sums.

    The first call solves the equations, so that errors in rows or parameters are raised there. After later calls, they are
    solved on the first use of the solution. This takes the same time after one new row as after a million.

    A subclass defines :meth:`_solve` and the names of the attributes that it sets.
    """

    # Attributes of the solution. The first of them is the one that :meth:`_solve` sets last.
    _solved: ClassVar[tuple[str, ...]]

    # Sums over the rows of all calls; None after a call was interrupted while it added rows.
    _running: Any

    def _solve(self, sums: Any) -> None:
        """Set the attributes of the solution."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Delete sums and solution of an earlier fit; subclasses delete further attributes."""
        for name in ("_running", *self._solved):
            vars(self).pop(name, None)

    def _sums_so_far(self) -> Any:
        """Return the sums of earlier calls, None before the first."""
        sums = vars(self).get("_running", self)
        if sums is None:
            raise InputError(
                "a call of partial_fit was broken off while rows were being added, and some of them may have been added; start "
                "again with fit or a new model, or continue from a saved model."
            )
        return None if sums is self else sums

    @contextmanager
    def _adding(self, sums: Any) -> Iterator[None]:
        """Context in which rows are added to sums. An interrupt or error invalidates them, or in a first call deletes them."""
        first = "_running" not in vars(self)
        for name in self._solved:
            vars(self).pop(name, None)
        self._running = None
        try:
            yield
            if first:
                self._solve(sums)
            self._running = sums
        except BaseException:
            if first:
                self._forget()
            raise

    def __getstate__(self) -> Any:
        """Return the state with the solution, so that copies and saved models need not solve."""
        if "_running" in vars(self):
            getattr(self, self._solved[0])
        return super().__getstate__()

    if not TYPE_CHECKING:  # a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Solve if an attribute of the solution is missing; Python calls this for missing attributes only."""
            if name in self._solved and "_running" in vars(self) and self._solved[0] not in vars(self):
                self._solve(self._sums_so_far())
            return object.__getattribute__(self, name)
