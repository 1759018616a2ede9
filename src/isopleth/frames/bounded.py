"""Bounded columns: their map to the real line, and the Jacobian of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.special import expit

from isopleth.core.arrays import Array
from isopleth.core.errors import InputError, meant
from isopleth.core.parameters import on_host
from isopleth.frames.base import ColumnMap, by_numpy
from isopleth.frames.marginal import MarginalMap

_LARGEST = 1e300  # so that the distance to a bound does not overflow
_LEAST_DIGITS = 1e4  # steps of double precision that a column must span as a logarithm
_PAIR = "a pair (low, high) of numbers, with None for an end that is open"


@dataclass(frozen=True)
class BoundedMap(ColumnMap):
    r"""Map :math:`y = \log(x - a) - \log(b - x)` of each column to the real line, without the term of an open end.

    With a lower bound a, y is a logarithm; with an upper bound b, it is minus a logarithm; with both, it is a logit. Columns
    without bounds are not changed. y always increases with x.

    Parameters
    ----------
    low, high : arrays of shape (n_features,)
        The bounds a and b; infinite for open ends.
    """

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, bounds: Any, labels: list[str], names: list[str] | None) -> Self:
        """Parse bounds as a user states them.

        Parameters
        ----------
        bounds : None, mapping or sequence
            None; a mapping from names or numbers of columns to (low, high); or one (low, high) for each column.
        labels : list of str
            The columns as messages name them.
        names : list of str, optional
            Names of the columns, if they have names.

        Raises
        ------
        InputError
            If a column does not exist, or a value is not a pair of increasing bounds.
        """
        low, high = np.full(len(labels), -np.inf), np.full(len(labels), np.inf)
        for j, pair in _by_column(on_host(bounds, "bounds"), labels, names):
            low[j], high[j] = _ends(pair, labels[j])
        return cls(low, high)

    def inside(self, X: np.ndarray) -> np.ndarray:
        """Return a mask of the cells of `X`, of shape (n, n_features), that are strictly inside the bounds, or missing."""
        return np.asarray(((self.low < X) & (self.high > X)) | np.isnan(X))

    def check(self, X: np.ndarray, counted: np.ndarray, labels: list[str]) -> None:
        """Refuse rows to fit that are not strictly inside.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Rows.
        counted : array of shape (n,), bool
            Mask of the rows of positive weight.
        labels : list of str
            The columns as messages name them.

        Raises
        ------
        InputError
            If a cell is on or beyond a bound, or bounds are so far from a column that its logarithm or logit loses all digits.
        """
        bad = ~self.inside(X) & counted[:, None]
        if not bad.any():
            self._check_digits(X[counted], labels)
            return
        i, j = np.argwhere(bad)[0]
        end, side = (self.low[j], "lower") if X[i, j] <= self.low[j] else (self.high[j], "upper")
        place = "on" if X[i, j] == end else "below" if side == "lower" else "above"
        raise InputError(
            f"row {i} of X has {float(X[i, j])!r} in {labels[j]}, {place} the {side} bound {float(end)!r} (rows on or beyond "
            f"its bounds: {int(bad[:, j].sum())}); move the bound outwards, leave it out, or drop those rows."
        )

    def refuse_outside(self, rows: np.ndarray, labels: list[str]) -> None:
        """Refuse rows of one part that are not strictly inside, as :meth:`check` does for all rows.

        Raises
        ------
        InputError
            If a cell is on or beyond a bound; the message names the value and the column of the first one.
        """
        bad = ~self.inside(rows)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            ends = f"({float(self.low[j])!r}, {float(self.high[j])!r})"
            raise InputError(
                f"X has {float(rows[i, j])!r} in {labels[j]}, on or beyond its bounds {ends} "
                f"(such rows there: {int(bad[:, j].sum())}); move the bound outwards, leave it out, or drop those rows."
            )

    def _check_digits(self, X: np.ndarray, labels: list[str]) -> None:
        """Refuse bounds so far away that the logarithms of distances from them are equal up to rounding."""
        Y = self.forward(X)
        for j, _, _ in self._bounded():
            steps = np.ptp(Y[:, j]) / np.spacing(np.abs(Y[:, j]).max())
            if steps < _LEAST_DIGITS and X[:, j].min() < X[:, j].max():
                raise InputError(
                    f"bounds of {labels[j]} are so far from its values that their logarithms are equal up to rounding; leave "
                    "these bounds out, which changes nothing that far away, or move them nearer."
                )

    @property
    def dim(self) -> int:
        return len(self.low)

    @by_numpy
    def forward(self, X: np.ndarray) -> np.ndarray:
        Y = X.copy()
        for j, low, high in self._bounded():
            Y[:, j] = 0.0
            if np.isfinite(low):
                Y[:, j] += np.log(X[:, j] - low)
            if np.isfinite(high):
                Y[:, j] -= np.log(high - X[:, j])
        return Y

    @by_numpy
    def inverse(self, Z: np.ndarray) -> np.ndarray:
        """Return rows strictly inside the bounds, also where rounding would reach a bound."""
        X = Z.copy()
        for j, low, high in self._bounded():
            y = Z[:, j]
            with np.errstate(over="ignore"):
                if np.isinf(high):
                    x = low + np.exp(y)
                elif np.isinf(low):
                    x = high - np.exp(-y)
                else:  # from the nearer end, to lose no digits
                    x = np.where(y < 0.0, low + (high - low) * expit(y), high - (high - low) * expit(-y))
            X[:, j] = np.clip(x, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
        return X

    @by_numpy
    def log_slopes(self, X: np.ndarray) -> np.ndarray:
        out = np.zeros(X.shape)
        for j, low, high in self._bounded():
            if np.isfinite(low):
                out[:, j] -= np.log(X[:, j] - low)
            if np.isfinite(high):
                out[:, j] -= np.log(high - X[:, j])
            if np.isfinite(low) and np.isfinite(high):
                out[:, j] += np.log(high - low)
        return out

    @by_numpy
    def log_slope_gradients(self, X: np.ndarray) -> np.ndarray:
        return self._inverse_distances(X, 1)

    @by_numpy
    def log_slope_curvatures(self, X: np.ndarray) -> np.ndarray:
        return self._inverse_distances(X, 2)

    def _inverse_distances(self, X: np.ndarray, power: int) -> np.ndarray:
        """Return 1/(b - x)^power + (-1)^power/(x - a)^power, without the term of an open end."""
        out = np.zeros(X.shape)
        with np.errstate(over="ignore"):
            for j, low, high in self._bounded():
                if np.isfinite(low):
                    out[:, j] += (-1.0) ** power / (X[:, j] - low) ** power
                if np.isfinite(high):
                    out[:, j] += 1.0 / (high - X[:, j]) ** power
        return out

    def pullback(self, X: Array, V: Array) -> Array:
        with np.errstate(over="ignore"):
            return super().pullback(X, V)

    def take(self, columns: np.ndarray) -> BoundedMap:
        """Return the bounds of some of the columns."""
        return BoundedMap(self.low[columns], self.high[columns])

    @property
    def curved(self) -> np.ndarray:
        """Mask of the columns whose mean is not that of their coordinates."""
        return np.asarray(np.isfinite(self.low) | np.isfinite(self.high))

    def _bounded(self) -> Iterator[tuple[int, float, float]]:
        """Yield the number, the lower and the upper bound of each bounded column."""
        for j in np.flatnonzero(np.isfinite(self.low) | np.isfinite(self.high)):
            yield int(j), float(self.low[j]), float(self.high[j])


@dataclass(frozen=True)
class BoundedMarginalMap(BoundedMap):
    """Map of bounded columns to the real line, and then of each column to a normal one.

    Parameters
    ----------
    marginal : MarginalMap
        The second map.
    """

    marginal: MarginalMap

    @by_numpy
    def forward(self, X: np.ndarray) -> np.ndarray:
        return self.marginal.forward(super().forward(X))

    @by_numpy
    def inverse(self, Z: np.ndarray) -> np.ndarray:
        return super().inverse(self.marginal.inverse(Z))

    @by_numpy
    def log_slopes(self, X: np.ndarray) -> np.ndarray:
        return super().log_slopes(X) + self.marginal.log_slopes(super().forward(X))

    @by_numpy
    def log_slope_gradients(self, X: np.ndarray) -> np.ndarray:
        inner = self.marginal.log_slope_gradients(super().forward(X))
        return super().log_slope_gradients(X) + np.exp(super().log_slopes(X)) * inner

    @by_numpy
    def log_slope_curvatures(self, X: np.ndarray) -> np.ndarray:
        raise self._refusal()

    def take(self, columns: np.ndarray) -> BoundedMarginalMap:
        """Return the map of some of the columns."""
        return BoundedMarginalMap(self.low[columns], self.high[columns], self.marginal.take(columns))

    @property
    def curved(self) -> np.ndarray:
        """Mask of the columns whose mean is not that of their coordinates: all."""
        return np.ones(self.dim, dtype=bool)


def _by_column(bounds: Any, labels: list[str], names: list[str] | None) -> list[tuple[int, Any]]:
    """Return pairs of a column number and the bounds given for it."""
    if bounds is None:
        return []
    if isinstance(bounds, Mapping):
        places = [(_column(key, labels, names), pair) for key, pair in bounds.items()]
        for j in {j for j, _ in places if [i for i, _ in places].count(j) > 1}:
            raise InputError(f"bounds names {labels[j]} twice, by name and by number; keep one of the two.")
        return places
    try:
        pairs = list(bounds)
    except TypeError as error:
        raise InputError(
            f"bounds = {bounds!r}: expected None, one pair (low, high) for each column, or a dict from columns to pairs."
        ) from error
    if len(pairs) != len(labels):
        raise InputError(
            f"bounds has {len(pairs)} pairs; expected one for each of {len(labels)} columns, or a dict of some columns."
        )
    return list(enumerate(pairs))


def _column(key: Any, labels: list[str], names: list[str] | None) -> int:
    """Return the number of the column that bounds name."""
    if isinstance(key, str):
        if names is None:
            raise InputError(f"bounds names column {key!r}, but X has no column names; use the column's number.")
        if key not in names:
            raise InputError(
                f"bounds names column {key!r}, which X does not have{meant([key], names)}; it has {', '.join(labels)}."
            )
        return names.index(key)
    if isinstance(key, bool) or not isinstance(key, Integral) or int(key) not in range(len(labels)):
        raise InputError(
            f"bounds names column {key!r}; expected a column's name or number from 0 to {len(labels) - 1}."
        )
    name = repr(str(key))
    if name in labels and labels[int(key)] != name:  # a data frame whose column names are numbers
        raise InputError(
            f"bounds names column {key!r}, which is the name of one column and the number of {labels[int(key)]}; give one pair "
            "(low, high) a column, or rename the columns."
        )
    return int(key)


def _ends(pair: Any, label: str) -> tuple[float, float]:
    """Return the two ends of a pair of bounds as numbers."""
    pair = on_host(pair, f"bounds of {label}")
    try:
        low, high = pair
    except (TypeError, ValueError) as error:
        raise InputError(f"bounds of {label} = {pair!r}: expected {_PAIR}.") from error
    low, high = _end(low, -np.inf, pair, label), _end(high, np.inf, pair, label)
    if low >= high:
        raise InputError(f"bounds of {label} = {pair!r}: the lower bound must be less than the upper one.")
    return low, high


def _end(end: Any, unbounded: float, pair: Any, label: str) -> float:
    """Return one end of a pair of bounds, infinite where it is None."""
    if end is None:
        return unbounded
    if isinstance(end, bool) or not isinstance(end, Real) or math.isnan(end):
        raise InputError(f"bounds of {label} = {pair!r}: expected {_PAIR}.")
    if _LARGEST < abs(float(end)) < math.inf:
        raise InputError(f"bounds of {label} = {pair!r}: expected numbers up to {_LARGEST:g}, or None.")
    return float(end)
