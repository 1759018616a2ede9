"""Newton's method for SOSREP in random features, over rows that may be anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isopleth._namespace import Array, namespace
from isopleth.density.feature_statistics import FeatureStatistics

Pass = Callable[[Array], FeatureStatistics]
"""The sums over all rows at given coefficients."""


@dataclass(frozen=True)
class FeatureSolution:
    """What Newton's method found.

    Parameters
    ----------
    coefficients : array of shape (T,)
        w.
    residual : float
        How far the equations are from being met, relative to \\|w\\|.
    n_iter : int
        Passes over the rows.
    share_below : float
        Share of the weight where f is not above the noise of the features.
    """

    coefficients: Array
    residual: float
    n_iter: int
    share_below: float

    @property
    def report(self) -> dict[str, float]:
        """What an estimator says of it, by attribute."""
        return {"residual_": self.residual, "n_iter_": self.n_iter, "share_below_noise_": self.share_below}


def newton(sums_at: Pass, start: Array, tol: float = 1e-6, max_iter: int = 50) -> FeatureSolution:
    r"""Minimise J of :class:`FeatureStatistics` by Newton's method.

    J is convex with second derivatives between 1 and 1 + T, so that halved steps of sufficient decrease arrive from
    everywhere. From 0, the first step is a ridge regression of a constant on the features: no start with f > 0 is needed.

    Parameters
    ----------
    sums_at : callable
        ``sums_at(w)``: sums over all rows at coefficients w, taken in one process or merged from many.
    start : array of shape (T,)
        Where to begin.
    tol : float
        Largest residual to accept.
    max_iter : int
        Passes to take at most.

    Returns
    -------
    FeatureSolution

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Gaussian
    >>> from isopleth.density.feature_newton import newton
    >>> from isopleth.density.feature_statistics import FeatureStatistics
    >>> from isopleth.operators.random_features import RandomFeatures
    >>> z = np.random.default_rng(0).normal(size=(1000, 2)) / 2
    >>> features = RandomFeatures.draw(Gaussian(dim=2), 25, np.random.default_rng(1))
    >>> solution = newton(lambda w: FeatureStatistics(features, w).accumulate(z), np.zeros(50))
    >>> f = features.value(z, solution.coefficients)
    >>> bool(np.allclose(features(z).T @ (1 / f) / 1000, solution.coefficients, atol=1e-6))
    True
    """
    xp = namespace(start)
    digits = 500.0 * float(xp.finfo(start.dtype).eps)
    at, n_iter = sums_at(start), 1
    while at.residual > tol and n_iter < max_iter:
        direction = at.solve()
        slope = float(xp.sum(at.gradient * direction))
        rounding = digits * (1.0 + abs(at.objective))
        step, found = 1.0, None
        while found is None and n_iter < max_iter:
            there = sums_at(at.coefficients + step * direction)
            n_iter += 1
            if there.objective <= at.objective + 1e-4 * step * slope + rounding:
                found = there
            step *= 0.5
        if found is None or (-slope <= rounding and found.residual >= at.residual):  # rounding is all that is left
            break
        at = found
    return FeatureSolution(at.coefficients, at.residual, n_iter, at.share_below)
