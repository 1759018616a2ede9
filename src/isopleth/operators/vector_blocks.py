"""Blocks between numbers and vectors, which scores consist of: gradients, divergences and the curl-free kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth.core.arrays import Array, add_at, host_view, namespace, on_processor, overwrite
from isopleth.core.threads import slices
from isopleth.kernels import Kernel, Workspace
from isopleth.kernels.base import cap
from isopleth.operators.blocks import (
    Block,
    Evaluate,
    EvaluateFor,
    Matrix,
    OfFunction,
    Tile,
    laplacian_slope,
    second_derivative,
    slope_and_bend,
)

# Derivatives of rough kernels are infinite at 0, where limits along opposite directions cancel. Below, a term with the factor
# x - y is therefore 0 for pairs that coincide.


class Radial(OfFunction):
    r"""Numbers to vectors, :math:`out_i = \sum_j q(s_{ij})\, (x_i - y_j)\, v_j` with a scalar function q of the kernel."""

    def zeros(self, x: Array, v: Array) -> Array:
        """Return zeros of the shape of the points; coefficients have one column."""
        if v.ndim != 1:
            raise ValueError(f"the {self!r} block takes one column of coefficients, not an array of shape {v.shape}.")
        return namespace(x).zeros(x.shape, dtype=x.dtype, device=x.device)

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Add far pairs by one product with the columns (v y, v), near ones by their differences."""
        if tile.direct:
            self._add_direct(kernel, tile, v, out)
            return
        xp = namespace(tile.s)
        weights = self._evaluate(kernel)(tile.s, tile.work)
        if tile.near is not None:
            rows, columns, difference, near = clear_near(tile, weights)
            add_at(out, rows, (near * xp.take(v, columns, axis=0))[:, None] * difference)
        v = xp.reshape(v, (-1, 1))
        sums = weights @ xp.concat([tile.y * v, v], axis=1)
        out += tile.x * sums[:, -1:] - sums[:, :-1]

    def _add_direct(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Add weights times differences of points, column by column, without products that lose digits."""
        coincident = tile.s == 0.0
        weights = self._evaluate(kernel)(tile.s, tile.work)
        weights[coincident] = 0.0
        for j in range(tile.x.shape[1]):
            step = tile.difference(j)
            step *= weights
            out[:, j] += step @ v


class _OfVectors(Block):
    """Base class of blocks whose coefficients are one vector for each point."""

    def _check(self, x: Array, v: Array) -> None:
        """Refuse coefficients that are not one vector a point."""
        if v.ndim != 2 or v.shape[1] != x.shape[1]:
            raise ValueError(
                f"the {self!r} block takes one vector of {x.shape[1]} coefficients for each point, not an array of "
                f"shape {v.shape}."
            )


class Flux(OfFunction, _OfVectors):
    r"""Vectors to numbers, :math:`out_i = \sum_j q(s_{ij})\, (x_i - y_j)\cdot v_j` for a scalar function q of the kernel."""

    kept = 1

    def zeros(self, x: Array, v: Array) -> Array:
        """Return one zero for each row; coefficients are vectors."""
        self._check(x, v)
        return namespace(x).zeros((x.shape[0],), dtype=x.dtype, device=x.device)

    def matrices(self, kernel: Kernel, tile: Tile) -> tuple[Array]:
        """Compute q, 0 for points that coincide."""
        coincident = tile.s == 0.0
        weights = self._evaluate(kernel)(tile.s, tile.work)
        weights[coincident] = 0.0
        return (weights,)

    def assemble(self, matrices: list[Array], x: Array, y: Array) -> Any:
        """Return the stored form, or None for points so far from the origin that it would lose digits."""
        return None if _far(x, y) else StoredFlux(matrices[0], x, y)

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Add far pairs by the product of points and coefficients, near ones by their differences."""
        xp = namespace(tile.s)
        coincident = tile.s == 0.0 if tile.direct else None
        weights = self._evaluate(kernel)(tile.s, tile.work)
        if tile.direct:
            weights[coincident] = 0.0
            weights *= direct_projection(tile, v)
        else:
            if tile.near is not None:
                rows, columns, difference, near = clear_near(tile, weights)
                add_at(out, rows, near * xp.sum(difference * xp.take(v, columns, axis=0), axis=1))
            weights *= projection(tile, v)
        out += xp.sum(weights, axis=1)


class CurlFreeBlock(_OfVectors):
    r"""Block from vectors to vectors: the curl-free kernel, minus the Hessian of k.

    .. math:: out_i = \sum_j K(x_i, y_j)\, v_j, \qquad K = -(2\varphi' I + 4\varphi''\, u u^\top), \quad u = x_i - y_j

    With :math:`W_{ij} = -4\varphi''(s_{ij})\, u\cdot v_j`, three products with matrices of one number for each pair give it as
    :math:`\sum_j W_{ij} (x_i - y_j) - 2\sum_j \varphi'(s_{ij})\, v_j`.
    """

    symmetric = True
    kept = 2

    def __repr__(self) -> str:
        return "curl-free"

    def zeros(self, x: Array, v: Array) -> Array:
        """Return zeros of the shape of the points; coefficients are vectors."""
        self._check(x, v)
        return namespace(x).zeros(x.shape, dtype=x.dtype, device=x.device)

    def matrices(self, kernel: Kernel, tile: Tile) -> tuple[Array, Array]:
        r"""Compute :math:`-2\varphi'` and :math:`-4\varphi''`, the second 0 for points that coincide."""
        coincident = tile.s == 0.0 if tile.direct or tile.near is not None else None
        slope, bend = slope_and_bend(kernel, tile.s, tile.work)
        if coincident is not None:
            bend[coincident] = 0.0
        return slope, bend

    def assemble(self, matrices: list[Array], x: Array, y: Array) -> Any:
        """Return the stored form, or None for points so far from the origin that it would lose digits."""
        return None if _far(x, y) else StoredCurlFree(matrices[0], StoredBend(matrices[1], x, y))

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> tuple[Array, Array]:
        """Add the tile, and return its two matrices, in which near pairs are included."""
        slope, bend = self.matrices(kernel, tile)
        out += slope @ v
        if tile.direct:
            weights = direct_projection(tile, v)
            weights *= bend
            add_direct_differences(tile, weights, 1, out)
            return slope, bend
        weights = projection(tile, v)
        weights *= bend
        if tile.near is not None:
            self._add_near(tile, bend, weights, v, out, back=False)
        add_differences(weights, tile.x, tile.y, out)
        return slope, bend

    def add_transposed(self, kept: tuple[Array, Array], tile: Tile, v: Array, out: Array) -> None:
        """Add the transposed pairs, for coefficients `v` of the rows, in the layout of the tile."""
        slope, bend = kept
        out += slope.T @ v
        if tile.direct:
            weights = direct_projection(tile, v[:, None, :])
            weights *= bend
            add_direct_differences(tile, weights, 0, out)
            return
        weights = projection_back(tile, v)
        weights *= bend
        if tile.near is not None:
            self._add_near(tile, bend, weights, v, out, back=True)
        add_differences(weights.T, tile.y, tile.x, out)

    @staticmethod
    def _add_near(tile: Tile, bend: Array, weights: Array, v: Array, out: Array, back: bool) -> None:
        """Add the terms of pairs of near points from exact differences, and leave them out of the weights."""
        xp = namespace(bend)
        rows, columns, difference = tile.near_differences()
        giving, taking = (rows, columns) if back else (columns, rows)
        exact = bend[tile.near] * xp.sum(difference * xp.take(v, giving, axis=0), axis=1)
        weights[tile.near] = 0.0
        add_at(out, taking, exact[:, None] * difference)


def _far(x: Array, y: Array) -> bool:
    """Tell whether points are so far from the origin that products of coordinates lose the digits of differences."""
    xp = namespace(x)
    farthest = max(float(xp.max(xp.sum(a * a, axis=1))) for a in (x, y))
    return farthest > (5e4 if x.dtype == xp.float64 else 1e3)


class StoredFlux:
    """Stored form of a flux: one product with the matrix of q for each call."""

    def __init__(self, weights: Array, x: Array, y: Array) -> None:
        self._weights, self._x, self._y = weights, x, y

    def __matmul__(self, v: Array) -> Array:
        xp = namespace(v)
        sums = times_each(self._weights, xp.concat([v, _own(self._y, v)], axis=-1))
        return xp.sum(self._x * sums[..., :-1], axis=-1) - sums[..., -1]

    def __getitem__(self, part: tuple[slice, slice]) -> StoredFlux:
        rows, columns = part
        return StoredFlux(self._weights[part], self._x[rows, :], self._y[columns, :])


# Pairs that a product with a stored matrix computes at once, with one number of scratch for each. On the CPU they fit in the
# cache.
HOST_PAIRS, DEVICE_PAIRS = 2**19, 2**25


class StoredBend:
    r"""Stored form of the part :math:`-4\varphi''\, u u^\top` of the curl-free kernel."""

    def __init__(self, bend: Array, x: Array, y: Array) -> None:
        self._bend, self._x, self._y = bend, x, y
        # With a column of ones, matrix products replace further passes over the pairs.
        self._left = _with_ones(x)
        self._right = self._left if y is x else _with_ones(y)

    def __matmul__(self, v: Array) -> Array:
        xp = namespace(v)
        right = xp.concat([v, -_own(self._y, v)], axis=-1)
        rows = self._bend.shape[0]
        right = right.T if v.ndim == 2 else xp.reshape(xp.permute_dims(right, (2, 0, 1)), (right.shape[2], -1))
        step = (HOST_PAIRS if on_processor(v) else DEVICE_PAIRS) // right.shape[1]
        sums = [self._some(part, right) for part in slices(rows, step)]
        whole = sums[0] if len(sums) == 1 else xp.concat(sums)
        if v.ndim == 3:
            whole = xp.permute_dims(xp.reshape(whole, (rows, v.shape[0], -1)), (1, 0, 2))
        return self._x * whole[..., -1:] - whole[..., :-1]

    def _some(self, rows: slice, right: Array) -> Array:
        """Return the sums at some rows, for each row those of all coefficient arrays, which `right` has side by side."""
        xp, columns = namespace(right), self._bend.shape[1]
        weights = self._left[rows, :] @ right
        if right.shape[1] == columns:
            weights *= self._bend[rows, :]
            return weights @ self._right
        weights = xp.reshape(weights, (weights.shape[0], -1, columns))
        weights *= self._bend[rows, :][:, None, :]
        return xp.reshape(weights, (-1, columns)) @ self._right

    def __getitem__(self, part: tuple[slice, slice]) -> StoredBend:
        rows, columns = part
        return StoredBend(self._bend[part], self._x[rows, :], self._y[columns, :])


class StoredCurlFree:
    """Stored form of the curl-free kernel, for the many products of a solver."""

    def __init__(self, slope: Array, bend: StoredBend) -> None:
        self._slope, self._bend = slope, bend

    def __matmul__(self, v: Array) -> Array:
        return times_each(self._slope, v) + self._bend @ v

    def __getitem__(self, part: tuple[slice, slice]) -> StoredCurlFree:
        return StoredCurlFree(self._slope[part], self._bend[part])


def _own(y: Array, v: Array) -> Array:
    """Return y_j . v_j, as one column."""
    return namespace(v).sum(y * v, axis=-1)[..., None]


def times_each(matrix: Array, v: Array) -> Array:
    """Return the product of a matrix with one array of shape (m, d), or with each of several, by one matrix product."""
    if v.ndim == 2:
        return matrix @ v
    xp, (count, m, d) = namespace(v), v.shape
    side_by_side = xp.reshape(xp.permute_dims(v, (1, 0, 2)), (m, count * d))
    return xp.permute_dims(xp.reshape(matrix @ side_by_side, (-1, count, d)), (1, 0, 2))


def _with_ones(x: Array) -> Array:
    xp = namespace(x)
    return xp.concat([x, xp.ones((x.shape[0], 1), dtype=x.dtype, device=x.device)], axis=1)


def _times_slope(factor: float) -> EvaluateFor:
    """Return a factor times the slope of the kernel as a function of squared distances."""

    def bound(kernel: Kernel) -> Evaluate:
        def evaluate(s: Array, work: Workspace) -> Array:
            out = kernel._product(s, 1, work)
            out *= factor
            return out

        return evaluate

    return bound


def _laplacian_slope(kernel: Kernel) -> Evaluate:
    return lambda s, work: laplacian_slope(kernel, s, work)


def _bilaplacian(kernel: Kernel) -> Evaluate:
    """Return the bilaplacian of the kernel as a function of squared distances."""
    limit = kernel.second_at_zero()
    dim = float(kernel.bound_dim)

    def evaluate(s: Array, work: Workspace) -> Array:
        out = work.copy("fourth", kernel._product(work.copy("fourth of", s), 4, work))
        out *= 16.0
        third = kernel._product(work.copy("third of", s), 3, work)
        third *= 16.0 * (dim + 2.0)
        out += third
        second = second_derivative(kernel, s, work, at_zero=limit)
        second *= 4.0 * dim * (dim + 2.0)
        out += second
        return out

    return evaluate


# grad_x k(x_i, y_j) v_j = 2 phi' (x_i - y_j) v_j.
GRADIENT = Radial("gradient", _times_slope(2.0), light=True)

# grad_x Delta k(x_i, y_j) v_j = 4 ((d + 2) phi'' + 2 s phi''') (x_i - y_j) v_j.
GRADIENT_OF_LAPLACIAN = Radial("gradient of laplacian", _laplacian_slope)

# grad_x k(x_i, y_j) . v_j: the divergence of k(., y_j) v_j, and minus the potential of the curl-free kernel.
FLUX = Flux("flux", _times_slope(2.0), light=True)

# grad_x Delta k(x_i, y_j) . v_j: minus the divergence of the curl-free kernel.
FLUX_OF_LAPLACIAN = Flux("flux of laplacian", _laplacian_slope)

CURL_FREE = CurlFreeBlock()

# -2 phi': the part of the curl-free kernel that is a multiple of the identity.
SLOPE = Matrix("slope", _times_slope(-2.0), light=True)

# Delta^2 k = 16 s^2 phi'''' + 16 (d + 2) s phi''' + 4 d (d + 2) phi''.
BILAPLACIAN = Matrix("bilaplacian", _bilaplacian)


class _RowBlock(Block):
    """Base class of blocks with coefficients of rows, which follow the sum in the columns of the result."""

    def __init__(self, rows: Array) -> None:
        self._rows = host_view(rows)

    def zeros(self, x: Array, v: Array) -> Array:
        """Return zeros for the sum, then the coefficients."""
        xp = namespace(x)
        return xp.concat(
            [xp.zeros((x.shape[0], self._width(x.shape[1])), dtype=x.dtype, device=x.device), self._rows], axis=1
        )

    def _width(self, dim: int) -> int:
        """Return the number of columns of the sum."""
        return dim


class PairedGradient(_RowBlock):
    r""":math:`out_i = \sum_j (a_i \cdot v_j)\, \nabla_x k(x_i, y_j)` for coefficients a of shape (n, k) and v of shape (m, k)."""

    light = True

    def __repr__(self) -> str:
        return "paired gradient"

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Add slopes times the product of both coefficients."""
        d = tile.x.shape[1]
        coincident = tile.s == 0.0 if tile.direct else None
        weights = kernel._product(tile.s, 1, tile.work)
        weights *= matmul(2.0 * out[:, d:], v.T, tile.work, "pair coefficients")
        _add_weighted_differences(tile, weights, coincident, out[:, :d])


class PairedHessian(_RowBlock):
    r""":math:`out_i = \sum_j v_j\, \nabla_x^2 k(x_i, y_j)\, a_i` for vectors a of shape (n, d) and numbers v of shape (m,)."""

    def __repr__(self) -> str:
        return "paired hessian"

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Subtract the curl-free kernel with the vectors of the rows."""
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

    Subtract the largest logarithm of each sum from a or v before, so that no exponential is more than 1.
    """

    def __repr__(self) -> str:
        return "paired log gradient"

    def _width(self, dim: int) -> int:
        return dim + 1

    def add(self, kernel: Kernel, tile: Tile, v: Array, out: Array) -> None:
        """Add shares, and shares times slopes of the logarithm."""
        xp, d = namespace(tile.s), tile.x.shape[1]
        coincident = tile.s == 0.0 if tile.direct else None
        slopes = kernel._log_slope(tile.work.copy("log slope", tile.s), tile.work)
        shares = kernel._log(tile.s, tile.work)
        shares += v[:, 0]
        shares += out[:, d + 1 :]
        shares = overwrite(xp.exp, cap(shares, 0.0))  # rounding of large logarithms can make the exponent positive
        shares *= v[:, 1]
        out[:, d] += xp.sum(shares, axis=1)
        slopes *= shares
        slopes *= 2.0
        _add_weighted_differences(tile, slopes, coincident, out[:, :d])


def _add_weighted_differences(tile: Tile, weights: Array, coincident: Any, out: Array) -> None:
    """Add sum_j weights_ij (x_i - y_j), where pairs that coincide count as 0 even if their weight is infinite."""
    if tile.direct:
        weights[coincident] = 0.0
        add_direct_differences(tile, weights, 1, out)
        return
    if tile.near is not None:
        rows, _, difference, near = clear_near(tile, weights)
        add_at(out, rows, near[:, None] * difference)
    add_differences(weights, tile.x, tile.y, out)


def matmul(a: Array, b: Array, work: Workspace, slot: str) -> Array:
    """Return a @ b, in scratch."""
    if not isinstance(a, np.ndarray):
        return namespace(a).matmul(a, b)
    return np.matmul(a, b, out=work.empty(slot, (a.shape[0], b.shape[1]), a.dtype))


def clear_near(tile: Tile, weights: Array) -> tuple[Array, Array, Array, Array]:
    """Set near pairs of `weights` to 0, and return row, column, x - y and weight of each, 0 for pairs that coincide."""
    xp = namespace(weights)
    rows, columns, difference = tile.near_differences()
    taken = weights[tile.near]
    taken = xp.where(xp.sum(difference * difference, axis=1) > 0.0, taken, xp.zeros_like(taken))
    weights[tile.near] = 0.0
    return rows, columns, difference, taken


def projection(tile: Tile, v: Array) -> Array:
    """Return (x_i - y_j) . v_j, in scratch, by a matrix product that loses digits for near pairs."""
    out = matmul(tile.x, v.T, tile.work, "projection")
    out -= namespace(v).sum(tile.y * v, axis=1)
    return out


def projection_back(tile: Tile, v: Array) -> Array:
    """Return (y_j - x_i) . v_i, in scratch, in the layout of the tile, which is faster than a transposed array."""
    out = matmul(v, tile.y.T, tile.work, "projection")
    out -= namespace(v).sum(tile.x * v, axis=1)[:, None]
    return out


def direct_projection(tile: Tile, v: Array) -> Array:
    """Return (x_i - y_j) . v_j, in scratch, by differences; for v of shape (rows, 1, dim) it is (x_i - y_j) . v_i."""
    out: Array = None
    for j in range(tile.x.shape[1]):
        step = tile.difference(j)
        step *= v[..., j]
        if out is None:
            out = tile.work.copy("projection", step)
        else:
            out += step
    return out


def add_differences(weights: Array, x: Array, y: Array, out: Array) -> None:
    """Add sum_j weights_ij (x_i - y_j)."""
    out -= weights @ y
    out += x * namespace(weights).sum(weights, axis=1)[:, None]


def add_direct_differences(tile: Tile, weights: Array, axis: int, out: Array) -> None:
    """Add sums over an axis of the tile of weights_ij (x_i - y_j)."""
    for j in range(tile.x.shape[1]):
        step = tile.difference(j)
        step *= weights
        out[:, j] += namespace(step).sum(step, axis=axis)
