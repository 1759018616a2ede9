"""What all score estimators share: rows to a frame at the door, scores back to the units of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth.density.length_scales import loss_units, resolve_length_scale
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.kernels import Kernel, get_kernel
from isopleth.rows import merge_rows
from isopleth.score.base_measure import GaussianBase
from isopleth.score.field import KernelTerm, ScoreField, Term, ZetaTerm
from isopleth.score.rows import refuse_without_score, warn_of_unlike_columns
from isopleth.score.spaces import SPACES, Space
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

        Warns
        -----
        DataWarning
            If columns are of unlike spread, and the rule for the length scale gives one to all.
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
        refuse_without_score(self, rows)
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
        if isinstance(length_scale, str) and length_scale == "median":
            warn_of_unlike_columns(self, rows)
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
        with np.errstate(over="ignore", under="ignore"):  # of data of size 1e-160 it is beyond all numbers
            return np.asarray(self._field().divergence(z) / scale[0] / scale[0])

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
        loss = np.mean(self._field().hyvarinen_terms(z))
        with np.errstate(over="ignore"):  # of kernels far narrower than the data it may be infinite
            unit = self.unit_[0] / self._frame.scale[0]
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
