"""The smallest length scale at which random features tell rows from noise."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincinv

from isopleth.length_scales import deviations, scott

TOLD = 0.99
"""Share of normal rows that are to be above the noise."""


def log_root_squared(ratio: float, dim: int, squared_distance: float) -> float:
    r"""log f^2 of SOSREP for a normal density and the Gaussian kernel, at a row.

    For deviation r in units of the length scale, :math:`f = \int k(\cdot, y)\, p(y)/f(y)\, dy` is solved by
    :math:`f^2 = c^2 e^{-|x|^2/\tau^2}` with :math:`\tau^4 - (1 + 2r^2)\tau^2 + r^2 = 0` and
    :math:`c^2 = \bigl((\tau^2 - 1)/(r^2 \tau^2)\bigr)^{d/2}`.

    Parameters
    ----------
    ratio : float
        r, the same in all columns.
    dim : int
        d.
    squared_distance : float
        Of the row from the centre, in squared deviations.
    """
    r2 = ratio * ratio
    v = 0.5 * (2.0 * r2 - 1.0 + math.hypot(1.0, 2.0 * r2))  # tau^2 - 1, the variance of p/f
    return 0.5 * dim * math.log(v / (r2 * (1.0 + v))) - squared_distance * r2 / (1.0 + v)


def told_scale(dim: int, size: int) -> float:
    """Smallest length scale, in deviations of normal rows, at which `size` features tell 99 % of these from noise."""
    far = 2.0 * float(gammaincinv(0.5 * dim, TOLD))  # a quantile of the squared distance
    return 1.0 / float(
        brentq(lambda ratio: log_root_squared(ratio, dim, far) + math.log(size), 1e-4, math.sqrt(size) * 1e4)
    )


def scott_or_told(rows: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Scott's rule a column, or the scale that `size` features tell, whichever is larger.

    Parameters
    ----------
    rows : array of shape (n, d)
        Kept columns of the distinct rows, centred.
    weights : array of shape (n,)
        Their weights.
    size : int
        Number of features.
    """
    return np.maximum(scott(rows, weights), told_scale(rows.shape[1], size) * deviations(rows, weights))
