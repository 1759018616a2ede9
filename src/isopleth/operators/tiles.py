"""The one tile loop: squared distances of some rows against some columns, folded into a result by a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np

from isopleth._namespace import Array, namespace
from isopleth.kernels import Kernel, Workspace
from isopleth.operators import devices
from isopleth.operators.blocks import Block, Tile, outer_difference
from isopleth.operators.layout import Layout
from isopleth.operators.threads import map_threads

DIRECT_DIM = 3  # up to here differences cost no more than the matrix product and lose nothing

T = TypeVar("T")


@dataclass(frozen=True)
class Points:
    """Points with what every tile needs of them: squared norms, and both factors of the product that gives distances."""

    x: Array
    norms: Array
    left: Array
    right: Array

    @classmethod
    def of(cls, x: Array) -> Points:
        """|x - y|^2 = (-2x, |x|^2, 1) . (y, 1, |y|^2): one matrix product and no further pass over the tile."""
        xp = namespace(x)
        norms = xp.sum(x * x, axis=1)
        ones = xp.ones((x.shape[0], 1), dtype=x.dtype, device=x.device)
        left = xp.concat([-2.0 * x, norms[:, None], ones], axis=1)
        right = xp.asarray(xp.concat([x, ones, norms[:, None]], axis=1).T, device=x.device, copy=True)
        return cls(x, norms, left, right)

    def part(self, rows: slice) -> Points:
        """Some of the points, without a copy."""
        return Points(self.x[rows, :], self.norms[rows], self.left[rows, :], self.right[:, rows])


def _direct(a: Array, b: Array, work: Workspace) -> Array:
    """Squared distances by differences, exact where the matrix product cancels."""
    s: Array = None
    for j in range(a.shape[1]):
        step = outer_difference(a[:, j], b[:, j], work)
        step *= step
        if s is None:
            s = work.copy("distances", step)
        else:
            s += step
    return s


def _product(x: Points, rows: slice, y: Points, columns: slice, work: Workspace) -> Array:
    left, right = x.left[rows, :], y.right[:, columns]
    if not isinstance(left, np.ndarray):
        return namespace(left).matmul(left, right)
    return np.matmul(left, right, out=work.empty("distances", (left.shape[0], right.shape[1]), left.dtype))


def _begin(
    x: Points, rows: slice, y: Points, columns: slice, work: Workspace, reach: Array, exponent: float | None
) -> Callable[[], Tile]:
    """Begin a tile of exact squared distances; what is answered ends it.

    `reach` is the largest sum of two squared norms in it. Where there is an `exponent`, which is negative, points give that
    many times their distances. Only the end waits for a number of a device.
    """
    xp = namespace(x.x)
    a, b = x.x[rows, :], y.x[columns, :]
    if a.shape[1] <= DIRECT_DIM:
        tile = Tile(_direct(a, b, work), a, b, work, direct=True)
        return lambda: tile
    s = _product(x, rows, y, columns, work)
    unit = 1.0 if exponent is None else exponent
    nearness = unit * (1e-5 if x.x.dtype == xp.float64 else 1e-3)
    clear = devices.later(xp.min(s) > nearness * reach if unit > 0.0 else xp.max(s) < nearness * reach)

    def end() -> Tile:
        tile = Tile(s, a, b, work, exponential=exponent is not None)
        if clear():
            return tile
        limits = x.norms[rows][:, None] + y.norms[columns][None, :]
        limits *= nearness
        return _corrected(tile, s <= limits if unit > 0.0 else s >= limits, unit)

    return end


def _corrected(tile: Tile, near: Array, unit: float) -> Tile:
    """Distances for which the matrix product cancels, the `near` ones, taken again by their differences."""
    s, xp = tile.s, namespace(tile.s)
    count = int(xp.count_nonzero(near))
    if count == 0:
        return tile
    if count * tile.x.shape[1] > s.shape[0] * s.shape[1]:  # their differences would take more memory than the tile
        return Tile(_direct(tile.x, tile.y, tile.work), tile.x, tile.y, tile.work, direct=True)
    tile = replace(tile, near=near)
    s[near] = unit * xp.sum(tile.near_differences()[2] ** 2, axis=1)
    return tile


def _slices(size: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def _share(count: int, worker: int, workers: int) -> Iterator[int]:
    """Row blocks of one worker: dealt out and back, so that triangular work is even and the order never depends on timing."""
    for i in range(count):
        turn, place = divmod(i, workers)
        if (place if turn % 2 == 0 else workers - 1 - place) == worker:
            yield i


@dataclass(frozen=True)
class Sweep:
    """A pass over all pairs of `x` and `y`, in tiles, by threads."""

    kernel: Kernel
    block: Block
    x: Points
    y: Points
    layout: Layout

    def run(self, v: Array) -> Array:
        """The block's sum over all columns, for coefficients `v` of the columns."""
        out = self.block.zeros(self.x.x, v)
        if not (self.block.symmetric and self.x is self.y):

            def add(tile: Tile, row: slice, column: slice, worker: int) -> None:
                self.block.add(self.kernel, tile, v[column, ...], out[row, ...])

            self._each(add, half=False)
            return out
        mirrors = [self.block.zeros(self.x.x, v) for _ in range(self.layout.workers)]

        def add_both(tile: Tile, row: slice, column: slice, worker: int) -> None:
            kept = self.block.add(self.kernel, tile, v[column, ...], out[row, ...])
            if column.start != row.start:
                self.block.add_transposed(kept, tile, v[row, ...], mirrors[worker][column, ...])

        self._each(add_both, half=True)
        return out + sum(mirrors)

    def parts(self) -> list[Array]:
        """The matrices of the block's stored form, filled by the same tiles."""
        x = self.x.x
        shape = (x.shape[0], self.y.x.shape[0])
        out = [namespace(x).empty(shape, dtype=x.dtype, device=x.device) for _ in range(self.block.kept)]

        def fill(tile: Tile, row: slice, column: slice, worker: int) -> None:
            for whole, part in zip(out, self.block.parts(self.kernel, tile), strict=True):
                whole[row, column] = part

        self._each(fill, half=False)
        return out

    def _each(self, visit: Callable[[Tile, slice, slice, int], None], half: bool) -> None:
        """Visit every tile, or with `half` those on and right of the diagonal; a row of tiles stays with one worker."""
        workers, tile = self.layout.workers, self.layout.tile
        rows, columns = _slices(self.x.x.shape[0], tile[0]), _slices(self.y.x.shape[0], tile[1])

        down, across = _with_reach(self.x.norms, rows), _with_reach(self.y.norms, columns)
        on_processor = devices.on_processor(self.x.x)
        exponent = None if on_processor or self.x.x.shape[1] <= DIRECT_DIM else self.block.exponent(self.kernel)
        x = self.x if exponent is None else replace(self.x, left=exponent * self.x.left)

        def begun(worker: int) -> Iterator[tuple[Callable[[], Tile], slice, slice]]:
            scratch = Workspace()
            for i in _share(len(rows), worker, workers):
                row, own = down[i]
                for column, reach in [down[i], *_behind(row.stop, across)] if half else across:
                    yield _begin(x, row, self.y, column, scratch, own + reach, exponent), row, column

        def work(worker: int) -> None:
            tiles = begun(worker)
            with np.errstate(all="ignore"):  # limits at 0 and underflow far away are meant
                for end, row, column in tiles if on_processor else _one_ahead(tiles):
                    visit(end(), row, column, worker)
                    del end  # the memory of this tile is for the one after the next

        with devices.full_precision(self.x.x):
            map_threads(work, range(workers), workers)


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each once the next one is there too: a device works on that while the host waits for this one."""
    last = list(islice(items, 1))
    for item in items:
        yield last.pop()
        last.append(item)
    yield from last


def _with_reach(norms: Array, slices: list[slice]) -> list[tuple[slice, Array]]:
    """Each slice, with the largest of its squared norms."""
    xp = namespace(norms)
    return [(part, xp.max(norms[part])) for part in slices]


def _behind(start: int, columns: list[tuple[slice, Array]]) -> Iterator[tuple[slice, Array]]:
    """What of `columns` lies at or behind `start`, each with what it came with."""
    for column, reach in columns:
        if column.stop > start:
            yield slice(max(column.start, start), column.stop), reach
