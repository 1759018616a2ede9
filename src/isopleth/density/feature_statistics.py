"""What Newton's method has to know of the rows for SOSREP in random features: sums, which add over chunks and machines."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from isopleth.backend import Array, namespace
from isopleth.errors import InputError, TooLargeError
from isopleth.operators.random_features import RandomFeatures
from isopleth.operators.threads import ONE_BLAS_THREAD, effective_n_jobs, interruptible, map_threads

# Matrices of all features against all that a solution holds, the sums included.
_MATRICES = 4


def check_memory(size: int, memory_limit: float) -> None:
    """Refuse more features than can be solved for, which takes a matrix of theirs for one thread beside those of the solution.

    Raises
    ------
    InputError
        Naming how many features can be.
    """
    needed = (_MATRICES + 1) * 8 * size**2
    if needed > memory_limit:
        most = int((memory_limit / (8 * (_MATRICES + 1))) ** 0.5) // 2
        raise TooLargeError(
            f"{size} features take {needed / 2**20:.1f} MiB to solve for, and memory_limit is {memory_limit / 2**20:.1f} MiB; "
            + (f"use {most} wave vectors at most, or raise memory_limit." if most else "raise memory_limit."),
            needed,
            memory_limit,
            most,
        )


def continued_log(f: Array, noise: float) -> tuple[Array, Array, Array]:
    r"""log f and its first two derivatives, the second with the sign changed, continued below `noise`.

    Above it, :math:`\log f`; below, its Taylor polynomial of the second degree, which is finite, concave and rising for every
    f, negative ones too:

    .. math:: \log \varepsilon + (t - 1) - \tfrac12 (t - 1)^2, \qquad t = f/\varepsilon.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.density.feature_statistics import continued_log
    >>> continued_log(np.array([2.0, 0.5, -0.5]), 0.5)[1]  # slopes: 1/f, 1/f, and 3/noise - what is left of the barrier
    array([0.5, 2. , 6. ])
    """
    xp = namespace(f)
    t = f / noise
    told = t > 1.0
    safe = xp.where(told, t, xp.ones_like(t))
    value = math.log(noise) + xp.where(told, xp.log(safe), (t - 1.0) - 0.5 * (t - 1.0) ** 2)
    slope = xp.where(told, 1.0 / safe, 2.0 - t) / noise
    curvature = 1.0 / (noise * safe) ** 2
    return value, slope, curvature


@dataclass
class _Sums:
    """Sums of weights times what a row adds."""

    objective: float
    slope: Array
    curvature: Array
    total: float = 0.0
    below: float = 0.0

    def add(self, other: _Sums) -> None:
        self.objective += other.objective
        self.slope += other.slope
        self.curvature += other.curvature
        self.total += other.total
        self.below += other.below


class FeatureStatistics:
    r"""One pass of Newton's method over rows x with weights, for SOSREP in random features.

    With :math:`f = w\cdot\phi`, weights :math:`v_i` of sum V and the logarithm continued below the noise of the features
    (:func:`continued_log`), SOSREP minimises

    .. math:: J(w) = \tfrac12 |w|^2 - \frac1V \sum_i v_i \log f(x_i).

    The sums are :math:`\sum v \log f`, :math:`\sum v\,\phi/f`, :math:`\sum v\,\phi\phi^\top/f^2`, with the continued logarithm
    and its derivatives, :math:`\sum v`, and the weight where f is not told from 0: nothing of the size of the data is kept.
    Sums of parts of the data, taken in any order, in other processes or on other machines, merge to those of all.

    Parameters
    ----------
    features : RandomFeatures
        The features. Their memory limit bounds these sums with all scratch, their threads share the work.
    coefficients : array of shape (T,)
        Where the pass is: w.

    Attributes
    ----------
    total_weight : float
        Sum of the weights.

    Raises
    ------
    InputError
        If there are so many features that a solution does not fit in the memory limit.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Gaussian
    >>> from isopleth.density.feature_statistics import FeatureStatistics
    >>> from isopleth.operators.random_features import RandomFeatures
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> features = RandomFeatures.draw(Gaussian(dim=2), 25, np.random.default_rng(1))
    >>> def sums():
    ...     return FeatureStatistics(features, np.zeros(50))
    >>> one, other = sums().accumulate(z[:300]), sums().accumulate(z[300:])
    >>> bool(np.allclose(one.merge(other).solve(), sums().accumulate(z).solve()))
    True
    """

    def __init__(self, features: RandomFeatures, coefficients: Array) -> None:
        self.features = features
        self.coefficients = coefficients
        check_memory(features.size, features.memory_limit)
        each = 8 * features.size**2
        # Each thread has a matrix of its own; half of the memory is for the features of rows.
        spare = int(0.5 * features.memory_limit / each) - _MATRICES
        self._workers = min(effective_n_jobs(features.n_jobs), max(spare, 1))
        self._free = features.memory_limit - (_MATRICES + self._workers) * each
        self._sums = self._empty()

    def _empty(self) -> _Sums:
        w, size = self.coefficients, self.features.size
        xp = namespace(w)
        square = xp.zeros((size, size), dtype=w.dtype, device=w.device)
        return _Sums(0.0, xp.zeros_like(w), square)

    def accumulate(self, chunk: Array, weights: Any = None) -> Self:
        """Add rows.

        Parameters
        ----------
        chunk : array of shape (n, d)
            Rows in frame coordinates; as many as one likes.
        weights : array of shape (n,), optional
            Their weights, not negative; ones when left out. A weight counts repetitions.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows or weights are not of that kind.
        """
        weights = _checked(chunk, weights, int(self.features.frequencies.shape[1]))
        parts = self.features.blocks(chunk.shape[0], self._free)
        workers = max(1, min(self._workers, len(parts)))

        def some(first: int) -> _Sums:
            out = self._empty()
            for part in parts[first::workers]:
                self._add(chunk[part, :], weights[part], out)
            return out

        for sums in map_threads(some, range(workers), workers):
            self._sums.add(sums)
        return self

    def _add(self, x: Array, v: Array, out: _Sums) -> None:
        xp = namespace(x)
        phi = self.features(x)
        f = phi @ self.coefficients
        value, slope, curvature = continued_log(f, self.features.noise)
        out.objective += float(xp.sum(v * value))
        out.slope += (v * slope) @ phi
        phi *= xp.sqrt(v * curvature)[:, None]
        out.curvature += phi.T @ phi
        out.total += float(xp.sum(v))
        out.below += float(xp.sum(xp.where(f > self.features.noise, xp.zeros_like(v), v)))

    def merge(self, other: FeatureStatistics) -> Self:
        """Add the rows that `other` has seen.

        Parameters
        ----------
        other : FeatureStatistics
            Of the same features and coefficients; left as it is.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If it is of others.
        """
        for what, mine, theirs in (
            ("features", self.features.frequencies, other.features.frequencies),
            ("coefficients", self.coefficients, other.coefficients),
        ):
            if mine.shape != theirs.shape or not bool(namespace(mine).all(mine == theirs)):
                raise InputError(f"sums of other {what} cannot be merged; accumulate with one and the same.")
        self._sums.add(other._sums)
        return self

    def solve(self) -> Array:
        """Newton's step: what to add to the coefficients, an array of shape (T,).

        The matrix of second derivatives is the identity and more, so that there is always a solution.
        """
        xp = namespace(self.coefficients)
        matrix = self._sums.curvature / self._weight()
        matrix += xp.eye(self.features.size, dtype=matrix.dtype, device=matrix.device)
        with ONE_BLAS_THREAD:
            return interruptible(matrix.shape[0] ** 3, xp.linalg.solve, matrix, -self.gradient)

    @property
    def total_weight(self) -> float:
        """V."""
        return self._sums.total

    @property
    def objective(self) -> float:
        """J at the coefficients."""
        return (
            0.5 * float(namespace(self.coefficients).sum(self.coefficients**2)) - self._sums.objective / self._weight()
        )

    @property
    def gradient(self) -> Array:
        """Gradient of J at the coefficients, an array of shape (T,)."""
        return self.coefficients - self._sums.slope / self._weight()

    @property
    def residual(self) -> float:
        r""":math:`|w - \tfrac1V \sum v\,\phi/f| \,/\, |w|`, 1/f being the continued slope; infinite at w = 0."""
        xp = namespace(self.coefficients)
        size = math.sqrt(float(xp.sum(self.coefficients**2)))
        return math.sqrt(float(xp.sum(self.gradient**2))) / size if size > 0.0 else math.inf

    @property
    def share_below(self) -> float:
        """Share of the weight where f is not above the noise of the features."""
        return self._sums.below / self._weight()

    def _weight(self) -> float:
        if not self._sums.total > 0.0:
            raise InputError("no rows of positive weight have been accumulated; there is nothing to solve.")
        return self._sums.total


def _checked(chunk: Array, weights: Any, columns: int) -> Array:
    xp = namespace(chunk)
    if chunk.ndim != 2 or chunk.shape[1] != columns or chunk.dtype not in (xp.float32, xp.float64):
        raise InputError(
            f"chunk has shape {chunk.shape} and dtype {chunk.dtype}; expected {columns} columns, float64 or float32."
        )
    if not bool(xp.all(xp.isfinite(chunk))):
        raise InputError("chunk has values that are not finite; drop their rows first.")
    if weights is None:
        return xp.ones((chunk.shape[0],), dtype=chunk.dtype, device=chunk.device)
    weights = xp.asarray(weights, dtype=chunk.dtype, device=chunk.device)
    if weights.shape != (chunk.shape[0],) or not bool(xp.all(xp.isfinite(weights) & (weights >= 0.0))):
        raise InputError(f"weights: expected {chunk.shape[0]} finite numbers >= 0, one a row of the chunk.")
    return weights


# The sums over all rows at given coefficients.
Pass = Callable[[Array], FeatureStatistics]


@dataclass(frozen=True)
class FeatureSolution:
    """What Newton's method found.

    Parameters
    ----------
    coefficients : array of shape (T,)
        w.
    residual : float
        How far the equations are from being met, relative to \\|w\\|.
    n_iter : int
        Passes over the rows.
    share_below : float
        Share of the weight where f is not above the noise of the features.
    """

    coefficients: Array
    residual: float
    n_iter: int
    share_below: float

    @property
    def report(self) -> dict[str, float]:
        """What an estimator says of it, by attribute."""
        return {"residual_": self.residual, "n_iter_": self.n_iter, "share_below_noise_": self.share_below}


def newton(sums_at: Pass, start: Array, tol: float = 1e-6, max_iter: int = 50) -> FeatureSolution:
    r"""Minimise J of :class:`FeatureStatistics` by Newton's method.

    J is convex with second derivatives between 1 and 1 + T, so that halved steps of sufficient decrease arrive from
    everywhere. From 0, the first step is a ridge regression of a constant on the features: no start with f > 0 is needed.

    Parameters
    ----------
    sums_at : callable
        ``sums_at(w)``: sums over all rows at coefficients w, taken in one process or merged from many.
    start : array of shape (T,)
        Where to begin.
    tol : float
        Largest residual to accept.
    max_iter : int
        Passes to take at most.

    Returns
    -------
    FeatureSolution

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Gaussian
    >>> from isopleth.density.feature_statistics import newton
    >>> from isopleth.density.feature_statistics import FeatureStatistics
    >>> from isopleth.operators.random_features import RandomFeatures
    >>> z = np.random.default_rng(0).normal(size=(1000, 2)) / 2
    >>> features = RandomFeatures.draw(Gaussian(dim=2), 25, np.random.default_rng(1))
    >>> solution = newton(lambda w: FeatureStatistics(features, w).accumulate(z), np.zeros(50))
    >>> f = features.value(z, solution.coefficients)
    >>> bool(np.allclose(features(z).T @ (1 / f) / 1000, solution.coefficients, atol=1e-6))
    True
    """
    xp = namespace(start)
    digits = 500.0 * float(xp.finfo(start.dtype).eps)
    at, n_iter = sums_at(start), 1
    while at.residual > tol and n_iter < max_iter:
        direction = at.solve()
        slope = float(xp.sum(at.gradient * direction))
        rounding = digits * (1.0 + abs(at.objective))
        step, found = 1.0, None
        while found is None and n_iter < max_iter:
            there = sums_at(at.coefficients + step * direction)
            n_iter += 1
            if there.objective <= at.objective + 1e-4 * step * slope + rounding:
                found = there
            step *= 0.5
        if found is None or (-slope <= rounding and found.residual >= at.residual):  # rounding is all that is left
            break
        at = found
    return FeatureSolution(at.coefficients, at.residual, n_iter, at.share_below)
