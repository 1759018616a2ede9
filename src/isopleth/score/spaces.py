r"""Spaces of vector fields with a diagonal or a curl-free kernel, in which scores are fitted.

All formulas are at unit length scale, for rows in frame coordinates. A scalar kernel k defines the matrix-valued kernels

.. math:: K(x, y) = k I \quad\text{(diagonal)}, \qquad K(x, y) = -\nabla_x\nabla_x^\top k \quad\text{(curl-free)},

and :math:`\zeta(x) = \sum_m w_m \operatorname{div}_{x_m} K(x_m, x)` estimates minus the image of the true score under
:math:`L s = \sum_m w_m K(x_m, \cdot)\, s(x_m)`. The curl-free kernel has a factor of the squared length scale, unlike that of the
paper, so that alpha is dimensionless.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isopleth.core.arrays import Array, namespace
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.errors import InputError
from isopleth.core.threads import interruptible
from isopleth.kernels import SDO, Kernel, Sobolev
from isopleth.kernels.directed import DirectedPairs
from isopleth.operators import (
    BILAPLACIAN,
    CURL_FREE,
    FLUX,
    FLUX_OF_LAPLACIAN,
    GRADIENT,
    GRADIENT_OF_LAPLACIAN,
    LAPLACIAN,
    SLOPE,
    VALUE,
    Block,
    Operator,
)
from isopleth.operators.vector_blocks import StoredBend
from isopleth.solvers import conjugate_gradients
from isopleth.solvers.direct import norm, plus_identity, singular

# Fewest columns for which a splitting saves steps, and most rows for which its inverse costs less than it saves.
_MANY_COLUMNS, _FEW_ROWS = 16, 4096


@dataclass(frozen=True)
class Space(ABC):
    """Space of vector fields with a matrix-valued kernel.

    Coefficients are arrays of shape (m, d), one vector for each point. Points may have fewer columns than the kernel's dimension:
    they are coordinates in a subspace that contains all points, and formulas keep the dimension of the kernel.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the rows.
    budget : Budget
        Memory and threads of its sums.

    Raises
    ------
    InputError
        If the kernel is not smooth enough; the message names one that is.
    """

    kernel: Kernel
    budget: Budget = DEFAULT_BUDGET

    # Name in messages.
    name: ClassVar[str]

    # Least smoothness of a kernel for which zeta is defined at the samples.
    least_smoothness: ClassVar[float]

    # Numbers that stored products keep for each pair of samples.
    pair_numbers: ClassVar[int]

    _product_block: ClassVar[Block]
    _flux_block: ClassVar[Block]
    _flux_sign: ClassVar[float]

    def __post_init__(self) -> None:
        if self.kernel.smoothness < self.least_smoothness:
            raise InputError(
                f"{self.kernel!r} is too rough for {self.name} scores; use {_smoother(self.kernel, self.least_smoothness)}."
            )

    def _sum(self, block: Block, x: Array, y: Array | None, v: Array) -> Array:
        return self._operator(block, x, y).matvec(v)

    def _operator(self, block: Block, x: Array, y: Array | None) -> Operator:
        """Return the sums of a block over points within the limits of the space."""
        return Operator(self.kernel, x, y, block=block, budget=self.budget, dim=self.kernel.bound_dim)

    def operator(self, x: Array, y: Array | None = None) -> Operator:
        """Return the operator that multiplies coefficients, (m, d) to (n, d)."""
        return self._operator(self._product_block, x, y)

    @abstractmethod
    def gram(self, x: Array, y: Array | None = None) -> Array:
        """Return the matrix of :meth:`operator` for stacked coefficients."""

    @abstractmethod
    def stack(self, v: Array) -> Array:
        """Reshape vectors (m, d) to right-hand sides of a matrix from :meth:`gram`."""

    @abstractmethod
    def unstack(self, v: Array, dim: int) -> Array:
        """Invert :meth:`stack`, for vectors of `dim` columns."""

    @abstractmethod
    def unknowns(self, rows: int, columns: int) -> int:
        """Return the number of rows of the matrix for this number of distinct points, in coordinates of their span."""

    @abstractmethod
    def zeta(self, x: Array, samples: Array, weights: Array) -> Array:
        """Return zeta at the rows of `x`, of shape (n, d), for samples with weights of sum 1."""

    @abstractmethod
    def zeta_divergence(self, x: Array, samples: Array, weights: Array) -> Array:
        """Return the divergence of zeta at the rows of `x`, of shape (n,).

        It is infinite at the samples for kernels of the least smoothness.
        """

    def divergence(self, x: Array, centers: Array, coefficients: Array) -> Array:
        """Return the divergence of a sum of kernels, of shape (n,)."""
        return self._flux_sign * self.flux(x, centers).matvec(coefficients)

    def flux(self, x: Array, centers: Array) -> Operator:
        """Return the operator for :meth:`divergences_by`, which may be stored."""
        return self._operator(self._flux_block, x, centers)

    def divergences_by(self, flux: Operator, coefficients: Array) -> Array:
        """Return the divergences of several sums of kernels, of shape (r, n), for coefficients of shape (r, m, d)."""
        return self._flux_sign * flux.matvecs(coefficients)

    def energy(self, x: Array, centers: Array, coefficients: Array) -> Array:
        """Return a function whose gradient is the sum of kernels, of shape (n,)."""
        raise self._no_energy()

    def zeta_energy(self, x: Array, samples: Array, weights: Array) -> Array:
        """Return a function whose gradient is zeta, of shape (n,)."""
        raise self._no_energy()

    @abstractmethod
    def trace(self, pairs: DirectedPairs, coefficients: np.ndarray) -> np.ndarray:
        """Return the sums over k of v_k . K'(x, y) c v_k of all pairs, the derivative being in x, of shape (n, m)."""

    @abstractmethod
    def zeta_trace(self, pairs: DirectedPairs) -> np.ndarray:
        """Return the sums over k of v_k . zeta'(x) v_k for each sample, of shape (n, m)."""

    def splitting(self, operator: Operator, points: Array, root: Array, alpha: float) -> Splitting | None:
        r"""Return a splitting of :math:`\sqrt{w} K \sqrt{w} + \alpha` for preconditioning, or None if none saves time.

        `operator` is K at the samples `points`, as :meth:`operator` returns it, and may be stored; `root` is :math:`\sqrt{w}`.
        """
        return None

    def outside_span(self, operator: Operator) -> Array | None:
        """Return the matrix (n, n) of K for vectors orthogonal to all differences of rows; None if K has its eigenvalues."""
        return None

    def _no_energy(self) -> InputError:
        return InputError(f"{self.name} scores are not gradients, so there is no log density; use space='curl_free'.")


