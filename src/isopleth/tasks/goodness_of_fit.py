"""Stein test: whether a sample is from a density whose score is known, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.dependence import Dependence
from isopleth.core.errors import InputError, probability, warn_about_answer, whole_number
from isopleth.core.laws import normal_scores
from isopleth.core.p_values import LEVEL, permutation_pvalue
from isopleth.core.parameters import check_memory_limit, given_numbers
from isopleth.core.progress import Progress, checked_verbose
from isopleth.core.scales import is_auto, median
from isopleth.core.threads import DEFAULT_N_JOBS, map_threads, slices
from isopleth.frames import Frame
from isopleth.frames.compose import stein_transforms
from isopleth.kernels import Kernel, get_kernel
from isopleth.results.charts import Chart, Series
from isopleth.results.keys import NUMBER, Fact, Key
from isopleth.results.result import Result, ShownTable, keeps_warnings, shown
from isopleth.results.text import counted, ordinal
from isopleth.tables.checks import enter
from isopleth.tables.given import Given
from isopleth.tasks.density_families import FittedFamily, family_of, fitted_behind, is_density, is_family

# Multiples of the median distance whose discrepancies are compared. A fit takes away what wide scales show of mean and
# covariance, and of smooth families narrow ones show little: fewer scales have more power.
_FACTORS, _FITTED_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0), (0.5, 1.0, 4.0)

# Weight of the mean of the scores where the largest ones are equal.
_TIES = 1e-6

# Pairs of rows that a thread takes at once.
_PAIRS = 2**18

# Arrays over pairs that exist at once.
_ARRAYS = 8

# Signs change with a probability of one over so many times the rows that say as much as one independent row. Slower signs keep
# the level better and have less power: of 280 correct chains of seven kinds 7 % were rejected at 0.05.
_SLOW = 4.0

# Bins of the statistics of random signs in the picture.
_BINS = 30


class SteinTest(BaseEstimator):
    """Holder of the column names while rows are checked; its name occurs in messages of scikit-learn."""


@dataclass(frozen=True, eq=False, repr=False)
class SteinTestResult(Result):
    """Result of :func:`stein_test`.

    Parameters
    ----------
    statistic : float
        Largest score of the discrepancies. Each score is standard normal under random signs, or among samples of the fit.
    pvalue : float
        Share of the vectors of signs or samples, the observed one and the random ones, whose statistic is no smaller.
    length_scales : ndarray of shape (k,)
        Length scales, in the coordinates of the frame.
    discrepancies : ndarray of shape (k,)
        Unbiased estimates of the squared kernel Stein discrepancy for each length scale, in the same coordinates.
    kernel_scores : ndarray of shape (k,)
        The normal score of each discrepancy.
    resampled : ndarray of shape (n_resamples,)
        Statistics of the random vectors of signs, or of the samples.
    n_rows : int
        Number of rows of the sample.
    flip : float, default=0.5
        Probability with which random signs changed from one row to the next.
    independent_rows : float, optional
        Number of independent rows that say as much about a mean as the sample does; `n_rows` by default.
    family : str, optional
        Name of the family whose parameters were fitted; None if the score was known.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import stein_test
    >>> result = stein_test(np.random.default_rng(0).normal(size=(100, 1)), lambda X: -X, random_state=0)
    >>> result.pvalue > 0.05, len(result.length_scales)
    (True, 5)
    """

    statistic: float
    pvalue: float
    length_scales: np.ndarray
    discrepancies: np.ndarray
    kernel_scores: np.ndarray
    resampled: np.ndarray
    n_rows: int
    flip: float = 0.5
    independent_rows: float | None = None
    family: str | None = None

    def __post_init__(self) -> None:
        if self.independent_rows is None:
            vars(self)["independent_rows"] = float(self.n_rows)

    kind = "stein_test"
    title = "Fit of a sample to a score"

    @property
    def n_resamples(self) -> int:
        """Number of random vectors of signs, or of samples of the fitted density."""
        return len(self.resampled)

    @property
    def _compared(self) -> tuple[str, str]:
        """Things that the sample is compared with, and the name of one of them."""
        return (
            ("random signs", "vector of signs") if self.family is None else ("samples of the fit", "sample of the fit")
        )

    @property
    def length_scale(self) -> float:
        """The length scale with the largest score."""
        return float(self.length_scales[np.argmax(self.kernel_scores)])

    def __repr__(self) -> str:
        return f"SteinTestResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g})"

    def _columns(self) -> dict[str, Any]:
        """Return a row for each length scale."""
        return {"length_scale": self.length_scales, "discrepancy": self.discrepancies, "score": self.kernel_scores}

    facts: ClassVar[dict[str, Fact]] = {
        "pvalue": Fact("number", "p-value of the test", lambda found: found.pvalue),
        "statistic": Fact(NUMBER, "its statistic", lambda found: found.statistic),
        "rows": Fact("integer", "rows of the sample", lambda found: found.n_rows),
        "independent_rows": Fact("number", "independent rows that say as much", lambda found: found.independent_rows),
        "flip": Fact("number", "probability that a sign differs from the one before", lambda found: found.flip),
        "resamples": Fact(
            "integer", "number of random vectors of signs, or of samples", lambda found: found.n_resamples
        ),
        "family": Fact("string or null", "family that was fitted; null for a known score", lambda found: found.family),
        "length_scale": Fact(
            NUMBER, "the length scale with the largest score; null for distances", lambda found: found.length_scale
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "length_scale": Key(NUMBER, "length scale of the kernel; null for distances from the centre"),
        "discrepancy": Key(NUMBER, "kernel Stein discrepancy"),
        "score": Key(NUMBER, "the discrepancy in standard deviations of those of random signs or samples"),
    }

    def _sentences(self) -> list[str]:
        rows = counted(self.n_rows, "row")
        density = "the density" if self.family is None else self.family
        if self.pvalue > LEVEL:
            first = f"No difference between the sample of {rows} and {density} is shown: p = {self.pvalue:.3g}."
            return [first, "That is no proof that the sample is from it; small samples show large differences only."]
        return [
            f"The sample of {rows} is not from {density}{' with this score' if self.family is None else ', as fitted to it'}: "
            f"p = {self.pvalue:.3g}.",
            f"The difference is clearest at a length scale of {self.length_scale:.3g}."
            if np.isfinite(self.length_scale)
            else "The difference is clearest in how many rows are near to the centre and far from it.",
        ]

    def _tables(self) -> list[ShownTable]:
        return [shown("Length scales", self._columns())]

    def _charts(self) -> list[Chart]:
        (those, one), (counts, edges) = self._compared, np.histogram(self.resampled, _BINS)
        notes = [
            f"{counted(int(count), one)} between {a:.4g} and {b:.4g}"
            for count, a, b in zip(counts, edges, edges[1:], strict=False)
        ]
        outline = np.concatenate([edges[:1], edges]), np.concatenate([[0], counts, [0]])
        signs = Series(those, *outline, "steps", "grey", ["", *notes, ""])
        # A dot on the axis keeps the statistic in the frame, where it is larger than all others.
        here = [f"this sample: {self.statistic:.4g}"]
        sample = Series("this sample", [self.statistic], [0.0], "dots", "vermillion", here, strong=True)
        verdict = (
            f"The sample does not fit {self.family or 'the score'}" if self.pvalue <= LEVEL else "No misfit is shown"
        )
        lines = [(self.statistic, f"statistic of this sample, {self.statistic:.4g}")]
        about = f"Statistics of {those}, as a sample from the density would give them."
        title = f"{verdict}: p = {self.pvalue:.3g}"
        charts = [Chart(title, "statistic", those, [signs, sample], about, lines=lines)]
        if len(self.length_scales) > 1:
            kernel = np.isfinite(self.length_scales)
            scales, scores = self.length_scales[kernel], self.kernel_scores[kernel]
            notes = [f"length scale {x:.4g}: score {y:.4g}" for x, y in zip(scales, scores, strict=True)]
            dots = Series("score", scales, scores, "dots", "blue", notes, strong=True)
            title = f"The largest score of a kernel is that of length scale {scales[np.argmax(scores)]:.3g}"
            charts.append(Chart(title, "length scale", "score", [dots], log_x=True))
        return charts

    def _notes(self) -> list[str]:
        return [
            "length_scale: in coordinates in which rows and scores have one covariance matrix, or in those of the frame given.",
            "discrepancy: unbiased estimate of the squared kernel Stein discrepancy; around 0 for a sample from the density.",
            f"score: the normal score of the discrepancy among those of {self._compared[0]}. The largest one is the statistic.",
            f"pvalue: the share of all {self._compared[0]}, {self.n_resamples:,} of them, and of what was observed, whose "
            "statistic is no smaller.",
        ]


@keeps_warnings
def stein_test(
    X: Any,
    score: Any,
    *,
    kernel: str | Kernel = "imq",
    length_scale: Any = "auto",
    frame: str | Frame = "balanced",
    n_resamples: int = 999,
    flip: str | float = "auto",
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
    random_state: Any = None,
    verbose: bool | int = False,
) -> SteinTestResult:
    r"""Test whether a sample is from a density whose score is known, or from a family whose parameters are fitted to it.

    The statistic is the squared kernel Stein discrepancy [1]_, for scores :math:`s = \nabla\log p` the mean over pairs of

    .. math:: u(x, y) = s(x)\cdot s(y)\,k + s(x)\cdot\nabla_y k + s(y)\cdot\nabla_x k + \operatorname{tr}\nabla_x\nabla_y k,

    whose expectation is 0 if the rows are from p. The wild bootstrap [2]_ multiplies each row by a random sign. By default five
    length scales are compared: each discrepancy is replaced by the normal score of its rank among all vectors of signs, and the
    largest score counts. The normaliser of the density is not needed.

    A family, such as the normal densities, is fitted to the rows. Signs would not know that the fit follows the sample: it is
    compared with samples of the fitted density, to each of which the family is fitted anew (parametric bootstrap [4]_). Three
    length scales are compared then, and the squared mean of :math:`s \cdot z |z|^2 + (d + 2) |z|^2`, Stein's operator at a field
    that knows how far rows are from the centre; its length scale is infinite in the result.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Rows, at least two.
    score : callable, array-like of shape (n_samples, n_features), "normal", "t" or density estimator
        The score of the density at the rows, in reciprocal units of the columns, or a function that returns it for the rows, a
        float64 array. Or a family: the normal densities, Student's t with any location, scatter matrix and degrees of freedom, or
        an estimator of densities, such as ``SOSREP()``, of which clones are fitted. To test a density that was fitted to
        the rows give it itself, and not its method ``grad_log_density``.
    kernel : str or Kernel, default="imq"
        The kernel, of :attr:`~isopleth.kernels.Kernel.smoothness` above 1.
    length_scale : "auto" or float, default="auto"
        Length scale in the coordinates of the frame. "auto" is 1/4, 1/2, 1, 2 and 4 times the median distance between rows (of at
        most 1,000), for families 1/2, 1 and 4 times.
    frame : {"balanced", "whiten", "scale"} or Frame, default="balanced"
        Coordinates z = J x in which kernels stand; there the score is :math:`J^{-\top} s`. "balanced": those in which rows and
        scores have the same covariance matrix; if the density is normal, it is standard normal in them. "whiten": uncorrelated
        columns of unit variance, which conceals a covariance that differs from that of the density. In these two the result
        does not change under invertible affine maps of the rows. "scale": the columns over their standard deviations.
    n_resamples : int, default=999
        Random vectors of signs, or samples of the fitted density. The smallest p-value is 1 / (1 + n_resamples).
    flip : "auto" or float, default="auto"
        Probability that the sign changes from one row to the next: 0.5 for independent rows, less for those of a Markov chain.
        "auto" measures whether rows and scores next to each other are alike. If they are not it is 0.5, otherwise 1/(4 t), where
        t rows say as much about a mean as one independent row, which is right for rows in order of time. Independent rows that
        were sorted by a column, such as a group, look the same, and slow signs find little in them: shuffle them or give 0.5. A
        warning says both. For families it must be "auto": samples of the fit have no order, so that p-values are right for rows
        that were sorted, and too small for rows that follow each other.
    memory_limit : float, default=2**30
        Bytes for arrays over pairs of rows.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    random_state : int, RandomState or None
        Seed of the signs or samples.
    verbose : bool or int, default=False
        Whether to show the progress of the sums over pairs of rows on standard error.

    Returns
    -------
    SteinTestResult
        With `statistic`, `pvalue`, `discrepancies` and `length_scale`.

    Raises
    ------
    InputError
        For rows that cannot be used, scores of another shape or that are not finite, a kernel that is too rough, a frame that is
        not affine, parameters out of range, and rows in a plane, where no family can be fitted.

    Warns
    -----
    DataWarning
        If rows next to each other are alike, with what to do if they are in order of time, and if they were sorted; and if the
        score is the method ``grad_log_density`` of a fitted estimator: fitted to the rows, it gives p-values that are too large.

    Notes
    -----
    The level is that of a bootstrap: it is right for many rows, and for chains that stand for many independent rows.
    ``python -m experiments.stein_test`` measures it for few. For the normal family it is exact: the statistic does not depend on
    mean and covariance. Every other family is fitted once for each of the `n_resamples` samples. Rows are compared with Student's
    t at the distances from the centre that they would have if they were as far out in a normal density: there the law of the
    statistic depends little on the degrees of freedom, which samples of the fit have otherwise than the rows.

    The test asks about the sample as a whole. It has little power against a sample that misses a mode far from the others,
    because the scores near one mode say nothing of the weight of another [3]_.

    References
    ----------
    .. [1] Q. Liu, J. Lee, M. Jordan, "A kernelized Stein discrepancy for goodness-of-fit tests", ICML 2016.
    .. [2] K. Chwialkowski, H. Strathmann, A. Gretton, "A kernel test of goodness of fit", ICML 2016.
    .. [3] J. Gorham, L. Mackey, "Measuring sample quality with kernels", ICML 2017.
    .. [4] W. Stute, W. Gonzáles Manteiga, M. Presedo Quindimil, "Bootstrap based goodness-of-fit-tests", Metrika 40, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import stein_test
    >>> X = np.random.default_rng(0).standard_t(3, size=(300, 2))
    >>> stein_test(X, lambda X: -X, random_state=0).pvalue < 0.01  # is it standard normal?
    True
    >>> stein_test(X, lambda X: -4 * X / (3 + X**2), random_state=0).pvalue > 0.05  # or Student's t, as it is?
    True
    >>> stein_test(X, "normal", n_resamples=199, random_state=0)  # is it normal, with any mean and covariance?
    SteinTestResult(statistic=2.807, pvalue=0.005)
    """
    resamples = whole_number("n_resamples", n_resamples)
    if not is_auto(flip):
        probability("flip", flip)
    check_memory_limit(memory_limit)
    budget = Budget(memory_limit, n_jobs, checked_verbose(verbose))
    given = Given.of(X)
    rows = enter(SteinTest(), given, reset=True, min_samples=2).rows
    found = get_kernel(kernel).bind(rows.shape[1])
    if found.smoothness <= 1.0 or found.by_columns:
        raise InputError(f"kernel = {kernel!r} is too rough for the Stein test; use 'imq', 'gaussian' or 'matern52'.")
    if is_family(score):
        if not is_auto(flip):
            raise InputError(
                "flip is for a score that is known; a family is compared with samples of its own.", parameter="flip"
            )
        test = FittedTest(found, length_scale, frame, *family_of(score))
        return test.result(rows, resamples, budget, random_state).like(X)
    _warn_of_fit(score)
    scores = _scores_at(rows, _with_names(score, given))
    of_rows, of_scores = stein_transforms(frame, rows, scores)
    z, pull = (rows - rows.mean(axis=0)) @ of_rows, scores @ of_scores
    scales = _length_scales(length_scale, z, _FACTORS)
    each = rows_of_one(np.column_stack([z, pull - pull.mean(axis=0)]))
    used = _flip(flip, each, len(z))
    signs = _signs(len(z), resamples, used, random_state)
    sums, diagonal = _sums(found, z, pull, scales, signs, budget)
    normal = _normal_scores(sums - diagonal[:, None])
    statistics = normal.max(axis=0)
    n = len(z)
    return SteinTestResult(
        statistic=float(statistics[0]),
        pvalue=permutation_pvalue(statistics),
        length_scales=scales,
        discrepancies=(sums[:, 0] - diagonal) / (n * (n - 1.0)),
        kernel_scores=normal[:, 0],
        resampled=statistics[1:],
        n_rows=n,
        flip=used,
        independent_rows=n / each,
    ).like(X)


@dataclass(frozen=True)
class FittedTest:
    """Test of a family of densities whose parameters are fitted to the sample, by samples of the fitted density."""

    kernel: Kernel
    length_scale: Any
    frame: str | Frame
    family: Any  # has `fit`, which returns a FittedFamily
    name: str  # in sentences

    def result(self, rows: np.ndarray, resamples: int, budget: Budget, random_state: Any) -> SteinTestResult:
        """Compare the discrepancies of the sample with those of samples of the fitted density, each after a fit of its own."""
        seeds = check_random_state(random_state).randint(2**31, size=resamples)
        fitted = self.family.fit(rows)
        scales, observed, each = self.discrepancies(rows, fitted, budget)
        if each > 1.0:
            _warn_of_order(len(rows), each, "p-values are too small", "p-values are right")

        def resampled(seed: int) -> np.ndarray:
            sample = fitted.draw(len(rows), np.random.default_rng(seed))
            return self.discrepancies(sample, self.family.fit(sample), budget)[1]

        others = budget.map("samples of the fitted density", resampled, [int(seed) for seed in seeds])
        normal = _normal_scores(np.column_stack([observed, *others]))
        # Of few samples, each scale's largest has the same score: the mean decides among them.
        statistics = normal.max(axis=0) + _TIES * normal.mean(axis=0)
        return SteinTestResult(
            statistic=float(statistics[0]),
            pvalue=permutation_pvalue(statistics),
            length_scales=scales,
            discrepancies=observed,
            kernel_scores=normal[:, 0],
            resampled=statistics[1:],
            n_rows=len(rows),
            independent_rows=len(rows) / each,
            family=self.name,
        )

    def discrepancies(
        self, rows: np.ndarray, fitted: FittedFamily, budget: Budget
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return length scales, discrepancies from the fitted density, and how many rows say as much as an independent one."""
        rows = fitted.coordinates(rows)
        scores = _scores_at(rows, fitted.score)
        of_rows, of_scores = stein_transforms(self.frame, rows, scores)
        z, pull = (rows - rows.mean(axis=0)) @ of_rows, scores @ of_scores
        scales, n = _length_scales(self.length_scale, z, _FITTED_FACTORS), len(z)
        sums, diagonal = _sums(self.kernel, z, pull, scales, np.ones((n, 1)), replace(budget.alone, verbose=False))
        each = rows_of_one(np.column_stack([z, pull - pull.mean(axis=0)]))
        found = (sums[:, 0] - diagonal) / (n * (n - 1.0))
        if is_auto(self.length_scale) and fitted.judges_distances:
            scales, found = np.append(scales, np.inf), np.append(found, _radial(z, pull))
        return scales, found, each


