"""What all score estimators share: rows to a frame at the door, scores back to the units of the data."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import Array, Backend, namespace, to_numpy
from isopleth.entry import Table, column_names, enter
from isopleth.errors import DataWarning, InputError
from isopleth.frame import Frame
from isopleth.kernels import Kernel, get_kernel
from isopleth.length_scales import loss_units, resolve_length_scale
from isopleth.rows import distinct_rows
from isopleth.score.field import GaussianBase, KernelTerm, Normalizer, ScoreField, Term, ZetaTerm
from isopleth.score.spaces import SPACES, Space
from isopleth.score.system import (
    SCORE_SOLVERS,
    Accuracy,
    SampleSystem,
    Solution,
    solve,
    solve_truncated,
    solving_backend,
)
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff


class FrameFit(NamedTuple):
    """A fit in frame coordinates, of arrays at the backend of the rows or on the host.

    `at_samples` is the score at the samples; `coefficients` may be None until somebody asks for the score elsewhere.
    """

    at_samples: Array
    centers: Array
    coefficients: Array | None
    factor: float
    report: dict[str, Any]


class ScoreEstimator(BaseEstimator, ABC):
    """What score estimators share: rows to a frame at the door, scores back to the units of the data.

    A subclass has the parameters `kernel`, `length_scale`, `memory_limit` and `n_jobs`, may have `base`, and defines
    :meth:`_space_name` and :meth:`_fit_frame`.
    """

    kernel: str | Kernel
    length_scale: Any
    memory_limit: float
    n_jobs: int | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel],
        "length_scale": [Real, str, "array-like"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _space_name(self) -> str:
        """Which of SPACES."""

    @abstractmethod
    def _fit_frame(
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None, backend: Backend
    ) -> FrameFit:
        """The fit to distinct rows `z` with `weights` that count repetitions, for rows that came from `backend`."""

    def _solve_coefficients(self, z: np.ndarray, weights: np.ndarray, backend: Backend) -> Array:
        """Coefficients that :meth:`_fit_frame` has left for later."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the score.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; computed in float64.
        y : ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, not negative. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If there are fewer than two distinct rows, a column is constant, the kernel is too rough, or rows, weights or
            parameters cannot be used; the sentence says which and what to do.

        Warns
        -----
        DataWarning
            If columns are of unlike spread, and the rule for the length scale gives one to all.

        Notes
        -----
        Of tensors, fitted arrays are tensors on the same device, and what grows with pairs of rows is computed there. Systems
        that one core has solved before a device has been told what to do are solved on the host, where landmarks, folds and
        the base measure are settled too. ``search_path_`` and ``base_`` hold arrays of NumPy.
        """
        self._validate_params()
        self._forget()
        table = enter(self, X, sample_weight, reset=True, min_samples=2)
        backend = table.backend
        rows, weights, place = distinct_rows(table.rows, table.weights)
        space, z, base = self._settle_frame(rows, weights, backend)
        fitted = self._fit_frame(space, z, weights, base, backend)
        self._centers, self._dual_coef = backend.array(fitted.centers), backend.array(fitted.coefficients)
        self.zeta_factor_, self.weights_ = fitted.factor, weights
        for name, value in fitted.report.items():
            setattr(self, name, value)
        self.grad_log_density_ = self._at_rows(table.rows, place, to_numpy(fitted.at_samples))
        return table.finish(self)

    def _forget(self) -> None:
        """Leave nothing of another fit: one that fails is to leave no mixture of two models."""
        for name in ("grad_log_density_", "weights_", "search_path_", "_centers"):
            self.__dict__.pop(name, None)

    def _settle_frame(
        self, rows: np.ndarray, weights: np.ndarray, backend: Backend
    ) -> tuple[Space, np.ndarray, GaussianBase | None]:
        """What distinct rows decide: the space, these rows in its frame, and the base measure there."""
        refuse_without_score(self, rows)
        frame = Frame.centred(rows, np.ones(rows.shape[1], dtype=bool))
        space = SPACES[self._space_name()](get_kernel(self.kernel).bind(frame.dim), self.memory_limit, self.n_jobs)
        centred = frame.centre(rows)
        scale, base_name = self._scale_and_base(space, centred, weights, backend)
        self.length_scale_ = scale
        self.unit_ = loss_units(scale, centred, weights)
        self._frame, self._space = frame.scaled(scale), space
        z = self._frame.enter(rows)
        self.base_ = GaussianBase.fit(z, weights) if base_name == "gaussian" else None
        return space, z, self.base_

    def _scale_and_base(
        self, space: Space, rows: np.ndarray, weights: np.ndarray, backend: Backend
    ) -> tuple[np.ndarray, str | None]:
        """Length scale of each column and the base, for centred rows."""
        return self._resolved(self.length_scale, rows, weights), getattr(self, "base", None)

    def _resolved(self, length_scale: Any, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if isinstance(length_scale, str) and length_scale == "median":
            warn_of_unlike_columns(self, rows)
        keep = np.ones(rows.shape[1], dtype=bool)
        return resolve_length_scale(length_scale, rows, weights, column_names(self), keep)

    def _at_rows(self, X: np.ndarray, place: np.ndarray, at_samples: np.ndarray) -> np.ndarray:
        """The score at the rows as they came: those of weight 0 are like any others."""
        out = at_samples[place] / self._frame.scale
        without = place < 0
        if without.any():
            z = self._frame.enter(X[without])
            out[without] = to_numpy(self._field().value(self._backend.array(z))) / self._frame.scale
        return out

    @property
    def _backend(self) -> Backend:
        """Where the model lives: that of the rows at fit, the host after `load`."""
        return Backend.of(self._centers)

    @property
    def centers_(self) -> Array:
        """Centres of the kernels, in the units of the data."""
        check_is_fitted(self, "_centers")
        return self._backend.array(self._frame.leave(to_numpy(self._centers), np.zeros((1, self.n_features_in_))))

    @property
    def dual_coef_(self) -> Array:
        """The vector of each centre, in frame coordinates; truncated forms solve for them when they are first asked for."""
        check_is_fitted(self, "_centers")
        if self._dual_coef is None:
            found = self._solve_coefficients(to_numpy(self._centers), to_numpy(self.weights_), self._backend)
            self._dual_coef = self._backend.array(found)
        return self._dual_coef

    def _field(self) -> ScoreField:
        terms: list[Term] = [KernelTerm(self._space, self._centers, self.dual_coef_)]
        if self.zeta_factor_:  # full forms, whose centres are the samples
            weights = to_numpy(self.weights_)
            share = self._backend.array(weights / weights.sum())
            terms.append(ZetaTerm(self._space, self._centers, share, self.zeta_factor_))
        if self.base_ is not None:
            terms.append(self.base_.at(self._backend))
        return ScoreField(tuple(terms))

    def _enter(self, X: Any) -> tuple[Table, Array]:
        """Return the checked rows, and them in frame coordinates on the backend of the model."""
        check_is_fitted(self, "_centers")
        table = enter(self, X)
        return table, self._backend.array(self._frame.enter(table.rows))

    def grad_log_density(self, X: Any) -> Array:
        r"""The score, :math:`\nabla \log p`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In reciprocal units of the columns.
        """
        table, z = self._enter(X)
        return table.answer(to_numpy(self._value(z)) / self._frame.scale)

    def _value(self, z: Array) -> Array:
        """The score at rows in frame coordinates, in these."""
        return self._field().value(z)

    def divergence(self, X: Any) -> Array:
        r"""Divergence of the score, :math:`\sum_j \partial s_j/\partial x_j`, in closed form.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of the data.

        Raises
        ------
        InputError
            If the columns have length scales of their own: then it has a closed form only in units of these, which
            :meth:`hyvarinen_loss` uses.
        """
        table, z = self._enter(X)
        scale = self._frame.scale
        if (scale != scale[0]).any():
            raise InputError(
                "the divergence has a closed form for one length scale that all columns share; standardise the columns, or use "
                "hyvarinen_loss, which takes each in its own unit."
            )
        with np.errstate(over="ignore", under="ignore"):  # of data of size 1e-160 it is beyond all numbers
            return table.answer(to_numpy(self._field().divergence(z)) / scale[0] / scale[0])

    def hyvarinen_loss(self, X: Any) -> float:
        r"""Mean Hyvarinen loss of rows, :math:`\operatorname{div} s + |s|^2/2`, in closed form.

        Of rows that were not fitted, it is up to a constant of their distribution q half the Fisher divergence
        :math:`E_q |\nabla \log q - s|^2` [1]_: the lower, the better. It is taken in the coordinates x/``unit_``, so that
        fits whose length scales have the same proportions can be compared.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        float
            Without a unit.

        References
        ----------
        .. [1] A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6, 2005.
        """
        _, z = self._enter(X)
        loss = np.mean(to_numpy(self._field().hyvarinen_terms(z)))
        with np.errstate(over="ignore"):  # of kernels far narrower than the data it may be infinite
            unit = float(self.unit_[0]) / self._frame.scale[0]
            return float(unit * (unit * loss)) if loss else 0.0

    def score(self, X: Any, y: Any = None) -> float:
        """Minus :meth:`hyvarinen_loss`: the higher, the better.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        float
            Without a unit.
        """
        return -self.hyvarinen_loss(X)

    def log_density(self, X: Any) -> Array:
        """Log density up to a constant: its gradient is the score. Curl-free scores have one.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats. Without a base measure it need not fall off away from the data; with one, :meth:`log_normalizer` tells the
            constant.

        Raises
        ------
        InputError
            If the space is diagonal, whose scores are no gradients.
        """
        table, z = self._enter(X)
        volume = 0.0 if self.base_ is None else self._frame.log_volume
        return table.answer(to_numpy(self._field().energy(z)) - volume)

    def log_normalizer(self, n_samples: int = 10_000, random_state: Any = None) -> Normalizer:
        """Logarithm of the integral of exp(:meth:`log_density`), by importance sampling from the base measure.

        Parameters
        ----------
        n_samples : int, default=10_000
            Draws to take.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        Normalizer
            With the effective number of draws.

        Raises
        ------
        InputError
            If there is no base measure, or the space is diagonal.
        """
        check_is_fitted(self, "_centers")
        if self.base_ is None:
            raise InputError("a log density without a base measure need not integrate; fit with base='gaussian'.")
        return Normalizer.of(self._field(), self.base_, n_samples, random_state, self._backend)


ALPHA: dict[str, list[Any]] = {"alpha": [Interval(Real, 0, None, closed="neither")]}
# Which values parameters may have that several subclasses share.
SPACE: dict[str, list[Any]] = {"space": [StrOptions(set(SPACES))]}


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
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None, backend: Backend
    ) -> FrameFit:
        place = solving_backend(space, z, backend)
        at_base = None if base is None else place.array(base.value(z))
        points, share = place.array(z), place.array(weights / weights.sum())
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

    def _solve_coefficients(self, z: np.ndarray, weights: np.ndarray, backend: Backend) -> Array:
        place = solving_backend(self._space, z, backend)
        at_base = None if self.base_ is None else place.array(self.base_.value(z))
        share = place.array(weights / weights.sum())
        system = self._system(self._space, place.array(z), share, at_base)
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


# Half the range of a column, and its inverse the largest: beyond, distances overflow, or scores do.
SMALLEST = 1e-305

# Ratio of spreads at which the loss begins to hear of the narrow columns alone; of fewer rows it may be chance.
UNLIKE, ENOUGH_ROWS = 5.0, 20


def refuse_without_score(estimator: BaseEstimator, rows: np.ndarray) -> None:
    """Refuse distinct `rows` whose score is not defined, or is no number.

    Raises
    ------
    InputError
        For fewer than two, constant columns, and columns of a size near the ends of double precision.
    """
    if len(rows) < 2:
        raise InputError(
            f"X has {len(rows)} distinct row of positive weight (n_samples = 1 once merged); a score needs at least two."
        )
    names = column_names(estimator)
    low, high = rows.min(axis=0), rows.max(axis=0)
    constant = low == high
    if constant.any():
        listed = ", ".join(names[j] for j in np.flatnonzero(constant)[:8])
        raise InputError(f"constant columns have no score: {listed}; drop them first.")
    half = 0.5 * high - 0.5 * low
    wild = (half < SMALLEST) | (half > 1.0 / SMALLEST)
    if wild.any():
        j = int(np.argmax(wild))
        raise InputError(
            f"{names[j]} spans twice {half[j]:.1e}, which leaves no numbers for its length scale or its score; rescale it to "
            f"numbers nearer to 1."
        )


def warn_of_unlike_columns(estimator: BaseEstimator, rows: np.ndarray) -> None:
    """Warn of columns of unlike spread where all get one length scale."""
    if len(rows) < ENOUGH_ROWS:
        return
    ordered, cut = np.sort(rows.T, axis=1), len(rows) // 20  # a far row makes no column wide
    spread = ordered[:, -1 - cut] - ordered[:, cut]
    least, most = int(np.argmin(np.where(spread > 0.0, spread, np.inf))), int(np.argmax(spread))
    if spread[most] > UNLIKE * spread[least] > 0.0:
        names = column_names(estimator)
        warnings.warn(
            f"{names[most]} spreads {spread[most] / spread[least]:.3g} times as far as {names[least]}, and all columns get one "
            f"length scale; standardise the columns, or give length_scale one number a column.",
            DataWarning,
            stacklevel=6,
        )


def warn_if_all_is_cut(regularizer: Regularizer, fitted: Array, largest: Callable[[], float]) -> None:
    """Warn that a threshold is above all eigenvalues, of which `largest` tells the largest: what was `fitted` is 0."""
    if not isinstance(regularizer, SpectralCutoff) or regularizer.threshold is None:
        return
    if bool(namespace(fitted).any(fitted != 0.0)):
        return
    top = largest()
    if top < regularizer.threshold:
        warnings.warn(
            f"threshold = {regularizer.threshold:g} is above the largest eigenvalue, {top:.3g}: nothing is fitted, and the score "
            f"is 0, or that of the base; use a smaller threshold.",
            DataWarning,
            stacklevel=4,
        )
