"""Means between quantiles, which are continuous in rows and weights."""

from __future__ import annotations

import numpy as np

# Levels between which values are averaged, and the mean of a standard normal variable between the upper two.
QUARTILES, QUARTILE_MEAN = np.array([0.2, 0.3, 0.7, 0.8]), 0.6773
ENDS, END_MEAN = np.array([0.02, 0.1, 0.9, 0.98]), 1.5885


def quantile_means(rows: np.ndarray, weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the mean of each column between successive quantiles.

    A row across a level is split between both sides. So means are continuous in the weights, and a row of weight 2 counts as two
    rows, which is not true of the usual quantiles.
    The result has shape (number of levels - 1, d).
    """
    order = np.argsort(rows, axis=0, kind="stable")
    out = np.empty((len(levels) - 1, rows.shape[1]))
    for j in range(rows.shape[1]):
        x, w = rows[order[:, j], j], weights[order[:, j]]
        share = np.cumsum(w)
        share /= share[-1]
        out[:, j] = means_between(x, share, levels)
    return out


def means_between(x: np.ndarray, share: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return means between levels of sorted values `x` with cumulative shares `share`."""
    centre = x[np.searchsorted(share, 0.5)]
    with np.errstate(over="ignore", invalid="ignore"):
        largest = max(abs(x[0] - centre), abs(x[-1] - centre))
    unit = largest if 0.0 < largest < np.inf else 1.0
    y = (x - centre) / unit  # sums of the numbers themselves could overflow or lose digits
    total = np.concatenate([[0.0], np.cumsum(y * np.diff(share, prepend=0.0))])
    sums = np.interp(levels, np.concatenate([[0.0], share]), total)
    return centre + unit * np.diff(sums) / np.diff(levels)