def _radial(z: np.ndarray, pull: np.ndarray) -> float:
    """Return the squared mean of Stein's operator at the field z |z|^2: how many rows are near to the centre and far from it.

    In many columns no kernel of pairs sees that the tails are light, as those of uniform columns.
    """
    squares = np.sum(z * z, axis=1)
    return float(np.mean(squares * (np.sum(z * pull, axis=1) + z.shape[1] + 2.0)) ** 2)


def rows_of_one(values: np.ndarray) -> float:
    """Return how many consecutive rows say as much about a mean as one independent row; 1 if rows do not depend on each other."""
    size = np.sqrt((values**2).mean(axis=0))
    varying = values[:, size > 0.0] / size[size > 0.0]
    return Dependence.of(varying, np.arange(len(values))).rows if varying.shape[1] else 1.0


def _flip(flip: str | float, each: float, n: int) -> float:
    """Return the probability of a change of sign, and warn of rows that depend on each other."""
    slow = 0.5 if each <= 1.0 else min(0.5, 1.0 / (_SLOW * each))
    used = slow if is_auto(flip) else float(flip)
    if each > 1.0:
        in_time = f"p-values are approximate with flip = {used:.3g}"
        if used > 2.0 * slow:
            in_time = f"flip = {used:.3g} rejects too often, about {slow:.3g} is right"
        _warn_of_order(n, each, in_time, "flip = 0.5 is right" if used == 0.5 else "shuffle them or give flip = 0.5")
    return used


