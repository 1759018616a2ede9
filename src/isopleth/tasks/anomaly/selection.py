"""Certainty: false discovery rates of selected rows, and the probability that a row is an anomaly."""

from __future__ import annotations

import numpy as np


def conformal_p_values(training: np.ndarray, new: np.ndarray) -> np.ndarray:
    r"""Conformal p-values (1 + C)/(n + 1) of new rows, for C of n training rows that are at least as unlikely.

    Parameters
    ----------
    training : ndarray of shape (n,)
        Surprise of training rows, each judged without itself.
    new : ndarray of shape (m,)
        Surprise of new rows.

    Returns
    -------
    ndarray of shape (m,)
        Ties count as at least as unlikely, which makes p-values larger and keeps their level.
    """
    as_unlikely = len(training) - np.searchsorted(np.sort(training), new, side="left")
    return (1.0 + as_unlikely) / (1.0 + len(training))


def benjamini_hochberg(p_values: np.ndarray, rate: float) -> float:
    """Largest p-value rejected at false discovery rate `rate`; 0 where none is."""
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    return float(ordered[passed[-1]]) if len(passed) else 0.0


def falling_density(p_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Grenander's estimate of a falling density on [0, 1]: the slopes of the least concave majorant of the shares.

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
    r"""One less the local false discovery rate, :math:`1 - 1/g(p)`, g being the density of p-values among some rows.

    P-values of ordinary rows have the density 1 on [0, 1]. Where g is higher, the rest is of anomalies. The share of
    ordinary rows is taken to be 1, which makes probabilities smaller.

    Parameters
    ----------
    among : ndarray of shape (n,)
        p-values of the rows that tell how many anomalies there are; the density is estimated from them as a falling
        one (Grenander 1956; Strimmer 2008).
    p_values : ndarray of shape (m,)
        p-values of the rows in question.

    Returns
    -------
    ndarray of shape (m,)
        In [0, 1), the higher the smaller the p-value.
    """
    ends, heights = falling_density(among)
    g = heights[np.minimum(np.searchsorted(ends, p_values, side="left"), len(heights) - 1)]
    return 1.0 - 1.0 / np.maximum(g, 1.0)
