"""SOSREP in random features, for data too large for a kernel matrix."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincinv, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from isopleth.core.arrays import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError, warn_user
from isopleth.core.fitted_attributes import FromFit
from isopleth.core.parts import ColumnMoments, FirstPass, Parts, positive_weight, take_columns
from isopleth.core.scales import RULES, Rule, ScaledColumns, deviations, loss_units, resolve_length_scale, scott
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.density.base import DensityEstimator
from isopleth.density.candidates import STACKS, Recipe
from isopleth.density.coordinates import ColumnCoordinates
from isopleth.density.feature_statistics import FeatureStatistics, check_memory, newton
from isopleth.density.fitted import Fitted
from isopleth.density.fitting import fit_numbers
from isopleth.density.frame_density import ExpansionDensity, FrameDensity
from isopleth.density.search import Search
from isopleth.density.solver import ROUGH, Solver
from isopleth.density.stack import StackDensity
from isopleth.expansion import KernelExpansion
from isopleth.frames import BoundedMap
from isopleth.kernels import Kernel, get_kernel
from isopleth.operators import Operator
from isopleth.operators.features import RandomFeatures
from isopleth.solvers import auto
from isopleth.tables.checks import CheckedRows, varying_columns, warn_few_rows

# Most rows of the subsample that is also fitted exactly, to estimate the error.
CHECKED = 2000

# Share of the weight below the noise, and error in nats, above which there is a warning.
MUCH_BELOW, LARGE_ERROR = 0.1, 1.0


class RandomFeatureSOSREP(DensityEstimator):
    r"""SOSREP in random features, whose time and memory grow linearly with the rows.

    The root f of the density :math:`p = f^2/Z` is a sum of T random features of the kernel [1]_ and minimises
    :math:`-\sum_i w_i \log f(x_i)^2 + |f|^2` [2]_. This is a problem in T unknowns, each step of which is one pass over the rows.
    A fitted model consists of T coefficients and T/2 wave vectors, and keeps no rows.

    Random features approximate the kernel with an error of the size :math:`1/\sqrt T`, also where the kernel is 0. So densities
    are known down to about 1/T of their largest possible value: rows where f is not above :math:`1/\sqrt T` have the log density
    minus infinity, no gradient and an infinite Hyvarinen loss. Far from all rows, about one place in six is above that noise by
    chance, most of them by less than 1.5 nats. If far rows matter, as for anomalies, use :class:`~isopleth.SOSREP` with
    `landmarks` instead.
    A sum of finitely many waves does not decrease far from the rows, so that f^2 has no integral over all space: there are no
    exact draws from it and no level sets, and the class has neither `sample` nor `plot`.

    In a fit, log f is extrapolated below the noise by a parabola (see ``continued_log`` in ``density/feature_statistics.py``).
    ``share_below_noise_`` is the share of such rows, and ``approximation_error_`` the error for the other rows. Both fall as
    length scales or T grow, so in many columns, where rows are far from each other, wide kernels work better. Gradients of rough
    kernels are inaccurate: for the Laplacian, squared wave numbers have no mean, and the few shortest waves dominate the
    gradient; its Hyvarinen loss is refused.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel, default="gaussian"
        The kernel. Its square must be integrable; for "imq" it is in one column only.
    length_scale : float, array of shape (n_features,), "auto", "scott", "median" or Search, default="auto"
        Length scale, one for all columns or one for each column, as for :class:`~isopleth.SOSREP`. "auto" is the larger of
        Scott's rule and the smallest scale at which f is above the noise for 99 % of normal rows with the Gaussian kernel. In one
        column that is Scott's rule, in ten columns and for T = 1,000 it is 1.5 standard deviations. A Search takes a scale at
        which all held-out rows are above the noise, so that a single outlier leads to a large scale.
    frame : {"scale", "whiten", "marginal", "gp1", "gp2", "gp4"} or Frame, default="scale"
        Coordinates in which the kernel has one shape, as for :class:`~isopleth.SOSREP`; one frame, not a mixture.
    bounds : None, dict or sequence, optional
        Bounds of columns, as for :class:`~isopleth.SOSREP`.
    n_frequencies : int, default=500
        Number T/2 of wave vectors; each has two features, a cosine and a sine.
    tol : float, default=1e-6
        Largest :math:`|w - \sum_i w_i \phi(x_i)/f(x_i)|/|w|` to accept, where w are the coefficients of the
        features and 1/f is the slope of the extrapolated logarithm below the noise.
    memory_limit : float, default=2**30
        Bytes that features of rows, matrices of T times T numbers and the kernel matrix of the subsample may take together.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    random_state : int, RandomState or None, default=None
        Seed of the wave vectors.
    verbose : bool or int, default=False
        Whether to show the progress of :meth:`fit` on standard error: of a Search, or of each pass over the rows.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, n_kept)
        Wave vectors of the columns that vary, in radians per length scale.
    coef_ : ndarray of shape (2 * n_frequencies,)
        Coefficients w of the features, those of the cosines first. The features approximate a kernel that is 1 at 0.
    log_normalizer_ : float
        log Z in the units of the data (or of logarithms and logits, for columns with bounds), from the same features.
    noise_level_ : float
        The noise :math:`1/\sqrt T` that f must exceed.
    share_below_noise_ : float
        Share of the weight of the fitted rows where f does not exceed it.
    approximation_error_ : float
        Root mean squared difference, in nats, between the normalised log densities of a fit in these features and of the exact
        fit with the same kernel. Both are fitted to the same subsample of at most 2,000 distinct rows and compared at its rows
        where f exceeds the noise; NaN if there is no such row. With fewer rows f is larger, so it underestimates the error of the
        whole fit if ``share_below_noise_`` is not small.
    length_scale_ : ndarray of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped.
    unit_ : ndarray of shape (n_features,)
        The unit of each column in :meth:`hyvarinen_loss`, as for :class:`~isopleth.SOSREP`.
    search_path_ : Choices
        The result of the Search, if `length_scale` is one.
    residual_ : float
        The residual reached, to be compared with `tol`.
    n_iter_ : int
        Number of passes over the rows.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had names.

    Warns
    -----
    ConvergenceWarning
        If `tol` was not reached.
    DataWarning
        If f is below the noise for more than a tenth of the weight, or ``approximation_error_`` is above 1; for constant columns
        and for fewer distinct rows than columns.

    See Also
    --------
    SOSREP : The exact fit, or with `landmarks` a fit to large data that has finite log densities at any distance.

    Notes
    -----
    There is no ``partial_fit``, because every step needs all rows again, at new coefficients. The sums of one step are additive
    (``isopleth.density.feature_statistics.FeatureStatistics``); with them, :func:`isopleth.distributed.fit` fits to rows that do
    not fit in memory.

    No rows are kept, and a sum of waves has no sampler, so there is no ``level_set``, ``plot`` or ``sample``. Use a quantile of
    :meth:`score_samples` of new rows as a level.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
    .. [2] M. Kozdoba, B. Perets, S. Mannor, "Sobolev Space Regularised Pre Density Models", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import RandomFeatureSOSREP
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> density = RandomFeatureSOSREP(n_frequencies=100, random_state=0).fit(X)
    >>> density.score_samples([[0.0, 0.0], [9.0, 9.0]]).round(1)  # -1.8 at 0 for the true density
    array([-2.1, -inf])
    >>> density.approximation_error_ < 0.3
    True
    """

    frequencies_, noise_level_, share_below_noise_ = FromFit(), FromFit(), FromFit()
    approximation_error_, coef_ = FromFit(), FromFit("coefficients")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DensityEstimator._parameter_constraints,
        "n_frequencies": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        length_scale: Any = "auto",
        frame: Any = "scale",
        bounds: Any = None,
        n_frequencies: int = 500,
        tol: float = 1e-6,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.frame = frame
        self.bounds = bounds
        self.n_frequencies = n_frequencies
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solver(self) -> FeatureSolver:
        if isinstance(self.frame, str) and self.frame in STACKS:
            raise InputError(
                f"frame = {self.frame!r}: random features are fitted in one frame; take 'scale' or 'whiten', or SOSREP."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        return FeatureSolver(Budget.of(self), self.n_frequencies, self.tol, rng)

    def _fit_numbers(self, table: CheckedRows) -> Self:
        fitted = fit_numbers(self, self._asked, self._solver(), table)
        solver = cast(FeatureSolver, cast(Recipe, fitted.recipe).solver)  # with its frequencies
        self._fitted = solver.without_rows(fitted)
        return self


@dataclass(frozen=True)
class FeatureDensity(FrameDensity):
    r"""Density :math:`p = f^2/Z` with :math:`f = w\cdot\phi`, where f is above the noise of the features.

    Far from all rows, a sum of random features is noise of the size :math:`1/\sqrt T` around 0. Where f is not above that, the
    log density is minus infinity and has no gradient.
    """

    kernel: Kernel  # kernel that the features approximate, bound to its dimension
    features: RandomFeatures
    coefficients: Array  # (T,): coefficients w

    @cached_property
    def log_normalizer(self) -> float:
        r"""Logarithm of Z, from the wave vectors drawn from the spectral density q of the kernel k:

        .. math:: Z = \int f^2 = (2\pi)^d \int q^2 |A|^2\, d\omega \approx \int k^2 \cdot
            \frac{\sum_t q(\omega_t)\,|A(\omega_t)|^2}{\sum_t q(\omega_t)},
            \qquad |A(\omega_t)|^2 = \tfrac T2\,(w_{\cos,t}^2 + w_{\sin,t}^2).
        """
        half, w = self.features.size // 2, to_numpy(self.coefficients)
        squares = w[:half] ** 2 + w[half:] ** 2
        log_q = self.kernel.log_spectral_density(to_numpy(self.features.frequencies))
        mean = logsumexp(log_q, b=half * squares) - logsumexp(log_q)
        return self.kernel.self_convolution().log_constant + float(mean)

    def positive(self, z: np.ndarray) -> np.ndarray:
        """Return a mask of the rows `z` at which f is above the noise of the features."""
        return self._root(z) > self.features.noise

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return log f^2, minus infinity where f is not above the noise."""
        f = self._root(z)
        known = f > self.features.noise
        return np.where(known, 2.0 * np.log(np.where(known, f, 1.0)), -np.inf)

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.log_unnormalized(z), self.grad_log_density(z)

    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`2\,\nabla f/f`, NaN where f is not above the noise."""
        return (
            2.0
            * self._evaluate(lambda x: self.features.gradient(x, self.coefficients), z)
            / self._root_above_noise(z)[:, None]
        )

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`2\,\Delta f/f`, NaN in the noise; rough kernels, which short waves would dominate, are refused."""
        if self.kernel.smoothness <= 1.0:
            raise InputError(
                f"random features of {self.kernel!r} have no useful Hyvarinen loss: their few shortest waves dominate it; use a "
                "smoother kernel, such as 'matern52' or 'gaussian', or compare by the likelihood."
            )
        return (
            2.0 * self._evaluate(lambda x: self.features.laplacian(x, self.coefficients), z) / self._root_above_noise(z)
        )

    @property
    def _backend(self) -> Backend:
        return Backend.of(self.coefficients)

    def _root(self, z: np.ndarray) -> np.ndarray:
        """Return f at rows `z`."""
        return self._evaluate(lambda x: self.features.value(x, self.coefficients), z)

    def _root_above_noise(self, z: np.ndarray) -> np.ndarray:
        """Return f at rows `z`, NaN where it is not above the noise."""
        f = self._root(z)
        return np.where(f > self.features.noise, f, np.nan)


