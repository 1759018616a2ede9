"""LSDD: least-squares density difference, fitted directly and not as the difference of two fitted densities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.core.arrays import NUMPY, Array, Backend
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError
from isopleth.core.parts import Parts, Streaming, take_columns
from isopleth.core.scales import ScaledColumns, is_auto
from isopleth.core.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD
from isopleth.difference.coordinates import balanced
from isopleth.difference.cross_validation import CrossFitted, FoldSystems, Split, cross_validate, fold_coefficients
from isopleth.difference.fitted import DifferenceEstimator, FittedDifference, SquaredL2Law, in_sample
from isopleth.difference.gaussian_system import CategoryCoordinates, GaussianSystem, fits_within, system_of
from isopleth.difference.grids import choose_centers, factors, length_scales, ridges, spread_within
from isopleth.difference.samples import (
    TwoSamples,
    enter_both,
    split_as_given,
    split_at_random,
    without_empty_rows,
)
from isopleth.difference.statistics import DifferenceStatistics, DifferenceSystem, SampleSums, deviation_factor
from isopleth.tables.checks import CheckedRows, TakesKinds, column_names, enter, warn_of_new_beginning
from isopleth.tables.given import Given
from isopleth.tables.row_encoding import RowEncoding, WordEncoding

# Seed of the numbers that take the place of missing ones.
_SEED_OF_GAPS = 20


@dataclass(frozen=True, eq=False)
class Decisions:
    """Centres, frame and candidates of a fit, determined from some rows before all rows are summed."""

    frame: ScaledColumns  # coordinates at unit scale
    centers: np.ndarray  # (b, n_features): centres in the units of the data
    drawn: bool  # whether the centres are rows
    scales: np.ndarray  # (k, d): candidates for the length scale
    alphas: np.ndarray  # (a,): candidates for the ridge
    spread: np.ndarray  # (d,): standard deviations within the samples, the largest length scale of an interval
    searched: bool  # whether there is more than one candidate
    seed: int  # seed of the folds
    penalty: str  # norm that the ridge penalises
    encoding: RowEncoding  # of words and missing cells
    categories: CategoryCoordinates | None = None

    @property
    def counts(self) -> bool:
        """Tell whether all columns are categories, of which densities are shares."""
        return self.categories is not None and bool(self.categories.mask.all())

    def workers(self, budget: Budget) -> int:
        """Return how many length scales are compared at once: their systems fit in memory."""
        return min(budget.threads, fits_within(len(self.centers), budget))

    def scale(self, found: CrossFitted | None) -> np.ndarray:
        """Return the length scale of the fit."""
        return self.scales[0] if found is None else found.path.best_length_scale

    def near(self, found: CrossFitted | None) -> np.ndarray:
        """Return the length scale of intervals, which resolves the densities; that of the difference may be too large."""
        return np.fmin(self.scales[0] if found is None else found.path.resolving_length_scale, self.spread)

    def system(self, scale: np.ndarray, budget: Budget, backend: Backend = NUMPY) -> GaussianSystem:
        """Return the functions at a length scale."""
        return system_of(self.frame, scale, self.centers, budget, backend, self.categories)

    def fitted(
        self,
        at: DifferenceSystem,
        found: CrossFitted | None,
        budget: Budget,
        backend: Backend,
    ) -> FittedDifference:
        """Return the coefficients and estimates at the chosen length scale and ridge."""
        scale = self.scale(found)
        alpha = float(self.alphas[0]) if found is None else found.path.best_alpha
        at.spectrum.check(alpha)
        estimates = in_sample(at, alpha)
        if found is not None:
            estimates.update(cross_fitted=found.cross_fitted, lower_bound=found.lower_bound)
        scales, means = self.frame.by_column(scale), at.spectrum.solve(at.means, alpha)
        return FittedDifference(
            self.encoding,
            self.frame.scaled(scale),
            self.system(scale, budget, backend),
            self.centers,
            means,
            backend.array(means[:, 0] - means[:, 1]),
            alpha,
            self.encoding.by_column(scales),
            deviation_factor(at, alpha),
            estimates,
            None if found is None else found.path,
        )

    def statistics(
        self,
        folds: int,
        budget: Budget,
        scales: np.ndarray | None = None,
        moments: bool = True,
    ) -> DifferenceStatistics:
        """Create sums over no rows, by default at all length scales that a fit may need."""
        if scales is None:
            scales = np.unique(np.concatenate([self.scales, np.fmin(self.scales, self.spread)]), axis=0)
        return DifferenceStatistics.empty(
            self.frame,
            self.centers,
            scales,
            folds=folds,
            seed=self.seed,
            drawn=self.drawn,
            moments=moments,
            budget=budget,
        )


class LSDD(TakesKinds, Streaming, DifferenceEstimator):
    r"""Least-squares estimate of a density difference, :math:`g \approx p - q` for samples X of p and Y of q [1]_.

    The estimate is the Gaussian sum :math:`g(x) = \sum_l \theta_l\, \psi_l(x)` with :math:`\psi_l(x) = e^{-|x - c_l|^2/2}`, in
    units of the length scale, that minimises :math:`\int (g - (p - q))^2` plus a ridge:

    .. math:: (H + \lambda I)\, \theta = h, \quad H_{lm} = \int \psi_l \psi_m, \quad
        h_l = \tfrac1n \sum_i \psi_l(x_i) - \tfrac1{n'} \sum_j \psi_l(y_j).

    H has a closed form, so nothing is sampled or iterated, and one eigendecomposition serves every ridge. Length scale and
    ridge are chosen by cross-validation; fits to training folds use only the centres in these folds.

    Parameters
    ----------
    length_scale : "auto", float, array of shape (n_features,) or of shape (k, 1) or (k, n_features), default="auto"
        Length scale of the kernel, one for all columns or one for each, in the units of the data. A table is a grid of k
        candidates. "auto" is a grid of eleven multiples of the standard deviations within the samples, after values more than
        8 interquartile ranges beyond the quartiles are clipped. Where the closest hundredth of the pairs of rows within a sample,
        in a column or in all, is closer than half of that in a normal sample, as in narrow clusters, the multiples are smaller
        there, and there are up to twelve more.
    alpha : None, float or sequence of float, optional
        The ridge :math:`\lambda` over the volume :math:`V = \pi^{d/2} \prod_j \sigma_j` of the kernel, which makes it
        comparable across length scales. A sequence is a grid. None is a grid from 0.001 to 10,000.
    centers : int, None or array of shape (b, n_features), default=500
        Centres of the kernels. None takes all distinct rows of both samples; a number draws at most that many at random,
        half of them from each sample if it has as many. An array is used as it is, also in all folds; held-out estimates are
        unbiased only if it does not depend on the rows.
    cv : int or pair of arrays, default=5
        Folds of the cross-validation, or the fold of each row of X and of Y.
    penalty : {"l2", "rkhs"}, default="l2"
        Norm that the ridge multiplies: the squared norm of the coefficients, or of g in the reproducing kernel Hilbert
        space (section 2.3.2 of [1]_, whose :math:`\gamma` is :math:`\sqrt2` length scales). The latter solves
        :math:`(H + \lambda K)\, \theta = h` with the kernel matrix K of the centres; 1e-8 is added to its diagonal.
    frame : {"auto", "balanced", "scale"}, default="auto"
        Coordinates z in which the length scales stand. "balanced": :math:`z = c\, S R^{-1/2} S^{-1} x` with the standard
        deviations S and correlations R within the samples, shrunk by the rule of Ledoit and Wolf and averaged; far values are
        clipped as for length scales. The factor c makes the determinant 1, so that densities and distances in z are those in x.
        Columns that do not go together stay as they are, and so do categories. "scale": the columns. "auto": "scale" if length
        scales are given, "balanced" if they are searched.
    categorical : None, name, or sequence of names or numbers of columns, optional
        Columns of numbers that are categories.
    memory_limit : float, default=2**30
        Bytes that matrices of the centres, tiles of kernels and scratch may take together.
    n_jobs : int or None, default=-1
        Threads of kernel sums; -1 is all processors, None is one or what joblib.parallel_config says.
    random_state : int, RandomState or None
        Seed of the folds and of the choice of centres.
    verbose : bool or int, default=False
        Whether to show the progress of the cross-validation and of the fit that follows on standard error.

    Attributes
    ----------
    centers_ : array of shape (b, n_features)
        The centres. This and other arrays are in the library and on the device of X.
    dual_coef_ : array of shape (b,)
        :math:`\theta V`.
    log_volume_ : float
        log V, in the units of the data. V overflows in hundreds of dimensions, so methods that return reciprocal volumes
        return them times V with ``relative=True``.
    length_scale_ : array of shape (n_features,)
        The length scale of each column, in balanced coordinates the standard deviation of the kernel along it; NaN for constant
        columns, which are dropped, and for categories.
    alpha_ : float
        The ridge over V.
    squared_l2_ : float
        Cross-fitted estimate of :math:`\int (p - q)^2`, see :meth:`squared_l2`; NaN if a sample has only one row.
    search_path_ : DifferenceSearchPath or None
        Cross-validation losses; None if a sample has only one row.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    Warns
    -----
    DataWarning
        For constant columns.

    See Also
    --------
    KDEDifference : The difference of two kernel density estimates, for comparison.

    Notes
    -----
    For data that do not fit in memory, pass chunks to :meth:`partial_fit`, or use :func:`isopleth.distributed.fit`.

    Tables may have words, truth values, times and missing cells. Their densities are with respect to Lebesgue measure for numbers
    and counting measure for words: integrals are over numbers, and sums over the words of both samples, other words and missing
    ones. The kernel of a categorical column is 1 for equal words and :math:`\rho` for others, as for :class:`SOSREP`. Whether a
    number is missing is a category; the number itself is then drawn from the known ones of both samples in `fit`, and is their
    median elsewhere. A missing number in a column without any at fit is refused. Rows without a known cell are left out of a fit,
    with a warning, where the other rows are complete numbers in two columns or more; in a single column gaps are a category.

    Swapping the samples changes only the sign of the difference. Weights count repetitions; if the weights of a sample add up
    to less than its number of distinct rows, they are scaled up to that number. Discrete data have no densities and their
    squared L2 distance is infinite; the search then chooses the smallest length scales.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import LSDD
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=(300, 1)), rng.normal(1.0, size=(200, 1))
    >>> change = LSDD(random_state=0).fit(before, after)
    >>> (change.difference([[-1.0], [2.0]]) > 0).tolist()  # more of the first sample on the left, less on the right
    [True, False]
    >>> abs(change.squared_l2_ - 0.125) < 0.04  # of two normal densities one standard deviation apart
    True
    """

    _use_of_limits = "merge"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "length_scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "alpha": [None, Interval(Real, 0, None, closed="left"), "array-like"],
        "centers": [None, Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), tuple, list],
        "penalty": [StrOptions({"l2", "rkhs"})],
        "frame": [StrOptions({"auto", "balanced", "scale"})],
        "categorical": [None, str, "array-like"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _decisions: Decisions

    _solved = ("_fitted",)

    def __init__(
        self,
        length_scale: Any = "auto",
        alpha: Any = None,
        centers: Any = 500,
        cv: Any = 5,
        penalty: str = "l2",
        frame: str = "auto",
        categorical: Any = None,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.length_scale = length_scale
        self.alpha = alpha
        self.centers = centers
        self.cv = cv
        self.penalty = penalty
        self.frame = frame
        self.categorical = categorical
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, Y: Any, sample_weight_x: Any = None, sample_weight_y: Any = None) -> Self:
        """Fit the density of X less the density of Y.

        Parameters
        ----------
        X, Y : array-like or data frame of shape (n, n_features) and (n', n_features)
            Rows of the two samples, converted to float64. If X is an array of a library other than NumPy, kernel sums and
            matrices of the centres are computed in that library and on its device, and fitted arrays are there too.
        sample_weight_x, sample_weight_y : array-like of shape (n,) and (n',), optional
            Weights, not negative. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If rows, weights or parameters cannot be used, the samples have different columns, all rows are equal, or there
            are too few rows to choose a length scale and a ridge; the sentence says which and what to do.
        """
        self._validate_params()
        self._forget()
        X, Y = Given.of(X), Given.of(Y, "Y")
        x, y = without_empty_rows(self, X, Y, *enter_both(self, X, Y, sample_weight_x, sample_weight_y))
        x, y, encoding = self._encoded(x, y)
        samples, backend = TwoSamples.of(x, y), x.backend
        decisions, chosen = self._decide(samples, encoding)
        split = self._split(samples, chosen, decisions)
        budget = Budget.of(self)

        def summed(scale: np.ndarray, budget: Budget, moments: bool) -> tuple[SampleSums, Array]:
            system = decisions.system(scale, budget, backend)
            z = backend.array(decisions.frame.scaled(scale).enter(samples.rows))
            sums = SampleSums.empty(system, split.folds, split.units is not None, moments)
            return sums.accumulate(z, split.weights, split.units), z

        def systems_at(place: int, threads: int) -> tuple[float, FoldSystems]:
            return summed(decisions.scales[place], replace(budget, n_jobs=threads), False)[0].systems(self.penalty)

        with ONE_BLAS_THREAD:  # the systems of folds are small: one thread for each length scale is faster
            found = None
            if split.folds > 1:
                at_once = replace(budget, n_jobs=decisions.workers(budget))
                found = cross_validate(systems_at, decisions.scales, decisions.alphas, at_once, decisions.counts)
            scale = decisions.scale(found)
            sums, z = summed(scale, budget, True)
            at, system = DifferenceSystem.of(sums, self.penalty), sums.system
            del sums  # they are as large as the statistics
            fitted = decisions.fitted(at, found, Budget.of(self), backend)
            if at.systems is not None:
                fitted = replace(fitted, held_out=_held_out(at.systems, fitted.alpha, system, z, split))
            near = decisions.near(found)
            if not np.array_equal(near, scale):
                del at, z  # the next system needs as much memory
                at = DifferenceSystem.of(summed(near, budget, True)[0], self.penalty)
            self._fitted = replace(fitted, law=SquaredL2Law.of(at, fitted.alpha))
        return self

    def _encoded(self, x: CheckedRows, y: CheckedRows) -> tuple[CheckedRows, CheckedRows, RowEncoding]:
        """Return the encoded rows of both samples, and the encoding of words and gaps.

        Missing numbers are drawn: a value of positive mass has no density.
        """
        both = replace(x, rows=np.vstack([x.rows, y.rows]))
        encoding = RowEncoding.of_table(self, both, far=False)
        if encoding.is_plain:
            return x, y, encoding
        if not isinstance(self.centers, (Integral, type(None))) or not is_auto(self.length_scale):
            raise InputError(
                "tables with words, times or missing cells need centers as a number and length_scale='auto', since their columns "
                "become coordinates of words and gaps."
            )
        coded = encoding(both.rows)
        drawn = RowEncoding.of_table(self, both, compared=False).filled(both.rows, _SEED_OF_GAPS)
        for cell, block in zip(encoding.cells, encoding.blocks, strict=True):
            if cell.kind != "categorical":
                coded[:, block.start] = drawn[:, cell.place]
        return replace(x, rows=coded[: len(x.rows)]), replace(y, rows=coded[len(x.rows) :]), encoding

    def partial_fit(
        self, X: Any = None, Y: Any = None, sample_weight_x: Any = None, sample_weight_y: Any = None
    ) -> Self:
        """Add rows of one sample or both to those of earlier calls. No rows are kept.

        The rows of the first call determine which columns vary, the centres (unless `centers` is an array) and the candidate
        length scales. They should resemble later rows: some hundreds of each sample in random order. At a length scale and a
        ridge, the coefficients are those of one fit to all rows with these centres, whatever the batches and their order.
        Estimates from folds, among them the choice of length scale and ridge, depend on the order of the rows, as they
        depend on a seed.

        The first call solves for the coefficients. After later calls they are solved for when first needed, so that adding
        single rows is fast. ``level_set`` needs rows and raises an error.

        Parameters
        ----------
        X, Y : array-like or data frame of shape (n, n_features) and (n', n_features), optional
            Rows of the two samples, converted to float64. The first call needs both.
        sample_weight_x, sample_weight_y : array-like of shape (n,) and (n',), optional
            Weights, not negative. A row of weight 2 counts as two rows, in one fold.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If rows, weights or parameters cannot be used, `cv` is not a number, or there are too few rows to choose a length
            scale and a ridge.

        Warns
        -----
        DataWarning
            For constant columns. If the model was fitted by :meth:`fit`, which keeps no sums: its rows are not used.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import LSDD
        >>> rng = np.random.default_rng(0)
        >>> change = LSDD(length_scale=0.7, alpha=1.0, centers=50, random_state=0)
        >>> for day in range(5):
        ...     change = change.partial_fit(rng.normal(size=(100, 1)), rng.normal(1.0, size=(80, 1)))
        >>> (change.difference([[-1.0], [2.0]]) > 0).tolist()
        [True, False]
        """
        self._validate_params()
        running: DifferenceStatistics | None = self._sums_so_far()
        if running is None and (X is None or Y is None):
            raise InputError(
                f"{'X' if X is None else 'Y'} is missing; the first call of partial_fit needs both samples."
            )
        if X is None and Y is None:
            raise InputError("X and Y are missing; expected rows of one sample at least.")
        if running is None:
            if "_fitted" in vars(self):
                warn_of_new_beginning()
            self._forget()
            x, y = enter_both(self, X, Y, sample_weight_x, sample_weight_y)
            _refuse_mixed(x, y)
            x, y, encoding = self._encoded(x, y)
            self._decisions, _ = self._decide(TwoSamples.of(x, y), encoding)
            running = self._decisions.statistics(self._folds(self._decisions.searched), Budget.of(self))
        # All rows are checked before any of them is added.
        chunks = [
            (sample, enter(self, rows, weights, name=name, weight_name=f"sample_weight_{name.lower()}", adding=True))
            for sample, (name, rows, weights) in enumerate((("X", X, sample_weight_x), ("Y", Y, sample_weight_y)))
            if rows is not None
        ]
        _refuse_mixed(*(table for _, table in chunks))
        self._like = chunks[0][1].answer(np.empty(0))  # in the array library of the last rows, as answers shall be
        with self._adding(running):
            for sample, table in chunks:
                running.accumulate(sample, table.rows, table.weights)
        return self

    def _decide(self, samples: TwoSamples, encoding: RowEncoding) -> tuple[Decisions, np.ndarray | None]:
        """Return the decisions from rows of both samples, and the indices of the rows that are centres."""
        keep = encoding.varying_coordinates(self, samples.rows)
        categories = _categories(encoding, keep)
        frame = self._coordinates(samples, keep, categories)
        rows = frame.centre(samples.rows)
        spread = spread_within(rows, samples.weights)
        seed = int(check_random_state(self.random_state).randint(2**31))
        if categories is None:
            scales, many = length_scales(self.length_scale, rows, samples.weights, keep, column_names(self), seed)
        else:
            spread[categories.mask] = 1.0
            scales, many = factors(encoding.kept_columns(keep)) * spread, True
        alphas, several = ridges(self.alpha)
        centers, chosen = choose_centers(self.centers, samples, seed)
        return Decisions(
            frame,
            centers,
            chosen is not None,
            scales,
            alphas,
            spread,
            many or several,
            seed,
            self.penalty,
            encoding,
            categories,
        ), chosen

    def _coordinates(
        self, samples: TwoSamples, keep: np.ndarray, categories: CategoryCoordinates | None
    ) -> ScaledColumns:
        """Return the coordinates of the kernels at unit scale; given length scales are those of the columns themselves."""
        frame = ScaledColumns.centred(samples.rows, keep)
        if self.frame == "scale" or (self.frame == "auto" and not is_auto(self.length_scale)):
            return frame
        return balanced(frame, samples.rows, samples.weights, None if categories is None else ~categories.mask)

    def _folds(self, searched: bool) -> int:
        """Return the number of folds for rows that are summed as they arrive."""
        if not isinstance(self.cv, Integral):
            raise InputError("cv: expected a number of folds; folds of single rows can be named in fit alone.")
        return max(int(self.cv), 3 if searched else 2)

    def _forget(self) -> None:
        """Delete the results of an earlier fit, so that a fit that fails leaves no mixture of two models."""
        super()._forget()
        for name in ("_decisions", "_like"):
            self.__dict__.pop(name, None)

    def _solve(self, sums: DifferenceStatistics) -> None:
        """Fit to the sums of partial fits, on the backend of the centres, which is that of the last rows."""
        self._solve_at(self._decisions, sums, self._search(self._decisions, sums), Backend.of(self._like))

    def _solve_at(
        self,
        decisions: Decisions,
        running: DifferenceStatistics,
        found: CrossFitted | None,
        backend: Backend = NUMPY,
    ) -> None:
        """Fit to sums with moments, at the length scales that a search has chosen."""
        with ONE_BLAS_THREAD:
            scale, near = decisions.scale(found), decisions.near(found)
            at = DifferenceSystem.of(running.at(running.place(scale)), decisions.penalty)
            fitted = decisions.fitted(at, found, Budget.of(self), backend)
            if not np.array_equal(near, scale):
                at = DifferenceSystem.of(running.at(running.place(near)), decisions.penalty)
            self._fitted = replace(fitted, law=SquaredL2Law.of(at, fitted.alpha))

    def _search(self, decisions: Decisions, running: DifferenceStatistics) -> CrossFitted | None:
        """Cross-validate by sums at the candidates; None if a fold has no rows of a sample and nothing is chosen."""
        running.refuse_empty()
        least, folds = int(running.n_rows.min()), running.folds[0].folds
        if least < folds:
            if decisions.searched:
                raise InputError(
                    f"{'XY'[int(np.argmin(running.n_rows))]} has {least} row{'s' if least > 1 else ''} so far, too few for "
                    f"cross-validation in {folds} folds; begin with more, or give length_scale and alpha as numbers."
                )
            return None
        places = [running.place(scale) for scale in decisions.scales]
        budget = Budget.of(self)
        with ONE_BLAS_THREAD:
            return cross_validate(
                lambda i, _: running.at(places[i]).systems(decisions.penalty),
                decisions.scales,
                decisions.alphas,
                replace(budget, n_jobs=decisions.workers(budget)),
                decisions.counts,
            )

    def _split(self, samples: TwoSamples, chosen: np.ndarray | None, decisions: Decisions) -> Split:
        """Split the samples into folds; a single row cannot be split, and gets one fold if nothing is chosen."""
        searched = decisions.searched
        least = int(samples.units.sum(axis=0).min())
        if searched and least < 3:
            name = "XY"[int(np.argmin(samples.units.sum(axis=0)))]
            raise InputError(
                f"{name} has {least} row{'s' if least > 1 else ''}, too few for cross-validation, which needs 3; "
                "give length_scale and alpha as numbers."
            )
        if least < 2:
            return Split(samples.weights[:, :, None], None)
        if isinstance(self.cv, Integral):
            folds = min(max(int(self.cv), 3 if searched else 2), least)
            weights = split_at_random(samples, folds, decisions.seed)
        else:
            weights = split_as_given(samples, self.cv)
            if weights.shape[2] < (3 if searched else 2):
                raise InputError(f"cv has {weights.shape[2]} folds; expected at least 3, or 2 where nothing is chosen.")
        return Split(weights, None if chosen is None else weights[chosen])


def _categories(encoding: RowEncoding, keep: np.ndarray) -> CategoryCoordinates | None:
    """Return the coordinates of words and of indicators among the kept ones; None if there are none."""
    if not encoding.scaled[keep].any():
        return None
    place = np.cumsum(keep) - 1
    blocks, sizes, distances = [], [], []
    for cell, block in zip(encoding.cells, encoding.blocks, strict=True):
        if not keep[block].any():
            continue
        first = int(place[block.start])
        if isinstance(cell, WordEncoding):
            blocks.append(slice(first, first + cell.width))
            sizes.append(cell.width)
            distances.append(float(np.sqrt(2.0)) * cell.unit)
        elif cell.gap:
            blocks.append(slice(first + 1, first + 2))
            sizes.append(2)
            distances.append(cell.gap)
    return CategoryCoordinates(tuple(blocks), tuple(sizes), tuple(distances), int(keep.sum()))


def _refuse_mixed(*tables: CheckedRows) -> None:
    """Refuse words, times and missing cells in rows that are summed as they arrive."""
    if any(table.columns is not None or table.missing.any() for table in tables):
        raise InputError(
            "sums over parts need numbers without NaN; use fit for tables with words, times or missing cells."
        )


def _held_out(systems: FoldSystems, alpha: float, system: GaussianSystem, z: Array, split: Split) -> np.ndarray:
    """Return differences at rows of held-out folds, and the weight of each row in the mass of X less that of Y."""
    weights = split.weights / split.counts.sum(axis=1)[None, :, None]
    drawn = weights.sum(axis=1) > 0
    values = system.values(z, fold_coefficients(systems, alpha))
    return np.array([values[drawn], (weights[:, 0] - weights[:, 1])[drawn]])


# Distinct rows of each sample that the first pass draws.
SAMPLE = 10_000


def fit_parts(estimator: LSDD, X: Parts, Y: Parts) -> LSDD:
    """Fit a density difference to rows in parts, of which only sums are kept.

    The first pass draws up to 10,000 distinct rows of each sample. They determine which columns vary, the centres (unless
    `centers` is an array) and the candidate length scales. If there is more than one length scale or ridge, the second pass
    computes the sums for cross-validation. The last pass computes the sums at the chosen length scale. If centres, length
    scale and ridge are given, the coefficients are those of ``estimator.fit`` to all rows up to rounding.
    """
    estimator._validate_params()
    estimator._forget()
    if X.labels != Y.labels:
        raise InputError(
            f"Y has the columns {', '.join(Y.labels)}; expected those of X in their order: {', '.join(X.labels)}."
        )
    seed = int(check_random_state(estimator.random_state).randint(2**31))
    drawn = [_drawn(parts, name, seed) for parts, name in ((X, "X"), (Y, "Y"))]
    (rows_x, weight_x), (rows_y, weight_y) = drawn
    tables = enter_both(estimator, rows_x, rows_y, weight_x, weight_y)
    _refuse_mixed(*tables)
    x, y, encoding = estimator._encoded(*tables)
    take_columns(estimator, X)
    decisions, _ = estimator._decide(TwoSamples.of(x, y), encoding)
    folds = estimator._folds(decisions.searched)

    def summed(scales: np.ndarray, moments: bool) -> DifferenceStatistics:
        start = partial(decisions.statistics, folds, Budget.of(estimator), scales, moments)
        sums = [parts.sums(start, partial(_add, sample)) for sample, parts in enumerate((X, Y))]
        return sums[0].merge(sums[1])

    if not decisions.searched:
        running = summed(_wanted(decisions.scales[0], decisions.near(None)), True)
        estimator._solve_at(decisions, running, estimator._search(decisions, running))
        return estimator
    found = estimator._search(decisions, summed(decisions.scales, False))
    estimator._solve_at(decisions, summed(_wanted(decisions.scale(found), decisions.near(found)), True), found)
    return estimator


def _drawn(parts: Parts, name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows, weights = parts.sample(SAMPLE, seed)
    if not len(rows):
        raise InputError(f"{name} has no rows of positive weight; a difference needs both samples.")
    return rows, weights


def _wanted(scale: np.ndarray, near: np.ndarray) -> np.ndarray:
    return np.unique(np.stack([scale, near]), axis=0)


def _add(sample: int, sums: DifferenceStatistics, rows: np.ndarray, weights: np.ndarray | None) -> DifferenceStatistics:
    return sums.accumulate(sample, rows, weights)
