"""Estimator that finds the wrong cells of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.conditional.binned_law import OF_BINS
from isopleth.conditional.cell_judgement import CellJudgement
from isopleth.conditional.column_laws import ColumnLaws, steps_of_fit
from isopleth.core.arrays import Backend, to_numpy
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, probability
from isopleth.core.interval_laws import IntervalPoints
from isopleth.core.p_values import benjamini_hochberg
from isopleth.core.progress import Progress, ReportsProgress
from isopleth.core.steps import recorded_step
from isopleth.core.tails import Tail
from isopleth.core.threads import DEFAULT_N_JOBS, slices
from isopleth.results.result import ShownCells, index_of
from isopleth.tables.checks import CheckedRows, TakesKinds, enter, used_names, varying_columns
from isopleth.tables.intervals import interval_text
from isopleth.tables.rules import Determines, Equation, FoundRule, NotZero, Rule, Words, doubtful_words, find_rules
from isopleth.tables.schema import Attached, Schema
from isopleth.tables.typed_cells import write_cells
from isopleth.tables.unread import UnreadCells
from isopleth.tasks.cellwise.judged_rows import MANY_ROWS, JudgedRows
from isopleth.tasks.cellwise.margins import flagged_cells, margins, worst_cells
from isopleth.tasks.cellwise.mistakes import RECORDED, FoundMistakes, Mistake, found_mistakes
from isopleth.tasks.cellwise.repairs import RARE, SURE, USUAL, CellRepairs, RepairReasons
from isopleth.tasks.cellwise.result import CellFindings
from isopleth.tasks.cellwise.usual_cells import UsualCells
from isopleth.tasks.cellwise.word_forms import WordForms

# Bound of numbers: so many distances between upper quartile and tenth of the rows' worst excess beyond the quartile, and so many
# nats more, which about 2 of 1,000 ordinary rows exceed; least bound. Quantiles that a tenth of wrong rows hardly moves.
_DISTANCES, _NATS_MORE, _LEAST_BOUND = 3.0, 2.0, 4.5
# Nats beyond which a doubtful word of one row is flagged; how much more for each factor e of its rows; most of a frequent word,
# and of a rare one that is not doubtful.
_WORD_BOUND, _REPEATED_WORD, _MOST_WORD_BOUND, _RARE_WORD_BOUND = 3.5, 1.5, 6.0, 7.0
# What each further broken rule of a cell adds, and most that count.
_FURTHER_RULE, _MOST_RULES = 0.1, 9
# Score of a cell that cannot be read, in nats: beyond those of all others.
_UNREAD = 30.0
# What checks, rules and distinct rows of a table take, in tenths of the time of all three.
_STEPS_OF_BEGIN = (1, 2, 7)
# Rows from which on cells are shown when they are asked for: as objects they take five times the memory of their numbers; and
# rows whose scores are made at once.
_SHOWN_AT_ONCE, _ROWS_AT_ONCE = 20_000, 2**16


class CellwiseDetector(ReportsProgress, TakesKinds, BaseEstimator):
    r"""Detector of wrong cells: each cell is judged by its law given the other cells of its row.

    The excess of a cell is its surprisal less the mean of that under its law,

    .. math:: e_{ij} = -\log p_j(x_{ij} \mid x_{i,-j}) + \int p_j(y \mid x_{i,-j}) \log p_j(y \mid x_{i,-j})\, dy,

    in nats, with laws that do not know row i. So a rare article at its own price has no excess, and neither has a cell of a
    column that nothing tells. A rule that nearly all rows keep, such as a sum of columns or a word that tells another, adds
    :math:`\log(n / \text{broken})` where it is broken. The score of a row is that of its worst cell. Wrong cells are known as
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
        table, given = self._begin(X)
        self._judged = self._fit_laws(table, given)
        self._known, self._repeats = given.known, given.repeats
        self._unread = self._unread_of(X, table)
        varying_columns(self, table.rows, [self._names[i] for i in table.order])  # says which columns tell nothing
        self._digest = _digest(table.rows)
        self._rows, self._limits, self._where = table.rows, table.limits, index_of(X)
        self._score_fit(table)
        rows = _row_scores(self._scores_of_fit)
        self._tail = Tail.of(rows, np.ones(len(rows)), errors=1.0)
        self.cell_scores_, self.row_scores_ = table.answer(self._scores_of_fit), table.answer(rows)
        self.p_values_ = table.answer(np.exp(-self._tail.surprise(rows, new=0.0)))
        return self

    def _fit_laws(self, table: CheckedRows, given: JudgedRows) -> CellJudgement:
        """Fit the laws of the columns, set the bounds, and return the answers for the cells of the table."""
        sizes = () if table.columns is None else tuple(len(levels) for levels in table.columns.levels)
        seed = int(check_random_state(self.random_state).randint(2**31))
        rows = self._without_absent(given.of_laws.rows, table.order)
        of_laws = replace(given.of_laws, rows=rows)
        numbers = slice(0, table.n_numeric)
        judged = _empty_judgement(*rows.shape)

        def choose(excess: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
            self._set_bounds(table, rows[given.counted], excess[:, numbers])  # about: by the rows of the fit
            return lambda places, found: self._worst_of(table.take(places), found)

        steps = steps_of_fit(len(rows), rows.shape[1], self.max_samples, self.n_estimators)
        with Progress("laws of columns", steps, self.verbose) as tick:
            self._laws = ColumnLaws.fit(
                of_laws,
                table.n_numeric,
                sizes,
                judged,
                growth=replace(OF_BINS, trees=self.n_estimators, seed=seed, budget=Budget.of(self), tick=tick),
                computed=self._computed(table),
                choose=None if judged.columns is None else choose,
            )
        self._set_bounds(table, rows[given.counted], judged.excess[given.counted, numbers])
        return judged.as_first(given.place)

    def _worst_of(self, table: CheckedRows, excess: np.ndarray) -> np.ndarray:
        """Return the column of the encoded rows whose cell is the farthest beyond its bound, by the excess of cells."""
        scores = self._encoded_order(table, self._scores_of(table, excess))
        return worst_cells(scores, self._encoded_order(table, self._bounds(table)))[0]

    def _score_fit(self, table: CheckedRows) -> None:
        """Keep the scores of the cells of the fit, and the mistakes in its rows."""
        self._scores_of_fit = self._scores(table, self._judged, self._unread)
        self._mistakes = self._mistakes_in(table, self._scores_of_fit, self._known)

    def _begin(self, X: Any) -> tuple[CheckedRows, JudgedRows]:
        """Take a table: points for cells that say a limit, rules and forms of words; return it, and the rows of its laws."""
        with Progress("rules and distinct rows", sum(_STEPS_OF_BEGIN), self.verbose) as tick:
            entered = enter(self, X, reset=True, min_samples=2, missing=True)
            self._points = IntervalPoints.of(entered.rows, entered.limits, entered.weights)
            table = self._with_points(entered)
            self._names = used_names(self, table.columns)
            tick(_STEPS_OF_BEGIN[0])
            cells = self._cells(table)
            self.rules_, self._forms = find_rules(cells), WordForms.of(cells)
            tick(_STEPS_OF_BEGIN[1])
            given = JudgedRows.of(table.rows, table.limits, self.max_samples)
            tick(_STEPS_OF_BEGIN[2])
        return table, given

    def _set_bounds(self, table: CheckedRows, rows: np.ndarray, excess: np.ndarray) -> None:
        """Set the bounds of cells by the words of distinct rows, and by the excess of the numbers of such rows."""
        sizes = () if table.columns is None else tuple(len(levels) for levels in table.columns.levels)
        codes = rows[:, table.n_numeric :].T
        self._counts = [
            np.bincount(c[~np.isnan(c)].astype(np.intp), minlength=k) for c, k in zip(codes, sizes, strict=True)
        ]
        self.number_bound_ = _number_bound(excess)
        self._word_bounds = self._bounds_of_words(table, self._cells(table))

    def _flagged_by(self, X: Any, excess: np.ndarray, ordinary: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the column of the worst flagged cell of each row by laws that others have fitted, and the cells as shown.

        The column is -1 in a row without a flagged cell. `excess` is that of the cells of X under these laws, (n, d), and
        `ordinary` that of numbers of the rows of their fit.
        """
        table, given = self._begin(X)
        self._set_bounds(table, given.of_laws.rows[given.counted], ordinary)
        judged = replace(CellJudgement.empty(*excess.shape), excess=self._encoded_order(table, excess))
        scores = self._scores(table, judged, self._unread_of(X, table))
        margin = margins(scores, self._bounds(table))
        worst = np.where(margin.max(axis=1) > 0.0, margin.argmax(axis=1), -1)
        return worst, np.asarray(_shown(table, table.rows))

    @staticmethod
    def _unread_of(X: Any, table: CheckedRows) -> dict[int, UnreadCells]:
        """Return cells that are not of the kind of their column, by its place: they are wrong, whatever they hold.

        Words that repeat, such as "empty", stand for missing cells and are not among them.
        """
        if table.columns is None or not any(column.unread for column in table.columns.columns):
            return {}
        carried = Attached.of(X)
        odd = table.columns.encode(X).odd if carried is None else carried.odd
        places = {column.name: j for j, column in enumerate(table.columns.columns)}
        return {places[name]: cells.wrong for name, cells in odd.unread.items() if name in places}

    def _with_points(self, table: CheckedRows) -> CheckedRows:
        """Return a table with points in its intervals."""
        return replace(table, rows=self._points(table.rows, table.limits))

    def _cells(self, table: CheckedRows) -> dict[str, Any]:
        """Return the columns as rules see them: numbers, and words with their levels; times and limits have no rules."""
        rows = table.rows
        if len(table.limits):
            rows = rows.copy()
            rows[:, table.limits.columns] = np.where(table.limits.mask, np.nan, rows[:, table.limits.columns])
        if table.columns is None:
            return {name: column for name, column in zip(self._names, rows.T, strict=True)}
        found: dict[str, Any] = {}
        for place, cells in zip(table.order, rows.T, strict=True):
            column = table.columns.columns[place]
            if column.kind == "categorical":
                levels = (*map(str, column.levels), "")
                found[self._names[place]] = Words(levels, np.where(np.isnan(cells), -1, cells).astype(np.intp))
            elif column.kind == "numeric":
                found[self._names[place]] = cells
        return {name: found[name] for name in self._names if name in found}

    @staticmethod
    def _in_table_order(table: CheckedRows, values: np.ndarray) -> np.ndarray:
        """Return answers for cells with their columns in the order of the table."""
        out = np.empty_like(values)
        out[:, table.order] = values
        return out

    @staticmethod
    def _encoded_order(table: CheckedRows, values: np.ndarray) -> np.ndarray:
        """Return answers for cells with their columns in the order of the encoded rows."""
        return values[:, table.order]

    def _scores(self, table: CheckedRows, judged: CellJudgement, unread: dict[int, UnreadCells]) -> np.ndarray:
        """Return the excess of cells and what broken rules and forms of words say, in the order of the table; NaN in gaps."""
        out = np.empty_like(judged.excess)
        for part in slices(len(out), _ROWS_AT_ONCE):
            some = table if len(out) <= _ROWS_AT_ONCE else table.take(part)
            out[part] = self._scores_of(some, judged.excess[part])
        for j, cells in unread.items():
            out[cells.rows, j] = _UNREAD
        return out

    def _scores_of(self, table: CheckedRows, excess: np.ndarray) -> np.ndarray:
        """Return the scores of cells that can be read, by the excess of encoded cells."""
        columns, excess = self._cells(table), self._excess(table, excess)
        told = self._of_rules(columns, len(excess)) + self._forms.told(self._names, columns, len(excess))
        out = np.where(
            np.isnan(excess) & (told > 0.0), told, excess + told
        )  # in a constant column rules alone can speak
        out[self._in_table_order(table, table.missing)] = np.nan
        return out

    def _without_absent(self, rows: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return encoded rows with gaps where a 0 stands for a missing cell: it must not speak for or against other cells."""
        places = [int(np.flatnonzero(order == self._names.index(name))[0]) for name in self._never_zero()]
        out = rows.copy() if places else rows
        for k in places:
            out[out[:, k] == 0.0, k] = np.nan
        return out

    def _never_zero(self) -> list[str]:
        """Return the columns in which a 0 stands for a missing cell."""
        return [found.rule.column for found in self.rules_ if isinstance(found.rule, NotZero)]

    def _absent(self, table: CheckedRows) -> np.ndarray:
        """Return a mask of the zeros that stand for missing cells, (n, d), in the order of the table."""
        found = np.isnan(self._without_absent(table.rows, table.order)) & ~table.missing
        return self._in_table_order(table, found)

    def _judgement(self, table: CheckedRows, asked: np.ndarray | None = None) -> CellJudgement:
        """Judge rows that are not those of the fit, or some of their cells by a mask of the encoded rows."""
        rows = self._without_absent(table.rows, table.order)
        return self._laws.judge_to(_empty_judgement(*rows.shape), rows, table.limits, asked)

    def _computed(self, table: CheckedRows) -> dict[int, set[int]]:
        """Return the encoded columns that equations compute from each one; of equations of the same columns the first counts."""
        place = {self._names[name]: k for k, name in enumerate(table.order)}
        found: dict[int, set[int]] = {}
        for rule in (each.rule for each in self.rules_ if isinstance(each.rule, Equation)):
            result, *parts = (place[name] for name in rule.columns)
            if not any(part in found.get(result, ()) for part in parts):
                for part in parts:
                    found.setdefault(part, set()).add(result)
        return found

    def _excess(self, table: CheckedRows, encoded: np.ndarray) -> np.ndarray:
        """Return the excess of cells, in the order of the table; a result that an equation tells exactly has none."""
        excess, cells = self._in_table_order(table, encoded), self._cells(table)
        for rule in (each.rule for each in self.rules_ if isinstance(each.rule, Equation)):
            kept, j = rule.judged(cells) & ~rule.breaks(cells), self._names.index(rule.relation.result)
            excess[kept, j] = np.minimum(excess[kept, j], 0.0)
        excess[self._absent(table)] = np.nan  # the rule alone speaks against them
        return excess

    def _of_rules(self, cells: dict[str, Any], n: int) -> np.ndarray:
        """Return what broken rules say against cells: the rarest broken one most, and a little for each further one."""
        weight, count = np.zeros((n, len(self._names))), np.zeros((n, len(self._names)))
        place = {name: j for j, name in enumerate(self._names)}
        for found in self.rules_:
            broken = np.flatnonzero(found.rule.breaks(cells))
            for name in found.rule.blamed:
                weight[broken, place[name]] = np.maximum(weight[broken, place[name]], found.weight)
                count[broken, place[name]] += 1.0
        return weight + _FURTHER_RULE * np.minimum(count, _MOST_RULES)

    def _bounds(self, table: CheckedRows) -> np.ndarray:
        """Return the bound of each cell, (n, d), in the order of the table."""
        kind = _precision(len(table.rows))
        if self.threshold != "auto":
            return np.full(table.rows.shape, float(self.threshold), dtype=kind)
        out: np.ndarray = np.full(table.rows.shape, self.number_bound_, dtype=kind)
        out[self._encoded_order(table, self._absent(table))] = _LEAST_BOUND
        for j in range(table.n_numeric, table.rows.shape[1]):
            bounds = np.append(
                self._word_bounds[j - table.n_numeric], _WORD_BOUND
            )  # the last: no row of the fit has it
            out[:, j] = bounds[np.nan_to_num(table.rows[:, j], nan=-1.0).astype(np.intp)]
        return self._in_table_order(table, out)

    def _bounds_of_words(self, table: CheckedRows, cells: dict[str, Any]) -> list[np.ndarray]:
        """Return the bound of each word of the columns of words, in the order of the encoded rows."""
        found = []
        for j, counts in enumerate(self._counts, table.n_numeric):
            rising = _WORD_BOUND + _REPEATED_WORD * np.log(np.maximum(counts, 1.0))
            words = cells.get(self._names[table.order[j]])
            rare = (rising < _MOST_WORD_BOUND) & (counts > 0)
            if isinstance(words, Words):
                rare &= ~doubtful_words(self._names[table.order[j]], cells)[: len(counts)]
            found.append(np.where(rare, _RARE_WORD_BOUND, np.minimum(rising, _MOST_WORD_BOUND)))
        return found

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
        return table.answer(self._scores(table, self._judgement(table), unread))

    def _entered(self, X: Any) -> tuple[CheckedRows, dict[int, UnreadCells]]:
        """Return checked rows, and their cells that cannot be read."""
        check_is_fitted(self, "cell_scores_")
        table = self._with_points(enter(self, X, missing=True))
        return table, self._unread_of(X, table)

    def _of_fit(self) -> tuple[CheckedRows, CellJudgement, np.ndarray, dict[int, UnreadCells]]:
        """Return what :meth:`_judge` returns for the table of the fit."""
        weights, schema = np.ones(len(self._rows)), getattr(self, "schema_", None)
        table = CheckedRows(self._rows, weights, Backend(), schema, self._limits)
        return table, self._judged, self._scores_of_fit, self._unread

    def _judge(self, X: Any) -> tuple[CheckedRows, CellJudgement, np.ndarray, dict[int, UnreadCells]]:
        """Return checked rows, the judgement and scores of their cells, those of the fit for its table, and unread cells."""
        table, unread = self._entered(X)
        if _digest(table.rows) == self._digest:
            kept = replace(table, rows=self._rows)  # the same rows need not be held twice
            return kept, self._judged, self._scores_of_fit, unread
        judged = self._judgement(table)
        return table, judged, self._scores(table, judged, unread), unread

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
        return table.answer(-_row_scores(self._scores(table, self._judgement(table), unread)))

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
        rows = _row_scores(self._scores(table, self._judgement(table), unread))
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
        table, judged, scores, unread = self._of_fit() if X is None else self._judge(X)
        told = self._told(table, judged, scores, unread)
        values = _with_texts(_shown(table, table.rows), table)
        if unread:
            values = _with_unread(np.asarray(values), unread)
        low, usual, high = self._usual_as_shown(table, told.usual)
        found = CellFindings(
            names=list(self._names),
            scores=told.scores,
            bounds=self._bounds(table),
            excess=told.excess,
            values=values,
            usual=usual,
            low=low,
            high=high,
            rules=self._rules_of(table),
            where=self._where if X is None else index_of(X),
            repeats=self._repeats if judged is self._judged else {},
            repairs={
                cell: why.replace(USUAL, repr(str(usual[cell]))) if USUAL in why else why
                for cell, why in told.repairs.items()
            },
            mistakes={row: self._said(table, each) for row, each in told.mistakes.items()},
        )
        return found.explained(
            lambda i, j: self._against(table, i, j), lambda i, j: self._looks_like(table, usual, i, j)
        ).like(X)

    def _usual_as_shown(self, table: CheckedRows, told: UsualCells) -> list[np.ndarray | ShownCells]:
        """Return the low end, the middle and the high end of what is usual as cells, those of large tables when asked for."""
        schema = table.columns
        if len(table.rows) <= _SHOWN_AT_ONCE:
            whole = told.of_rows(np.arange(len(table.rows)))
            shown = [_shown(table, self._encoded_order(table, part)) for part in whole]
            return [self._within_limits(part, table) for part in shown]

        def cells(k: int) -> ShownCells:
            def take(rows: np.ndarray) -> np.ndarray:
                found = self._encoded_order(table, told.of_rows(rows)[k])
                return np.asarray(self._within_limits(found if schema is None else schema.shown(found), table))

            def take_at(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
                found = told.at(rows, columns)[k]
                return self._cells_as_shown(table, columns, found)

            kind = object if len(table.limits.columns) or (schema and not schema.only_numbers) else np.float64
            return ShownCells(told.shape, kind, take, take_at)

        return [cells(k) for k in range(3)]

    def _cells_as_shown(self, table: CheckedRows, columns: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Return encoded cells of some columns as they are shown."""
        rows = np.full((len(found), table.rows.shape[1]), np.nan)
        rows[np.arange(len(found)), columns] = found
        encoded = self._encoded_order(table, rows)
        shown = encoded if table.columns is None else table.columns.shown(encoded)
        return np.asarray(self._within_limits(shown, table))[np.arange(len(found)), columns]

    def _looks_like(self, table: CheckedRows, usual: np.ndarray | ShownCells, i: int, j: int) -> str | None:
        """Return the word that a cell looks like, if any."""
        name = self._names[j]
        looks = name in self._forms.meant and (name, self._cells(table.take([i]))[name].codes[0]) in self._forms
        return str(usual[i, j]) if looks else None

    def _said(self, table: CheckedRows, mistake: Mistake) -> str:
        """Return what a mistake is, with the names of its columns."""
        return mistake.said.format(*(self._names[table.order[k]] for k in mistake.columns))

    def _mistakes_in(self, table: CheckedRows, scores: np.ndarray, known: np.ndarray) -> FoundMistakes:
        """Return the mistakes that explain rows; `known` is a mask of those that the laws are fitted to."""
        kinds = None if table.columns is None else [table.columns.columns[place].kind for place in table.order]
        numbers = [
            k
            for k in range(table.n_numeric)
            if k not in table.limits.columns and (kinds is None or kinds[k] == "numeric")
        ]

        def judge(rows: np.ndarray, at: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            other = replace(table, rows=rows, weights=np.ones(len(rows)), limits=table.limits.take(at))
            found = self._scores(other, self._judgement(other, asked), {})
            return self._encoded_order(other, found), self._encoded_order(other, self._bounds(other))

        found = self._encoded_order(table, scores)

        def standing(at: np.ndarray) -> np.ndarray:
            out, own = np.where(np.isnan(table.rows[at]), np.nan, found[at]), known[at]
            if own.any():  # the scores of all other rows are by the same laws
                out[own] = judge(table.rows[at[own]], at[own], np.ones((int(own.sum()), out.shape[1]), dtype=bool))[0]
            return out

        bounds = self._encoded_order(table, self._bounds(table))
        return found_mistakes(table.rows, found, bounds, numbers, judge, standing, self._solved(table, scores))

    def _solved(self, table: CheckedRows, scores: np.ndarray) -> list[Mistake]:
        """Return for each broken equation the ways to keep it: one cell is what the others say."""
        cells, found = self._cells(table), []
        for rule in (each.rule for each in self.rules_ if isinstance(each.rule, Equation)):
            broken = np.flatnonzero(rule.breaks(cells))
            for name in rule.columns:
                k = int(np.flatnonzero(table.order == self._names.index(name))[0])
                said = _solved_for(rule, name, cells)
                found += [
                    Mistake(int(i), (k,), (float(said[i]),), f"not {rule}") for i in broken if np.isfinite(said[i])
                ]
        return found

    def _told(
        self, table: CheckedRows, judged: CellJudgement, scores: np.ndarray, unread: dict[int, UnreadCells]
    ) -> CellRepairs:
        """Return what is told of the cells of a table: what is usual there, by which mistake, and which are certain."""
        of_fit = judged is self._judged
        mistakes = self._mistakes if of_fit else self._mistakes_in(table, scores, np.zeros(len(scores), dtype=bool))
        usual = self._usual(table, judged, scores)
        told = CellRepairs(scores, self._excess(table, judged.excess), usual, mistakes.found)
        bounds, absent = self._bounds(table), self._absent(table)
        told = told.with_absent(absent).with_mistakes(table.order, mistakes.scores, bounds)
        flagged = flagged_cells(told.scores, told.excess, bounds)
        reasons = RepairReasons(told, told.with_usual(flagged))
        reasons.of_mistakes(table.order, lambda each: self._said(table, each))
        reasons.add(absent, "0 stands for a missing cell")
        for j, cells in unread.items():
            reasons.add(cells.rows, "cannot be read", j)
        self._reasons_of_words(table, reasons)
        for k in range(table.n_numeric):
            reasons.of_far_numbers(int(table.order[k]), table.rows[:, k], flagged, bounds)
        return replace(told, repairs=reasons.found)

    def _reasons_of_words(self, table: CheckedRows, reasons: RepairReasons) -> None:
        """Add the reasons why a word is replaced: it looks like another one, a word tells it, or one is far the likeliest."""
        columns = self._cells(table)
        told = [each.rule for each in self.rules_ if isinstance(each.rule, Determines)]
        for k in range(table.n_numeric, table.rows.shape[1]):
            j = int(table.order[k])
            name, words = self._names[j], columns[self._names[j]]
            forms = np.append([(name, code) in self._forms for code in range(len(words.levels))], False)
            reasons.add(forms[words.codes], f"looks like {USUAL}", j)
            for rule in told:
                if rule.second == name:
                    reasons.add(rule.breaks(columns), f"not {rule}", j)
            counts = np.append(self._counts[k - table.n_numeric], np.zeros(len(words.levels) + 1))
            rare = np.flatnonzero((counts[words.codes] <= RARE) & reasons.open[:, j])
            if len(rare):
                sure = self._laws.likeliest_share(self._without_absent(table.rows[rare], table.order), k) > SURE
                reasons.add(rare[sure], f"{USUAL} is far the likeliest", j)

    def _within_limits(self, shown: np.ndarray | ShownCells, table: CheckedRows) -> np.ndarray | ShownCells:
        """Return shown values with the text of a limit in the place of the point that stands for it."""
        if not len(self._limits.columns):
            return shown
        values = np.asarray(shown)
        for j in self._limits.columns.tolist():
            _, lower, upper = self._limits.of(j)
            for low, high in sorted(set(zip(lower.tolist(), upper.tolist(), strict=True))):
                point, place = self._points.at(j, low, high), table.order[j]
                cells = values[:, place].tolist()
                same = np.array([isinstance(v, float) and abs(v - point) <= 1e-9 * abs(point) for v in cells])
                if same.any():
                    values = values.astype(object) if values.dtype != object else values
                    values[same, place] = interval_text(low, high)
        return values

    def _usual(self, table: CheckedRows, judged: CellJudgement, scores: np.ndarray) -> UsualCells:
        """Return what would be usual in each cell.

        A broken equation says what its worst cell should hold, exactly, and a misspelt word the word that it is a form of, of
        several the likeliest; everything else is told by the law.
        """
        usual = UsualCells(table.rows.shape, lambda rows, columns: self._of_laws(table, judged, rows, columns))
        cells = self._cells(table)
        worst = worst_cells(scores, self._bounds(table))[0]
        for rule in (each.rule for each in self.rules_ if isinstance(each.rule, Equation)):
            broken = rule.breaks(cells)
            for name in rule.columns:
                j, said = self._names.index(name), _solved_for(rule, name, cells)
                at = np.flatnonzero(broken & (worst == j) & np.isfinite(said))
                usual.put(at, j, said[at])
        for name, meant in self._forms.meant.items():
            j = self._names.index(name)
            for code, among in meant.items():
                at = np.flatnonzero(cells[name].codes == code)
                usual.put(at, j, self._laws.likeliest(table.rows[at], int(np.flatnonzero(table.order == j)[0]), among))
        return usual

    def _of_laws(self, table: CheckedRows, judged: CellJudgement, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return what the laws say is usual in some cells, (3, k)."""
        encoded = np.argsort(table.order)[columns]  # places among the encoded columns
        if judged.columns is None:
            return np.asarray(judged.quantiles[:, rows, encoded])
        out, left = judged.quantiles[:, rows], judged.columns[rows] != encoded
        for j in np.unique(encoded[left]).tolist():
            at = np.flatnonzero(left & (encoded == j))
            out[:, at] = self._laws.quantiles(self._without_absent(table.rows[rows[at]], table.order), j)
        return np.asarray(out)

    def _rules_of(self, table: CheckedRows) -> list[FoundRule]:
        """Return the rules with the rows of a table that break each."""
        cells = self._cells(table)
        return [
            FoundRule(found.rule, int(found.rule.judged(cells).sum()), np.flatnonzero(found.rule.breaks(cells)))
            for found in self.rules_
        ]

    def _against(self, table: CheckedRows, i: int, j: int) -> list[str]:
        """Return the names of the columns whose cells speak against a cell."""
        place = int(np.flatnonzero(table.order == j)[0])
        return [self._names[table.order[k]] for k in self._laws.against(table.rows[i], place)]

    def repaired(self, X: Any) -> Any:
        """Return a copy of a table in which flagged cells hold what must have stood there; all others are as they were.

        A flagged cell is replaced where something else than its law says that it is wrong, and what is right: a mistake that is
        undone, an equation, a word that it looks like or that another word tells, a 0 that stands for a missing cell, a cell that
        cannot be read, a number beyond all others of its column. A number that is only rare beside the others of its row stays.

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
        table, judged, scores, unread = self._judge(X)
        told = self._told(table, judged, scores, unread)
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
        self._score_fit(self._of_fit()[0])
        return self


def _solved_for(rule: Equation, name: str, cells: dict[str, Any]) -> np.ndarray:
    """Return what an equation says of one of its columns, in the step in which this is recorded."""
    said = rule.relation.solved_for(name, cells)
    step = recorded_step(np.unique(cells[name][~np.isnan(cells[name])]), share=RECORDED)
    return np.round(np.rint(said / step) * step, 9) if step else said


def _empty_judgement(n: int, d: int) -> CellJudgement:
    """Return answers that are to be written: of many rows in single precision, and what is usual for one cell of each."""
    if n <= _SHOWN_AT_ONCE:
        return CellJudgement.empty(n, d)
    return CellJudgement.of_many(n, d, _precision(n))


def _precision(n: int) -> type:
    """Return the type of scores and bounds of n rows: of many they would take half of the memory."""
    return np.float32 if n > MANY_ROWS else np.float64


def _row_scores(scores: np.ndarray) -> np.ndarray:
    """Return the largest score of each row; 0 for a row without a known cell."""
    return scores.max(axis=1, initial=-np.inf, where=~np.isnan(scores)).astype(np.float64).clip(-1e300)


def _number_bound(excess: np.ndarray) -> float:
    """Return the bound of numbers by the excess of those of distinct rows: it follows how heavy the tails of a table are."""
    worst = _row_scores(excess)
    worst = worst[worst > -1e300]
    if not len(worst):
        return _LEAST_BOUND
    quartile, tenth = np.quantile(worst, [0.75, 0.9])
    return max(float(quartile + _DISTANCES * (tenth - quartile) + _NATS_MORE), _LEAST_BOUND)


def _columns(table: CheckedRows) -> Schema:
    return Schema.of_numbers(list(range(table.rows.shape[1])), False) if table.columns is None else table.columns


def _shown(table: CheckedRows, rows: np.ndarray) -> np.ndarray | ShownCells:
    """Return encoded rows as cells in the order of the table, those of large tables when they are asked for."""
    schema = table.columns
    if schema is None:
        return rows.copy()
    if schema.only_numbers or len(rows) <= _SHOWN_AT_ONCE:
        return schema.shown(rows)
    return ShownCells(rows.shape, object, lambda some: schema.shown(rows[some]))


def _with_texts(shown: np.ndarray | ShownCells, table: CheckedRows) -> np.ndarray | ShownCells:
    """Return shown cells with the text of those that say a limit."""
    if not len(table.limits.columns):
        return shown
    values = np.asarray(shown)
    for j in table.limits.columns.tolist():
        where, low, high = table.limits.of(j)
        values = values.astype(object) if values.dtype != object else values
        values[where, table.order[j]] = [interval_text(*ends) for ends in zip(low, high, strict=True)]
    return values


def _with_unread(values: np.ndarray, unread: dict[int, UnreadCells]) -> np.ndarray:
    """Write the texts of cells that cannot be read to their places."""
    out = values.astype(object)
    for j, cells in unread.items():
        out[cells.rows, j] = cells.texts
    return out


def _digest(rows: np.ndarray) -> str:
    """Return a fingerprint of rows, by which the table of the fit is recognised."""
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
