"""Several changes of block means at once: the best places for each number of changes, and what the weakest of them saves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def best_places(rows: np.ndarray, least: int, most: int) -> Iterator[list[int]]:
    """Yield the places of `most` changes and of fewer, down to one, around which rows vary least about the means of segments.

    Each number of changes has its own places, by dynamic programming: where states come back, no single change explains much,
    and the best one of them need not be one of the best two.
    """
    n = len(rows)
    most = min(most, n // least - 1)
    costs = _costs(rows, least)
    cheapest, origins = costs[0], []
    for _ in range(most):
        totals = cheapest[:, None] + costs
        origins.append(totals.argmin(axis=0))
        cheapest = totals[origins[-1], np.arange(n + 1)]
    for count in range(most, 0, -1):
        places = [n]
        for origin in origins[count - 1 :: -1]:
            places.append(int(origin[places[-1]]))
        yield places[:0:-1]


def _costs(rows: np.ndarray, least: int) -> np.ndarray:
    """Return the sums of squares about the mean of each segment, of shape (n + 1, n + 1); infinite where it is too short."""
    rest = rows - rows.mean(axis=0)
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rest, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(np.sum(rest**2, axis=1))])
    sizes = np.sum(sums**2, axis=1)
    of_sums = sizes[:, None] + sizes - 2.0 * sums @ sums.T
    lengths = np.arange(len(sums)) - np.arange(len(sums))[:, None]
    fits = lengths >= least
    return np.where(fits, squares - squares[:, None] - of_sums / np.where(fits, lengths, 1), np.inf)


def contrasts_at(rows: np.ndarray, places: list[int]) -> np.ndarray:
    """Return the contrast of each change, between the segments on both sides of it."""
    parts = np.split(rows, places)
    counts, means = np.array([len(part) for part in parts]), np.array([part.mean(axis=0) for part in parts])
    before, after = counts[:-1], counts[1:]
    return np.asarray(np.sum(np.diff(means, axis=0) ** 2, axis=1) * before * after / (before + after))


def without_means(rows: np.ndarray, places: list[int]) -> np.ndarray:
    """Return rows less the mean of their segment."""
    return np.concatenate([part - part.mean(axis=0) for part in np.split(rows, places)])
