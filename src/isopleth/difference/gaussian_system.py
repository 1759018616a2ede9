"""Gaussian kernels around centres: their inner products in closed form, and their sums over rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh

from isopleth.core.arrays import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.core.scales import ScaledColumns
from isopleth.core.threads import ONE_BLAS_THREAD, interruptible, slices
from isopleth.kernels import Gaussian
from isopleth.operators import Operator
from isopleth.operators.blocks import Matrix

# Matrices of the size of H that a fit holds at once, including LAPACK's workspace.
MATRICES = 8

# Added to the diagonal of the RKHS norm, which is singular to working precision for dense centres.
NUGGET = 1e-8


def fits_within(centers: int, budget: Budget) -> int:
    """Return how many fits with this number of centres fit in the memory limit at the same time."""
    needed = 8 * MATRICES * centers**2
    most = max(1, math.isqrt(int(budget.memory) // (8 * MATRICES)))
    refuse_too_large(f"{centers} centers", needed, budget.memory, f"use centers = {most} or fewer", most)
    return int(budget.memory // needed)


@dataclass(frozen=True)
class GaussianSystem:
    r"""The functions :math:`\psi_l(x) = e^{-|x - c_l|^2/2}` in a frame where their length scale is 1.

    Integrals are divided by the volume :math:`V = \pi^{d/2} \prod_j \sigma_j`, so that the inner product of a function with
    itself is 1; only log V is computed, because V overflows in many columns. Kernel sums and matrices of centres are on their
    backend.
    """

    centers: Array  # (b, d): c_l in frame coordinates
    log_volume: float  # log V, in the units of the data
    budget: Budget = DEFAULT_BUDGET
    # (d,): factors of the coordinates in inner products, for coordinates of categories
    stretch: np.ndarray | None = None

    @property
    def backend(self) -> Backend:
        """Array library and device of the centres."""
        return Backend.of(self.centers)

    def _operator(self, x: Array, y: Array, **block: Any) -> Operator:
        x, y = self.backend.array(x), self.backend.array(y)
        return Operator(Gaussian(dim=x.shape[1]), x, y, budget=self.budget, **block)

    def gram(self) -> Array:
        r"""Return the inner products over V, :math:`H_{lm} = e^{-|c_l - c_m|^2/4}`."""
        convolution = Gaussian(dim=self.centers.shape[1]).self_convolution()
        block = Matrix("inner products", lambda kernel: convolution.psi)
        centers = self.centers if self.stretch is None else self.centers * self.backend.array(self.stretch)
        return self._symmetric(self._operator(centers, centers, block=block).dense())

    def norm(self, penalty: str) -> Array | None:
        """Return the matrix of the penalised squared norm; None for the norm of the coefficients."""
        if penalty == "l2":
            return None
        matrix = self._symmetric(self._operator(self.centers, self.centers).dense())
        return matrix + self.backend.array(NUGGET * np.eye(matrix.shape[0]))

    @staticmethod
    def _symmetric(matrix: Array) -> Array:
        return 0.5 * (matrix + matrix.T)

    def sums(self, z: Array, weights: np.ndarray) -> np.ndarray:
        """Return weighted sums of each function over the rows `z`, of shape (b, k) for `weights` of shape (n, k)."""
        sums: np.ndarray = to_numpy(self._operator(self.centers, z).matvec(self.backend.array(weights)))
        return sums

    def values(self, z: Array, coefficients: np.ndarray) -> np.ndarray:
        """Return linear combinations of the functions at the rows `z`, of shape (n, k) for `coefficients` of shape (b, k)."""
        values: np.ndarray = to_numpy(self._operator(z, self.centers).matvec(self.backend.array(coefficients)))
        return values

    def chunks(self, n: int) -> list[slice]:
        """Split `n` rows into slices for which the values of all functions fit in the memory limit."""
        return slices(n, self.budget.memory / (32 * self.centers.shape[0]))

    def matrix(self, z: Array) -> Array:
        """Return the values of all functions at the rows `z`, of shape (n, b)."""
        return self._operator(z, self.centers).dense()


@dataclass(frozen=True)
class CategoryCoordinates:
    r"""Coordinates of categories among those of the functions, over which functions are summed and not integrated.

    At a length scale :math:`\sigma` two unlike of m categories, whose points are D apart, have the kernel
    :math:`\rho = e^{-D^2 / 2 \sigma^2}`, and equal ones 1. The sum of the product of two such functions over all categories is
    :math:`1 + (m - 1) \rho^2` for functions of equal categories, and :math:`2 \rho + (m - 2) \rho^2` for others.
    """

    blocks: tuple[slice, ...]  # coordinates of each categorical column
    sizes: tuple[int, ...]  # m
    distances: tuple[float, ...]  # D, in the units of the coordinates
    dim: int  # number of all coordinates

    @property
    def mask(self) -> np.ndarray:
        """Mask of the coordinates of categories."""
        out = np.zeros(self.dim, dtype=bool)
        for block in self.blocks:
            out[block] = True
        return out

    def measured(self, scale: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return log V, and the factors that make :math:`e^{-|c - c'|^2/4}` the inner product over V in these coordinates."""
        numbers = scale[~self.mask]
        log_volume = 0.5 * len(numbers) * math.log(math.pi) + float(np.log(numbers).sum())
        stretch = np.ones(self.dim)
        for block, m, distance in zip(self.blocks, self.sizes, self.distances, strict=True):
            log_rho = -0.5 * (distance / scale[block][0]) ** 2
            rho = math.exp(log_rho)
            equal = math.log1p((m - 1) * rho**2)
            unlike = log_rho + math.log(2.0 + (m - 2) * rho) - equal
            log_volume += equal
            stretch[block] = math.sqrt(2.0 * unlike / log_rho)
        return log_volume, stretch


