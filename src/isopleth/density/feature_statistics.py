"""Newton's method for SOSREP in random features, by sums over the rows that add over chunks and machines."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from isopleth.core.arrays import Array, namespace
from isopleth.core.budget import Budget
from isopleth.core.errors import refuse_too_large
from isopleth.core.progress import Progress
from isopleth.core.threads import ONE_BLAS_THREAD, interruptible, map_threads
from isopleth.operators.features import RandomFeatures

# Matrices over all pairs of features that a solution holds, including the sums.
_MATRICES = 4


def check_memory(size: int, budget: Budget) -> None:
    """Refuse more features than fit in memory: the matrices of a solution and one more for a thread."""
    each = 8 * (_MATRICES + 1)
    most = int((budget.memory / each) ** 0.5) // 2
    refuse_too_large(f"{size} features", each * size**2, budget.memory, f"use {most} wave vectors at most", most)


def continued_log(f: Array, noise: float) -> tuple[Array, Array, Array]:
    """Return log f, its first and minus its second derivative; below `noise` it goes on as a parabola, finite for every f."""
    xp = namespace(f)
    t = f / noise
    above = t > 1.0
    safe = xp.where(above, t, xp.ones_like(t))
    value = math.log(noise) + xp.where(above, xp.log(safe), (t - 1.0) - 0.5 * (t - 1.0) ** 2)
    slope = xp.where(above, 1.0 / safe, 2.0 - t) / noise
    curvature = 1.0 / (noise * safe) ** 2
    return value, slope, curvature


@dataclass
class _Sums:
    """Weighted sums over rows."""

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
    r"""Sums of one Newton pass of SOSREP in random features, which merge over parts of the data in any order.

    With :math:`f = w\cdot\phi`, SOSREP minimises :math:`\tfrac12 |w|^2 - \sum_i v_i \log f(x_i) / \sum_i v_i`, the logarithm
    continued below the noise (:func:`continued_log`).
    """

    def __init__(self, features: RandomFeatures, coefficients: Array) -> None:
        self.features = features
        self.coefficients = coefficients
        each = 8 * features.size**2
        # Each thread has its own matrix; half of the memory is for the features of rows.
        spare = int(0.5 * features.budget.memory / each) - _MATRICES
        self._workers = min(features.budget.threads, max(spare, 1))
        self._free = features.budget.memory - (_MATRICES + self._workers) * each
        self._sums = self._empty()

    def _empty(self) -> _Sums:
        w, size = self.coefficients, self.features.size
        xp = namespace(w)
        square = xp.zeros((size, size), dtype=w.dtype, device=w.device)
        return _Sums(0.0, xp.zeros_like(w), square)

    def accumulate(self, chunk: Array, weights: Array) -> Self:
        """Add rows with their weights."""
        blocks = self.features.blocks(chunk.shape[0], self._free)
        workers = max(1, min(self._workers, len(blocks)))

        def every_nth(first: int) -> _Sums:
            out = self._empty()
            for block in blocks[first::workers]:
                self._add(chunk[block, :], weights[block], out)
                tick()
            return out

        with Progress("pass over the rows", len(blocks), self.features.budget.verbose) as tick:
            for sums in map_threads(every_nth, range(workers), workers):
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
        """Add the sums of `other`, which has the same features and coefficients."""
        self._sums.add(other._sums)
        return self

    def solve(self) -> Array:
        """Return the Newton step (T,). Its matrix, the identity plus a positive semi-definite one, is never singular."""
        xp = namespace(self.coefficients)
        matrix = self._sums.curvature / self._sums.total
        matrix += xp.eye(self.features.size, dtype=matrix.dtype, device=matrix.device)
        with ONE_BLAS_THREAD:
            return interruptible(matrix.shape[0] ** 3, xp.linalg.solve, matrix, -self.gradient)

    @property
    def objective(self) -> float:
        """Value of J at the coefficients."""
        return (
            0.5 * float(namespace(self.coefficients).sum(self.coefficients**2))
            - self._sums.objective / self._sums.total
        )

    @property
    def gradient(self) -> Array:
        """Gradient of J at the coefficients, an array of shape (T,)."""
        return self.coefficients - self._sums.slope / self._sums.total

    @property
    def residual(self) -> float:
        r"""Relative residual :math:`|w - \tfrac1V \sum v\,\phi/f| \,/\, |w|` with the extrapolated 1/f; infinite at w = 0."""
        xp = namespace(self.coefficients)
        size = math.sqrt(float(xp.sum(self.coefficients**2)))
        return math.sqrt(float(xp.sum(self.gradient**2))) / size if size > 0.0 else math.inf

    @property
    def share_below(self) -> float:
        """Share of the weight where f is not above the noise of the features."""
        return self._sums.below / self._sums.total


# Returns the sums over all rows at given coefficients.
Pass = Callable[[Array], FeatureStatistics]


@dataclass(frozen=True)
class FeatureSolution:
    """Result of Newton's method."""

    coefficients: Array  # (T,): coefficients w
    residual: float  # relative residual of the equations
    n_iter: int  # number of passes over the rows
    share_below: float  # share of the weight where f is not above the noise of the features

    @property
    def facts(self) -> dict[str, float]:
        """Facts of the solution that a fitted value keeps, by name."""
        return {"residual": self.residual, "n_iter": self.n_iter, "share_below_noise": self.share_below}


def newton(sums_at: Pass, start: Array, tol: float = 1e-6, max_iter: int = 50) -> FeatureSolution:
    """Minimise J of :class:`FeatureStatistics` by Newton's method.

    J is convex with second derivatives between 1 and 1 + T, so that step halving until the decrease is sufficient converges from
    every start. From 0, the first step is a ridge regression of a constant on the features, so no start with f > 0 is needed.
    ``sums_at(w)`` returns the sums over all rows, computed in one process or merged from many.
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
        if found is None or (-slope <= rounding and found.residual >= at.residual):  # only rounding errors are left
            break
        at = found
    return FeatureSolution(at.coefficients, at.residual, n_iter, at.share_below)
