"""Blocks: the terms of a sum, such as a kernel, its gradient or its Laplacian, added tile by tile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.kernels import IMQ, Gaussian, Kernel, Workspace
from isopleth.kernels.base import cap

# Function of squared distances. It may overwrite them, and its result may be in scratch.
Evaluate = Callable[[Array, Workspace], Array]

EvaluateFor = Callable[[Kernel], Evaluate]


@dataclass
class Tile:
    """Pairs of some rows with some columns.

    `s` are squared distances, times :meth:`Block.exponent` in an `exponential` tile, and may be overwritten. `near` masks pairs
    so close that digits cancel in a matrix product; in a `direct` tile everything is computed by differences.
    """

    s: Array
    x: Array
    y: Array
    work: Workspace
    near: Array | None = None
    direct: bool = False
    exponential: bool = False

    def difference(self, j: int) -> Array:
        """Return differences of coordinate `j`, in scratch."""
        return outer_difference(self.x[:, j], self.y[:, j], self.work)

    def near_differences(self) -> tuple[Array, Array, Array]:
        """Return row, column and x - y of each near pair, in the order of the mask."""
        xp = namespace(self.s)
        (places,) = xp.nonzero(xp.reshape(self.near, (-1,)))  # ten times as fast in NumPy as that of a matrix
        rows, columns = places // self.s.shape[1], places % self.s.shape[1]
        return rows, columns, xp.take(self.x, rows, axis=0) - xp.take(self.y, columns, axis=0)


def outer_difference(a: Array, b: Array, work: Workspace) -> Array:
    """Return a_i - b_j, in scratch."""
    if not isinstance(a, np.ndarray):
        return a[:, None] - b[None, :]
    return np.subtract.outer(a, b, out=work.empty("differences", (a.shape[0], b.shape[0]), a.dtype))


class Block(ABC):
    """Base class of blocks: how the pairs of a tile are added to a result."""

    # True if transposed tiles can be added too, so that a set of points with itself needs half of the tiles.
    symmetric: ClassVar[bool] = False

    # True if it uses phi or phi' alone, and needs little scratch.
    light: bool = False

    @abstractmethod
    def zeros(self, x: Array, v: Array) -> Array:
        """Return the empty sum for the rows `x` and coefficients `v`."""

    def exponent(self, kernel: Kernel) -> float | None:
        """Return c if the block is :math:`e^{c s}` for this kernel, else None. Devices get c s in the matrix product."""
        return None

    # Numbers for each pair in the stored form; 0 if there is none.
    kept: ClassVar[int] = 0

    def matrices(self, kernel: Kernel, tile: Tile) -> tuple[Array, ...]:
        """Compute the tile of each matrix of the stored form, in scratch."""
        raise TypeError(f"the {self!r} block has no stored form.")

    def assemble(self, matrices: list[Array], x: Array, y: Array) -> Any:
        """Return an object that `@` multiplies and slices cut, made of whole matrices; None if products by tiles are better."""
        raise TypeError(f"the {self!r} block has no stored form.")

    @abstractmethod
    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> Any:
        """Add the tile's pairs to `out`; symmetric blocks return the argument `kept` of :meth:`add_transposed`."""

    def add_transposed(self, kept: Any, tile: Tile, v: Array, out: Array) -> None:
        """Add the transposed pairs, from what :meth:`add` returned, before anything else uses the scratch."""
        raise TypeError(f"the {self!r} block is not symmetric.")


class OfFunction(Block):
    """Block of a scalar function of the kernel; its name is that of a public constant."""

    def __init__(self, name: str, evaluate: EvaluateFor, light: bool = False) -> None:
        self._name = name
        self._evaluate = evaluate
        self.light = light

    def __repr__(self) -> str:
        return self._name


class Matrix(OfFunction):
    """Block out_i = sum_j m(s_ij) v_j for a scalar function m of the kernel, such as its value or its Laplacian."""

    symmetric = True
    kept = 1

    def zeros(self, x: Array, v: Array) -> Array:
        """Return zeros, one row for each point and the columns of `v`."""
        return namespace(x).zeros((x.shape[0], *v.shape[1:]), dtype=x.dtype, device=x.device)

    def matrices(self, kernel: Kernel, tile: Tile) -> tuple[Array]:
        """Compute the values m(s) of a tile, in its own memory or in scratch."""
        return (self._evaluate(kernel)(tile.s, tile.work),)

    def assemble(self, matrices: list[Array], x: Array, y: Array) -> Array:
        """Return the matrix itself."""
        return matrices[0]

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> Array:
        """Add a product with the tile's matrix, and return the matrix."""
        (matrix,) = self.matrices(kernel, tile)
        out += matrix @ v
        return matrix

    def add_transposed(self, kept: Array, tile: Tile, v: Array, out: Array) -> None:
        """Add a product with its transpose."""
        out += kept.T @ v


