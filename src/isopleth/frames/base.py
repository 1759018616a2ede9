"""Base classes of frames and of the maps that they fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.errors import InputError
from isopleth.core.scales import FARTHEST


class Frame(ABC):
    """Rule that fits an invertible map to rows; a frozen dataclass of parameters.

    To write a frame, define :meth:`fit`, which returns a :class:`FrameMap`.
    """

    @abstractmethod
    def fit(self, rows: np.ndarray, weights: np.ndarray) -> FrameMap:
        """Fit the map.

        Parameters
        ----------
        rows : array of shape (n, d)
            Finite rows in float64; every column varies. Rows may be equal.
        weights : array of shape (n,)
            Positive weights of any sum. A row of weight 2 counts as two rows.

        Returns
        -------
        FrameMap
            The map.
        """


@dataclass(frozen=True)
class MapAt:
    r"""A map at rows: all that a density and its gradient need, of one pass.

    Parameters
    ----------
    rows : array of shape (n, d)
        T(x).
    log_volume : array of shape (n,)
        :math:`\log |\det T'(x)|`.
    grad_log_volume : array of shape (n, d)
        Its gradient in x.
    pullback : callable
        Returns T'(x)^T v for a vector v at each row.
    """

    rows: Array
    log_volume: Array
    grad_log_volume: Array
    pullback: Callable[[Array], Array]

    @classmethod
    def of_columns(cls, rows: Array, log_slopes: Array, gradients: Array) -> MapAt:
        """Return that of a map of columns, from log t' and its derivatives."""
        xp = namespace(rows)
        return cls(rows, xp.sum(log_slopes, axis=1), gradients, lambda V: xp.exp(log_slopes) * V)

    def then(self, other: MapAt) -> MapAt:
        """Return that of both maps, `other` at the rows of this one."""
        return MapAt(
            other.rows,
            self.log_volume + other.log_volume,
            self.grad_log_volume + self.pullback(other.grad_log_volume),
            lambda V: self.pullback(other.pullback(V)),
        )


class FrameMap(ABC):
    r"""Invertible map z = T(x) of rows with its log-volume; a frozen dataclass that holds arrays, numbers and other maps only.

    Methods take and return arrays of shape (n, d). `affine` states that T' is constant, `by_columns` that T_j depends on x_j
    alone.

    Notes
    -----
    A density p_z and a score s_z of the mapped rows give those of the rows by

    .. math:: \log p(x) = \log p_z(T(x)) + \log |\det T'(x)|, \qquad s(x) = T'(x)^\top s_z(T(x)) + \nabla \log |\det T'(x)|.
    """

    affine: ClassVar[bool] = False
    by_columns: ClassVar[bool] = False

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of columns."""

    @abstractmethod
    def forward(self, X: Array) -> Array:
        """Return T(x) of each row."""

    @abstractmethod
    def inverse(self, Z: Array) -> Array:
        """Return the rows x with T(x) = z."""

    @abstractmethod
    def log_volume(self, X: Array) -> Array:
        r"""Return :math:`\log |\det T'(x)|` of each row, of shape (n,)."""

    @abstractmethod
    def grad_log_volume(self, X: Array) -> Array:
        """Return the gradient of the log-volume in x."""

    @abstractmethod
    def pullback(self, X: Array, V: Array) -> Array:
        """Return T'(x)^T v for a vector v at each row: gradients in z become gradients in x."""

    @abstractmethod
    def pushforward(self, X: Array, V: Array) -> Array:
        """Return T'(x) v for a vector v at each row: directions in x become directions in z."""

    def at(self, X: Array) -> MapAt:
        """Return the map at rows; to be overridden where its parts have work in common."""
        return MapAt(self.forward(X), self.log_volume(X), self.grad_log_volume(X), partial(self.pullback, X))

    def laplacian_log_volume(self, X: Array) -> Array:
        """Return the Laplacian of the log-volume in x, of shape (n,).

        Raises
        ------
        InputError
            If the second derivatives of the map are not defined, or too wild to be used.
        """
        raise self._refusal()

    def laplacian(self, X: Array) -> Array:
        """Return the Laplacian in x of each coordinate of T, of shape (n, d).

        The divergence of a score that is pulled back is div s(x) = tr(T'^T s_z' T') + s_z . laplacian + laplacian_log_volume.

        Raises
        ------
        InputError
            As :meth:`laplacian_log_volume`.
        """
        raise self._refusal()

    def _refusal(self) -> InputError:
        """Return the error of a map without second derivatives."""
        name = type(self).__name__.removesuffix("Map")
        return InputError(
            f"frame {name} has no second derivatives that could be used; take frame='scale', 'whiten' or 'smooth'.",
            parameter="frame",
        )


