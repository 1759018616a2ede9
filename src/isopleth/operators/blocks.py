"""What is summed: the one function of a tile in which a kernel sum, its gradient and its Laplacian differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isopleth.backend import Array, namespace, overwrite
from isopleth.kernels import Gaussian, Kernel, Workspace

# A function of squared distances for the hot path: may overwrite them, and may answer in scratch.
Evaluate = Callable[[Array, Workspace], Array]

EvaluateFor = Callable[[Kernel], Evaluate]


@dataclass
class Tile:
    """Pairs of some rows with some columns.

    `s` holds their squared distances and may be overwritten. `near` marks the pairs so close that what a matrix product
    makes of their differences has lost digits, and is None where there are none. In a `direct` tile distances were taken
    one by one, and so should differences be. An `exponential` tile holds what the block asked for by
    :meth:`Block.exponent` in the place of distances.
    """

    s: Array
    x: Array
    y: Array
    work: Workspace
    near: Array | None = None
    direct: bool = False
    exponential: bool = False

    def difference(self, j: int) -> Array:
        """Differences of coordinate `j`, in scratch."""
        return outer_difference(self.x[:, j], self.y[:, j], self.work)

    def near_differences(self) -> tuple[Array, Array, Array]:
        """Row and column of each near pair, in the order of the mask, and x - y."""
        xp = namespace(self.s)
        rows, columns = xp.nonzero(self.near)
        return rows, columns, xp.take(self.x, rows, axis=0) - xp.take(self.y, columns, axis=0)


def outer_difference(a: Array, b: Array, work: Workspace) -> Array:
    """a_i - b_j, in scratch."""
    if not isinstance(a, np.ndarray):
        return a[:, None] - b[None, :]
    return np.subtract.outer(a, b, out=work.empty("differences", (a.shape[0], b.shape[0]), a.dtype))


class Block(ABC):
    """One way to fold a tile of distances into a result."""

    # Whether the transposed tile adds the same way, so that a set of points against itself needs half of its tiles.
    symmetric: ClassVar[bool] = False

    # Whether it takes phi or phi' alone, and so keeps little beside a tile.
    light: bool = False

    @abstractmethod
    def zeros(self, x: Array, v: Array) -> Array:
        """The empty sum for the rows `x` and coefficients `v`."""

    def exponent(self, kernel: Kernel) -> float | None:
        """The c of a block that is :math:`e^{c s}` for this kernel: a device then makes c s, and spares a pass over the tile."""
        return None

    # Numbers a pair of the stored form; 0 where there is none.
    kept: ClassVar[int] = 0

    def parts(self, kernel: Kernel, tile: Tile) -> tuple[Array, ...]:
        """The tile's share of each matrix of the stored form, in scratch."""
        raise TypeError(f"the {self!r} block has no stored form.")

    def assemble(self, parts: list[Array], x: Array, y: Array) -> Any:
        """The stored form made of whole matrices: what `@` multiplies and slices cut; None where streaming is better."""
        raise TypeError(f"the {self!r} block has no stored form.")

    @abstractmethod
    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> Any:
        """Add the tile's pairs to `out`; symmetric blocks answer with what :meth:`add_transposed` wants."""

    def add_transposed(self, kept: Any, tile: Tile, v: Array, out: Array) -> None:
        """Add the same pairs the other way round, from what :meth:`add` answered with, before anything else uses scratch."""
        raise TypeError(f"the {self!r} block is not symmetric.")


class Matrix(Block):
    """out_i = sum_j m(s_ij) v_j for a scalar function m of the kernel, such as its value or its Laplacian."""

    symmetric = True
    kept = 1

    def __init__(self, name: str, evaluate: EvaluateFor, light: bool = False) -> None:
        self._name = name
        self._evaluate = evaluate
        self.light = light

    def __repr__(self) -> str:
        return self._name

    def zeros(self, x: Array, v: Array) -> Array:
        """Zeros of one row a point and the columns of `v`."""
        return namespace(x).zeros((x.shape[0], *v.shape[1:]), dtype=x.dtype, device=x.device)

    def parts(self, kernel: Kernel, tile: Tile) -> tuple[Array]:
        """The values m(s) of a tile, in its own memory or in scratch."""
        return (self._evaluate(kernel)(tile.s, tile.work),)

    def assemble(self, parts: list[Array], x: Array, y: Array) -> Array:
        """The matrix itself."""
        return parts[0]

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> Array:
        """One product with the tile's matrix, which is the answer."""
        (matrix,) = self.parts(kernel, tile)
        out += matrix @ v
        return matrix

    def add_transposed(self, kept: Array, tile: Tile, v: Array, out: Array) -> None:
        """One product with its transpose."""
        out += kept.T @ v


