r"""The spaces that scores are fitted in: vector-valued functions with a diagonal or a curl-free kernel.

All at unit length scale, for rows in frame coordinates. From a scalar kernel k they make

.. math:: K(x, y) = k I \quad\text{(diagonal)}, \qquad K(x, y) = -\nabla_x\nabla_x^\top k \quad\text{(curl-free)},

and :math:`\zeta(x) = \sum_m w_m \operatorname{div}_{x_m} K(x_m, x)` is the data of a fit: minus the image of the true score under
:math:`L s = \sum_m w_m K(x_m, \cdot)\, s(x_m)`, as the samples tell it. The curl-free kernel carries a factor of the squared
length scale that the paper's does not have: then alpha has no unit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from isopleth.backend import Array, namespace
from isopleth.errors import InputError
from isopleth.kernels import SDO, Kernel, Sobolev
from isopleth.operators import (
    BILAPLACIAN,
    CURL_FREE,
    DEFAULT_MEMORY_LIMIT,
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
from isopleth.score.splitting import Splitting

# Below so many columns a splitting saves no steps; above so many rows its factor costs more than it saves.
_MANY_COLUMNS, _FEW_ROWS = 16, 4096


@dataclass(frozen=True)
class Space(ABC):
    """A space of vector fields.

    Coefficients are arrays of shape (m, d), one vector a point. Points may have fewer columns than the kernel's dimension, where
    they are coordinates in a subspace that holds everything; formulas keep the dimension of the kernel.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the rows.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.

    Raises
    ------
    InputError
        If the kernel is too rough, with the name of one that is not.
    """

    kernel: Kernel
    memory_limit: float = DEFAULT_MEMORY_LIMIT
    n_jobs: int | None = None

    # What messages call it.
    name: ClassVar[str]

    # Of kernels for which zeta is defined at the samples.
    least_smoothness: ClassVar[float]

    # Numbers a pair of samples that stored products keep.
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
        return Operator(
            self.kernel,
            x,
            y,
            block=block,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
            dim=self.kernel.bound_dim,
        )

    def operator(self, x: Array, y: Array | None = None) -> Operator:
        """The product with coefficients, (m, d) to (n, d)."""
        return self._operator(self._product_block, x, y)

    @abstractmethod
    def gram(self, x: Array, y: Array | None = None) -> Array:
        """The matrix that :meth:`operator` multiplies stacked coefficients by."""

    @abstractmethod
    def stack(self, v: Array) -> Array:
        """Vectors (m, d) as the right-hand sides of a matrix from :meth:`gram`."""

    @abstractmethod
    def unstack(self, v: Array, dim: int) -> Array:
        """The inverse of :meth:`stack`, for vectors of `dim` columns."""

    @abstractmethod
    def unknowns(self, rows: int, columns: int) -> int:
        """Rows of the matrix of so many distinct points, in coordinates of their span."""

    @abstractmethod
    def zeta(self, x: Array, samples: Array, weights: Array) -> Array:
        """zeta at the rows of `x`, of shape (n, d), for samples with weights of sum 1."""

    @abstractmethod
    def zeta_divergence(self, x: Array, samples: Array, weights: Array) -> Array:
        """Divergence of zeta at the rows of `x`, of shape (n,); infinite at samples for kernels barely smooth enough."""

    def divergence(self, x: Array, centers: Array, coefficients: Array) -> Array:
        """Divergence of the sum of kernels, of shape (n,)."""
        return self.divergence_by(self.flux(x, centers), coefficients)

    def flux(self, x: Array, centers: Array) -> Operator:
        """What :meth:`divergence_by` takes, for the divergences of many sums at the same points."""
        return self._operator(self._flux_block, x, centers)

    def divergence_by(self, flux: Operator, coefficients: Array) -> Array:
        """Divergence of the sum of kernels by a :meth:`flux`, perhaps stored."""
        return self._flux_sign * flux.matvec(coefficients)

    def energy(self, x: Array, centers: Array, coefficients: Array) -> Array:
        """A function whose gradient is the sum of kernels, of shape (n,)."""
        raise self._no_energy()

    def zeta_energy(self, x: Array, samples: Array, weights: Array) -> Array:
        """A function whose gradient is zeta, of shape (n,)."""
        raise self._no_energy()

    def splitting(self, operator: Operator, points: Array, root: Array, alpha: float) -> Splitting | None:
        r"""Of :math:`\sqrt{w} K \sqrt{w} + \alpha`, with a part that inverts with ease; None if none helps.

        `operator` is the product K at the samples `points`, as :meth:`operator` gives it, perhaps stored; `root` is
        :math:`\sqrt{w}`.
        """
        return None

    def outside_span(self, operator: Operator) -> Array | None:
        """The matrix (n, n) of K for vectors that are orthogonal to all differences of rows; None if its eigenvalues are K's."""
        return None

    def _no_energy(self) -> InputError:
        return InputError(f"{self.name} scores are no gradients, so there is no log density; use space='curl_free'.")


