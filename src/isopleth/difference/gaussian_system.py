"""Gaussian kernels around centres: their inner products in closed form, and their sums over rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.backend import NUMPY, Array, Backend, to_numpy
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.kernels import Gaussian
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.blocks import Matrix
from isopleth.operators.threads import DEFAULT_N_JOBS

# How many matrices of the size of H a fit holds at once, LAPACK's workspace among them.
MATRICES = 8

# Added to the norm of the RKHS, whose matrix is singular to working precision for centres that lie densely.
NUGGET = 1e-8


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

    What is of the size of the rows, and the matrices of the centres, is computed where the centres are; sums over rows, values
    at rows, their weights and coefficients are arrays of NumPy.

    Parameters
    ----------
    centers : array of any library, of shape (b, d)
        The c_l in frame coordinates.
    log_volume : float
        log V, in the units of the data.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.
    """

    centers: Array
    log_volume: float
    memory_limit: float = DEFAULT_MEMORY_LIMIT
    n_jobs: int | None = DEFAULT_N_JOBS

    @property
    def backend(self) -> Backend:
        """Where the centres are."""
        return Backend.of(self.centers)

    def _operator(self, x: Array, y: Array, **block: Any) -> Operator:
        x, y = self.backend.array(x), self.backend.array(y)
        kernel = Gaussian(dim=x.shape[1])
        return Operator(kernel, x, y, memory_limit=self.memory_limit, n_jobs=self.n_jobs, **block)

    def gram(self) -> Array:
        r"""Inner products over V, :math:`H_{lm} = e^{-|c_l - c_m|^2/4}`."""
        convolution = Gaussian(dim=self.centers.shape[1]).self_convolution()
        block = Matrix("inner products", lambda kernel: convolution.psi)
        return self._symmetric(self._operator(self.centers, self.centers, block=block).dense())

    def norm(self, penalty: str) -> Array | None:
        """Matrix of the squared norm that is penalised; None for the coefficients' own."""
        if penalty == "l2":
            return None
        matrix = self._symmetric(self._operator(self.centers, self.centers).dense())
        return matrix + self.backend.array(NUGGET * np.eye(matrix.shape[0]))

    @staticmethod
    def _symmetric(matrix: Array) -> Array:
        return 0.5 * (matrix + matrix.T)

    def sums(self, z: Array, weights: np.ndarray) -> np.ndarray:
        """Sums of each function over the rows `z` for `weights` of shape (n, k), of shape (b, k)."""
        sums: np.ndarray = to_numpy(self._operator(self.centers, z).matvec(self.backend.array(weights)))
        return sums

    def values(self, z: Array, coefficients: np.ndarray) -> np.ndarray:
        """Sums over the centres at the rows `z` for `coefficients` of shape (b, k), of shape (n, k)."""
        values: np.ndarray = to_numpy(self._operator(z, self.centers).matvec(self.backend.array(coefficients)))
        return values

    def chunks(self, n: int) -> Iterator[slice]:
        """Parts of `n` rows whose values at all functions fit in the memory limit."""
        step = max(1, int(self.memory_limit / (32 * self.centers.shape[0])))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def matrix(self, z: Array) -> Array:
        """Values of all functions at the rows `z`, of shape (n, b)."""
        return self._operator(z, self.centers).dense()


def system_of(
    frame: Frame,
    scale: np.ndarray,
    centers: np.ndarray,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
    backend: Backend = NUMPY,
) -> GaussianSystem:
    """The functions around `centers` in the units of the data, at a length scale of each column that `frame` keeps."""
    scaled = frame.scaled(scale)
    log_volume = 0.5 * scaled.dim * float(np.log(np.pi)) + scaled.log_volume
    return GaussianSystem(backend.array(scaled.enter(centers)), log_volume, memory_limit, n_jobs)
