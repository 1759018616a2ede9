"""A kernel over points as a linear operator."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from isopleth.backend import Array, full_precision, host_view, namespace, refuse_gradient
from isopleth.kernels import Kernel
from isopleth.operators.blocks import VALUE, Block, Matrix
from isopleth.operators.threads import ONE_BLAS_THREAD, effective_n_jobs, map_threads
from isopleth.operators.tiles import Layout, Points, Sweep

DEFAULT_MEMORY_LIMIT = 2**30


def _check_points(x: Array, y: Array | None) -> None:
    xp = namespace(x)
    if x.ndim != 2 or x.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"points have shape {x.shape} and dtype {x.dtype}; expected two axes, float32 or float64.")
    if y is not None and (y.ndim != 2 or y.shape[1] != x.shape[1] or y.dtype != x.dtype):
        raise ValueError(
            f"y has shape {y.shape} and dtype {y.dtype}; expected {x.shape[1]} columns of {x.dtype} as x has."
        )


# Entries of a stored matrix below which one thread multiplies by it sooner than several are started.
_PARTED = 2**21

# Rows of a stored matrix that a thread multiplies at once: enough for full speed, few beside all rows.
_PART = 512


class Operator:
    r"""The sums :math:`\sum_j B(x_i, y_j)\, v_j` over points, B being a kernel or what a block makes of it.

    Points are taken as they are, at unit length scale and best centred. Sums are streamed in tiles unless :meth:`store`
    has kept the matrix. Arrays of any array-API library will do, and answers are of the library and on the device of `x`; for
    tensors in the processor's memory NumPy does the work, in that memory.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the points, or free.
    x : array of shape (n, d)
        Where the sums are taken.
    y : array of shape (m, d), optional
        What is summed over; `x` itself when left out, which halves the work.
    block : Block, default=VALUE
        What is summed: one of the blocks of this package.
    memory_limit : float, default=2**30
        Bytes that the matrix and the scratch of all threads may take together, beside the points themselves.
    n_jobs : int, optional
        Threads; None is all processors. Other devices take one.
    dim : int, optional
        Dimension that the kernel is bound to, where the columns are coordinates in a subspace that holds all points.

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
        dim: int | None = None,
    ) -> None:
        _check_points(x, y)
        for name, points in (("x", x), ("y", y)):
            refuse_gradient(points, name)
        self.kernel = kernel.bind(x.shape[1] if dim is None else dim)
        self.block = block
        self.memory_limit = memory_limit
        self._n_jobs = n_jobs
        self._library = namespace(x)
        self._matrix: Any = None
        self._parts: list[Array] | None = None
        left = Points.of(host_view(x))
        self._sum_over(left, left if y is None else Points.of(host_view(y)))

    def _sum_over(self, x: Points, y: Points) -> None:
        self.shape = (x.x.shape[0], y.x.shape[0])
        layout = Layout.of(x.x, self.shape, self.memory_limit, effective_n_jobs(self._n_jobs), self.block.light)
        self._sweep = Sweep(self.kernel, self.block, x, y, layout)

    def _backend(self, a: Array) -> Array:
        """An array of the caller's library in the memory of `a`."""
        return self._library.asarray(a, device="cpu") if isinstance(a, np.ndarray) and self._library is not np else a

    def store(self, within: float | None = None) -> Self:
        """Keep the matrix for the products to come if it takes at most `within` bytes; else go on streaming.

        `within` is what the memory limit leaves beside a tile, if it is not given.
        """
        sweep, kept = self._sweep, self.block.kept
        x = sweep.x.x
        itemsize = 8 if x.dtype == namespace(x).float64 else 4
        if within is None:
            within = self.memory_limit - itemsize * sweep.layout.numbers
        if kept and kept * self.shape[0] * self.shape[1] * itemsize <= within:
            parts = sweep.parts()
            self._matrix = self.block.assemble(parts, x, sweep.y.x)
            self._parts = None if self._matrix is None else parts
        return self

    @property
    def dim(self) -> int:
        """Columns of the points."""
        return int(self._sweep.x.x.shape[1])

    @property
    def stored(self) -> bool:
        """Whether the matrix is kept."""
        return self._matrix is not None

    def part(self, rows: slice, columns: slice, memory_limit: float) -> Operator:
        """The sums at the points `rows` over the points `columns`, without a copy of points or of a stored matrix."""
        out = copy(self)
        out.memory_limit = memory_limit
        out._sum_over(self._sweep.x.part(rows), self._sweep.y.part(columns))
        out._matrix = None if self._matrix is None else self._matrix[rows, columns]
        out._parts = None if self._parts is None else [whole[rows, columns] for whole in self._parts]
        return out

    def matvec(self, v: Array) -> Array:
        """The sums for coefficients `v`: of shape (m,) or, for blocks with a matrix, (m, k); (m, d) for vector blocks."""
        if v.shape[0] != self.shape[1]:
            raise ValueError(
                f"v has {v.shape[0]} rows; expected one for each of the {self.shape[1]} points summed over."
            )
        refuse_gradient(v, "v")
        v = host_view(v)
        if self._matrix is None:
            return self._backend(self._sweep.run(v))
        with full_precision(v), ONE_BLAS_THREAD:
            return self._backend(self._stored_product(v))

    def _stored_product(self, v: Array) -> Array:
        """By threads over parts of the rows, which are the same however many threads there are, and so is every bit."""
        rows, columns = self.shape
        if not isinstance(v, np.ndarray) or rows * columns < _PARTED:
            return self._matrix @ v
        parts = [slice(start, min(start + _PART, rows)) for start in range(0, rows, _PART)]
        workers = min(effective_n_jobs(self._n_jobs), len(parts))
        return np.concatenate(map_threads(lambda part: self._matrix[part, :] @ v, parts, workers))

    def dense(self) -> Array:
        """The whole matrix of a scalar block, whatever the memory limit."""
        if not isinstance(self.block, Matrix):
            raise TypeError(f"the {self.block!r} block has no matrix.")
        return self.parts()[0]

    def parts(self) -> list[Array]:
        """The matrices that the stored form is made of, whatever the memory limit; those kept are not to be written to."""
        return [self._backend(part) for part in (self._sweep.parts() if self._parts is None else self._parts)]
