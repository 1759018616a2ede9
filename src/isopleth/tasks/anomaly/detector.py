"""Anomaly detector: scores, p-values and flags of the rows of a table."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, to_numpy
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import probability, warn_about_answer
from isopleth.core.p_values import anomaly_probabilities, benjamini_hochberg, conformal_p_values, storey_number
from isopleth.core.progress import ReportsProgress
from isopleth.core.rows import Rounding
from isopleth.core.tails import Tail
from isopleth.core.threads import DEFAULT_N_JOBS, effective_n_jobs, interruptible
from isopleth.tables.checks import (
    CheckedRows,
    TakesKinds,
    ends_of_times,
    enter,
    used_names,
    varying_columns,
    warn_few_rows,
    warn_of_times_apart,
)
from isopleth.tasks.anomaly.fit_sample import CodedRows, FirstLook, digest_of
from isopleth.tasks.anomaly.framed_rows import (
    checked_groups,
    frame_of,
    numbers_of_codes,
    warn_of_new_gaps,
    with_gap_codes,
)
from isopleth.tasks.anomaly.training_table import NEW, TrainingTable, WithConstants, fit_with_constants

# Rules, reasons and results are loaded by the method that needs them: a program that only makes a detector starts faster.
if TYPE_CHECKING:
    from isopleth.tables.schema import Schema
    from isopleth.tasks.anomaly.explanation import Explanation
    from isopleth.tasks.anomaly.pooled_rule import PooledRule
    from isopleth.tasks.anomaly.reference_rule import ReferenceRule
    from isopleth.tasks.anomaly.result import Anomalies
    from isopleth.tasks.anomaly.shared_values import SharedValues

SAMPLES, SAMPLES_WITH_CATEGORIES = 32, 128  # rows of the largest samples of the joint evidence
FEWEST_FOR_STOREY = 100  # new rows below which the number of ordinary ones is not estimated
WORTH_A_LOOK = 1 / 30  # tail share at or below which contamination="auto" flags a row


class AnomalyDetector(ReportsProgress, TakesKinds, OutlierMixin, BaseEstimator):
    r"""Anomaly detector that pools densities, covariance and single columns, with p-values and flags.

    A row is judged by three kinds of evidence, each of them fitted to the other rows of the table:

    - *joint*: minus the mean log density under `n_estimators` SOSREP densities :math:`p_b = f_b^2/Z_b` [1]_ of small
      random samples of the rows, with the kernel :math:`\exp(-|x - y|_1/\ell)` and a length scale of 1/16 of the
      sample's median distance. Half of the densities see all columns, the others a random subset; no density sees more than
      64 columns, which are drawn for it. A small sample rarely contains an anomaly, so that its density describes ordinary rows.
    - *covariance*: the squared Mahalanobis distance from the half of the rows that is most concentrated [2]_, with a
      covariance shrunk towards a sphere [3]_.
    - *columns*: the sum over columns of :math:`-\log \min(1, 2 \min(P(X_j \le x_j), P(X_j \ge x_j)))`, with
      :math:`-\log P(X_j = x_j)` for categories.

    Each is turned into its tail share among the training rows, the share of rows as extreme, continued by a fitted
    tail beyond the most extreme eighth [4]_. The score of a row is the sum of the three log tail shares.

    With ``novelty=True`` all training rows are known to be ordinary, and may be followed closely. The kinds of evidence are then

    - *density*: minus the log of a kernel density estimate with the same kernel and a width of a quarter of the median
      distance between nearest neighbours;
    - *rank density*: the same for the normal scores of the ranks in each column;
    - *rank neighbours*: the mean distance there to the five nearest training rows;
    - *new values*: the sum of :math:`\log(n + 1)` over the numbers outside the range of the n other rows, and the largest
      :math:`\log((n + 1)/(s + 1))` of a cell within the range whose value no other row holds, s being the number of rows with a
      value of their own in its column [5]_: about 0 where numbers are measured, and large in columns of codes;
    - *conditionals*: the sum over columns of minus the log density of the cell given the other cells [6]_, in normal scores, by
      extremely randomised trees [7]_; of more than 20 columns 20 are drawn. ``fast=True`` leaves it out.

    Of more than 2,000 distinct rows, 2,000 drawn at random represent all, except for the new values. The score is again the
    sum of the log tail shares.

    In either case a training row is judged without itself, and a row that equals a training row gets the same score
    as that row. Rows that are repeated a few times are one observation and count once, unless ``novelty=True``; very
    many copies are a common value and count in full. So :meth:`fit` has no ``sample_weight``, which elsewhere means copies: a
    weight of 2 would change nothing. Where a column has one value only at fit, another
    value in a new row has the tail share :math:`1/(n + 1)` in each kind of evidence, and so has a gap, if there was none.

    Tables may have words, truth values, times and missing cells. A category becomes indicators, scaled so that the column
    has a variance of 1; unlike categories are at the distance :math:`1/\sqrt{\sum_c p_c(1 - p_c)}` in the joint evidence. A
    missing word is a word of its own, if the column had gaps at fit; otherwise it counts as the most frequent word, which is told
    in a warning. A missing number counts with its conditional mean given
    the other cells of the row, under the covariance of the second kind of evidence, and adds to the other two kinds
    what the column adds on average.

    Rows may be tensors, or arrays of another library. The computation is done in NumPy; fitted arrays are in the
    library and on the device of the rows of the fit, answers in those of the rows passed to the method.
    :class:`isopleth.adapters.PyODAdapter` is a detector of PyOD, with ``labels_`` and ``decision_scores_``.

    Parameters
    ----------
    contamination : "auto" or float, default="auto"
        Which rows to flag. "auto" flags rows that are worth a look: those with a fitted tail share of at most 1/30,
        so that about one row in thirty of a table without anomalies is flagged. A number is the share of training rows to
        flag. For flags that hold up to a false discovery rate see :meth:`select`.
    novelty : bool, default=False
        Whether the training rows are a clean reference, known to be ordinary.
    fast : bool, default=False
        Whether to leave out the conditional laws of ``novelty=True``: about twice as fast, but rows that break a relation of a
        few columns are found less well.
    n_estimators : int, default=100
        Number of densities of the joint evidence.
    max_samples : "auto" or int, default="auto"
        Largest sample that such a density is fitted to: "auto" is 32, or 128 in tables with categories, because 32 rows have few
        of their combinations.
    max_fit_rows : int, default=20_000
        Of more rows than this, the rule is fitted to that many distinct ones, and all rows are scored by it. Rows are drawn by
        their contents and `random_state`, so that neither their order nor the partitions of a Dask collection matter. With
        ``novelty=True`` 2,000 rows represent all in any case.
    categorical : None, name, or sequence of names or numbers of columns, optional
        Columns that are categories, whatever they hold.
    memory_limit : float, default=2**30
        Bytes of scratch.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    random_state : int, RandomState or None
        Seed of the samples and, with ``novelty=True``, of the trees, of the folds in which training rows are judged, of the
        halves that :meth:`anomalies` needs and of the rows that represent all in tables of more than 2,000 distinct ones.
    verbose : bool or int, default=False
        Whether to show the progress of the evidence of many rows, at fit and later, on standard error.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``; negative for flagged rows.
    training_scores_ : array of shape (n_samples,)
        Scores of the training rows, each judged without itself.
    p_values_ : array of shape (n_samples,)
        p-values of the training rows: the share of training rows as unlikely and, beyond the most extreme eighth, a
        tail fitted to the others. Ranks alone could not flag a row of the table that they come from.
    training_labels_ : array of shape (n_samples,), int
        -1 for flagged training rows, 1 for the others; the same as :meth:`predict` of the training rows.
    n_samples_fit_ : int
        Number of rows that the rule is fitted to: all of them up to `max_fit_rows`, or so many distinct ones. Of a sample it is
        the number n by which p-values of all rows have a standard error of about :math:`\sqrt{p(1-p)/n}`; common rows count as
        often as they occur in such a sample.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Sobolev Space Regularised Pre Density Models", ICML 2024.
    .. [2] P. J. Rousseeuw, K. Van Driessen, "A Fast Algorithm for the Minimum Covariance Determinant Estimator",
       Technometrics 41, 1999.
    .. [3] Y. Chen, A. Wiesel, Y. C. Eldar, A. O. Hero, "Shrinkage Algorithms for MMSE Covariance Estimation", IEEE
       Transactions on Signal Processing 58, 2010.
    .. [4] J. Pickands, "Statistical Inference Using Extreme Order Statistics", Annals of Statistics 3, 1975.
    .. [5] I. J. Good, "The Population Frequencies of Species and the Estimation of Population Parameters", Biometrika 40, 1953.
    .. [6] J. Besag, "Statistical Analysis of Non-Lattice Data", The Statistician 24, 1975.
    .. [7] P. Geurts, D. Ernst, L. Wehenkel, "Extremely Randomized Trees", Machine Learning 63, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = AnomalyDetector(random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    _use_of_limits = "merge most"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "novelty": ["boolean"],
        "fast": ["boolean"],
        "n_estimators": [Interval(Integral, 5, None, closed="left")],
        "max_samples": [StrOptions({"auto"}), Interval(Integral, 4, None, closed="left")],
        "max_fit_rows": [Interval(Integral, 100, None, closed="left")],
        "categorical": [None, str, "array-like"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _uses_constants = True

    def __init__(
        self,
        contamination: float | str = "auto",
        novelty: bool = False,
        fast: bool = False,
        n_estimators: int = 100,
        max_samples: int | str = "auto",
        max_fit_rows: int = 20_000,
        categorical: Any = None,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.contamination = contamination
        self.novelty = novelty
        self.fast = fast
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_fit_rows = max_fit_rows
        self.categorical = categorical
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Fit the rule to the rows of a table and set the threshold.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; anomalies may be among them, unless ``novelty=True``.
        y : ignored
            Present for scikit-learn's interface.
        groups : array-like of shape (n_samples,), optional
            Labels of rows that belong together, such as those of one patient; with ``novelty=True`` only. Each training row is
            judged without its group, and in p-values of new rows each group counts as one row: the share of its rows
            that are at least as unlikely. New rows should be of new groups.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows cannot be used; the sentence says why and what to do.
        """
        self._validate_params()
        self.__dict__.pop("offset_", None)  # a fit that fails must leave no mixture of two models
        entered = enter(self, X, reset=True, min_samples=2)
        n = len(entered.rows)
        self._groups = checked_groups(groups, n, self.novelty)
        sampled = n > self.max_fit_rows and not self.novelty
        look = FirstLook(entered.rows.shape[1], self._most_common if sampled else 0).add(entered.rows)
        seed = self._begin(look, entered.columns)
        if sampled:
            from isopleth.tasks.anomaly.fit_in_parts import fit_to_sample

            fit_to_sample(self, CodedRows(entered.rows, self._budget), look, entered.columns, seed)
            return entered.finish(self)
        X = with_gap_codes(entered.rows, self._gap_codes)
        surprises, table, in_frame = self._fit_rule(X, entered.columns, seed)
        self._digest_of_fit = digest_of(in_frame).hexdigest()
        if self.novelty:
            from isopleth.tasks.anomaly.certificate import SplitScores

            self._split = SplitScores.fit(in_frame, self._numeric_in_frame, seed, self._budget, self._groups)
        self._judge_fitted(surprises, table)
        return entered.finish(self)

    def _begin(self, look: FirstLook, columns: Schema | None) -> int:
        """Set which columns of words take a gap as a word of its own, and return the seed of the fit."""
        self._n_numeric = look.low.size if columns is None else len(columns.numeric_names)
        sizes = 0.0 if columns is None else np.array(columns.sizes, dtype=np.float64)
        gaps_differ = (look.gaps > 0) | (look.low == look.high)
        self._gap_codes = np.where(gaps_differ[self._n_numeric :], sizes, np.nan)
        return int(check_random_state(self.random_state).randint(2**31))

    def _fit_rule(
        self,
        X: np.ndarray,
        columns: Schema | None,
        seed: int,
        copies: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> tuple[np.ndarray, TrainingTable, np.ndarray]:
        """Fit frame and rule to coded rows; return the surprise of each distinct one, the table of these, and rows in the frame.

        Rows of a sample have `copies` and `weights`.
        """
        self._ends = ends_of_times(X, columns)
        self._rounding = Rounding.of(X, constants=True)
        X = self._rounding.apply(X)
        names, order = used_names(self, columns), range(X.shape[1]) if columns is None else columns.order
        keep = varying_columns(self, X, [names[i] for i in order], constants=True)
        self._frame = frame_of(X, keep, self._n_numeric)
        # Merged in the frame, where rows that differ by less than their digits have become one.
        numeric = self._numeric_in_frame
        in_frame = self._frame.enter(X)
        table = interruptible(100.0 * X.size, TrainingTable.of, in_frame, numeric, self._groups, copies, weights)
        first = np.unique(table.place, return_index=True)[1]
        from isopleth.tasks.anomaly.reasons import Reasons

        self._reasons, self._seed = Reasons.of(X, first, self._n_numeric, numbers_of_codes(X, self._gap_codes)), seed
        warn_few_rows(*table.rows.shape)
        self._rule: PooledRule | ReferenceRule | WithConstants
        if self.novelty:
            from isopleth.tasks.anomaly.reference_rule import ReferenceRule

            self._rule, surprises = fit_with_constants(
                lambda t: ReferenceRule.fit(t, seed, self.fast, self._budget), table
            )
        else:
            from isopleth.tasks.anomaly.pooled_rule import PooledRule

            most = self.max_samples
            if isinstance(most, str):
                words = table.rows[:, numeric:]
                most = SAMPLES_WITH_CATEGORIES if (words != words[0]).any() else SAMPLES
            self._rule, surprises = fit_with_constants(
                lambda t: PooledRule.fit(t, self.n_estimators, int(most), seed, self._budget, weights is not None),
                table,
            )
        self._index, self.n_samples_fit_ = table.index, len(X)
        return surprises.sum(axis=1), table, in_frame

    @property
    def _most_common(self) -> int:
        """Largest number of rows that a sample has whatever their keys, since they are common."""
        return int(self.max_fit_rows) // 4

    @property
    def _numeric_in_frame(self) -> int:
        """Number of columns of numbers in the frame; they come first."""
        return int(self._frame.keep[: self._n_numeric].sum())

    def _fit_tail(self, surprise: np.ndarray, table: TrainingTable) -> SharedValues:
        """Set the law of the surprise of the rows that were fitted, and return the values that several unlikely ones share."""
        from isopleth.tasks.anomaly.shared_values import SharedValues

        weights = table.copies.astype(float) if self.novelty else table.weights
        self._tail = Tail.of(surprise, weights, errors=1.0)
        unlikely = np.exp(-self._tail.surprise(surprise, new=0.0)) <= WORTH_A_LOOK
        # Rows of a reference are taken to be ordinary, whatever they share.
        return SharedValues.of(table, unlikely & (not self.novelty))

    def _judge_fitted(self, surprises: np.ndarray, table: TrainingTable) -> None:
        """Judge all rows, of which the distinct ones are the table that was fitted."""
        shared = self._fit_tail(surprises, table)
        alone = shared.scores(self._rule, table.rows, -surprises, self._budget)
        self._judge(-surprises[table.place], alone[table.place])

    def _judge(self, scores: np.ndarray, alone: np.ndarray) -> None:
        """Set scores, p-values and labels of all rows, and the threshold; `alone` are scores without shared values."""
        self.training_scores_ = scores
        self.p_values_ = np.exp(-self._tail.surprise(-scores, new=0.0))
        self._p_alone = np.exp(-self._tail.surprise(-alone, new=0.0))
        if self.contamination == "auto":
            flagged = self.p_values_ <= WORTH_A_LOOK
        else:
            flagged = scores < np.percentile(scores, 100.0 * float(self.contamination))
        self.training_labels_ = np.where(flagged, -1, 1)
        # Halfway between two scores, so that the last digits of a score decide about no training row.
        if flagged.any():
            self.offset_ = 0.5 * float(scores[flagged].max() + scores[~flagged].min())
        else:
            least = float(scores.min())
            beyond = -self._tail.threshold(WORTH_A_LOOK)
            self.offset_ = min(beyond, least - 1e-6 * max(1.0, abs(least)))

    def _coded(self, rows: np.ndarray) -> np.ndarray:
        """Return checked rows as the rule takes them: rounded as those of the fit, with a code for missing words."""
        return self._rounding.apply(with_gap_codes(rows, self._gap_codes))

    @property
    def _budget(self) -> Budget:
        return Budget(float(self.memory_limit), effective_n_jobs(self.n_jobs), self.verbose)

    def _enter(self, X: Any, warn: bool = True) -> tuple[CheckedRows, np.ndarray]:
        """Return the checked rows, and the same in the frame of the model; warn of times beyond those of the fit."""
        check_is_fitted(self, "offset_")
        table = enter(self, X)
        if warn:
            warn_of_new_gaps(table, self._gap_codes)
        rows = self._frame.enter(self._coded(table.rows))
        if warn and not self._is_of_fit(rows):
            warn_of_times_apart(table, *self._ends, "that is what makes rows odd")
        return table, rows

    def _score(self, rows: np.ndarray) -> np.ndarray:
        """Return scores of rows in the frame; training rows are scored by the rule without them, their table not again."""
        if self._is_of_fit(rows):
            return to_numpy(self.training_scores_)
        return -self._rule.surprises(rows, self._index.find(rows), self._budget).sum(axis=1)

    def _is_of_fit(self, rows: np.ndarray) -> bool:
        return len(rows) == len(self.training_scores_) and digest_of(rows).hexdigest() == self._digest_of_fit

    def _p_values(self, rows: np.ndarray) -> np.ndarray:
        """Return conformal p-values of rows in the frame, all taken as new rows."""
        new = self._rule.surprises(rows, np.full(len(rows), NEW), self._budget).sum(axis=1)
        return conformal_p_values(-to_numpy(self.training_scores_), new, self._groups)

    def _references(self) -> int:
        """Number of training rows, or of their groups."""
        return len(self.training_scores_) if self._groups is None else int(self._groups.max()) + 1

    def score_samples(self, X: Any) -> Array:
        """Return how ordinary each row is: the sum of the log tail shares of its kinds of evidence.

        A row equal to a training row has that row's score, by the rule without that row: any threshold other than
        one between such scores would flag new ordinary rows in bulk where columns are many.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; the score of one never depends on the others.

        Returns
        -------
        array of shape (n_samples,)
            In nats, at most 0; the lower, the less likely.
        """
        table, rows = self._enter(X)
        return table.answer(self._score(rows))

    def decision_function(self, X: Any) -> Array:
        """Return ``score_samples(X) - offset_``, which is negative for flagged rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        table, rows = self._enter(X)
        return table.answer(self._score(rows) - self.offset_)

    def predict(self, X: Any) -> Array:
        """Return -1 for flagged rows and 1 for the others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,), int
        """
        table, rows = self._enter(X)
        return table.answer(np.where(self._score(rows) - self.offset_ < 0.0, -1, 1))

    def p_values(self, X: Any) -> Array:
        r"""Return conformal p-values of new rows: the share of training rows at least as unlikely.

        Each training row is judged without itself, and with ``novelty=True`` without its fold; new rows are then judged without
        the first fold, so that their evidence has the same law. If the row comes from the same distribution as the n training
        rows, :math:`P(p \le t)` is close to t in simulation with ``novelty=True``. Repeated values make p-values larger, and so
        do anomalies among the training rows. The smallest possible p-value is 1/(n + 1). If the
        detector was fitted with `groups`, each group counts as one row, and n is the number of groups.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            New rows. For the training rows themselves see `p_values_`.

        Returns
        -------
        array of shape (n_samples,)
            In (0, 1].
        """
        table, rows = self._enter(X)
        return table.answer(self._p_values(rows))

    def select(self, X: Any = None, fdr: float = 0.1) -> Array:
        r"""Select rows that are anomalies with a controlled false discovery rate.

        The Benjamini-Hochberg procedure [1]_ is applied once to the p-values of the rows: those of :meth:`p_values` for
        new rows, which is conformal selection, and `p_values_`, those of the fitted tail, for the training rows. Among 100
        or more new rows it is the procedure of Storey [2]_, which replaces the number of rows by an estimate of the number of
        ordinary ones, :math:`2 (1 + \#\{p > 1/2\})`, and selects more where many are anomalies. For p-values by ranks among
        scores that are fitted without the ranked rows both are proved [3]_; for rows judged without themselves they are
        simulated. Limits on numbers, which hold for all lists at once, are in the answer of :meth:`anomalies`.
        Of the rows selected in one call, a share of at most about `fdr` is expected to be ordinary. The rate is that of a
        call: rows that arrive in parts, each selected by a call of its own, have among all selected rows more ordinary ones
        where most parts hold no anomaly. Select them together, or watch a stream with :class:`DriftMonitor`. For new rows it
        holds whatever the distribution of ordinary rows is, if the training rows are ordinary; for training rows it holds
        as far as the fitted tail does. Training rows that share a value of one column with several unlikely rows, which
        are most rows of this value, are far for one reason: they are selected only if they are so without it.
        Ordinary means there: from the distribution of the bulk of the rows. Rows of
        22 tables of ADBench that are selected at 0.1 are labelled ordinary in 42 % of the cases (mean over tables and
        seeds with any), nearly all of them in two tables, whose most extreme rows are labelled so. In 17 of the 22
        tables no row is selected.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), optional
            New rows; the training rows when left out.
        fdr : float, default=0.1
            False discovery rate, between 0 and 1.

        Returns
        -------
        array of shape (n_samples,), bool
            True for selected rows. Which are selected depends on all rows of `X`.

        Raises
        ------
        InputError
            If `fdr` is not between 0 and 1, or the rows cannot be used.

        Warns
        -----
        DataWarning
            If there are too few training rows for any new row to be selected: with n of them no p-value is below
            1/(n + 1).

        References
        ----------
        .. [1] Y. Benjamini, Y. Hochberg, "Controlling the False Discovery Rate", Journal of the Royal Statistical Society
           B 57, 1995.
        .. [2] J. D. Storey, J. E. Taylor, D. Siegmund, "Strong Control, Conservative Point Estimation and Simultaneous
           Conservative Consistency of False Discovery Rates", Journal of the Royal Statistical Society B 66, 2004.
        .. [3] S. Bates, E. Candès, L. Lei, Y. Romano, M. Sesia, "Testing for Outliers with Conformal p-Values", Annals of
           Statistics 51, 2023.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import AnomalyDetector
        >>> rng = np.random.default_rng(0)
        >>> detector = AnomalyDetector(novelty=True).fit(rng.normal(size=(200, 2)))
        >>> detector.select([[0.0, 0.0], [9.0, 9.0], [0.3, -0.5]])
        array([False,  True, False])
        """
        check_is_fitted(self, "offset_")
        probability("fdr", fdr)
        if X is None:
            backend, p_values = Backend.of(self.p_values_), self._p_alone
        else:
            table, rows = self._enter(X)
            backend, p_values = table.backend, self._p_values(rows)
            n = self._references()
            if float(fdr) * (n + 1) < 1.0:
                what = "training rows" if self._groups is None else "groups of training rows"
                warn_about_answer(
                    f"no row can be selected at a false discovery rate of {float(fdr):g}: {n} {what} give no "
                    f"p-value below 1/{n + 1}; expected at least {math.ceil(1.0 / float(fdr)) - 1} {what}."
                )
        ordinary = len(p_values) if X is None or len(p_values) < FEWEST_FOR_STOREY else storey_number(p_values)
        return backend.array(p_values <= benjamini_hochberg(p_values, float(fdr), ordinary))

    def anomaly_probability(self, X: Any = None) -> Array:
        r"""Return the probability that a row is an anomaly: one less its local false discovery rate.

        P-values of ordinary rows are uniform. Where the p-values of a table are denser than that, the excess is of
        anomalies: with g the density of the p-values, estimated as a falling one from lower 95 % limits of their
        numbers, the probability is :math:`\max(0, 1 - 1/g(p))`. In a table without anomalies it is rarely above 0.5 for any row.
        Rows that p-values cannot tell from ordinary ones have the probability 0. It is the
        probability that the row does not come from the distribution of the bulk of the rows, as far as the fitted
        tail of that distribution holds; a row may be as unlikely as that and be no anomaly to its owner. Of training
        rows it is not calibrated to labels: on 22 tables of ADBench, 48 % of the rows with a probability above 0.8 are labelled
        as anomalies, and so are 12.5 % of those with a probability below 0.05. Of new rows with ``novelty=True`` it is: on 100
        tables of OddBench, 96 % of the rows above 0.8 are labelled as anomalies, and 7.4 % of those below 0.05.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), optional
            Rows; the training rows when left out. The share of anomalies is that among the training rows or, with
            ``novelty=True``, that among the rows of `X`, of which there have to be many then.

        Returns
        -------
        array of shape (n_samples,)
            In [0, 1).

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import AnomalyDetector
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> X[:5] += 9.0
        >>> AnomalyDetector(random_state=0).fit(X).anomaly_probability()[:7] > 0.5
        array([ True,  True,  True,  True,  True, False, False])
        """
        check_is_fitted(self, "offset_")
        own = to_numpy(self.p_values_)
        if X is None:
            return Backend.of(self.p_values_).array(anomaly_probabilities(own, self._p_alone))
        table, rows = self._enter(X)
        if self.novelty:
            p_values = self._p_values(rows)
            return table.answer(anomaly_probabilities(p_values, p_values, self._references()))
        return table.answer(anomaly_probabilities(own, np.exp(-self._tail.surprise(-self._score(rows), new=0.0))))

    def explain(self, X: Any) -> Explanation:
        r"""Explain which cells and which evidence make a row unlikely.

        Each cell is judged by the law of its column given the other cells of the row, as by :class:`CellwiseDetector`: for a row
        of the fit by a law without that row. Its excess is its surprisal less the mean of that under the law,

        .. math:: e_j = -\log p_j(x_j \mid x_{-j}) + \int p_j(y \mid x_{-j}) \log p_j(y \mid x_{-j})\, dy.

        Its rarity is the same by the frequencies of its column. The cells with the largest sum of excess and rarity
        are the reason. A row is of a rare kind if its cells fit each other: no excess reaches 2 nats or half the largest rarity.

        The laws are fitted when the first row is explained, to at most 1,000 distinct rows of the fit with 20 trees a column. In
        tables of more than 24 columns four cells of a row are judged that are rarest and four that are farthest from a line of
        the others, each given the 16 columns that go with it most.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; the answer for one never depends on the others.

        Returns
        -------
        Explanation
            Its arrays have the columns of X. Its `evidence` says what each kind of evidence adds to minus the score.

        Raises
        ------
        InputError
            If the rows cannot be used; the sentence says why and what to do.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import AnomalyDetector
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> AnomalyDetector(random_state=0).fit(X).explain([[0.0, 9.0], [-7.0, 0.0]]).top(k=1)
        [['column 1'], ['column 0']]
        """
        from isopleth.tasks.anomaly.explained_rows import explanation

        return explanation(self, X)

    def _excess_of_cells(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the excess of the cells of rows, (n, d), and that of numbers of rows of the fit, (m, p), as `explain` has it."""
        from isopleth.tasks.anomaly.explained_rows import excess_of_cells

        return excess_of_cells(self, X)

    def anomalies(self, X: Any, fdr: float = 0.1, explain: int = 0) -> Anomalies:
        """Judge the rows of a table and return the answer as a table, a picture or a page.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table of the fit, which is recognised and has its `p_values_` and `training_labels_`, or new rows, which
            have those of :meth:`p_values` and :meth:`predict`.
        fdr : float, default=0.1
            False discovery rate of the rows that are `certain`; see :meth:`select`.
        explain : int, default=0
            Number of least likely rows of which :meth:`explain` says which columns make them unlikely.

        Returns
        -------
        Anomalies
            With `table()`, `to_dict()`, `plot()` and `report(path)`. For new rows and ``novelty=True``, `at_least` has lower 95 %
            limits on the number of anomalies among the first rows, which hold for all lists at once, if ordinary new rows are
            independent draws from the distribution of the reference; after a fit with `groups`, each of another group.

        Raises
        ------
        InputError
            If the rows or parameters cannot be used.
        """
        from isopleth.tasks.anomaly.judged_table import anomalies

        return anomalies(self, X, fdr, explain)

    def anomalies_of_fit(self, names: list[str], cells: Any, fdr: float = 0.1) -> Anomalies:
        """Return the answer about the rows of the fit, whose cells need not be in memory.

        Parameters
        ----------
        names : list of str
            Names of the columns.
        cells : array-like of shape (n_samples, n_features)
            The rows as they are to be shown.
        fdr : float, default=0.1
            False discovery rate of the rows that are `certain`; see :meth:`select`.

        Returns
        -------
        Anomalies
        """
        from isopleth.tasks.anomaly.judged_table import anomalies_of_fit

        return anomalies_of_fit(self, names, cells, fdr)

    def plot(self, X: Any, ax: Any = None) -> Any:
        """Draw rows, the flagged ones numbered, among isopleths of two columns, and their scores.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table of the fit, which is recognised and has its `p_values_` and `training_labels_`, or new rows, which
            have those of :meth:`p_values` and :meth:`predict`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw the rows on; None draws rows and scores on a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The figure is ``ax.figure``.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return self.anomalies(X).plot(ax)
