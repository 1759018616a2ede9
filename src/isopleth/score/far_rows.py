"""Weights of rows that are smaller for rows very far from all others."""

from __future__ import annotations

import numpy as np

from isopleth.backend import Array, namespace

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
