"""SOSREP in random features: for more rows than a kernel matrix can serve."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincinv, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from isopleth.backend import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.density.bounds import Bounds
from isopleth.density.estimator import DensityEstimator
from isopleth.density.feature_statistics import FeatureStatistics, check_memory, newton
from isopleth.density.fitted import FrameDensity, RootDensity
from isopleth.density.search import Search
from isopleth.entry import varying_columns, warn_few_rows
from isopleth.errors import DataWarning, InputError
from isopleth.expansion import KernelExpansion
from isopleth.first_pass import ColumnMoments, FirstPass
from isopleth.frame import Frame
from isopleth.kernels import Kernel, get_kernel
from isopleth.length_scales import RULES, Rule, deviations, loss_units, resolve_length_scale, scott
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.random_features import RandomFeatures
from isopleth.operators.threads import DEFAULT_N_JOBS
from isopleth.parts import Parts, take_columns
from isopleth.solvers import auto

# Rows of the subsample that is fitted exactly as well.
CHECKED = 2000

# Share of the weight below the noise that is worth a warning.
MANY = 0.1

# Difference from the exact fit, in nats, that is worth one as well.
APART = 1.0


class RandomFeatureSOSREP(DensityEstimator):
    r"""SOSREP in random features: time and memory that grow with the rows, not with their square.

    The root f of the density :math:`p = f^2/Z` is a sum of T random features of the kernel [1]_ and minimises
    :math:`-\sum_i w_i \log f(x_i)^2 + |f|^2` [2]_: a problem in T unknowns, each step of which is one pass over the rows. A
    fitted model holds T numbers and T/2 wave vectors, and no rows.

    Features are noise of the size :math:`1/\sqrt T` where the kernel is 0. So densities are told down to about 1/T of their
    largest possible value and no further: rows where f is not above :math:`1/\sqrt T` have the log density minus infinity, no
    gradient and an infinite Hyvarinen loss. Far from all rows one place in six is above it by chance, most of them by less than
    1.5 nats. In a fit, log f is continued below the noise by a parabola (see
    ``continued_log`` in ``density/feature_statistics.py``). ``share_below_noise_`` says how many rows there are,
    ``approximation_error_`` how far the others are from :class:`~isopleth.SOSREP`. Both fall as length scales or T grow: in many
    columns, where rows are far from each other, features pay with a wide kernel. Gradients of rough kernels are not near the
    exact ones: for the Laplacian, squares of wave numbers have no mean, and the shortest few waves make up the gradient; its
    Hyvarinen loss is refused.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel, default="gaussian"
        The kernel; its square must integrate, which that of "imq" does for one column only.
    length_scale : float, array of shape (n_features,), "auto", "scott", "median" or Search, default="auto"
        Length scale, one for all columns or one a column, as for :class:`~isopleth.SOSREP`. "auto" is Scott's rule, or the
        smallest scale at which T features of the Gaussian kernel tell 99 % of normal rows from noise, whichever is larger: it
        is Scott's rule in one column, and in ten 1.5 standard deviations for T = 1,000. A Search takes a scale at which every
        row held out is above the noise: one row far from the others makes it wide.
    bounds : None, dict or sequence, optional
        Where columns end, as for :class:`~isopleth.SOSREP`.
    n_frequencies : int, default=500
        Number of wave vectors, T/2: each has two features, a cosine and a sine.
    tol : float, default=1e-6
        Largest :math:`|w - \sum_i w_i \phi(x_i)/f(x_i)|/|w|` to accept, w being the coefficients of the features and 1/f the
        slope of the continued logarithm below the noise.
    memory_limit : float, default=2**30
        Bytes that features of rows, matrices of T times T numbers and the kernel matrix of the subsample may take together.
    n_jobs : int or None, default=-1
        Threads; -1 is all processors, None is one or what joblib.parallel_config says.
    random_state : int, RandomState or None, default=None
        What the wave vectors are drawn from.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, n_kept)
        Wave vectors of the columns that vary, in radians a length scale.
    coef_ : ndarray of shape (2 * n_frequencies,)
        Coefficients w, those of the cosines first, of the features whose product is a kernel that is 1 at 0.
    log_normalizer_ : float
        log Z in the units of the data (or of logarithms and logits, for columns with bounds), from the same features.
    noise_level_ : float
        :math:`1/\sqrt T`, what f must exceed.
    share_below_noise_ : float
        Share of the weight of the fitted rows where it does not.
    approximation_error_ : float
        Root mean squared difference, in nats, between the log density of a fit in these features and that of the exact fit of the
        same kernel, both normalised, fitted to the same rows and compared at them, where f exceeds the noise: at most
        2,000 distinct rows, always the same. NaN where there is no such row. Fewer rows have larger f, so
        that it is too small for all of them where ``share_below_noise_`` is not.
    length_scale_ : ndarray of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped.
    unit_ : ndarray of shape (n_features,)
        The unit of each column in :meth:`hyvarinen_loss`, as for :class:`~isopleth.SOSREP`.
    search_path_ : SearchPath
        What a Search found, where `length_scale` is one.
    residual_ : float
        What `tol` bounds, as reached.
    n_iter_ : int
        Passes over the rows taken.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    Warns
    -----
    ConvergenceWarning
        If `tol` was not reached.
    DataWarning
        If f does not exceed the noise at more than a tenth of the weight, or ``approximation_error_`` is above 1; for constant
        columns and for fewer distinct rows than columns.

    See Also
    --------
    SOSREP : The exact fit, for as many rows as time allows; it tells densities at any distance.

    Notes
    -----
    There is no ``partial_fit``: every step needs all rows again, at the coefficients that the last one found. What adds are
    the sums of a step, ``isopleth.density.feature_statistics.FeatureStatistics``, by which :func:`isopleth.distributed.fit`
    goes over rows that do not fit in memory.

    No rows are kept, and a sum of waves has no sampler: there is no ``level_set``, ``plot`` or ``sample``. A quantile of
    :meth:`score_samples` of rows that were not fitted serves as a level.

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
    >>> density.score_samples([[0.0, 0.0], [9.0, 9.0]]).round(1)  # the normal density has -1.8
    array([-2.1, -inf])
    >>> density.approximation_error_ < 0.3
    True
    """

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
        bounds: Any = None,
        n_frequencies: int = 500,
        tol: float = 1e-6,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.bounds = bounds
        self.n_frequencies = n_frequencies
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _refuse(self, kernel: Kernel) -> None:
        kernel.self_convolution()
        kernel.log_spectral_density(np.ones((1, kernel.bound_dim)))
        check_memory(2 * self.n_frequencies, self.memory_limit)

    def _draw(self, kernel: Kernel) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self.frequencies_ = kernel.sample_frequencies(self.n_frequencies, rng)

    def _rules(self) -> Mapping[str, Rule]:
        return {"auto": lambda rows, weights: scott_or_told(rows, weights, 2 * self.n_frequencies), **RULES}

    def _features(self, backend: Backend) -> RandomFeatures:
        return RandomFeatures(backend.array(self.frequencies_), self.memory_limit, self.n_jobs)

    def _fit_frame(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        backend = Backend.of(z)
        features = self._features(backend)
        shares = weights / namespace(weights).sum(weights)
        solution = newton(
            lambda w: FeatureStatistics(features, w).accumulate(z, shares),
            backend.array(np.zeros(features.size)),
            self.tol,
        )
        report = {**solution.report, "noise_level_": features.noise}
        return FeatureDensity(kernel, features, solution.coefficients), report

    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        fitted = cast(FeatureDensity, density)
        self.coef_ = fitted.coefficients
        self.approximation_error_ = self._approximation_error(fitted, z, weights)
        self._warn()

    def _warn(self) -> None:
        level = 5  # to the caller of fit
        if self.residual_ > self.tol:
            warnings.warn(
                f"the residual {self.residual_:.1e} is above tol = {self.tol:g} after {self.n_iter_} passes; a larger tol or "
                "weights of a smaller range may help.",
                ConvergenceWarning,
                stacklevel=level,
            )
        found = []
        if self.share_below_noise_ > MANY:
            found.append(
                f"{self.share_below_noise_:.0%} of the rows lie where the density is not told from their noise"
            )
        if self.approximation_error_ > APART:
            found.append(f"log densities are {self.approximation_error_:.1f} nats from the exact fit's")
        if found:
            warnings.warn(
                f"{2 * self.n_frequencies} features are few for these rows: {' and '.join(found)}; take a larger length_scale or "
                "more n_frequencies, or fit SOSREP, which has no such errors.",
                DataWarning,
                stacklevel=level,
            )

    def _approximation_error(self, fitted: FeatureDensity, z: np.ndarray, weights: np.ndarray) -> float:
        if len(z) > CHECKED:
            chosen = np.linspace(0, len(z) - 1, CHECKED).astype(int)
            z, weights = z[chosen], weights[chosen]
            fit = self._fitting_at(Backend.of(fitted.coefficients))
            fitted = cast(FeatureDensity, fit(fitted.kernel, z, weights))
        told = fitted.positive(z)
        if not told.any():
            return float("nan")
        share = weights / weights.sum()
        backend = Backend.of(fitted.coefficients)
        centers = backend.array(z)
        op = Operator(fitted.kernel, centers, memory_limit=self.memory_limit, n_jobs=self.n_jobs).store()
        alpha = auto(op, backend.array(share), self.tol).coefficients
        exact = RootDensity(KernelExpansion(fitted.kernel, centers, alpha, self.memory_limit, self.n_jobs))
        difference = fitted.log_density(z[told]) - exact.log_density(z[told])
        return float(np.sqrt(np.average(difference**2, weights=share[told])))

    def _fitted(self) -> FeatureDensity:
        return FeatureDensity(self._kernel, self._features(Backend.of(self.coef_)), self.coef_)


@dataclass(frozen=True)
class FeatureDensity(FrameDensity):
    r"""The density :math:`p = f^2/Z`, :math:`f = w\cdot\phi`, where f is above the noise of the features.

    Far from all rows a sum of random features is no small number but noise about 0. What is not above its size
    :math:`1/\sqrt T` is not told from 0 there: the log density is minus infinity and has no gradient.

    Parameters
    ----------
    kernel : Kernel
        What the features were drawn for, bound.
    features : RandomFeatures
        The features.
    coefficients : array of shape (T,)
        w.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Gaussian
    >>> from isopleth.density.feature_sosrep import FeatureDensity
    >>> from isopleth.operators.random_features import RandomFeatures
    >>> features = RandomFeatures.draw(Gaussian(dim=1), 5000, np.random.default_rng(0))
    >>> p = FeatureDensity(Gaussian(dim=1), features, features(np.zeros((1, 1)))[0])  # as if there were one row, at 0
    >>> round(float(p.log_normalizer), 2)  # the integral of exp(-z^2) is the square root of pi
    0.57
    >>> p.log_density(np.array([[0.0], [1.0], [9.0]])).round(1)
    array([-0.6, -1.6, -inf])
    """

    kernel: Kernel
    features: RandomFeatures
    coefficients: Array

    @cached_property
    def log_normalizer(self) -> float:
        r"""log Z, from the features: with q the spectral density of the kernel k, which the wave vectors were drawn from,

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
        """Whether f is above the noise of the features at rows `z`."""
        return self._root(z) > self.features.noise

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """log f^2, minus infinity where f is not above the noise."""
        f = self._root(z)
        told = f > self.features.noise
        return np.where(told, 2.0 * np.log(np.where(told, f, 1.0)), -np.inf)

    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        r""":math:`2\,\nabla f/f`, NaN where f is not above the noise."""
        return 2.0 * self._answer(lambda x: self.features.gradient(x, self.coefficients), z) / self._told(z)[:, None]

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r""":math:`2\,\Delta f/f`, NaN where f is not above the noise.

        Raises
        ------
        InputError
            For kernels of smoothness 1 and less: squares of their wave numbers have no mean, and the loss would be that of the
            shortest few waves that were drawn.
        """
        if self.kernel.smoothness <= 1.0:
            raise InputError(
                f"random features of {self.kernel!r} have no Hyvarinen loss to go by, only that of their shortest waves; use a "
                "smoother kernel, such as 'matern52' or 'gaussian', or judge by the likelihood."
            )
        return 2.0 * self._answer(lambda x: self.features.laplacian(x, self.coefficients), z) / self._told(z)

    @property
    def _backend(self) -> Backend:
        return Backend.of(self.coefficients)

    def _root(self, z: np.ndarray) -> np.ndarray:
        """f at rows `z`."""
        return self._answer(lambda x: self.features.value(x, self.coefficients), z)

    def _told(self, z: np.ndarray) -> np.ndarray:
        f = self._root(z)
        return np.where(f > self.features.noise, f, np.nan)