def _warn_of_order(n: int, each: float, in_time: str, sorted_by_column: str) -> None:
    """Warn of neighbouring rows that are alike: the rows do not tell whether they follow each other or were sorted."""
    apart = ordinal(math.ceil(2.0 * each))
    warn_about_answer(
        f"rows next to each other are alike: if they are in order of time, {n:,} of them say as much as about {n / each:,.0f} "
        f"independent rows, {in_time}, and every {apart} row alone is nearly independent",
        hint=f"if they are independent and were sorted by a column, such as a group, {sorted_by_column}",
    )


def _warn_of_fit(score: Any) -> None:
    """Warn of a score that may have been fitted to the rows, which the wild bootstrap does not allow for."""
    fitted = fitted_behind(score)
    if fitted is None:
        return
    remedy = "fit it to one half of the rows and test the other half"
    if is_density(fitted):
        remedy = "give the density itself, as in stein_test(X, density), which fits it anew to every resample"
    name = type(fitted).__name__
    warn_about_answer(
        f"score is the gradient of a fitted {name}: if it was fitted to these rows, it follows them and the p-value is too large",
        hint=f"{remedy}; if it was fitted to other rows, give its scores of these rows as an array",
    )


def _with_names(score: Any, given: Given) -> Any:
    """Return a method of an estimator that was fitted to names as a function of the table, whose names it compares."""
    named = hasattr(getattr(score, "__self__", None), "feature_names_in_")
    return (lambda _: score(given.table)) if named and given.names is not None else score


