"""The linear system of a score at its samples, its solvers, and the memory that they take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from isopleth.core.arrays import NUMPY, Array, Backend, namespace, on_processor
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.kernels import check_kernel
from isopleth.operators import Operator
from isopleth.operators.tiles import HOST_TILE, SCRATCH_TILES, scratch, workers_for
from isopleth.operators.vector_blocks import HOST_PAIRS
from isopleth.score.spaces import CurlFree, Space, Splitting
from isopleth.solvers import conjugate_gradients
from isopleth.solvers.direct import Shifted, Spectrum, norm
from isopleth.solvers.krylov import Krylov, lanczos, largest_eigenvalue
from isopleth.solvers.regularizers import IterativeRegularizer, Regularizer, SpectralCutoff, Tikhonov

# Most unknowns for which an eigendecomposition is faster than products with the matrix.
DENSE = 1200

# Below this many operations (some milliseconds), launching work on a device costs more than computing on the CPU.
QUICK = 2**25

# Operations for each pair of samples and column, in a typical number of iterations.
STEPS = 60


# Vectors of coefficients that every solver holds: points with their factors, right-hand sides, iterates, copies for threads.
VECTORS = 24

# Krylov vectors that must fit beside a stored matrix; if fewer fit, streamed products are faster overall.
LEAST_BASIS = 100

# Matrices that an eigendecomposition holds at once: the matrix, its copy, the eigenvectors and two for work space.
# A Cholesky factor overwrites the matrix, which may have to be copied once to change its memory order.
EIGEN, CHOLESKY = 5, 2

# float64 matrices of all pairs that a splitting takes in addition to the stored products, with the work space of an inverse.
SPLITTING = 5


@dataclass(frozen=True)
class MemoryPlan:
    """Division of the memory limit for a fit with a kernel at every row.

    - Tiles of streamed products take ``scratch``, at most half of the limit.
    - ``fixed`` is the scratch plus all vectors that do not depend on the solver.
    - Stored products take ``pairs`` in addition, if they fit together with a Krylov basis (``stores``).
    - The rest is for a Krylov basis of at most ``basis`` vectors.
    - Small systems store the whole matrix and its decomposition instead of products and a basis.
    """

    limit: float  # memory limit
    vector: int  # size of a vector of coefficients: one number for each row and column
    pairs: int  # size of the stored products
    scratch: float  # size of the tiles of all threads
    beside: int  # number of vectors of coefficients that the caller keeps during the fit

    @classmethod
    def of(cls, space: Space, rows: int, columns: int, beside: int = 0, itemsize: int = 8, host: bool = True) -> Self:
        """Return the plan for samples with this number of rows and columns."""
        limit = space.budget.memory
        workers = workers_for(rows, rows, space.budget)
        tiles = workers * scratch(HOST_TILE, columns, SCRATCH_TILES) + min(rows**2, HOST_PAIRS)
        return cls(
            limit,
            itemsize * rows * columns,
            itemsize * space.pair_numbers * rows**2,
            min(limit / 2, itemsize * tiles) if host else limit / 2,
            beside,
        )

    @property
    def fixed(self) -> float:
        """Bytes that every fit takes."""
        return self.scratch + (VECTORS + self.beside) * self.vector

    @property
    def to_store(self) -> float:
        """Least bytes of a fit with stored products."""
        return self.fixed + self.pairs + LEAST_BASIS * self.vector

    @property
    def stores(self) -> bool:
        """Tell whether products are stored rather than streamed."""
        return self.to_store <= self.limit

    @property
    def basis(self) -> int:
        """Largest number of Krylov vectors."""
        left = self.limit - self.fixed - (self.pairs if self.stores else 0)
        return max(10, int(left // self.vector))

    @property
    def splits(self) -> bool:
        """Tell whether a splitting fits in addition to the stored products."""
        each = self.pairs / 2
        return self.stores and self.fixed + self.pairs + SPLITTING * each <= self.limit

    def rows_at_once(self, samples: int) -> int:
        """Return the number of rows at which scores with so many samples are evaluated at once."""
        # Each pair takes two numbers for values, one for divergences, and one for the result of a product.
        each = 4 * 8 * samples
        return max(1, int((self.limit - self.fixed) // each))


def solving_backend(space: Space, z: np.ndarray, backend: Backend) -> Backend:
    """Return the backend that solves the system: that of the samples, or NumPy if the system is small."""
    rows, columns = z.shape
    size = space.unknowns(rows, columns)
    operations = size**3 / 3 if size <= DENSE else STEPS * rows**2 * columns
    return NUMPY if operations <= QUICK else backend


class SampleSystem:
    r"""Matrix of the operator L and right-hand side at the samples, symmetrised by the weights.

    With :math:`A = \sqrt{w} K \sqrt{w}` and :math:`h = \sqrt{w}\,\zeta(X)`, every fitted score is :math:`a\zeta + \sum_m
    \sqrt{w_m} K(\cdot, x_m)\, c_m` with :math:`c = -p(A)\,h`, and :math:`-g(A)\,h` is :math:`\sqrt{w}` times its values at the
    samples. If there are no more rows than columns, the system is set up in coordinates of the subspace that the rows span.
    """

    def __init__(
        self,
        space: Space,
        z: Array,
        weights: Array,
        base: Array | None = None,
        *,
        whole: bool = False,
        beside: int = 0,
    ) -> None:
        xp = namespace(z)
        self.space = space
        self._basis = None if whole else _span(z)
        points = z if self._basis is None else (z - xp.mean(z, axis=0)) @ self._basis
        self.dim = points.shape[1]
        self.root = xp.sqrt(weights)[:, None]
        self._points = points
        self._itemsize = int(xp.finfo(z.dtype).bits // 8)
        self.plan = MemoryPlan.of(space, z.shape[0], z.shape[1], beside, self._itemsize, on_processor(z))
        self._tiles = replace(space, budget=space.budget.within(space.budget.memory / 2))
        h = self._tiles.zeta(points, points, weights)
        self.rhs = self.root * h
        if base is not None:
            self.rhs = self.on(base).rhs

    def on(self, base: Array) -> SampleSystem:
        """Return the system for the difference to a base with score `base` at the samples; it shares the cached matrix."""
        base = base if self._basis is None else base @ self._basis
        rhs = self.rhs + self.product(self.root * base)
        out = copy(self)
        out.rhs = rhs
        return out

    @cached_property
    def operator(self) -> Operator:
        """Products with K, stored if they fit in the memory plan."""
        return self._tiles.operator(self._points).store(self.plan.pairs if self.plan.stores else 0.0)

    @property
    def size(self) -> int:
        """Number of rows of the matrix A."""
        return int(self.space.stack(self.rhs).shape[0])

    @property
    def small(self) -> bool:
        """Tell whether storing the whole matrix is faster, and fits in memory."""
        return self.size <= DENSE and self._matrix_bytes(EIGEN) <= self.space.budget.memory

    def _matrix_bytes(self, copies: int) -> int:
        """Return the bytes of the matrix with the arrays it is computed from, or with work space of this many copies."""
        rows = self.rhs.shape[0]
        made_of = (self.dim + 4) * rows**2 if isinstance(self.space, CurlFree) else rows**2
        return self._itemsize * (max(copies * self.size**2, self.size**2 + made_of))

    def product(self, v: Array) -> Array:
        """Return A v, for `v` of the shape of the right-hand side."""
        return self.root * self.operator.matvec(self.root * v)

    def matrix(self, copies: int = EIGEN) -> Array:
        """Return A for stacked vectors, or raise InputError if `copies` of it exceed the memory limit."""
        what, advice = "the whole matrix and its decomposition", "use a regularizer and solver that take products"
        refuse_too_large(what, self._matrix_bytes(copies), self.space.budget.memory, advice)
        self.__dict__.pop("operator", None)  # by the memory plan, products are not stored in addition to the matrix
        matrix = self.space.gram(self._points)
        xp = namespace(matrix)
        root = xp.tile(self.root[:, 0], (matrix.shape[0] // self.root.shape[0],))
        matrix *= root[:, None]
        matrix *= root
        return matrix

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors of A."""
        return Spectrum.of(self.matrix())

    @cached_property
    def largest(self) -> float:
        """The largest eigenvalue of A, in all columns."""
        xp = namespace(self.rhs)
        if self.small or "spectrum" in self.__dict__:
            inside = self.spectrum.largest
        else:
            start = Backend.of(self.rhs).array(np.random.default_rng(0).normal(size=self.rhs.shape))
            start = xp.astype(start, self.rhs.dtype, copy=False)
            inside = largest_eigenvalue(self.product, start, self.most_vectors())
        outside = None if self._basis is None else self.space.outside_span(self.operator)
        if outside is None:
            return inside
        return max(inside, float(xp.linalg.eigvalsh(outside * (self.root @ self.root.T))[-1]))

    def most_vectors(self) -> int:
        """Return the largest number of Krylov vectors within the memory limit."""
        return self.plan.basis

    def splitting(self, alpha: float) -> Splitting | None:
        """Return the splitting of A + alpha, or None if there is none or it does not fit in memory."""
        if not self.plan.splits:
            return None
        return self.space.splitting(self.operator, self._points, self.root, alpha)

    def on_eigenvectors(self, function: Callable[[Array], Array]) -> Array:
        """Return f(A) h, computed from the spectrum."""
        return self.space.unstack(self.spectrum.apply(function, self.space.stack(self.rhs)), self.dim)

    def leave(self, v: Array) -> Array:
        """Map vectors from coordinates of the span to frame coordinates."""
        return v if self._basis is None else v @ self._basis.T

    def fitted(self, at_samples: Array) -> Array:
        """Return the score at the samples minus that of the base, from `Solution.at_samples`."""
        return self.leave(at_samples / self.root)

    def coefficients(self, multipliers: Array) -> Array:
        """Return the coefficients of the kernels at the samples, from `Solution.multipliers`."""
        return self.leave(self.root * multipliers)


