"""Fitted density difference: values, errors, distances with their intervals, regions and classification."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.errors import InputError
from isopleth.core.fitted_attributes import FromFit
from isopleth.core.p_values import normal_quantile
from isopleth.core.progress import ReportsProgress
from isopleth.core.scales import ScaledColumns
from isopleth.difference.cross_validation import LEAST_ALPHA, fold_tables
from isopleth.difference.gaussian_system import GaussianSystem, over_volume
from isopleth.difference.statistics import DifferenceSystem, deviations_at
from isopleth.tables.checks import CheckedRows, check_mass, enter
from isopleth.tables.row_encoding import RowEncoding

KINDS = ("cross_fitted", "lower_bound", "linear", "quadratic", "combined", "corrected", "inverse_corrected")


def in_sample(at: DifferenceSystem, alpha: float) -> dict[str, float]:
    """Compute the paper's estimates (9), (10), (11), (15), times the volume; NaN with one row or a singular H."""
    spectrum, h, counts = at.spectrum, at.h, at.counts
    theta = spectrum.solve(h[:, None], alpha)[:, 0]
    linear, quadratic = float(h @ theta), spectrum.squared_size(theta)
    combined = 2.0 * linear - quadratic
    out = dict.fromkeys(KINDS, math.nan)
    out.update(linear=linear, quadratic=quadratic, combined=combined)
    if (counts > 1.0).all():
        out["corrected"] = combined - float(spectrum.dual_weights(alpha) @ spectrum.diagonal(at.noise))
    if math.isfinite(spectrum.condition):
        xp = namespace(spectrum.gram)
        plain = sum(v / float(n) for v, n in zip(at.covariances, counts, strict=True))
        out["inverse_corrected"] = combined - float(xp.linalg.trace(xp.linalg.solve(spectrum.gram, plain)))
    return out


def checked(estimates: dict[str, float], kind: str) -> float:
    """Return one of the estimates."""
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r}: expected one of {', '.join(KINDS)}.")
    if not math.isnan(estimates[kind]):
        return estimates[kind]
    if kind == "inverse_corrected":
        raise InputError(
            "kind = 'inverse_corrected' needs the inverse of H, which is singular to working precision for these centers; use "
            "'corrected', which is unbiased for the regularised distance at fixed centers."
        )
    raise InputError(f"kind = {kind!r} needs at least two rows in each sample; use 'combined'.")


# Ridge of intervals over that of the fit: the bias of the best fit is as large as its error, too large for an interval.
UNDERSMOOTHING = 0.01

# Largest ridge of intervals over the volume: searches that find no difference end at large ridges.
MOST_ALPHA = 0.1

MOST_COLUMNS = 5
# Gaussians of one length scale resolve less of a difference in more columns. Simulated intervals lay below the distance in
# 9 % of samples in five columns without this share of the upper reach for each column beyond the first, and above it in 1 %.
_WIDENING = 0.08


