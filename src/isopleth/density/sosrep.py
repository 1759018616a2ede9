"""SOSREP: a density p = f^2 from a root regularised in a reproducing kernel Hilbert space."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.density.gaussian_pairs import sample_pairs
from isopleth.density.length_scales import resolve_length_scale
from isopleth.density.levels import cross_fitted, weighted_quantile
from isopleth.errors import InputError
from isopleth.expansion import KernelExpansion
from isopleth.frame import Frame
from isopleth.kernels import Gaussian, Kernel, get_kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.rows import merge_rows
from isopleth.solvers import SCALING_SOLVERS, ScalingSolution
from isopleth.validation import check_rows, check_weights, column_names, varying_columns, warn_few_rows


class SOSREP(DensityMixin, BaseEstimator):
    r"""Sobolev-regularised pre-density, normalised: a density :math:`p = f^2/Z`.

    The root f minimises :math:`-\sum_i w_i \log f(x_i)^2 + |f|_H^2` over the reproducing kernel Hilbert space H of a kernel, on
    the branch f > 0 [1]_. It is :math:`f = \sum_i \alpha_i k(x_i, \cdot)` with :math:`\alpha_i f(x_i) = w_i`, which is solved
    exactly as a symmetric scaling of the kernel matrix. :math:`Z = \int f^2` has a closed form for every kernel, so
    :meth:`score_samples` is a true log density.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "sdo"} or Kernel, default="gaussian"
        The kernel.
    length_scale : float, array of shape (n_features,), "scott" or "median", default="scott"
        Length scale in the units of the data, one for all columns or one a column. "scott" follows the standard deviation of
        each column and the number of rows, "median" is the median distance between distinct rows.
    solver : {"auto", "fixed_point", "newton"}, default="auto"
        "auto" takes the fixed point for kernels without negative values and Newton's method for the others.
    tol : float, default=1e-8
        Largest :math:`|\alpha_i f(x_i)/w_i - 1|` to accept.
    memory_limit : float, default=2**30
        Bytes that the kernel matrix and scratch may take together. The matrix is kept if it fits and streamed if not.
    n_jobs : int, optional
        Threads; None is all processors.

    Attributes
    ----------
    centers_ : ndarray of shape (n_centers, n_features)
        The distinct rows of positive weight.
    weights_ : ndarray of shape (n_centers,)
        Their summed weights.
    dual_coef_ : ndarray of shape (n_centers,)
        Coefficients alpha for :math:`k = \varphi(s)`, :math:`\varphi(0) = 1`; all positive.
    log_normalizer_ : float
        log Z in the units of the data.
    length_scale_ : ndarray of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped.
    residual_ : float
        The largest :math:`|\alpha_i f(x_i)/w_i - 1|` reached.
    n_iter_ : int
        Products with the kernel matrix taken.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns at fit, where they had any.

    Warns
    -----
    ConvergenceWarning
        If `tol` was not reached.
    DataWarning
        For constant columns and for fewer distinct rows than columns.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Sobolev Space Regularised Pre Density Models", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> density = SOSREP().fit(X)
    >>> near, far = density.score_samples([[0.0, 0.0], [4.0, 4.0]])
    >>> bool(near > far)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel],
        "length_scale": [Real, str, "array-like"],
        "solver": [StrOptions(set(SCALING_SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        length_scale: Any = "scott",
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

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
            If the rows, weights or length scale cannot be used; the sentence says which and what to do.
        """
        self._validate_params()
        self.__dict__.pop("dual_coef_", None)  # a fit that fails leaves no mixture of two models
        X = check_rows(self, X, reset=True, min_samples=2)
        rows, weights, _ = merge_rows(X, check_weights(sample_weight, len(X)))
        keep = varying_columns(self, rows)
        frame = Frame.centred(rows, keep)
        kernel = get_kernel(self.kernel).bind(frame.dim)
        warn_few_rows(len(rows), frame.dim)
        frame = frame.scaled(
            resolve_length_scale(self.length_scale, frame.centre(rows), weights, column_names(self), keep)
        )
        expansion, solution = self._solve(kernel, frame.enter(rows), weights)
        self._kernel = kernel
        self._frame = frame
        self.centers_ = rows
        self.weights_ = weights
        self.length_scale_ = np.full(len(keep), np.nan)
        self.length_scale_[keep] = frame.scale
        self.dual_coef_ = solution.coefficients
        self.residual_ = solution.residual
        self.n_iter_ = solution.n_iter
        self.log_normalizer_ = expansion.log_square_integral() + frame.log_volume
        return self

    def _solve(self, kernel: Kernel, z: np.ndarray, weights: np.ndarray) -> tuple[KernelExpansion, ScalingSolution]:
        """The root f for centres `z` in frame coordinates."""
        op = Operator(kernel, z, memory_limit=self.memory_limit, n_jobs=self.n_jobs).store()
        solution = SCALING_SOLVERS[self.solver](op, weights / weights.sum(), self.tol)
        if not solution.converged(self.tol):
            warnings.warn(
                f"the residual {solution.residual:.1e} is above tol = {self.tol:g} after {solution.n_iter} products; a smaller "
                f"length_scale, a larger tol or weights of a smaller range may help.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return KernelExpansion(kernel, z, solution.coefficients, self.memory_limit, self.n_jobs), solution

    def _fitted(self) -> KernelExpansion:
        z = self._frame.enter(self.centers_)
        return KernelExpansion(self._kernel, z, self.dual_coef_, self.memory_limit, self.n_jobs)

    def _enter(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "dual_coef_")
        return self._frame.enter(check_rows(self, X, reset=False))

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row, normalised.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            log p, in nats, per unit of volume of the kept columns. Far from the data, where p underflows, it is computed in
            the log domain for the Gaussian and the Laplacian. SDO kernels are exact to about 1e-12 of their peak and 0
            where they fall below 1e-17 of it: the log density of rows that far from every centre is noise, then minus
            infinity.
        """
        z = self._enter(X)
        return 2.0 * self._fitted().log_abs(z) - self.log_normalizer_

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of the log densities of rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        float
            In nats.
        """
        return float(np.sum(self.score_samples(X)))

    def grad_log_density(self, X: Any) -> np.ndarray:
        r"""Gradient of the log density, :math:`2\,\nabla f/f`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In reciprocal units of the columns; 0 in constant columns.
        """
        z = self._enter(X)
        out = np.zeros((len(z), self.n_features_in_))
        out[:, self._frame.keep] = 2.0 * self._fitted().grad_log_abs(z) / self._frame.scale
        return out

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw independent rows from the density, exactly.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Constant columns keep their value.

        Raises
        ------
        NotImplementedError
            For kernels other than the Gaussian, whose square is no mixture that can be drawn from directly.
        """
        check_is_fitted(self, "dual_coef_")
        expansion = self._fitted()
        if not isinstance(expansion.kernel, Gaussian):
            raise NotImplementedError(f"{self._kernel!r} has no exact sampler; fit with kernel='gaussian' to sample.")
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of rows, at least 1.")
        z = sample_pairs(expansion, n_samples, random_state)
        return self._frame.leave(z, self.centers_[0])

    def level_set(self, mass: Any) -> Any:
        """Log-density threshold of the highest-density region that holds `mass` of the rows' own distribution.

        The region is ``score_samples(X) >= level_set(mass)``, its boundary an isopleth. The threshold is a quantile of the log
        densities of held-out rows, in five folds that keep repeated rows together, at the fitted length scale: training rows
        themselves would look too likely.

        Parameters
        ----------
        mass : float or array-like
            Mass inside, between 0 and 1.

        Returns
        -------
        float or ndarray of the shape of `mass`
            Thresholds for :meth:`score_samples`.

        Raises
        ------
        InputError
            If `mass` is not between 0 and 1.
        """
        check_is_fitted(self, "dual_coef_")
        asked = np.asarray(mass)
        if asked.dtype.kind not in "fi" or not ((asked > 0) & (asked < 1)).all():
            raise InputError(f"mass = {mass!r}: expected numbers between 0 and 1, both left out.")
        held_out = cross_fitted(self._frame.enter(self.centers_), self.weights_, self._log_density_of)
        levels = weighted_quantile(held_out - self._frame.log_volume, self.weights_, 1.0 - asked)
        return levels if asked.ndim else float(levels)

    def _log_density_of(self, train: np.ndarray, weights: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Log density in frame coordinates of `test` under a fit to `train`."""
        expansion, _ = self._solve(self._kernel, train, weights)
        return 2.0 * expansion.log_abs(test) - expansion.log_square_integral()
