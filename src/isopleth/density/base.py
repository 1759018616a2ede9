"""Base class of the density estimators, which keep the value that a fit returns and ask it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import requires_gradient, to_numpy
from isopleth.core.errors import InputError, require
from isopleth.core.fitted_attributes import FromFit
from isopleth.core.progress import ReportsProgress
from isopleth.density.fitted import Fitted
from isopleth.density.fitting import fit_numbers
from isopleth.density.frame_and_scale import Asked
from isopleth.density.search import Search
from isopleth.density.solver import Solver
from isopleth.frames import Frame
from isopleth.kernels import Kernel
from isopleth.tables.checks import CheckedRows, enter
from isopleth.tables.empty_rows import warn_of_empty_rows


class DensityEstimator(ReportsProgress, DensityMixin, BaseEstimator, ABC):
    """Base class of density estimators, which fit and evaluate in frame coordinates.

    A subclass has the parameters below and defines :meth:`_solver`.
    """

    kernel: str | Kernel
    frame: Any
    length_scale: Any
    bounds: Any
    memory_limit: float
    n_jobs: int | None
    verbose: bool | int

    _fitted: Fitted

    log_normalizer_, length_scale_, unit_ = FromFit(), FromFit(), FromFit()
    components_, search_path_ = FromFit(), FromFit()
    residual_, n_iter_ = FromFit(), FromFit()

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel],
        "length_scale": [Real, str, "array-like", Search],
        "frame": [str, Frame],
        "bounds": [None, dict, "array-like"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    @abstractmethod
    def _solver(self) -> Solver:
        """Return how kernels or features become a density."""

    @property
    def _asked(self) -> Asked:
        """Frame and length scale that the parameters ask for."""
        return Asked(self.frame, self.length_scale, self.kernel)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; computed in float64. The fit to a tensor, or to another array of the array API, runs on its device, and the
            fitted attributes are arrays there.
        y : ignored
            Present for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows, weights, kernel, length scale or bounds are invalid. The message says which and what to do.
        """
        self._validate_params()
        self._forget()
        return self._fit_numbers(enter(self, X, sample_weight, reset=True, min_samples=2))

    def _fit_numbers(self, table: CheckedRows) -> Self:
        """Fit the density to checked rows of numbers, after the number and the names of the columns have been set."""
        self._fitted = fit_numbers(self, self._asked, self._solver(), table)
        return self

    def _forget(self) -> None:
        """Delete the result of an earlier fit, so that a fit that fails leaves none."""
        for name in ("_fitted", "schema_", "_frame_of_fit"):
            self.__dict__.pop(name, None)

    def _value(self) -> Fitted:
        """Return the fitted value."""
        check_is_fitted(self)
        return self._fitted

    def _checked(self, X: Any) -> CheckedRows:
        """Return the checked rows of a question to a fitted density."""
        check_is_fitted(self)
        return enter(self, X)

    def score_samples(self, X: Any) -> np.ndarray:
        """Compute the normalised log density of each row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows, of any array library and on any device.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities in nats, per unit of volume of the kept columns; minus infinity on and beyond bounds. That of the known
            cells, if cells are missing: 0 for a row without any, since it says nothing. If `X` is a tensor, the result is a
            tensor on its device.

        Warns
        -----
        DataWarning
            Of the number of rows without a known cell.

        Notes
        -----
        Far from the data, where p underflows, sums of nonnegative kernels are computed in the log domain. Other kernels (SDO)
        have an error of about 1e-12 of their peak and are 0 where they fall below 1e-17 of it, so the log density of rows that
        far from every centre is noise, and minus infinity further away. Random features (:class:`~isopleth.RandomFeatureSOSREP`)
        have a much larger error, and far rows get minus infinity; use :class:`~isopleth.SOSREP` with `landmarks` if such rows
        matter.

        The log densities of :class:`~isopleth.KDE` and :class:`~isopleth.SOSREP` of a tensor that requires a gradient have one.
        """
        if requires_gradient(X):
            return _functions_of_tensors().score_samples(self, self._value(), X)
        table = self._checked(X)
        warn_of_empty_rows(table)
        out: np.ndarray = table.answer(self._fitted.log_density(table.rows, table.limits))
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the sum of the log densities of rows.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for the scikit-learn interface.

        Returns
        -------
        float
            The sum, in nats.
        """
        return float(np.sum(to_numpy(self.score_samples(X))))

    def grad_log_density(self, X: Any) -> np.ndarray:
        r"""Compute the gradient of the log density, :math:`\nabla \log p`.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows, of any array library and on any device.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In reciprocal units of the columns; 0 in constant columns. NaN for rows on or beyond a bound, and for rows where
            random features are below their noise. If `X` is a tensor, the result is a tensor on its device.

        Notes
        -----
        If `X` is a tensor that requires a gradient, what :class:`~isopleth.KDE` and :class:`~isopleth.SOSREP` return has a
        derivative, for kernels of a :attr:`~isopleth.kernels.Kernel.smoothness` above 1. It is NaN where the density underflows.
        """
        if requires_gradient(X):
            return _functions_of_tensors().grad_log_density(self._value(), X)
        table = self._checked(X)
        gradient = np.full((len(table.rows), self.n_features_in_), np.nan)
        gradient[:, self._fitted.places] = self._fitted.gradient(table.rows, table.limits)
        out: np.ndarray = table.answer(gradient)
        return out

    def hyvarinen_loss(self, X: Any) -> float:
        r"""Compute the mean Hyvarinen loss of rows, :math:`\operatorname{tr} \nabla^2 \log p + |\nabla \log p|^2/2`, exactly.

        For new rows with distribution q, its expectation is half the Fisher divergence
        :math:`E_q |\nabla \log q - \nabla \log p|^2` plus a constant that depends on q alone [1]_: lower is better. It needs no
        normaliser. It is computed in the coordinates x/``unit_``, so that densities whose length scales have the same
        proportions can be compared; columns with bounds count as the logarithms or logits in which they are fitted.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows. For kernels of smoothness 1 or less, whose Laplacian is infinite at the centres, rows equal to a centre are
            left out.

        Returns
        -------
        float
            The loss, dimensionless. Infinite if the sum of kernels is not positive at some row (possible for kernels with
            negative values such as SDO), if random features are below their noise there, or if a row is on or beyond a bound.

        Raises
        ------
        InputError
            For mixtures over frames, and frames without second derivatives. In one column, for kernels as rough as the Laplacian,
            because the loss has atoms at the centres, which other rows never hit. For random features of kernels of smoothness 1
            or less. If no row is left.

        References
        ----------
        .. [1] A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6, 2005.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import SOSREP
        >>> X = np.random.default_rng(0).normal(size=(1000, 1))
        >>> losses = [SOSREP(length_scale=h, frame="scale").fit(X[:500]).hyvarinen_loss(X[500:]) for h in (0.05, 0.6, 5.0)]
        >>> int(np.argmin(losses))
        1
        """
        table = self._checked(X)
        if table.missing.any():
            raise InputError(
                "X has missing cells, for which this is not defined; drop those rows or fill them with impute."
            )
        return self._fitted.hyvarinen_loss(table.rows)


def _functions_of_tensors() -> Any:
    """Return the functions of tensors that require a gradient, which are part of an extra."""
    return require("isopleth.torch.densities", "torch", "the gradient of a density")
