"""The one tile loop: squared distances of some rows against some columns, folded into a result by a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from isopleth._namespace import Array, namespace
from isopleth.kernels import Kernel, Workspace
from isopleth.operators.blocks import Block, Tile, outer_difference
from isopleth.operators.threads import map_threads

TILE_ROWS, TILE_COLUMNS = 256, 512  # 1 MiB of float64: a second-level cache of one core
SCRATCH_TILES = 10  # the most that a tile takes with all that a kernel and a block keep beside it, in tiles
SMALL = 2**18  # pairs below which a second thread costs more than it saves
DIRECT_DIM = 3  # up to here differences cost no more than the matrix product and lose nothing


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
        ones = xp.ones((x.shape[0], 1), dtype=x.dtype)
        left = xp.concat([-2.0 * x, norms[:, None], ones], axis=1)
        right = xp.asarray(xp.concat([x, ones, norms[:, None]], axis=1).T, copy=True)
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


def _tile(x: Points, rows: slice, y: Points, columns: slice, work: Workspace) -> Tile:
    """Tile of exact squared distances: those for which the matrix product cancels are taken again by their differences."""
    xp = namespace(x.x)
    a, b = x.x[rows, :], y.x[columns, :]
    if a.shape[1] <= DIRECT_DIM:
        return Tile(_direct(a, b, work), a, b, work, direct=True)
    s = _product(x, rows, y, columns, work)
    nearness = 1e-5 if x.x.dtype == xp.float64 else 1e-3
    if float(xp.min(s)) > nearness * (float(xp.max(x.norms[rows])) + float(xp.max(y.norms[columns]))):
        return Tile(s, a, b, work)
    near = s <= nearness * (x.norms[rows][:, None] + y.norms[columns][None, :])
    count = int(xp.sum(xp.astype(near, xp.int64)))
    if count == 0:
        return Tile(s, a, b, work)
    if count * a.shape[1] > s.shape[0] * s.shape[1]:  # their differences would take more memory than the tile
        return Tile(_direct(a, b, work), a, b, work, direct=True)
    tile = Tile(s, a, b, work, near)
    s[near] = xp.sum(tile.near_differences()[2] ** 2, axis=1)
    return tile


def workers_for(n: int, m: int, n_jobs: int) -> int:
    """Threads that a pass over n x m pairs is worth."""
    return 1 if n * m < SMALL else min(n_jobs, -(-n // TILE_ROWS))


def scratch(tile: tuple[int, int], dim: int) -> int:
    """Numbers that one thread keeps for a tile and for copies of its points."""
    return SCRATCH_TILES * tile[0] * tile[1] + 4 * (tile[0] + tile[1]) * (dim + 1)


def tile_within(numbers: float, dim: int) -> tuple[int, int]:
    """The largest tile, up to the usual one, whose scratch is within `numbers`, as far as a tile of one pair can be."""
    rows, columns = TILE_ROWS, TILE_COLUMNS
    while scratch((rows, columns), dim) > numbers and max(rows, columns) > 1:
        if columns >= rows:
            columns = -(-columns // 2)
        else:
            rows = -(-rows // 2)
    return rows, columns


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
    workers: int
    tile: tuple[int, int]

    def run(self, v: Array) -> Array:
        """The block's sum over all columns, for coefficients `v` of the columns."""
        out = self.block.zeros(self.x.x, v)
        if not (self.block.symmetric and self.x is self.y):

            def add(tile: Tile, row: slice, column: slice, worker: int) -> None:
                self.block.add(self.kernel, tile, v[column, ...], out[row, ...])

            self._each(add, half=False)
            return out
        mirrors = [self.block.zeros(self.x.x, v) for _ in range(self.workers)]

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
        out = [namespace(x).empty(shape, dtype=x.dtype) for _ in range(self.block.kept)]

        def fill(tile: Tile, row: slice, column: slice, worker: int) -> None:
            for whole, part in zip(out, self.block.parts(self.kernel, tile), strict=True):
                whole[row, column] = part

        self._each(fill, half=False)
        return out

    def _each(self, visit: Callable[[Tile, slice, slice, int], None], half: bool) -> None:
        """Visit every tile, or with `half` those on and right of the diagonal; a row of tiles stays with one worker."""
        rows, columns = _slices(self.x.x.shape[0], self.tile[0]), _slices(self.y.x.shape[0], self.tile[1])

        def work(worker: int) -> None:
            scratch = Workspace()
            with np.errstate(all="ignore"):  # limits at 0 and underflow far away are meant
                for row in (rows[i] for i in _share(len(rows), worker, self.workers)):
                    for column in [row, *_behind(row.stop, columns)] if half else columns:
                        visit(_tile(self.x, row, self.y, column, scratch), row, column, worker)

        map_threads(work, range(self.workers), self.workers)


def _behind(start: int, columns: list[slice]) -> Iterator[slice]:
    """What of `columns` lies at or behind `start`."""
    for column in columns:
        if column.stop > start:
            yield slice(max(column.start, start), column.stop)
