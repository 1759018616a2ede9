"""Evidence of single columns: the tail share of each cell in its column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.tasks.anomaly.counterfactuals import sums_of_others
from isopleth.tasks.anomaly.table import NEW, TrainingTable
from isopleth.tasks.anomaly.tail import Shares


@dataclass(frozen=True)
class ColumnTails:
    r"""The sum over columns of :math:`-\log \min(1, 2 \min(P(X_j \le x_j), P(X_j \ge x_j)))`.

    It is the statistic of Fisher's combination of two-sided tail shares, as if columns were independent. Anomalies
    that are extreme in several columns stand out however many they are.

    Parameters
    ----------
    laws : list of Shares
        Law of each column.
    own : ndarray of shape (m,)
        Weights of the distinct training rows, which are subtracted when the row itself is judged.
    """

    laws: list[Shares]
    own: np.ndarray

    @classmethod
    def fit(cls, table: TrainingTable) -> Self:
        """Fit a law to each column."""
        return cls([Shares.of(column, table.weights) for column in table.rows.T], table.weights)

    def own_weight(self, known: np.ndarray) -> np.ndarray:
        """Return the weight of each row among the training rows, 0 for new rows."""
        return np.where(known == NEW, 0.0, self.own[known])

    def terms(self, j: int, x: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the evidence of values `x` of column `j` in rows with weight `own` among the training rows."""
        law = self.laws[j]
        # The row that is judged counts once, as in a p-value, so that no share is 0.
        tail = np.minimum(law.at_most(x), law.at_least(x)) - own + 1.0
        # At another value than its own, the weight of a row may exceed the weight in the tail.
        return -np.log(np.minimum(2.0 * np.maximum(tail, 1.0) / (law.weight - own + 1.0), 1.0))

    def evidence(self, rows: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the sum over the columns; `known` are numbers of training rows, or NEW."""
        own = self.own_weight(known)
        total = np.zeros(len(rows))
        for j in range(rows.shape[1]):
            total += self.terms(j, rows[:, j], own)
        return total

    def counterfactual_evidence(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return :meth:`evidence` of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k)."""
        own = self.own_weight(known)
        terms = np.stack([self.terms(j, rows[:, j], own) for j in range(rows.shape[1])])
        out = np.empty((*rows.shape, 1 + len(values)))
        for j, others in enumerate(sums_of_others(terms)):
            cells = np.concatenate([rows[:, j, None], np.broadcast_to(values[:, j], (len(rows), len(values)))], axis=1)
            out[:, j] = others[:, None] + self.terms(j, cells, own[:, None])
        return out