@dataclass(frozen=True)
class SquaredL2Law:
    r"""Estimate of the squared L2 distance, with its variance as a function of the true distance.

    With h normal around :math:`\mu` with covariance :math:`\Sigma = V_p/n + V_q/n'`, the cross-fitted mean of
    :math:`h_t^\top M h_{-t}` over T folds has expectation :math:`\mu^\top M \mu` and variance

    .. math:: 4\, \mu^\top M \Sigma M \mu + \tfrac{2T}{T-1} \operatorname{tr} (M \Sigma)^2 .

    The first term goes to 0 with the distance D and the second does not: the law degenerates for equal densities. Therefore
    the variance is modelled as :math:`c D + b`, with
    :math:`c = 4\, h^\top M \Sigma M h / h^\top M h`, and the interval holds all :math:`D \ge 0` with
    :math:`(\hat D - D)^2 \le z^2 (c D + b)`.
    """

    # estimate, slope, floor: `\hat D` and c times the volume, and b times its square
    estimate: float
    slope: float
    floor: float
    log_volume: float  # logarithm of that volume

    @classmethod
    def of(cls, at: DifferenceSystem, alpha: float) -> Self | None:
        """Fit at a ridge far below that of a good fit, `alpha`, but not nearly singular; None if a sample has only one row."""
        if at.systems is None or not (at.counts > 1.0).all():
            return None
        alpha = max(min(UNDERSMOOTHING * alpha, MOST_ALPHA), min(alpha, LEAST_ALPHA))
        folds = at.systems.sums.folds
        estimate = fold_tables(at.systems, np.array([alpha]), nested=False).cross.mean()
        backend = at.spectrum.backend
        half = at.spectrum.vectors * backend.array(np.sqrt(at.spectrum.dual_weights(alpha)))
        noise, h = half.T @ at.noise @ half, half.T @ backend.array(at.h)
        dual = float(h @ h)
        slope = 4.0 * float(h @ noise @ h) / dual if dual > 0.0 else 0.0
        floor = 2.0 * folds / (folds - 1.0) * float(namespace(noise).sum(noise**2))
        return cls(float(estimate), slope, floor, at.log_volume)

    def interval(self, confidence_level: Any, columns: int = 1) -> tuple[float, float]:
        """Return both limits times the volume, for densities in this number of columns."""
        z = normal_quantile(confidence_level)
        if columns > MOST_COLUMNS:
            raise InputError(
                f"a squared L2 distance in {columns} columns cannot be bounded from above by samples of ordinary size; take at "
                f"most {MOST_COLUMNS} columns, or two_sample_test(X, Y).separation() for the accuracy of a classifier."
            )
        # A distance is not negative; an estimate far below 0 must not make the upper limit vanish.
        estimate = max(self.estimate, 0.0)
        shift = 0.5 * z**2 * self.slope
        reach = math.sqrt(shift**2 + z**2 * (self.slope * estimate + self.floor))
        return max(estimate + shift - reach, 0.0), estimate + shift + (1.0 + _WIDENING * (columns - 1)) * reach


