"""What the score estimators share that put a kernel at every row."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.score.base import FrameFit, ScoreEstimator
from isopleth.score.base_measure import GaussianBase
from isopleth.score.cut import warn_if_all_is_cut
from isopleth.score.spaces import Space
from isopleth.score.system import SCORE_SOLVERS, Accuracy, SampleSystem, Solution, solve, solve_truncated
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff


class RegularizedScore(ScoreEstimator):
    """A score by a regulariser on all samples.

    A subclass has the parameters `base`, `solver` and `tol` besides, and defines :meth:`_regularizer`.
    """

    base: str | None
    solver: str
    tol: float

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreEstimator._parameter_constraints,
        "base": [None, StrOptions({"gaussian"})],
        "solver": [StrOptions(set(SCORE_SOLVERS))],
        "tol": [Interval(Real, 0, 1, closed="neither")],
    }

    _max_iter: ClassVar[int] = 2000

    @abstractmethod
    def _regularizer(self) -> Regularizer:
        """What to fit with."""

    def _system(
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None
    ) -> tuple[SampleSystem, np.ndarray]:
        """The system, and what the values of the base add to the coefficients of a full form with factor 1."""
        share = weights / weights.sum()
        at_base = np.zeros_like(z) if base is None else base.value(z)
        regularizer = self._regularizer()
        whole = isinstance(regularizer, SpectralCutoff) and regularizer.needs_all_eigenvalues
        system = SampleSystem(space, z, share, None if base is None else at_base, whole=whole)
        return system, share[:, None] * at_base

    def _fit_frame(self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None) -> FrameFit:
        system, of_base = self._system(space, z, weights, base)
        regularizer = self._regularizer()
        solution = solve(system, regularizer, self.solver, Accuracy(self.tol, self._max_iter))
        self._warn_of_residual(solution)
        warn_if_all_is_cut(regularizer, solution.at_samples, lambda: system.largest)
        at_samples = system.fitted(solution) + (0.0 if base is None else base.value(z))
        report = {"regularizer_": regularizer, "residual_": solution.residual, "n_iter_": solution.n_iter}
        coefficients = None
        if solution.multipliers is not None:
            coefficients = system.coefficients(solution.multipliers) + solution.factor * of_base
        return FrameFit(at_samples, z, coefficients, solution.factor, report)

    def _solve_coefficients(
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None
    ) -> np.ndarray:
        system, _ = self._system(space, z, weights, base)
        accuracy = Accuracy(self.tol, self._max_iter)
        solution = solve_truncated(system, self.regularizer_, self.solver, accuracy)
        self._warn_of_residual(solution)
        return np.asarray(system.coefficients(solution.multipliers))

    def _warn_of_residual(self, solution: Solution) -> None:
        if solution.residual > self.tol:
            warnings.warn(
                f"the residual {solution.residual:.1e} is above tol = {self.tol:g} after {solution.n_iter} products; a larger "
                f"alpha, a larger tol or solver='eigen' may help.",
                ConvergenceWarning,
                stacklevel=4,
            )
