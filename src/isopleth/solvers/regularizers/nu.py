"""The nu-method: accelerated iteration, stopped early."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from isopleth._namespace import Array, namespace
from isopleth.errors import InputError
from isopleth.solvers.regularizers.base import IterativeRegularizer, check_positive

_ROUNDING = 1e-6
"""By which a largest eigenvalue that was computed elsewhere may be off."""


@dataclass(frozen=True)
class NuIteration(IterativeRegularizer):
    r"""The nu-method: the square root of the steps of Landweber's iteration, with :math:`\alpha = \kappa^2/t^2`.

    A semi-iterative method of two terms [1]_ (example C.4 of [2]_), with weights for a spectrum within [0, 1]: the operator is
    divided by a bound :math:`\kappa^2` on its eigenvalues. Qualification nu: :math:`|1 - \sigma g_t(\sigma)| \sigma^\nu` falls
    like :math:`t^{-2\nu}`.

    Parameters
    ----------
    alpha : float, optional
        Strength: :math:`\kappa/\sqrt\alpha` steps, rounded up.
    steps : int, optional
        The number of steps t; one of the two is given.
    nu : float, default=1.0
        The qualification.
    largest : float, optional
        :math:`\kappa^2`, at least the largest eigenvalue of K/M; that eigenvalue when left out.

    References
    ----------
    .. [1] H. Engl, M. Hanke, A. Neubauer, "Regularization of Inverse Problems", Kluwer, 1996, section 6.3.
    .. [2] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import NuIteration
    >>> NuIteration(steps=1).filter(np.array([0.0, 1.0]), bound=1.0)
    array([1.2, 1.2])
    """

    nu: float = 1.0
    largest: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("nu", self.nu)
        if self.largest is not None:
            check_positive("largest", self.largest)

    @property
    def qualification(self) -> float:
        """nu."""
        return float(self.nu)

    def _kappa2(self, bound: float) -> float:
        if self.largest is None:
            return bound
        if self.largest < (1.0 - _ROUNDING) * bound:
            raise InputError(
                f"largest = {self.largest:g}: expected at least the largest eigenvalue, {bound:.6g}; leave it out to have that."
            )
        return self.largest

    def steps_for(self, bound: float) -> int:
        r""":math:`\kappa/\sqrt\alpha`, rounded up."""
        return self._steps_of(math.sqrt(self._kappa2(bound) / (self.alpha or math.inf)))

    def _weights(self, t: int, kappa2: float) -> tuple[float, float]:
        """Of the step before, and of the residual, in step t."""
        nu = self.nu
        omega = 4.0 * (2 * t + 2 * nu - 1) * (t + nu - 1) / ((t + 2 * nu - 1) * (2 * t + 4 * nu - 1))
        if t == 1:
            return 0.0, omega / kappa2
        mu = (t - 1) * (2 * t - 3) * (2 * t + 2 * nu - 1)
        return mu / ((t + 2 * nu - 1) * (2 * t + 4 * nu - 1) * (2 * t + 2 * nu - 3)), omega / kappa2

    def iterate(self, product: Callable[[Array], Array], h: Array, bound: float) -> tuple[float, Array]:
        """One product a step."""
        kappa2, steps = self._kappa2(bound), self.steps_for(bound)
        c = before = namespace(h).zeros_like(h)
        a = a_before = 0.0
        for t in range(1, steps + 1):
            mu, omega = self._weights(t, kappa2)
            if t > 1:
                c, before = c + mu * (c - before) - omega * (a * h + product(c)), c
            a, a_before = a + mu * (a - a_before) - omega, a
        return a, c
