"""LSDD: the difference of two densities, fitted as it is and not as two densities."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.difference.centers import choose_centers
from isopleth.difference.cross_validation import Split, fold_coefficients
from isopleth.difference.gaussian_system import GaussianSystem, fits_within
from isopleth.difference.grids import length_scales, ridges, spread_within
from isopleth.difference.interval import SquaredL2Law
from isopleth.difference.limit_law import deviation_factor, deviations_at
from isopleth.difference.regions import check_mass, upper_thresholds
from isopleth.difference.samples import TwoSamples, split_as_given, split_at_random
from isopleth.difference.search import CrossFitted, cross_validate
from isopleth.difference.squared_l2 import checked, in_sample
from isopleth.difference.statistics import SampleStatistics
from isopleth.difference.volume import over_volume
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.operators.threads import ONE_BLAS_THREAD, effective_n_jobs
from isopleth.validation import check_rows, column_names, varying_columns


class LSDD(BaseEstimator):
    r"""Least-squares estimate of a density difference, :math:`g \approx p - q` for samples X of p and Y of q [1]_.

    The Gaussian sum :math:`g(x) = \sum_l \theta_l\, \psi_l(x)`, :math:`\psi_l(x) = e^{-|x - c_l|^2/2}` in units of the length
    scale, that minimises :math:`\int (g - (p - q))^2` up to a constant and a ridge:

    .. math:: (H + \lambda I)\, \theta = h, \quad H_{lm} = \int \psi_l \psi_m, \quad
        h_l = \tfrac1n \sum_i \psi_l(x_i) - \tfrac1{n'} \sum_j \psi_l(y_j).

    H is known in closed form, so nothing is sampled or iterated, and one eigendecomposition of it serves every ridge. Length
    scale and ridge are chosen by cross-validation, whose fits to the training folds use the centres among them only.

    Parameters
    ----------
    length_scale : None, float, array of shape (n_features,) or of shape (k, 1) or (k, n_features), optional
        Length scale of the kernel, one for all columns or one a column, in the units of the data; a table is a grid of k
        candidates. None is a grid of eleven multiples of the standard deviations within the samples, values more than 8
        interquartile ranges beyond the quartiles being brought to that distance first.
    alpha : None, float or sequence of float, optional
        The ridge :math:`\lambda` over the volume :math:`V = \pi^{d/2} \prod_j \sigma_j` of the kernel, so that it means the
        same at every length scale; a sequence is a grid. None is a grid from 0.001 to 10,000.
    centers : int, None or array of shape (b, n_features), default=500
        Centres of the kernels: an array as it is, or distinct rows of both samples, all of them (None) or at most so many,
        drawn at random, half of them from each sample as far as it has them. An array serves all folds alike, and must not be
        made of the rows if held-out estimates are to be unbiased.
    cv : int or pair of arrays, default=5
        Folds of the cross-validation, or the fold of each row of X and of Y.
    penalty : {"l2", "rkhs"}, default="l2"
        What the ridge multiplies: the squared norm of the coefficients, or that of g in the Gaussian kernel's own space
        (section 2.3.2 of [1]_, its :math:`\gamma` being :math:`\sqrt2` length scales), for which
        :math:`(H + \lambda K)\, \theta = h` with K the kernel matrix of the centres; 1e-8 is added to K's diagonal.
    memory_limit : float, default=2**30
        Bytes that matrices of the centres, tiles of kernels and scratch may take together.
    n_jobs : int, optional
        Threads of kernel sums; None is all processors.
    random_state : int, RandomState or None
        Seed of the folds and of the choice of centres.

    Attributes
    ----------
    centers_ : ndarray of shape (b, n_features)
        The centres.
    dual_coef_ : ndarray of shape (b,)
        :math:`\theta V`.
    log_volume_ : float
        log V, in the units of the data. V overflows in hundreds of dimensions, so whatever is a reciprocal volume can be
        had times V, by ``relative=True``.
    length_scale_ : ndarray of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped.
    alpha_ : float
        The ridge over V.
    squared_l2_ : float
        Cross-fitted estimate of :math:`\int (p - q)^2`, see :meth:`squared_l2`; NaN where a sample has one row only.
    search_path_ : DifferenceSearchPath or None
        Cross-validation losses; None where a sample has one row only.
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
    Swapping the samples changes the sign of the difference and nothing else. Weights count repetitions; a sample whose
    weights add up to less than its distinct rows has them scaled up to that number. Samples with atoms (discrete data) have no
    densities and their squared L2 distance is infinite: the search then settles for the smallest length scales.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "length_scale": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "alpha": [None, Interval(Real, 0, None, closed="left"), "array-like"],
        "centers": [None, Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), tuple, list],
        "penalty": [StrOptions({"l2", "rkhs"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        length_scale: Any = None,
        alpha: Any = None,
        centers: Any = 500,
        cv: Any = 5,
        penalty: str = "l2",
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.length_scale = length_scale
        self.alpha = alpha
        self.centers = centers
        self.cv = cv
        self.penalty = penalty
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any, sample_weight_x: Any = None, sample_weight_y: Any = None) -> Self:
        """Fit the difference of the density of X less that of Y.

        Parameters
        ----------
        X, Y : array-like or data frame of shape (n, n_features) and (n', n_features)
            Rows of the two samples; computed in float64.
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
        self.__dict__.pop("dual_coef_", None)  # a fit that fails leaves no mixture of two models
        samples = TwoSamples.of(self, X, Y, sample_weight_x, sample_weight_y)
        keep = varying_columns(self, samples.rows)
        frame = Frame.centred(samples.rows, keep)
        rows = frame.centre(samples.rows)
        scales, many = length_scales(self.length_scale, rows, samples.weights, keep, column_names(self))
        alphas, several = ridges(self.alpha)
        seed = int(check_random_state(self.random_state).randint(2**31))
        centers, chosen = choose_centers(self.centers, samples, seed)
        workers = min(effective_n_jobs(self.n_jobs), fits_within(len(centers), self.memory_limit))

        def system_at(scale: np.ndarray, n_jobs: int | None) -> tuple[GaussianSystem, np.ndarray]:
            scaled = frame.scaled(scale)
            log_volume = 0.5 * scaled.dim * float(np.log(np.pi)) + scaled.log_volume
            system = GaussianSystem(scaled.enter(centers), log_volume, self.memory_limit, n_jobs)
            return system, scaled.enter(samples.rows)

        split = self._split(samples, chosen, many or several, seed)
        with ONE_BLAS_THREAD:  # the systems of folds are small, and threads part the length scales better
            found = None if split is None else cross_validate(system_at, scales, alphas, self.penalty, split, workers)
            scale = scales[0] if found is None else found.path.best_length_scale
            self.alpha_ = float(alphas[0]) if found is None else found.path.best_alpha
            self.search_path_ = None if found is None else found.path
            self._frame, self.centers_ = frame.scaled(scale), centers
            self.length_scale_ = np.full(len(keep), np.nan)
            self.length_scale_[keep] = scale
            system, z = system_at(scale, self.n_jobs)
            at = SampleStatistics.of(system, z, samples, split, self.penalty)
            self._fit_at(at, system, z, samples, found)
            # A search that finds no difference may end at a length scale that would resolve none, or at a tiny one by luck.
            steady = scale if found is None else found.path.steady_length_scale
            near = np.fmin(steady, spread_within(rows, samples.weights))
            if split is not None and not np.array_equal(near, scale):
                del at, system, z  # which leaves room for as much again
                at = SampleStatistics.of(*system_at(near, self.n_jobs), samples, split, self.penalty)
            self._squared_l2_law = SquaredL2Law.of(at, self.alpha_)
        return self

    def _split(self, samples: TwoSamples, chosen: np.ndarray | None, searched: bool, seed: int) -> Split | None:
        """The folds, or None where a sample has a single row, which cannot be split and needs not where nothing is chosen."""
        least = int(samples.units.sum(axis=0).min())
        if searched and least < 3:
            name = "XY"[int(np.argmin(samples.units.sum(axis=0)))]
            raise InputError(
                f"{name} has {least} row{'s' if least > 1 else ''}, too few for cross-validation, which needs 3; "
                "give length_scale and alpha as numbers."
            )
        if least < 2:
            return None
        if isinstance(self.cv, Integral):
            folds = min(max(int(self.cv), 3 if searched else 2), least)
            weights = split_at_random(samples, folds, seed)
        else:
            weights = split_as_given(samples, self.cv)
            if weights.shape[2] < (3 if searched else 2):
                raise InputError(f"cv has {weights.shape[2]} folds; expected at least 3, or 2 where nothing is chosen.")
        return Split(weights, None if chosen is None else weights[chosen])

    def _fit_at(
        self,
        at: SampleStatistics,
        system: GaussianSystem,
        z: np.ndarray,
        samples: TwoSamples,
        found: CrossFitted | None,
    ) -> None:
        """Coefficients, and what else is to be known of the fit at the chosen length scale and ridge."""
        at.spectrum.check(self.alpha_)
        self._std_factor = deviation_factor(at, self.alpha_)
        self._estimates = in_sample(at, self.alpha_)
        self._held_out = np.empty((2, 0))
        if at.systems is not None and found is not None:
            self._estimates.update(cross_fitted=found.cross_fitted, lower_bound=found.lower_bound)
            theta = fold_coefficients(at.systems, self.alpha_)
            weights = at.systems.sums.split.weights / samples.counts[None, :, None]
            drawn = weights.sum(axis=1) > 0
            self._held_out = np.array([system.values(z, theta)[drawn], (weights[:, 0] - weights[:, 1])[drawn]])
        self._means_coef = at.spectrum.solve(at.means, self.alpha_)
        self.log_volume_ = system.log_volume
        self.squared_l2_ = float(over_volume(self._estimates["cross_fitted"], self.log_volume_))
        self.dual_coef_ = self._means_coef[:, 0] - self._means_coef[:, 1]

    def _enter(self, X: Any) -> tuple[GaussianSystem, np.ndarray]:
        check_is_fitted(self, "dual_coef_")
        z = self._frame.enter(check_rows(self, X, reset=False))
        centers = self._frame.enter(self.centers_)
        return GaussianSystem(centers, self.log_volume_, self.memory_limit, self.n_jobs), z

    def _out(self, relative_values: Any, relative: bool) -> np.ndarray:
        return np.asarray(relative_values) if relative else over_volume(relative_values, self.log_volume_)

    def difference(self, X: Any, relative: bool = False) -> np.ndarray:
        """The fitted difference of densities at each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        relative : bool, default=False
            Whether to answer times V, which neither over- nor underflows in many columns.

        Returns
        -------
        ndarray of shape (n_samples,)
            p - q, per unit of volume of the kept columns; positive where there is more of the first sample.
        """
        system, z = self._enter(X)
        return self._out(system.values(z, self.dual_coef_[:, None])[:, 0], relative)

    def difference_std(self, X: Any, relative: bool = False) -> np.ndarray:
        r"""Standard deviation of :meth:`difference` at each row, by the limit law of the coefficients.

        :math:`\hat g(x) = \psi(x)^\top G h` with :math:`G = (H + \lambda I)^{-1}` is linear in two means, so that its variance is
        :math:`\psi(x)^\top G\, (V_p/n + V_q/n')\, G\, \psi(x)`, V the covariances of :math:`\psi` in the samples (section 2.3.1
        of the paper, which has :math:`\lambda = 0`). Bands of plus and minus 1.96 of it cover the expectation of
        :math:`\hat g(x)`, a smoothed and shrunk p - q, and not p - q itself; centres, length scale and ridge are taken as
        fixed.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        relative : bool, default=False
            Whether to answer times V.

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of :meth:`difference`.

        Raises
        ------
        InputError
            If a sample has one row only, whose variance nobody knows.
        """
        system, z = self._enter(X)
        if self._std_factor is None:
            raise InputError("a standard deviation needs at least two rows in each sample.")
        return self._out(deviations_at(system, z, self._std_factor), relative)

    def squared_l2(self, kind: str = "cross_fitted", relative: bool = False) -> float:
        r"""Estimates of the squared L2 distance :math:`\int (p - q)^2`.

        With :math:`G = (H + \lambda I)^{-1}` and :math:`M = 2G - GHG`:

        "cross_fitted"
            :math:`h_t^\top M h_{-t}`, the mean over folds t of the dual form with one h of the held-out fold and the other of
            the training folds, the latter without what a centre adds to its own mean, unless the penalty is "rkhs" or
            :math:`\alpha < 0.001`. Length scale and ridge are chosen for each fold by cross-validation within the others
            (smallest mean loss plus standard error). Its expectation is :math:`\int (p - q)\, g` for the g of the training
            folds, and 0 if p = q. It can be negative.
        "lower_bound"
            Minus the cross-validation loss, chosen in the same way: unbiased for
            :math:`\int (p - q)^2 - \int (g - (p - q))^2`, which is never above the distance.
        "linear", "quadratic", "combined"
            :math:`h^\top \theta`, :math:`\theta^\top H \theta` and
            :math:`2 h^\top \theta - \theta^\top H \theta = h^\top M h`: (9), (10) and (11) of the paper. They see the rows twice:
            small length scales and ridges make them too large.
        "corrected"
            :math:`h^\top M h - \operatorname{tr} M (V_p/n + V_q/n')`, unbiased for what "combined" is of the densities
            themselves, at centres, length scale and ridge that do not depend on the samples.
        "inverse_corrected"
            (15) of the paper: the same with :math:`H^{-1}` for M in the trace and covariances divided by n. H is singular to
            working precision for centres as dense as samples are; then it is refused.

        Parameters
        ----------
        kind : str, default="cross_fitted"
            Which of them.
        relative : bool, default=False
            Whether to answer times V.

        Returns
        -------
        float
            In reciprocal units of volume.

        Raises
        ------
        InputError
            If there is no such estimate, or the data do not allow it.
        """
        check_is_fitted(self, "dual_coef_")
        return float(self._out(checked(self._estimates, kind), relative))

    def squared_l2_interval(self, confidence_level: float = 0.95, relative: bool = False) -> tuple[float, float]:
        r"""A confidence interval for the squared L2 distance :math:`\int (p - q)^2`.

        All distances D with :math:`(\hat D - D)^2 \le z^2 \operatorname{var}(D)`, z the normal quantile, where
        :math:`\hat D` is a cross-fitted estimate and its variance by the limit law depends on D, since the law is another one
        where p = q. Its ridge is a hundredth of the chosen one and at most 0.1, its length scale the largest of those that
        the folds choose each for itself, but no more than the standard deviations within the samples: ``squared_l2_`` has
        the least error, but is smaller than the distance by about that error, and what finds no difference would bound none.

        The expectation of :math:`\hat D` is :math:`\mu^\top M \mu`, what the form :math:`h^\top M h` is of the densities
        themselves, at most the distance: so the lower end errs on the safe side, and the upper end covers as far as the
        length scale resolves the difference. Without assumptions nothing can bound a distance from above.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Between 0 and 1.
        relative : bool, default=False
            Whether to answer times V.

        Returns
        -------
        low, high : float
            In reciprocal units of volume; `low` is 0 where equal densities are not excluded.

        Raises
        ------
        InputError
            If the level is not between 0 and 1, or a sample has one row only.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import LSDD
        >>> rng = np.random.default_rng(0)
        >>> change = LSDD(random_state=0).fit(rng.normal(size=(300, 1)), rng.normal(1.0, size=(200, 1)))
        >>> low, high = change.squared_l2_interval()
        >>> low < 0.125 < high  # of two normal densities one standard deviation apart
        True
        """
        check_is_fitted(self, "dual_coef_")
        if self._squared_l2_law is None:
            raise InputError("an interval needs at least two rows in each sample.")
        low, high = self._squared_l2_law.interval(confidence_level)
        log_volume = self._squared_l2_law.log_volume - (self.log_volume_ if relative else 0.0)
        return float(over_volume(low, log_volume)), float(over_volume(high, log_volume))

    def level_set(self, mass: Any, relative: bool = False) -> tuple[Any, Any]:
        r"""Thresholds of the regions where the samples differ most.

        The region ``difference(X) >= high`` is the one of the largest differences that holds the share `mass` of the excess
        of p over q, which is what p has more than q of where g > 0; ``difference(X) <= low`` is the same for q over p. The
        excess is counted by rows, in each fold under the fit that did not see it: rows themselves would look too different.

        Parameters
        ----------
        mass : float or array-like
            Share inside, between 0 and 1.
        relative : bool, default=False
            Whether to answer times V.

        Returns
        -------
        low, high : float or ndarray of the shape of `mass`
            Thresholds for :meth:`difference`. Infinite, for an empty region, where held-out rows show no excess.

        Raises
        ------
        InputError
            If `mass` is not between 0 and 1, or a sample has one row only.
        """
        check_is_fitted(self, "dual_coef_")
        asked = check_mass(mass)
        if not self._held_out.size:
            raise InputError("regions need at least two rows in each sample, to be held out.")
        values, contrast = self._held_out
        low = self._out(-upper_thresholds(-values, -contrast, asked), relative)
        high = self._out(upper_thresholds(values, contrast, asked), relative)
        return (low, high) if asked.ndim else (float(low), float(high))

    def predict(self, X: Any, priors: Any = (0.5, 0.5)) -> np.ndarray:
        r"""Which sample each row is likelier to be of.

        The sign of :math:`\pi p - (1 - \pi) q`, fitted in one go from :math:`\pi \bar\psi_X - (1 - \pi) \bar\psi_Y`: it is the
        Bayes rule where the first sample's rows turn up with probability :math:`\pi`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        priors : array-like of shape (2,), default=(0.5, 0.5)
            Probabilities of the samples' kinds, not negative; only their ratio matters.

        Returns
        -------
        ndarray of shape (n_samples,), int
            1 for the first sample, -1 for the second, 0 where the difference is 0, as it is far from all rows.

        Raises
        ------
        InputError
            If `priors` are not two numbers >= 0 with a positive sum.
        """
        system, z = self._enter(X)
        coefficients = self._means_coef @ (_shares(priors) * [1.0, -1.0])
        return np.sign(system.values(z, coefficients[:, None])[:, 0]).astype(int)

    def plot(self, masses: Any = (0.5, 0.8, 0.95), rows: Any = None, labels: Any = ("X", "Y"), ax: Any = None) -> Any:
        """Draw the difference of one or two columns with its regions, by :func:`isopleth.plotting.plot_difference`.

        Parameters
        ----------
        masses : sequence of float, default=(0.5, 0.8, 0.95)
            Shares of the excess that the regions hold, as for :meth:`level_set`.
        rows : tuple of two array-like or data frames, optional
            Rows of both samples to draw as dots.
        labels : sequence of two str, default=("X", "Y")
            What the samples are called.
        ax : matplotlib Axes, optional
            Where to draw; a new figure when left out.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InputError
            If there are more than two columns, or a sample has one row only.
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_difference  # plotting stands above the estimators and is not needed by them

        return plot_difference(self, masses=masses, rows=rows, labels=labels, ax=ax)


def _shares(priors: Any) -> np.ndarray:
    """Priors of sum 1."""
    expected = f"priors = {priors!r}: expected two numbers >= 0 with a positive sum."
    try:
        given = np.asarray(priors)
    except ValueError as error:
        raise InputError(expected) from error
    numbers = given.shape == (2,) and given.dtype.kind in "iuf"
    if not numbers or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise InputError(expected)
    share = given / given.max()  # a sum of large numbers may overflow
    return np.asarray(share / share.sum())
