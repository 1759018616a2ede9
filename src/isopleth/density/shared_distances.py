"""Sums of kernels at several length scales, from distances that are computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.kernels import Kernel, Workspace
from isopleth.operators import DISTANCE, Operator

# Matrices of pairs of rows of a fit that are in memory at once: distances, values of the kernel, and scratch of both.
_MATRICES = 6


# Sums below this have lost digits to subnormal terms, or are 0.
_LOST = 1e-3 * math.sqrt(np.finfo(np.float64).smallest_normal)


@dataclass(frozen=True)
class PairValues:
    """Values of a kernel for pairs of rows at several length scales, from their squared distances."""

    kernel: Kernel
    distances: Array  # (n, m), in coordinates in which the length scale is 1
    work: Workspace = field(default_factory=Workspace)
    # Of factors that are powers of 2 of each other, the last one and its values.
    _last: dict[float, tuple[float, Array]] = field(default_factory=dict)

    def scaled(self, factor: float) -> Array:
        """Return squared distances at a multiple of the length scale, in scratch."""
        if not isinstance(self.distances, np.ndarray):
            return self.distances * factor**-2.0
        out = self.work.empty("distances", self.distances.shape, self.distances.dtype)
        return np.multiply(self.distances, factor**-2.0, out=out)

    def at(self, factor: float) -> Array:
        """Return the values at a multiple of the length scale; they overwrite those at twice, four times, ... the multiple."""
        chain = math.frexp(factor)[0]
        last, values = self._last.get(chain, (0.0, None))
        with np.errstate(all="ignore"):  # infinite limits at 0 and underflow of far pairs are correct
            found = self.kernel.at_half_the_scale(values) if last == 2.0 * factor else None
            if found is None:
                found = self.kernel._product(self.scaled(factor), 0, self.work)
                found = self.work.copy(f"values {chain}", found)
        self._last[chain] = factor, found
        return found


@dataclass(frozen=True)
class SharedDistances:
    """Pairs of the rows of a fit, and of other rows with these, of which several length scales are compared."""

    own: PairValues
    others: PairValues

    @classmethod
    def of(cls, kernel: Kernel, z: Array, rows: Array, memory_limit: float, n_jobs: int | None) -> Self | None:
        """Compute the distances of rows `z` and of `rows` to them; None if they do not fit in memory or are no distances."""
        if kernel.by_columns or 8.0 * _MATRICES * len(z) * (len(z) + len(rows)) > memory_limit:
            return None
        limits: dict[str, Any] = {"block": DISTANCE, "memory_limit": memory_limit, "n_jobs": n_jobs}
        pairs = (Operator(kernel, z, **limits).dense(), Operator(kernel, rows, z, **limits).dense())
        return cls(*(PairValues(kernel, distances) for distances in pairs))

    def log_sums(self, factor: float, alpha: Array) -> np.ndarray:
        """Return the logarithms of the sums of kernels at the other rows; where they underflow, as log-sum-exps of the terms."""
        sums = np.abs(np.asarray(to_numpy(self.others.at(factor) @ alpha)))
        with np.errstate(divide="ignore"):
            out = np.log(sums)
        lost, kernel = np.flatnonzero(sums < _LOST), self.others.kernel
        if len(lost) and kernel.nonnegative:
            xp = namespace(alpha)
            far = xp.take(self.others.distances, Backend.of(alpha).array(lost), axis=0)
            terms = kernel.log(far * factor**-2.0) + xp.log(alpha)
            top = xp.max(terms, axis=1)
            finite = xp.where(top == -xp.inf, xp.zeros_like(top), top)
            out[lost] = to_numpy(finite + xp.log(xp.sum(xp.exp(terms - finite[:, None]), axis=1)))
        return out

    def log_square_integral(self, factor: float, alpha: Array) -> float:
        """Return the logarithm of the integral of the square of the sum, in units of the multiple of the length scale."""
        convolution = self.own.kernel.self_convolution()
        with np.errstate(all="ignore"):
            products = convolution.psi(self.own.scaled(factor), self.own.work) @ alpha
        return convolution.log_constant + math.log(float(namespace(alpha).sum(alpha * products)))