class Diagonal(Space):
    r"""Every component by itself, with the scalar kernel: a matrix of one number a pair, d right-hand sides.

    Divergences are :math:`\sum_j \nabla k \cdot c_j`.
    """

    name = "diagonal"
    least_smoothness = 1.0
    pair_numbers = VALUE.kept
    _product_block, _flux_block, _flux_sign = VALUE, FLUX, 1.0

    def gram(self, x: Array, y: Array | None = None) -> Array:
        """Of shape (n, m)."""
        return self.operator(x, y).dense()

    def stack(self, v: Array) -> Array:
        """As they are: one right-hand side a column."""
        return v

    def unstack(self, v: Array, dim: int) -> Array:
        """As they are."""
        return v

    def unknowns(self, rows: int, columns: int) -> int:
        """One a point: columns share the matrix."""
        return rows

    def slopes(self, x: Array, y: Array) -> Array:
        r""":math:`-2\varphi'` of all pairs, of shape (n, m): minus the gradient of k over x - y."""
        return self._operator(SLOPE, x, y).dense()

    def zeta(self, x: Array, samples: Array, weights: Array) -> Array:
        r""":math:`-\sum_m w_m \nabla k`."""
        return -self._sum(GRADIENT, x, samples, weights)

    def zeta_divergence(self, x: Array, samples: Array, weights: Array) -> Array:
        r""":math:`-\sum_m w_m \Delta k`."""
        return -self._sum(LAPLACIAN, x, samples, weights)


class CurlFree(Space):
    r"""Gradients, with minus the Hessian of the scalar kernel: a matrix of d x d numbers a pair, one right-hand side.

    Stacked coefficients have all first components first, then all second ones, and so on. Divergences are
    :math:`-\sum_j \nabla\Delta k \cdot c_j`.
    """

    name = "curl-free"
    least_smoothness = 2.0
    pair_numbers = CURL_FREE.kept
    _product_block, _flux_block, _flux_sign = CURL_FREE, FLUX_OF_LAPLACIAN, -1.0

    def gram(self, x: Array, y: Array | None = None) -> Array:
        """Of shape (n d, m d)."""
        xp = namespace(x)
        slope, bend = self.operator(x, y).parts()
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
        """One column, component after component."""
        return namespace(v).reshape(v.T, (-1, 1))

    def unstack(self, v: Array, dim: int) -> Array:
        """Back to one row a point."""
        return namespace(v).reshape(v, (dim, -1)).T

    def unknowns(self, rows: int, columns: int) -> int:
        """One a point and column."""
        return rows * min(columns, max(rows - 1, 1))

    def zeta(self, x: Array, samples: Array, weights: Array) -> Array:
        r""":math:`\sum_m w_m \nabla\Delta k`."""
        return self._sum(GRADIENT_OF_LAPLACIAN, x, samples, weights)

    def zeta_divergence(self, x: Array, samples: Array, weights: Array) -> Array:
        r""":math:`\sum_m w_m \Delta^2 k`."""
        return self._sum(BILAPLACIAN, x, samples, weights)

    def energy(self, x: Array, centers: Array, coefficients: Array) -> Array:
        r""":math:`-\sum_j \nabla k \cdot c_j`."""
        return -self._sum(FLUX, x, centers, coefficients)

    def zeta_energy(self, x: Array, samples: Array, weights: Array) -> Array:
        r""":math:`\sum_m w_m \Delta k`."""
        return self._sum(LAPLACIAN, x, samples, weights)

    def outside_span(self, operator: Operator) -> Array:
        r""":math:`-2\varphi'`."""
        return operator.parts()[0]

    def splitting(self, operator: Operator, points: Array, root: Array, alpha: float) -> Splitting | None:
        r"""The part :math:`-2\varphi' I` of the kernel, and alpha: in many columns it is most of it."""
        if not operator.stored or operator.dim < _MANY_COLUMNS or operator.shape[0] > _FEW_ROWS:
            return None
        slope, bend = operator.parts()
        return Splitting(slope, bend, points, root, alpha)


# Names that `space=` accepts.
SPACES: dict[str, type[Space]] = {"diagonal": Diagonal, "curl_free": CurlFree}


def _smoother(kernel: Kernel, least: float) -> str:
    """A kernel that is smooth enough, of the same family where there is one."""
    others = f"Matern(nu={least + 0.5:g}), 'imq' or 'gaussian'"
    if isinstance(kernel, SDO):
        return f"SDO(order={math.ceil(least + 0.5 * kernel.bound_dim)}), {others}"
    if isinstance(kernel, Sobolev):
        return f"a Sobolev kernel with a coefficient of order {math.ceil(least + 0.5 * kernel.bound_dim)}, {others}"
    return others
