"""Sinh-arcsinh frame: a smooth map of each column with two parameters of shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.core.arrays import Array, namespace
from isopleth.core.laws import quantile_means
from isopleth.core.scales import deviations
from isopleth.frames.base import (
    END_MEAN,
    ENDS,
    QUARTILE_MEAN,
    QUARTILES,
    ColumnMap,
    Frame,
    check_nonnegative,
    farthest,
    like,
    limited,
)

# Farther rows, in units of a robust deviation, are fitted as if they were there: one of them shall not decide the shape.
_FARTHEST_FITTED = 4.0

# Newton's method takes 5 to 30 steps.
_STEPS, _DECREMENT = 200, 1e-20


@dataclass(frozen=True)
class SinhArcsinhMap(ColumnMap):
    r"""Map :math:`t = \sinh(\delta \operatorname{arsinh}(y) - \epsilon)`, y = (x - shift)/scale, of each column.

    Parameters
    ----------
    shift, scale : arrays of shape (d,)
        Centre and positive scale.
    tail, skew : arrays of shape (d,)
        :math:`\delta > 0`, which is less than 1 for heavy tails, and :math:`\epsilon`, which has the sign of the skewness.
    """

    shift: np.ndarray
    scale: np.ndarray
    tail: np.ndarray
    skew: np.ndarray

    @property
    def dim(self) -> int:
        return len(self.shift)

    def _enter(self, X: Array) -> tuple[Array, Array, Array]:
        """Return y, the argument of sinh, and delta."""
        with np.errstate(over="ignore"):
            y = limited((X - like(self.shift, X)) / like(self.scale, X))
        xp, delta = namespace(X), like(self.tail, X)
        largest = float(np.log(farthest(y)))
        return y, xp.clip(delta * xp.asinh(y) - like(self.skew, X), -largest, largest), delta

    def forward(self, X: Array) -> Array:
        return namespace(X).sinh(self._enter(X)[1])

    def inverse(self, Z: Array) -> Array:
        xp = namespace(Z)
        y = xp.sinh((xp.asinh(Z) + like(self.skew, Z)) / like(self.tail, Z))
        return y * like(self.scale, Z) + like(self.shift, Z)

    def log_slopes(self, X: Array) -> Array:
        xp = namespace(X)
        y, u, _ = self._enter(X)
        return xp.logaddexp(u, -u) - 0.5 * xp.log1p(y * y) + like(np.log(0.5 * self.tail / self.scale), X)

    def log_slope_gradients(self, X: Array) -> Array:
        xp = namespace(X)
        y, u, delta = self._enter(X)
        square = 1.0 + y * y
        return (delta * xp.tanh(u) / xp.sqrt(square) - y / square) / like(self.scale, X)

    def log_slope_curvatures(self, X: Array) -> Array:
        xp = namespace(X)
        y, u, delta = self._enter(X)
        square, tanh = 1.0 + y * y, xp.tanh(u)
        bend = delta * delta * (1.0 - tanh * tanh) - delta * tanh * y / xp.sqrt(square) - (1.0 - y * y) / square
        return bend / square / like(self.scale, X) ** 2

    def take(self, columns: np.ndarray) -> SinhArcsinhMap:
        return SinhArcsinhMap(self.shift[columns], self.scale[columns], self.tail[columns], self.skew[columns])


@dataclass(frozen=True)
class SinhArcsinh(Frame):
    r"""Frame in which each column has about the skewness and the tails of a normal one; infinitely smooth.

    :math:`t = \sinh(\delta \operatorname{arsinh}(y) - \epsilon)` [1]_, with y the column shifted and scaled by quantiles.
    :math:`\delta` and :math:`\epsilon` maximise the likelihood that t is standard normal, less a penalty towards the identity,
    :math:`\delta = 1, \epsilon = 0`. Rows beyond four robust deviations count as if they were there. The objective is a concave
    function of both, so there is one solution, which is continuous in the rows.

    Parameters
    ----------
    penalty : float, default=0.02
        Factor of :math:`(\delta - 1)^2 + \epsilon^2`, in nats a row.

    Raises
    ------
    InputError
        If `penalty` is negative or no number.

    References
    ----------
    .. [1] M. C. Jones and A. Pewsey, "Sinh-arcsinh distributions", Biometrika 96, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.frames import SinhArcsinh
    >>> rows = np.random.default_rng(0).standard_t(3, size=(1000, 1))
    >>> fitted = SinhArcsinh().fit(rows, np.ones(1000))
    >>> bool(fitted.tail[0] < 0.9), bool(abs(fitted.skew[0]) < 0.1)
    (True, True)
    >>> bool(abs(fitted.forward(rows)).max() < 5 < abs(rows / rows.std()).max())
    True
    """

    penalty: float = 0.02

    def __post_init__(self) -> None:
        check_nonnegative("penalty", self.penalty)

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> SinhArcsinhMap:
        share = weights / weights.sum()
        low, _, high = quantile_means(rows, share, QUARTILES)
        lowest, middle, highest = quantile_means(rows, share, ENDS)
        wide = (highest - lowest) / (2 * END_MEAN)
        scale = np.maximum((high - low) / (2 * QUARTILE_MEAN), 0.3 * wide)
        scale = np.maximum(scale, 1e-6 * deviations(rows, share))  # most values may be equal
        scale = np.where(scale > 0.0, scale, 1.0)  # or all, without the rows of a fold
        farthest_fitted = np.where(wide > 0.0, _FARTHEST_FITTED * wide / scale, np.inf)
        a = np.arcsinh(np.clip(limited((rows - middle) / scale), -farthest_fitted, farthest_fitted))
        shape = np.array([self._shape(column, share) for column in a.T])
        return SinhArcsinhMap(middle, scale, shape[:, 0], shape[:, 1])

    def _shape(self, a: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return delta and epsilon for a column arsinh(y), by Newton's method with backtracking."""
        v = np.array([3.0 / max(3.0, np.abs(a).max()), 0.0])
        loss = self._loss(v, a, share)
        for _ in range(_STEPS):
            gradient, hessian = self._derivatives(v, a, share)
            step = np.linalg.solve(hessian, gradient)
            decrement = float(gradient @ step)
            size = 1.0 if decrement < 1e-8 else self._backtrack(v, step, loss, decrement, a, share)
            v = v - size * step
            loss = self._loss(v, a, share)
            if decrement < _DECREMENT:
                break
        return v

    def _backtrack(
        self, v: np.ndarray, step: np.ndarray, loss: float, decrement: float, a: np.ndarray, share: np.ndarray
    ) -> float:
        """Return the size of a Newton step that lowers the loss enough."""
        size = 1.0
        while not self._loss(v - size * step, a, share) <= loss - 0.1 * size * decrement:
            size *= 0.5
        return size

    def _loss(self, v: np.ndarray, a: np.ndarray, share: np.ndarray) -> float:
        """Return the penalised negative log likelihood of the two parameters of the shape."""
        if v[0] <= 0.0:
            return np.inf
        u = v[0] * a - v[1]
        with np.errstate(over="ignore"):
            terms = 0.5 * np.sinh(u) ** 2 - np.logaddexp(u, -u)
        return float(share @ terms - np.log(v[0]) + self.penalty * ((v[0] - 1.0) ** 2 + v[1] ** 2))

    def _derivatives(self, v: np.ndarray, a: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the Hessian of the loss."""
        u = v[0] * a - v[1]
        tanh = np.tanh(u)
        slope, curvature = share * (0.5 * np.sinh(2 * u) - tanh), share * (np.cosh(2 * u) - 1.0 + tanh**2)
        p = 2.0 * self.penalty
        gradient = np.array([slope @ a - 1.0 / v[0] + p * (v[0] - 1.0), -slope.sum() + p * v[1]])
        mixed = -(curvature @ a)
        hessian = np.array([[curvature @ a**2 + 1.0 / v[0] ** 2 + p, mixed], [mixed, curvature.sum() + p + 1e-12]])
        return gradient, hessian
