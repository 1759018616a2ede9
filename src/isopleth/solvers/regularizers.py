"""Regularisers of linear systems: filter functions of eigenvalues, with a strength."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from numbers import Integral, Real
from typing import Self

import numpy as np

from isopleth.core.arrays import Array, namespace, to_numpy
from isopleth.core.errors import InputError, positive_number, whole_number

# Eigenvalues at or below this share of the largest one count as 0 in truncated forms.
RANK_TOLERANCE = 1e-12

# Largest number of steps for a strength; more would take hours.
MOST_STEPS = 10**6


def above_rank_tolerance(sigma: Array) -> Array:
    """Return a mask of the eigenvalues that count as positive; `sigma` has all of them."""
    return sigma > RANK_TOLERANCE * max(float(namespace(sigma).max(sigma)), 0.0)


def divided(numerator: Array, sigma: Array, where: Array) -> Array:
    """Return numerator / sigma where the mask `where` is true, 0 elsewhere."""
    xp = namespace(sigma)
    return xp.where(where, numerator / xp.where(where, sigma, xp.ones_like(sigma)), xp.zeros_like(sigma))


@dataclass(frozen=True)
class Regularizer(ABC):
    r"""Filter :math:`g_\alpha(\sigma) \approx 1/\sigma` for a positive semi-definite operator L.

    It gives :math:`s = -g_\alpha(L)\zeta` if :math:`L s = -\zeta` cannot be solved. If :math:`g_\alpha(0)` is finite,
    s may be written as :math:`a\zeta` plus a sum of kernels, with :math:`a = -g_\alpha(0)` (the full form). In the truncated
    form a is 0 and eigenvalues within :data:`RANK_TOLERANCE` of 0 are left out.

    In all methods `sigma` is an array of all eigenvalues of the operator, ascending, and `bound` its largest one or a bound on
    it.
    """

    @property
    @abstractmethod
    def qualification(self) -> float:
        r"""The largest r for which :math:`\sup_\sigma |1 - \sigma g_\alpha(\sigma)| \sigma^r` falls like :math:`\alpha^r`.

        The rate of convergence does not improve for functions that are smoother than that.
        """

    @abstractmethod
    def filter(self, sigma: Array, bound: float) -> Array:
        r"""Return :math:`g_\alpha(\sigma)`."""

    def at_zero(self, bound: float) -> float:
        r"""Return minus the factor of zeta: :math:`g_\alpha(0)` for full forms, 0 for truncated ones."""
        return 0.0

    def multiplier(self, sigma: Array, bound: float) -> Array:
        r"""Return :math:`(g_\alpha(\sigma) - g_\alpha(0))/\sigma`, minus the map from zeta at the samples to coefficients."""
        return divided(self.filter(sigma, bound), sigma, above_rank_tolerance(sigma))

    @abstractmethod
    def at(self, alpha: float) -> Self:
        """Return the same regulariser with strength `alpha`."""


@dataclass(frozen=True)
class IterativeRegularizer(Regularizer):
    """Polynomial filter: an iteration from 0 that is stopped early.

    Parameters
    ----------
    alpha : float, optional
        Strength, from which :meth:`steps_for` computes the number of steps.
    steps : int, optional
        Number of steps. Give one of the two.
    """

    alpha: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if (self.alpha is None) == (self.steps is None):
            raise InputError(f"{type(self).__name__} takes either alpha or steps; give one of the two.")
        if self.alpha is not None:
            positive_number("alpha", self.alpha)
        if self.steps is not None:
            whole_number("steps", self.steps)

    @abstractmethod
    def steps_for(self, bound: float) -> int:
        """Return the number of steps for an operator with no eigenvalue above `bound`."""

    def _steps_of(self, many: float) -> int:
        """Return the given steps, or those for `alpha`, rounded up."""
        if self.steps is not None:
            return self.steps
        if many > MOST_STEPS:
            raise InputError(f"alpha = {self.alpha:g} stands for {many:.1e} steps; use a larger alpha, or Tikhonov.")
        return math.ceil(many)

    @abstractmethod
    def iterate(self, product: Callable[[Array], Array], h: Array, bound: float) -> tuple[float, Array]:
        r"""Return the factor a and coefficients c of :math:`-g_\alpha(A)\,h = a\,h + A\,c`, by products with A alone.

        Parameters
        ----------
        product : callable
            v -> A v, for arrays of the shape of `h`.
        h : array
            Right-hand side.
        bound : float
            The largest eigenvalue of A, or a bound on it.
        """

    def filter(self, sigma: Array, bound: float) -> Array:
        """Run the iteration on eigenvalues."""
        a, c = self._on_eigenvalues(sigma, bound)
        return -(a + sigma * c)

    def at_zero(self, bound: float) -> float:
        """Return minus the factor a, which does not depend on the operator."""
        return -self.iterate(lambda v: v, np.zeros(0), bound)[0]

    def multiplier(self, sigma: Array, bound: float) -> Array:
        """Return minus the coefficients on eigenvalues, a polynomial."""
        return -self._on_eigenvalues(sigma, bound)[1]

    def _on_eigenvalues(self, sigma: Array, bound: float) -> tuple[float, Array]:
        return self.iterate(lambda v: sigma * v, namespace(sigma).ones_like(sigma), bound)

    def at(self, alpha: float) -> Self:
        """Return the same iteration with the steps for `alpha`."""
        return replace(self, alpha=alpha, steps=None)


@dataclass(frozen=True)
class SpectralCutoff(Regularizer):
    r"""Cut-off, :math:`g(\sigma) = 1/\sigma` for the leading eigenvalues and 0 for the others.

    Give one of three criteria for the leading ones. Results are discontinuous where an eigenvalue crosses the threshold.
    Eigenvalues within 1e-12 of 0, relative to the largest, are always removed. The qualification is infinite.

    Parameters
    ----------
    threshold : float, optional
        Eigenvalues of K/M of at least this size.
    count : int or float, optional
        Number of the largest eigenvalues; a number between 0 and 1 is a share of all, rounded down, but at least one.
    energy : float, optional
        The fewest of the largest eigenvalues with this share of the sum of all.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import SpectralCutoff
    >>> SpectralCutoff(energy=0.9).filter(np.array([0.05, 0.05, 0.4, 0.5]), bound=1.0)
    array([0. , 0. , 2.5, 2. ])
    """

    threshold: float | None = None
    count: int | float | None = None
    energy: float | None = None

    def __post_init__(self) -> None:
        given = [v for v in (self.threshold, self.count, self.energy) if v is not None]
        if len(given) != 1:
            raise InputError("SpectralCutoff takes one of threshold, count and energy; give exactly one.")
        if self.threshold is not None:
            positive_number("threshold", self.threshold)
        if self.count is not None and not _is_count(self.count):
            raise InputError(
                f"count = {self.count!r}: expected a whole number, at least 1, or a share between 0 and 1."
            )
        if self.energy is not None and not _is_share(self.energy):
            raise InputError(f"energy = {self.energy!r}: expected a share of the sum of eigenvalues, between 0 and 1.")

    @property
    def qualification(self) -> float:
        """Infinite."""
        return math.inf

    @property
    def needs_all_eigenvalues(self) -> bool:
        """Tell whether the leading eigenvalues cannot be found from the largest ones alone."""
        return self.threshold is None

    def kept(self, sigma: Array) -> Array:
        """Return a mask of the leading eigenvalues; `sigma` is ascending."""
        xp = namespace(sigma)
        counts = above_rank_tolerance(sigma)
        if self.threshold is not None:
            return xp.logical_and(counts, sigma >= self.threshold)
        n = sigma.shape[0]
        if self.count is not None:
            # With a margin for rounding: 0.29 * 100 is slightly below 29.
            share = max(1, int(float(self.count) * n * (1.0 + 1e-14)))
            many = int(self.count) if isinstance(self.count, Integral) else share
        else:
            lost = (max(float(v), 0.0) for v in to_numpy(sigma))
            below = list(accumulate(lost))  # sums of the smallest
            # With a margin, so that rounding of the sum does not add one more.
            many = n - bisect_right(below, (1.0 - float(self.energy or 0.0) + 1e-12) * below[-1])
        return xp.logical_and(counts, xp.arange(n, device=sigma.device) >= n - many)

    def filter(self, sigma: Array, bound: float) -> Array:
        r"""Return :math:`1/\sigma` for the leading eigenvalues and 0 for the others."""
        return divided(namespace(sigma).ones_like(sigma), sigma, self.kept(sigma))

    def at(self, alpha: float) -> SpectralCutoff:
        """Return the cut-off at the threshold `alpha`."""
        return SpectralCutoff(threshold=alpha)


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < 1.0


def _is_count(value: object) -> bool:
    return _is_share(value) or (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1)


# Default step, relative to the inverse of the largest eigenvalue; from 2 on the iteration diverges.
_SHARE = 0.9


@dataclass(frozen=True)
class LandweberIteration(IterativeRegularizer):
    r"""Gradient descent, :math:`g_t(\sigma) = \eta \sum_{i<t} (1 - \eta\sigma)^i`, with :math:`\alpha = 1/(\eta t)`.

    The iteration :math:`s_{t+1} = s_t - \eta (L s_t + \zeta)` starts at :math:`s_0 = 0`. With :math:`s_t = a_t \zeta` plus
    kernels with coefficients :math:`c_t`, this is :math:`a_t = -t\eta` and :math:`c_{t+1} = (I - \eta A) c_t + t \eta^2 h`. The
    paper [1]_ prints a minus before the last term, with which the iteration does not converge. The qualification is infinite.

    Parameters
    ----------
    alpha : float, optional
        Strength: :math:`1/(\eta\alpha)` steps, rounded up.
    steps : int, optional
        Number of steps t; give one of the two.
    step_size : float, optional
        :math:`\eta`, less than two over the largest eigenvalue of K/M; 0.9 over it if omitted.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import LandweberIteration
    >>> LandweberIteration(steps=2, step_size=1.0).filter(np.array([0.0, 0.5, 1.0]), bound=1.0)
    array([2. , 1.5, 1. ])
    """

    step_size: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_size is not None:
            positive_number("step_size", self.step_size)

    @property
    def qualification(self) -> float:
        """Infinite."""
        return math.inf

    def _eta(self, bound: float) -> float:
        """Return the size of a step; refuse one with which the iteration does not converge."""
        if self.step_size is None:
            return _SHARE / bound
        if self.step_size * bound >= 2.0:
            raise InputError(
                f"step_size = {self.step_size!r}: the iteration converges below two over the largest eigenvalue, {2 / bound:.6g}."
            )
        return self.step_size

    def steps_for(self, bound: float) -> int:
        r"""Return the number of steps, :math:`1/(\eta\alpha)`, rounded up."""
        return self._steps_of(1.0 / max(self._eta(bound) * (self.alpha or math.inf), sys.float_info.min))

    def iterate(self, product: Callable[[Array], Array], h: Array, bound: float) -> tuple[float, Array]:
        """Run the iteration, with one product for each step."""
        eta, steps = self._eta(bound), self.steps_for(bound)
        c = namespace(h).zeros_like(h)
        for t in range(1, steps):  # after the first step c is still 0
            c = c - eta * product(c) + (t * eta**2) * h
        return -steps * eta, c


# Tolerated relative error of a largest eigenvalue that the user gives.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class NuIteration(IterativeRegularizer):
    r"""The nu-method, which needs the square root of the steps of Landweber's iteration; :math:`\alpha = \kappa^2/t^2`.

    A semi-iterative method of two terms [1]_ (example C.4 of [2]_), with weights for a spectrum within [0, 1]: the operator is
    divided by a bound :math:`\kappa^2` on its eigenvalues. The qualification is nu: :math:`|1 - \sigma g_t(\sigma)| \sigma^\nu`
    falls like :math:`t^{-2\nu}`.

    Parameters
    ----------
    alpha : float, optional
        Strength: :math:`\kappa/\sqrt\alpha` steps, rounded up.
    steps : int, optional
        Number of steps t; give one of the two.
    nu : float, default=1.0
        Qualification.
    largest : float, optional
        :math:`\kappa^2`, at least the largest eigenvalue of K/M; that eigenvalue if omitted.

    References
    ----------
    .. [1] H. Engl, M. Hanke, A. Neubauer, "Regularization of Inverse Problems", Kluwer, 1996, section 6.3.
    .. [2] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import NuIteration
    >>> NuIteration(steps=1).filter(np.array([0.0, 1.0]), bound=1.0)
    array([1.2, 1.2])
    """

    nu: float = 1.0
    largest: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("nu", self.nu)
        if self.largest is not None:
            positive_number("largest", self.largest)

    @property
    def qualification(self) -> float:
        """The parameter nu."""
        return float(self.nu)

    def _kappa2(self, bound: float) -> float:
        """Return a bound of the eigenvalues; refuse one below the largest of them."""
        if self.largest is None:
            return bound
        if self.largest < (1.0 - _ROUNDING) * bound:
            raise InputError(
                f"largest = {self.largest:g}: expected at least the largest eigenvalue, {bound:.6g}; leave it out to have that."
            )
        return self.largest

    def steps_for(self, bound: float) -> int:
        r"""Return :math:`\kappa/\sqrt\alpha`, rounded up."""
        return self._steps_of(math.sqrt(self._kappa2(bound) / (self.alpha or math.inf)))

    def _weights(self, t: int, kappa2: float) -> tuple[float, float]:
        """Return the weights of the previous step and of the residual in step t."""
        nu = self.nu
        omega = 4.0 * (2 * t + 2 * nu - 1) * (t + nu - 1) / ((t + 2 * nu - 1) * (2 * t + 4 * nu - 1))
        if t == 1:
            return 0.0, omega / kappa2
        mu = (t - 1) * (2 * t - 3) * (2 * t + 2 * nu - 1)
        return mu / ((t + 2 * nu - 1) * (2 * t + 4 * nu - 1) * (2 * t + 2 * nu - 3)), omega / kappa2

    def iterate(self, product: Callable[[Array], Array], h: Array, bound: float) -> tuple[float, Array]:
        """Run the iteration, with one product for each step."""
        kappa2, steps = self._kappa2(bound), self.steps_for(bound)
        c = before = namespace(h).zeros_like(h)
        a = a_before = 0.0
        for t in range(1, steps + 1):
            mu, omega = self._weights(t, kappa2)
            if t > 1:
                c, before = c + mu * (c - before) - omega * (a * h + product(c)), c
            a, a_before = a + mu * (a - a_before) - omega, a
        return a, c


@dataclass(frozen=True)
class Tikhonov(Regularizer):
    r"""Ridge, :math:`g_\alpha(\sigma) = 1/(\sigma + \alpha)`.

    The full form is the exact solution of the regularised problem, and for small alpha becomes very large away from the data. The
    truncated form, a sum of kernels at the samples alone, has the same values there and stays bounded. Qualification 1.

    Parameters
    ----------
    alpha : float, default=0.03
        The ridge, in units of the eigenvalues of K/M, the kernel being 1 at 0 at unit length scale.
    truncated : bool, default=True
        Omit the term zeta, and eigenvalues within 1e-12 of 0, relative to the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import Tikhonov
    >>> Tikhonov(alpha=0.5).filter(np.array([0.0, 0.5]), bound=1.0)
    array([2., 1.])
    """

    alpha: float = 0.03
    truncated: bool = True

    def __post_init__(self) -> None:
        positive_number("alpha", self.alpha)
        if not isinstance(self.truncated, bool):
            raise InputError(f"truncated = {self.truncated!r}: expected True or False.")

    @property
    def qualification(self) -> float:
        """1."""
        return 1.0

    def filter(self, sigma: Array, bound: float) -> Array:
        r"""Return :math:`1/(\sigma + \alpha)`."""
        return 1.0 / (sigma + self.alpha)

    def at_zero(self, bound: float) -> float:
        r"""Return :math:`1/\alpha` in the full form, else 0."""
        return 0.0 if self.truncated else 1.0 / self.alpha

    def multiplier(self, sigma: Array, bound: float) -> Array:
        r"""Return :math:`-1/(\alpha(\sigma + \alpha))` in the full form."""
        if self.truncated:
            return super().multiplier(sigma, bound)
        return -1.0 / (self.alpha * (sigma + self.alpha))

    def at(self, alpha: float) -> Tikhonov:
        """Return the same form with ridge `alpha`."""
        return replace(self, alpha=alpha)