class Diagonal(Space):
    r"""Space with the kernel k I: each component by itself, a matrix of one number for each pair, d right-hand sides.

    Divergences are :math:`\sum_j \nabla k \cdot c_j`.
    """

    name = "diagonal"
    least_smoothness = 1.0
    pair_numbers = VALUE.kept
    _product_block, _flux_block, _flux_sign = VALUE, FLUX, 1.0

    def gram(self, x: Array, y: Array | None = None) -> Array:
        """Return the scalar kernel matrix, of shape (n, m)."""
        return self.operator(x, y).dense()

    def stack(self, v: Array) -> Array:
        """Return the vectors unchanged: each column is one right-hand side."""
        return v

    def unstack(self, v: Array, dim: int) -> Array:
        """Return the vectors unchanged."""
        return v

    def unknowns(self, rows: int, columns: int) -> int:
        """Return the number of points: all columns share the matrix."""
        return rows

    def slopes(self, x: Array, y: Array) -> Array:
        r"""Return :math:`-2\varphi'` of all pairs, of shape (n, m); the gradient of k is minus this times x - y."""
        return self._operator(SLOPE, x, y).dense()

    def zeta(self, x: Array, samples: Array, weights: Array) -> Array:
        r"""Return :math:`-\sum_m w_m \nabla k`."""
        return -self._sum(GRADIENT, x, samples, weights)

    def zeta_divergence(self, x: Array, samples: Array, weights: Array) -> Array:
        r"""Return :math:`-\sum_m w_m \Delta k`."""
        return -self._sum(LAPLACIAN, x, samples, weights)

    def trace(self, pairs: DirectedPairs, coefficients: np.ndarray) -> np.ndarray:
        r"""Return :math:`2\varphi' \sum_k (u \cdot v_k)(c \cdot v_k)`."""
        return 2.0 * np.where(pairs.s > 0.0, pairs.first, 0.0) * pairs.mixed(coefficients)

    def zeta_trace(self, pairs: DirectedPairs) -> np.ndarray:
        r"""Return :math:`-2\varphi' \sum_k |v_k|^2 - 4\varphi'' \sum_k (u \cdot v_k)^2`."""
        return -pairs.second()


