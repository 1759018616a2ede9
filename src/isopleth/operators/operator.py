"""A kernel over points as a linear operator."""

from __future__ import annotations

from typing import Self

from isopleth._namespace import Array, namespace
from isopleth.kernels import Kernel
from isopleth.operators.blocks import VALUE, Block, Matrix
from isopleth.operators.threads import effective_n_jobs
from isopleth.operators.tiles import SCRATCH_TILES, TILE_COLUMNS, TILE_ROWS, Points, Sweep

DEFAULT_MEMORY_LIMIT = 2**30


def _tile_within(memory: float, itemsize: int, n_jobs: int) -> tuple[int, int]:
    """The largest tile, up to the usual one, whose scratch for every thread fits in `memory` bytes."""
    pairs = memory / (itemsize * n_jobs * SCRATCH_TILES)
    if pairs >= TILE_ROWS * TILE_COLUMNS:
        return TILE_ROWS, TILE_COLUMNS
    rows = max(1, min(TILE_ROWS, int(pairs**0.5)))
    return rows, max(1, int(pairs / rows))


class Operator:
    r"""The sums :math:`\sum_j B(x_i, y_j)\, v_j` over points, B being a kernel or what a block makes of it.

    Points are taken as they are, at unit length scale and best centred. Sums are streamed in tiles unless :meth:`store`
    has kept the matrix.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the points, or free.
    x : array of shape (n, d)
        Where the sums are taken.
    y : array of shape (m, d), optional
        What is summed over; `x` itself when left out, which halves the work.
    block : Block, default=VALUE
        VALUE, GRADIENT, LAPLACIAN or LOG_SUM.
    memory_limit : float, default=2**30
        Bytes that the matrix and the scratch of all threads may take together.
    n_jobs : int, optional
        Threads; None is all processors.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Gaussian
    >>> from isopleth.operators import Operator
    >>> x = np.array([[0.0], [1.0]])
    >>> Operator(Gaussian(), x).matvec(np.array([1.0, 0.0])).round(4)
    array([1.    , 0.6065])
    """

    def __init__(
        self,
        kernel: Kernel,
        x: Array,
        y: Array | None = None,
        *,
        block: Block = VALUE,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel.bind(x.shape[1])
        self.block = block
        self.memory_limit = memory_limit
        left = Points.of(x)
        right = left if y is None else Points.of(y)
        self.shape = (x.shape[0], right.x.shape[0])
        workers = effective_n_jobs(n_jobs)
        itemsize = 8 if x.dtype == namespace(x).float64 else 4
        tile = _tile_within(memory_limit, itemsize, workers)
        self._itemsize = itemsize
        self._sweep = Sweep(self.kernel, block, left, right, workers, tile)
        self._matrix: Array | None = None

    def store(self) -> Self:
        """Keep the matrix for the products to come if it fits in the memory limit beside a tile; else go on streaming."""
        rows, columns = self._sweep.tile
        scratch = rows * columns * self._itemsize * self._sweep.n_jobs * SCRATCH_TILES
        if (
            isinstance(self.block, Matrix)
            and self.shape[0] * self.shape[1] * self._itemsize + scratch <= self.memory_limit
        ):
            self._matrix = self.dense()
        return self

    @property
    def stored(self) -> bool:
        """Whether the matrix is kept."""
        return self._matrix is not None

    def matvec(self, v: Array) -> Array:
        """The sums for coefficients `v` of shape (m,) or, for scalar blocks, (m, k)."""
        return self._sweep.run(v) if self._matrix is None else self._matrix @ v

    def diag(self) -> Array:
        """Diagonal of a square kernel matrix, which is phi(0) everywhere."""
        x = self._sweep.x.x
        return namespace(x).ones((x.shape[0],), dtype=x.dtype)

    def dense(self) -> Array:
        """The whole matrix, whatever the memory limit."""
        return self._matrix if self._matrix is not None else self._sweep.dense()