class Value(Matrix):
    """The kernel itself."""

    def __init__(self) -> None:
        super().__init__("value", lambda kernel: lambda s, work: kernel._product(s, 0, work), light=True)

    def exponent(self, kernel: Kernel) -> float | None:
        """That of the Gaussian; a kernel derived from it may be another function."""
        return -0.5 if type(kernel) is Gaussian else None

    def parts(self, kernel: Kernel, tile: Tile) -> tuple[Array]:
        """The values of a tile."""
        return (overwrite(namespace(tile.s).exp, tile.s),) if tile.exponential else super().parts(kernel, tile)


class LogSum(Block):
    """log sum_j phi(s_ij) v_j for positive kernels and coefficients, where the sum itself underflows.

    Coefficients are given as logarithms. The two columns of the result are a running maximum and the sum relative to it.
    """

    def __repr__(self) -> str:
        return "log sum"

    def zeros(self, x: Array, v: Array) -> Array:
        """Maximum minus infinity, sum 0."""
        xp = namespace(x)
        out = xp.zeros((x.shape[0], 2), dtype=x.dtype, device=x.device)
        out[:, 0] = -xp.inf
        return out

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """The streaming log-sum-exp."""
        self._terms(kernel, tile, v, out)

    def _terms(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> Array:
        """Fold the tile into maximum and sum, scale what else `out` holds to the new maximum, and answer the tile's terms."""
        xp = namespace(tile.s)
        terms = kernel._log(tile.s, tile.work)
        terms += v
        top = xp.maximum(out[:, 0], xp.max(terms, axis=1))
        shift = xp.where(top == -xp.inf, xp.zeros_like(top), top)  # a row so far that every logarithm overflows
        terms -= shift[:, None]
        terms = overwrite(xp.exp, terms)
        out[:, 1:] *= xp.exp(out[:, 0] - shift)[:, None]
        out[:, 1] += xp.sum(terms, axis=1)
        out[:, 0] = top
        return terms


class LogGradient(LogSum):
    """Gradient of the log sum: to maximum and sum come d columns that, over the sum, are its gradient."""

    def __repr__(self) -> str:
        return "log gradient"

    def zeros(self, x: Array, v: Array) -> Array:
        """Those of the log sum, and d columns of 0."""
        xp = namespace(x)
        return xp.concat([super().zeros(x, v), xp.zeros(x.shape, dtype=x.dtype, device=x.device)], axis=1)

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """The streaming soft maximum of grad_x log phi = 2 (log phi)' (x - y)."""
        xp = namespace(tile.s)
        slopes = kernel._log_slope(tile.work.copy("log slope", tile.s), tile.work)
        slopes *= self._terms(kernel, tile, v, out)
        sums = slopes @ xp.concat(
            [tile.y, xp.ones((tile.y.shape[0], 1), dtype=tile.y.dtype, device=tile.y.device)], axis=1
        )
        out[:, 2:] += 2.0 * (tile.x * sums[:, -1:] - sums[:, :-1])


class LogLaplacian(LogSum):
    r"""Laplacian over the sum itself: to maximum and sum comes a column that, over the sum, is that ratio.

    One term has :math:`\Delta k/k = 2 d L' + 4 (s L'' + s L'^2)` with :math:`L = \log\varphi`; :math:`s L''` is the
    central difference of L' in log s, good to ten digits, which is more than it needs beside the larger terms.
    """

    def __repr__(self) -> str:
        return "log laplacian"

    def zeros(self, x: Array, v: Array) -> Array:
        """Those of the log sum, and a column of 0."""
        xp = namespace(x)
        return xp.concat([super().zeros(x, v), xp.zeros((x.shape[0], 1), dtype=x.dtype, device=x.device)], axis=1)

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """The streaming soft maximum of the ratio."""
        ratios = self._ratios(kernel, tile)
        ratios *= self._terms(kernel, tile, v, out)
        out[:, 2] += namespace(ratios).sum(ratios, axis=1)

    @staticmethod
    def _ratios(kernel: Kernel, tile: Tile) -> Array:
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
        square *= tile.s  # before the other factor: the square alone may underflow
        square *= first
        square *= 4.0
        out += square
        return out


VALUE = Value()
LAPLACIAN = Matrix("laplacian", lambda kernel: kernel._laplacian)
LOG_SUM = LogSum()
LOG_GRADIENT = LogGradient()
LOG_LAPLACIAN = LogLaplacian()
