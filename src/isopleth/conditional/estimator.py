"""Estimator of the law of a cell given the other cells of its row."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.conditional.cell_law import CellLaw, means, medians, modes
from isopleth.conditional.forest import Growth
from isopleth.conditional.target import classes, decoded_target, target_cells, target_column, target_ends
from isopleth.core.arrays import NUMPY, Backend
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, probability, whole_number
from isopleth.core.interval_laws import IntervalPoints
from isopleth.core.laws import interpolated
from isopleth.core.progress import Progress, ReportsProgress
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.tables.checks import TakesKinds, enter

# Least half width, in deviations, of the cell over which a density is averaged.
_LEAST_CELL = 0.0025


class ConditionalDensity(ReportsProgress, TakesKinds, BaseEstimator):
    r"""Law of one column given the others: :math:`p(y \mid x)` of a number, a time, a word or a truth value.

    A number has the law

    .. math:: F(y \mid x) = B\Big(\sum_k \pi_k \sum_i w_{ki}(x)\, \Phi\Big(\frac{S_k(y) - m_k(x) - r_{ki}}{h_k}\Big)\Big).

    Nine laws with six widths h each are pooled. S is the identity or the marginal frame of the target, and m a trend: none, a
    ridge regression, or a blend of the mean of a forest with a kernel ridge regression. :math:`r_i` is the residual of row i from
    the trend that does not know row i, and w are equal weights or those of a random forest [1]_ or their squares. The weights
    :math:`\pi` maximise the likelihood of the recorded cells of the fit, each predicted without its row: by trees whose bag it is
    not in, by lines and residuals without it. The pool is calibrated by the distribution function B of a beta distribution [2]_
    on the same cells. A word has a pool of frequencies, shares of the forest and logistic regressions.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees of a forest.
    forests : {1, 2, "auto"}, default="auto"
        Whether the residuals of the line have a forest of their own. "auto": up to 2,000 distinct rows.
    point : {"mean", "median", "mode"}, default="mean"
        What :meth:`predict` returns for a number or time; for words it is always the likeliest one.
    random_state : int, RandomState instance or None, default=None
        Seed of bags and columns of the trees. Bags are drawn by the contents of rows, not by their place.
    n_jobs : int or None, default=-1
        Number of threads.
    verbose : bool or int, default=False
        Whether to show progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Words of the target in the order of :meth:`probabilities`; absent for numbers and times.
    step_ : float
        Step in which a number or time is recorded; 0 for none.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had names.

    Notes
    -----
    Laws of different columns are fitted one by one: no joint density has them all. Use ``conditional`` of
    :class:`~isopleth.SOSREP` for questions whose answers must agree with each other. Answers are a step function of a number in X
    as far as trees give weights. Beyond the range of the line, laws without a trend lose weight by :math:`e^{-t}`, t being the
    distance in deviations of the line. Intervals are calibrated on rows like those of the fit, in the mean over these rows.

    Where a column of numbers has 3 to 40 levels, and three rows or more at each in the mean, a row between two levels is answered
    by laws that whole levels have judged, each left out in turn. They are fitted when the first such row is asked for, to 2,000
    rows at most. So is a row whose target has 4 to 15 levels on a scale, five rows or more at each, such as the concentrations
    of standards: its law is between them, with half of the weight at a level within reach.

    Equal rows of X and y count as one row with their summed weight.

    References
    ----------
    .. [1] N. Meinshausen, "Quantile Regression Forests", Journal of Machine Learning Research 7, 2006.
    .. [2] T. Gneiting, R. Ranjan, "Combining predictive distributions", Electronic Journal of Statistics 7, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import ConditionalDensity
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 3, size=(300, 1))
    >>> y = np.sin(x[:, 0]) + 0.1 * x[:, 0] * rng.normal(size=300)  # the noise grows with x
    >>> model = ConditionalDensity(random_state=0).fit(x, y)
    >>> low, high = model.predict_interval([[0.5], [2.5]])
    >>> bool(high[0] - low[0] < high[1] - low[1])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "forests": [Interval(Integral, 1, 2, closed="both"), StrOptions({"auto"})],
        "point": [StrOptions({"mean", "median", "mode"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _uses_constants = False
    _use_of_limits = "likelihood"

    def __init__(
        self,
        n_estimators: int = 100,
        forests: int | str = "auto",
        point: str = "mean",
        random_state: Any = None,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.n_estimators = n_estimators
        self.forests = forests
        self.point = point
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the law of y given X.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            The other columns: numbers, words, truth values, times; cells may be missing.
        y : array-like or series of shape (n_samples,)
            Numbers, words, truth values or times, none of them missing.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights; a weight of 2 counts as two equal rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If X or y cannot be used, if a value of y is missing, or if fewer than two rows have a weight.
        """
        self._validate_params()
        table = enter(self, X, sample_weight, reset=True, min_samples=2, missing=True)
        cells = target_cells(y, len(table.rows))
        column = target_column(cells)
        target, upper = target_ends(cells, column)
        self._points = IntervalPoints.of(table.rows, table.limits, table.weights)
        rows = self._points(table.rows, table.limits)
        if len(np.unique(rows[table.weights > 0], axis=0)) < 2 and len(np.unique(target)) < 2:
            raise InputError(
                "all rows of {parameter} are equal, those of weight 0 left out, and count as one sample; "
                "expected two that differ.",
                parameter="X",
            )
        seed = int(check_random_state(self.random_state).randint(2**31))
        with Progress("trees", self.n_estimators, self.verbose) as tick:
            self._cell_law = CellLaw.fit(
                rows,
                table.n_numeric,
                column,
                target,
                table.weights,
                upper,
                forests=self.forests,
                growth=Growth(self.n_estimators, seed=seed, budget=Budget.of(self), tick=tick),
            )
        for name in ("classes_", "step_"):
            self.__dict__.pop(name, None)
        if column.kind == "categorical":
            self.classes_ = classes(column)
        else:
            self.step_ = self._cell_law.step
        return self

    # ---- answers -----------------------------------------------------------------------------------------------------------

    def predict(self, X: Any = None) -> Any:
        """Return one value a row: the mean, median or mode of its law, or the likeliest word.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features), optional
            Rows with the columns of the fit. None stands for the rows of the fit, each by a law that does not know it, and is
            NaN or None where a row had weight 0. So in all methods.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self._of_words():
            P, backend = self._probabilities(X)
            return backend.array(self.classes_[np.argmax(P, axis=1)])
        middle = {"mean": means, "median": medians, "mode": modes}[self.point]
        return self._numbers(X, lambda y, F, start: middle(y, F))[:, 0]

    def predict_quantile(self, X: Any = None, q: Any = 0.5) -> Any:
        """Return quantiles of the law of each row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features), optional
            Rows; None stands for those of the fit.
        q : float or sequence of k floats, default=0.5
            Levels between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, k) for several levels

        Raises
        ------
        InputError
            If a level is not between 0 and 1, or the target holds words.
        """
        self._refuse_words("predict_quantile")
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not ((levels > 0.0) & (levels < 1.0)).all():
            raise InputError("{parameter} = {value}: expected numbers between 0 and 1.", parameter="q", value=q)
        flat = np.atleast_1d(levels)
        found = self._numbers(X, lambda y, F, start: interpolated(np.tile(flat, (len(y), 1)), F, y))
        return found[:, 0] if levels.ndim == 0 else found

    def predict_interval(self, X: Any = None, confidence_level: float = 0.9) -> tuple[Any, Any]:
        """Return the central interval of the law of each row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features), optional
            Rows; None stands for those of the fit.
        confidence_level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,)

        Raises
        ------
        InputError
            If `confidence_level` is not between 0 and 1, or the target holds words.
        """
        probability("confidence_level", confidence_level)
        ends = self.predict_quantile(X, [0.5 - 0.5 * confidence_level, 0.5 + 0.5 * confidence_level])
        return ends[:, 0], ends[:, 1]

    def cdf(self, X: Any = None, y: Any = None) -> Any:
        """Return the probability that the target of each row is at most `y`.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features), optional
            Rows; None stands for those of the fit.
        y : array-like of shape (n_samples,)
            A number or time for each row. Between two that the target can have, such as whole numbers, the answer is that of the
            lower one.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        InputError
            If the target holds words, or `y` has another length.
        """
        self._refuse_words("cdf")
        rows, backend = self._entered(X)
        values = self._asked(y, self._count(rows))
        if self.step_:  # recorded numbers stand for what is within half a step: nothing lies between two of them
            values = self.step_ * (np.floor(values / self.step_ + 1e-9) + 0.5)
        with Progress("answers", len(values), self.verbose) as tick:
            found = self._cell_law.cells(rows, values, values, tick)
        return backend.array(found[:, 0])

    def log_prob(self, X: Any = None, y: Any = None) -> Any:
        """Return the log density of numbers and times (per second), or the log probability of words.

        A density is averaged over the step in which the target is recorded, at least .005 standard deviations: narrower laws
        cannot be told from a single value.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features), optional
            Rows; None stands for those of the fit.
        y : array-like of shape (n_samples,)
            The target of each row. A word that no row of the fit has counts as half a row.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.
        """
        if not self._of_words():
            half = max(0.5 * self.step_, _LEAST_CELL * self._cell_law.law.unit)
            found, backend, known = self._cells(X, y, half)
            return backend.array(found[:, 1] - np.where(known, np.log(2.0 * half), 0.0))
        P, backend = self._probabilities(X)
        codes = self._asked(y, len(P)).astype(np.intp)
        new = 0.5 / (len(self._cell_law.law.known) + 0.5)
        P = np.column_stack([(1.0 - new) * P, np.full(len(P), new)])
        return backend.array(np.log(P[np.arange(len(P)), np.minimum(codes, P.shape[1] - 1)]))

    def probabilities(self, X: Any = None) -> Any:
        """Return the probabilities of the words of the target.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features), optional
            Rows; None stands for those of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; each line has sum 1.

        Raises
        ------
        InputError
            If the target holds numbers or times.
        """
        if not self._of_words():
            raise InputError("the target holds numbers, not words; ask for predict_quantile or cdf.")
        P, backend = self._probabilities(X)
        return backend.array(P)

    def sample(self, X: Any = None, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw values of the target from the law of each row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_rows, n_features), optional
            Rows; None stands for those of the fit.
        n_samples : int, default=1
            Number of draws for each row.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
        """
        n_samples = whole_number("n_samples", n_samples)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        if self._of_words():
            P, backend = self._probabilities(X)
            total = np.cumsum(P, axis=1)
            codes = [
                np.minimum((total < u[:, None]).sum(axis=1), P.shape[1] - 1) for u in rng.random((n_samples, len(P)))
            ]
            return backend.array(self.classes_[np.stack(codes, axis=1)])
        rows, _ = self._entered(X)
        u = rng.random((self._count(rows), n_samples))
        return self._numbers(X, lambda y, F, start: interpolated(u[start : start + len(y)], F, y))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean of :meth:`log_prob`, which searches of parameters maximise.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the mean.

        Returns
        -------
        float
        """
        return float(np.average(np.asarray(self.log_prob(X, y)), weights=sample_weight))

    # ---- inside --------------------------------------------------------------------------------------------------------------

    def _of_words(self) -> bool:
        check_is_fitted(self, "_cell_law")
        return self._cell_law.is_words

    def _refuse_words(self, method: str) -> None:
        if self._of_words():
            raise InputError(f"{method} is for numbers and times, and the target holds words; ask for probabilities.")

    def _entered(self, X: Any) -> tuple[np.ndarray | None, Backend]:
        """Return encoded rows, None for those of the fit, and the array library of X."""
        check_is_fitted(self, "_cell_law")
        if X is None:
            return None, NUMPY
        table = enter(self, X, missing=True)
        return self._points(table.rows, table.limits), table.backend

    def _probabilities(self, X: Any) -> tuple[np.ndarray, Backend]:
        rows, backend = self._entered(X)
        with Progress("answers", self._count(rows), self.verbose) as tick:
            return self._cell_law.probabilities(rows, tick), backend

    def _count(self, rows: np.ndarray | None) -> int:
        return len(self._cell_law.place if rows is None else rows)

    def _numbers(self, X: Any, ask: Callable[..., np.ndarray]) -> Any:
        """Return what `ask` makes of places and distribution functions there, (n, k), as cells of the target."""
        rows, backend = self._entered(X)
        with Progress("answers", self._count(rows), self.verbose) as tick:
            found = self._cell_law.curves_from(rows, ask, tick)
        return backend.array(decoded_target(self._cell_law.column, found))

    def _asked(self, y: Any, n: int) -> np.ndarray:
        low, high = target_ends(target_cells(y, n), self._cell_law.column)
        if (low != high).any():
            row = int((low != high).argmax())
            text = "{parameter} has a limit in {row}; expected a number, at which the distribution function is taken."
            raise InputError(text, parameter="y", row=row)
        return low

    def _cells(self, X: Any, y: Any, half: float) -> tuple[np.ndarray, Backend, np.ndarray]:
        """Return :meth:`CellLaw.cells` about known values of the target and of intervals, and which of them are known."""
        rows, backend = self._entered(X)
        low, high = target_ends(target_cells(y, self._count(rows)), self._cell_law.column)
        known = low == high
        with Progress("answers", len(low), self.verbose) as tick:
            found = self._cell_law.cells(rows, low - half * known, high + half * known, tick)
        return found, backend, known
