"""Blocks whose pairs carry coefficients of their rows as well: what derivatives of sums are made of."""

from __future__ import annotations

from typing import Any

from isopleth._namespace import Array, add_at, namespace, overwrite
from isopleth.kernels import Kernel
from isopleth.kernels.capping import cap
from isopleth.operators import devices
from isopleth.operators.blocks import Block, Tile
from isopleth.operators.curvature import slope_and_bend
from isopleth.operators.differences import (
    add_differences,
    add_direct_differences,
    clear_near,
    direct_projection,
    matmul,
    projection_back,
)


class _RowBlock(Block):
    """Answers in the first columns of its result, whose other columns hold the coefficients of the rows.

    Parameters
    ----------
    rows : array of shape (n, k)
        One row of coefficients a row of the sums.
    """

    def __init__(self, rows: Array) -> None:
        self._rows = devices.host_view(rows)

    def zeros(self, x: Array, v: Array) -> Array:
        """Zeros for the answer, then the coefficients."""
        xp = namespace(x)
        return xp.concat(
            [xp.zeros((x.shape[0], self._width(x.shape[1])), dtype=x.dtype, device=x.device), self._rows], axis=1
        )

    def _width(self, dim: int) -> int:
        """Columns of the answer."""
        return dim


class PairedGradient(_RowBlock):
    r""":math:`out_i = \sum_j (a_i \cdot v_j)\, \nabla_x k(x_i, y_j)` for coefficients a of shape (n, k) and v of shape (m, k)."""

    light = True

    def __repr__(self) -> str:
        return "paired gradient"

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Slopes times the product of both coefficients."""
        d = tile.x.shape[1]
        coincident = tile.s == 0.0 if tile.direct else None
        weights = kernel._product(tile.s, 1, tile.work)
        weights *= matmul(2.0 * out[:, d:], v.T, tile.work, "pair coefficients")
        _fold(tile, weights, coincident, out[:, :d])


class PairedHessian(_RowBlock):
    r""":math:`out_i = \sum_j v_j\, \nabla_x^2 k(x_i, y_j)\, a_i` for vectors a of shape (n, d) and numbers v of shape (m,)."""

    def __repr__(self) -> str:
        return "paired hessian"

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Minus the curl-free kernel, whose vectors here belong to the rows."""
        d = tile.x.shape[1]
        answer, rows = out[:, :d], out[:, d:]
        coincident = tile.s == 0.0 if tile.direct or tile.near is not None else None
        slope, bend = slope_and_bend(kernel, tile.s, tile.work)
        answer -= (slope @ v)[:, None] * rows
        bend *= v
        if coincident is not None:
            bend[coincident] = 0.0
        if tile.direct:
            bend *= direct_projection(tile, -rows[:, None, :])
            add_direct_differences(tile, bend, 1, answer)
            return
        weights = projection_back(tile, rows)
        weights *= bend
        if tile.near is not None:
            xp = namespace(bend)
            i, _, difference = tile.near_differences()
            exact = bend[tile.near] * xp.sum(difference * xp.take(rows, i, axis=0), axis=1)
            weights[tile.near] = 0.0
            add_at(answer, i, -exact[:, None] * difference)
        add_differences(weights, tile.x, tile.y, answer)


class PairedLogGradient(_RowBlock):
    r""":math:`out_i = \sum_j e^{\log k(x_i, y_j) + a_i + v_{j0}}\, v_{j1}\, (\nabla_x \log k(x_i, y_j), 1)`, of d + 1 columns.

    The largest logarithm of a sum has to be taken off in a or v: no exponential is more than 1.
    """

    def __repr__(self) -> str:
        return "paired log gradient"

    def _width(self, dim: int) -> int:
        return dim + 1

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Shares, and shares times slopes of the logarithm."""
        xp, d = namespace(tile.s), tile.x.shape[1]
        coincident = tile.s == 0.0 if tile.direct else None
        slopes = kernel._log_slope(tile.work.copy("log slope", tile.s), tile.work)
        shares = kernel._log(tile.s, tile.work)
        shares += v[:, 0]
        shares += out[:, d + 1 :]
        shares = overwrite(xp.exp, cap(shares, 0.0))  # large logarithms are rounded one way here, another there
        shares *= v[:, 1]
        out[:, d] += xp.sum(shares, axis=1)
        slopes *= shares
        slopes *= 2.0
        _fold(tile, slopes, coincident, out[:, :d])


def _fold(tile: Tile, weights: Array, coincident: Any, out: Array) -> None:
    """Add sum_j weights_ij (x_i - y_j), to which pairs that coincide add nothing, whatever their weight."""
    if tile.direct:
        weights[coincident] = 0.0
        add_direct_differences(tile, weights, 1, out)
        return
    if tile.near is not None:
        rows, _, difference, near = clear_near(tile, weights)
        add_at(out, rows, near[:, None] * difference)
    add_differences(weights, tile.x, tile.y, out)
