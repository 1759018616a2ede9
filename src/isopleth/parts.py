"""Rows in parts, such as chunks of a file: the interface that fits use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from isopleth.errors import InputError
from isopleth.first_pass import RowSample


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

    A subclass sets `names` and `n_features`, defines :meth:`sums`, and calls ``isopleth.parts.check_part`` for each part.

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


def take_columns(estimator: Any, parts: Parts) -> None:
    """Set number and names of the columns on an estimator, as a fit to rows in memory does."""
    estimator.n_features_in_ = parts.n_features
    estimator._column_labels = parts.labels
    estimator.__dict__.pop("feature_names_in_", None)
    if parts.names is not None:
        estimator.feature_names_in_ = np.asarray(parts.names, dtype=object)


def column_labels(names: list[str] | None, n_features: int) -> list[str]:
    """Return columns as messages name them: their names in quotes, or their numbers."""
    return [f"column {j}" for j in range(n_features)] if names is None else [repr(str(name)) for name in names]


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
    _refuse_masked(weights, "sample_weight", place)
    try:
        w = _real(weights)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight holds something other than real numbers in {place} ({error}).") from error
    if w.shape != (n,):
        raise InputError(f"sample_weight has shape {w.shape} in {place}; expected {n} numbers, one a row.")
    if not ((w >= 0.0) & (w <= HEAVIEST)).all():
        raise InputError(
            f"sample_weight has values in {place} that are negative, not finite or above {HEAVIEST:g}; expected numbers >= 0."
        )
    return w
