"""Lanczos: one Krylov basis, for every regulariser and every strength of it, where matrices are too large to keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh_tridiagonal

from isopleth.backend import Array, namespace
from isopleth.solvers.direct import inner, norm

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Krylov:
    r"""An orthonormal basis V of :math:`b, Ab, A^2 b, \ldots` and the tridiagonal matrix :math:`T = V^\top A V`.

    :math:`f(A)\,b \approx |b|\, V f(T)\, e_1`, exactly where the basis has used up what b contains.

    Parameters
    ----------
    vectors : array of shape (k, *shape of b)
        The basis.
    diagonal : ndarray of shape (k,)
        Of T.
    beside : ndarray of shape (k,)
        Beside it; the last is the norm of what the next vector would be made of.
    norm : float
        |b|.
    """

    vectors: Array
    diagonal: np.ndarray
    beside: np.ndarray
    norm: float

    @property
    def ritz_values(self) -> np.ndarray:
        """Eigenvalues of T, ascending: the outer ones are close to those of A."""
        return self._eigen[0]

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh_tridiagonal(self.diagonal, self.beside[:-1])
        return values, vectors

    def _in_basis(self, function: Function) -> np.ndarray:
        """|b| f(T) e_1."""
        values, vectors = self._eigen
        return np.asarray(self.norm * (vectors @ (function(values) * vectors[0])))

    def apply(self, function: Function) -> Array:
        """f(A) b, approximately."""
        xp = namespace(self.vectors)
        weights = xp.asarray(self._in_basis(function), dtype=self.vectors.dtype, device=self.vectors.device)
        flat = weights @ xp.reshape(self.vectors, (self.vectors.shape[0], -1))
        return xp.reshape(flat, self.vectors.shape[1:])

    def residuals(self, filter: Function, multiplier: Function) -> tuple[float, float]:
        r"""How far :math:`g(A)\,b` and :math:`p(A)\,b` are from settled: what the next vector would have to make up.

        For :math:`g = 1/(\sigma + \alpha)` the first is the relative residual of :math:`(A + \alpha)\,y = b`, and for every p the
        second that of :math:`A c = y` with :math:`y = A\,p(A)\,b`.
        """
        y, c = self._in_basis(filter), self._in_basis(multiplier)
        size = float(np.linalg.norm(y))
        if size == 0.0:
            return 0.0, 0.0
        return float(self.beside[-1] * abs(y[-1]) / self.norm), float(self.beside[-1] * abs(c[-1]) / size)


def lanczos(product: Callable[[Array], Array], b: Array, max_iter: int, enough: Callable[[Krylov], bool]) -> Krylov:
    """Basis of the Krylov space of a symmetric A and `b`, orthogonalised in full.

    Parameters
    ----------
    product : callable
        v -> A v, for arrays of the shape of `b`.
    b : array
        Where to start; not zero.
    max_iter : int
        The most products to take.
    enough : callable
        Asked of the basis now and then, the more seldom the larger it is; stop when it agrees.
    """
    xp = namespace(b)
    size = math.prod(b.shape)
    most = min(max_iter, size)
    basis = xp.empty((most, size), dtype=b.dtype, device=b.device)
    length = norm(b)
    v = xp.reshape(b, (-1,)) / length
    diagonal: list[float] = []
    beside: list[float] = []
    look = 1
    for k in range(most):
        basis[k, :] = v
        image = xp.reshape(product(xp.reshape(v, b.shape)), (-1,))
        diagonal.append(inner(v, image))
        known = basis[: k + 1, :]
        for _ in range(2):  # once is not enough where little is left
            image = image - (known @ image) @ known
        beside.append(norm(image))
        found = Krylov(xp.reshape(known, (k + 1, *b.shape)), np.asarray(diagonal), np.asarray(beside), length)
        used_up = beside[-1] <= 100.0 * float(xp.finfo(b.dtype).eps) * max(abs(a) for a in diagonal)
        if used_up or k + 1 == most or (k + 1 == look and enough(found)):
            return found
        if k + 1 == look:
            look += 1 + look // 8
        v = image / beside[-1]
    raise AssertionError("the loop returns at its last step")


def largest_eigenvalue(product: Callable[[Array], Array], start: Array, max_iter: int = 300) -> float:
    """Of a symmetric positive semi-definite A, to the last digits where the largest is apart from the next."""

    def settled(found: Krylov) -> bool:
        values, vectors = found._eigen
        # The error of a Ritz value falls with the square of its residual.
        return bool(abs(found.beside[-1] * vectors[-1, -1]) <= 1e-7 * values[-1])

    return float(lanczos(product, start, max_iter, settled).ritz_values[-1])
