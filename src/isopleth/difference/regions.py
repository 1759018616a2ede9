"""Regions where two samples differ most."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth.errors import InputError


def check_mass(mass: Any) -> np.ndarray:
    """Masses of regions as an array.

    Raises
    ------
    InputError
        If they are not between 0 and 1.
    """
    asked = np.asarray(mass)
    if asked.dtype.kind not in "fi" or not ((asked > 0) & (asked < 1)).all():
        raise InputError(f"mass = {mass!r}: expected numbers between 0 and 1, both left out.")
    return asked.astype(np.float64)


def upper_thresholds(values: np.ndarray, contrast: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Largest thresholds above which lies a share `mass` of what lies above 0.

    Parameters
    ----------
    values : array of shape (k,)
        Held-out differences.
    contrast : array of shape (k,)
        What each adds to the mass of the first sample less that of the second.
    mass : array of any shape
        Shares.

    Returns
    -------
    array of the shape of `mass`
        Infinite where there is no more of the first sample than of the second above 0.
    """
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    above, excess = values[order], np.cumsum(contrast[order])
    last = np.append(above[1:] != above[:-1], True)[: len(above)]  # equal values are in a region together
    above, excess = above[last], excess[last]
    if not len(above) or excess[-1] <= 0:
        return np.full(mass.shape, np.inf)
    reached = np.maximum.accumulate(excess)
    wanted = mass * excess[-1] * (1.0 - 1e-12)
    return above[np.searchsorted(reached, wanted, side="left")]