def _scores_at(rows: np.ndarray, score: Callable[[np.ndarray], Any] | Any) -> np.ndarray:
    """Return the score at the rows, float64."""
    given = score(rows.copy()) if callable(score) else score
    found = given_numbers("score", given, "an array with one vector for each row of X")
    if found.shape != rows.shape:
        raise InputError(f"score has shape {found.shape}; expected {rows.shape}, one vector for each row of X.")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        raise InputError(f"score is not finite in row {bad[0]}; expected finite numbers where the density is positive.")
    return found


def _length_scales(length_scale: Any, z: np.ndarray, factors: tuple[float, ...]) -> np.ndarray:
    """Return the length scales whose statistics are combined."""
    if is_auto(length_scale):
        distinct = np.unique(z, axis=0)
        middle = float(median(distinct, np.ones(len(distinct)))[0]) if len(distinct) > 1 else 1.0
        return middle * np.array(factors)
    if isinstance(length_scale, bool) or not isinstance(length_scale, Real) or not 0.0 < float(length_scale) < np.inf:
        raise InputError(f"length_scale = {length_scale!r}: expected 'auto' or a positive number.")
    return np.array([float(length_scale)])


def _signs(n: int, resamples: int, flip: float, random_state: Any) -> np.ndarray:
    """Return vectors of signs as columns, of shape (n, 1 + resamples); the first has no changes."""
    rng = check_random_state(random_state)
    changes = np.where(rng.uniform(size=(n, resamples)) < flip, -1.0, 1.0)
    return np.column_stack([np.ones(n), np.cumprod(changes, axis=0)])


