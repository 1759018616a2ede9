"""Joint evidence: the mean log density of a row under SOSREP densities of many small samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial.distance import pdist, squareform

from isopleth.operators.threads import map_threads
from isopleth.rows import merge_rows
from isopleth.scaled_columns import bounded
from isopleth.tasks.anomaly.table import (
    NEW,
    CategoryColumns,
    Limits,
    TrainingTable,
    blocks,
    counterfactual_distances,
    distances_between,
    map_blocks,
)

# A density of all rows follows every cluster, also one of anomalies. A small random sample rarely contains an
# anomaly, so the density fitted to it describes ordinary rows.
SMALLEST_SAMPLE = 8
SHARE = 8  # samples larger than the smallest have at most one row in eight
# Length scale as a share of the sample's median distance: the nearest rows decide close by, the whole sample far away.
LENGTH_SCALE = 1 / 16
TOLERANCE = 0.01  # largest relative error of a member's coefficients, far below the differences between members
MAX_ITERATIONS = 100
LEVEL_ROWS = 1000  # number of training rows that determine the level of a member


def sample_sizes(max_samples: int, available: float) -> list[int]:
    """Return powers of two from the smallest sample to `max_samples`, at most a share of the `available` rows."""
    doublings = int(np.log2(max(1.0, max_samples / SMALLEST_SAMPLE)))
    most = max(SMALLEST_SAMPLE, int(available) // SHARE)
    return [min(SMALLEST_SAMPLE << i, most, max_samples) for i in range(doublings + 1)]


def some_columns(dim: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a subset of the columns whose size is as likely to be between 1 and 2 as between dim/2 and dim."""
    size = round(dim ** rng.uniform())
    return np.sort(rng.choice(dim, size=size, replace=False))


