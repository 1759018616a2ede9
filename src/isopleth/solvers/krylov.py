"""Conjugate gradients for any array library."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh_tridiagonal

from isopleth.core.arrays import Array, namespace
from isopleth.solvers.direct import inner, norm


def conjugate_gradients(
    product: Callable[[Array], Array],
    b: Array,
    *,
    tol: float,
    max_iter: int,
    enough: Callable[[Array], bool] | None = None,
    preconditioner: Callable[[Array], Array] | None = None,
    split: bool = False,
) -> tuple[Array, int]:
    """Solve A x = b for a symmetric positive definite A.

    The iteration stops at |b - A x| <= tol |b|, or when ``enough(residual)`` is True. The preconditioner is close to the
    inverse of A. With `split`, `product` omits the part of A whose inverse it is: the product with that part is updated by
    recurrence, which saves one a step. Returns the last iterate and the number of products.
    """
    xp = namespace(b)
    x = xp.zeros_like(b)
    residual = xp.asarray(b, copy=True)
    goal = tol**2 * inner(b, b)
    direction, image_of_part, previous, n_iter = None, None, 1.0, 0
    while n_iter < max_iter and (size := inner(residual, residual)) > goal:
        if enough is not None and enough(residual):
            break
        ready, reduction = residual, size
        if preconditioner is not None:
            ready = preconditioner(residual)
            reduction = inner(residual, ready)
        ratio = reduction / previous
        direction = ready if direction is None else ready + ratio * direction
        image = product(direction)
        if split:
            image_of_part = residual if image_of_part is None else residual + ratio * image_of_part
            image = image + image_of_part
        curvature = inner(direction, image)
        if not curvature > 0.0:  # only rounding is left
            break
        step, previous = reduction / curvature, reduction
        x = x + step * direction
        residual = residual - step * image
        n_iter += 1
    return x, n_iter


Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Krylov:
    r"""Orthonormal basis V of :math:`b, Ab, A^2 b, \ldots` and the tridiagonal matrix :math:`T = V^\top A V`.

    :math:`f(A)\,b \approx |b|\, V f(T)\, e_1`, exactly if the Krylov space is invariant.
    """

    vectors: Array  # (k, *shape of b): basis
    diagonal: np.ndarray  # (k,): diagonal of T
    # (k,): off-diagonal of T; the last number is the norm of the next vector before it is normalised
    beside: np.ndarray
    norm: float  # |b|

    @property
    def ritz_values(self) -> np.ndarray:
        """Eigenvalues of T, ascending. The extreme ones are close to those of A."""
        return self._eigen[0]

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh_tridiagonal(self.diagonal, self.beside[:-1])
        return values, vectors

    def _in_basis(self, function: Function) -> np.ndarray:
        """Return |b| f(T) e_1."""
        values, vectors = self._eigen
        return np.asarray((self.norm * vectors[0] * function(values)) @ vectors.T)

    def apply(self, function: Function) -> Array:
        """Return an approximation of f(A) b; of several functions if `function` returns a row for each."""
        xp = namespace(self.vectors)
        weights = xp.asarray(self._in_basis(function), dtype=self.vectors.dtype, device=self.vectors.device)
        flat = weights @ xp.reshape(self.vectors, (self.vectors.shape[0], -1))
        return xp.reshape(flat, (*weights.shape[:-1], *self.vectors.shape[1:]))

    def residuals(self, filter: Function, multiplier: Function) -> tuple[np.ndarray, np.ndarray]:
        r"""Return relative residuals of :math:`g(A)\,b` and :math:`p(A)\,b`, from the component along the next vector.

        For :math:`g = 1/(\sigma + \alpha)` the first is the relative residual of :math:`(A + \alpha)\,y = b`, and for every p the
        second that of :math:`A c = y` with :math:`y = A\,p(A)\,b`. Functions may return several rows, as for :meth:`apply`.
        """
        y, c = self._in_basis(filter), self._in_basis(multiplier)
        size = np.linalg.norm(y, axis=-1)
        size = np.where(size == 0.0, np.inf, size)
        return self.beside[-1] * np.abs(y[..., -1]) / self.norm, self.beside[-1] * np.abs(c[..., -1]) / size


# Fewer vectors are hardly ever enough, and an eigendecomposition of few numbers takes longer than a product with a small matrix.
_FIRST_CHECK = 6


def lanczos(product: Callable[[Array], Array], b: Array, max_iter: int, enough: Callable[[Krylov], bool]) -> Krylov:
    """Compute a basis of the Krylov space of a symmetric A and `b`, with full orthogonalisation.

    ``enough(basis)`` is called from _FIRST_CHECK vectors on, less often the larger the basis is; the iteration stops when it
    returns True.
    """
    xp = namespace(b)
    size = math.prod(b.shape)
    most = min(max_iter, size)
    basis = xp.empty((most, size), dtype=b.dtype, device=b.device)
    length = norm(b)
    v = xp.reshape(b, (-1,)) / length
    diagonal: list[float] = []
    beside: list[float] = []
    largest = 0.0
    next_check = _FIRST_CHECK
    for k in range(most):
        basis[k, :] = v
        image = xp.reshape(product(xp.reshape(v, b.shape)), (-1,))
        diagonal.append(inner(v, image))
        known = basis[: k + 1, :]
        for _ in range(2):  # a second time, because digits cancel in the first
            image = image - (known @ image) @ known
        beside.append(norm(image))
        largest = max(largest, abs(diagonal[-1]))
        invariant = beside[-1] <= 100.0 * float(xp.finfo(b.dtype).eps) * largest
        last = invariant or k + 1 == most
        if last or k + 1 == next_check:
            found = Krylov(xp.reshape(known, (k + 1, *b.shape)), np.asarray(diagonal), np.asarray(beside), length)
            if last or enough(found):
                return found
            next_check += 1 + next_check // 8
        v = image / beside[-1]
    raise AssertionError("the loop returns at its last step")


def largest_eigenvalue(product: Callable[[Array], Array], start: Array, max_iter: int = 300) -> float:
    """Return the largest eigenvalue of a symmetric positive semi-definite A, to full precision if the next one is smaller."""

    def converged(found: Krylov) -> bool:
        values, vectors = found._eigen
        # The error of a Ritz value is of the order of the square of its residual.
        return bool(abs(found.beside[-1] * vectors[-1, -1]) <= 1e-7 * values[-1])

    return float(lanczos(product, start, max_iter, converged).ritz_values[-1])