@dataclass(frozen=True, eq=False)
class FittedDifference:
    """Result of a fit: a difference of two densities as a sum of Gaussians, with its standard errors."""

    encoding: RowEncoding  # of words and missing cells
    frame: ScaledColumns  # coordinates of encoded rows, over the length scale
    system: GaussianSystem  # the functions, on the backend of the rows of the fit
    centers: np.ndarray  # (b, n_features): their centres in the units of the data
    means: np.ndarray  # (b, 2): coefficients of the mean over each sample
    dual_coef: Array  # (b,): coefficients of the difference times V
    alpha: float
    length_scale: np.ndarray  # by column
    std_factor: np.ndarray | None
    estimates: dict[str, float]  # of the squared L2 distance times V, by name
    path: Any = None  # DifferenceSearchPath; None if a sample has only one row
    # Difference at rows of held-out folds times V, and the weight of each row in the mass of X less that of Y.
    held_out: np.ndarray = field(default_factory=lambda: np.empty((2, 0)))
    law: SquaredL2Law | None = None

    @property
    def backend(self) -> Backend:
        """Array library and device of the rows of the fit."""
        return Backend.of(self.dual_coef)

    @property
    def log_volume(self) -> float:
        """Logarithm of V, in the units of the data."""
        return self.system.log_volume

    @property
    def squared_l2(self) -> float:
        """Cross-fitted estimate of the squared L2 distance."""
        return float(self.over_volume(self.estimates["cross_fitted"]))

    @property
    def columns(self) -> int:
        """Number of columns that vary."""
        return self.encoding.kept_columns(self.frame.keep)

    def enter(self, table: CheckedRows) -> np.ndarray:
        """Return checked rows in the coordinates of the functions."""
        self.encoding.refuse_new_gaps(table.rows)
        return self.frame.enter(self.encoding(table.rows))

    def values(self, z: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return a linear combination of the functions, times V, at points."""
        found: np.ndarray = self.system.values(z, coefficients[:, None])[:, 0]
        return found

    def over_volume(self, relative_values: Any, relative: bool = False) -> np.ndarray:
        """Return values divided by V, unless they are asked for in relation to it."""
        return np.asarray(relative_values) if relative else over_volume(relative_values, self.log_volume)


class DifferenceEstimator(ReportsProgress, BaseEstimator):
    """Estimator of the difference of two densities, which keeps the value that a fit returns and asks it.

    A subclass has the parameters `memory_limit` and `n_jobs`. Answers are in the array library and on the device of the rows.
    """

    memory_limit: float
    n_jobs: int | None
    _fitted: FittedDifference

    centers_, dual_coef_, log_volume_ = FromFit(), FromFit(), FromFit()
    length_scale_, alpha_, squared_l2_ = FromFit(), FromFit(), FromFit()
    search_path_ = FromFit("path", missing=None)

    def __sklearn_is_fitted__(self) -> bool:
        return not {"_fitted", "_running"}.isdisjoint(vars(self))  # sums are solved when an answer is asked for

    def _value(self) -> FittedDifference:
        """Return the fitted value."""
        check_is_fitted(self)
        return self._fitted

    def _enter(self, X: Any) -> tuple[CheckedRows, FittedDifference, np.ndarray]:
        """Return the checked rows, the fitted value, and the rows in its coordinates."""
        fitted = self._value()
        table = enter(self, X)
        return table, fitted, fitted.enter(table)

    def difference(self, X: Any, relative: bool = False) -> Array:
        """Compute the fitted difference of densities at each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; their library and device are those of the answer.
        relative : bool, default=False
            Whether to return values times V, which neither over- nor underflow in many columns.

        Returns
        -------
        array of shape (n_samples,)
            p - q, per unit of volume of the kept columns; positive where there is more of the first sample.
        """
        table, fitted, z = self._enter(X)
        return table.answer(fitted.over_volume(fitted.values(z, to_numpy(fitted.dual_coef)), relative))

    def difference_std(self, X: Any, relative: bool = False) -> Array:
        r"""Compute the standard deviation of :meth:`difference` at each row, by the limit law of the coefficients.

        :math:`\hat g(x) = \psi(x)^\top G h` with :math:`G = (H + \lambda I)^{-1}` is linear in two means, so that its variance is
        :math:`\psi(x)^\top G\, (V_p/n + V_q/n')\, G\, \psi(x)`, V the covariances of :math:`\psi` in the samples (section 2.3.1
        of the paper, which has :math:`\lambda = 0`). Bands of plus and minus 1.96 of it cover the expectation of
        :math:`\hat g(x)`, a smoothed and shrunk p - q, and not p - q itself; centres, length scale and ridge are taken as
        fixed.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; their library and device are those of the answer.
        relative : bool, default=False
            Whether to return values times V.

        Returns
        -------
        array of shape (n_samples,)
            In the units of :meth:`difference`.

        Raises
        ------
        InputError
            If a sample has only one row, from which no variance can be estimated.
        """
        table, fitted, z = self._enter(X)
        if fitted.std_factor is None:
            raise InputError("a standard deviation needs at least two rows in each sample.")
        return table.answer(fitted.over_volume(deviations_at(fitted.system, z, fitted.std_factor), relative))

    def squared_l2(self, kind: str = "cross_fitted", relative: bool = False) -> float:
        r"""Estimate the squared L2 distance :math:`\int (p - q)^2`.

        With :math:`G = (H + \lambda I)^{-1}` and :math:`M = 2G - GHG`:

        "cross_fitted"
            :math:`h_t^\top M h_{-t}`, the mean over folds t of the dual form with one h of the held-out fold and the other
            of the training folds. In the latter, each function is averaged over all rows except its own centre, unless the
            penalty is "rkhs" or :math:`\alpha < 0.001`. The length scale is the candidate at which a Gaussian sum fits the
            average of both densities best, by cross-validation, and the ridge is the candidate nearest to 0.3: those that fit
            the difference best shrink the distance. Its expectation is :math:`\int (p - q)\, g` for the g of the training
            folds, and 0 if p = q. It can be negative.
        "lower_bound"
            Minus the cross-validation loss, with length scale and ridge chosen for each fold by cross-validation within the
            others (smallest mean loss plus standard error): unbiased for
            :math:`\int (p - q)^2 - \int (g - (p - q))^2`, which is never above the distance.
        "linear", "quadratic", "combined"
            :math:`h^\top \theta`, :math:`\theta^\top H \theta` and
            :math:`2 h^\top \theta - \theta^\top H \theta = h^\top M h`: (9), (10) and (11) of the paper. They use the rows
            for the fit and for its evaluation, and are too large at small length scales and ridges.
        "corrected"
            :math:`h^\top M h - \operatorname{tr} M (V_p/n + V_q/n')`, unbiased for the value of "combined" at the exact means,
            if centres, length scale and ridge do not depend on the samples.
        "inverse_corrected"
            (15) of the paper: the same with :math:`H^{-1}` for M in the trace and covariances divided by n. H is singular to
            working precision for centres as dense as samples are; then it is refused.

        Parameters
        ----------
        kind : str, default="cross_fitted"
            Name of the estimate.
        relative : bool, default=False
            Whether to return values times V.

        Returns
        -------
        float
            In reciprocal units of volume.

        Raises
        ------
        InputError
            If there is no such estimate, or the data do not allow it.
        """
        fitted = self._value()
        return float(fitted.over_volume(checked(fitted.estimates, kind), relative))

    def squared_l2_interval(self, confidence_level: float = 0.95, relative: bool = False) -> tuple[float, float]:
        r"""Compute a confidence interval for the squared L2 distance :math:`\int (p - q)^2`.

        It contains all distances D with :math:`(\hat D - D)^2 \le z^2 \operatorname{var}(D)`, z the normal quantile, where
        :math:`\hat D` is a cross-fitted estimate. Its variance by the limit law depends on D, because the law is different
        for p = q. Its ridge is a hundredth of the chosen one and at most 0.1. Its length scale is the smallest one at which a
        Gaussian sum fits the average of both densities as well as at the best one, to within a standard error, over the root
        of 2, but no more than the standard deviations within the samples: at the length scale of ``squared_l2_``, which has the
        smaller error, the bias would be too large in relation to it.

        The expectation of :math:`\hat D` is :math:`\mu^\top M \mu` with the exact means :math:`\mu`, which is at most the
        distance. The lower limit is therefore conservative, and the upper limit covers as far as the length scale resolves the
        difference. Without assumptions no upper limit exists. In more columns less is resolved: the distance from the estimate
        to the upper limit grows by 8 % with each column beyond the first, and beyond five columns there is no interval.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level between 0 and 1.
        relative : bool, default=False
            Whether to return values times V.

        Returns
        -------
        low, high : float
            In reciprocal units of volume; `low` is 0 if equal densities are not excluded.

        Raises
        ------
        InputError
            If the level is not between 0 and 1, a sample has one row only, or more than five columns vary.

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
        fitted = self._value()
        if fitted.law is None:
            raise InputError("an interval needs at least two rows in each sample.")
        low, high = fitted.law.interval(confidence_level, fitted.columns)
        log_volume = fitted.law.log_volume - (fitted.log_volume if relative else 0.0)
        return float(over_volume(low, log_volume)), float(over_volume(high, log_volume))

    def level_set(self, mass: Any, relative: bool = False) -> tuple[Any, Any]:
        r"""Compute thresholds of the regions where the samples differ most.

        The region ``difference(X) >= high`` contains the share `mass` of the excess of p over q where g > 0;
        ``difference(X) <= low`` is the same for q over p. The excess is counted in rows of held-out folds, because at its own
        training rows a fit shows too large a difference.

        Parameters
        ----------
        mass : float or array-like
            Share inside the regions, between 0 and 1.
        relative : bool, default=False
            Whether to return values times V.

        Returns
        -------
        low, high : float or ndarray of the shape of `mass`
            Thresholds for :meth:`difference`. Infinite (an empty region) if held-out rows show no excess.

        Raises
        ------
        InputError
            If `mass` is not between 0 and 1, or a sample has one row only.
        """
        fitted = self._value()
        backend, asked = Backend.of(mass, "mass"), check_mass(to_numpy(mass))
        if not fitted.held_out.size:
            raise InputError(
                "regions need at least two rows in each sample to hold out, given to fit, since sums keep none."
            )
        values, contrast = fitted.held_out
        low = fitted.over_volume(-upper_thresholds(-values, -contrast, asked), relative)
        high = fitted.over_volume(upper_thresholds(values, contrast, asked), relative)
        return (backend.array(low), backend.array(high)) if asked.ndim else (float(low), float(high))

    def predict(self, X: Any, priors: Any = (0.5, 0.5)) -> Array:
        r"""Predict from which of the two distributions each row is.

        The prediction is the sign of :math:`\pi p - (1 - \pi) q`, fitted from :math:`\pi \bar\psi_X - (1 - \pi) \bar\psi_Y`. It
        is the Bayes rule if a row is from p with probability :math:`\pi`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; their library and device are those of the answer.
        priors : array-like of shape (2,), default=(0.5, 0.5)
            Probabilities of p and q, not negative; only their ratio matters.

        Returns
        -------
        array of shape (n_samples,), int
            1 for the first sample, -1 for the second, 0 where the difference is 0, as far from all rows.

        Raises
        ------
        InputError
            If `priors` are not two numbers >= 0 with a positive sum.
        """
        table, fitted, z = self._enter(X)
        coefficients = fitted.means @ (_shares(to_numpy(priors)) * [1.0, -1.0])
        return table.answer(np.sign(fitted.values(z, coefficients)).astype(int))

    def plot(self, masses: Any = (0.5, 0.8, 0.95), rows: Any = None, labels: Any = ("X", "Y"), ax: Any = None) -> Any:
        """Draw the difference of one or two columns, with the regions where the samples differ most.

        Blue is where there is more of the first sample, vermillion where there is more of the second: nested regions that hold
        the stated shares of the excess, see :meth:`level_set`. Of one column, the difference itself is drawn too, in a band of
        normal quantiles times :meth:`difference_std`, which covers the expectation of the estimate at each place by itself. A
        line of text says where the squared L2 distance lies.

        Parameters
        ----------
        masses : sequence of float, default=(0.5, 0.8, 0.95)
            Shares of the excess that the regions hold, as for :meth:`level_set`.
        rows : tuple of two array-like or data frames, optional
            Rows of both samples to draw as dots.
        labels : sequence of two str, default=("X", "Y")
            Names of the samples.
        ax : matplotlib Axes, optional
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InputError
            If there are more than two columns, words or missing cells, or a sample has one row only.
        MissingExtraError
            If matplotlib is not installed.
        """
        if self._value().encoding.scaled.any():
            raise InputError("plot draws one or two columns of numbers; this difference has words or missing cells.")
        from isopleth.difference.figures import plot_difference

        return plot_difference(self, masses=masses, rows=rows, labels=labels, ax=ax)


def _shares(priors: Any) -> np.ndarray:
    """Return the priors divided by their sum."""
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


def upper_thresholds(values: np.ndarray, contrast: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the largest thresholds above which a share `mass` of the excess above 0 lies; infinite if there is none.

    `contrast` is the weight of each row in the mass of the first sample less that of the second.
    """
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    above, excess = values[order], np.cumsum(contrast[order])
    last = np.append(above[1:] != above[:-1], True)[: len(above)]  # equal values are in a region together
    above, excess = above[last], excess[last]
    if not len(above) or excess[-1] <= 0:
        return np.full(mass.shape, np.inf)
    reached = np.maximum.accumulate(excess)
    wanted = mass * excess[-1] * (1.0 - 1e-12)
    return above[np.searchsorted(reached, wanted, side="left")]