def root_coefficients(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Solve :math:`\alpha_i (K\alpha)_i = w_i`, the stationarity condition of SOSREP, by its damped fixed point.

    For a positive semi-definite matrix without negative entries the map contracts by 1/2 a step in the logarithms.
    """
    alpha = np.sqrt(weights / K.sum(axis=1))
    for _ in range(MAX_ITERATIONS):
        ratio = weights / (alpha * (K @ alpha))
        if np.abs(ratio - 1.0).max() <= TOLERANCE:
            break
        alpha = alpha * np.sqrt(ratio)
    return alpha


@dataclass(frozen=True)
class Member:
    r"""SOSREP of one sample in some of the columns, with the kernel :math:`\exp(-|x - y|_1 / \ell)`.

    Unlike categories are apart by the mismatch of their column.
    """

    columns: np.ndarray  # (p,): columns that the member uses
    centers: np.ndarray  # (m, p): distinct rows of the sample
    log_coefficients: np.ndarray  # (m,): logarithms of the coefficients of the root f
    length_scale: float
    sampled: np.ndarray  # numbers of the distinct training rows in the sample
    mismatch: np.ndarray  # (q,): distance of unlike categories in the last q of the columns

    @classmethod
    def fit(cls, z: np.ndarray, sampled: np.ndarray, columns: np.ndarray, categories: CategoryColumns) -> Self:
        """Fit to the `sampled` rows of `z`; a row that is sampled twice counts twice."""
        centers, weights, _ = merge_rows(z[sampled][:, columns], np.ones(len(sampled)))
        mismatch = categories.mismatch[columns[columns >= categories.n_numeric] - categories.n_numeric]
        if len(mismatch):
            distances = squareform(distances_between(centers, centers, mismatch), checks=False)
        else:
            distances = pdist(centers, "cityblock")
        apart = float(np.median(distances)) if len(distances) else 0.0
        # Rows of standard normal columns are 2/sqrt(pi) apart in each of them, on average.
        scale = LENGTH_SCALE * (apart if apart > 0.0 else 2.0 / np.sqrt(np.pi) * len(columns))
        K = np.exp(-squareform(distances) / scale) if len(centers) > 1 else np.ones((1, 1))
        alpha = root_coefficients(K, weights / weights.sum())
        return cls(columns, centers, np.log(alpha), scale, np.unique(sampled), mismatch)

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return the log density, log f^2, of rows in the frame of the committee, up to a constant."""
        seen = z if len(self.columns) == z.shape[1] else z[:, self.columns]
        return self.log_density_at(distances_between(self.centers, seen, self.mismatch))

    def log_density_at(self, distances: np.ndarray) -> np.ndarray:
        """Return :meth:`log_density` at distances whose first axis is the centres; overwrites `distances`."""
        terms = distances
        terms *= -1.0 / self.length_scale
        terms += self.log_coefficients.reshape(-1, *[1] * (terms.ndim - 1))
        top = terms.max(axis=0)
        terms -= top
        np.exp(terms, out=terms)
        return 2.0 * (top + np.log(terms.sum(axis=0)))


@dataclass(frozen=True)
class Committee:
    """Small-sample densities whose mean log density is the joint evidence.

    The mean of log densities is the logarithmic opinion pool: a row is ordinary if most small samples have something
    near it. A training row is judged by the members whose samples do not contain it.
    """

    scale: np.ndarray  # (d,): divides each column
    members: list[Member]  # densities
    # (members,): log density of a median training row under each member, from which its log densities are counted
    levels: np.ndarray

    @classmethod
    def fit(cls, table: TrainingTable, size: int, max_samples: int, seed: int, limits: Limits) -> Self:
        """Fit `size` members to samples of at most `max_samples` rows."""
        rng = np.random.default_rng(seed)
        z = bounded(table.rows / table.spread)
        sizes = sample_sizes(max_samples, table.weights.sum())
        cumulative = np.cumsum(table.weights / table.weights.sum())[:-1]
        everything = np.arange(z.shape[1])
        samples = []
        for b in range(size):
            # An anomaly in few columns has little effect on distances over all columns; a broken relation between columns
            # is visible only if both are used.
            columns = everything if b % 2 == 0 else some_columns(len(everything), rng)
            uniforms = rng.uniform(size=sizes[b // 2 % len(sizes)])
            samples.append((np.searchsorted(cumulative, uniforms, side="right"), columns))
        members = map_threads(lambda sample: Member.fit(z, *sample, table.categories), samples, limits.threads)
        typical = z[table.typical(LEVEL_ROWS)]
        levels = np.array([np.median(member.log_density(typical)) for member in members])
        return cls(table.spread, members, levels)

    def evidence(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return minus the mean log density of each row; `known` are numbers of training rows, or NEW."""
        widest = max(len(member.centers) + rows.shape[1] for member in self.members)
        parts = blocks(len(rows), 8 * 4 * widest, limits)
        found = map_blocks("densities of samples", lambda part: self._evidence(rows[part], known[part]), parts, limits)
        return np.concatenate(found)

    def _judging(self, known: np.ndarray) -> np.ndarray:
        """Return a mask of shape (members, n): a row is judged by the members whose samples do not contain it.

        In tables of a few rows a row may be in every sample; then all members judge it.
        """
        judging = np.ones((len(self.members), len(known)), dtype=bool)
        seen = np.flatnonzero(known != NEW)
        if len(seen):
            for b, member in enumerate(self.members):
                judging[b, seen] = ~np.isin(known[seen], member.sampled)
            judging[:, ~judging.any(axis=0)] = True
        return judging

    def _evidence(self, rows: np.ndarray, known: np.ndarray) -> np.ndarray:
        z = bounded(rows / self.scale)
        judging = self._judging(known)
        total = np.zeros(len(z))
        for member, level, judges in zip(self.members, self.levels, judging, strict=True):
            total += np.where(judges, level - member.log_density(z), 0.0)
        return total / judging.sum(axis=0)

    def counterfactual_evidence(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return :meth:`evidence` of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k)."""
        z, there = bounded(rows / self.scale), bounded(values / self.scale)
        judging = self._judging(known)
        fixed = np.zeros(len(z))
        change = np.zeros((*z.shape, 1 + len(values)))
        for member, level, judges in zip(self.members, self.levels, judging, strict=True):
            columns = member.columns
            after = counterfactual_distances(z[:, columns], there[:, columns], member.centers, member.mismatch)
            for i, (j, distances) in enumerate(zip(columns, after, strict=True)):
                found = level - member.log_density_at(distances)
                if i == 0:
                    fixed += np.where(judges, found[:, 0], 0.0)
                change[:, j] += np.where(judges[:, None], found - found[:, :1], 0.0)
        return (fixed[:, None, None] + change) / judging.sum(axis=0)[:, None, None]
