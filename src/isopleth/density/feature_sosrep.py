"""SOSREP in random features: for more rows than a kernel matrix can serve."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from isopleth._namespace import Array, Home, namespace
from isopleth.density.estimator import DensityEstimator
from isopleth.density.feature_density import FeatureDensity
from isopleth.density.feature_newton import newton
from isopleth.density.feature_scale import scott_or_told
from isopleth.density.feature_statistics import FeatureStatistics, check_memory
from isopleth.density.fitted import FrameDensity, RootDensity
from isopleth.errors import DataWarning
from isopleth.expansion import KernelExpansion
from isopleth.kernels import Kernel
from isopleth.length_scales import RULES, Rule
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.random_features import RandomFeatures
from isopleth.solvers import auto

CHECKED = 2000
"""Rows of the subsample that is fitted exactly as well."""

MANY = 0.1
"""Share of the weight below the noise that is worth a warning."""

APART = 1.0
"""Difference from the exact fit, in nats, that is worth one as well."""


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
    n_jobs : int, optional
        Threads; None is all processors.
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
        2,000 distinct rows, evenly spaced in lexical order. NaN where there is no such row. Fewer rows have larger f, so
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
        n_jobs: int | None = None,
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

    def _features(self, home: Home) -> RandomFeatures:
        return RandomFeatures(home.send(self.frequencies_), self.memory_limit, self.n_jobs)

    def _fit_frame(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        home = Home.of(z)
        features = self._features(home)
        shares = weights / namespace(weights).sum(weights)
        solution = newton(
            lambda w: FeatureStatistics(features, w).accumulate(z, shares), home.send(np.zeros(features.size)), self.tol
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
        level = 4  # to the caller of fit
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
            fit = self._fitting_at(Home.of(fitted.coefficients))
            fitted = cast(FeatureDensity, fit(fitted.kernel, z, weights))
        told = fitted.positive(z)
        if not told.any():
            return float("nan")
        share = weights / weights.sum()
        home = Home.of(fitted.coefficients)
        centers = home.send(z)
        op = Operator(fitted.kernel, centers, memory_limit=self.memory_limit, n_jobs=self.n_jobs).store()
        alpha = auto(op, home.send(share), self.tol).coefficients
        exact = RootDensity(KernelExpansion(fitted.kernel, centers, alpha, self.memory_limit, self.n_jobs))
        difference = fitted.log_density(z[told]) - exact.log_density(z[told])
        return float(np.sqrt(np.average(difference**2, weights=share[told])))

    def _fitted(self) -> FeatureDensity:
        return FeatureDensity(self._kernel, self._features(Home.of(self.coef_)), self.coef_)