@dataclass(frozen=True)
class FeatureSolver(Solver):
    """Fit of the root of a density in random features."""

    n_frequencies: int
    tol: float
    rng: Any  # random numbers of the wave vectors, until these are drawn
    frequencies: np.ndarray | None = None

    most_kernels: ClassVar[int] = sys.maxsize

    def begun(self, kernel: Kernel) -> Self:
        kernel.self_convolution()
        kernel.log_spectral_density(np.ones((1, kernel.bound_dim)))
        check_memory(2 * self.n_frequencies, self.budget)
        return replace(self, rng=None, frequencies=kernel.sample_frequencies(self.n_frequencies, self.rng))

    def rules(self, kernel: Kernel) -> Mapping[str, Rule]:
        return {**RULES, "auto": lambda rows, weights: scott_or_resolved(rows, weights, 2 * self.n_frequencies)}

    def rough(self) -> Self:
        return replace(self, tol=max(ROUGH, self.tol))

    def features(self, backend: Backend) -> RandomFeatures:
        """Return the features of rows on a backend."""
        return RandomFeatures(backend.array(self.frequencies), self.budget)

    def fit(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        features = self.features(Backend.of(z))
        shares = weights / namespace(weights).sum(weights)
        return self.solve(kernel, features, lambda sums: sums.accumulate(z, shares))

    def solve(
        self,
        kernel: Kernel,
        features: RandomFeatures,
        summed: Callable[[FeatureStatistics], FeatureStatistics],
    ) -> tuple[FeatureDensity, dict[str, Any]]:
        """Find the coefficients by Newton's method, with sums over all rows in each step."""
        backend = Backend.of(features.frequencies)
        start = backend.array(np.zeros(features.size))
        solution = newton(lambda w: summed(FeatureStatistics(features, w)), start, self.tol)
        found = FeatureDensity(kernel, features, solution.coefficients)
        return found, solution.facts | {"noise_level": features.noise, "frequencies": self.frequencies}

    def without_rows(self, fitted: Any) -> Fitted:
        """Compare a fit with the exact one to some of the rows, and keep no rows."""
        one, z = fitted.density, fitted.points
        if isinstance(one, StackDensity):
            (component,) = one.components
            one, z = component.density, component.map.forward(z) / component.scale
        error = self._approximation_error(one, z, fitted.weights)
        self._warn(fitted.facts, error)
        return replace(
            fitted,
            coefficients=one.coefficients,
            **dict.fromkeys(("rows", "points", "weights", "centers", "fit_rows")),
            coordinates=replace(fitted.coordinates, constants=np.full(len(fitted.places), np.nan)),
            facts={**fitted.facts, "approximation_error": error},
        )

    def _warn(self, facts: Mapping[str, Any], error: float) -> None:
        """Warn of a fit that has not converged, or of which much is noise."""
        if facts["residual"] > self.tol:
            warn_user(
                f"the residual {facts['residual']:.1e} is above tol = {self.tol:g} after {facts['n_iter']} passes; a larger tol "
                "or weights of a smaller range may help.",
                ConvergenceWarning,
            )
        found = []
        if facts["share_below_noise"] > MUCH_BELOW:
            found.append(
                f"{facts['share_below_noise']:.0%} of the rows lie where the density is below the noise of the features"
            )
        if error > LARGE_ERROR:
            found.append(f"log densities are {error:.1f} nats from those of the exact fit")
        if found:
            warn_user(
                f"{2 * self.n_frequencies} features are few for these rows: {' and '.join(found)}; take a larger length_scale or "
                "more n_frequencies, or fit SOSREP, which has no such errors."
            )

    def _approximation_error(self, fitted: FeatureDensity, z: np.ndarray, weights: np.ndarray) -> float:
        """Return the error of the random features, by a fit with other ones."""
        backend = Backend.of(fitted.coefficients)
        if len(z) > CHECKED:
            chosen = np.linspace(0, len(z) - 1, CHECKED).astype(int)
            z, weights = z[chosen], weights[chosen]
            fitted = cast(FeatureDensity, self.fit_numpy(backend, fitted.kernel, z, weights))
        known = fitted.positive(z)
        if not known.any():
            return float("nan")
        share = weights / weights.sum()
        centers = backend.array(z)
        op = Operator(fitted.kernel, centers, budget=self.budget).store()
        alpha = auto(op, backend.array(share), self.tol).coefficients
        sums = KernelExpansion(fitted.kernel, centers, alpha, budget=self.budget)
        exact = ExpansionDensity(sums, squared=True)
        difference = fitted.log_density(z[known]) - exact.log_density(z[known])
        return float(np.sqrt(np.average(difference**2, weights=share[known])))


# Share of normal rows at which f shall be above the noise.
RESOLVED_SHARE = 0.99


def log_root_squared(ratio: float, dim: int, squared_distance: float) -> float:
    r"""Return log f^2 of SOSREP for a normal density and the Gaussian kernel, at one row.

    For standard deviation r in units of the length scale, :math:`f = \int k(\cdot, y)\, p(y)/f(y)\, dy` is solved by
    :math:`f^2 = c^2 e^{-|x|^2/\tau^2}` with :math:`\tau^4 - (1 + 2r^2)\tau^2 + r^2 = 0` and
    :math:`c^2 = \bigl((\tau^2 - 1)/(r^2 \tau^2)\bigr)^{d/2}`.
    """
    r2 = ratio * ratio
    v = 0.5 * (2.0 * r2 - 1.0 + math.hypot(1.0, 2.0 * r2))  # tau^2 - 1, the variance of p/f
    return 0.5 * dim * math.log(v / (r2 * (1.0 + v))) - squared_distance * r2 / (1.0 + v)


def resolved_scale(dim: int, size: int) -> float:
    """Return the smallest length scale, in standard deviations, at which f is above the noise for 99 % of normal rows."""
    far = 2.0 * float(gammaincinv(0.5 * dim, RESOLVED_SHARE))  # a quantile of the squared distance
    return 1.0 / float(
        brentq(lambda ratio: log_root_squared(ratio, dim, far) + math.log(size), 1e-4, math.sqrt(size) * 1e4)
    )


def scott_or_resolved(rows: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Return for each column the larger of Scott's rule and :func:`resolved_scale`."""
    return np.maximum(scott(rows, weights), resolved_scale(rows.shape[1], size) * deviations(rows, weights))


# Rows of the sample: one more than CHECKED, to detect that there are more distinct rows.
SAMPLE = CHECKED + 1


def fit_parts(estimator: RandomFeatureSOSREP, parts: Parts) -> RandomFeatureSOSREP:
    """Fit SOSREP in random features to rows in parts, of which only the sums of a pass are kept.

    The first pass computes column moments and draws a sample; each other pass computes the sums of a step of Newton's method. The
    model equals that of ``estimator.fit`` to all rows up to rounding, with two exceptions for more than 2,000 distinct rows: the
    rule "median" uses a sample, and ``approximation_error_`` uses another sample than ``estimator.fit``. "auto" and "scott"
    count repeated rows individually if the weights sum to less than the number of rows.
    """
    estimator._validate_params()
    if isinstance(estimator.length_scale, Search):
        raise InputError(
            "length_scale is a Search, which needs all rows in memory; search on a sample that fits in memory, and pass the "
            "length_scale_ it finds."
        )
    solver, kernel = estimator._solver(), get_kernel(estimator.kernel)
    if not estimator._asked.scaled:
        raise InputError(f"frame = {estimator.frame!r} needs all rows in memory; take frame='scale'.")
    estimator._forget()
    take_columns(estimator, parts)
    bounds = BoundedMap.of(estimator.bounds, parts.labels, parts.names)
    found = parts.sums(partial(_BoundedFirstPass, parts.n_features), partial(_add_bounded, bounds, parts.labels))
    found.check(bounds, parts.labels)
    survey, rows = found.survey, found.survey.sample.rows
    keep = varying_columns(estimator, np.stack([survey.moments.low, survey.moments.high]))
    frame = ScaledColumns.centred(rows, keep)
    kernel = kernel.bind(frame.dim)
    solver = solver.begun(kernel)
    if survey.sample.complete:  # an incomplete sample has more rows than columns, in all likely cases
        warn_few_rows(len(rows), frame.dim)
    rules = _rules_by_sample(solver.rules(kernel), frame.centre(rows), survey.sample.weights)
    two, counts = survey.pair(keep)
    scale = resolve_length_scale(estimator.length_scale, two, counts, parts.labels, keep, rules=rules)
    unit = loss_units(scale, two, counts)
    frame = frame.scaled(scale)
    total = survey.moments.weight

    def summed(sums: FeatureStatistics) -> FeatureStatistics:
        start = partial(FeatureStatistics, sums.features, sums.coefficients)
        return parts.sums(start, partial(_accumulate, bounds, frame, total))

    density, facts = solver.solve(kernel, solver.features(NUMPY), summed)
    fitted = Fitted(
        coordinates=ColumnCoordinates(bounds, frame, np.full(len(keep), np.nan)),
        density=density,
        points=frame.enter(rows),
        recipe=Recipe.of_scaled(kernel, solver),
        coefficients=density.coefficients,
        log_normalizer=density.log_normalizer + frame.log_volume,
        places=np.arange(len(keep)),
        weights=survey.sample.weights,
        length_scale=frame.by_column(frame.scale),
        unit=frame.by_column(unit),
        times_loss=float((unit[0] / scale[0]) ** 2),
        facts=facts,
    )
    estimator._fitted = solver.without_rows(fitted)
    return estimator


class _BoundedFirstPass:
    """First pass over rows mapped to the real line, and the moments of the original rows."""

    def __init__(self, n_features: int) -> None:
        self.survey, self.extent = FirstPass(n_features, SAMPLE), ColumnMoments(n_features)

    def merge(self, other: Self) -> Self:
        """Add the results of `other`, and return this one."""
        self.survey.merge(other.survey)
        self.extent.merge(other.extent)
        return self

    def check(self, bounds: BoundedMap, labels: list[str]) -> None:
        """Refuse rows to which no density can be fitted."""
        if not self.extent.n_rows:
            raise InputError("X has no rows of positive weight; expected at least two that differ.")
        bounds.check(np.stack([self.extent.low, self.extent.high]), np.ones(2, dtype=bool), labels)


def _add_bounded(
    bounds: BoundedMap, labels: list[str], found: _BoundedFirstPass, rows: np.ndarray, weights: np.ndarray | None
) -> _BoundedFirstPass:
    """Add the rows of one part to the first pass of a fit with bounds."""
    rows, weights = positive_weight(rows, weights)
    bounds.refuse_outside(rows, labels)
    found.extent.add(rows, weights)
    found.survey.add(bounds.forward(rows), weights)
    return found


def _accumulate(
    bounds: BoundedMap,
    frame: ScaledColumns,
    total: float,
    sums: FeatureStatistics,
    rows: np.ndarray,
    weights: np.ndarray | None,
) -> FeatureStatistics:
    """Add rows to the sums of a step, with weights divided by their total so that products neither over- nor underflow."""
    rows, weights = positive_weight(rows, weights)
    share = np.full(len(rows), 1.0 / total) if weights is None else weights / total
    return sums.accumulate(frame.enter(bounds.forward(rows)), share)


def _rules_by_sample(rules: Mapping[str, Rule], rows: np.ndarray, weights: np.ndarray) -> Mapping[str, Rule]:
    """Return rules with "median" computed from a sample."""
    median = rules["median"]
    return {**rules, "median": lambda _rows, _weights: median(rows, weights)}