def system_of(
    frame: ScaledColumns,
    scale: np.ndarray,
    centers: np.ndarray,
    budget: Budget = DEFAULT_BUDGET,
    backend: Backend = NUMPY,
    categories: CategoryCoordinates | None = None,
) -> GaussianSystem:
    """Return the functions for `centers` in the units of the data, with one length scale for each column that `frame` keeps."""
    scaled = frame.scaled(scale)
    if categories is not None:
        log_volume, stretch = categories.measured(scale)
        return GaussianSystem(backend.array(scaled.enter(centers)), log_volume, budget, stretch)
    log_volume = 0.5 * scaled.dim * float(np.log(np.pi)) + scaled.log_volume
    return GaussianSystem(backend.array(scaled.enter(centers)), log_volume, budget)


def eigenpairs(matrix: Array, norm: Array | None) -> tuple[np.ndarray, Array]:
    r"""Return ascending eigenvalues (NumPy) and vectors with :math:`V^\top P V = I` for a norm P (default: the identity)."""
    if isinstance(matrix, np.ndarray):
        # Divide and conquer: the default driver takes twice as long if eigenvalues are close together.
        driver = "evd" if norm is None else "gvd"
        operations = 9.0 * len(matrix) ** 3
        with ONE_BLAS_THREAD:
            values, vectors = interruptible(operations, eigh, matrix, norm, driver=driver, check_finite=False)
        return values, vectors
    xp = namespace(matrix)
    if norm is None:
        values, vectors = xp.linalg.eigh(matrix)
        return to_numpy(values), vectors
    # The array API has no generalised eigenproblem; that of L^-1 H L^-T with P = L L' is equivalent.
    factor = xp.linalg.cholesky(norm)
    reduced = xp.linalg.solve(factor, xp.linalg.solve(factor, matrix).T)
    values, vectors = xp.linalg.eigh(0.5 * (reduced + reduced.T))
    return to_numpy(values), xp.linalg.solve(factor.T, vectors)


