"""Shares of weight below and above values: empirical laws of columns and of evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

MOST_STEPS = 8192  # of a law; between them the share of the next lower one is given
MOST_EXTREME = 1024  # steps at either end that are always kept


@dataclass(frozen=True)
class Shares:
    """Weighted empirical law of one variable.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Distinct values, rising.
    up_to : ndarray of shape (k + 1,)
        Weight of all observations up to each value; the first is 0.
    """

    values: np.ndarray
    up_to: np.ndarray

    @classmethod
    def of(cls, observed: np.ndarray, weights: np.ndarray) -> Self:
        """Law of `observed` values."""
        order = np.argsort(observed, kind="stable")
        ordered, total = observed[order], np.cumsum(weights[order])
        last = np.flatnonzero(np.append(ordered[1:] > ordered[:-1], True))
        if len(last) > MOST_STEPS:
            inner = np.linspace(MOST_EXTREME, len(last) - 1 - MOST_EXTREME, MOST_STEPS - 2 * MOST_EXTREME)
            last = np.r_[last[:MOST_EXTREME], last[inner.round().astype(int)], last[-MOST_EXTREME:]]
            last = np.unique(last)
        return cls(ordered[last], np.append(0.0, total[last]))

    @property
    def weight(self) -> float:
        """Weight of all observations."""
        return float(self.up_to[-1])

    def at_most(self, x: np.ndarray) -> np.ndarray:
        """Weight of observations that are no larger."""
        return self.up_to[np.searchsorted(self.values, x, side="right")]

    def at_least(self, x: np.ndarray) -> np.ndarray:
        """Weight of observations that are no smaller."""
        return self.weight - self.up_to[np.searchsorted(self.values, x, side="left")]

    def upper(self, share: float) -> float:
        """Smallest value that no more than `share` of the weight lies above."""
        place = np.searchsorted(self.up_to[1:], (1.0 - share) * self.weight * (1.0 - 1e-12))
        return float(self.values[min(int(place), len(self.values) - 1)])
