"""Base class of densities with one kernel at each row: tables with words and missing cells, level sets and draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

from isopleth.core.arrays import Backend
from isopleth.core.errors import InputError
from isopleth.core.fitted_attributes import FromFit
from isopleth.core.laws import weighted_quantile
from isopleth.density.base import DensityEstimator
from isopleth.density.boxes import BoxProbability
from isopleth.density.fitted import Fitted
from isopleth.density.fitting import fit_cells
from isopleth.density.frame_and_scale import Asked
from isopleth.density.interval_sums import with_points
from isopleth.density.solver import RowSolver
from isopleth.density.table_density import TableDensity
from isopleth.tables.checks import CheckedRows, check_mass, enter
from isopleth.tables.empty_rows import without_empty_rows
from isopleth.tables.given import Given
from isopleth.tables.schema import Schema
from isopleth.tables.typed_cells import types_of


class RowKernelDensity(DensityEstimator):
    """Base class of densities with one kernel at each distinct row.

    A subclass has the parameters of :class:`DensityEstimator` and those below, and defines :meth:`_solver`.
    """

    categorical: Any
    category_scale: Any

    centers_, weights_, category_scale_ = FromFit(), FromFit(), FromFit()
    dual_coef_ = FromFit("coefficients")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DensityEstimator._parameter_constraints,
        "categorical": [None, str, "array-like"],
        "category_scale": [Real, str, "array-like"],
    }

    @abstractmethod
    def _solver(self) -> RowSolver:
        """Return how kernels at rows become a density."""

    _use_of_limits = "likelihood"

    # Parameter that needs complete rows of numbers, where it is given.
    _needs_complete_rows: ClassVar[str | None] = None

    @property
    def _asked(self) -> Asked:
        name = self._needs_complete_rows
        given = name is not None and getattr(self, name) is not None
        return Asked(self.frame, self.length_scale, self.kernel, name if given else None)

    @property
    def _instead(self) -> str:
        """Parameter, and its value, with which missing cells could be fitted, for sentences."""
        return self._asked.instead

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        asked, fitted = self._asked, "_fitted" in vars(self)
        # A density of complete rows answers for missing cells, also in frames that cannot be fitted to them.
        tags.input_tags.allow_nan = tags.input_tags.categorical = asked.answers_cells if fitted else asked.cells
        return tags

    # Library and types of the columns of the frame that was fitted, for rows made like it. A fit to rows in parts sees no frame.
    _frame_of_fit: tuple[str | None, dict[str, str]] = (None, {})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; computed in float64. Frames may have columns of words and times, and cells may be missing (NaN, None, or an
            empty text) or say a limit; arrays hold numbers, except in columns that `categorical` names. The fit to a tensor, or
            to another array of the array API, runs on its device, and the fitted attributes are arrays there.
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
        if self.categorical is not None or given.has_kinds:
            self._asked.check_cells()
        entered = without_empty_rows(self, given, enter(self, given, sample_weight, reset=True, min_samples=2))
        table, complete = with_points(entered), entered.columns is None
        self._frame_of_fit = given.library, types_of(given.table)
        if len(entered.limits) and entered.columns is not None:  # numbers of which some are known as intervals
            complete = entered.columns.only_numbers and table.rows.shape[1] == self.n_features_in_
        if complete and not table.missing.any():
            return self._fit_numbers(self._reduce(table))
        self._fitted = fit_cells(self, self._asked, self._solver(), table, table.columns or self._columns)
        return self

    def _reduce(self, table: CheckedRows) -> CheckedRows:
        """Return the rows and weights to fit; a subclass may select some of them."""
        return table

    @property
    def _columns(self) -> Schema:
        """The columns of the table of the fit."""
        known: Schema | None = getattr(self, "schema_", None)
        if known is not None:
            return known
        named = hasattr(self, "feature_names_in_")
        names = list(self.feature_names_in_) if named else list(range(self.n_features_in_))
        return Schema.of_numbers(names, named)

    def _table_density(self) -> TableDensity:
        """Return the density as one of a table, in the words of the table."""
        library = None if getattr(self, "schema_", None) is None else self._frame_of_fit[0]  # numbers alone are arrays
        return TableDensity(self._value(), self._columns, library, self._frame_of_fit)

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
        return self._table_density().conditional(given)

    def probability(self, box: Mapping[Any, Any]) -> BoxProbability:
        """Return the probability of a box: some columns within limits, and with some words; the others may have any cell.

        Parameters
        ----------
        box : mapping
            By name or number of a column a pair of limits, of which None is no limit, or a word or several, as in
            ``{"age": (30, 40), "plan": {"basic", "plus"}}``.

        Returns
        -------
        BoxProbability
            The `probability` and its `standard_error`. Along one or two columns of numbers the density is integrated, and the
            error is 0; with three and more it is that of 50,000 draws, the same ones at every call.

        Raises
        ------
        InputError
            If a column does not exist, limits are no pair, a word is in no training row, and for kernels that are no product
            over columns.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import SOSREP
        >>> rows = np.random.default_rng(0).normal(size=(500, 2))
        >>> found = SOSREP().fit(rows).probability({0: (-1.0, 1.0), 1: (0.0, None)})
        >>> 0.31 < found.probability < 0.37, found.standard_error
        (True, 0.0)
        """
        return self._table_density().probability(box)

    def impute(self, X: Any, strategy: str = "mean", random_state: Any = None) -> Any:
        """Fill missing cells from the conditional density given the known cells of the row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; cells may be missing.
        strategy : {"mean", "draw"}, default="mean"
            The conditional mean of numeric columns and the likeliest word, or a joint draw of all missing cells of a row. The
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
        filled = density.fill(table.rows, strategy, random_state, self.verbose, limits=table.limits)
        return density.write(given.table, table.rows, filled, table.backend)

    def level_set(self, mass: Any) -> Any:
        """Return the log-density threshold of the highest-density region that contains `mass` of the distribution of the rows.

        The region is ``score_samples(X) >= level_set(mass)``; its boundary is an isopleth. The threshold is a quantile of the log
        densities of held-out rows, in five folds that keep repeated rows together, at the fitted length scale. The log densities
        of the training rows themselves would be too large. The first call computes them, later ones use them again.

        Parameters
        ----------
        mass : float or array-like
            Probability of the region, between 0 and 1; an array of them gives the threshold of each.

        Returns
        -------
        float or ndarray of the shape of `mass`
            Thresholds for :meth:`score_samples`; a tensor if `mass` is a tensor with at least one axis.

        Raises
        ------
        InputError
            If `mass` is not between 0 and 1.
        """
        fitted = self._value()
        backend = Backend.of(mass, "mass")
        asked = check_mass(mass)
        if fitted.weights is None or fitted.points is None or fitted.rows is None:
            raise InputError(
                "level_set compares complete rows, and the fit has rows with missing cells; fill them first."
            )
        levels = weighted_quantile(fitted.held_out, fitted.weights, 1.0 - asked)
        return backend.array(levels) if asked.ndim else float(levels)

    def sample(
        self,
        n_samples: int = 1,
        given: Mapping[Any, Any] | None = None,
        random_state: Any = None,
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
        drawn = self._table_density().sample(n_samples, given, random_state, self.verbose)
        return self._fitted.backend.array(drawn)

    def _sampling_target(self) -> Fitted:
        """Return what Markov chains draw from."""
        return self._value()

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
        self._value()
        from isopleth.density.figures import plot_density

        return plot_density(self, columns=columns, masses=masses, rows=rows, ax=ax)
