"""How a pass over all pairs is cut into tiles, and among how many threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from isopleth._namespace import Array, namespace
from isopleth.operators import devices

HOST_TILE = (256, 512)  # 1 MiB of float64: a second-level cache of one core
DEVICE_TILE = (4096, 8192)  # so much work that a GPU does not wait for the next tile to be sent
SCRATCH_TILES = 10  # the most that a tile takes with all that a kernel and a block keep beside it, in tiles
LIGHT_TILES = 6  # the same for blocks of phi or phi' alone: near pairs take most of it
AHEAD_TILES = 1  # on a device the next tile is begun before one is folded
SMALL = 2**18  # pairs below which a second thread costs more than it saves


@dataclass(frozen=True)
class Layout:
    """Rows and columns of a tile, and the threads that share them out."""

    workers: int
    tile: tuple[int, int]
    numbers: int
    """What the threads keep for tiles and for copies of their points, all together."""

    @classmethod
    def of(cls, x: Array, shape: tuple[int, int], memory_limit: float, n_jobs: int, light: bool = False) -> Self:
        """For points such as `x`: small tiles and threads on the processor, large ones from one thread on other devices.

        A `light` block keeps less beside a tile; on the processor, where tiles are small, that makes no difference.
        """
        itemsize = 8 if x.dtype == namespace(x).float64 else 4
        host = devices.on_processor(x)
        workers = workers_for(*shape, n_jobs) if host else 1
        held = LIGHT_TILES if light else SCRATCH_TILES
        usual, tiles = (HOST_TILE, SCRATCH_TILES) if host else (DEVICE_TILE, held + AHEAD_TILES)
        tile = tile_within(memory_limit / (itemsize * workers), int(x.shape[1]), usual, tiles)
        return cls(workers, tile, workers * _scratch(tile, int(x.shape[1]), tiles))


def workers_for(n: int, m: int, n_jobs: int) -> int:
    """Threads that a pass over n x m pairs is worth."""
    return 1 if n * m < SMALL else min(n_jobs, -(-n // HOST_TILE[0]))


def _scratch(tile: tuple[int, int], dim: int, tiles: int) -> int:
    """Numbers that one thread keeps for a tile and for copies of its points."""
    return tiles * tile[0] * tile[1] + 4 * (tile[0] + tile[1]) * (dim + 1)


def tile_within(numbers: float, dim: int, usual: tuple[int, int], tiles: int) -> tuple[int, int]:
    """The largest tile, up to the usual one, whose scratch is within `numbers`, as far as a tile of one pair can be."""
    rows, columns = usual
    while _scratch((rows, columns), dim, tiles) > numbers and max(rows, columns) > 1:
        if columns >= rows:
            columns = -(-columns // 2)
        else:
            rows = -(-rows // 2)
    return rows, columns
