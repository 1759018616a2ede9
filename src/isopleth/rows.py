"""Rows that occur more than once."""

from __future__ import annotations

import numpy as np


def merge_rows(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows of positive weight in lexical order, their summed weights, and the place of each row of `X` (-1: none)."""
    positive = w > 0
    kept = X[positive] + 0.0  # -0.0 is 0.0
    if kept.shape[1] == 1:
        rows, inverse = np.unique(kept, return_inverse=True)
        rows = rows[:, None]
    else:
        rows, inverse = _unique_rows(kept)
    place = np.full(len(X), -1)
    place[positive] = inverse.ravel()
    return rows, np.bincount(inverse.ravel(), weights=w[positive], minlength=len(rows)), place


def _unique_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """np.unique over rows, without its slow comparison of structured rows: one stable sort a column.

    Where the first column has no ties, it decides.
    """
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    if (first[1:] == first[:-1]).any():
        order = np.lexsort(X.T[::-1])
    ordered = X[order]
    starts = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    inverse = np.empty(len(X), dtype=np.intp)
    inverse[order] = np.cumsum(starts) - 1
    return ordered[starts], inverse


def row_keys(X: np.ndarray) -> np.ndarray:
    """A 64-bit number for each row, the same for equal rows and in all likelihood for no others."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    # Fixed odd multipliers and shifts: a mixing function must be the same in every process that loads a model.
    keys = np.full(len(X), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(X.shape[1]):
        keys ^= bits[:, j]
        keys *= np.uint64(0xBF58476D1CE4E5B9)
        keys ^= keys >> np.uint64(29)
    return keys