@dataclass(frozen=True)
class PenalizedSpectrum:
    r"""Coordinates in which both the inner products H and the penalised norm P are diagonal.

    :math:`V^\top H V = \operatorname{diag}(D)` and :math:`V^\top P V = I`, so that
    :math:`G = (H + \alpha P)^{-1} = V (D + \alpha)^{-1} V^\top` for every :math:`\alpha`.

    Matrices stay in the array library and on the device of H. Vectors are passed and returned as NumPy arrays.
    """

    gram: Array  # (b, b): H
    values: np.ndarray  # (b,): D, ascending, none negative
    vectors: Array  # (b, b): V, on the backend of H

    @classmethod
    def of(cls, gram: Array, norm: Array | None = None) -> Self:
        """Decompose inner products relative to a norm (default: the identity)."""
        values, vectors = eigenpairs(gram, norm)
        return cls(gram, np.maximum(values, 0.0), vectors)

    @property
    def backend(self) -> Backend:
        """Array library and device of the matrices."""
        return Backend.of(self.vectors)

    @property
    def condition(self) -> float:
        """Largest over smallest eigenvalue; infinite if the smallest is below rounding error."""
        smallest = self.values[0]
        return float(self.values[-1] / smallest) if smallest > self._rounding else float("inf")

    @property
    def _rounding(self) -> float:
        return len(self.values) * float(np.finfo(np.float64).eps) * float(self.values[-1])

    def check(self, alpha: float) -> None:
        """Raise an `InputError` if the ridge leaves a system that is singular to working precision."""
        if len(self.values) and self.values[0] + alpha <= self._rounding:
            raise InputError(
                f"alpha = {alpha:.3g} leaves a system that is singular to working precision; use alpha >= "
                f"{10 * self._rounding:.0e}, fewer centers or a smaller length_scale."
            )

    def coordinates(self, b: np.ndarray) -> np.ndarray:
        """Return V'b for `b` of shape (b, k)."""
        coordinates: np.ndarray = to_numpy(self.vectors.T @ self.backend.array(b))
        return coordinates

    def combined(self, coordinates: np.ndarray) -> np.ndarray:
        """Return V times `coordinates` of shape (b,) or (b, k)."""
        combined: np.ndarray = to_numpy(self.vectors @ self.backend.array(coordinates))
        return combined

    def solve(self, b: np.ndarray, alpha: float) -> np.ndarray:
        """Return G b for `b` of shape (b, k)."""
        return self.combined(self.coordinates(b) / (self.values + alpha)[:, None])

    def squared_size(self, theta: np.ndarray) -> float:
        """Return theta'H theta."""
        return float(to_numpy(self.backend.array(theta) @ self.gram) @ theta)

    def diagonal(self, matrix: Array) -> np.ndarray:
        """Return the diagonal of V' `matrix` V."""
        diagonal: np.ndarray = to_numpy(namespace(matrix).sum(self.vectors * (matrix @ self.vectors), axis=0))
        return diagonal

    def dual_weights(self, alpha: float) -> np.ndarray:
        """Return the eigenvalues of M = 2G - GHG, the matrix of the dual estimate h'Mh."""
        inverse = 1.0 / (self.values + alpha)
        return (1.0 + alpha * inverse) * inverse


def over_volume(relative: np.ndarray | float, log_volume: np.ndarray | float) -> np.ndarray:
    """Return `relative` / V from log V; infinite or 0 only if the quotient over- or underflows."""
    relative = np.asarray(relative, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        size = np.exp(np.log(np.abs(relative)) - log_volume)
    return np.sign(relative) * size


def smallest(relative: np.ndarray, log_volumes: np.ndarray) -> tuple[int, ...]:
    """Return the index of the smallest `relative` / V, with one V for each row, without computing the quotient."""
    with np.errstate(divide="ignore"):
        sizes = np.log(np.abs(relative)) - log_volumes[:, None]
    sign = np.sign(relative)
    place = np.argmax(np.where(sign < 0, sizes, -np.inf)) if (sign < 0).any() else np.argmin(sizes)
    return tuple(int(i) for i in np.unravel_index(place, relative.shape))


def quotient(relative: float, log_volume: float) -> str:
    """Format `relative` / V, also if its exponent exceeds the range of double precision."""
    value = float(over_volume(relative, log_volume))
    if relative == 0.0 or 0.0 < abs(value) < math.inf:
        return f"{value:.5g}"
    power, rest = divmod((math.log(abs(relative)) - log_volume) / math.log(10.0), 1.0)
    return f"{math.copysign(10.0**rest, relative):.4f}e{power:+.0f}"