class CurlFree(Space):
    r"""Space of gradients, whose kernel is minus the Hessian of k: a matrix of d x d numbers for each pair, one right-hand side.

    Stacked coefficients have all first components first, then all second ones, and so on. Divergences are
    :math:`-\sum_j \nabla\Delta k \cdot c_j`.
    """

    name = "curl-free"
    least_smoothness = 2.0
    pair_numbers = CURL_FREE.kept
    _product_block, _flux_block, _flux_sign = CURL_FREE, FLUX_OF_LAPLACIAN, -1.0

    def gram(self, x: Array, y: Array | None = None) -> Array:
        """Return the matrix of all blocks, of shape (n d, m d)."""
        xp = namespace(x)
        slope, bend = self.operator(x, y).matrices()
        y = x if y is None else y
        n, m, dim = x.shape[0], y.shape[0], x.shape[1]
        out = xp.empty((dim, n, dim, m), dtype=x.dtype, device=x.device)
        steps = [x[:, a][:, None] - y[:, a][None, :] for a in range(dim)]
        for a in range(dim):
            bent = bend * steps[a]
            for b in range(a + 1):
                block = bent * steps[b]
                if a == b:
                    block += slope
                out[a, :, b, :] = block
                out[b, :, a, :] = block
        return xp.reshape(out, (dim * n, dim * m))

    def stack(self, v: Array) -> Array:
        """Reshape to one column, component by component."""
        return namespace(v).reshape(v.T, (-1, 1))

    def unstack(self, v: Array, dim: int) -> Array:
        """Reshape to one row for each point."""
        return namespace(v).reshape(v, (dim, -1)).T

    def unknowns(self, rows: int, columns: int) -> int:
        """Return the number of points times the number of columns of their span."""
        return rows * min(columns, max(rows - 1, 1))

    def zeta(self, x: Array, samples: Array, weights: Array) -> Array:
        r"""Return :math:`\sum_m w_m \nabla\Delta k`."""
        return self._sum(GRADIENT_OF_LAPLACIAN, x, samples, weights)

    def zeta_divergence(self, x: Array, samples: Array, weights: Array) -> Array:
        r"""Return :math:`\sum_m w_m \Delta^2 k`."""
        return self._sum(BILAPLACIAN, x, samples, weights)

    def energy(self, x: Array, centers: Array, coefficients: Array) -> Array:
        r"""Return :math:`-\sum_j \nabla k \cdot c_j`."""
        return -self._sum(FLUX, x, centers, coefficients)

    def zeta_energy(self, x: Array, samples: Array, weights: Array) -> Array:
        r"""Return :math:`\sum_m w_m \Delta k`."""
        return self._sum(LAPLACIAN, x, samples, weights)

    def trace(self, pairs: DirectedPairs, coefficients: np.ndarray) -> np.ndarray:
        r"""Sum :math:`-8\varphi''(u\cdot v)(c\cdot v) - (4\varphi''|v|^2 + 8\varphi^{(3)}(u\cdot v)^2)(u\cdot c)` over v."""
        along = 4.0 * pairs.bend * pairs.sizes + 8.0 * pairs.derivative(3) * pairs.squares
        return -8.0 * pairs.bend * pairs.mixed(coefficients) - along * pairs.inner(coefficients)

    def zeta_trace(self, pairs: DirectedPairs) -> np.ndarray:
        r"""Sum :math:`2\psi'|v|^2 + 4\psi''(u\cdot v)^2` over v, with the Laplacian :math:`\psi = 2d\varphi' + 4s\varphi''`."""
        d, third = self.kernel.bound_dim, pairs.derivative(3)
        slope = (2 * d + 4) * pairs.bend + 4.0 * third
        bend = (2 * d + 8) * third + 4.0 * pairs.derivative(4)
        return 2.0 * slope * pairs.sizes + 4.0 * bend * pairs.squares

    def outside_span(self, operator: Operator) -> Array:
        r"""Return :math:`-2\varphi'`."""
        return operator.matrices()[0]

    def splitting(self, operator: Operator, points: Array, root: Array, alpha: float) -> Splitting | None:
        r"""Split off the part :math:`-2\varphi' I + \alpha`, which dominates the kernel in many columns."""
        if not operator.stored or operator.dim < _MANY_COLUMNS or operator.shape[0] > _FEW_ROWS:
            return None
        slope, bend = operator.matrices()
        return Splitting(slope, bend, points, root, alpha)


# Names that `space=` accepts.
SPACES: dict[str, type[Space]] = {"diagonal": Diagonal, "curl_free": CurlFree}


