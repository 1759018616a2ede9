"""What the score estimators share that put a kernel at every row."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth._namespace import Array, Home
from isopleth.score.base import FrameFit, ScoreEstimator
from isopleth.score.base_measure import GaussianBase
from isopleth.score.cut import warn_if_all_is_cut
from isopleth.score.solution import SCORE_SOLVERS, Accuracy, Solution, solve, solve_truncated
from isopleth.score.spaces import SPACES, Space
from isopleth.score.system import SampleSystem, solving_home
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff

ALPHA: dict[str, list[Any]] = {"alpha": [Interval(Real, 0, None, closed="neither")]}
SPACE: dict[str, list[Any]] = {"space": [StrOptions(set(SPACES))]}
"""Which values parameters may have that several subclasses share."""


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

    def _system(self, space: Space, z: Array, share: Array, at_base: Array | None) -> SampleSystem:
        regularizer = self._regularizer()
        whole = isinstance(regularizer, SpectralCutoff) and regularizer.needs_all_eigenvalues
        return SampleSystem(space, z, share, at_base, whole=whole)

    def _fit_frame(
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None, home: Home
    ) -> FrameFit:
        place = solving_home(space, z, home)
        at_base = None if base is None else place.send(base.value(z))
        points, share = place.send(z), place.send(weights / weights.sum())
        system = self._system(space, points, share, at_base)
        regularizer = self._regularizer()
        solution = solve(system, regularizer, self.solver, Accuracy(self.tol, self._max_iter))
        self._warn_of_residual(solution)
        warn_if_all_is_cut(regularizer, solution.at_samples, lambda: system.largest)
        at_samples, coefficients = system.fitted(solution.at_samples), None
        if solution.multipliers is not None:
            coefficients = system.coefficients(solution.multipliers)
        if at_base is not None:
            at_samples = at_samples + at_base
            if coefficients is not None:
                coefficients = coefficients + solution.factor * (share[:, None] * at_base)
        report = {"regularizer_": regularizer, "residual_": solution.residual, "n_iter_": solution.n_iter}
        return FrameFit(at_samples, points, coefficients, solution.factor, report)

    def _solve_coefficients(self, z: np.ndarray, weights: np.ndarray, home: Home) -> Array:
        place = solving_home(self._space, z, home)
        at_base = None if self.base_ is None else place.send(self.base_.value(z))
        share = place.send(weights / weights.sum())
        system = self._system(self._space, place.send(z), share, at_base)
        accuracy = Accuracy(self.tol, self._max_iter)
        solution = solve_truncated(system, self.regularizer_, self.solver, accuracy)
        self._warn_of_residual(solution)
        return system.coefficients(solution.multipliers)

    def _warn_of_residual(self, solution: Solution) -> None:
        if solution.residual > self.tol:
            warnings.warn(
                f"the residual {solution.residual:.1e} is above tol = {self.tol:g} after {solution.n_iter} products; a larger "
                f"alpha, a larger tol or solver='eigen' may help.",
                ConvergenceWarning,
                stacklevel=4,
            )
