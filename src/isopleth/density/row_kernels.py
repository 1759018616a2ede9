"""Base class of densities with one kernel at each row: tables with words and missing cells, level sets and draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.core.errors import InputError, whole_number
from isopleth.core.laws import weighted_quantile
from isopleth.core.parameters import on_host
from isopleth.core.rows import folds_of
from isopleth.core.scales import Rule, ScaledColumns
from isopleth.core.threads import ROWS_OF_ONE_THREAD, effective_n_jobs
from isopleth.density.base import DensityEstimator
from isopleth.density.column_density import ColumnDensity
from isopleth.density.column_scales import (
    LEAVE_ONE_OUT,
    TableRows,
    TableScales,
    donors_of,
    leave_one_out,
    product_factor,
    weights_of,
)
from isopleth.density.coordinates import ColumnCoordinates
from isopleth.density.frame_density import ExpansionDensity, FrameDensity, RootDensity
from isopleth.density.hot_deck import MOST_CENTERS, completed
from isopleth.density.recording import Recording
from isopleth.density.search import Search
from isopleth.density.stack import FrameOptions, StackDensity, frames_by_name, rescaled
from isopleth.density.stack_columns import StackColumns
from isopleth.density.table_density import TableDensity
from isopleth.expansion import KernelExpansion
from isopleth.frames import BoundedMap, Marginal
from isopleth.kernels import Kernel, get_kernel
from isopleth.kernels.product import ColumnKernel
from isopleth.operators.tiles import HOST_TILE, SCRATCH_TILES, scratch
from isopleth.sampling import Target
from isopleth.tables.checks import CheckedRows, check_mass, column_names, enter, given_names
from isopleth.tables.given import Given
from isopleth.tables.schema import Schema

# Kernels that are products over columns, for sentences.
_PRODUCTS = "kernel='gaussian' or ProductLaplacian()"
_KINDS = (
    "of a table with words or missing cells each column is mapped by itself, by frame='auto', 'marginal' or 'scale'"
)


class RowKernelDensity(DensityEstimator):
    """Base class of densities with one kernel at each distinct row.

    A subclass has the parameters `kernel`, `length_scale`, `bounds`, `memory_limit` and `n_jobs`, and defines
    :attr:`_density_type`, :meth:`_refuse` and :meth:`_fit_frame`.
    """

    # How the fitted sum of kernels defines a density.
    _density_type: ClassVar[type[ExpansionDensity]]

    categorical: Any
    category_scale: Any
    verbose: bool | int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DensityEstimator._parameter_constraints,
        "categorical": [None, str, "array-like"],
        "category_scale": [Real, str, "array-like"],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = self._takes_kinds()
        return tags

    @property
    def _squared(self) -> bool:
        """Tell whether the density is the square of the sum of kernels."""
        return self._density_type is RootDensity

    def _rules(self) -> Mapping[str, Rule]:
        factor = get_kernel(self.kernel).column_factor
        if factor is None:
            return super()._rules()
        return {**super()._rules(), LEAVE_ONE_OUT: partial(leave_one_out, factor, self._squared)}

    def _takes_kinds(self) -> bool:
        """Tell whether words and missing cells can be fitted, or, after a fit in other frames, asked about."""
        by_itself = self._only_scaled or self.frame == "auto" or self._marginal_of_kinds
        return self._is_product() and (by_itself or self._is_stack)

    @property
    def _marginal_of_kinds(self) -> bool:
        """Tell whether the numbers of a table with words or missing cells go through the marginal frame."""
        of_columns = np.ndim(self.length_scale.base if isinstance(self.length_scale, Search) else self.length_scale)
        return self.frame in ("auto", "marginal", Marginal()) and not of_columns

    def _is_product(self) -> bool:
        """Tell whether the kernel is a product over columns, which words and missing cells need."""
        try:
            return get_kernel(self.kernel).column_factor is not None
        except InputError:
            return False

    def _refuse_kinds(self) -> None:
        """Say which parameter words and missing cells need."""
        product_factor(get_kernel(self.kernel), "a fit with categories or missing cells")
        self._refuse_frame(_KINDS)

    @property
    def _instead(self) -> str:
        """Name the estimators that take missing cells."""
        return "frame='auto'" if self._is_product() and not self._takes_kinds() else _PRODUCTS

    @abstractmethod
    def _coefficients(self, kernel: Kernel, z: Array, shares: Array) -> tuple[Array, dict[str, Any]]:
        """Return the coefficients of the kernels at rows `z`, of weights of sum 1, and further fitted attributes by name."""

    def _fit_frame(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        coefficients, report = self._coefficients(kernel, z, weights / namespace(weights).sum(weights))
        expansion = KernelExpansion(kernel, z, coefficients, self.memory_limit, self.n_jobs)
        return self._density_type(expansion), report

    def _fit_columns(
        self, kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray
    ) -> tuple[ColumnDensity, dict[str, Any]]:
        """Fit a product kernel to rows of frame coordinates and codes, of which cells may be NaN."""
        # The squares of sums with gaps are sums over all pairs of centres.
        most = MOST_CENTERS if self._squared else len(z)
        centers, shares, filled = completed(kernel, z, weights, most)
        coefficients, report = self._coefficients(kernel, centers, shares)
        return self._column_density(kernel, centers, coefficients, filled), report

    # What kind of frame was fitted, for rows made like it. A fit to rows in parts sees no frame.
    _library: str | None = None

    def _forget(self) -> None:
        super()._forget()
        for name in (
            "schema_",
            "_points",
            "_filled",
            "_recording",
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
        given = Given.of(X)
        if not self._takes_kinds() and (self.categorical is not None or given.has_kinds):
            self._refuse_kinds()
        table = enter(self, given, sample_weight, reset=True, min_samples=2)
        self._library = given.library
        if table.columns is None and not table.missing.any():
            if self._is_product():
                self._recording = Recording.of_numbers(given.table, table.rows, table.weights)
            return self._fit_table(self._reduce(table))
        donors = self._fit_kinds(table)
        recording = Recording.of(given.table, table.columns or self._number_columns(), table.rows, table.weights)
        self._recording = recording if donors is None else recording.with_gaps(*donors)
        return table.finish(self)

    def _fit_kinds(self, table: CheckedRows) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Fit a table with words or missing cells; if there are gaps, return rows with filled ones."""
        if not self._marginal_of_kinds:
            self._refuse_frame(_KINDS)
        columns = table.columns or self._number_columns()
        all_bounds = BoundedMap.of(self.bounds, column_names(self), given_names(self))
        places = self._places(columns)
        numeric = places[: table.n_numeric]
        words = np.setdiff1d(np.arange(self.n_features_in_), numeric)
        if np.isfinite(all_bounds.low[words]).any() or np.isfinite(all_bounds.high[words]).any():
            raise InputError("bounds names a column that is no number; name numeric columns only.")
        length_scale = on_host(self.length_scale, "length_scale")
        if not isinstance(length_scale, (str, Real, Search)) and np.shape(length_scale) == (self.n_features_in_,):
            length_scale = np.asarray(length_scale, dtype=np.float64)[numeric]
        kernel, bounds = get_kernel(self.kernel), all_bounds.take(numeric)
        factor = product_factor(kernel, "a fit with categories or missing cells")
        rows = TableRows.of(table.rows, table.weights, columns, bounds, self._marginal_of_kinds)
        if kernel.dim is not None:
            kernel.bind(int(rows.keep.sum()))
        search = length_scale if isinstance(length_scale, Search) else None
        asked, what = (search.base, "base of the Search") if search else (length_scale, "length_scale")
        scales = TableScales.of(rows, factor, asked, what, self.category_scale, self._squared)
        times = 1.0
        if search is not None:
            self.search_path_ = scales.search(search, self._fit_columns, self.verbose)
            times = self.search_path_.best_factor
        product, z, _ = scales.at(times)
        density, report = self._fit_columns(product, z, rows.weights)
        complete = not np.isnan(z).any()
        self._set_fit(product, ScaledColumns(rows.keep, rows.shift, times * scales.scale), rows.map, report)
        self._points, self._filled, self._constants = density.centers, density.filled, rows.constants
        if complete:
            self.weights_ = weights_of(density.centers, z, rows.weights)
        self.dual_coef_ = density.coefficients
        self.length_scale_ = np.full(self.n_features_in_, np.nan)
        self.length_scale_[numeric] = self._frame.by_column(self._frame.scale)
        self.category_scale_ = np.full(self.n_features_in_, np.nan)
        self.category_scale_[places[table.n_numeric :]] = product.rho
        self.centers_ = np.full((len(self._points), self.n_features_in_), np.nan)
        self.centers_[:, places] = self._coordinates.leave(self._points)
        self.log_normalizer_ = density.log_normalizer + self._frame.log_volume
        return None if complete else donors_of(product, z, rows.weights, rows.keep)

    def _number_columns(self) -> Schema:
        """Return the columns of a table of numbers."""
        named = hasattr(self, "feature_names_in_")
        names = list(self.feature_names_in_) if named else list(range(self.n_features_in_))
        return Schema.of_numbers(names, named)

    def _places(self, columns: Schema) -> np.ndarray:
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

    def _table_density(self) -> TableDensity:
        """Return the density as one of a table, which answers for missing cells."""
        columns = getattr(self, "schema_", None) or self._number_columns()
        recording = getattr(self, "_recording", None)
        found: Any
        if self._of_kinds:
            kernel = cast(ColumnKernel, self._kernel)
            found = self._column_density(kernel, self._points, self.dual_coef_, self._filled)
            return TableDensity(found, columns, self._coordinates, self._library, recording)
        points = self._coordinates.enter(to_numpy(self.centers_))
        if self._is_stack:
            found = StackColumns.of(StackDensity(self.components_), points, self.memory_limit)
        else:
            factor = product_factor(self._kernel, "a question about some of the columns or about missing cells")
            found = self._column_density(ColumnKernel(self._frame.dim, factor), points, self.dual_coef_)
        return TableDensity(found, columns, self._coordinates, None, recording)

    @property
    def _coordinates(self) -> ColumnCoordinates:
        constants = self._constants if self._of_kinds else to_numpy(self.centers_[:1, ...])[0]
        return ColumnCoordinates(self._bounds, self._frame, constants)

    def _column_density(
        self, kernel: ColumnKernel, points: np.ndarray, coefficients: Array, filled: np.ndarray | None = None
    ) -> ColumnDensity:
        alpha = np.asarray(to_numpy(coefficients))
        return ColumnDensity(kernel, points, alpha, self._squared, None, filled, self.memory_limit, self.n_jobs)

    def _by_columns(self, table: CheckedRows) -> bool:
        """Tell whether rows need the density of a table: for words, missing cells and kernels that are not radial."""
        return self._of_kinds or bool(table.missing.any()) or self._kernel.by_columns

    def _log_density(self, table: CheckedRows) -> np.ndarray:
        if not self._by_columns(table):
            return super()._log_density(table)
        return self._table_density().log_density(table.rows)

    def _gradient(self, table: CheckedRows) -> np.ndarray:
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
            With the methods ``score_samples``, ``grad_log_density``, ``impute``, ``marginal``, ``conditional`` and ``sample``.

        Raises
        ------
        InputError
            If a column does not exist, was left out or is named twice, and for kernels that are no
            product over columns.
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
        strategy : {"mean", "regression", "draw"}, default="mean"
            The conditional mean of numeric columns and the likeliest word; the same word, and numbers by local linear regression
            with wider kernels, which is the mean in frames other than "scale"; or a joint draw of all missing cells of a row. The
            mean of a column with bounds, and of any in frames other than "scale", is that of 200 draws, or of 1,000 if the table
            of the fit had neither words nor missing cells.
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
        given = Given.of(X)
        table, density = self._checked(given), self._table_density()
        filled = density.fill(table.rows, strategy, random_state, self.verbose)
        return density.write(given.table, table.rows, filled, table.backend)

    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        self.centers_ = np.empty((len(z), X.shape[1]))
        self.centers_[place[place >= 0]] = X[place >= 0] + 0.0  # -0.0 is 0.0
        self.weights_ = weights
        if isinstance(density, StackDensity):
            kernels = [one.density for one in density.components if isinstance(one.density, ExpansionDensity)]
            found = [one.expansion.coefficients for one in kernels]
            self.dual_coef_ = namespace(found[0]).stack(found)
        else:
            self.dual_coef_ = cast(ExpansionDensity, density).expansion.coefficients

    def _parallel_copy(self, backend: Backend, rows: int, columns: int) -> tuple[Self, int]:
        if backend != NUMPY:  # one fit keeps a device busy, and also a library with threads of its own
            return self, 1
        # Several fits in parallel use more processors than threads within one fit, whose matrices are small.
        need = 8 * (rows**2 + 2 * scratch(HOST_TILE, columns, SCRATCH_TILES))
        small = rows <= ROWS_OF_ONE_THREAD
        workers = 1 if small else max(1, min(effective_n_jobs(self.n_jobs), int(self.memory_limit // need)))
        one_fit = copy(self)
        if workers > 1 or small:
            one_fit.n_jobs, one_fit.memory_limit = 1, self.memory_limit / workers
        return one_fit, workers

    def _fitted_scaled(self) -> ExpansionDensity:
        z = Backend.of(self.dual_coef_).array(self._coordinates.enter(to_numpy(self.centers_)))
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
        asked = check_mass(mass)
        if self._of_kinds and not hasattr(self, "weights_"):
            raise InputError(
                "level_set compares complete rows, and the fit has rows with missing cells; fill them first."
            )
        if self._of_kinds:
            rows, z = self._coordinates.leave(self._points), self._points
        else:
            rows = self._fitted_rows()
            z = self._coordinates.enter(rows)
        weights = np.asarray(to_numpy(self.weights_))
        held_out = cross_fitted(z, weights, lambda rows, w, test: self._refitted(rows, w).log_density(test))
        held_out += self._coordinates.log_slopes(rows)
        levels = weighted_quantile(held_out, weights, 1.0 - asked)
        return backend.array(levels) if asked.ndim else float(levels)

    def _refitted(self, z: np.ndarray, weights: np.ndarray, wider: float = 1.0) -> Any:
        """Fit rows in frame coordinates at the fitted length scales times a factor, which is 1 if columns are only scaled."""
        if self._of_kinds:
            return self._fit_columns(cast(ColumnKernel, self._kernel), z, weights)[0]
        backend = Backend.of(self.dual_coef_)
        if not self._is_stack:
            centers = self._refitted_rows(z, weights)
            return self._fit_frame(self._kernel, backend.array(centers), backend.array(weights))[0]
        frames = frames_by_name(self.frame, self._kernel.bound_dim)
        asked = self.length_scale.base if isinstance(self.length_scale, Search) else self.length_scale
        rule = self._rules()[asked if isinstance(asked, str) else "scott"]
        how = self._stack_rule(FrameOptions(frames, rule), self._kernel, backend, len(z))
        members = StackDensity(self.components_).members
        return how.fitted(members, z, weights, np.arange(len(z)), weights, wider)[0]

    def _fitted_rows(self) -> np.ndarray:
        """Return the distinct rows of the fit."""
        return to_numpy(self.centers_)

    def _refitted_rows(self, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the centres of a fit to the rows `z` in frame coordinates at the fitted length scale."""
        return z

    def sample(
        self,
        n_samples: int = 1,
        given: Mapping[Any, Any] | None = None,
        random_state: Any = None,
        as_recorded: bool | str = False,
    ) -> Any:
        """Draw independent rows from the density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : mapping, optional
            Values that some columns have in every row, by name or number: draws from :meth:`conditional`.
        random_state : int, RandomState or None
            Seed.
        as_recorded : bool or "complete", default=False
            Whether the rows look like those of the fit. By default they are exact draws from the density, without gaps.
            With True, every column has about the distribution that it has in the table: range, decimals, values that many rows
            share, and shares of words; of ten draws that one is likeliest to be kept which trees take for a row of the table.
            Rows come evenly from the rows of the table, about one from each of as many; they are not independent of each other.
            Cells are missing about as often and in the same patterns (with "complete" none is), and
            the result is a frame of the library of the training rows, with the types of their columns. This needs a kernel that
            is a product over columns.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features)
            Constant columns keep their value. If the fitted attributes are tensors, the result is a tensor on their device.
            After a fit to a frame with words, times or missing cells it is a frame of that library, without the columns that
            were left out; words are those of the training rows.

        Raises
        ------
        InputError
            If `n_samples` is not a whole number of at least 1, and for `given` as in :meth:`conditional`.

        Notes
        -----
        A mixture of kernels (:class:`~isopleth.KDE`) draws a centre, then a row from its kernel. The square of a sum of kernels
        (:class:`~isopleth.SOSREP`) draws a pair of centres for the Gaussian kernel, and is sampled by rejection for all others.
        """
        check_is_fitted(self, "log_normalizer_")
        n_samples = whole_number("n_samples", n_samples)
        if as_recorded:
            density = replace(self._table_density(), library=self._library)
            drawn = density.sample(n_samples, given, random_state, as_recorded, self.verbose)
            return Backend.of(self.dual_coef_).array(drawn)
        if self._of_kinds or given is not None or self._kernel.by_columns:
            drawn = self._table_density().sample(n_samples, given, random_state)
            return Backend.of(self.dual_coef_).array(drawn)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = cast(Any, self._fitted()).sample(n_samples, rng, self.verbose)
        return Backend.of(self.dual_coef_).array(self._coordinates.leave(z))

    def _sampling_target(self) -> Target:
        """Return what Markov chains draw from."""
        check_is_fitted(self, "log_normalizer_")
        if self._of_kinds or self._kernel.by_columns:
            raise InputError(
                "chains move in complete rows of numbers with kernels of distances; the sample method of this model draws "
                "exactly from it."
            )
        z, weights = self._coordinates.enter(to_numpy(self.centers_)), to_numpy(self.weights_)
        backend = Backend.of(self.dual_coef_)

        def wider(factor: float) -> FrameDensity:
            if self._is_stack:
                return self._refitted(z, weights, factor)
            density = self._fit_frame(self._kernel, backend.array(z / factor), backend.array(weights))[0]
            return rescaled(density, factor, z.shape[1])

        return Target(
            self._fitted().evaluate,
            z,
            weights,
            lambda factor: Target(wider(factor).evaluate, z, weights),
            self._coordinates.leave,
        )

    def plot(self, columns: Any = None, masses: Any = (0.5, 0.8, 0.95, 0.99), rows: Any = None, ax: Any = None) -> Any:
        """Draw one or two columns: the curve and the regions of highest density below it, or the isopleths of these regions.

        If the density has further columns, a clone of the estimator, with the settings of the chosen columns, is fitted to these
        columns of the centres, with the weights of the density, and drawn.

        Parameters
        ----------
        columns : str, int or sequence of one or two of these, optional
            Names or numbers of the columns to draw, the horizontal one first. None is all columns of a density that has one or
            two.
        masses : array-like, default=(0.5, 0.8, 0.95, 0.99)
            Masses of the regions, between 0 and 1, as for :meth:`level_set`.
        rows : array-like or data frame of shape (n_samples, n_features), optional
            Rows to draw as dots. Rows far beyond the centres are drawn at the edge of the frame. If there are more than 5,000
            rows, 5,000 of them are drawn, chosen at random. A note in the picture says so.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. None makes a figure without pyplot, so that no window opens and no display is needed.

        Returns
        -------
        matplotlib.axes.Axes
            The figure is ``ax.figure``. Where pyplot shall show the figure, pass `ax` from ``plt.subplots()``.

        Raises
        ------
        InputError
            If `columns` names none, a constant one or more than two, or is None where there are more; if `masses` are not
            between 0 and 1; if `rows` cannot be used.
        MissingExtraError
            If matplotlib is not installed.
        """
        check_is_fitted(self, "log_normalizer_")
        if self._of_kinds:
            raise InputError("plot draws densities of complete numeric tables; fit the numeric columns without gaps.")
        from isopleth.density.figures import plot_density

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
