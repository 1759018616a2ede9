"""Gaussian kernels around centres: their inner products in closed form, and their sums over rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh

from isopleth.backend import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.kernels import Gaussian
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.blocks import Matrix
from isopleth.operators.threads import ONE_BLAS_THREAD, interruptible

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
    n_jobs: int | None = None

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
    n_jobs: int | None = None,
    backend: Backend = NUMPY,
) -> GaussianSystem:
    """The functions around `centers` in the units of the data, at a length scale of each column that `frame` keeps."""
    scaled = frame.scaled(scale)
    log_volume = 0.5 * scaled.dim * float(np.log(np.pi)) + scaled.log_volume
    return GaussianSystem(backend.array(scaled.enter(centers)), log_volume, memory_limit, n_jobs)


def eigenpairs(matrix: Array, norm: Array | None) -> tuple[np.ndarray, Array]:
    r"""Eigenvalues, ascending, and vectors :math:`V` with :math:`V^\top P V = I` for a norm P, the identity when left out.

    The vectors are where the matrix is, the values are of NumPy.
    """
    if isinstance(matrix, np.ndarray):
        # Divide and conquer: the default driver takes twice as long where eigenvalues lie close together.
        driver = "evd" if norm is None else "gvd"
        operations = 9.0 * len(matrix) ** 3
        with ONE_BLAS_THREAD:
            values, vectors = interruptible(operations, eigh, matrix, norm, driver=driver, check_finite=False)
        return values, vectors
    xp = namespace(matrix)
    if norm is None:
        values, vectors = xp.linalg.eigh(matrix)
        return to_numpy(values), vectors
    # The array API has no problem of two matrices: the one of L^-1 H L^-T is the same, P = L L'.
    factor = xp.linalg.cholesky(norm)
    reduced = xp.linalg.solve(factor, xp.linalg.solve(factor, matrix).T)
    values, vectors = xp.linalg.eigh(0.5 * (reduced + reduced.T))
    return to_numpy(values), xp.linalg.solve(factor.T, vectors)


@dataclass(frozen=True)
class PenalizedSpectrum:
    r"""Coordinates in which both the inner products H and the penalised norm P are diagonal.

    :math:`V^\top H V = \operatorname{diag}(D)` and :math:`V^\top P V = I`, so that
    :math:`G = (H + \alpha P)^{-1} = V (D + \alpha)^{-1} V^\top` for every :math:`\alpha`.

    Matrices stay in the array library and on the device of H. Vectors come and go as arrays of NumPy.

    Parameters
    ----------
    gram : array of any library, of shape (b, b)
        H.
    values : array of shape (b,)
        D, ascending, none negative.
    vectors : array of shape (b, b)
        V, where H is.
    """

    gram: Array
    values: np.ndarray
    vectors: Array

    @classmethod
    def of(cls, gram: Array, norm: Array | None = None) -> Self:
        """Of inner products and a norm, the identity when left out."""
        values, vectors = eigenpairs(gram, norm)
        return cls(gram, np.maximum(values, 0.0), vectors)

    @property
    def backend(self) -> Backend:
        """Where the matrices are."""
        return Backend.of(self.vectors)

    @property
    def condition(self) -> float:
        """Largest over smallest eigenvalue, infinite where the smallest is lost in rounding."""
        smallest = self.values[0]
        return float(self.values[-1] / smallest) if smallest > self._rounding else float("inf")

    @property
    def _rounding(self) -> float:
        return len(self.values) * float(np.finfo(np.float64).eps) * float(self.values[-1])

    def check(self, alpha: float) -> None:
        """Refuse a ridge that leaves a system which double precision cannot solve; one without centres is solved."""
        if len(self.values) and self.values[0] + alpha <= self._rounding:
            raise InputError(
                f"alpha = {alpha:.3g} leaves a system that is singular to working precision; use alpha >= "
                f"{10 * self._rounding:.0e}, fewer centers or a smaller length_scale."
            )

    def coordinates(self, b: np.ndarray) -> np.ndarray:
        """V'b for `b` of shape (b, k)."""
        coordinates: np.ndarray = to_numpy(self.vectors.T @ self.backend.array(b))
        return coordinates

    def combined(self, coordinates: np.ndarray) -> np.ndarray:
        """V times `coordinates`, of shape (b,) or (b, k)."""
        combined: np.ndarray = to_numpy(self.vectors @ self.backend.array(coordinates))
        return combined

    def solve(self, b: np.ndarray, alpha: float) -> np.ndarray:
        """G b for `b` of shape (b, k)."""
        return self.combined(self.coordinates(b) / (self.values + alpha)[:, None])

    def squared_size(self, theta: np.ndarray) -> float:
        """theta'H theta."""
        return float(to_numpy(self.backend.array(theta) @ self.gram) @ theta)

    def diagonal(self, matrix: Array) -> np.ndarray:
        """Diagonal of V' `matrix` V."""
        diagonal: np.ndarray = to_numpy(namespace(matrix).sum(self.vectors * (matrix @ self.vectors), axis=0))
        return diagonal

    def dual_weights(self, alpha: float) -> np.ndarray:
        """Eigenvalues of M = 2G - GHG, the form of the dual estimate h'Mh."""
        inverse = 1.0 / (self.values + alpha)
        return (1.0 + alpha * inverse) * inverse


def over_volume(relative: np.ndarray | float, log_volume: np.ndarray | float) -> np.ndarray:
    """`relative` / V, infinite or 0 only where the quotient is."""
    relative = np.asarray(relative, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        size = np.exp(np.log(np.abs(relative)) - log_volume)
    return np.sign(relative) * size


def smallest(relative: np.ndarray, log_volumes: np.ndarray) -> tuple[int, ...]:
    """Where `relative` / V is smallest, V being one number a row, without forming the quotient."""
    with np.errstate(divide="ignore"):
        sizes = np.log(np.abs(relative)) - log_volumes[:, None]
    sign = np.sign(relative)
    place = np.argmax(np.where(sign < 0, sizes, -np.inf)) if (sign < 0).any() else np.argmin(sizes)
    return tuple(int(i) for i in np.unravel_index(place, relative.shape))


def quotient(relative: float, log_volume: float) -> str:
    """`relative` / V in digits, with an exponent that need not fit in double precision."""
    value = float(over_volume(relative, log_volume))
    if relative == 0.0 or 0.0 < abs(value) < math.inf:
        return f"{value:.5g}"
    power, rest = divmod((math.log(abs(relative)) - log_volume) / math.log(10.0), 1.0)
    return f"{math.copysign(10.0**rest, relative):.4f}e{power:+.0f}"
