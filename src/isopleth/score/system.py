"""The linear system of a score at its samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from isopleth.backend import NUMPY, Array, Backend, namespace, on_processor
from isopleth.errors import InputError
from isopleth.operators import Operator
from isopleth.score.memory import CHOLESKY, EIGEN, MemoryPlan
from isopleth.score.spaces import CurlFree, Space, Splitting
from isopleth.solvers import conjugate_gradients
from isopleth.solvers.direct import Shifted, Spectrum, norm
from isopleth.solvers.lanczos import Krylov, lanczos, largest_eigenvalue
from isopleth.solvers.regularizers import IterativeRegularizer, Regularizer, SpectralCutoff, Tikhonov

# Unknowns up to which an eigendecomposition is quicker than products.
DENSE = 1200

# Operations that one core has done before it could have told another device what to do: some milliseconds.
QUICK = 2**25

# Operations a pair and column, in some steps of an iteration.
STEPS = 60


def solving_backend(space: Space, z: np.ndarray, backend: Backend) -> Backend:
    """Where the system of samples that came from `backend` is set up and solved: there, or on the host if it is so small."""
    rows, columns = z.shape
    size = space.unknowns(rows, columns)
    operations = size**3 / 3 if size <= DENSE else STEPS * rows**2 * columns
    return NUMPY if operations <= QUICK else backend


class SampleSystem:
    r"""The operator L and the right-hand side, seen at the samples and symmetrised by the weights.

    With :math:`A = \sqrt{w} K \sqrt{w}` and :math:`h = \sqrt{w}\,\zeta(X)`, every fitted score is :math:`a\zeta + \sum_m
    \sqrt{w_m} K(\cdot, x_m)\, c_m` with :math:`c = -p(A)\,h`, and :math:`-g(A)\,h` is :math:`\sqrt{w}` times its values at the
    samples. Rows that are no more than their columns span fewer: the system is set up in coordinates of their span.

    Parameters
    ----------
    space : Space
        Where the score is sought.
    z : array of shape (n, d)
        Distinct samples in frame coordinates.
    weights : array of shape (n,)
        Positive, of sum 1.
    base : array of shape (n, d), optional
        Score of a base measure at the samples; what is fitted is the rest.
    whole : bool, default=False
        Keep all columns, where all eigenvalues have to be seen.
    beside : int, default=0
        Vectors of coefficients that the caller keeps meanwhile, within the memory limit of the space.
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
        self._tiles = replace(space, memory_limit=space.memory_limit / 2)
        h = self._tiles.zeta(points, points, weights)
        self.rhs = self.root * h
        if base is not None:
            self.rhs = self.on(base).rhs

    def on(self, base: Array) -> SampleSystem:
        """The same, for what a base measure with score `base` at the samples leaves over; what is known of the matrix is kept."""
        base = base if self._basis is None else base @ self._basis
        rhs = self.rhs + self.product(self.root * base)
        out = copy(self)
        out.rhs = rhs
        return out

    @cached_property
    def operator(self) -> Operator:
        """Products with K, stored where the plan has room for them."""
        return self._tiles.operator(self._points).store(self.plan.pairs if self.plan.stores else 0.0)

    @property
    def size(self) -> int:
        """Rows of the matrix A."""
        return int(self.space.stack(self.rhs).shape[0])

    @property
    def small(self) -> bool:
        """Whether the whole matrix is the quicker way, and fits."""
        return self.size <= DENSE and self._matrix_bytes(EIGEN) <= self.space.memory_limit

    def _matrix_bytes(self, copies: int) -> int:
        """Of the matrix, with what it is made of and with work space that makes it as many copies."""
        rows = self.rhs.shape[0]
        made_of = (self.dim + 4) * rows**2 if isinstance(self.space, CurlFree) else rows**2
        return self._itemsize * (max(copies * self.size**2, self.size**2 + made_of))

    def product(self, v: Array) -> Array:
        """A v, for `v` of the shape of the right-hand side."""
        return self.root * self.operator.matvec(self.root * v)

    def matrix(self, copies: int = EIGEN) -> Array:
        """A, for stacked vectors; InputError if it does not fit in the memory limit with `copies` for its decomposition."""
        if self._matrix_bytes(copies) > self.space.memory_limit:
            raise InputError(
                f"the whole matrix and its decomposition take {self._matrix_bytes(copies):.1e} bytes, above memory_limit = "
                f"{self.space.memory_limit:g}; raise it, or use a regularizer and solver that take products."
            )
        self.__dict__.pop("operator", None)  # stored products would be memory that nobody has planned for
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
        """Krylov vectors that the memory limit leaves room for."""
        return self.plan.basis

    def splitting(self, alpha: float) -> Splitting | None:
        """Of A + alpha, or None."""
        if not self.plan.splits:
            return None
        return self.space.splitting(self.operator, self._points, self.root, alpha)

    def on_eigenvectors(self, function: Callable[[Array], Array]) -> Array:
        """f(A) h, by the spectrum."""
        return self.space.unstack(self.spectrum.apply(function, self.space.stack(self.rhs)), self.dim)

    def leave(self, v: Array) -> Array:
        """Vectors in the coordinates of the frame."""
        return v if self._basis is None else v @ self._basis.T

    def fitted(self, at_samples: Array) -> Array:
        """The score at the samples, less that of the base, from what a solution has."""
        return self.leave(at_samples / self.root)

    def coefficients(self, multipliers: Array) -> Array:
        """Of the kernels at the samples, from what a solution has."""
        return self.leave(self.root * multipliers)


