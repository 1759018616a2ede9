"""Gaussian kernels around centres: their inner products in closed form, and their sums over rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.errors import InputError
from isopleth.kernels import Gaussian
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.blocks import Matrix

MATRICES = 8
"""How many matrices of the size of H a fit holds at once, LAPACK's workspace among them."""

NUGGET = 1e-8
"""Added to the norm of the RKHS, whose matrix is singular to working precision for centres that lie densely."""


def fits_within(centers: int, memory_limit: float) -> int:
    """How many fits with so many centres the memory limit lets run side by side.

    Raises
    ------
    InputError
        If it is none.
    """
    needed = 8 * MATRICES * centers**2
    if needed > memory_limit:
        most = max(1, math.isqrt(int(memory_limit) // (8 * MATRICES)))
        raise InputError(
            f"{centers} centers need {needed / 1e9:.2g} GB, more than memory_limit; use centers = {most} or fewer, or raise "
            "memory_limit."
        )
    return int(memory_limit // needed)


@dataclass(frozen=True)
class GaussianSystem:
    r"""The functions :math:`\psi_l(x) = e^{-|x - c_l|^2/2}` in a frame where their length scale is 1.

    Whatever integrates over x is relative to the volume :math:`V = \pi^{d/2} \prod_j \sigma_j`, in which the inner product
    of a function with itself is 1; its logarithm is all that is ever formed of it.

    Parameters
    ----------
    centers : array of shape (b, d)
        The c_l in frame coordinates.
    log_volume : float
        log V, in the units of the data.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.
    """

    centers: np.ndarray
    log_volume: float
    memory_limit: float = DEFAULT_MEMORY_LIMIT
    n_jobs: int | None = None

    def _operator(self, x: np.ndarray, y: np.ndarray, **block: Any) -> Operator:
        kernel = Gaussian(dim=x.shape[1])
        return Operator(kernel, x, y, memory_limit=self.memory_limit, n_jobs=self.n_jobs, **block)

    def gram(self) -> np.ndarray:
        r"""Inner products over V, :math:`H_{lm} = e^{-|c_l - c_m|^2/4}`."""
        convolution = Gaussian(dim=self.centers.shape[1]).self_convolution()
        block = Matrix("inner products", lambda kernel: convolution.psi)
        return self._symmetric(self._operator(self.centers, self.centers, block=block).dense())

    def norm(self, penalty: str) -> np.ndarray | None:
        """Matrix of the squared norm that is penalised; None for the coefficients' own."""
        if penalty == "l2":
            return None
        matrix = self._symmetric(self._operator(self.centers, self.centers).dense())
        matrix[np.diag_indices_from(matrix)] += NUGGET
        return matrix

    @staticmethod
    def _symmetric(matrix: np.ndarray) -> np.ndarray:
        return 0.5 * (matrix + matrix.T)

    def sums(self, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Sums of each function over the rows `z` for `weights` of shape (n, k), of shape (b, k)."""
        return self._operator(self.centers, z).matvec(weights)

    def values(self, z: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Sums over the centres at the rows `z` for `coefficients` of shape (b, k), of shape (n, k)."""
        return self._operator(z, self.centers).matvec(coefficients)

    def chunks(self, n: int) -> Iterator[slice]:
        """Parts of `n` rows whose values at all functions fit in the memory limit."""
        step = max(1, int(self.memory_limit / (32 * len(self.centers))))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def matrix(self, z: np.ndarray) -> np.ndarray:
        """Values of all functions at the rows `z`, of shape (n, b)."""
        return self._operator(z, self.centers).dense()

    def covariance(self, z: np.ndarray, weights: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Weighted covariance of the functions over rows, divided by the sum of the weights."""
        out = np.zeros((len(self.centers), len(self.centers)))
        counted = weights > 0
        z, share = z[counted], weights[counted] / weights.sum()
        for part in self.chunks(len(z)):
            centred = (self.matrix(z[part]) - mean) * np.sqrt(share[part])[:, None]
            out += centred.T @ centred
        return out
