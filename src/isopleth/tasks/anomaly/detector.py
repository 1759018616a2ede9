"""Which rows are unlikely, and how sure that is."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import Array, Backend, to_backend, to_numpy
from isopleth.entry import check_rows, plain_names, varying_columns, warn_few_rows
from isopleth.frame import Frame
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.operators.threads import DEFAULT_N_JOBS, effective_n_jobs, interruptible
from isopleth.rows import merge_rows
from isopleth.tasks.anomaly.committee import COMMON_VALUE
from isopleth.tasks.anomaly.conformal import benjamini_hochberg, cross_conformal, tail_p_values
from isopleth.tasks.anomaly.explanation import Explanation
from isopleth.tasks.anomaly.moves import Moves, best_moves, values_to_try
from isopleth.tasks.anomaly.panel import Limits, Panel, committees_without_folds, folds_of_distinct

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class AnomalyDetector(OutlierMixin, BaseEstimator):
    r"""Rows of low density, ranked by many small-sample densities, with p-values.

    A density that is tuned to fit all rows well also fits a cluster of anomalies. The detector instead fits SOSREP
    densities :math:`p_b = f_b^2/Z_b` [1]_ to `n_estimators` small random samples of the rows (8 to `max_samples`, beyond
    8 at most an eighth of the rows), and scores a row by the mean of :math:`\log p_b`, the logarithmic opinion pool. Every
    other density sees all columns, the rest a random subset of them. Columns are standardised, the kernel is Laplacian
    with a length scale of 1/16 of the sample's median distance, and rows that are repeated a few times count once.

    Rows are parted in five folds, up to 16 copies of a row kept together, and a fifth of the densities is fitted without each
    fold: training rows are judged by densities that have not seen them. Columns that are constant at fit are left out, and
    what new rows have there is not looked at.

    Rows may be tensors, or arrays of another library. What is done here is many small computations, so it is done in NumPy;
    fitted arrays are in the library and on the device of the rows of the fit, answers in those of the rows asked about.

    Parameters
    ----------
    contamination : "auto" or float, default="auto"
        Share of the training rows to call anomalies. "auto" applies the Benjamini-Hochberg procedure, once, to the
        p-values of the training rows, at `false_discovery_rate`. It may flag none; the threshold for new rows then
        lies just above the least likely training row.
    false_discovery_rate : float, default=0.1
        For ``contamination="auto"``: the share of ordinary rows to accept among those flagged.
    n_estimators : int, default=200
        Number of densities.
    max_samples : int, default=128
        Largest sample.
    memory_limit : float, default=2**30
        Bytes of scratch.
    n_jobs : int or None, default=-1
        Threads; -1 is all processors, None is one or what joblib.parallel_config says.
    random_state : int, RandomState or None
        Seed of folds and samples.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``; negative for anomalies.
    training_scores_ : array of shape (n_samples,)
        Scores of the training rows by the densities fitted without their fold.
    p_values_ : array of shape (n_samples,)
        p-values of the training rows: the share of training rows as unlikely and, beyond the most extreme eighth, a
        tail fitted to the others. Ranks alone could not flag a row of the table that they come from.
    training_labels_ : array of shape (n_samples,)
        -1 for training rows flagged as anomalies, 1 for the others. Where "auto" flags none, :meth:`predict` still gives
        -1 for the least likely training row, since its threshold has to lie somewhere.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Sobolev Space Regularised Pre Density Models", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = AnomalyDetector(random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "false_discovery_rate": [Interval(Real, 0, 1, closed="neither")],
        "n_estimators": [Interval(Integral, 5, None, closed="left")],
        "max_samples": [Interval(Integral, 4, None, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        contamination: float | str = "auto",
        false_discovery_rate: float = 0.1,
        n_estimators: int = 200,
        max_samples: int = 128,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
    ) -> None:
        self.contamination = contamination
        self.false_discovery_rate = false_discovery_rate
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the densities and set the threshold.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, anomalies among them or not.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows cannot be used; the sentence says why and what to do.
        """
        self._validate_params()
        backend = Backend.of(X)
        self.__dict__.pop("offset_", None)  # a fit that fails leaves no mixture of two models
        X = check_rows(self, X, reset=True, min_samples=2)
        frame = interruptible(100.0 * X.size, Frame.centred, X, varying_columns(self, X))
        # Columns of any size become numbers of a size about 1, so that squares neither over- nor underflow.
        size = np.abs(frame.centre(X))
        middle = np.median(size, axis=0)
        self._frame = frame.scaled(np.where(middle > 0.0, middle, size.max(axis=0)))
        self._values = values_to_try(X)
        # Merged in the frame, where rows that differ by less than their digits have become one.
        rows, copies, place = interruptible(100.0 * X.size, merge_rows, self._frame.enter(X), np.ones(len(X)))
        warn_few_rows(*rows.shape)
        seed = check_random_state(self.random_state).randint(2**31)
        fold = folds_of_distinct(copies, seed)
        sizes = (self.n_estimators, self.max_samples)
        committees = committees_without_folds(rows, copies, fold, *sizes, seed, self._limits.threads)
        self._panel = Panel.of(committees, rows, fold, place, self._limits)
        self._judge(rows, fold, place)
        self.p_values_ = tail_p_values(-self.training_scores_)
        self._set_offset()
        to_backend(self, backend)
        return self

    def _judge(self, rows: np.ndarray, fold: np.ndarray, place: np.ndarray) -> None:
        """Scores of the training rows by the committees that have not seen them."""
        scores = self._panel.held_out_scores(rows, fold, self._limits)
        count = len(scores)
        self.training_scores_ = np.nanmean(scores, axis=0)[place]
        dealt = fold[place]
        common = np.flatnonzero(dealt == COMMON_VALUE)
        common = common[np.argsort(place[common], kind="stable")]  # dealt value by value, in whatever order rows came
        dealt[common] = np.arange(len(common)) % count
        self._held_out = [np.sort(-scores[k, place[dealt == k]]) for k in range(count)]

    def _set_offset(self) -> None:
        scores = self.training_scores_
        if self.contamination == "auto":
            flagged = self.p_values_ <= benjamini_hochberg(self.p_values_, self.false_discovery_rate)
        else:
            flagged = scores < np.percentile(scores, 100.0 * float(self.contamination))
        self.training_labels_ = np.where(flagged, -1, 1)
        last = scores[flagged].max() if flagged.any() else scores.min()
        above = scores[scores > last]
        self.offset_ = 0.5 * float(last + above.min()) if len(above) else float(last)

    @property
    def _limits(self) -> Limits:
        return Limits(float(self.memory_limit), effective_n_jobs(self.n_jobs))

    def _enter(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "offset_")
        return self._frame.enter(check_rows(self, X, reset=False))

    def _score(self, rows: np.ndarray) -> np.ndarray:
        return self._panel.score(rows, self._limits)

    def score_samples(self, X: Any) -> Array:
        """Mean log density of each row over the samples, less that of a median training row.

        A row equal to a training row has that row's score, by the densities that have not seen it: any other threshold than
        one between such scores would flag new ordinary rows in bulk where columns are many.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; the score of one never depends on the others.

        Returns
        -------
        array of shape (n_samples,)
            In nats; the lower, the less likely.
        """
        backend = Backend.of(X)
        return backend.array(self._score(self._enter(X)))

    def decision_function(self, X: Any) -> Array:
        """``score_samples(X) - offset_``: negative for anomalies.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        backend = Backend.of(X)
        return backend.array(self._score(self._enter(X)) - self.offset_)

    def predict(self, X: Any) -> Array:
        """-1 for anomalies, 1 for the others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,), int
        """
        backend = Backend.of(X)
        return backend.array(np.where(self._score(self._enter(X)) - self.offset_ < 0.0, -1, 1))

    def p_values(self, X: Any) -> Array:
        r"""How sure: cross-conformal p-values of new rows.

        Each fold of training rows is compared with the new row under the densities that were fitted without it; the
        p-value is the share of rows at least as unlikely, the new one counted. If the row comes from the same
        distribution as the n training rows, :math:`P(p \le t) \le 2t + 8(1 - t)/(n + 5)` for every t; in simulation
        it is about t. The bound is for rows without repeats; repeated values make p-values larger. So do anomalies among
        the training rows that are less likely than ordinary ones. The
        smallest possible is 1/(n + 1).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            New rows. For the training rows themselves see `p_values_`.

        Returns
        -------
        array of shape (n_samples,)
            In (0, 1].
        """
        backend = Backend.of(X)
        return backend.array(self._p_values(self._enter(X)))

    def _p_values(self, rows: np.ndarray) -> np.ndarray:
        """p-values of new rows of the frame."""
        return cross_conformal(self._held_out, list(-self._panel.scores(rows, self._limits)))

    def explain(self, X: Any) -> Explanation:
        r"""Which columns make a row unlikely: what its score would gain if one of them had its best value.

        For row x and column j the rise is :math:`\max_v s(x_1, \ldots, v, \ldots, x_d) - s(x)`, s being
        :meth:`score_samples` by the densities that judge x: for a training row those that have not seen it. A cell that is
        extreme has a large rise, and so has one that does not go with the others; where a relation between two columns is
        broken, both have.

        The values v are up to 64 that the column has among the training rows, spread by rank from the least to the greatest.
        Between them a score may be a little higher; but values that occur are what counts and codes can be, and are the same
        for every row. A column of 0 and 1 that stands for one of several categories is moved like any other, so that a row
        may be moved to two categories at once, or to none.

        The score is evaluated once for each row, column and value: about 0.03 s for a new row of 30 columns, a fifth of that
        for a training row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; the answer for one never depends on the others.

        Returns
        -------
        Explanation
            Its arrays have the columns of X; one that was constant at fit has a rise of 0 and its value at fit as the best.

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
        check_is_fitted(self, "offset_")
        X = check_rows(self, X, reset=False)
        rows, keep = self._frame.enter(X), self._frame.keep
        moves = Moves.of(self._values[:, keep], self._frame.enter(self._values))
        panel = self._panel
        gained, place = best_moves(moves, rows, panel.judge_of(rows), panel.committees, *self._limits)
        rise, best = np.zeros(X.shape), np.tile(self._values[0], (len(X), 1))
        rise[:, keep] = gained
        moved = np.take_along_axis(self._values[:, keep], place, axis=0)
        best[:, keep] = np.where(gained > 0.0, moved, X[:, keep])
        return Explanation(plain_names(self), X, rise, best, self._score(rows))

    def plot(self, X: Any) -> Figure:
        """Draw rows, the least likely ringed, between isopleths of two columns, and their scores.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table of the fit, which is recognised and has its `p_values_` and `training_labels_`, or new rows, which
            have those of :meth:`p_values` and :meth:`predict`.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_anomalies

        check_is_fitted(self, "offset_")
        X = check_rows(self, X, reset=False)
        rows = self._frame.enter(X)
        scores, known = self._score(rows), to_numpy(self.training_scores_)
        if np.shape(scores) == np.shape(known) and np.allclose(scores, known, rtol=1e-9):
            p_values, labels = to_numpy(self.p_values_), to_numpy(self.training_labels_)
        else:
            p_values, labels = self._p_values(rows), np.where(scores < self.offset_, -1, 1)
        return plot_anomalies(X, plain_names(self), scores, p_values, labels)
