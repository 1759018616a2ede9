"""Landweber's iteration: gradient descent stopped early."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

from isopleth._namespace import Array, namespace
from isopleth.errors import InputError
from isopleth.solvers.regularizers.base import IterativeRegularizer, check_positive

_SHARE = 0.9
"""Of the inverse of the largest eigenvalue: twice the inverse is where the iteration stops to converge."""


@dataclass(frozen=True)
class LandweberIteration(IterativeRegularizer):
    r"""Gradient descent, :math:`g_t(\sigma) = \eta \sum_{i<t} (1 - \eta\sigma)^i`, with :math:`\alpha = 1/(\eta t)`.

    From :math:`s_0 = 0` by :math:`s_{t+1} = s_t - \eta (L s_t + \zeta)`, so that :math:`a_t = -t\eta` and :math:`c_{t+1} = (I -
    \eta A) c_t + t \eta^2 h`. The last term has a plus; the paper [1]_ prints a minus, which does not converge. Every
    qualification.

    Parameters
    ----------
    alpha : float, optional
        Strength: :math:`1/(\eta\alpha)` steps, rounded up.
    steps : int, optional
        The number of steps t; one of the two is given.
    step_size : float, optional
        :math:`\eta`, less than two over the largest eigenvalue of K/M; 0.9 over it when left out.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import LandweberIteration
    >>> LandweberIteration(steps=2, step_size=1.0).filter(np.array([0.0, 0.5, 1.0]), bound=1.0)
    array([2. , 1.5, 1. ])
    """

    step_size: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_size is not None:
            check_positive("step_size", self.step_size)

    @property
    def qualification(self) -> float:
        """Infinite."""
        return math.inf

    def _eta(self, bound: float) -> float:
        if self.step_size is None:
            return _SHARE / bound
        if self.step_size * bound >= 2.0:
            raise InputError(
                f"step_size = {self.step_size!r}: the iteration converges below two over the largest eigenvalue, {2 / bound:.6g}."
            )
        return self.step_size

    def steps_for(self, bound: float) -> int:
        r""":math:`1/(\eta\alpha)`, rounded up."""
        return self._steps_of(1.0 / max(self._eta(bound) * (self.alpha or math.inf), sys.float_info.min))

    def iterate(self, product: Callable[[Array], Array], h: Array, bound: float) -> tuple[float, Array]:
        """One product a step."""
        eta, steps = self._eta(bound), self.steps_for(bound)
        c = namespace(h).zeros_like(h)
        for t in range(1, steps):  # the first step makes c from 0 to 0
            c = c - eta * product(c) + (t * eta**2) * h
        return -steps * eta, c
