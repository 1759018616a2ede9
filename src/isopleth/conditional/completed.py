"""Targets of which some are known as intervals, as points with weights.

A row whose target is an interval has four centres, at quantiles of a censored regression within the interval, each with a part of
the weight of the row. Trees, lines and their residuals without the row see the row once, with the mean of its points, which is
the same to them, as the points of a row have the same inputs. The weights of a pool are chosen by the likelihood of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from isopleth.core.censored_regression import CensoredRegression
from isopleth.core.interval_laws import LEVELS


@dataclass(frozen=True)
class WeightedTarget:
    """Points of the targets of rows."""

    values: np.ndarray  # (p,): those of rows 0 to m - 1, and then further points of rows with an interval
    weights: np.ndarray  # (p,): of sum that of the rows
    origin: np.ndarray  # (p,): row of each point
    known: np.ndarray  # (p,): whether the number is known
    law: CensoredRegression | None  # by which intervals have their points

    @classmethod
    def of(cls, A: np.ndarray, low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> Self:
        """Return the points of targets from `low` to `high`, equal where the number is known, given inputs A without gaps."""
        m, some = len(low), np.flatnonzero(low != high)
        if not len(some):
            return cls(low, weights, np.arange(m), np.ones(m, dtype=bool), None)
        law = CensoredRegression.fit(A, low, high, weights)
        points = law.between(A[some], low[some], high[some], LEVELS)
        values, mass = low.copy(), weights.copy()
        values[some], mass[some] = points[:, 0], weights[some] / len(LEVELS)
        origin = np.concatenate([np.arange(m), np.tile(some, len(LEVELS) - 1)])
        known = (low == high)[origin]
        return cls(np.concatenate([values, points[:, 1:].T.ravel()]), mass[origin], origin, known, law)

    @property
    def copies(self) -> np.ndarray:
        """Number of points of the row of each point."""
        return np.where(self.known, 1.0, float(len(LEVELS)))

    def means_by_row(self, values: np.ndarray) -> np.ndarray:
        """Return the means of the points of each row."""
        if self.known.all():
            return values
        return np.bincount(self.origin, values / self.copies)

    def about(self, values: np.ndarray, of_rows: np.ndarray) -> np.ndarray:
        """Return residuals of points, from those of the means of rows."""
        return of_rows if self.known.all() else of_rows[self.origin] + values - self.means_by_row(values)[self.origin]


def spread_over(W: csr_array, origin: np.ndarray, copies: np.ndarray) -> csr_array:
    """Return weights of rows as weights of their points."""
    if (copies == 1.0).all():
        return W
    points = csr_array((1.0 / copies, (origin, np.arange(len(origin)))), shape=(W.shape[1], len(origin)))
    return csr_array(W @ points)
