"""The solution of the system of a score by any regulariser and any solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from isopleth._namespace import Array
from isopleth.errors import InputError
from isopleth.score.system import SampleSystem
from isopleth.solvers import conjugate_gradients
from isopleth.solvers.direct import Shifted
from isopleth.solvers.inner import norm
from isopleth.solvers.lanczos import Krylov, lanczos
from isopleth.solvers.regularizers import IterativeRegularizer, Regularizer, SpectralCutoff, Tikhonov


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
    found = Shifted(system.matrix(), ridge.alpha).solve(system.space.stack(system.rhs))
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
    return lanczos_path(system, [regularizer], accuracy)[0]


def lanczos_path(system: SampleSystem, regularizers: Sequence[Regularizer], accuracy: Accuracy) -> list[Solution]:
    """Several regularisers by one Krylov basis for them all."""
    bound = system.largest if any(isinstance(r, IterativeRegularizer) for r in regularizers) else math.nan
    if any(isinstance(r, SpectralCutoff) and r.needs_all_eigenvalues for r in regularizers):
        raise InputError("solver = 'lanczos' does not see all eigenvalues; use solver='eigen', or a threshold.")
    if not norm(system.rhs) > 0.0:
        return [Solution(system.rhs, -r.at_zero(bound), system.rhs) for r in regularizers]

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

    return [solution(r) for r in regularizers]


_SOLVERS: dict[str, Callable[[SampleSystem, Regularizer, Accuracy], Solution]] = {
    "direct": _direct,
    "eigen": _eigen,
    "cg": _cg,
    "lanczos": _lanczos,
    "iterate": _iterate,
}
SCORE_SOLVERS = ("auto", *_SOLVERS)
"""Names that `solver=` accepts."""


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


def solve_path(system: SampleSystem, regularizers: Sequence[Regularizer], accuracy: Accuracy) -> list[Solution]:
    """The same for several regularisers, by one eigendecomposition or, for large systems, one Krylov basis."""
    all_values = any(isinstance(r, SpectralCutoff) and r.needs_all_eigenvalues for r in regularizers)
    if system.small or all_values:
        return [_eigen(system, r, accuracy) for r in regularizers]
    return lanczos_path(system, regularizers, accuracy)


def solve_truncated(system: SampleSystem, regularizer: Regularizer, solver: str, accuracy: Accuracy) -> Solution:
    """The solution of a truncated form with its multipliers, by a solver that sees eigenvalues."""
    if solver == "auto":
        solver = "eigen" if system.small else "lanczos"
    return _SOLVERS["lanczos" if solver in ("cg", "lanczos") else "eigen"](system, regularizer, accuracy)
