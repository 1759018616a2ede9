"""Differences of the points of a tile, by matrix products where those keep the digits and one by one where they do not."""

from __future__ import annotations

import numpy as np

from isopleth._namespace import Array, namespace
from isopleth.kernels import Workspace
from isopleth.operators.blocks import Tile


def matmul(a: Array, b: Array, work: Workspace, slot: str) -> Array:
    """a @ b, in scratch."""
    if not isinstance(a, np.ndarray):
        return namespace(a).matmul(a, b)
    return np.matmul(a, b, out=work.empty(slot, (a.shape[0], b.shape[1]), a.dtype))


def clear_near(tile: Tile, weights: Array) -> tuple[Array, Array, Array, Array]:
    """Take the near pairs out of `weights`: row, column, x - y and weight of each, 0 where the two coincide."""
    xp = namespace(weights)
    rows, columns, difference = tile.near_differences()
    taken = weights[tile.near]
    taken = xp.where(xp.sum(difference * difference, axis=1) > 0.0, taken, xp.zeros_like(taken))
    weights[tile.near] = 0.0
    return rows, columns, difference, taken


def projection(tile: Tile, v: Array) -> Array:
    """(x_i - y_j) . v_j, in scratch, by a matrix product that loses digits for near pairs."""
    out = matmul(tile.x, v.T, tile.work, "projection")
    out -= namespace(v).sum(tile.y * v, axis=1)
    return out


def projection_back(tile: Tile, v: Array) -> Array:
    """(y_j - x_i) . v_i, in scratch, in the layout of the tile: reading a tile across its rows costs more than a product."""
    out = matmul(v, tile.y.T, tile.work, "projection")
    out -= namespace(v).sum(tile.x * v, axis=1)[:, None]
    return out


def direct_projection(tile: Tile, v: Array) -> Array:
    """(x_i - y_j) . v_j, in scratch, by differences; with v of shape (rows, 1, dim) it is (x_i - y_j) . v_i."""
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