# Share of normal rows that are to be above the noise.
TOLD = 0.99


def log_root_squared(ratio: float, dim: int, squared_distance: float) -> float:
    r"""log f^2 of SOSREP for a normal density and the Gaussian kernel, at a row.

    For deviation r in units of the length scale, :math:`f = \int k(\cdot, y)\, p(y)/f(y)\, dy` is solved by
    :math:`f^2 = c^2 e^{-|x|^2/\tau^2}` with :math:`\tau^4 - (1 + 2r^2)\tau^2 + r^2 = 0` and
    :math:`c^2 = \bigl((\tau^2 - 1)/(r^2 \tau^2)\bigr)^{d/2}`.

    Parameters
    ----------
    ratio : float
        r, the same in all columns.
    dim : int
        d.
    squared_distance : float
        Of the row from the centre, in squared deviations.
    """
    r2 = ratio * ratio
    v = 0.5 * (2.0 * r2 - 1.0 + math.hypot(1.0, 2.0 * r2))  # tau^2 - 1, the variance of p/f
    return 0.5 * dim * math.log(v / (r2 * (1.0 + v))) - squared_distance * r2 / (1.0 + v)


def told_scale(dim: int, size: int) -> float:
    """Smallest length scale, in deviations of normal rows, at which `size` features tell 99 % of these from noise."""
    far = 2.0 * float(gammaincinv(0.5 * dim, TOLD))  # a quantile of the squared distance
    return 1.0 / float(
        brentq(lambda ratio: log_root_squared(ratio, dim, far) + math.log(size), 1e-4, math.sqrt(size) * 1e4)
    )


