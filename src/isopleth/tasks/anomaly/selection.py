"""Conformal p-values, selection with a controlled false discovery rate, and probabilities of anomalies."""

from __future__ import annotations

import numpy as np


def conformal_p_values(training: np.ndarray, new: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    r"""Return conformal p-values (1 + C)/(n + 1) of new rows, where C of n training rows are at least as unlikely.

    Parameters
    ----------
    training : ndarray of shape (n,)
        Surprise of training rows, each judged without itself, or without its group.
    new : ndarray of shape (m,)
        Surprise of new rows.
    groups : ndarray of shape (n,), int, optional
        Group of each training row, 0 to G - 1. Each group counts as one row: the p-value is :math:`(1 + \sum_g s_g)/(G + 1)`,
        where s_g is the share of the rows of group g that are at least as unlikely.

    Returns
    -------
    ndarray of shape (m,)
        Ties count as at least as unlikely, which makes p-values larger and keeps their level.
    """
    order = np.argsort(training, kind="stable")
    place = np.searchsorted(training[order], new, side="left")
    if groups is None:
        return (1.0 + len(training) - place) / (1.0 + len(training))
    share = 1.0 / np.bincount(groups)[groups[order]]
    beyond = np.append(np.cumsum(share[::-1])[::-1], 0.0)
    return (1.0 + beyond[place]) / (2.0 + groups.max())


def benjamini_hochberg(p_values: np.ndarray, rate: float) -> float:
    """Return the largest p-value rejected at the false discovery rate `rate`; 0 if none is."""
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    return float(ordered[passed[-1]]) if len(passed) else 0.0


def falling_density(p_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimate a falling density on [0, 1] by the slopes of the least concave majorant of the shares (Grenander).

    Returns
    -------
    ends : ndarray of shape (k,)
        Right ends of the steps, rising to 1.
    heights : ndarray of shape (k,)
        Density on each step, falling.
    """
    values, counts = np.unique(np.append(p_values, 1.0), return_counts=True)
    counts[-1] -= 1  # the end of the interval is no observation
    x, y = np.append(0.0, values), np.append(0.0, np.cumsum(counts) / len(p_values))
    corners = [0]
    for i in range(1, len(x)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[b] - y[a]) * (x[i] - x[b]) > (y[i] - y[b]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return x[corners[1:]], np.diff(y[corners]) / np.diff(x[corners])


def anomaly_probabilities(among: np.ndarray, p_values: np.ndarray) -> np.ndarray:
    r"""Return one less the local false discovery rate, :math:`1 - 1/g(p)` for the density g of p-values among some rows.

    P-values of ordinary rows have the density 1 on [0, 1]; any excess of g is due to anomalies. The share of ordinary rows is
    taken as 1, which makes the probabilities smaller.

    Parameters
    ----------
    among : ndarray of shape (n,)
        p-values of the rows from which the density is estimated, as a falling one (Grenander 1956; Strimmer 2008).
    p_values : ndarray of shape (m,)
        p-values of the rows to judge.

    Returns
    -------
    ndarray of shape (m,)
        In [0, 1), the higher the smaller the p-value.
    """
    ends, heights = falling_density(among)
    g = heights[np.minimum(np.searchsorted(ends, p_values, side="left"), len(heights) - 1)]
    return 1.0 - 1.0 / np.maximum(g, 1.0)