def _smoother(kernel: Kernel, least: float) -> str:
    """Name kernels that are smooth enough, of the same family if there is one."""
    others = f"Matern(nu={least + 0.5:g}), 'imq' or 'gaussian'"
    if isinstance(kernel, SDO):
        return f"SDO(order={math.ceil(least + 0.5 * kernel.bound_dim)}), {others}"
    if isinstance(kernel, Sobolev):
        return f"a Sobolev kernel with a coefficient of order {math.ceil(least + 0.5 * kernel.bound_dim)}, {others}"
    return others


# Fewest rows for which single precision is faster; with fewer, a product costs little more than its call.
_SINGLE_ROWS = 256

# Relative residual of one round in single precision, which has about two digits more for well-conditioned systems.
_SINGLE_TOL = 1e-4

# Largest ratio of the residuals after and before a useful round in single precision; else double precision takes over.
_USEFUL = 0.1


@dataclass(frozen=True)
class Splitting:
    r"""Splitting of a curl-free system, :math:`A + \alpha = S + R` with :math:`S = \sqrt{w} (-2\varphi')\sqrt{w} + \alpha`."""

    # slope, bend: (n, n): `-2\varphi'` and `-4\varphi''` of all pairs
    slope: Array
    bend: Array
    points: Array  # (n, d): samples
    root: Array  # (n, 1): roots of the weights
    alpha: float  # ridge

    def solve(self, product: Callable[[Array], Array], b: Array, tol: float, max_iter: int) -> tuple[Array, int]:
        """Solve (A + alpha) y = b; return y and the number of products.

        Large systems are solved in single precision in rounds, and the residual in double precision decides when to stop.
        """
        y, residual, n_iter = namespace(b).zeros_like(b), b, 0
        goal = tol * norm(b)
        if b.dtype == namespace(b).float64 and b.shape[0] >= _SINGLE_ROWS:
            y, residual, n_iter = self._in_single(product, b, goal, max_iter)
        size = norm(residual)
        if not size > goal:
            return y, n_iter
        steps = self._steps() or (lambda b, tol, most: conjugate_gradients(product, b, tol=tol, max_iter=most))
        step, more = steps(residual, goal / size, max_iter - n_iter)
        return y + step, n_iter + more

    def _in_single(
        self, product: Callable[[Array], Array], b: Array, goal: float, max_iter: int
    ) -> tuple[Array, Array, int]:
        """Return the solution by rounds in single precision, its residual in double precision and the number of products."""
        xp = namespace(b)
        parts = (self.slope, self.bend, self.points, self.root)
        slope, bend, points, root = (xp.astype(a, xp.float32) for a in parts)
        low = Splitting(slope, bend, points, root, self.alpha)
        steps = low._steps()
        y, residual, size, n_iter = xp.zeros_like(b), b, norm(b), 0
        while steps is not None and size > goal and n_iter < max_iter:
            # Slightly below the goal, because the residual of single precision is not exact.
            aim = max(0.7 * goal / size, _SINGLE_TOL)
            step, more = steps(xp.astype(residual / size, xp.float32), aim, max_iter - n_iter)
            n_iter += more
            tried = y + size * xp.astype(step, xp.float64)
            left = b - product(tried)
            if not norm(left) < size:
                break
            useful = norm(left) < _USEFUL * size
            y, residual, size = tried, left, norm(left)
            if not useful:
                break
        return y, residual, n_iter

    def _steps(self) -> Callable[[Array, float, int], tuple[Array, int]] | None:
        """Return conjugate gradients preconditioned by S, in the precision of the arrays, or None if S is singular in it."""
        xp = namespace(self.slope)
        part = plus_identity(self.slope * (self.root @ self.root.T), self.alpha, overwrite=True)
        # An explicit inverse: its product is twice as fast as two triangular solves, and a preconditioner may be inexact. It is
        # about half of the work of a fit, so BLAS keeps all its threads here: their number may change the result by rounding.
        try:
            inverse = interruptible(2.0 * part.shape[0] ** 3, xp.linalg.inv, part)
        except singular(part):
            return None
        rest = StoredBend(self.bend, self.points, self.points)

        def steps(b: Array, tol: float, max_iter: int) -> tuple[Array, int]:
            return conjugate_gradients(
                lambda v: self.root * (rest @ (self.root * v)),
                b,
                tol=tol,
                max_iter=max_iter,
                preconditioner=lambda r: inverse @ r,
                split=True,
            )

        return steps