def scott_or_told(rows: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Scott's rule a column, or the scale that `size` features tell, whichever is larger.

    Parameters
    ----------
    rows : array of shape (n, d)
        Kept columns of the distinct rows, centred.
    weights : array of shape (n,)
        Their weights.
    size : int
        Number of features.
    """
    return np.maximum(scott(rows, weights), told_scale(rows.shape[1], size) * deviations(rows, weights))


# Rows of the sample: one more than are fitted exactly tells that there are more.
SAMPLE = CHECKED + 1


def fit_parts(estimator: RandomFeatureSOSREP, parts: Parts) -> RandomFeatureSOSREP:
    """Fit SOSREP in random features to rows in parts, of which no more than the sums of a pass are kept.

    The first pass takes column moments and a sample, each other one the sums of a step of Newton's method. The model is that of
    ``estimator.fit`` to all rows, but for rounding, with two exceptions where there are more than 2,000 distinct rows: the rule
    "median" goes by a sample, and so does ``approximation_error_``, by another one than in memory. "auto" and "scott" count
    repeated rows one by one if weights add up to less than the rows.

    Parameters
    ----------
    estimator : RandomFeatureSOSREP
        What is to be fitted; its `length_scale` is no Search.
    parts : Parts
        The rows.

    Returns
    -------
    RandomFeatureSOSREP
        `estimator`.

    Raises
    ------
    InputError
        For what ``estimator.fit`` refuses, and for a Search.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import RandomFeatureSOSREP
    >>> from isopleth.density.feature_sosrep import fit_parts
    >>> from isopleth.parts import ArrayParts
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = RandomFeatureSOSREP(n_frequencies=50, random_state=0)
    >>> there = model.fit(X).score_samples(X)
    >>> here = fit_parts(model, ArrayParts(X, part_rows=1000)).score_samples(X)
    >>> told = np.isfinite(there)
    >>> bool(np.allclose(here[told], there[told], rtol=1e-9))
    True
    """
    estimator._validate_params()
    if isinstance(estimator.length_scale, Search):
        raise InputError(
            "length_scale is a Search, which holds out rows again and again; search on a sample that fits in memory, and pass "
            "the length_scale_ it finds."
        )
    estimator._forget()
    take_columns(estimator, parts)
    bounds = Bounds.of(estimator.bounds, parts.labels, parts.names)
    found = parts.sums(partial(_BoundedFirstPass, parts.n_features), partial(_add_bounded, bounds, parts.labels))
    found.check(bounds, parts.labels)
    survey, rows = found.survey, found.survey.sample.rows
    keep = varying_columns(estimator, np.stack([survey.moments.low, survey.moments.high]))
    frame = Frame.centred(rows, keep)
    kernel = get_kernel(estimator.kernel).bind(frame.dim)
    estimator._refuse(kernel)
    estimator._draw(kernel)
    if survey.sample.complete:  # else there are more rows than columns, or none can tell
        warn_few_rows(len(rows), frame.dim)
    rules = _rules(estimator, frame.centre(rows), survey.sample.weights)
    two, counts = survey.pair(keep)
    scale = resolve_length_scale(estimator.length_scale, two, counts, parts.labels, keep, rules=rules)
    unit = loss_units(scale, two, counts)
    frame = frame.scaled(scale)
    features = estimator._features(NUMPY)
    total = survey.moments.weight

    def sums_at(w: np.ndarray) -> FeatureStatistics:
        return parts.sums(partial(FeatureStatistics, features, w), partial(_accumulate, bounds, frame, total))

    solution = newton(sums_at, np.zeros(features.size), estimator.tol)
    density = FeatureDensity(kernel, features, solution.coefficients)
    estimator._set_fit(kernel, frame, bounds, unit, {**solution.report, "noise_level_": features.noise})
    place = np.arange(len(rows))
    estimator._keep(density, rows, place, frame.enter(rows), survey.sample.weights)
    estimator.log_normalizer_ = density.log_normalizer + frame.log_volume
    return estimator


class _BoundedFirstPass:
    """A survey of rows on the whole line, and where they end as they are."""

    def __init__(self, n_features: int) -> None:
        self.survey, self.extent = FirstPass(n_features, SAMPLE), ColumnMoments(n_features)

    def merge(self, other: Self) -> Self:
        """Add the rows that `other` has seen, and return this one."""
        self.survey.merge(other.survey)
        self.extent.merge(other.extent)
        return self

    def check(self, bounds: Bounds, labels: list[str]) -> None:
        """Refuse rows that no density can be fitted to."""
        if not self.extent.n_rows:
            raise InputError("X has no rows of positive weight; expected at least two that differ.")
        bounds.check(np.stack([self.extent.low, self.extent.high]), np.ones(2, dtype=bool), labels)


def _add_bounded(
    bounds: Bounds, labels: list[str], found: _BoundedFirstPass, rows: np.ndarray, weights: np.ndarray | None
) -> _BoundedFirstPass:
    rows, weights = _counted(rows, weights)
    bounds.refuse_outside(rows, labels)
    found.extent.add(rows, weights)
    found.survey.add(bounds.enter(rows), weights)
    return found


def _counted(rows: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of positive weight: the others may be anywhere."""
    return (rows, None) if weights is None else (rows[weights > 0], weights[weights > 0])


def _accumulate(
    bounds: Bounds,
    frame: Frame,
    total: float,
    sums: FeatureStatistics,
    rows: np.ndarray,
    weights: np.ndarray | None,
) -> FeatureStatistics:
    """Sums of a step, with the shares of the rows for weights, whose products neither over- nor underflow."""
    rows, weights = _counted(rows, weights)
    share = np.full(len(rows), 1.0 / total) if weights is None else weights / total
    return sums.accumulate(frame.enter(bounds.enter(rows)), share)


def _rules(estimator: RandomFeatureSOSREP, rows: np.ndarray, weights: np.ndarray) -> Mapping[str, Rule]:
    """The rules of the estimator, the one that needs rows by those of the sample."""
    rules = dict(estimator._rules())
    median = rules["median"]
    return {**rules, "median": lambda _rows, _weights: median(rows, weights)}
