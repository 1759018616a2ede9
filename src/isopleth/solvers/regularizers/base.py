"""What a regulariser is: a frozen value that names a function of eigenvalues and the strength that it is used with."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from isopleth._namespace import Array, namespace
from isopleth.errors import InputError

RANK_TOLERANCE = 1e-12
"""Eigenvalues at or below this share of the largest one count as 0 in truncated forms."""

MOST_STEPS = 10**6
"""That a strength may stand for: more would run for hours without a word."""


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
        raise InputError(f"{name} = {value!r}: expected a positive, finite number.")


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a whole number, at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} = {value!r}: expected a whole number, at least 1.")


def above_rank_tolerance(sigma: Array) -> Array:
    """Mask of the eigenvalues that count; `sigma` has all of them."""
    return sigma > RANK_TOLERANCE * max(float(namespace(sigma).max(sigma)), 0.0)


def divided(numerator: Array, sigma: Array, where: Array) -> Array:
    """numerator / sigma at the places `where`, 0 elsewhere."""
    xp = namespace(sigma)
    return xp.where(where, numerator / xp.where(where, sigma, xp.ones_like(sigma)), xp.zeros_like(sigma))


@dataclass(frozen=True)
class Regularizer(ABC):
    r"""A filter :math:`g_\alpha(\sigma) \approx 1/\sigma` for a positive semi-definite operator L.

    With it :math:`s = -g_\alpha(L)\zeta` is fitted where :math:`L s = -\zeta` cannot be solved. If :math:`g_\alpha(0)` is finite,
    s may be written as :math:`a\zeta` plus a sum of kernels, with :math:`a = -g_\alpha(0)` (the full form). In the truncated
    form a is 0 and eigenvalues within :data:`RANK_TOLERANCE` of 0 are left out.

    In all methods `sigma` is an array of all eigenvalues of the operator, ascending, and `bound` its largest one or a bound on
    it.
    """

    @property
    @abstractmethod
    def qualification(self) -> float:
        r"""The largest r for which :math:`\sup_\sigma |1 - \sigma g_\alpha(\sigma)| \sigma^r` falls like :math:`\alpha^r`.

        A smoother truth is not fitted at a better rate than that.
        """

    @abstractmethod
    def filter(self, sigma: Array, bound: float) -> Array:
        r""":math:`g_\alpha(\sigma)`."""

    def at_zero(self, bound: float) -> float:
        r""":math:`g_\alpha(0)` of full forms, 0 of truncated ones: minus the factor of zeta."""
        return 0.0

    def multiplier(self, sigma: Array, bound: float) -> Array:
        r""":math:`(g_\alpha(\sigma) - g_\alpha(0))/\sigma`: minus what turns zeta at the samples into coefficients."""
        return divided(self.filter(sigma, bound), sigma, above_rank_tolerance(sigma))

    @abstractmethod
    def at(self, alpha: float) -> Self:
        """The same regulariser of strength `alpha`."""

    def path(self, alphas: Sequence[float]) -> list[Self]:
        """The same regulariser at each of `alphas`: one eigendecomposition or one Krylov basis serves them all."""
        return [self.at(alpha) for alpha in alphas]


@dataclass(frozen=True)
class IterativeRegularizer(Regularizer):
    """A polynomial filter, by steps of an iteration that starts from 0 and is stopped early.

    Parameters
    ----------
    alpha : float, optional
        Strength; :meth:`steps_for` says how many steps it stands for.
    steps : int, optional
        The number of steps itself. One of the two is given.
    """

    alpha: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if (self.alpha is None) == (self.steps is None):
            raise InputError(f"{type(self).__name__} takes either alpha or steps; give one of the two.")
        if self.alpha is not None:
            check_positive("alpha", self.alpha)
        if self.steps is not None:
            check_count("steps", self.steps)

    @abstractmethod
    def steps_for(self, bound: float) -> int:
        """Steps to take, for an operator with no eigenvalue above `bound`."""

    def _steps_of(self, many: float) -> int:
        """The steps given, or those that `alpha` stands for, rounded up."""
        if self.steps is not None:
            return self.steps
        if many > MOST_STEPS:
            raise InputError(f"alpha = {self.alpha:g} stands for {many:.1e} steps; use a larger alpha, or Tikhonov.")
        return math.ceil(many)

    @abstractmethod
    def iterate(self, product: Callable[[Array], Array], h: Array, bound: float) -> tuple[float, Array]:
        r"""The factor a and coefficients c of :math:`-g_\alpha(A)\,h = a\,h + A\,c`, by products with A alone.

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
        """The iteration itself, on eigenvalues."""
        a, c = self._on_eigenvalues(sigma, bound)
        return -(a + sigma * c)

    def at_zero(self, bound: float) -> float:
        """Minus the factor a, which does not depend on the operator."""
        return -self.iterate(lambda v: v, np.zeros(0), bound)[0]

    def multiplier(self, sigma: Array, bound: float) -> Array:
        """Minus the coefficients, on eigenvalues: a polynomial, and finite at 0."""
        return -self._on_eigenvalues(sigma, bound)[1]

    def _on_eigenvalues(self, sigma: Array, bound: float) -> tuple[float, Array]:
        return self.iterate(lambda v: sigma * v, namespace(sigma).ones_like(sigma), bound)

    def at(self, alpha: float) -> Self:
        """The same iteration, with as many steps as `alpha` stands for."""
        return replace(self, alpha=alpha, steps=None)
