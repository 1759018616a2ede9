"""Covariance evidence: the Mahalanobis distance from the most concentrated half of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from isopleth.core.budget import Budget
from isopleth.core.covariance import oracle_shrinkage
from isopleth.core.rows import without_rounding
from isopleth.core.scales import medians
from isopleth.core.threads import map_threads
from isopleth.tasks.anomaly.training_table import NEW, CategoryColumns, TrainingTable

HALF = 0.5
NEAR = 1e-9  # distances that differ by less than this share are equal
STEPS = 10  # at most; the half of the rows hardly changes after five
FARTHEST = 1e6  # standard deviations: squares of larger values would cancel the digits of the others
MOST_LEVELS = 32  # categories of a column with an indicator of their own; all others share one
JITTER = 1e-10  # share of the mean variance that is added if columns are linear functions of one another


@dataclass(frozen=True)
class Indicators:
    """Categories as columns of 0 and :math:`1/s`, with s^2 the variance of the indicators of the column, all together."""

    n_numeric: int  # number of columns of numbers, which come first and stay as they are
    # for each categorical column the codes that have an indicator of their own; the last indicator is that of the
    # others
    codes: list[np.ndarray]
    scale: np.ndarray  # (q,): number s of each
    # (p,): least variance of each column: 0 for numbers, the variance of an indicator among all rows for categories.
    # The most concentrated rows have no rare categories, so that a variance among them would be 0
    floors: np.ndarray

    @classmethod
    def of(cls, categories: CategoryColumns) -> Self:
        """Choose the indicators of the most frequent categories."""
        codes, floors = [], [np.zeros(categories.n_numeric)]
        for weights, s in zip(categories.weights, categories.spread, strict=True):
            kept = np.sort(np.argsort(-weights, kind="stable")[:MOST_LEVELS])
            total = weights.sum()
            counted = np.append(weights[kept], total - weights[kept].sum())
            # A category that no training row has counts as if the row that is judged were the only one.
            shares = np.maximum(counted / total, 1.0 / (total + 1.0))
            codes.append(kept)
            floors.append(shares * (1.0 - shares) / s**2)
        return cls(categories.n_numeric, codes, categories.spread, np.concatenate(floors))

    def vectors(self, column: int, codes: np.ndarray) -> np.ndarray:
        """Return the indicators of `codes` of a categorical column, of shape (n, indicators)."""
        kept = self.codes[column]
        place = np.minimum(np.searchsorted(kept, codes), len(kept) - 1)
        place = np.where(kept[place] == codes, place, len(kept))
        return np.eye(len(kept) + 1)[place] / self.scale[column]

    def expand(self, rows: np.ndarray) -> np.ndarray:
        """Return rows of numbers and codes as rows of numbers and indicators."""
        if not self.codes:
            return rows
        words = [self.vectors(k, codes) for k, codes in enumerate(rows[:, self.n_numeric :].T)]
        return np.concatenate([rows[:, : self.n_numeric], *words], axis=1)

    def places(self, column: int) -> slice:
        """Return which expanded columns are the indicators of a categorical column."""
        sizes = [len(kept) + 1 for kept in self.codes]
        start = self.n_numeric + sum(sizes[:column])
        return slice(start, start + sizes[column])


@dataclass(frozen=True)
class CovarianceEvidence:
    r"""Centre and covariance of the most concentrated half of the rows, shrunk towards a sphere.

    Concentration steps of Rousseeuw and Van Driessen (1999) start at the medians, and fill gaps with conditional means; the
    number of gaps, which they would have added on average, is added to the distance.

    Training rows in the half are judged without themselves: of weight w among W, with r = W/(W - w), shrinkage rho and shrunk
    covariance A, the distance is :math:`r q / (1 - (1 - \rho) r (w/W) q)`, :math:`q = u^T A^{-1} u`.
    """

    scale: np.ndarray  # (d,): divides each column
    centre: np.ndarray  # (d,): mean of the half
    factor: np.ndarray  # (d, d): lower Cholesky factor of the shrunk covariance
    ratio: np.ndarray  # (m,): r of each distinct training row; 1 outside of the half
    leverage: np.ndarray  # (m,): `(1 - \rho) r w/W` of each; 0 outside
    indicators: Indicators  # columns that stand for categories

    @classmethod
    def fit(cls, table: TrainingTable, budget: Budget) -> tuple[Self, np.ndarray]:
        """Fit by concentration steps that begin at the medians. Returns it, and the squared distances of the training rows."""
        indicators = Indicators.of(table.categories)
        z, w = indicators.expand(_bounded(table.rows, table.spread)), table.weights
        gaps = np.isnan(z)
        has_gaps = bool(gaps.any())
        distance, filled = _first_distances(z, gaps) if has_gaps else (_from_medians(z), z)
        half = np.empty(0, dtype=int)
        for _ in range(STEPS):
            found = _nearest(distance, w)
            if np.array_equal(found, half):
                break
            half = found
            centre, factor, rho = _moments(filled[half], w[half], indicators.floors)
            if has_gaps:
                filled = _conditional_means(z, gaps, centre, factor, budget)
            q = _distances(filled, centre, factor, budget)
            distance = q + gaps.sum(axis=1) if has_gaps else q
        total = w[half].sum()
        ratio, leverage = np.ones(len(z)), np.zeros(len(z))
        inside = half[w[half] < total]
        ratio[inside] = total / (total - w[inside])
        leverage[inside] = (1.0 - rho) * ratio[inside] * w[inside] / total
        return cls(table.spread, centre, factor, ratio, leverage, indicators), q

    def fill(self, rows: np.ndarray, budget: Budget) -> np.ndarray:
        """Return rows with the conditional means of the numbers that are missing."""
        gaps = np.isnan(rows)
        if not gaps.any():
            return rows
        z = self._expanded(rows)
        filled = _conditional_means(z, np.isnan(z), self.centre, self.factor, budget)
        first = self.indicators.n_numeric
        out = rows.copy()
        out[:, :first] = np.where(gaps[:, :first], filled[:, :first] * self.scale[:first], rows[:, :first])
        return out

    def _expanded(self, rows: np.ndarray) -> np.ndarray:
        return self.indicators.expand(_bounded(rows, self.scale))

    def evidence(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return squared Mahalanobis distances of complete rows; `known` are numbers of training rows, or NEW."""
        q = _distances(self._expanded(rows), self.centre, self.factor, budget)
        return self.without_own(q, known)

    def without_own(self, q: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return squared distances from the ellipsoid fitted without the row, given the distances `q` with it."""
        new = known == NEW
        ratio, leverage = np.where(new, 1.0, self.ratio[known]), np.where(new, 0.0, self.leverage[known])
        # Without the row that is judged, the variance of an indicator is at least half of what it is with it.
        least = 0.5 if self.indicators.codes else 1e-12
        return ratio * q / np.maximum(1.0 - leverage * q, least)


def _bounded(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
    z = rows / scale
    return np.clip(z, -FARTHEST, FARTHEST, out=z)


def _from_medians(z: np.ndarray) -> np.ndarray:
    """Return squared distances from the medians."""
    away = z - medians(z)
    return np.asarray(np.square(away, out=away).sum(axis=1))


def _first_distances(z: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances from the medians, a missing cell adding the mean of its column, and rows filled with medians."""
    middle = np.nanmedian(z, axis=0)
    squares = (z - middle) ** 2
    return np.where(gaps, np.nanmean(squares, axis=0), squares).sum(axis=1), np.where(gaps, middle, z)


def _conditional_means(
    z: np.ndarray, gaps: np.ndarray, centre: np.ndarray, factor: np.ndarray, budget: Budget
) -> np.ndarray:
    """Return rows with the conditional means of a normal law in their gaps, pattern by pattern of gaps."""
    filled = np.where(gaps, centre, z)
    some = np.flatnonzero(gaps.any(axis=1))
    if not len(some):
        return filled
    precision = cho_solve((factor, True), np.eye(len(centre)))
    pull = (filled[some] - centre) @ precision
    _, pattern = np.unique(np.packbits(gaps[some], axis=1), axis=0, return_inverse=True)
    order = np.argsort(pattern.ravel(), kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(pattern.ravel()[order])) + 1)

    def fill(group: np.ndarray) -> None:
        missing = np.flatnonzero(gaps[some[group[0]]])
        there, cells = precision[np.ix_(missing, missing)], np.ix_(some[group], missing)
        filled[cells] -= np.linalg.solve(there, pull[np.ix_(group, missing)].T).T

    map_threads(fill, groups, budget.threads)
    return filled


