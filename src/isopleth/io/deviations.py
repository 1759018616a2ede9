"""Robust deviations of rows from the medians of a table, column by column."""

from __future__ import annotations

import numpy as np

# The median distance from the median, times this, is the standard deviation of a normal distribution.
_TO_STANDARD_DEVIATIONS = 1.4826


def robust_z(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return deviations of `rows` from the medians of `table`, in robust standard deviations of its columns.

    A column of which more than half is one value has its plain standard deviation; a constant one deviates nowhere.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        Rows to describe.
    table : ndarray of shape (n, d)
        The table they are compared with.

    Returns
    -------
    ndarray of shape (m, d)
        Signed deviations.

    Examples
    --------
    >>> import numpy as np
    >>> robust_z(np.array([[5.0]]), np.array([[0.0], [1.0], [2.0]])).round(2).tolist()
    [[2.7]]
    """
    middle = np.median(table, axis=0)
    spread = _TO_STANDARD_DEVIATIONS * np.median(np.abs(table - middle), axis=0)
    farthest = np.abs(table - middle).max(axis=0)
    # Squares of giant deviations would overflow.
    plain = farthest * np.std((table - middle) / np.where(farthest > 0, farthest, 1.0), axis=0)
    spread = np.where(spread > 0, spread, plain)
    return np.where(spread > 0, rows - middle, 0.0) / np.where(spread > 0, spread, 1.0)
