"""Targets of Markov chains that draw from a fitted density of complete rows of numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isopleth.density.fitted import FrameDensity
from isopleth.sampling.target import Target


def density_target(
    fitted: FrameDensity,
    z: np.ndarray,
    weights: np.ndarray,
    fit_wider: Callable[[float], FrameDensity],
    leave: Callable[[np.ndarray], np.ndarray],
) -> Target:
    """Return the target of a density; the chains move in its frame coordinates.

    ``fit_wider(factor)`` returns the density with larger length scales, and `leave` maps frame coordinates to rows.
    """

    def wider(factor: float) -> Target:
        return Target(fit_wider(factor).evaluate, z, weights)

    return Target(fitted.evaluate, z, weights, wider, leave)
