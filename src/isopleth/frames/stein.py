"""Linear coordinates for Stein discrepancies, from rows and their scores under a known density."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth.errors import InputError
from isopleth.frames.compose import get_frame
from isopleth.scaled_columns import deviations

# Relative size of what is added to covariance matrices, which may be singular. In directions in which neither rows nor scores
# vary it decides alone, and the coordinates are scaled columns there.
_RIDGE = 1e-12


def stein_coordinates(frame: Any, rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return matrices that take rows and scores into linear coordinates; constant columns stay as they are.

    In "balanced" coordinates z = J x, rows and scores have the same covariance matrix: with C and F those of rows and scores,
    :math:`M = J^\top J` solves M C M = F. For a normal density M is its precision matrix, whatever the rows. Affine maps of the
    rows change the coordinates by a rotation and a shift.
    """
    balanced = isinstance(frame, str) and frame == "balanced"
    found = None if balanced else get_frame(frame)
    varying = np.flatnonzero((rows != rows[:1]).any(axis=0))
    of_rows = np.eye(rows.shape[1])
    of_scores = of_rows.copy()
    if len(varying):
        block, weights = np.ix_(varying, varying), np.ones(len(rows))
        if found is None:
            of_rows[block], of_scores[block] = _balanced(rows[:, varying], scores[:, varying])
        else:
            map = found.fit(rows[:, varying], weights)
            if not map.affine:
                message = f"frame = {frame!r} is not affine; expected 'balanced', 'scale' or 'whiten'."
                raise InputError(message, parameter="frame")
            steps = np.eye(len(varying))
            of_rows[block] = map.pushforward(np.broadcast_to(rows[:1, varying], steps.shape), steps)
            of_scores[block] = np.linalg.inv(of_rows[block]).T
    return of_rows, of_scores


def _balanced(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return D^-1 L^-T S^(1/2) and D L S^(-1/2) for deviations D, C = L L^T and S^2 = L^T F L in scaled columns."""
    unit = deviations(rows, np.ones(len(rows)))
    C = _covariance(rows / unit)
    F = _covariance(scores * unit)
    L = np.linalg.cholesky(C)
    values, vectors = np.linalg.eigh(L.T @ F @ L)
    root = np.maximum(values, _RIDGE * values[-1]) ** 0.25
    return np.linalg.solve(L.T, vectors * root) / unit[:, None], unit[:, None] * (L @ (vectors / root))


def _covariance(rows: np.ndarray) -> np.ndarray:
    """Return the covariance matrix with a ridge, or the identity matrix if all rows are equal."""
    centred = rows - rows.mean(axis=0)
    C, d = centred.T @ centred / len(rows), rows.shape[1]
    size = np.trace(C) / d
    return C + _RIDGE * size * np.eye(d) if size > 0.0 else np.eye(d)
