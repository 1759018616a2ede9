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

    Parameters
    ----------
    fitted : FrameDensity
        The density.
    z, weights : arrays of shapes (m, d) and (m,)
        Centres in frame coordinates, at which chains start, and their weights.
    fit_wider : callable
        For a factor, the density with length scales that are larger by that factor.
    leave : callable
        Map from frame coordinates to rows in the units of the data.
    """

    def wider(factor: float) -> Target:
        return Target(fit_wider(factor).evaluate, z, weights)

    return Target(fitted.evaluate, z, weights, wider, leave)
