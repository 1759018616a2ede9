"""Estimator that finds the wrong cells of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Backend, to_numpy
from isopleth.core.errors import InputError, probability
from isopleth.core.p_values import benjamini_hochberg
from isopleth.core.progress import ReportsProgress
from isopleth.core.tails import Tail
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.results.result import index_of
from isopleth.tables.checks import CheckedRows, TakesKinds, enter, varying_columns
from isopleth.tables.rules import FoundRule, Rule
from isopleth.tables.schema import Schema
from isopleth.tables.typed_cells import write_cells
from isopleth.tables.unread import UnreadCells
from isopleth.tasks.cellwise.margins import row_scores
from isopleth.tasks.cellwise.model import EnteredTable, JudgedTable, digest, fitted_model, unread_cells
from isopleth.tasks.cellwise.repaired_cells import looks_like, mistake_in_words, repairs_of
from isopleth.tasks.cellwise.repairs import USUAL, CellRepairs
from isopleth.tasks.cellwise.result import CellFindings
from isopleth.tasks.cellwise.row_mistakes import mistakes_in
from isopleth.tasks.cellwise.shown_table import usual_as_shown, values_as_shown


class CellwiseDetector(ReportsProgress, TakesKinds, BaseEstimator):
    r"""Detector of wrong cells: each cell is judged by its law given the other cells of its row.

    The excess of a cell is its surprisal less the mean of that under its law,

    .. math:: e_{ij} = -\log p_j(x_{ij} \mid x_{i,-j}) + \int p_j(y \mid x_{i,-j}) \log p_j(y \mid x_{i,-j})\, dy,

    in nats, with laws that do not know row i. So a rare article at its own price has no excess, and neither has a cell of a
    column that nothing tells. A rule that nearly all rows keep, such as a sum of columns or a word that tells another, adds
    :math:`\log(n / \text{broken})` where it is broken; one cell of a row that breaks an equation is always flagged, unless
    `threshold` is given. The score of a row is that of its worst cell. Wrong cells are known as
    cellwise outliers [1]_. Rows that are equal count once: copies do not vouch for each other.

    Parameters
    ----------
    threshold : float or "auto", default="auto"
        Nats from which on a cell is flagged. "auto": for numbers and times `number_bound_`, which follows the table. For a
        word that c rows have 3.5 + 1.5 log c, and at most 6: what many rows hold is less likely to be wrong. For a word of few
        rows that neither looks like another one of the column nor is one of another column 7: it is a rare word.
    n_estimators : int, default=60
        Trees of the forest of each column.
    max_samples : int, default=2000
        Most distinct rows that laws are fitted to; all rows are judged.
    categorical : array-like, optional
        Columns of an array that hold codes of categories.
    n_jobs : int or None, default=-1
        Threads; -1 is all processors, None is one or what joblib.parallel_config says.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees.
    verbose : bool, default=False
        Whether progress is shown.

    Attributes
    ----------
    cell_scores_ : ndarray of shape (n_samples, n_features)
        Excess of each cell and what broken rules add, in nats; NaN where a cell is missing or its column has one value.
    row_scores_ : ndarray of shape (n_samples,)
        Largest of each row.
    p_values_ : ndarray of shape (n_samples,)
        p-values of the rows, by a tail fitted to the row scores.
    number_bound_ : float
        Nats from which on a number or time is flagged: with the upper quartile q and the upper tenth t of the largest excess of
        each row among them, :math:`q + 3 (t - q) + 2`, and at least 4.5.
    rules_ : list of FoundRule
        Rules that nearly all rows keep, with the rows that break each.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of columns at fit, and their names if they had any.

    References
    ----------
    .. [1] Rousseeuw and Van den Bossche, "Detecting deviating data cells", Technometrics 60, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import CellwiseDetector
    >>> rng = np.random.default_rng(0)
    >>> price = rng.choice([20.0, 400.0], 300, p=[0.95, 0.05])
    >>> table = np.column_stack([price + rng.normal(size=300), price * 1.2 + rng.normal(size=300)])
    >>> table[7, 1] = 400.0  # near usual values of the column, and wrong in its row
    >>> found = CellwiseDetector(random_state=0).fit(table).cells()
    >>> found.table()["row"].tolist()[0]
    7
    """

    _use_of_limits = "likelihood"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="left")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
        "categorical": ["array-like", None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        threshold: float | str = "auto",
        n_estimators: int = 60,
        max_samples: int = 2000,
        categorical: Any = None,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.threshold = threshold
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.categorical = categorical
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- fit -------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the laws of all columns and the rules, and judge the cells of the table.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table, wrong cells included: numbers, words, truth values, times; cells may be missing.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the table cannot be used; the sentence says why and what to do.
        """
        self._validate_params()
        entered = EnteredTable.of(self, X)
        table, given = entered.table, entered.given
        self._model, self._judged = fitted_model(self, entered)
        self.rules_, self.number_bound_ = self._model.evidence.rules, self._model.bounds.number
        self._known, self._repeats = given.known, given.repeats
        self._unread = unread_cells(X, table)
        varying_columns(self, table.rows, [self._names[i] for i in table.order])  # says which columns tell nothing
        self._digest = digest(table.rows)
        self._rows, self._where = table.rows, index_of(X)
        self._score_fit(table)
        rows = row_scores(self._scores_of_fit)
        self._tail = Tail.of(rows, np.ones(len(rows)), errors=1.0)
        self.cell_scores_, self.row_scores_ = table.answer(self._scores_of_fit), table.answer(rows)
        self.p_values_ = table.answer(np.exp(-self._tail.surprise(rows, new=0.0)))
        return self

    def _score_fit(self, table: CheckedRows) -> None:
        """Keep the scores of the cells of the fit, and the mistakes in its rows."""
        self._scores_of_fit = self._model.scores(table, self._judged.excess, self._unread)
        rows = JudgedTable(table, self._judged, self._scores_of_fit, self._unread)
        self._mistakes = mistakes_in(self._model, rows, self._known)

    @property
    def _names(self) -> list[str]:
        return self._model.evidence.names

    # ---- answers ---------------------------------------------------------------------------------------------------------

    def score_cells(self, X: Any) -> np.ndarray:
        """Return the score of each cell of new rows, in nats; higher is less fitting.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows. Those of the fit are judged by laws that know them; without their rows they are judged in `cell_scores_`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            NaN where a cell is missing.

        Raises
        ------
        InputError
            If the rows cannot be used.
        """
        table, unread = self._entered(X)
        return table.answer(self._new_scores(table, unread))

    def _entered(self, X: Any) -> tuple[CheckedRows, dict[int, UnreadCells]]:
        """Return checked rows, and their cells that cannot be read."""
        check_is_fitted(self, "cell_scores_")
        table = self._model.with_points(enter(self, X, missing=True))
        return table, unread_cells(X, table)

    def _new_scores(self, table: CheckedRows, unread: dict[int, UnreadCells]) -> np.ndarray:
        """Return the scores of the cells of new rows, in the order of the table."""
        return self._model.scores(table, self._model.judged(table).excess, unread)

    def _of_fit(self) -> JudgedTable:
        """Return the table of the fit, judged."""
        weights, schema = np.ones(len(self._rows)), getattr(self, "schema_", None)
        table = CheckedRows(self._rows, weights, Backend(), schema, self._model.limits)
        return JudgedTable(table, self._judged, self._scores_of_fit, self._unread)

    def _judge(self, X: Any) -> JudgedTable:
        """Return checked rows with the judgement of their cells, that of the fit for its table."""
        table, unread = self._entered(X)
        if digest(table.rows) == self._digest:
            kept = replace(table, rows=self._rows)  # the same rows need not be held twice
            return JudgedTable(kept, self._judged, self._scores_of_fit, unread)
        judged = self._model.judged(table)
        return JudgedTable(table, judged, self._model.scores(table, judged.excess, unread), unread)

    def _repairs(self, rows: JudgedTable) -> CellRepairs:
        """Return what is told of the cells of a table."""
        if rows.judged is self._judged:
            return repairs_of(self._model, rows, self._mistakes)
        known = np.zeros(len(rows.scores), dtype=bool)
        return repairs_of(self._model, rows, mistakes_in(self._model, rows, known))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the score of each row: minus the score of its worst cell, so that higher is more normal.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        table, unread = self._entered(X)
        return table.answer(-row_scores(self._new_scores(table, unread)))

    def p_values(self, X: Any) -> np.ndarray:
        """Return p-values of new rows: the share of rows of the fit, or of a tail fitted to them, whose worst cell is as bad.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; those of the fit have theirs in `p_values_`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        table, unread = self._entered(X)
        rows = row_scores(self._new_scores(table, unread))
        return table.answer(np.exp(-self._tail.surprise(rows, new=1.0)))

    def select(self, X: Any = None, fdr: float = 0.1) -> np.ndarray:
        """Select rows with a wrong cell at a false discovery rate (Benjamini and Hochberg 1995).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), optional
            New rows; None stands for the table of the fit.
        fdr : float, default=0.1
            Share of ordinary rows that is expected among the selected ones.

        Returns
        -------
        ndarray of shape (n_samples,), bool

        Raises
        ------
        InputError
            If `fdr` is not between 0 and 1.
        """
        rate = probability("fdr", fdr)
        check_is_fitted(self, "cell_scores_")
        p_values = to_numpy(self.p_values_ if X is None else self.p_values(X))
        return np.asarray(p_values <= benjamini_hochberg(p_values, rate))

    def cells(self, X: Any = None) -> CellFindings:
        """Return the cells that do not fit, the worst of each row, with what would be usual and what speaks against it.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), optional
            New rows, or the table of the fit, which is recognised and judged by laws that do not know each row; so for None.

        Returns
        -------
        CellFindings
            With ``table()``, ``to_dict()``, ``plot()`` and ``report(path)``.

        Raises
        ------
        InputError
            If the rows cannot be used.
        """
        check_is_fitted(self, "cell_scores_")
        model, rows = self._model, self._of_fit() if X is None else self._judge(X)
        table, told = rows.table, self._repairs(rows)
        low, usual, high = usual_as_shown(model, table, told.usual)
        found = CellFindings(
            names=list(self._names),
            scores=told.scores,
            bounds=model.bounds_at(table),
            excess=told.excess,
            values=values_as_shown(rows),
            usual=usual,
            low=low,
            high=high,
            rules=model.evidence.rules_in(table),
            where=self._where if X is None else index_of(X),
            repeats=self._repeats if rows.judged is self._judged else {},
            repairs={
                cell: why.replace(USUAL, repr(str(usual[cell]))) if USUAL in why else why
                for cell, why in told.repairs.items()
            },
            unclear=told.unclear,
            mistakes={
                row: mistake_in_words(model, rows, each)
                for row, each in told.mistakes.items()
                if row not in told.doubted
            },
        )
        return found.explained(
            lambda i, j: model.against(table, i, j),
            lambda i, j: str(usual[i, j]) if looks_like(model, rows, i, j) else None,
        ).like(X)

    def repaired(self, X: Any) -> Any:
        """Return a copy of a table in which flagged cells hold what must have stood there; all others are as they were.

        A flagged cell is replaced where its row says that it is wrong, and what is right: a mistake that is undone, an equation,
        a word that it looks like or that another word tells. What is only usual in its place is written nowhere: a cell that
        cannot be read, as a word of its own or a number in another unit, a 0 that stands for a missing cell, a number beyond all
        others of its column, and one that is only rare beside the others of its row stay as they are.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table of the fit, which is recognised, or new rows.

        Returns
        -------
        data frame or ndarray of shape (n_samples, n_features)

        Raises
        ------
        InputError
            If the rows cannot be used.
        """
        rows = self._judge(X)
        table, told = rows.table, self._repairs(rows)
        usual, replaced = np.full(told.scores.shape, np.nan), told.replaced
        usual[replaced] = told.usual.at(*np.nonzero(replaced))[1]
        return table.backend.array(write_cells(X, _columns(table), usual, replaced))

    def use_rules(self, rules: Sequence[Rule]) -> Self:
        """Judge by given rules in the place of those that were found, such as the rules of an earlier table.

        Parameters
        ----------
        rules : sequence of Rule
            Rules about columns of the fit.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If a rule names a column that is not used.
        """
        check_is_fitted(self, "cell_scores_")
        for rule in rules:
            for name in rule.columns:
                if name not in self._names:
                    raise InputError(f"the rule {rule} names {{column}}, which the table does not have.", column=name)
        self.rules_ = [FoundRule(rule, len(self._rows), np.empty(0, dtype=int)) for rule in rules]
        self._model = replace(self._model, evidence=replace(self._model.evidence, rules=self.rules_))
        self._score_fit(self._of_fit().table)
        return self


def _columns(table: CheckedRows) -> Schema:
    return Schema.of_numbers(list(range(table.rows.shape[1])), False) if table.columns is None else table.columns
