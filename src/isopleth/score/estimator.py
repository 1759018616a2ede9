"""KernelScore: the gradient of the log density of some rows, and what its named relatives share with it."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.density.length_scales import loss_units, resolve_length_scale
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.kernels import Kernel, get_kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.rows import merge_rows
from isopleth.score.base_measure import GaussianBase
from isopleth.score.field import KernelTerm, ScoreField, Term, ZetaTerm
from isopleth.score.selection import FACTORS, Candidates, Rows, select
from isopleth.score.spaces import SPACES, Space
from isopleth.score.system import SCORE_SOLVERS, Accuracy, SampleSystem, Solution, solve, solve_truncated
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff
from isopleth.validation import check_rows, check_weights, column_names


@dataclass(frozen=True)
class Normalizer:
    """The integral of a density known up to a constant, by importance sampling.

    Parameters
    ----------
    log_value : float
        Its logarithm: what to subtract from log densities.
    effective_sample_size : float
        How many draws of equal weight those taken are worth; of few, `log_value` says little.
    n_samples : int
        Draws taken.
    """

    log_value: float
    effective_sample_size: float
    n_samples: int


class FrameFit(NamedTuple):
    """A fit in frame coordinates.

    `at_samples` is the score at the samples; `coefficients` may be None until somebody asks for the score elsewhere.
    """

    at_samples: np.ndarray
    centers: np.ndarray
    coefficients: np.ndarray | None
    factor: float
    report: dict[str, Any]


def _varying(estimator: BaseEstimator, rows: np.ndarray) -> None:
    """Refuse rows whose score is not defined."""
    if len(rows) < 2:
        raise InputError(
            f"X has {len(rows)} distinct row of positive weight (n_samples = 1 once merged); a score needs at least two."
        )
    constant = rows.min(axis=0) == rows.max(axis=0)
    if constant.any():
        names = column_names(estimator)
        listed = ", ".join(names[j] for j in np.flatnonzero(constant)[:8])
        raise InputError(f"constant columns have no score: {listed}; drop them first.")


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
    def _fit_frame(self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None) -> FrameFit:
        """The fit to distinct rows `z` with `weights` that count repetitions."""

    def _solve_coefficients(self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None) -> Any:
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
        """
        self._validate_params()
        for name in (
            "grad_log_density_",
            "weights_",
            "search_path_",
        ):  # a fit that fails leaves no mixture of two models
            self.__dict__.pop(name, None)
        X = check_rows(self, X, reset=True, min_samples=2)
        weights = check_weights(sample_weight, len(X))
        rows, weights, place = merge_rows(X, weights)
        _varying(self, rows)
        frame = Frame.centred(rows, np.ones(X.shape[1], dtype=bool))
        space = SPACES[self._space_name()](get_kernel(self.kernel).bind(frame.dim), self.memory_limit, self.n_jobs)
        scale, base_name = self._scale_and_base(space, frame.centre(rows), weights)
        frame = frame.scaled(scale)
        z = frame.enter(rows)
        base = GaussianBase.fit(z, weights) if base_name == "gaussian" else None
        self._frame = frame
        fitted = self._fit_frame(space, z, weights, base)
        self._space, self._samples, self._centers = space, rows, fitted.centers
        self._dual_coef = fitted.coefficients
        self.base_, self.zeta_factor_, self.weights_ = base, fitted.factor, weights
        self.length_scale_ = scale
        self.unit_ = loss_units(scale, frame.centre(rows), weights)
        for name, value in fitted.report.items():
            setattr(self, name, value)
        self.grad_log_density_ = self._at_rows(X, place, fitted.at_samples)
        return self

    def _scale_and_base(self, space: Space, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, str | None]:
        """Length scale of each column and the base, for centred rows."""
        return self._resolved(self.length_scale, rows, weights), getattr(self, "base", None)

    def _resolved(self, length_scale: Any, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        keep = np.ones(rows.shape[1], dtype=bool)
        return resolve_length_scale(length_scale, rows, weights, column_names(self), keep)

    def _at_rows(self, X: np.ndarray, place: np.ndarray, at_samples: np.ndarray) -> np.ndarray:
        """The score at the rows as they came: those of weight 0 are like any others."""
        out = at_samples[place] / self._frame.scale
        without = place < 0
        if without.any():
            out[without] = self._field().value(self._frame.enter(X[without])) / self._frame.scale
        return out

    @property
    def centers_(self) -> np.ndarray:
        """Centres of the kernels, in the units of the data."""
        check_is_fitted(self, "weights_")
        return self._frame.leave(self._centers, np.zeros((1, self.n_features_in_)))

    @property
    def dual_coef_(self) -> np.ndarray:
        """The vector of each centre, in frame coordinates; truncated forms solve for them when they are first asked for."""
        check_is_fitted(self, "weights_")
        if self._dual_coef is None:
            z = self._frame.enter(self._samples)
            self._dual_coef = self._solve_coefficients(self._space, z, self.weights_, self.base_)
        return self._dual_coef

    def _field(self) -> ScoreField:
        terms: list[Term] = [KernelTerm(self._space, self._centers, self.dual_coef_)]
        if self.zeta_factor_:
            share = self.weights_ / self.weights_.sum()
            terms.append(ZetaTerm(self._space, self._frame.enter(self._samples), share, self.zeta_factor_))
        if self.base_ is not None:
            terms.append(self.base_)
        return ScoreField(tuple(terms))

    def _enter(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "grad_log_density_")
        return self._frame.enter(check_rows(self, X, reset=False))

    def grad_log_density(self, X: Any) -> np.ndarray:
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
        return np.asarray(self._field_at(X) / self._frame.scale)

    def _field_at(self, X: Any) -> np.ndarray:
        z = self._enter(X)
        return np.asarray(self._field().value(z))

    def divergence(self, X: Any) -> np.ndarray:
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
        z = self._enter(X)
        scale = self._frame.scale
        if (scale != scale[0]).any():
            raise InputError(
                "the divergence has a closed form for one length scale that all columns share; standardise the columns, or use "
                "hyvarinen_loss, which takes each in its own unit."
            )
        return np.asarray(self._field().divergence(z) / scale[0] ** 2)

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
        z = self._enter(X)
        unit = float(self.unit_[0] / self._frame.scale[0])
        return unit**2 * float(np.mean(self._field().hyvarinen_terms(z)))

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

    def log_density(self, X: Any) -> np.ndarray:
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
        z = self._enter(X)
        volume = 0.0 if self.base_ is None else self._frame.log_volume
        return np.asarray(self._field().energy(z) - volume)

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
        check_is_fitted(self, "grad_log_density_")
        if self.base_ is None:
            raise InputError("a log density without a base measure need not integrate; fit with base='gaussian'.")
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of draws, at least 1.")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = self.base_.sample(int(n_samples), rng)
        log_ratio = self._field().energy(z) - self.base_.energy(z)
        total = float(logsumexp(log_ratio))
        effective = float(np.exp(2.0 * total - logsumexp(2.0 * log_ratio)))
        return Normalizer(total - float(np.log(n_samples)), effective, int(n_samples))


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


class KernelScore(RegularizedScore):
    r"""The gradient of a log density, by kernels, without normalising anything.

    The true score s solves :math:`L s = -\zeta` for an operator L and a function :math:`\zeta` that the samples estimate; a
    regulariser inverts L [1]_:

    .. math:: \hat s = -g_\alpha(\hat L)\,\hat\zeta, \qquad \hat L s = \sum_m w_m K(x_m, \cdot)\, s(x_m), \qquad
        \hat\zeta = \sum_m w_m \operatorname{div}_{x_m} K(x_m, \cdot)

    Everything is computed with columns divided by their length scales, so that fits follow shifts and scales of the data, and
    rotations where there is one length scale.

    What is not given is chosen by the mean Hyvarinen loss of rows held out, in `folds` parts that are always the same: the
    base, the length scale, and the strength of full Tikhonov, with a floor of 0.3 over the number of rows. Beyond 512 rows,
    bases and scales are compared on 512 of them; strengths are on all. A Gaussian alone, with no kernels, is given up only for
    a loss that is lower by one and a half standard errors, and a strength for a smaller one by half an error. What was compared
    is in `search_path_`.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel, default="imq"
        The scalar kernel. Diagonal scores need the smoothness of Matern 3/2, curl-free ones that of Matern 5/2.
    space : {"curl_free", "diagonal"}, default="curl_free"
        Curl-free scores are gradients, and have a log density; diagonal ones are cheaper, each column for itself.
    regularizer : Regularizer, optional
        Tikhonov, SpectralCutoff, LandweberIteration or NuIteration, with its strength. None is ``Tikhonov(truncated=False)``
        of a strength that the folds choose.
    length_scale : "auto", float, array of shape (n_features,), "scott" or "median", default="auto"
        Length scale, one for all columns or one a column, in the units of the data. "median" is the median distance between
        distinct rows, one number for all columns; "auto" is 1/2 to 8 times that, as the folds choose.
    base : {"auto", None, "gaussian"}, default="auto"
        The measure on top of which the score is fitted. None is the Lebesgue measure: far from the data the score tends to 0. A
        Gaussian with shrunk covariance gives log densities tails. "auto" is the better one by the folds.
    folds : int, default=5
        Into how many parts the distinct rows are parted; each is held out once.
    solver : {"auto", "direct", "eigen", "cg", "lanczos", "iterate"}, default="auto"
        "direct" (Cholesky) and "eigen" keep the whole matrix, "cg", "lanczos" and "iterate" its products; "direct" and "cg" are
        for Tikhonov, "iterate" takes the steps of iterations. "auto" decides by the size.
    tol : float, default=1e-8
        Relative residual at which "cg" and "lanczos" stop. A sum of kernels that has to interpolate the values at the samples, as
        truncated forms and cut-offs are, may miss them by the root of it.
    memory_limit : float, default=2**30
        Bytes that matrices and scratch of sums may take together.
    n_jobs : int, optional
        Threads; None is all processors.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`.
    dual_coef_ : ndarray of shape (n_centers, n_features)
        A vector a distinct row, in frame coordinates. Truncated Tikhonov solves for them when they are first needed:
        the score at the samples does not need them.
    centers_ : ndarray of shape (n_centers, n_features)
        The distinct rows of positive weight.
    weights_ : ndarray of shape (n_centers,)
        Their summed weights.
    zeta_factor_ : float
        The factor of zeta, 0 in truncated forms.
    base_ : GaussianBase or None
        The base measure, in frame coordinates.
    regularizer_ : Regularizer
        What was used.
    length_scale_ : ndarray of shape (n_features,)
        The length scale of each column.
    unit_ : ndarray of shape (n_features,)
        The unit of each column in :meth:`hyvarinen_loss`: its length scale, times a factor that brings their geometric mean
        to that of the standard deviations.
    search_path_ : SelectionPath
        What the folds compared and chose, if anything was left to them.
    residual_ : float
        Relative residual reached, 0 for direct solvers.
    n_iter_ : int
        Products with the matrix taken.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    Warns
    -----
    ConvergenceWarning
        If `tol` was not reached.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KernelScore, Tikhonov
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = KernelScore(regularizer=Tikhonov(alpha=0.01)).fit(X)
    >>> left, right = score.grad_log_density([[-1.0, 0.0], [1.0, 0.0]])  # of a normal density: minus the row
    >>> bool(left[0] > 0.5 and right[0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizedScore._parameter_constraints,
        "space": [StrOptions(set(SPACES))],
        "regularizer": [Regularizer, None],
        "base": [None, StrOptions({"gaussian", "auto"})],
        "folds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        regularizer: Regularizer | None = None,
        length_scale: Any = "auto",
        base: str | None = "auto",
        folds: int = 5,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.regularizer = regularizer
        self.length_scale = length_scale
        self.base = base
        self.folds = folds
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return self.space

    def _scale_and_base(self, space: Space, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, str | None]:
        free = isinstance(self.length_scale, str) and self.length_scale == "auto"
        scale = self._resolved("median" if free else self.length_scale, rows, weights)
        if not free and self.base != "auto" and self.regularizer is not None:
            return scale, self.base
        bases = (None, "gaussian") if self.base == "auto" else (self.base,)
        candidates = Candidates(bases, FACTORS if free else (1.0,), self.regularizer)
        unit = float(loss_units(scale, rows, weights)[0] / scale[0])
        self.search_path_ = select(space, Rows(rows, weights, scale, unit, self.folds), candidates)
        return self.search_path_.length_scale, self.search_path_.base

    def _regularizer(self) -> Regularizer:
        return self.search_path_.regularizer if self.regularizer is None else self.regularizer