def _span(z: Array) -> Array | None:
    """Return an orthonormal basis, as columns, of the span of the differences of rows, or None if they span all columns."""
    if z.shape[0] > z.shape[1] or z.shape[0] < 2:
        return None
    return namespace(z).linalg.qr((z[1:, :] - z[:1, :]).T, mode="reduced")[0]


@dataclass(frozen=True)
class Solution:
    """Solution of a system, in its coordinates."""

    at_samples: Array  # square root of the weights times the score at the samples minus that of the base
    factor: float  # factor of zeta
    # coefficients divided by the square root of the weights; None if they need another solve (`solve_truncated`)
    multipliers: Array | None = None
    residual: float = 0.0  # relative residual of `at_samples`; 0 for direct solvers
    n_iter: int = 0  # number of products with the matrix


class Accuracy(NamedTuple):
    """Stopping rule of iterative solvers.

    `tol` bounds the error of the values at the samples. Truncated forms interpolate these values by a sum of kernels, whose error
    may be the square root of `tol`. Between samples the error is ten times that on average and hundreds of times at single
    points, which is below the statistical error of the score.
    """

    tol: float
    max_iter: int

    def excess(self, found: Krylov, regularizers: Sequence[Regularizer], bound: float) -> float:
        """Return the largest error of a basis for some regularizers, divided by the error allowed."""
        first, second = found.residuals(_filters(regularizers, bound), _multipliers(regularizers, bound))
        return max(float(np.max(first)) / self.tol, float(np.max(second)) / math.sqrt(self.tol))