class Value(Matrix):
    """Block of the kernel itself."""

    def __init__(self) -> None:
        super().__init__("value", lambda kernel: lambda s, work: kernel._product(s, 0, work), light=True)

    def exponent(self, kernel: Kernel) -> float | None:
        """Return -1/2 for the Gaussian kernel, but not for subclasses, which may be other functions."""
        return -0.5 if type(kernel) is Gaussian else None

    def matrices(self, kernel: Kernel, tile: Tile) -> tuple[Array]:
        """Compute the values of a tile."""
        return (overwrite(namespace(tile.s).exp, tile.s),) if tile.exponential else super().matrices(kernel, tile)


class LogSum(Block):
    """Block log sum_j phi(s_ij) v_j of positive terms that underflow, as a running maximum and the sum relative to it."""

    def __repr__(self) -> str:
        return "log sum"

    def zeros(self, x: Array, v: Array) -> Array:
        """Return maxima of minus infinity and sums of 0."""
        xp = namespace(x)
        out = xp.zeros((x.shape[0], 2), dtype=x.dtype, device=x.device)
        out[:, 0] = -xp.inf
        return out

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Update maximum and sum (streaming log-sum-exp)."""
        self._terms(kernel, tile, v, out)

    def _terms(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> Array:
        """Update maximum and sum, scale the other columns of `out` to the new maximum, and return the tile's terms."""
        xp = namespace(tile.s)
        terms = kernel._log(tile.s, tile.work)
        terms += v
        top = xp.maximum(out[:, 0], xp.max(terms, axis=1))
        shift = xp.where(
            top == -xp.inf, xp.zeros_like(top), top
        )  # -inf if a row is so far that every logarithm overflows
        terms -= shift[:, None]
        terms = overwrite(xp.exp, terms)
        out[:, 1:] *= xp.exp(out[:, 0] - shift)[:, None]
        out[:, 1] += xp.sum(terms, axis=1)
        out[:, 0] = top
        return terms


class LogGradient(LogSum):
    """Block of the gradient of the log sum: d further columns, which divided by the sum are the gradient."""

    def __repr__(self) -> str:
        return "log gradient"

    def zeros(self, x: Array, v: Array) -> Array:
        """Return those of the log sum, and d columns of 0."""
        xp = namespace(x)
        return xp.concat([super().zeros(x, v), xp.zeros(x.shape, dtype=x.dtype, device=x.device)], axis=1)

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Add grad_x log phi = 2 (log phi)' (x - y), weighted by the terms of the sum."""
        xp = namespace(tile.s)
        slopes = kernel._log_slope(tile.work.copy("log slope", tile.s), tile.work)
        slopes *= self._terms(kernel, tile, v, out)
        sums = slopes @ xp.concat(
            [tile.y, xp.ones((tile.y.shape[0], 1), dtype=tile.y.dtype, device=tile.y.device)], axis=1
        )
        out[:, 2:] += 2.0 * (tile.x * sums[:, -1:] - sums[:, :-1])


