"""Columns that are constant at fit: another value in a new row is one that no training row has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from isopleth.tasks.anomaly.pooled_rule import PooledRule
from isopleth.tasks.anomaly.reference_rule import ReferenceRule
from isopleth.tasks.anomaly.table import Limits, TrainingTable

R = TypeVar("R", PooledRule, ReferenceRule)

# Relative differences from the constant that are rounding errors, and from which on a value is another one.
ROUNDING, OTHER = 2e-12, 1e-9


@dataclass(frozen=True)
class WithConstants:
    r"""A rule for the columns that vary, and the columns that were constant at fit.

    The tail share of a value that none of n training rows has is :math:`1 / (n + 1)`. Each such cell adds :math:`\log(n + 1)` to
    every kind of evidence, and so does a gap where no training row had one.
    """

    rule: PooledRule | ReferenceRule
    varies: np.ndarray  # (d,): mask of the columns that vary
    values: np.ndarray  # (d,): values of the others; numbers are in the frame of :func:`frame_of_constants`
    gap: np.ndarray  # (d,): 0 where training rows had gaps, 1 elsewhere
    step: float  # added to each kind of evidence for each cell with another value

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of evidence."""
        return self.rule.kinds

    def complete(self, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Return rows with their gaps filled."""
        out = np.where(np.isnan(rows), self.values, rows)
        out[:, self.varies] = self.rule.complete(rows[:, self.varies], limits)
        return out

    def surprises(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return minus the log tail shares of rows, of shape (n, kinds); `known` are numbers of training rows, or NEW."""
        found = self.rule.surprises(rows[:, self.varies], known, limits)
        return found + self.step * self._others(rows).sum(axis=1)[:, None]

    def counterfactual_surprise(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the total surprise of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k)."""
        added = len(self.kinds) * self.step * self._others(rows)
        there = len(self.kinds) * self.step * self._others(values)
        found = np.empty((*rows.shape, 1 + len(values)))
        found[:, self.varies] = self.rule.counterfactual_surprise(rows[:, self.varies], known, values[:, self.varies])
        own = found[:, np.flatnonzero(self.varies)[0], 0]
        for j in np.flatnonzero(~self.varies):
            found[:, j] = own[:, None] + np.column_stack([added[:, j], np.tile(there[:, j], (len(rows), 1))])
        return found + (added.sum(axis=1)[:, None] - np.where(self.varies, 0.0, added))[:, :, None]

    def counterfactual_bytes(self, values: int) -> float:
        """Return the scratch memory of :meth:`counterfactual_surprise` for one row and this number of values."""
        return self.rule.counterfactual_bytes(values) + 8.0 * len(self.varies) * (values + 1)

    def _others(self, rows: np.ndarray) -> np.ndarray:
        """Return 1 for cells of constant columns with another value or a new gap; 0 for other cells and rounding errors."""
        away = (np.abs(rows - self.values) - ROUNDING) / (OTHER - ROUNDING)
        return np.where(self.varies, 0.0, np.where(np.isnan(away), self.gap, np.clip(away, 0.0, 1.0)))


def frame_of_constants(values: np.ndarray) -> np.ndarray:
    """Return scales of constant numbers, by which differences from them become relative ones; of 0 every difference is large."""
    return np.where(values == 0.0, np.finfo(float).tiny, np.abs(values))


def fit_with_constants(
    fit: Callable[[TrainingTable], tuple[R, np.ndarray]], table: TrainingTable
) -> tuple[R | WithConstants, np.ndarray]:
    """Fit a rule to the columns that vary. Returns the rule for all columns, and the surprises of the training rows."""
    low, high = np.fmin.reduce(table.rows), np.fmax.reduce(table.rows)
    varies = low < high
    if varies.all():
        return fit(table)
    rule, surprises = fit(table.of_columns(varies))
    step = float(np.log(table.copies.sum() + 1.0))
    gap = np.where(np.isnan(table.rows).any(axis=0), 0.0, 1.0)
    return WithConstants(rule, varies, np.where(varies, 0.0, low), gap, step), surprises
