"""Distances between rows of numbers and categories: differences of numbers, and a fixed distance of unlike categories."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist


def distances_between(centers: np.ndarray, rows: np.ndarray, mismatch: np.ndarray) -> np.ndarray:
    """Return the distances of rows from centres: city-block distances, and `mismatch` for each pair of unlike categories.

    Parameters
    ----------
    centers : ndarray of shape (m, d)
        Centres.
    rows : ndarray of shape (n, d)
        Rows.
    mismatch : ndarray of shape (q,)
        Distance of unlike categories in the last q columns, which hold codes.

    Returns
    -------
    ndarray of shape (m, n)
    """
    first = centers.shape[1] - len(mismatch)
    if not len(mismatch):
        return cdist(centers, rows, "cityblock")
    # SciPy's weighted Hamming distance is a mean over the columns.
    words = cdist(centers[:, first:], rows[:, first:], "hamming", w=mismatch)
    words *= mismatch.sum()
    return words + cdist(centers[:, :first], rows[:, :first], "cityblock") if first else words


def sums_of_others(terms: np.ndarray) -> np.ndarray:
    """Return sums over the first axis without each of its terms.

    They are not computed by subtraction, in which one very large term would cancel all digits of the others.
    """
    before, after = np.zeros_like(terms), np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=before[1:])
    np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])
    before += after
    return before


def counterfactual_distances(
    here: np.ndarray, there: np.ndarray, centers: np.ndarray, mismatch: np.ndarray
) -> list[np.ndarray]:
    """Return distances to centres of rows as they are, and with each value in each cell.

    Parameters
    ----------
    here : ndarray of shape (n, d)
        Rows.
    there : ndarray of shape (k, d)
        Values of each column.
    centers : ndarray of shape (m, d)
        Centres.
    mismatch : ndarray of shape (q,)
        Distance of unlike categories in the last q columns, which hold codes.

    Returns
    -------
    list of d ndarrays of shape (m, n, 1 + k)
        Distances for each column. The row as it is goes through the same arithmetic, so that its own value gains exactly
        0.
    """
    terms = np.abs(here.T[:, None, :] - centers.T[:, :, None])
    first = len(terms) - len(mismatch)
    terms[first:] = (terms[first:] > 0.0) * mismatch[:, None, None]
    others = sums_of_others(terms)
    after = []
    for j, (own, rest) in enumerate(zip(terms, others, strict=True)):
        changed = np.empty((*own.shape, 1 + len(there)))
        changed[:, :, 0] = own
        moved = np.abs(there[:, j] - centers[:, j, None])
        changed[:, :, 1:] = ((moved > 0.0) * mismatch[j - first] if j >= first else moved)[:, None, :]
        changed += rest[:, :, None]
        after.append(changed)
    return after