class LogLaplacian(LogSum):
    """Block of the Laplacian over the sum, in one more column; s L'' is a central difference in log s, good to ten digits."""

    def __repr__(self) -> str:
        return "log laplacian"

    def zeros(self, x: Array, v: Array) -> Array:
        """Return those of the log sum, and a column of 0."""
        xp = namespace(x)
        return xp.concat([super().zeros(x, v), xp.zeros((x.shape[0], 1), dtype=x.dtype, device=x.device)], axis=1)

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Add the ratios of the terms, weighted by the terms."""
        ratios = self._ratios(kernel, tile)
        ratios *= self._terms(kernel, tile, v, out)
        out[:, 2] += namespace(ratios).sum(ratios, axis=1)

    @staticmethod
    def _ratios(kernel: Kernel, tile: Tile) -> Array:
        """Return the Laplacian over the value, with the second derivative by a central difference of the log slope."""
        work = tile.work
        step = float(namespace(tile.s).finfo(tile.s.dtype).eps) ** (1.0 / 3.0)

        def slope(slot: str, factor: float) -> Array:
            s = work.copy("argument of a slope", tile.s)
            s *= factor
            return work.copy(slot, kernel._log_slope(s, work))

        out = slope("slope beyond", 1.0 + step)
        out -= slope("slope before", 1.0 - step)
        out *= 2.0 / step
        first = slope("slope", 1.0)
        out += 2.0 * kernel.bound_dim * first
        square = work.copy("slope before", first)
        square *= tile.s  # before the second factor, because the square alone may underflow
        square *= first
        square *= 4.0
        out += square
        return out


VALUE = Value()
DISTANCE = Matrix("squared distance", lambda kernel: lambda s, work: s, light=True)
LAPLACIAN = Matrix("laplacian", lambda kernel: kernel._laplacian)
LOG_VALUE = Matrix("log value", lambda kernel: kernel._log)
LOG_SUM = LogSum()
LOG_GRADIENT = LogGradient()
LOG_LAPLACIAN = LogLaplacian()


_FURTHEST = 1e4  # of s: e^(-s/2) is 0 beyond it


def slope_and_bend(kernel: Kernel, s: Array, work: Workspace) -> tuple[Array, Array]:
    r"""Compute :math:`-2\varphi'` and :math:`-4\varphi''`, in scratch or in the memory of `s`."""
    if type(kernel) in _BENDS:  # a kernel derived from one of these may be another function
        return _BENDS[type(kernel)](s, work)
    bend = quotient(kernel._product(work.copy("bend of", s), 2, work), s, work)
    bend *= -4.0
    slope = kernel._product(s, 1, work)
    slope *= -2.0
    return slope, bend


def _gaussian_bend(s: Array, work: Workspace) -> tuple[Array, Array]:
    """Compute both, which are the same exponential with opposite signs."""
    s *= -0.5
    slope = overwrite(namespace(s).exp, s)
    bend = work.copy("bend", slope)
    bend *= -1.0
    return slope, bend


def _imq_bend(s: Array, work: Workspace) -> tuple[Array, Array]:
    """Compute q^(3/2) and -3 q^(5/2) with q = 1/(1 + s)."""
    root, q = _root_and_inverse(s, work)
    root *= q
    q *= root
    q *= -3.0
    return root, q


_BENDS = {Gaussian: _gaussian_bend, IMQ: _imq_bend}


def laplacian_slope(kernel: Kernel, s: Array, work: Workspace) -> Array:
    r"""Compute :math:`4((d + 2)\varphi'' + 2 s\varphi''')`, the factor of x - y in the Laplacian's gradient; may reuse `s`."""
    if type(kernel) in _LAPLACIAN_SLOPES:
        return _LAPLACIAN_SLOPES[type(kernel)](kernel.bound_dim, s, work)
    out = work.copy("third", kernel._product(work.copy("third of", s), 3, work))
    out *= 8.0
    second = second_derivative(kernel, s, work, at_zero=0.0)
    second *= 4.0 * (kernel.bound_dim + 2.0)
    out += second
    return out


def _gaussian_laplacian_slope(dim: int, s: Array, work: Workspace) -> Array:
    """Compute (d + 2 - s) e^(-s/2)."""
    out = cap(work.copy("slope", s), _FURTHEST)
    out *= -1.0
    out += dim + 2.0
    s *= -0.5
    out *= overwrite(namespace(s).exp, s)
    return out


def _imq_laplacian_slope(dim: int, s: Array, work: Workspace) -> Array:
    """Compute 3 (d - 3 + 5 q) q^(5/2), because s q = 1 - q."""
    root, q = _root_and_inverse(s, work)
    root *= q
    root *= q
    q *= 15.0
    q += 3.0 * (dim - 3.0)
    root *= q
    return root


_LAPLACIAN_SLOPES = {Gaussian: _gaussian_laplacian_slope, IMQ: _imq_laplacian_slope}


def _root_and_inverse(s: Array, work: Workspace) -> tuple[Array, Array]:
    """Compute the root of q = 1/(1 + s) in the memory of `s`, and q in scratch."""
    s += 1.0
    q = quotient(1.0, s, work)
    s[...] = q
    return overwrite(namespace(s).sqrt, s), q


def second_derivative(kernel: Kernel, s: Array, work: Workspace, at_zero: float) -> Array:
    r"""Compute :math:`\varphi''` itself from s phi'', in scratch of its own; it is `at_zero` at s = 0."""
    out = quotient(kernel._product(work.copy("second of", s), 2, work), s, work)
    out[s == 0.0] = at_zero
    return out


def quotient(a: Array | float, b: Array, work: Workspace) -> Array:
    """Return a / b in scratch of its own."""
    if not isinstance(b, np.ndarray):
        return a / b
    return np.divide(a, b, out=work.empty("quotient", b.shape, b.dtype))
