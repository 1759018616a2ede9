"""Margins of cells: by how much they are beyond their bounds, some rows of a large table at a time."""

from __future__ import annotations

import numpy as np

from isopleth.core.threads import slices

# Rows whose margins are held at once: those of all rows take the memory of the table.
_ROWS = 2**16


def margins(scores: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return by how much cells are beyond their bounds; minus infinity where one is missing."""
    out = scores - bounds
    out[np.isnan(out)] = -np.inf
    return np.asarray(out)


def worst_cells(scores: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the column of the cell of each row that is the farthest beyond its bound, of ties the first, and its margin."""
    columns, largest = np.zeros(len(scores), dtype=np.intp), np.full(len(scores), -np.inf)
    if scores.shape[1]:
        for part in slices(len(scores), _ROWS):
            found = margins(scores[part], bounds[part])
            columns[part] = found.argmax(axis=1)
            largest[part] = np.take_along_axis(found, columns[part, None], axis=1)[:, 0]
    return columns, largest


def flagged_cells(scores: np.ndarray, excess: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return a mask of the flagged cells: the worst of each row if beyond its bound, and others whose excess alone is."""
    out = np.empty(scores.shape, dtype=bool)
    for part in slices(len(scores), _ROWS):
        margin = margins(scores[part], bounds[part])
        worst = margin == margin.max(axis=1, keepdims=True)
        worst &= np.cumsum(worst, axis=1) == 1  # of ties the first column
        out[part] = (margin > 0.0) & (worst | (np.nan_to_num(excess[part], nan=-np.inf) > bounds[part]))
    return out


def row_scores(scores: np.ndarray) -> np.ndarray:
    """Return the largest score of each row; -1e300 for a row without a known cell."""
    return scores.max(axis=1, initial=-np.inf, where=~np.isnan(scores)).astype(np.float64).clip(-1e300)