class ColumnMap(FrameMap):
    """Map of each column by itself.

    A subclass defines `dim`, :meth:`forward`, :meth:`inverse`, :meth:`log_slopes` and :meth:`log_slope_gradients`; second
    derivatives need :meth:`log_slope_curvatures`, and densities of some of the columns need :meth:`take`.
    """

    by_columns: ClassVar[bool] = True

    @abstractmethod
    def log_slopes(self, X: Array) -> Array:
        """Return log t_j'(x_j) of each cell."""

    @abstractmethod
    def log_slope_gradients(self, X: Array) -> Array:
        """Return the derivative of log t_j' in x_j of each cell."""

    def log_slope_curvatures(self, X: Array) -> Array:
        """Return the second derivative of log t_j' in x_j of each cell."""
        raise self._refusal()

    @abstractmethod
    def take(self, columns: np.ndarray) -> ColumnMap:
        """Return the map of some of the columns, given by their places."""

    def log_volume(self, X: Array) -> Array:
        return namespace(X).sum(self.log_slopes(X), axis=1)

    def grad_log_volume(self, X: Array) -> Array:
        return self.log_slope_gradients(X)

    def laplacian_log_volume(self, X: Array) -> Array:
        return namespace(X).sum(self.log_slope_curvatures(X), axis=1)

    def at(self, X: Array) -> MapAt:
        return MapAt.of_columns(self.forward(X), self.log_slopes(X), self.log_slope_gradients(X))

    def pullback(self, X: Array, V: Array) -> Array:
        return namespace(X).exp(self.log_slopes(X)) * V

    def pushforward(self, X: Array, V: Array) -> Array:
        return self.pullback(X, V)  # T' is diagonal

    def laplacian(self, X: Array) -> Array:
        return namespace(X).exp(self.log_slopes(X)) * self.log_slope_gradients(X)


def by_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Compute a method of a map by NumPy, and return the result on the device of its argument."""

    @wraps(method)
    def computed(self: Any, X: Array) -> Array:
        return Backend.of(X).array(method(self, np.asarray(to_numpy(X), dtype=np.float64)))

    return computed


def like(a: np.ndarray, X: Array) -> Array:
    """Return the NumPy array `a` in the library, precision and on the device of `X`."""
    if isinstance(X, np.ndarray):
        return a
    return namespace(X).asarray(a, dtype=X.dtype, device=X.device)


def farthest(X: Array) -> float:
    """Return the limit of coordinates in the precision of `X`, the square of which does not overflow."""
    return FARTHEST if "64" in str(X.dtype) else FARTHEST**0.1


def limited(Z: Array) -> Array:
    """Return coordinates, limited so that no square overflows."""
    return namespace(Z).clip(Z, -farthest(Z), farthest(Z))


def check_nonnegative(name: str, value: Any) -> None:
    """Refuse a parameter that is not a finite nonnegative number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) < np.inf:
        raise InputError(f"{name} = {value!r}: expected a nonnegative number.", parameter=name)


# Levels between which values are averaged, and the mean of a standard normal variable between the upper two.
QUARTILES, QUARTILE_MEAN = np.array([0.2, 0.3, 0.7, 0.8]), 0.6773
ENDS, END_MEAN = np.array([0.02, 0.1, 0.9, 0.98]), 1.5885
