"""Rule for tables that may contain anomalies: the sum of three kinds of evidence.

Missing numbers are filled with their conditional means for the joint evidence; see :class:`Ellipsoid` and :class:`ColumnTails`
for what they add to the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.operators.threads import interruptible
from isopleth.tasks.anomaly.committee import Committee
from isopleth.tasks.anomaly.evidence import ColumnTails, Ellipsoid
from isopleth.tasks.anomaly.table import Limits, TrainingTable
from isopleth.tasks.anomaly.tail import Tail

KINDS = ("joint", "covariance", "columns")


@dataclass(frozen=True)
class PooledRule:
    """Sum of the log tail shares of three kinds of evidence.

    Parameters
    ----------
    committee : Committee
        Joint evidence: densities of many small samples. Strong if anomalies are few and far from all other rows.
    ellipsoid : Ellipsoid
        Covariance evidence. Strong if a relation between columns is broken.
    columns : ColumnTails
        Evidence of single columns. Strong if anomalies are extreme, also if they are many or repeated.
    tails : list of Tail
        The law of each among the training rows.
    """

    committee: Committee
    ellipsoid: Ellipsoid
    columns: ColumnTails
    tails: list[Tail]

    @classmethod
    def fit(
        cls, table: TrainingTable, n_estimators: int, max_samples: int, seed: int, limits: Limits
    ) -> tuple[Self, np.ndarray]:
        """Fit to distinct rows.

        Returns
        -------
        rule : PooledRule
            The rule.
        surprises : ndarray of shape (m, 3)
            Result of its :meth:`surprises` for the distinct training rows.
        """
        operations = float(table.rows.size) * (100.0 + table.rows.shape[1])
        ellipsoid = interruptible(operations, Ellipsoid.fit, table, limits)
        complete = table.filled(ellipsoid.fill(table.rows, limits))
        committee = Committee.fit(complete, n_estimators, max_samples, seed, limits)
        rule = cls(committee, ellipsoid, interruptible(operations, ColumnTails.fit, table), [])
        evidence = rule.evidence(table.rows, table.known, limits)
        rule.tails.extend(Tail.of(values, table.weights) for values in evidence.T)
        return rule, rule.surprise_of(evidence)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of evidence."""
        return KINDS

    def complete(self, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Return rows with the conditional means of the numbers that are missing."""
        return self.ellipsoid.fill(rows, limits)

    def evidence(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return the three kinds of evidence, each in its own units, of shape (n, 3)."""
        complete = self.complete(rows, limits)
        missing = np.isnan(rows).sum(axis=1)  # a missing cell adds 1 to the squared distance on average
        return np.stack(
            [
                self.committee.evidence(complete, known, limits),
                self.ellipsoid.evidence(complete, known, limits) + missing,
                self.columns.evidence(rows, known, limits),
            ],
            axis=1,
        )

    def surprise_of(self, evidence: np.ndarray) -> np.ndarray:
        """Return minus the log tail shares of evidence, whose last axis is the kinds."""
        return np.stack([tail.surprise(evidence[..., k]) for k, tail in enumerate(self.tails)], axis=-1)

    def surprises(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return minus the log tail shares of rows, of shape (n, 3); `known` are numbers of training rows, or NEW."""
        return self.surprise_of(self.evidence(rows, known, limits))

    def counterfactual_surprise(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the sum of the surprises of rows as they are and with each of `values` in each cell.

        Returns
        -------
        ndarray of shape (n, d, 1 + k)
        """
        gaps = np.isnan(rows)
        complete = self.complete(rows, Limits(np.inf, 1))
        covariance = self.ellipsoid.counterfactual_evidence(complete, known, values)
        covariance += gaps.sum(axis=1)[:, None, None]
        covariance[:, :, 1:] -= gaps[:, :, None]
        evidence = [
            self.committee.counterfactual_evidence(complete, known, values),
            covariance,
            self.columns.counterfactual_evidence(rows, known, values),
        ]
        return self.surprise_of(np.stack(evidence, axis=-1)).sum(axis=-1)

    def counterfactual_bytes(self, values: int) -> float:
        """Return the scratch memory of :meth:`counterfactual_surprise` for one row and this number of values."""
        d = len(self.columns.laws)
        largest = max(len(member.centers) for member in self.committee.members)
        return 8.0 * d * (values + 1) * (2 * largest + 8)
