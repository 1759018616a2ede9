"""Changes of level and slope that remain where each step is weighted by the scatter near it."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import uniform_filter1d

from isopleth.tasks.changes.description_length import (
    MOST_LAGS,
    Description,
    beyond_rounding,
    relative_precision,
    roots,
)
from isopleth.tasks.changes.preparation import step_of_repeats
from isopleth.tasks.changes.segments import Noise, SegmentationSearch, SegmentCosts, fitted_noises

# Steps over which scatter is averaged; bursts that look like a level are about as long.
_NEAR = 11


def beside_local_scatter(found: Description, surcharge: float) -> np.ndarray:
    """Return the changes of location that the cheapest segmentation at some of them keeps, with weights by local scatter.

    A burst of scatter looks like a short level or two. Steps from one value to the next tell them apart: a burst makes all of
    them large, a level only those into and out of it, which are left out.
    """
    location, dim = found.location, found.prepared.shape[1]
    if not location.innovations.any():  # without residuals there is no scatter
        return location.changes
    z = (found.prepared - found.prepared.mean(axis=0)) / found.prepared.std(axis=0)
    white, whole = (Noise(),) * dim, np.array([0, len(z)])
    left = SegmentCosts(z, white, location.degree, np.ones(len(z))).residuals(location.bounds)
    recorded = np.array([step_of_repeats(column) for column in z.T])
    precision = _local_precision(np.diff(left, axis=1, prepend=left[:, :1]).T, location.changes, recorded)
    costs = SegmentCosts(z, white, location.degree, precision)
    lags = min(MOST_LAGS, len(z) // 10)
    kept = []
    for bounds in (location.bounds, whole):
        noises = fitted_noises(costs.residuals(bounds) * precision, bounds, lags)
        search = SegmentationSearch(SegmentCosts(z, noises, location.degree, precision), 1, surcharge)
        kept += [(search.total(some), some) for some in [*search.among(location.bounds), whole]]
    return min(kept, key=lambda one: one[0])[1][1:-1]


def _local_precision(steps: np.ndarray, changes: np.ndarray, recorded: np.ndarray) -> np.ndarray:
    """Return one over the scatter of the steps near each, those of changes left out."""
    spreads = np.maximum(steps.std(axis=0), 1e-300)
    sizes = roots(steps / spreads).mean(axis=1)
    used = np.ones(len(sizes))
    used[changes] = 0.0
    near = uniform_filter1d(used, _NEAR, mode="reflect")
    mean = uniform_filter1d(sizes * used, _NEAR, mode="reflect") / np.maximum(near, 0.5 / _NEAR)
    return relative_precision(beyond_rounding(mean**2, recorded / spreads))
