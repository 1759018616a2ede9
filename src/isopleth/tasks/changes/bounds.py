"""Bounds that columns often reach, as 1 of a share of successes: columns are measured from there, as failures are from 0.

What happens beside a bound is in proportion to the distance from it, so that logarithms may describe it better. A series and the
one mirrored at its bound have the same changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Least share of the values at the least or largest one, if this is the most frequent one, so that it is a bound.
_AT_BOUND = 0.1


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of columns, 0 where there is none."""

    places: np.ndarray  # (d,)
    signs: np.ndarray  # (d,): -1 where the values are below the bound, else 1

    @classmethod
    def of(cls, values: np.ndarray) -> Bounds:
        """Return the bounds of columns, NaN where unknown."""
        found = [_bound(column[~np.isnan(column)]) for column in values.T]
        return cls(np.array([place for place, _ in found]), np.array([sign for _, sign in found]))

    def of_columns(self, numbers: np.ndarray) -> Bounds:
        """Return the bounds of the columns with these numbers."""
        return Bounds(self.places[numbers], self.signs[numbers])

    def distances(self, values: np.ndarray) -> np.ndarray:
        """Return the distances of values from the bounds."""
        return self.signs * (values - self.places)

    def values(self, distances: np.ndarray) -> np.ndarray:
        """Return the values at these distances from the bounds."""
        return self.signs * distances + self.places


def _bound(known: np.ndarray) -> tuple[float, float]:
    """Return the bound of a column, and the sign of the values beyond it."""
    each, counts = np.unique(known, return_counts=True)
    most = int(counts.argmax()) if len(each) else 0
    if len(each) < 2 or 0 < most < len(each) - 1 or counts[most] < _AT_BOUND * len(known):
        return 0.0, 1.0
    return float(each[most]), 1.0 if most == 0 else -1.0
