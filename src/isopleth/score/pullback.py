"""Losses that compare scores in several frames, with weights of far rows.

Losses of different frames compare only in one set of coordinates, which here are the columns over a unit.
"""

from __future__ import annotations

import numpy as np

from isopleth.core.arrays import Array, namespace
from isopleth.core.budget import Budget
from isopleth.core.laws import quantile_means
from isopleth.core.scales import deviations, medians
from isopleth.frames import FRAMES, Frame, FrameMap, LocalScale, ScaleMap, get_frame
from isopleth.frames.base import END_MEAN, ENDS
from isopleth.frames.derivatives import value_and_divergence
from isopleth.score.field import ScoreField

# Rows count less from this Mahalanobis distance on, by this power of it: the root of the number of columns plus MARGIN, beyond
# nearly all normal rows, or the distance at which one row adds SHARE to the variance in its direction, if that is larger.
_MARGIN, _SHARE, _POWER = 5.0, 0.1, 8

# Each step makes far rows farther: a few are enough for several rows at very different distances.
_STEPS = 6

# Smallest deviation of a column, whose inverse has a finite square.
_LEAST = 1e-100

# What is added to a covariance of standardised columns, which may be singular.
_RIDGE = 1e-12


def far_discounts(rows: Array, share: Array, columns: Array) -> Array:
    """Return a factor for each row, less than 1 for rows far from the others in the metric of their covariance.

    One far row would decide covariances and losses. Mean and covariance are those of the rows times the factors; a group of equal
    rows of share p starts at a distance of at most :math:`p^{-1/2}`. Affine maps do not change the factors.
    """
    xp = namespace(rows)
    eye = xp.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    n = 1.0 / xp.sum(share * share)
    far = xp.maximum(xp.sqrt(columns) + _MARGIN, xp.sqrt(_SHARE * n))
    factors = xp.ones_like(share)
    for _ in range(_STEPS):
        weights = share * factors
        weights = weights / xp.sum(weights)
        centred = rows - weights @ rows
        unit = xp.sqrt(weights @ (centred * centred))
        z = centred / xp.where(unit > _LEAST, unit, xp.ones_like(unit))
        covariance = z.T @ (z * weights[:, None])
        distance = xp.sqrt(xp.sum((z @ inverses(covariance + _RIDGE * eye)) * z, axis=1))
        factors = (far / xp.maximum(distance, far)) ** _POWER
    return factors


def inverses(matrices: Array) -> Array:
    """Return the inverse matrices; for torch, without waiting for a device to know whether they exist."""
    if isinstance(matrices, np.ndarray):
        return np.linalg.inv(matrices)
    return namespace(matrices).linalg.inv_ex(matrices).inverse


# Cells are limited to this many spreads of their column, for squares that neither overflow nor lose the other rows.
_LIMIT = 1e9


def without_far(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weights for frames, base measures and mean losses, smaller for far rows; sums of kernels take the others."""
    share = weights / weights.sum()
    lowest, middle, highest = quantile_means(rows, share, ENDS)
    spread, whole = (highest - lowest) / (2 * END_MEAN), deviations(rows, share)
    spread = np.where(spread > whole / _LIMIT, spread, whole)
    z = np.clip((rows - middle) / np.where(spread > 0.0, spread, 1.0), -_LIMIT, _LIMIT)
    return np.asarray(weights * far_discounts(z, share, np.float64(rows.shape[1])))


def auto_frames(columns: int) -> tuple[Frame, ...]:
    """Return the frames that ``frame="auto"`` compares; none depends on the units of the columns."""
    return (LocalScale(), FRAMES["smooth"]) if columns == 1 else (LocalScale(), FRAMES["whiten"], FRAMES["smooth"])


def fit_map(frame: str | Frame, rows: np.ndarray, weights: np.ndarray) -> FrameMap:
    """Return the map of a frame; that of "scale" keeps the units of the columns, because length scales are given in these."""
    if isinstance(frame, str) and frame == "scale":
        return ScaleMap(medians(rows), np.ones(rows.shape[1]))
    map = get_frame(frame).fit(rows, weights)
    map.laplacian_log_volume(rows[:1])
    map.laplacian(rows[:1])
    return map


def mapped(map: FrameMap, rows: np.ndarray) -> np.ndarray:
    """Return rows in a frame. Scaled columns are not limited, because the length scale makes numbers of any size small."""
    return (rows - map.shift) / map.scale if isinstance(map, ScaleMap) else map.forward(rows)


def hyvarinen_terms(field: ScoreField, frame: FrameMap, X: np.ndarray, unit: np.ndarray, budget: Budget) -> np.ndarray:
    r"""Return :math:`\operatorname{div} s + |s|^2/2` at rows X, in the coordinates X/unit; infinite where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        value, divergence = value_and_divergence(field, frame, X, unit, budget)
        terms = divergence + 0.5 * np.sum(value * value, axis=1)
    return np.where(np.isfinite(terms), terms, np.inf)
