"""Contrasts of products of two columns and of cubes of one: dependence and asymmetry, which no other statistic looks at alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from isopleth.operators.threads import slices
from isopleth.tasks.two_sample.permutation import Labels, Units, standard_contrasts

# Most pairs of coordinates: all up to 32 coordinates. Each further one makes the test of the others stricter.
_MOST_PAIRS = 500
# Most correlations that are held at once while the pairs are chosen.
_AT_ONCE = 1_000_000
# Values that differ by rounding only have one rank.
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Products:
    """Columns in normal scores of ranks, which no far value decides, of which pairs are multiplied and some cubed."""

    values: np.ndarray  # (n, d): normal scores of the ranks of each coordinate, over the rows of both samples
    pairs: np.ndarray  # (k, 2): coordinates of different columns that are multiplied
    cubed: np.ndarray  # (c,): coordinates that are cubed

    @classmethod
    def of(
        cls, rows: np.ndarray, share: np.ndarray, pooled: np.ndarray, columns: np.ndarray, numbers: np.ndarray
    ) -> Self:
        """Prepare rows of shares: most correlated pairs, chosen from `pooled` rows of both samples, and cubes of `numbers`.

        `columns` are the numbers of the columns that coordinates belong to.
        """
        some = _scores_of_ranks(pooled, np.full(len(pooled), 1.0 / len(pooled)))
        return cls(_scores_of_ranks(rows, share), _strongest_pairs(some, columns), np.flatnonzero(numbers))

    def squares(self, units: Units, labels: Labels, memory_limit: float) -> np.ndarray:
        """Return squared contrasts (1 + B, k + c) of pairs and of cubes: Hermite's, uncorrelated with a normal column."""
        total, out = len(self.pairs) + len(self.cubed), [np.zeros((len(labels), 0))]
        for part in slices(total, memory_limit / (32.0 * len(self.values))):
            chosen = np.arange(total)[part]
            one, two = self.pairs[chosen[chosen < len(self.pairs)]].T
            single = self.values[:, self.cubed[chosen[chosen >= len(self.pairs)] - len(self.pairs)]]
            features = np.hstack([self.values[:, one] * self.values[:, two], single**3 - 3.0 * single])
            out.append(standard_contrasts(features, units, labels) ** 2)
        return np.hstack(out)


def _scores_of_ranks(rows: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return normal scores of the mean ranks in each column, where each row counts with its share."""
    out = np.empty_like(rows)
    for j, column in enumerate(rows.T):
        values, place = np.unique(np.round(column, _DIGITS), return_inverse=True)
        shares = np.bincount(place, share, len(values))
        out[:, j] = ndtri(np.cumsum(shares) - 0.5 * shares)[place]
    return out


def _strongest_pairs(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pairs of coordinates of different columns with the largest absolute correlations, of shape (k, 2)."""
    d = len(columns)
    centred = values - values.mean(axis=0)
    centred = centred / np.maximum(np.sqrt((centred**2).sum(axis=0)), np.finfo(np.float64).tiny)
    pairs, sizes = np.empty((0, 2), dtype=np.intp), np.empty(0)
    step = max(1, _AT_ONCE // d)
    for start in range(0, d, step):
        here = np.arange(start, min(start + step, d))
        wanted = (here[:, None] < np.arange(d)) & (columns[here, None] != columns)
        found = np.argwhere(wanted) + [start, 0]
        size = np.round(np.abs(centred[:, here].T @ centred)[wanted], _DIGITS)
        pairs, sizes = np.vstack([pairs, found]), np.append(sizes, size)
        kept = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_PAIRS])
        pairs, sizes = pairs[kept], sizes[kept]
    return pairs
