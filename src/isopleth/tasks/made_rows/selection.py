"""Selection of draws that look like rows of a table.

A smooth density blurs exact relations: two columns that are 0 in the same rows, words that follow from a number, measurements
that are nearly one. Trees are trained to tell draws from rows of the table, and draws are kept in proportion to the odds that
they are such rows. The distance to the nearest row of the table is one of the features, for a row of the table that to the
nearest other one: otherwise draws that repeat a row would be kept first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from isopleth.core.rows import systematic_sample


def with_indicators(Z: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return numbers as they are, and words as columns of 0 and 1."""
    parts = [np.eye(size)[Z[:, j].astype(np.intp)] if size else Z[:, [j]] for j, size in enumerate(sizes)]
    return np.concatenate(parts, axis=1)


# Draws for each row that is kept.
CANDIDATES = 10

# Odds beyond this are taken as this.
_MOST_ODDS = 1e3

# Rows whose weight is so many times the least one occur more than once.
_TWICE = 1.5

# Most words of a column of which trees take sets.
_MOST_WORDS = 250
_TREES = 60


@dataclass(frozen=True)
class Selection:
    """Trees that tell rows of a table from draws."""

    sizes: tuple[int, ...]  # number of words of each column, 0 for numbers
    unit: np.ndarray  # (e,): deviations of the encoded columns; those of words are 1
    rows: cKDTree  # encoded rows of the table
    trees: Any

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray, drawn: np.ndarray, sizes: tuple[int, ...], seed: int) -> Self:
        """Train on complete encoded rows of a table, which differ, and draws."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        share = weights / weights.sum()
        points = with_indicators(rows, sizes)
        unit = np.sqrt(share @ (points - share @ points) ** 2)
        unit[np.repeat(np.array(sizes) > 0, np.maximum(sizes, 1)) | (unit == 0.0)] = 1.0
        points /= unit
        tree = cKDTree(points)
        nearest = tree.query(points, k=2)[0][:, 1] if len(rows) > 1 else np.zeros(1)
        nearest[weights > _TWICE * weights.min()] = 0.0
        words = [0 < size <= _MOST_WORDS for size in sizes]
        trees = HistGradientBoostingClassifier(
            categorical_features=[*words, False], max_iter=_TREES, early_stopping=False, random_state=seed
        )
        found = cls(sizes, unit, tree, trees)
        features = np.vstack([np.column_stack([rows, nearest]), found._features(drawn)])
        mass = np.concatenate([len(rows) * share, np.full(len(drawn), len(rows) / len(drawn))])
        with threadpool_limits(1, "openmp"):  # threads that wait for others spin, and change how sums are rounded
            trees.fit(features, np.arange(len(features)) < len(rows), mass)
        return found

    def _features(self, rows: np.ndarray) -> np.ndarray:
        return np.column_stack([rows, self.rows.query(with_indicators(rows, self.sizes) / self.unit)[0]])

    def kept(self, drawn: np.ndarray, center: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the places of `n` of the rows, without replacement and in proportion to their odds, evenly over the centres."""
        with threadpool_limits(1, "openmp"):
            odds = self.trees.decision_function(self._features(drawn))
        odds = np.clip(odds, -np.log(_MOST_ODDS), np.log(_MOST_ODDS))
        order = np.argsort(center, kind="stable")
        return np.sort(order[systematic_sample(_chances(np.exp(odds[order]), n), n, rng)])


def _chances(odds: np.ndarray, n: int) -> np.ndarray:
    """Return numbers of sum `n` in proportion to odds, but none above 1."""
    chances = odds * (n / odds.sum())
    while (chances > 1.0).any():
        chances = np.minimum(chances, 1.0)
        free = chances < 1.0
        chances[free] *= (n - int((~free).sum())) / chances[free].sum()
    return np.asarray(chances)
