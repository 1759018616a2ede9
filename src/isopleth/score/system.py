"""The linear system of a score at its samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property

import numpy as np

from isopleth._namespace import HOST, Array, Home, namespace
from isopleth.errors import InputError
from isopleth.score.spaces import Space
from isopleth.score.splitting import Splitting
from isopleth.solvers.eigen import Spectrum
from isopleth.solvers.lanczos import largest_eigenvalue

DENSE = 1200
"""Unknowns up to which an eigendecomposition is quicker than products."""

QUICK = 2**25
"""Operations that one core has done before it could have told another device what to do: some milliseconds."""

STEPS = 60
"""Operations a pair and column, in some steps of an iteration."""


def solving_home(space: Space, z: np.ndarray, home: Home) -> Home:
    """Where the system of samples that came from `home` is set up and solved: there, or on the host if it is so small."""
    rows, columns = z.shape
    size = space.unknowns(rows, columns)
    operations = size**3 / 3 if size <= DENSE else STEPS * rows**2 * columns
    return HOST if operations <= QUICK else home


class SampleSystem:
    r"""The operator L and the right-hand side, seen at the samples and symmetrised by the weights.

    With :math:`A = \sqrt{w} K \sqrt{w}` and :math:`h = \sqrt{w}\,\zeta(X)`, every fitted score is :math:`a\zeta + \sum_m
    \sqrt{w_m} K(\cdot, x_m)\, c_m` with :math:`c = -p(A)\,h`, and :math:`-g(A)\,h` is :math:`\sqrt{w}` times its values at the
    samples. Rows that are no more than their columns span fewer: the system is set up in coordinates of their span.

    Parameters
    ----------
    space : Space
        Where the score is sought.
    z : array of shape (n, d)
        Distinct samples in frame coordinates.
    weights : array of shape (n,)
        Positive, of sum 1.
    base : array of shape (n, d), optional
        Score of a base measure at the samples; what is fitted is the rest.
    whole : bool, default=False
        Keep all columns, where all eigenvalues have to be seen.
    """

    def __init__(
        self, space: Space, z: Array, weights: Array, base: Array | None = None, *, whole: bool = False
    ) -> None:
        xp = namespace(z)
        self.space = space
        self._basis = None if whole else _span(z)
        points = z if self._basis is None else (z - xp.mean(z, axis=0)) @ self._basis
        self.dim = points.shape[1]
        self.root = xp.sqrt(weights)[:, None]
        self._points = points
        self.operator = space.operator(points).store()
        h = space.zeta(points, points, weights)
        self.rhs = self.root * h
        if base is not None:
            self.rhs = self.on(base).rhs

    def on(self, base: Array) -> SampleSystem:
        """The same, for what a base measure with score `base` at the samples leaves over; what is known of the matrix is kept."""
        base = base if self._basis is None else base @ self._basis
        out = copy(self)
        out.rhs = self.rhs + self.product(self.root * base)
        return out

    @property
    def size(self) -> int:
        """Rows of the matrix A."""
        return int(self.space.stack(self.rhs).shape[0])

    @property
    def small(self) -> bool:
        """Whether the whole matrix is the quicker way, and fits."""
        return self.size <= DENSE and self._matrix_bytes <= self.space.memory_limit

    @property
    def _matrix_bytes(self) -> int:
        """Of the matrix and its factor."""
        return int(2 * self.size**2 * namespace(self.rhs).finfo(self.rhs.dtype).bits // 8)

    def product(self, v: Array) -> Array:
        """A v, for `v` of the shape of the right-hand side."""
        return self.root * self.operator.matvec(self.root * v)

    def matrix(self) -> Array:
        """A, for stacked vectors; InputError if it and its factor do not fit in the memory limit."""
        if self._matrix_bytes > self.space.memory_limit:
            raise InputError(
                f"the whole matrix takes {self._matrix_bytes:.1e} bytes, above memory_limit = "
                f"{self.space.memory_limit:g}; raise it, or use a regularizer and solver that take products."
            )
        matrix = self.space.gram(self._points)
        xp = namespace(matrix)
        root = xp.tile(self.root[:, 0], (matrix.shape[0] // self.root.shape[0],))
        matrix *= root[:, None]
        matrix *= root
        return matrix

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors of A."""
        return Spectrum.of(self.matrix())

    @cached_property
    def largest(self) -> float:
        """The largest eigenvalue of A, in all columns."""
        xp = namespace(self.rhs)
        if self.small or "spectrum" in self.__dict__:
            inside = self.spectrum.largest
        else:
            start = Home.of(self.rhs).send(np.random.default_rng(0).normal(size=self.rhs.shape))
            start = xp.astype(start, self.rhs.dtype, copy=False)
            inside = largest_eigenvalue(self.product, start, self.most_vectors())
        outside = None if self._basis is None else self.space.outside_span(self.operator)
        if outside is None:
            return inside
        return max(inside, float(xp.linalg.eigvalsh(outside * (self.root @ self.root.T))[-1]))

    def most_vectors(self) -> int:
        """Krylov vectors that the memory limit leaves room for."""
        xp = namespace(self.rhs)
        bytes_each = math.prod(self.rhs.shape) * xp.finfo(self.rhs.dtype).bits // 8
        return max(10, int(self.space.memory_limit // (2 * bytes_each)))

    def splitting(self, alpha: float) -> Splitting | None:
        """Of A + alpha, or None."""
        return self.space.splitting(self.operator, self._points, self.root, alpha)

    def on_eigenvectors(self, function: Callable[[Array], Array]) -> Array:
        """f(A) h, by the spectrum."""
        return self.space.unstack(self.spectrum.apply(function, self.space.stack(self.rhs)), self.dim)

    def leave(self, v: Array) -> Array:
        """Vectors in the coordinates of the frame."""
        return v if self._basis is None else v @ self._basis.T

    def fitted(self, at_samples: Array) -> Array:
        """The score at the samples, less that of the base, from what a solution has."""
        return self.leave(at_samples / self.root)

    def coefficients(self, multipliers: Array) -> Array:
        """Of the kernels at the samples, from what a solution has."""
        return self.leave(self.root * multipliers)


def _span(z: Array) -> Array | None:
    """Orthonormal basis, as columns, of what the differences of the rows span, where that is less than all."""
    if z.shape[0] > z.shape[1] or z.shape[0] < 2:
        return None
    return namespace(z).linalg.qr((z[1:, :] - z[:1, :]).T, mode="reduced")[0]
