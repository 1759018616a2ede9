"""Loop over tiles: squared distances of some rows and some columns, which a block adds to a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Self, TypeVar

import numpy as np

from isopleth.core.arrays import Array, full_precision, later, namespace, on_processor
from isopleth.core.budget import Budget
from isopleth.core.threads import check_stopped, map_threads, slices
from isopleth.kernels import Kernel, Workspace
from isopleth.operators.blocks import Block, Tile, outer_difference

DIRECT_DIM = 3  # up to this dimension differences cost no more than the matrix product, and are exact

T = TypeVar("T")


@dataclass(frozen=True)
class Points:
    """Points, their squared norms, and the two factors of the matrix product that gives squared distances."""

    x: Array
    norms: Array
    left: Array
    right: Array

    @classmethod
    def of(cls, x: Array) -> Points:
        """Return points with factors for |x - y|^2 = (-2x, |x|^2, 1) . (y, 1, |y|^2), one matrix product for each tile."""
        xp = namespace(x)
        norms = xp.sum(x * x, axis=1)
        ones = xp.ones((x.shape[0], 1), dtype=x.dtype, device=x.device)
        left = xp.concat([-2.0 * x, norms[:, None], ones], axis=1)
        right = xp.asarray(xp.concat([x, ones, norms[:, None]], axis=1).T, device=x.device, copy=True)
        return cls(x, norms, left, right)

    def part(self, rows: slice) -> Points:
        """Return some of the points, without a copy."""
        return Points(self.x[rows, :], self.norms[rows], self.left[rows, :], self.right[:, rows])


def _direct(a: Array, b: Array, work: Workspace) -> Array:
    """Compute squared distances by differences, exact where digits of the matrix product cancel."""
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


def _start_tile(
    x: Points, rows: slice, y: Points, columns: slice, work: Workspace, reach: Array, exponent: float | None
) -> Callable[[], Tile]:
    """Start computing a tile of exact squared distances, times `exponent` if given; call the returned function to finish.

    `reach` is the largest sum of two squared norms in the tile. Only the returned function waits for a device.
    """
    xp = namespace(x.x)
    a, b = x.x[rows, :], y.x[columns, :]
    if a.shape[1] <= DIRECT_DIM:
        tile = Tile(_direct(a, b, work), a, b, work, direct=True)
        return lambda: tile
    s = _product(x, rows, y, columns, work)
    unit = 1.0 if exponent is None else exponent
    nearness = unit * (1e-5 if x.x.dtype == xp.float64 else 1e-3)
    clear = later(xp.min(s) > nearness * reach if unit > 0.0 else xp.max(s) < nearness * reach)

    def end() -> Tile:
        tile = Tile(s, a, b, work, exponential=exponent is not None)
        if clear():
            return tile
        limits = x.norms[rows][:, None] + y.norms[columns][None, :]
        limits *= nearness
        return _corrected(tile, s <= limits if unit > 0.0 else s >= limits, unit)

    return end


def _corrected(tile: Tile, near: Array, unit: float) -> Tile:
    """Compute the distances of `near` pairs, whose digits cancel in the matrix product, again by differences."""
    s, xp = tile.s, namespace(tile.s)
    count = int(xp.count_nonzero(near))
    if count == 0:
        return tile
    if count * tile.x.shape[1] > s.shape[0] * s.shape[1]:  # their differences would take more memory than the tile
        return Tile(_direct(tile.x, tile.y, tile.work), tile.x, tile.y, tile.work, direct=True)
    tile = replace(tile, near=near)
    s[near] = unit * xp.sum(tile.near_differences()[2] ** 2, axis=1)
    return tile


def _share(count: int, worker: int, workers: int) -> Iterator[int]:
    """Return the row blocks of one worker, dealt in turns 0 1 2, 2 1 0, ...: even shares of triangular work, always the same."""
    for i in range(count):
        turn, place = divmod(i, workers)
        if (place if turn % 2 == 0 else workers - 1 - place) == worker:
            yield i


@dataclass(frozen=True)
class Sweep:
    """Pass over all pairs of `x` and `y`, in tiles, by threads."""

    kernel: Kernel
    block: Block
    x: Points
    y: Points
    layout: Layout

    def run(self, v: Array) -> Array:
        """Return the block's sum over all columns, for coefficients `v` of the columns."""
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

    def matrices(self, out: list[Array] | None = None) -> list[Array]:
        """Return the matrices of the block's stored form, in the memory of `out` if it is given."""
        x = self.x.x
        shape = (x.shape[0], self.y.x.shape[0])
        out = out or [namespace(x).empty(shape, dtype=x.dtype, device=x.device) for _ in range(self.block.kept)]

        half = self.block.symmetric and self.x is self.y

        def fill(tile: Tile, row: slice, column: slice, worker: int) -> None:
            for whole, share in zip(out, self.block.matrices(self.kernel, tile), strict=True):
                whole[row, column] = share
                if half and column.start != row.start:
                    whole[column, row] = share.T

        self._each(fill, half=half)
        return out

    def _separated(self, row: slice, column: slice, work: Workspace) -> Callable[[], Tile]:
        """Start a tile of a kernel that is a function of coordinates, not of distances."""
        a, b = self.x.x[row, :], self.y.x[column, :]
        return lambda: Tile(self.kernel.separation(a, b, work), a, b, work, direct=True)

    def _each(self, visit: Callable[[Tile, slice, slice, int], None], half: bool) -> None:
        """Call `visit` for every tile, or with `half` for those on and right of the diagonal; a row of tiles has one worker."""
        workers, tile = self.layout.workers, self.layout.tile
        rows, columns = slices(self.x.x.shape[0], tile[0]), slices(self.y.x.shape[0], tile[1])

        down, across = _with_largest_norm(self.x.norms, rows), _with_largest_norm(self.y.norms, columns)
        here = on_processor(self.x.x)
        exponent = None if here or self.x.x.shape[1] <= DIRECT_DIM else self.block.exponent(self.kernel)
        x = self.x if exponent is None else replace(self.x, left=exponent * self.x.left)

        def started(worker: int) -> Iterator[tuple[Callable[[], Tile], slice, slice]]:
            scratch = Workspace()
            for i in _share(len(rows), worker, workers):
                row, own = down[i]
                for column, reach in [down[i], *_from(row.stop, across)] if half else across:
                    if self.kernel.by_columns:
                        yield self._separated(row, column, scratch), row, column
                        continue
                    yield _start_tile(x, row, self.y, column, scratch, own + reach, exponent), row, column

        def work(worker: int) -> None:
            tiles = started(worker)
            with np.errstate(all="ignore"):  # infinite limits at 0 and underflow of far pairs are correct
                for end, row, column in tiles if here else _one_ahead(tiles):
                    check_stopped()
                    visit(end(), row, column, worker)
                    del end  # its memory is needed for the tile after the next

        with full_precision(self.x.x):
            map_threads(work, range(workers), workers)


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield each item after the next one was started, so that a device computes that while the host waits for this one."""
    last = list(islice(items, 1))
    for item in items:
        yield last.pop()
        last.append(item)
    yield from last


def _with_largest_norm(norms: Array, slices: list[slice]) -> list[tuple[slice, Array]]:
    """Return each slice with the largest of its squared norms."""
    xp = namespace(norms)
    return [(part, xp.max(norms[part])) for part in slices]


def _from(start: int, columns: list[tuple[slice, Array]]) -> Iterator[tuple[slice, Array]]:
    """Yield the slices of `columns`, cut to what lies at or after `start`, each with its largest norm."""
    for column, reach in columns:
        if column.stop > start:
            yield slice(max(column.start, start), column.stop), reach


HOST_TILE = (256, 512)  # 1 MiB of float64: a second-level cache of one core
DEVICE_TILE = (4096, 8192)  # enough work that a GPU does not wait for the host
SCRATCH_TILES = 10  # most memory for a tile and the scratch of a kernel and a block, in tiles
LIGHT_TILES = 6  # the same for blocks of phi or phi' alone; near pairs use most of it
AHEAD_TILES = 1  # on a device the next tile is started before one is added
SMALL = 2**18  # pairs below which a second thread costs more than it saves


@dataclass(frozen=True)
class Layout:
    """Rows and columns of a tile, and the number of threads."""

    workers: int
    tile: tuple[int, int]
    # Numbers that all threads together keep for tiles and for copies of their points.
    numbers: int

    @classmethod
    def of(cls, x: Array, shape: tuple[int, int], budget: Budget, light: bool = False) -> Self:
        """Return the layout for points such as `x`: small tiles and threads on the CPU, large tiles and one thread elsewhere."""
        itemsize = 8 if x.dtype == namespace(x).float64 else 4
        host = on_processor(x)
        workers = workers_for(*shape, budget) if host else 1
        held = LIGHT_TILES if light else SCRATCH_TILES
        usual, tiles = (HOST_TILE, SCRATCH_TILES) if host else (DEVICE_TILE, held + AHEAD_TILES)
        tile = tile_within(budget.memory / (itemsize * workers), int(x.shape[1]), usual, tiles)
        return cls(workers, tile, workers * scratch(tile, int(x.shape[1]), tiles))


def workers_for(n: int, m: int, budget: Budget) -> int:
    """Return the number of threads for a pass over n x m pairs."""
    threads = budget.threads  # checked for few pairs too
    return 1 if n * m < SMALL else min(threads, -(-n // HOST_TILE[0]))


def scratch(tile: tuple[int, int], dim: int, tiles: int) -> int:
    """Return how many numbers one thread keeps for a tile and for copies of its points."""
    return tiles * tile[0] * tile[1] + 4 * (tile[0] + tile[1]) * (dim + 1)


def tile_within(numbers: float, dim: int, usual: tuple[int, int], tiles: int) -> tuple[int, int]:
    """Return the largest tile, up to the usual one, whose scratch is within `numbers`, at least one pair."""
    rows, columns = usual
    while scratch((rows, columns), dim, tiles) > numbers and max(rows, columns) > 1:
        if columns >= rows:
            columns = -(-columns // 2)
        else:
            rows = -(-rows // 2)
    return rows, columns
