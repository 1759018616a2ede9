"""Sums of kernels at several length scales, from distances that are computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.budget import Budget
from isopleth.kernels import Kernel, Workspace
from isopleth.operators import DISTANCE, Operator

# Matrices of pairs of rows of a fit that are in memory at once: distances, values of the kernel, and scratch of both.
_MATRICES = 6


# Sums below this have lost digits to subnormal terms, or are 0.
_LOST = 1e-3 * math.sqrt(np.finfo(np.float64).smallest_normal)


@dataclass(frozen=True)
class SharedDistances:
    """Squared distances of the rows of a fit, and of other rows to these, of which several length scales are compared."""

    kernel: Kernel
    # In coordinates in which the length scale is 1: "own" distances, (n, n), and those of "others", (m, n).
    squares: dict[str, Array]
    work: Workspace
    # Of factors that are powers of 2 of each other, the last one and its values, by the slot of these.
    _last: dict[str, tuple[float, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, kernel: Kernel, z: Array, rows: Array, budget: Budget, work: Workspace) -> Self | None:
        """Compute the distances of rows `z` and of `rows` to them; None if they do not fit in memory or are no distances."""
        if kernel.by_columns or 8.0 * _MATRICES * len(z) * (len(z) + len(rows)) > budget.memory:
            return None
        squares = {}
        for name, x in (("own", z), ("others", rows)):
            op = Operator(kernel, x, None if x is z else z, block=DISTANCE, budget=budget)
            host = isinstance(x, np.ndarray)
            squares[name] = op.dense(work.empty(f"{name} distances", op.shape, x.dtype) if host else None)
        return cls(kernel, squares, work)

    def _scaled(self, slot: str, name: str, factor: float) -> Array:
        """Return squared distances at a multiple of the length scale, in scratch."""
        distances = self.squares[name]
        if not isinstance(distances, np.ndarray):
            return distances * factor**-2.0
        return np.multiply(distances, factor**-2.0, out=self.work.empty(slot, distances.shape, distances.dtype))

    def values(self, name: str, factor: float) -> Array:
        """Return values of the kernel at a multiple of the length scale, in the memory of those at twice the multiple.

        They are those for all pairs of rows of the fit ("own"), or for the "others" and the rows of the fit.
        """
        slot = f"{name} {math.frexp(factor)[0]}"
        last, values = self._last.get(slot, (0.0, None))
        with np.errstate(all="ignore"):  # infinite limits at 0 and underflow of far pairs are correct
            found = self.kernel.at_half_the_scale(values) if last == 2.0 * factor else None
            if found is None:
                scaled = self._scaled(slot, name, factor)
                found = self.kernel._product(scaled, 0, self.work)
                if found is not scaled:
                    found = self.work.copy(slot, found)
        self._last[slot] = factor, found
        return found

    def log_sums(self, factor: float, alpha: Array) -> np.ndarray:
        """Return the logarithms of the sums of kernels at the other rows; where they underflow, as log-sum-exps of the terms."""
        sums = np.abs(np.asarray(to_numpy(self.values("others", factor) @ alpha)))
        with np.errstate(divide="ignore"):
            out = np.log(sums)
        lost = np.flatnonzero(sums < _LOST)
        if len(lost) and self.kernel.nonnegative:
            xp = namespace(alpha)
            far = xp.take(self.squares["others"], Backend.of(alpha).array(lost), axis=0)
            terms = self.kernel.log(far * factor**-2.0) + xp.log(alpha)
            top = xp.max(terms, axis=1)
            finite = xp.where(top == -xp.inf, xp.zeros_like(top), top)
            out[lost] = to_numpy(finite + xp.log(xp.sum(xp.exp(terms - finite[:, None]), axis=1)))
        return out

    def log_square_integral(self, factor: float, alpha: Array) -> float:
        """Return the logarithm of the integral of the square of the sum, in units of the multiple of the length scale."""
        convolution = self.kernel.self_convolution()
        with np.errstate(all="ignore"):
            products = convolution.psi(self._scaled("scaled distances", "own", factor), self.work) @ alpha
        return convolution.log_constant + math.log(float(namespace(alpha).sum(alpha * products)))
