"""A transformer that fills missing cells by the laws of their columns given the known cells of the row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from isopleth.conditional.cell_law import CellLaw, Cut, means, medians
from isopleth.conditional.exact import ExactCells
from isopleth.conditional.fit_rows import MOST_ROWS, drawn_for_columns
from isopleth.conditional.forest import Growth
from isopleth.core.budget import Budget
from isopleth.core.errors import Hint, probability, warn_about_answer
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.interval_laws import IntervalPoints, is_positive
from isopleth.core.laws import interpolated
from isopleth.core.progress import Progress, ReportsProgress
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.tables.checks import CheckedRows, TakesKinds, enter, used_names
from isopleth.tables.coded_cells import displayed_cells, measured_table
from isopleth.tables.given import Given
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema, in_table_order
from isopleth.tables.typed_cells import write_cells

# Ends of the middle nine tenths of a law, outside which a mean is decided by few far values.
_MIDDLE = np.array([0.05, 0.95])


class DensityImputer(ReportsProgress, TakesKinds, TransformerMixin, BaseEstimator):
    """Fill missing cells of a table from the law of their column given the known cells of the row.

    The law of each column that has gaps is that of :class:`~isopleth.ConditionalDensity`, fitted to the rows whose cell is known.
    Gaps of the other columns stay gaps, so no cell is filled from a filled one. Filled numbers stay between the least and
    the largest known cell, unless a line leads beyond them, and keep the sign that all known cells have. Sums and products of
    columns that hold in all known rows hold in filled rows.

    A cell that says a limit, such as <0.5, is filled by the law given that the number is inside the limit; the law is fitted to
    its interval, whose probability is the likelihood of the cell.

    Parameters
    ----------
    strategy : {"mean", "median", "draw"}, default="mean"
        What fills a number or time. The first two take the likeliest word; draws of several cells of a row are made one after
        another, each given the ones before.
    n_estimators : int, default=60
        Number of trees for each column.
    max_samples : int, default=5000
        Most rows that the law of a column is fitted to, of those whose cell is known. Of more, so many are drawn by what they
        hold, whatever their order; cells are filled in all rows.
    limits : {"fill", "keep"}, default="fill"
        Whether cells that say a limit get a number inside it, or stay as they are.
    random_state : int, RandomState or None, default=None
        Seed of draws. Trees have a seed of their own.
    n_jobs : int or None, default=-1
        Number of threads.
    verbose : bool or int, default=False
        Whether to show progress on standard error.

    Attributes
    ----------
    n_samples_fit_ : int
        Most rows that the law of one of the columns is fitted to.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had names.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import DensityImputer
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> rows = np.hstack([x, 2 * x])
    >>> rows[0, 1] = np.nan
    >>> filled = DensityImputer().fit_transform(rows)
    >>> bool(abs(filled[0, 1] - 2 * x[0, 0]) < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "strategy": [StrOptions({"mean", "median", "draw"})],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
        "limits": [StrOptions({"fill", "keep"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _use_of_limits = "likelihood"

    def __init__(
        self,
        strategy: str = "mean",
        n_estimators: int = 60,
        max_samples: int = MOST_ROWS,
        limits: str = "fill",
        random_state: Any = None,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.strategy = strategy
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.limits = limits
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the laws of the columns that have gaps; those of others are fitted when a gap of them is to be filled.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; cells may be missing.
        y : ignored
            Present for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If X cannot be used.
        """
        self._validate_params()
        table = enter(self, X, sample_weight, reset=True, missing=True)
        used = table.weights > 0.0
        every = used.all()
        rows, limits = (table.rows, table.limits) if every else (table.rows[used], table.limits.take(used))
        self._n_numeric, self._kinds = table.n_numeric, _encoded_columns(table)
        ends = [limits.ends(rows[:, j], j) for j in range(self._n_numeric)]
        self._ranges = [KnownRange.of(*end, self._kinds[j].origin) for j, end in enumerate(ends)]
        self._exact = ExactCells.of(rows[:, : self._n_numeric])
        gaps = np.isnan(rows)
        lost = np.flatnonzero(gaps.any(axis=0))
        gaps[:, limits.columns] &= ~limits.mask
        kept, self._places = drawn_for_columns(rows, ~gaps, self.max_samples)
        self._rows, self._weights, self._intervals = rows[kept], table.weights[used][kept], limits.take(kept)
        self._points = IntervalPoints.of(self._rows, self._intervals, self._weights)
        self._inputs = self._points(self._rows, self._intervals)
        self.n_samples_fit_ = max(map(len, self._places))
        self._laws: dict[str, CellLaw | None] = {}
        self._prepare(lost)
        return self

    def transform(self, X: Any) -> Any:
        """Return a copy of the table with its missing cells filled.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        data frame, tensor or ndarray of shape (n_samples, n_features)
            Known cells are as they were; columns that the fit left out, or of which no cell was known, keep their gaps. A column
            of intervals is one of numbers where all its limits are filled.

        Raises
        ------
        InputError
            If X lacks columns of the fit.
        """
        check_is_fitted(self, "_rows")
        given = Given.of(X)  # a stream can be read once
        table = enter(self, given, missing=True)
        filled = self._filled(table.rows, table.limits)
        gaps = np.isnan(table.rows) & ~np.isnan(filled)
        if self.limits == "keep":
            gaps[:, table.limits.columns] &= ~table.limits.mask
        order = table.order
        out = write_cells(
            given.table, table_schema(self, table), in_table_order(filled, order), in_table_order(gaps, order)
        )
        return table.backend.array(out)

    def impute_interval(self, X: Any, confidence_level: float = 0.9) -> tuple[Any, Any]:
        """Return intervals that hold missing numbers with a probability, given the known cells of their rows.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows with the columns of the fit.
        confidence_level : float, default=0.9
            Probability of an interval.

        Returns
        -------
        lower, upper : data frames or ndarrays of shape (n_samples, n_features)
            Ends of the intervals; both the cell itself where it is known, and inside the limit where a cell says one. Frames of
            the library of a frame `X` have the columns that are used, times as times, and nothing in columns of words; arrays
            have NaN there.

        Raises
        ------
        InputError
            If `confidence_level` is not between 0 and 1, or X lacks columns of the fit.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import DensityImputer
        >>> x = np.random.default_rng(0).normal(size=(200, 1))
        >>> rows = np.hstack([x, 2 * x])
        >>> rows[0, 1] = np.nan
        >>> lower, upper = DensityImputer().fit(rows).impute_interval(rows)
        >>> bool(lower[0, 1] < 2 * x[0, 0] < upper[0, 1])
        True
        """
        probability("confidence_level", confidence_level)
        check_is_fitted(self, "_rows")
        given = Given.of(X)
        table = enter(self, given, missing=True)
        levels = np.array([0.5 - 0.5 * confidence_level, 0.5 + 0.5 * confidence_level])
        ends = np.stack([table.rows, table.rows])
        inputs = self._points(table.rows, table.limits)
        for j, rows, law, tick in self._gaps(table.rows):
            if j < self._n_numeric:
                cut = self._cut(j, law, table.rows, table.limits, rows)

                def ask(y: np.ndarray, F: np.ndarray, start: int, cut: Any = cut) -> np.ndarray:
                    y, F = cut(y, F, start)
                    return interpolated(np.tile(levels, (len(y), 1)), F, y)

                ends[:, rows, j] = law.curves_from(np.delete(inputs[rows], j, axis=1), ask, tick).T
        for end in ends:
            self._exact.complete(table.rows[:, : self._n_numeric], end)
            _clip_to_limits(end, table.limits)
        ends[:, :, self._n_numeric :] = np.nan
        lower, upper = (
            measured_table(given, table_schema(self, table), in_table_order(end, table.order), table.backend)
            for end in ends
        )
        return lower, upper

    def impute_probability(self, X: Any) -> Any:
        """Return the probability of the likeliest word of each missing word, given the known cells of its row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        data frame or ndarray of shape (n_samples, n_features)
            NaN in cells that are known and in columns of numbers and times. Frames have the columns that are used.

        Raises
        ------
        InputError
            If X lacks columns of the fit.

        Examples
        --------
        >>> import pandas as pd
        >>> from isopleth import DensityImputer
        >>> sizes = [*[1.2, 1.5, 1.9, 2.3] * 5, *[8.1, 8.7, 9.2, 9.9] * 5, 9.0]
        >>> table = pd.DataFrame({"size": sizes, "kind": [*["small"] * 20, *["large"] * 20, None]})
        >>> bool(DensityImputer().fit(table).impute_probability(table)["kind"].iloc[40] > 0.8)
        True
        """
        check_is_fitted(self, "_rows")
        given = Given.of(X)
        table = enter(self, given, missing=True)
        out, inputs = np.full(table.rows.shape, np.nan), self._points(table.rows, table.limits)
        lost = np.isnan(table.rows)
        lost[:, : self._n_numeric] = False
        for j, rows, law, tick in self._gaps(np.where(lost, np.nan, 0.0)):
            out[rows, j] = law.probabilities(np.delete(inputs[rows], j, axis=1), tick).max(axis=1)
        out = in_table_order(out, table.order)
        if (frame := given.frame) is None:
            return table.backend.array(out)
        names = map(str, table_schema(self, table).names)
        return nw.from_dict(dict(zip(names, out.T, strict=True)), backend=frame.implementation).to_native()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which are those of the fit.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns, if the fit was to an array.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "_rows")
        return np.asarray(_check_feature_names_in(self, input_features), dtype=object)

    # ---- inside --------------------------------------------------------------------------------------------------------------

    def _prepare(self, columns: np.ndarray) -> None:
        """Fit the laws of columns that have none yet."""
        columns = np.array([j for j in columns if str(j) not in self._laws], dtype=np.intp)
        with Progress("laws of columns", len(columns) * self.n_estimators, self.verbose) as tick:
            for j in columns:
                low, high = self._intervals.ends(self._rows[:, j], j)
                known = self._places[j]
                self._laws[str(j)] = None
                if len(known):
                    weights = self._weights[known]
                    if len(known) == 1:
                        # A law is judged by rows left out one at a time, and of one row none would be left.
                        known, weights = np.repeat(known, 2), np.ones(2)
                    others = np.delete(self._inputs[known], j, axis=1)
                    self._laws[str(j)] = CellLaw.fit(
                        others,
                        self._n_numeric - (j < self._n_numeric),
                        self._kinds[j],
                        low[known],
                        weights,
                        high[known],
                        forests=1,
                        growth=Growth(self.n_estimators, budget=Budget.of(self), tick=tick),
                    )

    def _gaps(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, CellLaw, Callable[[int], None]]]:
        """Yield the columns with gaps, the rows where they are, the laws of the columns, and what counts filled cells."""
        columns = np.flatnonzero(np.isnan(rows).any(axis=0))
        self._prepare(columns)
        with Progress("filling of gaps", int(np.isnan(rows).sum()), self.verbose) as tick:
            for j in columns.tolist():
                law, where = self._laws[str(j)], np.flatnonzero(np.isnan(rows[:, j]))
                if law is not None:
                    yield j, where, law, tick
                else:
                    tick(len(where))

    def _filled(self, rows: np.ndarray, limits: IntervalCells) -> np.ndarray:
        """Return encoded rows with their gaps filled."""
        out, given = rows.copy(), self._points(rows, limits).copy()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        for j, where, law, tick in self._gaps(rows):
            others = np.delete(given[where], j, axis=1)
            u = rng.random(len(where)) if self.strategy == "draw" else None
            if law.is_words:
                out[where, j] = self._words(law.probabilities(others, tick), u)
                continue
            cut = self._cut(j, law, rows, limits, where)
            if self.strategy != "mean":
                out[where, j] = self._numbers(law, others, u, cut, tick)
            else:
                out[where, j], far = self._means(law, others, cut, tick)
                if far.any():
                    self._warn_of_means(j, far)
            if u is not None:
                given[where, j] = out[where, j]
        self._exact.complete(rows[:, : self._n_numeric], out)
        _clip_to_limits(out, limits)
        return out

    def _words(self, P: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """Return the code of the likeliest word of each row, or of the one drawn by u."""
        if u is None:
            return np.asarray(P.argmax(axis=1), dtype=np.float64)
        return np.minimum((np.cumsum(P, axis=1) < u[:, None]).sum(axis=1), P.shape[1] - 1).astype(np.float64)

    def _numbers(
        self, law: CellLaw, others: np.ndarray, u: np.ndarray | None, cut: Any, tick: Callable[[int], None]
    ) -> np.ndarray:
        """Return the median of each row, or the quantile drawn by u."""

        def ask(y: np.ndarray, F: np.ndarray, start: int) -> np.ndarray:
            y, F = cut(y, F, start)
            return medians(y, F) if u is None else interpolated(u[start : start + len(y), None], F, y)

        return law.curves_from(others, ask, tick)[:, 0]

    def _means(
        self, law: CellLaw, others: np.ndarray, cut: Any, tick: Callable[[int], None]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of each row, and which of them are outside the middle nine tenths of their law."""

        def ask(y: np.ndarray, F: np.ndarray, start: int) -> np.ndarray:
            y, F = cut(y, F, start)
            return np.hstack([means(y, F), interpolated(np.tile(_MIDDLE, (len(y), 1)), F, y)])

        mean, low, high = law.curves_from(others, ask, tick).T
        return mean, (mean < low) | (mean > high)

    def _warn_of_means(self, j: int, far: np.ndarray) -> None:
        """Warn of a column whose means are decided by a few cells: a gross error among its known cells ruins all of them."""
        known = self._rows[:, j][~np.isnan(self._rows[:, j])]
        kind = self._kinds[j]
        farthest = displayed_cells(kind, known[[np.argmax(np.abs(known - np.median(known)))]])[0]
        told = f"{farthest:.6g}" if kind.kind == "numeric" else farthest
        warn_about_answer(
            f"{far.sum():,} of the {len(far):,} means that fill {{column}} are outside the middle 90 % of what is likely there, "
            f"since a few cells far from all others decide them, such as {told}",
            column=str(kind.name),
            hint=Hint("if these are errors, mend them first, or fill with {strategy}", strategy="median"),
        )

    def _cut(self, j: int, law: CellLaw, rows: np.ndarray, limits: IntervalCells, where: np.ndarray) -> Any:
        """Return a function that keeps the laws of cells inside what their column can be, and inside their own limits."""
        least, most = self._limits(j, law)
        low, high = (np.clip(end[where], least, most) for end in limits.ends(rows[:, j], j))
        some, inputs = ~np.isnan(high), self._points(rows, limits)[where]
        asked = np.flatnonzero(some)
        others, point = np.delete(inputs[asked], j, axis=1), np.clip(inputs[asked, j], low[asked], high[asked])
        cuts = Cut.of(law, others, low[asked], high[asked], point) if len(asked) else None

        def cut(y: np.ndarray, F: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
            y = np.clip(y, least, most)
            here = np.flatnonzero((asked >= start) & (asked < start + len(y)))
            if cuts is not None and len(here):
                y, F, to = y.copy(), F.copy(), asked[here] - start
                y[to], F[to] = cuts.take(here)(y[to], F[to])
            return y, F

        return cut

    def _limits(self, j: int, law: CellLaw) -> tuple[float, float]:
        """Return what filled cells of a column stay between."""
        return self._ranges[j].reached(law.follows_line)


def finer_columns(imputer: DensityImputer) -> frozenset[str]:
    """Return the columns that are filled between the numbers in which they are recorded."""
    laws = imputer._laws.values()
    return frozenset(str(law.column.name) for law in laws if law is not None and not law.is_words and law.is_finer)


@dataclass(frozen=True)
class KnownRange:
    """Range of the known cells of a column of numbers, and where a law leads beyond it."""

    least: float
    most: float
    below: float  # end of what cells can be where a limit goes down to minus infinity, NaN where none does
    above: float
    origin: float  # of a time: encoded cells are relative to it

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray, origin: float) -> Self:
        """Look at the ends of the cells of a column of the fit, NaN where one is missing."""
        low, high = (end[~np.isnan(end)] + origin for end in (low, high))
        ends = np.concatenate([low, high])
        finite = ends[np.isfinite(ends)]
        below, above = np.nan, np.nan
        if np.isinf(low).any():
            below = 0.0 if is_positive(low, high) else -np.inf
        if np.isinf(high).any():
            above = 0.0 if is_positive(-high, -low) else np.inf
        return cls(finite.min(initial=np.inf), finite.max(initial=-np.inf), below, above, origin)

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest value that rows speak of, without the origin: infinite where a limit is open."""
        low, high = (
            end if np.isnan(open_) else open_ for end, open_ in ((self.least, self.below), (self.most, self.above))
        )
        return low - self.origin, high - self.origin

    def reached(self, beyond: bool) -> tuple[float, float]:
        """Return what filled cells stay between, where a line leads `beyond` the known ones or not.

        It does not lead to 0 where all have one sign and some are near it.
        """
        reach = self.most - self.least
        bottom = self.least if not beyond or 0.0 <= self.least < reach else -np.inf
        top = self.most if not beyond or -reach < self.most <= 0.0 else np.inf
        bottom, top = (end if np.isnan(open_) else open_ for end, open_ in ((bottom, self.below), (top, self.above)))
        return bottom - self.origin, top - self.origin


def _clip_to_limits(rows: np.ndarray, limits: IntervalCells) -> None:
    """Keep cells that say a limit inside it."""
    for j in limits.columns.tolist():
        where, low, high = limits.of(j)
        rows[where, j] = np.clip(rows[where, j], low, high)


def _encoded_columns(table: CheckedRows) -> list[Column]:
    """Return the kind of each column of encoded rows, numbers first."""
    if table.columns is None:
        return [Column(j, "numeric") for j in range(table.rows.shape[1])]
    return [table.columns.columns[place] for place in table.order]


def table_schema(estimator: BaseEstimator, table: CheckedRows) -> Schema:
    """Return the columns of the table; those of complete numbers have no schema."""
    if table.columns is not None:
        return table.columns
    named = hasattr(estimator, "feature_names_in_")
    names: list[Any] = list(used_names(estimator, None)) if named else list(range(table.rows.shape[1]))
    return Schema.of_numbers(names, named)
