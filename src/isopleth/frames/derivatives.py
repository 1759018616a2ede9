r"""Derivatives of vector fields that are known in the coordinates of a frame.

With z = T(x) and J = T'(x), the score of x and its divergence are

.. math:: s = J^\top s_z + \nabla \log |\det J|, \qquad
    \operatorname{div} s = \operatorname{tr}(J^\top s_z' J) + s_z \cdot \Delta T + \Delta \log |\det J|.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from isopleth.core.arrays import Array, Backend, to_numpy
from isopleth.core.budget import Budget
from isopleth.core.threads import slices
from isopleth.frames.base import FrameMap
from isopleth.frames.compose import chain, divided_by


class Field(Protocol):
    """Vector field in the coordinates of a frame."""

    @property
    def backend(self) -> Backend:
        """Array library and device of the field."""

    def value(self, x: Array) -> Any:
        """Return the vectors at rows `x`, of shape (n, d)."""

    def trace(self, x: np.ndarray, directions: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the sums over k of v_k . s'(x) v_k for directions v_k at rows `x`, of shape (k, n, d) or (k, 1, d)."""


def value_and_divergence(
    field: Field, frame: FrameMap, X: np.ndarray, unit: np.ndarray, budget: Budget
) -> tuple[np.ndarray, np.ndarray]:
    """Return a score at rows X and its divergence, both in the coordinates X/unit."""
    map = chain(divided_by(1.0 / unit), frame)
    n, d = X.shape
    step = n if map.affine else budget.memory // (32 * d * d)
    half = budget.within(budget.memory / 2)
    parts = [_of_rows(field, map, X[part] / unit, half) for part in slices(n, step)]
    return np.concatenate([value for value, _ in parts]), np.concatenate([divergence for _, divergence in parts])


def _of_rows(field: Field, map: FrameMap, y: np.ndarray, budget: Budget) -> tuple[np.ndarray, np.ndarray]:
    """Return field and divergence of some rows in the columns of the frame's domain."""
    z = map.forward(y)
    inside = to_numpy(field.value(field.backend.array(z)))
    at = y[:1] if map.affine else y  # the Jacobian of an affine map is the same everywhere
    steps = np.eye(y.shape[1])
    directions = np.stack([map.pushforward(at, np.broadcast_to(step, at.shape)) for step in steps])
    divergence = field.trace(z, directions, budget)
    if map.affine:
        return map.pullback(y, inside), divergence
    divergence += np.sum(inside * map.laplacian(y), axis=1) + map.laplacian_log_volume(y)
    return map.pullback(y, inside) + map.grad_log_volume(y), divergence
