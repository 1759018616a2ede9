"""Sums of a kernel over points as a linear operator."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np

from isopleth.core.arrays import Array, full_precision, host_view, namespace, refuse_gradient
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.progress import unheard
from isopleth.core.threads import ONE_BLAS_THREAD, map_threads
from isopleth.kernels import Kernel
from isopleth.operators.blocks import VALUE, Block, Matrix
from isopleth.operators.tiles import Layout, Points, Sweep
from isopleth.operators.vector_blocks import times_each


def _check_points(x: Array, y: Array | None) -> None:
    """Refuse points that have other shapes or types than the kernels take."""
    xp = namespace(x)
    if x.ndim != 2 or x.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"points have shape {x.shape} and dtype {x.dtype}; expected two axes, float32 or float64.")
    if y is not None and (y.ndim != 2 or y.shape[1] != x.shape[1] or y.dtype != x.dtype):
        raise ValueError(
            f"y has shape {y.shape} and dtype {y.dtype}; expected {x.shape[1]} columns of {x.dtype} as x has."
        )


# Entries of a stored matrix from which on several threads are faster than one.
_SEVERAL_THREADS = 2**21

# Rows of a stored matrix that a thread multiplies at once: enough for full speed, and several blocks for each thread.
_ROWS_AT_ONCE = 512


class Operator:
    r"""The sums :math:`\sum_j B(x_i, y_j)\, v_j` over points, where B is a kernel or derivatives of it.

    The length scale is 1, so scale the points first. Centre them too, because distances lose digits far from the origin. Sums
    are computed tile by tile, without the whole matrix, unless :meth:`store` has stored it. Arrays may be of any array-API
    library; results are of the library and on the device of `x`. Sums over torch tensors in CPU memory are computed by NumPy,
    without a copy.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with or without its `dim`.
    x : array of shape (n, d)
        Points at which the sums are computed.
    y : array of shape (m, d), optional
        Points that are summed over; `x` if omitted, which halves the work.
    block : Block, default=VALUE
        The terms of the sum: the kernel or one of its derivatives, as the constants of this package.
    budget : Budget, default=DEFAULT_BUDGET
        Bytes that the matrix and the scratch of all threads may take together, in addition to the points, and the number of
        threads; other devices use one.
    dim : int, optional
        Dimension for the kernel if the columns are coordinates in a subspace that contains all points; otherwise their number.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import Gaussian
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
        budget: Budget = DEFAULT_BUDGET,
        dim: int | None = None,
    ) -> None:
        _check_points(x, y)
        for name, points in (("x", x), ("y", y)):
            refuse_gradient(points, name)
        self.kernel = kernel.bind(x.shape[1] if dim is None else dim)
        self.block = block
        self.budget = budget
        self.after_product: Callable[[], None] = unheard  # called after each product, to show progress
        self._library = namespace(x)
        self._matrix: Any = None
        self._matrices: list[Array] | None = None
        left = Points.of(host_view(x))
        self._sum_over(left, left if y is None else Points.of(host_view(y)))

    def _sum_over(self, x: Points, y: Points) -> None:
        self.shape = (x.x.shape[0], y.x.shape[0])
        layout = Layout.of(x.x, self.shape, self.budget, self.block.light)
        self._sweep = Sweep(self.kernel, self.block, x, y, layout)

    def _backend(self, a: Array) -> Array:
        """Return an array of the caller's library in the memory of `a`."""
        return self._library.asarray(a, device="cpu") if isinstance(a, np.ndarray) and self._library is not np else a

    def store(self, within: float | None = None) -> Self:
        """Compute and store the matrix if it takes at most `within` bytes. Otherwise products are computed tile by tile.

        The default of `within` is the memory limit less the scratch for tiles.
        """
        sweep, kept = self._sweep, self.block.kept
        x = sweep.x.x
        itemsize = 8 if x.dtype == namespace(x).float64 else 4
        if within is None:
            within = self.budget.memory - itemsize * sweep.layout.numbers
        if kept and kept * self.shape[0] * self.shape[1] * itemsize <= within:
            matrices = sweep.matrices()
            self._matrix = self.block.assemble(matrices, x, sweep.y.x)
            self._matrices = None if self._matrix is None else matrices
        return self

    def keep(self, matrix: Array) -> Self:
        """Take the stored matrix of a scalar block, which has been computed already."""
        self._matrix, self._matrices = host_view(matrix), [host_view(matrix)]
        return self

    @property
    def dim(self) -> int:
        """Number of columns of the points."""
        return int(self._sweep.x.x.shape[1])

    @property
    def stored(self) -> bool:
        """Tell whether the matrix is stored."""
        return self._matrix is not None

    def part(self, rows: slice, columns: slice, budget: Budget) -> Operator:
        """Return the operator of the points `rows` and `columns`, without a copy of points or of a stored matrix."""
        out = copy(self)
        out.budget = budget
        out._sum_over(self._sweep.x.part(rows), self._sweep.y.part(columns))
        out._matrix = None if self._matrix is None else self._matrix[rows, columns]
        out._matrices = None if self._matrices is None else [whole[rows, columns] for whole in self._matrices]
        return out

    def matvec(self, v: Array) -> Array:
        """Return the sums for coefficients `v`: of shape (m,) or, for blocks with a matrix, (m, k); (m, d) for vector blocks."""
        if v.shape[0] != self.shape[1]:
            raise ValueError(
                f"v has {v.shape[0]} rows; expected one for each of the {self.shape[1]} points summed over."
            )
        refuse_gradient(v, "v")
        v = host_view(v)
        if self._matrix is None:
            found = self._sweep.run(v)
        else:
            with full_precision(v), ONE_BLAS_THREAD:
                found = self._stored_product(v)
        self.after_product()
        return self._backend(found)

    def matvecs(self, v: Array) -> Array:
        """Return the sums of a vector block for several arrays of coefficients, of shape (k, m, d), in one stack."""
        if self._matrix is None:
            return self._library.stack([self.matvec(v[i, :, :]) for i in range(v.shape[0])])
        refuse_gradient(v, "v")
        v = host_view(v)
        with full_precision(v), ONE_BLAS_THREAD:
            if isinstance(self.block, Matrix):
                return self._backend(times_each(self._matrix, v))
            return self._backend(self._matrix @ v)

    def _stored_product(self, v: Array) -> Array:
        """Multiply by threads, in blocks of rows that do not depend on the number of threads, so that no bit does."""
        rows, columns = self.shape
        if not isinstance(v, np.ndarray) or rows * columns < _SEVERAL_THREADS:
            return self._matrix @ v
        blocks = [slice(start, min(start + _ROWS_AT_ONCE, rows)) for start in range(0, rows, _ROWS_AT_ONCE)]
        workers = min(self.budget.threads, len(blocks))
        return np.concatenate(map_threads(lambda block: self._matrix[block, :] @ v, blocks, workers))

    def dense(self, out: np.ndarray | None = None) -> Array:
        """Return the whole matrix of a scalar block, whatever the memory limit; in `out`, for points in NumPy arrays."""
        if not isinstance(self.block, Matrix):
            raise TypeError(f"the {self.block!r} block has no matrix.")
        return self.matrices()[0] if out is None else self._sweep.matrices([out])[0]

    def matrices(self) -> list[Array]:
        """Return the matrices that the stored form consists of, whatever the memory limit. Do not write to them."""
        return [self._backend(a) for a in (self._sweep.matrices() if self._matrices is None else self._matrices)]