def _filters(regularizers: Sequence[Regularizer], bound: float) -> Callable[[Array], Array]:
    """Return a function of eigenvalues that returns a row for each regularizer."""
    return lambda sigma: namespace(sigma).stack([r.filter(sigma, bound) for r in regularizers])


def _multipliers(regularizers: Sequence[Regularizer], bound: float) -> Callable[[Array], Array]:
    """Return the same for multipliers."""
    return lambda sigma: namespace(sigma).stack([r.multiplier(sigma, bound) for r in regularizers])


def _eigen(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    """Solve by the eigendecomposition of the matrix, which gives every regulariser."""
    system.spectrum  # noqa: B018 - `largest` reads the largest eigenvalue from it
    bound = system.largest
    return Solution(
        -system.on_eigenvectors(lambda sigma: regularizer.filter(sigma, bound)),
        -regularizer.at_zero(bound),
        -system.on_eigenvectors(lambda sigma: regularizer.multiplier(sigma, bound)),
    )


def _direct(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    ridge = _ridge(regularizer, "direct")
    found = Shifted(system.matrix(CHOLESKY), ridge.alpha, overwrite=True).solve(system.space.stack(system.rhs))
    y = system.space.unstack(found, system.dim)
    return _of_ridge(ridge, y)


def _cg(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    """Solve with a ridge by conjugate gradients."""
    ridge = _ridge(regularizer, "cg")

    def product(v: Array) -> Array:
        return system.product(v) + ridge.alpha * v

    splitting = system.splitting(ridge.alpha)
    if splitting is None:
        y, n_iter = conjugate_gradients(product, system.rhs, tol=accuracy.tol, max_iter=accuracy.max_iter)
    else:
        y, n_iter = splitting.solve(product, system.rhs, accuracy.tol, accuracy.max_iter)
    residual = norm(system.rhs - product(y)) / (norm(system.rhs) or 1.0)
    return _of_ridge(ridge, y, residual, n_iter)


def _ridge(regularizer: Regularizer, solver: str) -> Tikhonov:
    if not isinstance(regularizer, Tikhonov):
        raise InputError(f"solver = {solver!r} solves Tikhonov systems, not {regularizer!r}; use 'eigen' or 'auto'.")
    return regularizer


def _of_ridge(ridge: Tikhonov, y: Array, residual: float = 0.0, n_iter: int = 0) -> Solution:
    """Return the solution of a ridge system; the full form gets its coefficients without another solve."""
    if ridge.truncated:
        return Solution(-y, 0.0, None, residual, n_iter)
    return Solution(-y, -1.0 / ridge.alpha, y / ridge.alpha, residual, n_iter)


def _iterate(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    """Solve by the steps of an iterative regulariser."""
    if not isinstance(regularizer, IterativeRegularizer):
        raise InputError(
            f"solver = 'iterate' takes the steps of an iteration, which {regularizer!r} is not; use 'auto'."
        )
    a, c = regularizer.iterate(system.product, system.rhs, system.largest)
    steps = regularizer.steps_for(system.largest)
    return Solution(a * system.rhs + system.product(c), a, c, 0.0, steps)


def _lanczos(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    """Solve by the filter of a regulariser on a Krylov basis."""
    one, bound = [regularizer], _bound_of_iterations(system, [regularizer])
    basis = _krylov(system, one, accuracy, bound)
    if basis is None:
        return Solution(system.rhs, -regularizer.at_zero(bound), system.rhs)
    return Solution(
        -basis.apply(lambda sigma: regularizer.filter(sigma, bound)),
        -regularizer.at_zero(bound),
        -basis.apply(lambda sigma: regularizer.multiplier(sigma, bound)),
        accuracy.excess(basis, one, bound) * accuracy.tol,
        len(basis.diagonal),
    )


def _bound_of_iterations(system: SampleSystem, regularizers: Sequence[Regularizer]) -> float:
    """Return the largest eigenvalue if an iterative regularizer needs it."""
    return system.largest if any(isinstance(r, IterativeRegularizer) for r in regularizers) else math.nan


def _krylov(
    system: SampleSystem, regularizers: Sequence[Regularizer], accuracy: Accuracy, bound: float
) -> Krylov | None:
    """Return one Krylov basis that is accurate enough for all regularizers, or None if the right-hand side is 0."""
    if any(isinstance(r, SpectralCutoff) and r.needs_all_eigenvalues for r in regularizers):
        raise InputError("solver = 'lanczos' does not see all eigenvalues; use solver='eigen', or a threshold.")
    if not norm(system.rhs) > 0.0:
        return None

    def enough(found: Krylov) -> bool:
        # The weakest regularizer, which is the last one of a path, usually converges last.
        weakest = accuracy.excess(found, regularizers[-1:], bound)
        return weakest <= 1.0 and accuracy.excess(found, regularizers, bound) <= 1.0

    return lanczos(system.product, system.rhs, min(accuracy.max_iter, system.most_vectors()), enough)


def multipliers_of_path(
    system: SampleSystem, regularizers: Sequence[Regularizer], accuracy: Accuracy, dense: bool
) -> tuple[Array, list[float]]:
    """Return multipliers (r, n, d) of several regularizers, and factors of zeta, by one decomposition or Krylov basis."""
    xp = namespace(system.rhs)
    if dense:
        system.spectrum  # noqa: B018 - `largest` reads the largest eigenvalue from it
        bound = system.largest
        found = system.spectrum.apply(_multipliers(regularizers, bound), system.space.stack(system.rhs))
        multipliers = xp.stack([system.space.unstack(found[i, :, :], system.dim) for i in range(len(regularizers))])
    else:
        bound = _bound_of_iterations(system, regularizers)
        basis = _krylov(system, regularizers, accuracy, bound)
        zero = xp.zeros((len(regularizers), *system.rhs.shape), dtype=system.rhs.dtype, device=system.rhs.device)
        multipliers = zero if basis is None else basis.apply(_multipliers(regularizers, bound))
    return -multipliers, [-r.at_zero(bound) for r in regularizers]


_SOLVERS: dict[str, Callable[[SampleSystem, Regularizer, Accuracy], Solution]] = {
    "direct": _direct,
    "eigen": _eigen,
    "cg": _cg,
    "lanczos": _lanczos,
    "iterate": _iterate,
}
# Names that `solver=` accepts.
SCORE_SOLVERS = ("auto", *_SOLVERS)


def choose_solver(system: SampleSystem, regularizer: Regularizer) -> str:
    """Return the solver that `solver="auto"` stands for, given the regularizer."""
    small = system.small
    if isinstance(regularizer, Tikhonov):
        return "direct" if small else "cg"
    if isinstance(regularizer, SpectralCutoff) and (small or regularizer.needs_all_eigenvalues):
        return "eigen"
    if isinstance(regularizer, IterativeRegularizer):
        return "eigen" if small else "iterate"
    return "eigen" if small else "lanczos"


def solve(system: SampleSystem, regularizer: Regularizer, solver: str, accuracy: Accuracy) -> Solution:
    """Solve for the regularised score at the samples."""
    if solver == "auto":
        solver = choose_solver(system, regularizer)
    try:
        return _SOLVERS[solver](system, regularizer, accuracy)
    except InputError:
        # A wrong formula of a kernel makes matrices that are not positive, which no regularizer repairs.
        if not system.space.kernel.by_columns:
            check_kernel(system.space.kernel)
        raise


def solve_truncated(system: SampleSystem, regularizer: Regularizer, solver: str, accuracy: Accuracy) -> Solution:
    """Solve for the multipliers of a truncated form, by a solver that computes eigenvalues."""
    if solver == "auto":
        solver = "eigen" if system.small else "lanczos"
    return _SOLVERS["lanczos" if solver in ("cg", "lanczos") else "eigen"](system, regularizer, accuracy)
