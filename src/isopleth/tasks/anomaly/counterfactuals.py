"""Counterfactuals: scores of a row in which one cell has another value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isopleth.operators.threads import map_threads
from isopleth.tasks.anomaly.table import Limits, blocks

MOST_VALUES = 64  # largest number of values of a column that are tried
MOST_ROWS = 16  # rows at once, so that their distances stay in the processor's cache


@dataclass(frozen=True)
class Counterfactuals:
    """Values that are tried in the cells of each column.

    Parameters
    ----------
    values : ndarray of shape (k, d)
        Values of each column, rising; in columns with fewer than k distinct values, the last one is repeated.
    """

    values: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Counterfactuals:
        """Choose values of each column among the rows of `X`, including the least and the greatest.

        All distinct values if there are at most MOST_VALUES, else quantiles that are values of rows. Values between them
        are not tried: in a column of counts or codes they are not meaningful.
        """
        columns = [_spread_out(np.sort(column)) for column in X.T]
        most = max(map(len, columns))
        return cls(np.stack([np.pad(column, (0, most - len(column)), mode="edge") for column in columns], axis=1))

    @property
    def counts(self) -> np.ndarray:
        """Number of distinct values of each column."""
        return 1 + (np.diff(self.values, axis=0) > 0.0).sum(axis=0)


class CounterfactualRule(Protocol):
    """Rule that scores rows and their counterfactuals."""

    def counterfactual_surprise(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the total surprise of rows as they are and with each value in each cell, of shape (n, d, 1 + k)."""

    def counterfactual_bytes(self, values: int) -> float:
        """Return the scratch memory of :meth:`counterfactual_surprise` for one row and this number of values."""


def _spread_out(ordered: np.ndarray) -> np.ndarray:
    distinct = np.unique(ordered)
    if len(distinct) <= MOST_VALUES:
        return distinct
    return np.unique(ordered[np.linspace(0, len(ordered) - 1, MOST_VALUES).round().astype(int)])


def sums_of_others(terms: np.ndarray) -> np.ndarray:
    """Return sums over the first axis without each of its terms.

    They are not computed by subtraction, in which one very large term would cancel all digits of the others.
    """
    before, after = np.zeros_like(terms), np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=before[1:])
    np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])
    before += after
    return before


def counterfactual_distances(here: np.ndarray, there: np.ndarray, centers: np.ndarray) -> list[np.ndarray]:
    """Return city-block distances to centres of rows as they are, and with each value in each cell.

    Parameters
    ----------
    here : ndarray of shape (n, d)
        Rows.
    there : ndarray of shape (k, d)
        Values of each column.
    centers : ndarray of shape (m, d)
        Centres.

    Returns
    -------
    list of d ndarrays of shape (m, n, 1 + k)
        Distances for each column. The row as it is goes through the same arithmetic, so that its own value gains exactly
        0.
    """
    terms = np.abs(here.T[:, None, :] - centers.T[:, :, None])
    others = sums_of_others(terms)
    after = []
    for j, (own, rest) in enumerate(zip(terms, others, strict=True)):
        changed = np.empty((*own.shape, 1 + len(there)))
        changed[:, :, 0] = own
        changed[:, :, 1:] = np.abs(there[:, j] - centers[:, j, None])[:, None, :]
        changed += rest[:, :, None]
        after.append(changed)
    return after


def best_counterfactuals(
    rule: CounterfactualRule, rows: np.ndarray, known: np.ndarray, tried: Counterfactuals, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Find the best value of each cell.

    Parameters
    ----------
    rule : CounterfactualRule
        Rule that scores the rows.
    rows : ndarray of shape (n, d)
        Rows.
    known : ndarray of shape (n,), int
        Numbers of training rows, or NEW.
    tried : Counterfactuals
        Values to try, in the frame of the rows.
    limits : Limits
        Memory and threads.

    Returns
    -------
    rise : ndarray of shape (n, d)
        Gain of the score in nats; 0 if no value gains anything.
    place : ndarray of shape (n, d), int
        Index of the best value.
    """
    distinct = np.arange(len(tried.values)) < tried.counts[:, None]

    def best(part: slice) -> tuple[np.ndarray, np.ndarray]:
        surprise = rule.counterfactual_surprise(rows[part], known[part], tried.values)
        after = np.where(distinct, surprise[:, :, 1:], np.inf)
        return np.maximum(surprise[:, :, 0] - after.min(axis=2), 0.0), after.argmin(axis=2)

    parts = blocks(len(rows), rule.counterfactual_bytes(len(tried.values)), limits, MOST_ROWS)
    found = map_threads(best, parts, limits.threads)
    return np.concatenate([rise for rise, _ in found]), np.concatenate([place for _, place in found])