def _sums(
    kernel: Kernel,
    z: np.ndarray,
    pull: np.ndarray,
    scales: np.ndarray,
    signs: np.ndarray,
    budget: Budget,
) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_ij w_i w_j u_ij for each length scale and vector of signs, and the sum of u_ii for each length scale."""
    n = len(z)
    squares, products = np.sum(z * z, axis=1), np.sum(z * pull, axis=1)

    def work(rows: slice) -> np.ndarray:
        # u is symmetric: pairs with later rows count twice, pairs with earlier ones not at all.
        own, on = rows.stop - rows.start, slice(rows.start, n)
        s = squares[rows, None] + squares[on] - 2.0 * (z[rows] @ z[on].T)
        np.maximum(s, 0.0, out=s)
        np.fill_diagonal(s, 0.0)
        inner = pull[rows] @ pull[on].T
        # (s_i - s_j) . (x_i - x_j)
        across = products[rows, None] + products[on] - pull[rows] @ z[on].T - z[rows] @ pull[on].T
        out = np.empty((len(scales), signs.shape[1]))
        for k, scale in enumerate(scales):
            scaled = s / scale**2
            u = inner * kernel(scaled)
            slope = kernel.derivative(scaled, 1)
            slope[s == 0.0] = 0.0  # it may be infinite there, where x - y is 0
            slope *= across
            u -= (2.0 / scale**2) * slope
            u -= kernel.laplacian(scaled) / scale**2
            u[:, own:] *= 2.0
            out[k] = np.einsum("ib,ib->b", signs[rows], u @ signs[on])
        tick((n - rows.start) * own)
        return out

    room = budget.memory / (budget.threads * 8 * _ARRAYS)
    parts = slices(n, min(_PAIRS, room) // n)
    pairs = sum((n - part.start) * (part.stop - part.start) for part in parts)
    with Progress("sums over pairs of rows", pairs, budget.verbose) as tick:
        sums = np.sum(map_threads(work, parts, budget.threads), axis=0)
    at_zero = float(kernel.laplacian(0.0))
    return sums, np.sum(pull * pull) - n * at_zero / scales**2


def _normal_scores(sums: np.ndarray) -> np.ndarray:
    """Return the normal score of each sum among those of its length scale; sums that differ by rounding are equal."""
    rounded = np.round(sums / np.maximum(np.abs(sums).max(axis=1, keepdims=True), np.finfo(float).tiny), 12)
    return normal_scores(rounded)