def _nearest(distance: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the places of the nearest half of the rows; of rows that are equally far, up to rounding, the first."""
    if (w == 1.0).all():  # the same rows, without the order of the others
        count = math.ceil(HALF * len(w))
        last = np.partition(distance, count - 1)[count - 1]
        near = NEAR * last
        nearer, equal = np.flatnonzero(distance < last - near), np.flatnonzero(np.abs(distance - last) <= near)
        return np.sort(np.concatenate([nearer, equal[: count - len(nearer)]]))
    order = np.argsort(without_rounding(distance[:, None])[:, 0], kind="stable")
    count = int(np.searchsorted(np.cumsum(w[order]), HALF * w.sum())) + 1
    return np.sort(order[: min(count, len(order))])


def _moments(z: np.ndarray, w: np.ndarray, floors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the mean, the Cholesky factor of the shrunk covariance with variances of at least `floors`, and the shrinkage.

    Overwrites `z`.
    """
    n, p = w.sum(), z.shape[1]
    centre = w @ z / n
    deviations = np.subtract(z, centre, out=z)
    deviations *= np.sqrt(w / n)[:, None]
    S = deviations.T @ deviations
    S[np.diag_indices(p)] += np.maximum(floors - np.diag(S), 0.0)
    level = float(np.trace(S)) / p
    if level <= 0.0:  # all rows of the half are equal: distances from it are those of the scaled columns
        return centre, np.eye(p), 1.0
    rho = oracle_shrinkage(S, n)
    S *= 1.0 - rho
    S[np.diag_indices(p)] += (rho + JITTER) * level
    factor, _ = cho_factor(S, lower=True)
    return centre, np.tril(factor), rho


def _distances(z: np.ndarray, centre: np.ndarray, factor: np.ndarray, budget: Budget) -> np.ndarray:
    """Return the squared Mahalanobis distances of rows."""

    def squares(part: slice) -> np.ndarray:
        y = solve_triangular(factor, (z[part] - centre).T, lower=True, check_finite=False)
        return np.einsum("ij,ij->j", y, y)

    parts = budget.blocks(len(z), 8 * 3 * z.shape[1])
    return np.concatenate(map_threads(squares, parts, budget.threads))
