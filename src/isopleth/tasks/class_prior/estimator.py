"""Estimator of the shares of classes among rows without labels."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isopleth.core.arrays import to_numpy
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError, listed, probability, warn_about_answer
from isopleth.core.progress import Progress, ReportsProgress
from isopleth.core.rows import merge_without_rounding
from isopleth.core.scales import ScaledColumns, deviations, refuse_sizes
from isopleth.core.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD
from isopleth.results.result import keeps_warnings
from isopleth.tables.checks import CheckedRows, TakesKinds, ends_of_times, enter, warn_of_times_apart
from isopleth.tables.given import Given
from isopleth.tables.row_encoding import RowEncoding
from isopleth.tasks.class_prior.groups import apart
from isopleth.tasks.class_prior.labels import checked_labels
from isopleth.tasks.class_prior.result import ClassPriors
from isopleth.tasks.class_prior.shares import (
    Calibrator,
    Shares,
    check_class_count,
    clearly_less,
    held_out_losses,
    strangeness,
)
from isopleth.tasks.classifier import (
    Fits,
    FoldMoments,
    SpanFeatures,
    balanced_subsample,
    in_random_order,
    stratified_folds,
)

# Largest ridge that is tried, over the number of labelled rows for classes of equal size, and the smaller ones as shares of
# it. With few rows a large ridge has less noise; classes that only a combination of columns separates need a small one.
_RIDGE, _SHARES_OF_RIDGE = 10.0, (0.1, 0.01, 0.001)
# Distance of the unlabelled rows from the mixture, in standard deviations, that causes a warning.
_STRANGE = 6.0
# Labelled rows that scores are fitted to, and rows without labels that all fits score, at most: of longer tables a sample is
# used. All labelled rows say what the scores of a class are, and all other rows enter the shares, each by one fit.
MOST_ROWS = 20_000
# Rows of a long table that all fits score, to measure how much the fits differ.
_ROWS_OF_ALL_FITS = 5_000
# With weight 0 a class would not be learned, and some classifiers fail or return wrong classes.
_LEAST_SHARE = 1e-3


class ClassPriorEstimator(ReportsProgress, TakesKinds, BaseEstimator):
    r"""Shares of classes among unlabelled rows, which may differ from the shares among the labelled rows.

    The unlabelled rows are assumed to be a mixture :math:`\sum_k \pi_k p_k` of the densities of the classes. The task is that
    of section 4.2.1 of [1]_, :math:`\min_\pi \int (\sum_k \pi_k p_k - p)^2`, with two changes. First, the densities are compared
    by bounded scores :math:`s(x)`, fitted to differences of the classes relative to the mixture of all,

    .. math:: \theta_k = (C + \lambda I)^{-1} (\mu_k - \mu),

    where C is the covariance, :math:`\mu_k, \mu` are the means of kernel features over the labelled rows, with equal weights of
    the classes: the least-squares density difference with this mixture in place of Lebesgue measure. A logistic function, fitted
    to held-out rows, bounds the scores, and they are adapted to the estimated shares so that their variance is smallest there.
    Second, the mean scores of the classes are computed from held-out rows. The estimate is

    .. math:: \min_\pi\; (m - A \pi)^\top S^{-1} (m - A \pi) + K (K + 1)\, |\pi - \tfrac1K|^2,
        \qquad \pi \ge 0, \quad \sum_k \pi_k = 1

    for the mean m of the scores over the unlabelled rows, their held-out means A over the classes and the covariance S of
    the noise of both. The second term is the precision of a uniform distribution on the simplex; it matters only if rows are
    few or classes similar. Unlabelled rows are scored by all the fits that score the held-out rows. Two classes have a closed
    form, more are a quadratic program.

    Parameters
    ----------
    alpha : float, optional
        The ridge :math:`\lambda` over the trace of C; None is :math:`10/n`, where :math:`n = K^2 / \sum_k n_k^{-1}` is an
        effective number of labelled rows, dominated by small classes; or a tenth, a hundredth or a thousandth of it, if
        held-out rows are then classified better by more than a standard error.
    centers : int, default=500
        Largest number of labelled rows that are centres of kernels, drawn at random and evenly from the classes.
    categorical : None, name, or sequence of names or numbers of columns, optional
        Columns of numbers that are categories.
    compare_missing : bool, default=True
        Whether missing cells tell classes apart. If not, they are drawn from the known cells of their columns.
    memory_limit : float, default=2**30
        Bytes that matrices and blocks of rows may take together, without the scores of ten fits for every unlabelled row.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    random_state : int, RandomState or None
        Seed of the folds and of the choice of centres.
    verbose : bool or int, default=False
        Whether to show the progress of the sums and scores of labelled rows on standard error.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes; a NumPy array if they are not numbers.
    alpha_ : float
        The ridge.
    centers_ : array of shape (b, n_features)
        Centres of the kernels.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had any.

    Warns
    -----
    DataWarning
        For constant columns, for unlabelled rows that are not a mixture of the classes, and for words and gaps that no labelled
        row has.

    See Also
    --------
    LSDD : The difference of two densities.

    Notes
    -----
    Rows and labels may be tensors or arrays of another library. The computation is done in NumPy; fitted numeric arrays are in
    the library and on the device of the rows.

    Beyond 20,000 labelled rows the scores are fitted to 20,000 of them, as many of each class as it has, drawn by what the rows
    hold; the means of the scores, and so the shares and their intervals, are those of all labelled rows. Beyond 20,000
    unlabelled rows each is scored by one of the fits, drawn likewise, in the place of all ten.

    The kernel is :math:`\exp(-\tfrac{1}{2d} \sum_j |x_j - y_j|)` of standardised columns. It is characteristic: the mean scores
    of two different classes differ for any ridge. The shares are therefore consistent as the numbers of labelled and unlabelled
    rows grow, as far as `centers` resolves the classes. If a class was not labelled, or the densities of classes have changed,
    the shares are wrong; the warning detects rows that are far from the labelled rows, but not every such change.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import ClassPriorEstimator
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["healthy", "ill"], 50)
    >>> X = rng.normal(size=(100, 3)) + 2.0 * (y == "ill")[:, None]
    >>> new = rng.normal(size=(200, 3)) + 2.0 * (np.arange(200) < 20)[:, None]  # 10 % of them are ill
    >>> priors = ClassPriorEstimator(random_state=0).fit(X, y).estimate(new)
    >>> bool(priors.lower[1] < 0.1 < priors.upper[1])
    True
    """

    _use_of_limits = "merge"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [None, Interval(Real, 0, None, closed="neither")],
        "centers": [Interval(Integral, 1, None, closed="left")],
        "categorical": [None, str, "array-like"],
        "compare_missing": ["boolean"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        alpha: float | None = None,
        centers: int = 500,
        categorical: Any = None,
        compare_missing: bool = True,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.alpha = alpha
        self.centers = centers
        self.categorical = categorical
        self.compare_missing = compare_missing
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit scores that separate the classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Labelled rows, converted to float64. Frames may hold words, truth values, times and missing cells.
        y : array-like of shape (n_samples,)
            Class of each row: numbers, strings, booleans or dates; at least two classes of at least two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If rows, labels or parameters cannot be used; the sentence says which and what to do.
        """
        self._validate_params()
        self.__dict__.pop("_held_out", None)  # a fit that fails leaves no mixture of two models
        table = enter(self, X, reset=True, min_samples=2, missing=True)
        self._least, self._most = ends_of_times(table.rows, table.columns)
        # A cell that no labelled row lacks says nothing of the class.
        self._encoding = RowEncoding.of_table(self, table, compared=self.compare_missing, far=False)
        seed = int(check_random_state(self.random_state).randint(2**31))
        self._filling = np.random.default_rng([seed, 1]).integers(2**31, size=2)
        rows = self._encoding(self._encoding.filled(table.rows, int(self._filling[0])))
        self.classes_, labels, counts = checked_labels(y, len(rows))
        check_class_count(len(counts), Budget.of(self))
        keep = self._encoding.varying(self, rows)
        balance = (1.0 / counts)[labels]
        centred = ScaledColumns.centred(rows, keep)
        self._frame = centred.scaled(self._column_scale(centred.centre(rows), balance, keep, table.rows))
        # Centres and folds are drawn in an order that is the same however the rows were given.
        z = self._frame.enter(rows)
        order = in_random_order(np.column_stack([z, labels]), seed)
        rows, z, labels = rows[order], z[order], labels[order]
        chosen = balanced_subsample(labels, MOST_ROWS, seed)
        drawn = rows[chosen][balanced_subsample(labels[chosen], self.centers, seed)]
        self.centers_ = merge_without_rounding(drawn, np.ones(len(drawn)))[0]
        folds = stratified_folds(labels, seed)
        scores = self._fit_scores(z[chosen], labels[chosen], folds[chosen])
        if len(chosen) < len(z):  # the others have no part in any fit: each is scored by one, as held-out rows are
            scores = self._one_each(z, folds, "scores of labelled rows")
        self._held_out, self._typical = self._calibrator(scores[:, :-1]), scores[:, -1]
        self._rows, self._labels = rows, labels
        self._with_gaps = table.missing.any(axis=0)
        return table.finish(self)

    def _fit_scores(self, z: np.ndarray, labels: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """Fit scores that separate the classes, and return those of the same rows by fits without their folds."""
        counts = np.bincount(labels)
        passes = 2 if self.alpha is not None else 2 + len(_SHARES_OF_RIDGE)
        bar = Progress("scores that separate the classes", passes * len(z), self.verbose)
        with ONE_BLAS_THREAD, bar as tick:  # the systems of the folds are small
            features = SpanFeatures.of(self._frame.enter(self.centers_), Budget.of(self))
            sums = FoldMoments.of(features, z, labels, folds, tick)
            largest = _RIDGE * float((1.0 / counts).sum()) / len(counts) ** 2
            self.alpha_ = largest if self.alpha is None else float(self.alpha)
            self._fits = Fits.of(features, sums, self.alpha_)
            scores = self._fits.held_out(z, folds, tick)
            self._calibrator = Calibrator.of(scores[:, :-1], labels)
            if self.alpha is None:
                losses = held_out_losses(self._calibrator(scores[:, :-1]), labels)
                for share in _SHARES_OF_RIDGE:
                    fits = Fits.of(features, sums, share * largest)
                    found = fits.held_out(z, folds, tick)
                    calibrator = Calibrator.of(found[:, :-1], labels)
                    fewer = held_out_losses(calibrator(found[:, :-1]), labels)
                    if clearly_less(fewer, losses):
                        self.alpha_, self._fits, self._calibrator = share * largest, fits, calibrator
                        losses, scores = fewer, found
        return scores

    def _one_each(self, z: np.ndarray, folds: np.ndarray, label: str) -> np.ndarray:
        """Return scores of many rows, each by one of the fits."""
        with ONE_BLAS_THREAD, Progress(label, len(z), self.verbose) as tick:
            return self._fits.one_each(z, folds, tick)

    def _column_scale(self, rows: np.ndarray, balance: np.ndarray, keep: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Return the scale by which distances in each coordinate are divided."""
        encoding = self._encoding
        with np.errstate(over="ignore", invalid="ignore"):
            scale = deviations(rows, balance)
        if not encoding.is_plain:
            known = encoding.spreads(given, lambda column: column.std(axis=0))[keep]
            # The kernel divides distances by the number of coordinates; several coordinates of a column count as one column.
            scale = known * (encoding.kept_columns(keep) / len(scale))
            # Two unlike words differ in two coordinates.
            scale = np.where(encoding.of_words[keep], 2.0 * scale, scale)
        refuse_sizes(scale, keep, encoding.name_at)
        return scale

    @keeps_warnings
    def estimate(
        self, X: Any, confidence_level: float = 0.95, *, population: bool = False, by: Any = None
    ) -> ClassPriors:
        """Estimate the shares of the classes among unlabelled rows, all of them and those of each group.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Unlabelled rows, one or more.
        confidence_level : float, default=0.95
            Confidence level of the interval for each share. For two classes it contains the shares that a test does not
            reject. For more it is Student's interval around the estimate without the second term, with a standard deviation
            by the delta method and the degrees of freedom of Welch and Satterthwaite.
        population : bool, default=False
            Whether intervals are for the shares in the population from which the rows were drawn. If not, they are for the
            shares among these rows, which differ from those of the population by chance.
        by : str or array-like of shape (n,), optional
            Column of the frame X, or the group of each row: the shares among the rows of each group are estimated, too. The rows
            of a class are assumed to be alike in all groups, so that this column must not be one of those of `fit`.

        Returns
        -------
        ClassPriors
            Shares with intervals; with `by` those of the groups are in its ``groups``, and in its table.

        Raises
        ------
        InputError
            If the rows or groups cannot be used, or `confidence_level` is not between 0 and 1.

        Warns
        -----
        DataWarning
            If the mean kernel value of these rows, or of those of a group, to the labelled rows differs from that of the
            estimated mixture.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import ClassPriorEstimator
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(["healthy", "ill"], 50)
        >>> X = rng.normal(size=(100, 2)) + 3.0 * (y == "ill")[:, None]
        >>> new = rng.normal(size=(200, 2)) + 3.0 * (np.arange(200) % 10 == 0)[:, None]  # 10 % of them are ill
        >>> region = np.where(np.arange(200) % 2, "south", "north")  # all of them in the north
        >>> found = ClassPriorEstimator(random_state=0).fit(X, y).estimate(new, by=region)
        >>> bool(found.groups["south"].upper[1] < found.groups["north"].lower[1])
        True
        """
        probability("confidence_level", confidence_level)
        rows, name, groups = apart(Given.of(X), by, getattr(self, "feature_names_in_", ()))
        scores, several = self._scores_for_shares(rows)
        if groups is not None and len(groups) != len(scores):
            raise InputError(f"by has {len(groups)} entries; expected one a row, {len(scores)}.", parameter="by")
        overall = self._shares(scores, several, float(confidence_level), population)
        if groups is None:
            return overall.like(X)
        members = {str(group): np.flatnonzero(groups == group) for group in np.unique(groups)}
        each = {
            group: self._shares(
                scores[here], several, float(confidence_level), population, f" of the group {group!r}"
            ).like(X)
            for group, here in members.items()
        }
        return replace(overall, by=name, groups=each).like(X)

    def _shares(
        self, scores: np.ndarray, several: np.ndarray | None, level: float, population: bool, whose: str = ""
    ) -> ClassPriors:
        """Return the shares among rows of these scores, and warn if they are no mixture of the classes."""
        some = None if several is None else self._calibrator(several[..., :-1])
        found = Shares.of(self._held_out, self._labels, self._calibrator(scores[..., :-1]), some)
        typical = scores[..., -1].mean(axis=1)
        if strangeness(self._typical, self._labels, typical, found.priors) > _STRANGE:
            warn_about_answer(
                f"these rows{whose} are no mixture of the labelled classes: a class may be missing among the labels, or the "
                "classes may have changed; the shares are those of the nearest mixture."
            )
        lower, upper = found.intervals(level, population=population).T
        covariance = found.covariance(population=population)
        classes = to_numpy(self.classes_)
        return ClassPriors(classes, found.priors, lower, upper, covariance, level, len(scores), population)

    def predict(self, X: Any, priors: ClassPriors | None = None) -> Any:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Rows.
        priors : ClassPriors, optional
            Result of :meth:`estimate` for the rows that these rows belong to. By default the classes have the shares that they
            have among the labelled rows, as for other classifiers.

        Returns
        -------
        array of shape (n,)
            Classes; a NumPy array if they are not numbers.

        Raises
        ------
        InputError
            If the rows cannot be used, or `priors` is not a result of :meth:`estimate`.

        See Also
        --------
        reweight : Another classifier, adapted to the estimated shares.
        """
        table, probabilities = self._probabilities(X, priors)
        classes = to_numpy(self.classes_)[probabilities.argmax(axis=1)]
        return table.answer(classes) if classes.dtype.kind in "biuf" else classes

    def predict_proba(self, X: Any, priors: ClassPriors | None = None) -> Any:
        r"""Return the probability of each class for each row.

        They are :math:`\pi_k q_k(x) / \sum_l \pi_l q_l(x)`, where :math:`q_k` is the probability of class k if all classes had
        the same share, calibrated on labelled rows that were held out.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Rows.
        priors : ClassPriors, optional
            Shares :math:`\pi`, as for :meth:`predict`.

        Returns
        -------
        array of shape (n, K)
            Probabilities, in the order of ``classes_``.

        Raises
        ------
        InputError
            As for :meth:`predict`.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import ClassPriorEstimator
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], 50)
        >>> X, new = rng.normal(size=(100, 1)) + 2.0 * y[:, None], rng.normal(size=(200, 1))  # no row of class 1
        >>> estimator = ClassPriorEstimator(random_state=0).fit(X, y)
        >>> plain, adapted = estimator.predict(new), estimator.predict(new, estimator.estimate(new))
        >>> bool(adapted.mean() < plain.mean())
        True
        """
        table, probabilities = self._probabilities(X, priors)
        return table.answer(probabilities)

    def _probabilities(self, X: Any, priors: ClassPriors | None) -> tuple[CheckedRows, np.ndarray]:
        table, scores = self._scored(X)
        shares = np.bincount(self._labels) / len(self._labels) if priors is None else self._checked(priors).priors
        joint = self._calibrator(scores[..., :-1]).mean(axis=1) * shares
        return table, joint / joint.sum(axis=1, keepdims=True)

    def _scored(self, X: Any) -> tuple[CheckedRows, np.ndarray]:
        """Return the table of rows and their scores by all fits, of shape (n, fits, K + 1)."""
        table, z = self._entered(X)
        with ONE_BLAS_THREAD:
            return table, self._fits(z)

    def _entered(self, X: Any) -> tuple[CheckedRows, np.ndarray]:
        """Return the table of rows, and the rows as the fits take them."""
        check_is_fitted(self, "_held_out")
        table = enter(self, X, missing=True)
        self._warn_of_new_gaps(table.rows)
        warn_of_times_apart(table, self._least, self._most, "classes are told apart by it")
        return table, self._frame.enter(self._encoding(self._encoding.filled(table.rows, int(self._filling[1]))))

    def _scores_for_shares(self, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return scores (n, fits, K + 1) by all fits; of many rows by one fit each, and those of some of them by all fits."""
        z = self._entered(X)[1]
        if len(z) <= MOST_ROWS:
            with ONE_BLAS_THREAD:
                return self._fits(z), None
        order = in_random_order(z, int(self._filling[0]))
        folds = np.empty(len(z), dtype=np.intp)
        folds[order] = np.arange(len(z)) % len(self._fits.offsets)
        scores = self._one_each(z, folds, "scores of rows without labels")
        with ONE_BLAS_THREAD:
            return scores[:, None], self._fits(z[np.sort(order[:_ROWS_OF_ALL_FITS])])

    def _checked(self, priors: ClassPriors) -> ClassPriors:
        """Return shares of classes; refuse those of other classes."""
        if not isinstance(priors, ClassPriors) or not np.array_equal(priors.classes, to_numpy(self.classes_)):
            raise InputError(
                "priors is no estimate of the shares of the classes that y had at fit; pass what estimate answered."
            )
        return priors

    def _warn_of_new_gaps(self, rows: np.ndarray) -> None:
        """Warn of columns with missing cells that had none at fit."""
        new = np.isnan(rows).any(axis=0) & ~self._with_gaps
        if new.any():
            names = [repr(cell.name) for cell in self._encoding.cells if new[cell.place]]
            warn_about_answer(
                f"cells are missing in {listed(names)}, in which no labelled row lacks one; so they cannot tell classes apart."
            )

    def reweight(self, classifier: Any, priors: ClassPriors) -> Any:
        r"""Fit a classifier to the labelled rows with weights that give the classes other shares.

        A clone of `classifier` is fitted with the weight :math:`\pi_k / (n_k/n)` on each row of class k, as the paper does with
        regularised least squares; shares below 0.001 count as 0.001. Adjusting predicted probabilities instead would need a
        calibrated classifier, as :meth:`predict` is. The rows are an array without column names, in the order at :meth:`fit`.
        Words are columns of zeros and equal numbers, one for each word, and missing numbers are medians beside an indicator.

        Parameters
        ----------
        classifier : scikit-learn classifier
            One that takes `sample_weight`, or a pipeline that ends in one.
        priors : ClassPriors
            Result of :meth:`estimate`.

        Returns
        -------
        classifier
            The fitted clone.

        Raises
        ------
        InputError
            If `classifier` does not take weights, or `priors` is not a result of :meth:`estimate`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import RidgeClassifier
        >>> from isopleth import ClassPriorEstimator
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], 50)
        >>> X, new = rng.normal(size=(100, 1)) + 2.0 * y[:, None], rng.normal(size=(200, 1))  # no row of class 1
        >>> estimator = ClassPriorEstimator(random_state=0).fit(X, y)
        >>> plain = RidgeClassifier().fit(X, y)
        >>> weighted = estimator.reweight(plain, estimator.estimate(new))
        >>> bool(weighted.predict(new).mean() < plain.predict(new).mean())
        True
        """
        check_is_fitted(self, "_held_out")
        shares = np.maximum(self._checked(priors).priors, _LEAST_SHARE)
        last = classifier.steps[-1] if isinstance(classifier, Pipeline) else ("", classifier)
        if not (hasattr(last[1], "predict") and is_classifier(last[1]) and has_fit_parameter(last[1], "sample_weight")):
            raise InputError(
                f"{type(last[1]).__name__} is no classifier that takes sample_weight; pass one, such as RidgeClassifier()."
            )
        name = f"{last[0]}__sample_weight" if last[0] else "sample_weight"
        weight = (shares / (np.bincount(self._labels) / len(self._labels)))[self._labels]
        return clone(classifier).fit(self._rows, to_numpy(self.classes_)[self._labels], **{name: weight})