def _span(z: Array) -> Array | None:
    """Orthonormal basis, as columns, of what the differences of the rows span, where that is less than all."""
    if z.shape[0] > z.shape[1] or z.shape[0] < 2:
        return None
    return namespace(z).linalg.qr((z[1:, :] - z[:1, :]).T, mode="reduced")[0]


@dataclass(frozen=True)
class Solution:
    """What a solver found, in the coordinates of the system.

    Parameters
    ----------
    at_samples : array
        Root of the weights times the score at the samples, less that of the base.
    factor : float
        Of zeta.
    multipliers : array, optional
        The coefficients, times the root of the weights; None where they take another solve (:func:`solve_truncated`).
    residual : float
        Relative residual of :attr:`at_samples`; 0 for direct solvers.
    n_iter : int
        Products with the matrix taken.
    """

    at_samples: Array
    factor: float
    multipliers: Array | None = None
    residual: float = 0.0
    n_iter: int = 0


class Accuracy(NamedTuple):
    """When iterative solvers stop.

    `tol` is for values at the samples. A sum of kernels that interpolates them, as truncated forms are, may miss them by the root
    of it. Between samples it is off by ten times that in the mean, here and there by hundreds: less than the score is known to.
    """

    tol: float
    max_iter: int

    def excess(self, found: Krylov, regularizer: Regularizer, bound: float) -> float:
        """By what factor a basis misses these aims for one regulariser."""
        first, second = found.residuals(
            lambda sigma: regularizer.filter(sigma, bound), lambda sigma: regularizer.multiplier(sigma, bound)
        )
        return max(first / self.tol, second / math.sqrt(self.tol))


def _eigen(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    system.spectrum  # noqa: B018 - the largest eigenvalue is read from it
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
    """The full form has its coefficients for free."""
    if ridge.truncated:
        return Solution(-y, 0.0, None, residual, n_iter)
    return Solution(-y, -1.0 / ridge.alpha, y / ridge.alpha, residual, n_iter)


def _iterate(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    if not isinstance(regularizer, IterativeRegularizer):
        raise InputError(
            f"solver = 'iterate' takes the steps of an iteration, which {regularizer!r} is not; use 'auto'."
        )
    a, c = regularizer.iterate(system.product, system.rhs, system.largest)
    steps = regularizer.steps_for(system.largest)
    return Solution(a * system.rhs + system.product(c), a, c, 0.0, steps)


def _lanczos(system: SampleSystem, regularizer: Regularizer, accuracy: Accuracy) -> Solution:
    return next(lanczos_path(system, [regularizer], accuracy))


def lanczos_path(system: SampleSystem, regularizers: Sequence[Regularizer], accuracy: Accuracy) -> Iterator[Solution]:
    """Several regularisers by one Krylov basis for them all, one after another."""
    bound = system.largest if any(isinstance(r, IterativeRegularizer) for r in regularizers) else math.nan
    if any(isinstance(r, SpectralCutoff) and r.needs_all_eigenvalues for r in regularizers):
        raise InputError("solver = 'lanczos' does not see all eigenvalues; use solver='eigen', or a threshold.")
    if not norm(system.rhs) > 0.0:
        yield from (Solution(system.rhs, -r.at_zero(bound), system.rhs) for r in regularizers)
        return

    basis = lanczos(
        system.product,
        system.rhs,
        min(accuracy.max_iter, system.most_vectors()),
        lambda found: all(accuracy.excess(found, r, bound) <= 1.0 for r in regularizers),
    )

    def solution(r: Regularizer) -> Solution:
        return Solution(
            -basis.apply(lambda sigma: r.filter(sigma, bound)),
            -r.at_zero(bound),
            -basis.apply(lambda sigma: r.multiplier(sigma, bound)),
            accuracy.excess(basis, r, bound) * accuracy.tol,
            len(basis.diagonal),
        )

    yield from map(solution, regularizers)


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
    """What `solver="auto"` means for one regulariser."""
    small = system.small
    if isinstance(regularizer, Tikhonov):
        return "direct" if small else "cg"
    if isinstance(regularizer, SpectralCutoff) and (small or regularizer.needs_all_eigenvalues):
        return "eigen"
    if isinstance(regularizer, IterativeRegularizer):
        return "eigen" if small else "iterate"
    return "eigen" if small else "lanczos"


def solve(system: SampleSystem, regularizer: Regularizer, solver: str, accuracy: Accuracy) -> Solution:
    """The regularised score at the samples."""
    if solver == "auto":
        solver = choose_solver(system, regularizer)
    return _SOLVERS[solver](system, regularizer, accuracy)


def solve_path(system: SampleSystem, regularizers: Sequence[Regularizer], accuracy: Accuracy) -> Iterator[Solution]:
    """The same for several regularisers, by one eigendecomposition or, for large systems, one Krylov basis."""
    all_values = any(isinstance(r, SpectralCutoff) and r.needs_all_eigenvalues for r in regularizers)
    if system.small or all_values:
        return (_eigen(system, r, accuracy) for r in regularizers)
    return lanczos_path(system, regularizers, accuracy)


def solve_truncated(system: SampleSystem, regularizer: Regularizer, solver: str, accuracy: Accuracy) -> Solution:
    """The solution of a truncated form with its multipliers, by a solver that sees eigenvalues."""
    if solver == "auto":
        solver = "eigen" if system.small else "lanczos"
    return _SOLVERS["lanczos" if solver in ("cg", "lanczos") else "eigen"](system, regularizer, accuracy)
