"""Covariance evidence: the Mahalanobis distance from the half of the rows that is most concentrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from isopleth.operators.threads import map_threads
from isopleth.tasks.anomaly.explanation import sums_of_others
from isopleth.tasks.anomaly.table import NEW, Limits, TrainingTable, blocks
from isopleth.tasks.anomaly.tail import Shares

HALF = 0.5
STEPS = 10  # at most; the half of the rows hardly changes after five
FARTHEST = 1e6  # standard deviations: squares of larger values would cancel the digits of the others
JITTER = 1e-10  # share of the mean variance that is added if columns are linear functions of one another


def shrinkage(S: np.ndarray, n: float) -> float:
    """Return the share of the scaled identity in the oracle approximating shrinkage of Chen et al. (2010)."""
    p = len(S)
    level, square = np.trace(S) / p, float(np.mean(S**2))
    distance = (n + 1.0) * (square - level**2 / p)
    return 1.0 if distance <= 0.0 else min(1.0, (square + level**2) / distance)


@dataclass(frozen=True)
class Ellipsoid:
    r"""Centre and covariance of the most concentrated half of the rows, shrunk towards a sphere.

    Each step takes the half of the weight with the least Mahalanobis distances, and its mean and covariance; that is
    the concentration step of Rousseeuw and Van Driessen (1999), from the medians of the columns on.

    Training rows in the half are judged by the ellipsoid without them. With S the covariance of weight W, u the
    row less the mean, w its weight, r = W/(W - w), rho the shrinkage and A the shrunk covariance, taking the row out
    leaves :math:`r (A - (1 - \rho) r (w/W) u u^T)`, so its distance is
    :math:`r q / (1 - (1 - \rho) r (w/W) q)` with :math:`q = u^T A^{-1} u`.

    Parameters
    ----------
    scale : ndarray of shape (d,)
        Divides each column.
    centre : ndarray of shape (d,)
        Mean of the half.
    factor : ndarray of shape (d, d)
        Lower Cholesky factor of the shrunk covariance.
    ratio : ndarray of shape (m,)
        r of each distinct training row; 1 outside of the half.
    leverage : ndarray of shape (m,)
        :math:`(1 - \rho) r w/W` of each; 0 outside.
    """

    scale: np.ndarray
    centre: np.ndarray
    factor: np.ndarray
    ratio: np.ndarray
    leverage: np.ndarray

    @classmethod
    def fit(cls, table: TrainingTable, limits: Limits) -> Self:
        """Fit by concentration steps that begin at the medians."""
        z, w = _bounded(table.rows, table.spread), table.weights
        distance = ((z - np.median(z, axis=0)) ** 2).sum(axis=1)
        half = np.empty(0, dtype=int)
        for _ in range(STEPS):
            found = _nearest(distance, w)
            if np.array_equal(found, half):
                break
            half = found
            centre, factor, rho = _moments(z[half], w[half])
            distance = _distances(z, centre, factor, limits)
        total = w[half].sum()
        ratio, leverage = np.ones(len(z)), np.zeros(len(z))
        inside = half[w[half] < total]
        ratio[inside] = total / (total - w[inside])
        leverage[inside] = (1.0 - rho) * ratio[inside] * w[inside] / total
        return cls(table.spread, centre, factor, ratio, leverage)

    def evidence(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return squared Mahalanobis distances; `known` are numbers of training rows, or NEW."""
        q = _distances(_bounded(rows, self.scale), self.centre, self.factor, limits)
        return self.without_own(q, known)

    def without_own(self, q: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return squared distances from the ellipsoid fitted without the row, given the distances `q` with it."""
        new = known == NEW
        ratio, leverage = np.where(new, 1.0, self.ratio[known]), np.where(new, 0.0, self.leverage[known])
        return ratio * q / np.maximum(1.0 - leverage * q, 1e-12)

    def counterfactual_evidence(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return :meth:`evidence` of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k)."""
        z, there = _bounded(rows, self.scale), _bounded(values, self.scale)
        whitener = solve_triangular(self.factor, np.eye(len(self.factor)), lower=True)
        y = (z - self.centre) @ whitener.T
        out = np.empty((*rows.shape, 1 + len(values)))
        for j, direction in enumerate(whitener.T):
            # The part of the whitened row orthogonal to the direction of the column is the same for all values.
            squared = direction @ direction
            along = y @ direction / squared
            across = y - along[:, None] * direction
            rest = np.einsum("ij,ij->i", across, across)
            step = np.concatenate([np.zeros((len(z), 1)), there[:, j] - z[:, j, None]], axis=1)
            out[:, j] = rest[:, None] + squared * (along[:, None] + step) ** 2
        return self.without_own(out, known[:, None, None])


def _bounded(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.clip(rows / scale, -FARTHEST, FARTHEST)


def _nearest(distance: np.ndarray, w: np.ndarray) -> np.ndarray:
    order = np.argsort(distance, kind="stable")
    count = int(np.searchsorted(np.cumsum(w[order]), HALF * w.sum())) + 1
    return np.sort(order[: min(count, len(order))])


def _moments(z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the mean, the Cholesky factor of the shrunk covariance, and the shrinkage."""
    n, p = w.sum(), z.shape[1]
    centre = w @ z / n
    deviations = (z - centre) * np.sqrt(w / n)[:, None]
    S = deviations.T @ deviations
    level = float(np.trace(S)) / p
    if level <= 0.0:  # all rows of the half are equal: distances from it are those of the scaled columns
        return centre, np.eye(p), 1.0
    rho = shrinkage(S, n)
    S *= 1.0 - rho
    S[np.diag_indices(p)] += (rho + JITTER) * level
    factor, _ = cho_factor(S, lower=True)
    return centre, np.tril(factor), rho


def _distances(z: np.ndarray, centre: np.ndarray, factor: np.ndarray, limits: Limits) -> np.ndarray:
    def squares(part: slice) -> np.ndarray:
        y = solve_triangular(factor, (z[part] - centre).T, lower=True, check_finite=False)
        return np.einsum("ij,ij->j", y, y)

    parts = blocks(len(z), 8 * 3 * z.shape[1], limits)
    return np.concatenate(map_threads(squares, parts, limits.threads))


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
