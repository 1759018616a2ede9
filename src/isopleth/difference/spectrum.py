"""One eigendecomposition of H for every ridge, estimate and permutation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh

from isopleth.backend import Array, Backend, namespace, to_numpy
from isopleth.errors import InputError
from isopleth.operators.threads import ONE_BLAS_THREAD, interruptible


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
