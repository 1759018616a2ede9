"""Direct solvers: Cholesky factorisation and eigendecomposition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from isopleth.core.arrays import Array, namespace
from isopleth.core.errors import InputError
from isopleth.core.threads import ONE_BLAS_THREAD, interruptible
from isopleth.operators.vector_blocks import times_each


class Shifted:
    r"""Factorised matrix :math:`A + \alpha I`, A positive semi-definite, for any number of right-hand sides."""

    def __init__(self, matrix: Array, alpha: float, *, overwrite: bool = False) -> None:
        try:
            self._solve = factorised(plus_identity(matrix, alpha, overwrite=overwrite))
        except singular(matrix) as error:
            raise InputError(
                f"alpha = {alpha:g} is lost in the rounding of {matrix.dtype} eigenvalues; use a larger alpha."
            ) from error

    def solve(self, b: Array) -> Array:
        """Return the solution for `b` of shape (n,) or (n, k)."""
        return self._solve(b)


def plus_identity(matrix: Array, alpha: float, *, overwrite: bool = False) -> Array:
    r"""Return :math:`A + \alpha I`, in the memory of A if that may be overwritten."""
    xp = namespace(matrix)
    out = matrix if overwrite else xp.asarray(matrix, copy=True)
    if isinstance(out, np.ndarray):
        out.flat[:: len(out) + 1] += alpha
    else:
        out += alpha * xp.eye(out.shape[0], dtype=out.dtype, device=out.device)
    return out


def singular(a: Array) -> tuple[type[Exception], ...]:
    """Return the exceptions that the library of `a` raises for a matrix that it cannot factorise."""
    return np.linalg.LinAlgError, getattr(namespace(a).linalg, "LinAlgError", np.linalg.LinAlgError)


def factorised(matrix: Array) -> Callable[[Array], Array]:
    """Return a function that solves with a symmetric positive definite `matrix`, which may be overwritten."""
    if isinstance(matrix, np.ndarray):
        n = float(len(matrix))
        with ONE_BLAS_THREAD:
            factor = interruptible(n**3 / 3, cho_factor, matrix, lower=True, overwrite_a=True, check_finite=False)

        def solve(b: Array) -> Array:
            with ONE_BLAS_THREAD:
                return interruptible(2 * n * b.size, cho_solve, factor, b, check_finite=False)

        return solve
    xp = namespace(matrix)
    lower = xp.linalg.cholesky(matrix)
    if hasattr(xp, "cholesky_solve"):
        return lambda b: xp.cholesky_solve(b, lower) if b.ndim == 2 else xp.cholesky_solve(b[:, None], lower)[:, 0]
    # The standard has no triangular solve.
    return lambda b: xp.linalg.solve(lower.T, xp.linalg.solve(lower, b))


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix."""

    values: Array  # (n,): ascending
    vectors: Array  # (n, n): eigenvectors are its columns

    @classmethod
    def of(cls, matrix: Array) -> Self:
        """Compute them for a symmetric `matrix`, of which only one triangle is read."""
        with ONE_BLAS_THREAD:
            values, vectors = interruptible(9.0 * matrix.shape[0] ** 3, namespace(matrix).linalg.eigh, matrix)
        return cls(values, vectors)

    @property
    def largest(self) -> float:
        """The largest eigenvalue."""
        return float(self.values[-1])

    def apply(self, function: Callable[[Array], Array], b: Array) -> Array:
        """Return f(A) b for `b` of shape (n, k); `function` gets all eigenvalues.

        If `function` returns a row for each of r functions, the result has the shape (r, n, k).
        """
        with ONE_BLAS_THREAD:
            return times_each(self.vectors, function(self.values)[..., None] * (self.vectors.T @ b))


def inner(a: Array, b: Array) -> float:
    """Return the sum of products of two arrays of the same shape."""
    product = a * b  # not dot, which sums float32 with more rounding
    # For few numbers NumPy's function takes twice the time of its method.
    return float(product.sum() if isinstance(product, np.ndarray) else namespace(product).sum(product))


def norm(a: Array) -> float:
    """Return the root of the sum of squares."""
    return math.sqrt(inner(a, a))
