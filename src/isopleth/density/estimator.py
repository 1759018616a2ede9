"""Base classes of the density estimators: rows are mapped to frame coordinates, densities back to the units of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import Array, Backend, requires_gradient, to_numpy
from isopleth.columns import TableColumns, is_table_of_kinds, library_of
from isopleth.density.bounds import Bounds
from isopleth.density.column_density import ColumnDensity
from isopleth.density.column_fit import ColumnFit
from isopleth.density.fitted import ExpansionDensity, FrameDensity, RootDensity
from isopleth.density.search import Fit, Search, run_search
from isopleth.density.table_density import TableDensity
from isopleth.density.table_fit import factor_of, fit_table, product_factor
from isopleth.entry import Table, column_names, enter, on_host, varying_columns, warn_few_rows
from isopleth.errors import InputError
from isopleth.expansion import KernelExpansion
from isopleth.frame import Frame
from isopleth.kernels import Kernel, get_kernel
from isopleth.kernels.product import ColumnKernel
from isopleth.length_scales import RULES, Rule, loss_units, resolve_length_scale
from isopleth.operators.threads import interruptible
from isopleth.rows import distinct_rows, folds_of

# Kernels that are products over columns, for sentences.
_PRODUCTS = "kernel='gaussian' or ProductLaplacian()"


class DensityEstimator(DensityMixin, BaseEstimator, ABC):
    """Base class of density estimators, which fit and evaluate in frame coordinates.

    A subclass has the parameters `kernel`, `length_scale`, `bounds`, `memory_limit` and `n_jobs`, and defines
    :meth:`_refuse`, :meth:`_fit_frame`, :meth:`_keep` and :meth:`_fitted`.
    """

    kernel: str | Kernel
    length_scale: Any
    bounds: Any
    memory_limit: float
    n_jobs: int | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel],
        "length_scale": [Real, str, "array-like", Search],
        "bounds": [None, dict, "array-like"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _refuse(self, kernel: Kernel) -> None:
        """Raise InputError, before any computation, if the bound kernel is unsuitable or memory does not suffice."""

    @abstractmethod
    def _fit_frame(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        """Fit a density to distinct rows `z` in frame coordinates; return it and further fitted attributes by name.

        Rows and weights are on the backend that the density will have.
        """

    @abstractmethod
    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        """Set the attributes from which :meth:`_fitted` rebuilds the density.

        `place` has for each row of `X` its index among the distinct rows `z`, whose weights are `weights`, or -1 if it is none.
        """

    @abstractmethod
    def _fitted(self) -> FrameDensity:
        """Return the density from the attributes that :meth:`_keep` has set."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _draw_random(self, kernel: Kernel) -> None:
        """Draw the random numbers of a fit, once for all densities that it fits; most estimators need none."""
        return

    def _rules(self) -> Mapping[str, Rule]:
        """Return the rules that `length_scale` may name."""
        return RULES

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
        table = enter(self, X, sample_weight, reset=True, min_samples=2)
        return self._fit_table(self._reduce(table))

    def _reduce(self, table: Table) -> Table:
        """Return the rows and weights to fit; a subclass may select some of them."""
        return table

    def _fit_table(self, table: Table) -> Self:
        """Fit the density to checked rows, after the number and the names of the columns have been set."""
        X, weights, backend = table.rows, table.weights, table.backend
        names = [str(name) for name in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None
        bounds = Bounds.of(self.bounds, column_names(self), names)
        bounds.check(X, weights > 0, column_names(self))
        inside = _on_real_line(bounds, X, weights > 0)
        rows, weights, place = interruptible(100.0 * X.size, distinct_rows, inside, weights)
        keep = varying_columns(self, rows, stacklevel=4)
        frame = interruptible(100.0 * X.size, Frame.centred, rows, keep)
        kernel = get_kernel(self.kernel).bind(frame.dim)
        self._refuse(kernel)
        self._draw_random(kernel)
        warn_few_rows(len(rows), frame.dim, stacklevel=4)
        scale, unit = self._choose_length_scale(kernel, frame.centre(rows), weights, keep, backend)
        frame = frame.scaled(scale)
        z = frame.enter(rows)
        density, report = self._fit_frame(kernel, backend.array(z), backend.array(weights))
        self._set_fit(kernel, frame, bounds, unit, report)
        self._keep(density, X, place, z, weights)
        self.log_normalizer_ = density.log_normalizer + frame.log_volume
        return table.finish(self)

    def _forget(self) -> None:
        """Delete the results of an earlier fit, so that a fit that fails does not leave a mixture of two models."""
        for name in ("log_normalizer_", "search_path_"):
            self.__dict__.pop(name, None)

    def _set_fit(self, kernel: Kernel, frame: Frame, bounds: Bounds, unit: np.ndarray, report: dict[str, Any]) -> None:
        """Set the attributes common to all densities but the normaliser; that is set last and marks the model as fitted."""
        self._kernel, self._frame, self._bounds = kernel, frame, bounds
        self.length_scale_ = frame.by_column(frame.scale)
        self.unit_ = frame.by_column(unit)
        for name, value in report.items():
            setattr(self, name, value)

    def _choose_length_scale(
        self, kernel: Kernel, rows: np.ndarray, weights: np.ndarray, keep: np.ndarray, backend: Backend
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the length scale and the unit of each kept column."""
        search = self.length_scale if isinstance(self.length_scale, Search) else None
        asked, what = (search.base, "base of the Search") if search else (self.length_scale, "length_scale")
        scale = resolve_length_scale(asked, rows, weights, column_names(self), keep, what, self._rules())
        unit = loss_units(scale, rows, weights)
        if search is not None:
            self.search_path_ = run_search(search, kernel, rows, weights, scale, unit, self._fitting_at(backend))
            scale = self.search_path_.best_factor * scale
        return scale, unit

    def _fitting_at(self, backend: Backend) -> Fit:
        """Return a function that fits NumPy rows and weights on `backend`."""
        return lambda kernel, z, weights: self._fit_frame(kernel, backend.array(z), backend.array(weights))[0]

    def _enter(self, X: Any) -> tuple[Table, np.ndarray, np.ndarray]:
        """Return the checked rows, a mask of those inside the bounds, and these in frame coordinates."""
        table = self._checked(X)
        return table, *self._framed(table)

    def _checked(self, X: Any) -> Table:
        """Return the checked rows of a question to a fitted density."""
        check_is_fitted(self, "log_normalizer_")
        return enter(self, X)

    def _framed(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return a mask of the rows inside the bounds, and these in frame coordinates."""
        inside = np.asarray(self._bounds.inside(table.rows).all(axis=1))
        return inside, self._frame.enter(self._bounds.enter(table.rows[inside]))

    def _log_slope(self, X: np.ndarray) -> np.ndarray:
        """Return the log Jacobian of the map of bounded columns to the real line, at rows inside the bounds."""
        return np.asarray(self._bounds.log_slope(X)[:, self._frame.keep].sum(axis=1))

    def score_samples(self, X: Any) -> np.ndarray:
        """Compute the normalised log density of each row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows, of any array library and on any device.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities in nats, per unit of volume of the kept columns; minus infinity on and beyond bounds. If `X` is a
            tensor, the result is a tensor on its device.

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
            from isopleth.torch import densities

            return densities.score_samples(self._expansion_density(), self._frame, self.log_normalizer_, X)
        table = self._checked(X)
        out: np.ndarray = table.answer(self._log_density(table))
        return out

    def _expansion_density(self) -> ExpansionDensity:
        """Return the density as a sum of kernels, for derivatives in its argument.

        Raises
        ------
        InputError
            If it is something else, or columns are bounded, or there are other columns than numbers.
        """
        check_is_fitted(self, "log_normalizer_")
        bounded = bool(np.isfinite([self._bounds.low, self._bounds.high]).any())
        plain = getattr(self, "_table_columns", None) is None and not bounded
        density = self._fitted() if plain else None
        if not isinstance(density, ExpansionDensity) or density.expansion.kernel.by_columns:
            raise InputError(
                "X requires a gradient, which only sums of radial kernels over numeric columns without bounds pass on; give "
                "X.detach()."
            )
        return density

    def _log_density(self, table: Table) -> np.ndarray:
        inside, z = self._framed(table)
        out = np.full(len(inside), -np.inf)
        if len(z):
            out[inside] = (
                self._fitted().log_unnormalized(z) - self.log_normalizer_ + self._log_slope(table.rows[inside])
            )
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
        derivative, for kernels of a :attr:`~isopleth.Kernel.smoothness` above 1. It is NaN where the density underflows.
        """
        if requires_gradient(X):
            from isopleth.torch import densities

            return densities.grad_log_density(self._expansion_density(), self._frame, X)
        table = self._checked(X)
        out: np.ndarray = table.answer(self._gradient(table))
        return out

    def _gradient(self, table: Table) -> np.ndarray:
        inside, z = self._framed(table)
        out = np.full((len(inside), self.n_features_in_), np.nan)
        if len(z):
            gradient = np.zeros((len(z), self.n_features_in_))
            gradient[:, self._frame.keep] = self._fitted().grad_log_density(z) / self._frame.scale
            gradient = self._bounds.gradient(table.rows[inside], gradient)
            gradient[:, ~self._frame.keep] = 0.0
            out[inside] = gradient
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
            In one column, for kernels as rough as the Laplacian, because the loss has atoms at the centres, which other rows
            never hit. For random features of kernels of smoothness 1 or less. If no row is left.

        References
        ----------
        .. [1] A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6, 2005.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import SOSREP
        >>> X = np.random.default_rng(0).normal(size=(1000, 1))
        >>> losses = [SOSREP(length_scale=h).fit(X[:500]).hyvarinen_loss(X[500:]) for h in (0.05, 0.6, 5.0)]
        >>> int(np.argmin(losses))
        1
        """
        _, inside, z = self._enter(X)
        kernel = self._kernel
        if kernel.bound_dim == 1 and kernel.smoothness <= 0.5:
            raise InputError(
                f"the Hyvarinen loss of {kernel!r} in one column leaves out its kinks at the centres; "
                "fit with a smoother kernel, such as 'matern32', 'matern52' or 'gaussian'."
            )
        density = self._fitted()
        if not inside.all() or not density.positive(z).all():
            return float("inf")
        terms = density.hyvarinen_terms(z)
        if kernel.smoothness <= 1.0:
            terms = terms[terms != -np.inf]
        if not len(terms):
            raise InputError(
                f"every row of X is one that {kernel!r} was fitted to, where its Hyvarinen loss is minus infinity; pass other "
                "rows, or fit with a smoother kernel, such as 'matern52' or 'gaussian'."
            )
        kept = int(np.argmax(self._frame.keep))
        ratio = float(self.unit_[kept]) / float(self.length_scale_[kept])
        return float(ratio**2 * np.mean(terms))


def _on_real_line(bounds: Bounds, X: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return a copy of the rows with bounded columns mapped to the real line in rows of positive weight."""
    out = X.copy()
    out[counted] = bounds.enter(X[counted])
    return out


class KernelDensity(DensityEstimator):
    """Base class of densities with one kernel at each distinct row.

    A subclass has the parameters `kernel`, `length_scale`, `bounds`, `memory_limit` and `n_jobs`, and defines
    :attr:`_density_type`, :meth:`_refuse` and :meth:`_fit_frame`.
    """

    # How the fitted sum of kernels defines a density.
    _density_type: ClassVar[type[ExpansionDensity]]

    categorical: Any
    category_scale: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DensityEstimator._parameter_constraints,
        "categorical": [None, str, "array-like"],
        "category_scale": [Real, str, "array-like"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = self._takes_kinds()
        return tags

    def _takes_kinds(self) -> bool:
        """Tell whether words and missing cells can be fitted."""
        return self._is_product()

    def _is_product(self) -> bool:
        """Tell whether the kernel is a product over columns, which words and missing cells need."""
        try:
            return factor_of(get_kernel(self.kernel)) is not None
        except InputError:
            return False

    def _refuse_kinds(self) -> None:
        """Say which parameter words and missing cells need."""
        product_factor(get_kernel(self.kernel), "a fit with categories or missing cells")

    @property
    def _instead(self) -> str:
        """Name the estimators that take missing cells."""
        return _PRODUCTS

    @abstractmethod
    def _fit_columns(self, kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray) -> ColumnFit:
        """Fit a product kernel to rows in frame coordinates, of which cells may be NaN."""

    def _forget(self) -> None:
        super()._forget()
        for name in (
            "_table_columns",
            "_points",
            "_filled",
            "_constants",
            "_library",
            "category_scale_",
            "weights_",
            "unit_",
        ):
            self.__dict__.pop(name, None)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; computed in float64. Frames may have columns of words and times, and cells may be missing (NaN, None, or an
            empty text); arrays hold numbers, except in columns that `categorical` names. The fit to a tensor, or to another
            array of the array API, runs on its device, and the fitted attributes are arrays there.
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
            If the rows, weights, kernel, scales or bounds are invalid. The message says which and what to do.
        """
        self._validate_params()
        self._forget()
        if not self._takes_kinds() and (self.categorical is not None or is_table_of_kinds(X)):
            self._refuse_kinds()
        table = enter(self, X, sample_weight, reset=True, min_samples=2)
        if table.columns is None and not table.missing.any():
            return self._fit_table(self._reduce(table))
        self._fit_kinds(table)
        self._library = library_of(X)
        return table.finish(self)

    def _fit_kinds(self, table: Table) -> None:
        """Fit a table with words or missing cells."""
        columns = table.columns or self._number_columns()
        names = [str(name) for name in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None
        all_bounds = Bounds.of(self.bounds, column_names(self), names)
        places = self._places(columns)
        numeric = places[: table.n_numeric]
        words = np.setdiff1d(np.arange(self.n_features_in_), numeric)
        if np.isfinite(all_bounds.low[words]).any() or np.isfinite(all_bounds.high[words]).any():
            raise InputError("bounds names a column that is no number; name numeric columns only.")
        length_scale = on_host(self.length_scale, "length_scale")
        if not isinstance(length_scale, (str, Real, Search)) and np.shape(length_scale) == (self.n_features_in_,):
            length_scale = np.asarray(length_scale, dtype=np.float64)[numeric]
        squared = self._density_type is RootDensity
        found = fit_table(
            table.rows,
            table.weights,
            columns,
            all_bounds.take(numeric),
            get_kernel(self.kernel),
            length_scale,
            self.category_scale,
            squared,
            self._fit_columns,
        )
        self._kernel, self._frame, self._bounds = found.kernel, found.frame, found.bounds
        self._points, self._filled, self._constants = found.fit.density.centers, found.fit.filled, found.constants
        if found.path is not None:
            self.search_path_ = found.path
        if found.weights is not None:
            self.weights_ = found.weights
        self.dual_coef_ = found.fit.density.coefficients
        self.length_scale_ = np.full(self.n_features_in_, np.nan)
        self.length_scale_[numeric] = found.frame.by_column(found.frame.scale)
        self.category_scale_ = np.full(self.n_features_in_, np.nan)
        self.category_scale_[places[table.n_numeric :]] = found.kernel.rho
        self.residual_, self.n_iter_ = found.fit.residual, found.fit.n_iter
        self.centers_ = np.full((len(self._points), self.n_features_in_), np.nan)
        density = self._table_density(columns, found.fit.density)
        self.centers_[:, places] = density._rows(self._points)
        self.log_normalizer_ = found.fit.density.log_normalizer + found.frame.log_volume

    def _number_columns(self) -> TableColumns:
        """Return the columns of a table of numbers."""
        named = hasattr(self, "feature_names_in_")
        names = list(self.feature_names_in_) if named else list(range(self.n_features_in_))
        return TableColumns.of_numbers(names, named)

    def _places(self, columns: TableColumns) -> np.ndarray:
        """Return where the encoded columns stand in the table of the fit."""
        if columns.named:
            labels = column_names(self)
            used = [labels.index(repr(str(name))) for name in columns.names]
        else:
            used = [int(name) for name in columns.names]
        return np.array(used, dtype=np.intp)[columns.order]

    @property
    def _of_kinds(self) -> bool:
        """Tell whether the fit was to a table with words or missing cells."""
        return hasattr(self, "_points")

    def _table_density(self, columns: TableColumns | None = None, density: ColumnDensity | None = None) -> TableDensity:
        """Return the density as one of a table, which answers for missing cells."""
        columns = columns or getattr(self, "_table_columns", None) or self._number_columns()
        if self._of_kinds:
            if density is None:
                density = self._column_density(cast(ColumnKernel, self._kernel), self._points)
            library = getattr(self, "_library", None)
            return TableDensity(density, columns, self._frame, self._bounds, self._constants, library, self._filled)
        factor = product_factor(self._kernel, "a question about some of the columns or about missing cells")
        centers = to_numpy(self.centers_)
        density = self._column_density(
            ColumnKernel(self._frame.dim, factor), self._frame.enter(self._bounds.enter(centers))
        )
        constants = np.where(self._frame.keep, np.nan, centers[0])
        return TableDensity(density, columns, self._frame, self._bounds, constants)

    def _column_density(self, kernel: ColumnKernel, points: np.ndarray) -> ColumnDensity:
        squared = self._density_type is RootDensity
        coefficients = np.asarray(to_numpy(self.dual_coef_))
        return ColumnDensity(kernel, points, coefficients, squared, memory_limit=self.memory_limit, n_jobs=self.n_jobs)

    def _by_columns(self, table: Table) -> bool:
        """Tell whether rows need the density of a table: for words, missing cells and kernels that are not radial."""
        return self._of_kinds or bool(table.missing.any()) or self._kernel.by_columns

    def _enter(self, X: Any) -> tuple[Table, np.ndarray, np.ndarray]:
        check_is_fitted(self, "log_normalizer_")
        if self._of_kinds:
            raise InputError(
                "this needs a density of complete rows of numbers, and the model was fitted to words or missing cells; fit it to "
                "complete rows of the numeric columns."
            )
        table, inside, z = super()._enter(X)
        if table.missing.any():
            raise InputError(
                "X has missing cells, for which this is not defined; drop those rows or fill them with impute."
            )
        return table, inside, z

    def _log_density(self, table: Table) -> np.ndarray:
        if not self._by_columns(table):
            return super()._log_density(table)
        return self._table_density().log_density(table.rows)

    def _gradient(self, table: Table) -> np.ndarray:
        if not self._by_columns(table):
            return super()._gradient(table)
        out = np.full((len(table.rows), self.n_features_in_), np.nan)
        density = self._table_density()
        out[:, np.sort(self._places(density.columns))] = density.gradient(table.rows)
        return out

    def hyvarinen_loss(self, X: Any) -> float:
        check_is_fitted(self, "log_normalizer_")
        if self._kernel.by_columns:
            raise InputError(
                f"{self._kernel!r} has no Hyvarinen loss here; fit complete rows of numbers with kernel='gaussian', or compare "
                "log densities with score."
            )
        return super().hyvarinen_loss(X)

    hyvarinen_loss.__doc__ = DensityEstimator.hyvarinen_loss.__doc__

    def marginal(self, columns: Any) -> TableDensity:
        """Return the density of some of the columns, exactly; the others are integrated and summed out.

        Parameters
        ----------
        columns : sequence of names or numbers
            The columns, in the order that tables of the new density have.

        Returns
        -------
        TableDensity
            With the methods ``score_samples``, ``grad_log_density``, ``impute``, ``impute_interval``, ``marginal``,
            ``conditional`` and ``sample``.

        Raises
        ------
        InputError
            If a column does not exist, was left out or is named twice, and for kernels that are no product over columns.
        """
        check_is_fitted(self, "log_normalizer_")
        return self._table_density().marginal(columns)

    def conditional(self, given: Mapping[Any, Any]) -> TableDensity:
        """Return the density of the other columns where some have given values, exactly.

        Parameters
        ----------
        given : mapping
            Values by name or number of a column: numbers, words or times.

        Returns
        -------
        TableDensity
            As for :meth:`marginal`.

        Raises
        ------
        InputError
            If a column does not exist, was constant or left out, a value is missing or on or beyond bounds, nothing is left, and
            for kernels that are no product over columns.
        """
        check_is_fitted(self, "log_normalizer_")
        return self._table_density().conditional(given)

    def impute(self, X: Any, strategy: str = "mean", random_state: Any = None) -> Any:
        """Fill missing cells from the conditional density given the known cells of the row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; cells may be missing.
        strategy : {"mean", "draw"}, default="mean"
            The conditional mean of numeric columns and the likeliest word, or a joint draw of all missing cells of a row. The
            mean of a column with bounds is that of 200 draws.
        random_state : int, RandomState or None
            Seed of draws.

        Returns
        -------
        data frame, tensor or ndarray
            `X` with its gaps filled, in its words and units; known cells are as they were. Columns that the fit left out keep
            their gaps. A row that was in the fit is not filled by the centre that was made of it.

        Raises
        ------
        InputError
            For a strategy that is none of these, rows on or beyond bounds, and kernels that are no product over columns.
        """
        table = self._checked(X)
        density = self._table_density()
        return density.write(X, table.rows, density.fill(table.rows, strategy, random_state), table.backend)

    def impute_interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Compute central intervals of missing numeric cells given the known cells of the row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; cells may be missing.
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples, n_features)
            Quantiles of (1 - level)/2 and (1 + level)/2; both the cell itself where it is known, and NaN in categorical and
            left-out columns. Of a time they are seconds since the first one of the fit.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1, for rows on or beyond bounds, and for kernels that are no product over columns.
        """
        table = self._checked(X)
        density = self._table_density()
        ends = []
        for end in density.intervals(table.rows, level):
            out = np.full((len(end), self.n_features_in_), np.nan)
            out[:, np.sort(self._places(density.columns))] = end
            ends.append(table.answer(out))
        return ends[0], ends[1]

    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        self.centers_ = np.empty((len(z), X.shape[1]))
        self.centers_[place[place >= 0]] = X[place >= 0] + 0.0  # -0.0 is 0.0
        self.weights_ = weights
        self.dual_coef_ = cast(ExpansionDensity, density).expansion.coefficients

    def _fitted(self) -> ExpansionDensity:
        z = Backend.of(self.dual_coef_).array(self._frame.enter(self._bounds.enter(to_numpy(self.centers_))))
        expansion = KernelExpansion(self._kernel, z, self.dual_coef_, self.memory_limit, self.n_jobs)
        return self._density_type(expansion)

    def level_set(self, mass: Any) -> Any:
        """Return the log-density threshold of the highest-density region that contains `mass` of the distribution of the rows.

        The region is ``score_samples(X) >= level_set(mass)``; its boundary is an isopleth. The threshold is a quantile of the log
        densities of held-out rows, in five folds that keep repeated rows together, at the fitted length scale. The log densities
        of the training rows themselves would be too large.

        Parameters
        ----------
        mass : float or array-like
            Probability of the region, between 0 and 1.

        Returns
        -------
        float or ndarray of the shape of `mass`
            Thresholds for :meth:`score_samples`; a tensor if `mass` is a tensor with at least one axis.

        Raises
        ------
        InputError
            If `mass` is not between 0 and 1.
        """
        check_is_fitted(self, "log_normalizer_")
        backend = Backend.of(mass, "mass")
        asked = np.asarray(on_host(mass, "mass"))
        if asked.dtype.kind not in "fi" or not ((asked > 0) & (asked < 1)).all():
            raise InputError(f"mass = {mass!r}: expected numbers between 0 and 1, both excluded.")
        if self._of_kinds:
            levels = self._levels_of_kinds(1.0 - asked)
            return backend.array(levels) if asked.ndim else float(levels)
        centers, weights = to_numpy(self.centers_), to_numpy(self.weights_)
        fit = self._fitting_at(Backend.of(self.dual_coef_))
        held_out = cross_fitted(
            self._frame.enter(self._bounds.enter(centers)),
            weights,
            lambda rows, weights, test: fit(self._kernel, rows, weights).log_density(test),
        )
        held_out += self._log_slope(centers) - self._frame.log_volume
        levels = weighted_quantile(held_out, weights, 1.0 - asked)
        return backend.array(levels) if asked.ndim else float(levels)

    def _levels_of_kinds(self, q: np.ndarray) -> np.ndarray:
        if not hasattr(self, "weights_"):
            raise InputError(
                "level_set compares complete rows, and the fit has rows with missing cells; fill them first."
            )
        weights = np.asarray(to_numpy(self.weights_))
        held_out = cross_fitted(
            self._points,
            weights,
            lambda rows, w, test: self._fit_columns(cast(ColumnKernel, self._kernel), rows, w).density.log_density(
                test
            ),
        )
        numbers = self._table_density()._rows(self._points)[:, : len(self._frame.keep)]
        held_out += self._log_slope(numbers) - self._frame.log_volume
        return weighted_quantile(held_out, weights, q)

    def sample(self, n_samples: int = 1, given: Mapping[Any, Any] | None = None, random_state: Any = None) -> Any:
        """Draw independent rows from the density exactly.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : mapping, optional
            Values that some columns have in every row, by name or number: draws from :meth:`conditional`.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features)
            Constant columns keep their value. If the fitted attributes are tensors, the result is a tensor on their device.
            After a fit to a frame with words, times or missing cells it is a frame of that library, without the columns that
            were left out; words are those of the training rows.

        Raises
        ------
        NotImplementedError
            For the square of a sum of kernels (SOSREP) other than the Gaussian, which is not a mixture that can be sampled
            directly.
        """
        check_is_fitted(self, "log_normalizer_")
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of rows, at least 1.")
        if self._of_kinds or given is not None or self._kernel.by_columns:
            drawn = self._table_density().sample(n_samples, given, random_state)
            return Backend.of(self.dual_coef_).array(drawn)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = self._fitted().sample(int(n_samples), rng)
        center = to_numpy(self.centers_[:1, ...])
        rows = self._bounds.leave(self._frame.leave(z, self._bounds.enter(center)[0]))
        rows[:, ~self._frame.keep] = center[:, ~self._frame.keep]
        return Backend.of(self.dual_coef_).array(rows)

    def plot(self, columns: Any = None, masses: Any = (0.5, 0.8, 0.95, 0.99), rows: Any = None, ax: Any = None) -> Any:
        """Plot the highest-density regions of given masses with :func:`isopleth.plotting.plot_density`.

        Parameters
        ----------
        columns : sequence of names or numbers, optional
            The columns to plot.
        masses : array-like, default=(0.5, 0.8, 0.95, 0.99)
            Masses of the regions, as for :meth:`level_set`.
        rows : array-like or data frame of shape (n_samples, n_features), optional
            Rows to plot as points.
        ax : matplotlib Axes, optional
            Axes to draw on; None makes a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        check_is_fitted(self, "log_normalizer_")
        if self._of_kinds:
            raise InputError("plot draws densities of complete numeric tables; fit the numeric columns without gaps.")
        from isopleth.plotting import plot_density  # imported late, since plotting imports the estimators

        return plot_density(self, columns=columns, masses=masses, rows=rows, ax=ax)


def cross_fitted(
    rows: np.ndarray, weights: np.ndarray, score: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return `score(train_rows, train_weights, test_rows)` of each distinct row, with the other folds as training rows."""
    # The order of distinct rows, and so the folds, does not depend on the order of the rows and columns of the table.
    fold = folds_of(len(rows), seed=0)
    out = np.empty(len(rows))
    for k in range(fold.max() + 1):
        test = fold == k
        out[test] = score(rows[~test], weights[~test], rows[test])
    return out


def weighted_quantile(values: np.ndarray, weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the smallest value whose cumulative share of the weight exceeds `q`."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    place = np.searchsorted(cumulative, q * (1 + 1e-12), side="right")
    return values[order][np.minimum(place, len(values) - 1)]
