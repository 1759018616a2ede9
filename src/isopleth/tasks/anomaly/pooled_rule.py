"""Rule for tables that may contain anomalies: the sum of the log tail shares of three kinds of evidence.

The joint evidence is the mean log density of a row under SOSREP densities of many small samples, the committee. Missing numbers
are filled with their conditional means for it; see :class:`CovarianceEvidence` and :class:`ColumnTails` for what they add to the
others.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from isopleth.core.budget import MOST_ROWS, Budget
from isopleth.core.laws import EmpiricalLaw
from isopleth.core.rows import IN_CACHE, column_blocks, merge_rows, row_keys, without_rounding
from isopleth.core.scales import bounded
from isopleth.core.tails import Tail
from isopleth.core.threads import interruptible, map_threads
from isopleth.tasks.anomaly.covariance import CovarianceEvidence
from isopleth.tasks.anomaly.training_table import (
    NEW,
    CategoryColumns,
    TrainingTable,
    distances_between,
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
UNDERFLOW = (
    1e-280  # sums of exponentials below it have lost digits, and are computed again relative to the nearest centre
)
# Columns that a member compares at most: the mean of a hundred members sees all columns of a wide table.
MOST_COLUMNS = 64


def sample_sizes(max_samples: int, available: float) -> list[int]:
    """Return powers of two from the smallest sample to `max_samples`, at most a share of the `available` rows."""
    doublings = int(np.log2(max(1.0, max_samples / SMALLEST_SAMPLE)))
    most = max(SMALLEST_SAMPLE, int(available) // SHARE)
    return [min(SMALLEST_SAMPLE << i, most, max_samples) for i in range(doublings + 1)]


def nested_sizes(sizes: list[int], number: int) -> list[list[int]]:
    """Return the sizes of each of a `number` of samples whose first rows are samples of smaller sizes.

    All have the smallest size, half of them the largest but one and a quarter the largest, by pairs of samples: the density of a
    large sample costs more and varies less.
    """
    dropped = [0, 2, 1, 2]
    return [sizes[: max(1, len(sizes) - dropped[b // 2 % 4])] for b in range(number)]


def all_columns(dim: int, rng: np.random.Generator) -> np.ndarray:
    """Return all columns; of more than :data:`MOST_COLUMNS` draw that many."""
    return np.arange(dim) if dim <= MOST_COLUMNS else np.sort(rng.choice(dim, size=MOST_COLUMNS, replace=False))


def some_columns(dim: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a subset of the columns whose size is as likely to be between 1 and 2 as between dim/2 and dim."""
    size = min(round(dim ** rng.uniform()), MOST_COLUMNS)
    return np.sort(rng.choice(dim, size=size, replace=False))


def root_coefficients(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Solve :math:`\alpha_i (K\alpha)_i = w_i` of SOSREP by its damped fixed point, which contracts by 1/2 a step."""
    alpha = np.sqrt(weights / K.sum(axis=1))
    for _ in range(MAX_ITERATIONS):
        ratio = weights / (alpha * (K @ alpha))
        if np.abs(ratio - 1.0).max() <= TOLERANCE:
            break
        alpha = alpha * np.sqrt(ratio)
    return alpha


@dataclass(frozen=True)
class Member:
    r"""SOSREP of one sample in some columns, with :math:`\exp(-|x - y|_1 / \ell)`; unlike categories are a mismatch apart.

    It may be several: those of the first rows of the sample too, which share their distances. Its log density is their mean.
    """

    columns: np.ndarray  # (p,): columns that the member uses
    centers: np.ndarray  # (m, p): distinct rows of the sample
    coefficients: np.ndarray  # (s, m): coefficients of each root f, none of which is above 1; 0 for rows that it lacks
    length_scale: float
    sampled: np.ndarray  # numbers of the distinct training rows in the sample
    mismatch: np.ndarray  # (q,): distance of unlike categories in the last q of the columns
    shares: tuple[float, ...]  # weight of each root in the mean over members

    @classmethod
    def fit(
        cls,
        z: np.ndarray,
        sampled: np.ndarray,
        columns: np.ndarray,
        categories: CategoryColumns,
        sizes: list[int],
        shares: tuple[float, ...] | None = None,
    ) -> Self:
        """Fit to the first rows of the `sampled` ones of `z`, of each of the `sizes`; a row sampled twice counts twice."""
        centers, _, place = merge_rows(z[sampled][:, columns], np.ones(len(sampled)))
        if len(sizes) > 1:  # those of small samples first
            order = np.argsort(np.unique(place, return_index=True)[1], kind="stable")
            centers, place = centers[order], np.argsort(order)[place]
        mismatch = categories.mismatch[columns[columns >= categories.n_numeric] - categories.n_numeric]
        if len(mismatch):
            distances = squareform(distances_between(centers, centers, mismatch), checks=False)
        else:
            distances = pdist(centers, "cityblock")
        apart = float(np.median(distances)) if len(distances) else 0.0
        # Rows of standard normal columns are 2/sqrt(pi) apart in each of them, on average.
        scale = LENGTH_SCALE * (apart if apart > 0.0 else 2.0 / np.sqrt(np.pi) * len(columns))
        K = np.exp(-squareform(distances) / scale) if len(centers) > 1 else np.ones((1, 1))
        alpha = np.zeros((len(sizes), len(centers)))
        for root, size in zip(alpha, sizes, strict=True):
            weights = np.bincount(place[:size], minlength=len(centers)).astype(float)
            here = np.flatnonzero(weights)
            root[here] = root_coefficients(K[np.ix_(here, here)], weights[here] / size)
        shares = shares or (1.0 / len(sizes),) * len(sizes)
        return cls(columns, centers, alpha, scale, np.unique(sampled), mismatch, shares)

    def log_density(self, z: np.ndarray, words: WordPatterns | None = None) -> np.ndarray:
        """Return the weighted log densities, log f^2, of rows in the frame of the committee, up to a constant."""
        # `take` keeps the cells of a row together, where indexing would not: distances are three times as fast.
        seen = z if len(self.columns) == z.shape[1] else np.take(z, self.columns, axis=1)
        if words is None or not len(self.mismatch):
            return self.log_density_at(distances_between(self.centers, seen, self.mismatch))
        first = self.centers.shape[1] - len(self.mismatch)
        # Few patterns of words are compared with the centres, and each row looks its own up.
        patterns = words.patterns[:, self.columns[first:] - words.first]
        distances = np.take(
            distances_between(self.centers[:, first:], patterns, self.mismatch), words.of_row, axis=1, mode="clip"
        )
        if first:
            distances += cdist(self.centers[:, :first], seen[:, :first], "cityblock")
        return self.log_density_at(distances)

    def log_density_at(self, distances: np.ndarray) -> np.ndarray:
        """Return :meth:`log_density` at distances whose first axis is the centres; overwrites `distances`."""
        exponents = np.multiply(distances, -1.0 / self.length_scale, out=distances)
        kernels = np.exp(exponents)
        total = np.zeros(distances.shape[1:])
        for alpha, share in zip(self.coefficients, self.shares, strict=True):
            used = slice(int(np.flatnonzero(alpha)[-1]) + 1)
            total += 2.0 * share * _log_root(kernels[used], exponents[used], alpha[used])
        return total


def _log_root(kernels: np.ndarray, exponents: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the log of the sum of kernels with coefficients, from their logs where it underflows."""
    # Not a product with a matrix, whose last digits depend on how many rows are scored at once.
    total = np.einsum("m...,m->...", kernels, alpha)
    far = total < UNDERFLOW
    out = np.asarray(np.log(np.maximum(total, UNDERFLOW)))
    if far.any():
        terms = exponents[:, far]
        nearest = terms.max(axis=0)
        out[far] = np.log(np.einsum("mn,m->n", np.exp(terms - nearest), alpha)) + nearest
    return out


@dataclass(frozen=True)
class WordPatterns:
    """Distinct combinations of codes in the last columns of some rows, and which of them each row has."""

    first: int  # column at which the codes begin
    patterns: np.ndarray  # (k, q)
    of_row: np.ndarray  # (n,)

    @classmethod
    def of(cls, z: np.ndarray, first: int) -> Self | None:
        """Find the combinations; None if there are no codes, or nearly as many combinations as rows."""
        codes = z[:, first:]
        if not codes.shape[1]:
            return None
        _, index, of_row = np.unique(row_keys(codes), return_index=True, return_inverse=True)
        return cls(first, codes[index], of_row) if 2 * len(index) < len(z) else None


@dataclass(frozen=True)
class Committee:
    """Small-sample densities whose mean log density is the joint evidence.

    A row is ordinary if most samples have something near it; those that contain a training row do not judge it.
    """

    scale: np.ndarray  # (d,): divides each column
    members: list[Member]  # densities
    # (members,): log density of a median training row under each member, from which its log densities are counted
    levels: np.ndarray
    first_code: int  # column at which the codes of categories begin

    @classmethod
    def fit(
        cls, table: TrainingTable, size: int, max_samples: int, seed: int, budget: Budget, shared: bool = False
    ) -> Self:
        """Fit `size` densities to samples of at most `max_samples` rows; `shared` if small samples are part of large ones."""
        rng = np.random.default_rng(seed)
        z = bounded(table.rows / table.spread)
        sizes = sample_sizes(max_samples, table.weights.sum())
        cumulative = np.cumsum(table.weights / table.weights.sum())[:-1]
        dim = z.shape[1]
        number = -(-size // len(sizes)) if shared else size
        # Sizes of the samples of each member, of which each counts as much in the mean as any other.
        each = nested_sizes(sizes, number) if shared else [[sizes[b // 2 % len(sizes)]] for b in range(number)]
        often = [sum(len(own) > k for own in each) for k in range(len(sizes))]
        samples = []
        for b, own in enumerate(each):
            # An anomaly in few columns has little effect on distances over all columns; a broken relation between columns
            # is visible only if both are used.
            columns = all_columns(dim, rng) if b % 2 == 0 else some_columns(dim, rng)
            uniforms = rng.uniform(size=own[-1])
            shares = tuple(number / (len(sizes) * often[k]) for k in range(len(own))) if shared else (1.0,)
            samples.append(
                (np.searchsorted(cumulative, uniforms, side="right"), columns, table.categories, own, shares)
            )
        members = map_threads(lambda sample: Member.fit(z, *sample), samples, budget.threads)
        typical = z[table.typical(LEVEL_ROWS)]
        levels = np.array([np.median(member.log_density(typical)) for member in members])
        return cls(table.spread, members, levels, table.categories.n_numeric)

    def evidence(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return minus the mean log density of each row; `known` are numbers of training rows, or NEW."""
        widest = max(len(member.centers) + member.centers.shape[1] for member in self.members)
        most = max(64, min(MOST_ROWS, IN_CACHE // min(rows.shape[1], MOST_COLUMNS)))
        parts = budget.blocks(len(rows), 8 * 4 * widest, most)
        found = budget.map("densities of samples", lambda part: self._evidence(rows[part], known[part]), parts)
        return np.concatenate(found)

    def _judging(self, known: np.ndarray) -> np.ndarray:
        """Mask (members, n): a row is judged by members whose samples lack it, or by all if every sample has it."""
        judging = np.ones((len(self.members), len(known)), dtype=bool)
        sampled = np.concatenate([member.sampled for member in self.members])
        of = np.repeat(np.arange(len(self.members)), [len(member.sampled) for member in self.members])
        # One look-up of the few sampled rows, not one of all rows for each member; most rows of a large table are new.
        rows = np.flatnonzero(known != NEW)
        rows = rows[np.argsort(known[rows], kind="stable")]
        first, last = (np.searchsorted(known[rows], sampled, side) for side in ("left", "right"))
        for b, low, high in zip(of[first < last], first[first < last], last[first < last], strict=True):
            judging[b, rows[low:high]] = False
        judging[:, ~judging.any(axis=0)] = True
        return judging

    def _evidence(self, rows: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the mean evidence of the members that did not see a row."""
        z = bounded(rows / self.scale)
        judging = self._judging(known)
        words = WordPatterns.of(z, self.first_code)
        total, weight = np.zeros(len(z)), np.zeros(len(z))
        for member, level, judges in zip(self.members, self.levels, judging, strict=True):
            found = level - member.log_density(z, words)
            found[~judges] = 0.0
            total += found
            weight += judges * sum(member.shares)
        return total / weight


@dataclass(frozen=True)
class CategoryShares:
    """Weighted shares of the categories of a column."""

    weights: np.ndarray  # (k,): weight of the rows of each code

    @property
    def weight(self) -> float:
        """Weight of all rows."""
        return float(self.weights.sum())

    def tail(self, codes: np.ndarray) -> np.ndarray:
        """Return the weight of the rows with the same code; 0 for categories that no training row has."""
        known = codes < len(self.weights)
        return np.where(known, self.weights[np.where(known, codes, 0).astype(np.intp)], 0.0)


@dataclass(frozen=True)
class ColumnTails:
    """The sum over columns of minus the log of two-sided tail shares, Fisher's statistic for independent columns.

    A category adds minus the log of its share, a missing cell the mean of its column.
    """

    laws: list[EmpiricalLaw | CategoryShares]  # law of each column
    own: np.ndarray  # (m,): weights of the distinct training rows, which are subtracted when the row itself is judged
    means: np.ndarray  # (d,): mean evidence of the known cells of each column, for missing ones

    @classmethod
    def fit(cls, table: TrainingTable) -> tuple[Self, np.ndarray]:
        """Fit a law to each column. Returns it, and the evidence of the training rows."""
        own, found = np.where(table.known == NEW, 0.0, table.weights), np.zeros(len(table.rows))
        laws: list[EmpiricalLaw | CategoryShares] = []
        means = []
        for j, x in enumerate(itertools.chain.from_iterable(column_blocks(table.rows))):
            known = ~np.isnan(x)
            law: EmpiricalLaw | CategoryShares
            if (code := j - table.categories.n_numeric) >= 0:
                law, place = CategoryShares(table.categories.weights[code]), None
            else:
                law, place = EmpiricalLaw.of_ranked(x[known], table.weights[known])
            laws.append(law)
            means.append(_mean_evidence(law))
            terms = np.full(len(x), means[-1])
            terms[known] = _surprise(law, x[known], own[known], place)
            found += terms
        return cls(laws, table.weights, np.array(means)), found

    def own_weight(self, known: np.ndarray) -> np.ndarray:
        """Return the weight of each row among the training rows, 0 for new rows."""
        return np.where(known == NEW, 0.0, self.own[known])

    def terms(self, j: int, x: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the evidence of values `x` of column `j` in rows with weight `own` among the training rows."""
        missing = np.isnan(x)
        if missing.any():
            known = _surprise(self.laws[j], np.where(missing, 0.0, x), np.where(missing, 0.0, own))
            return np.where(missing, self.means[j], known)
        return _surprise(self.laws[j], x, own)

    def evidence(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the sum over the columns; `known` are numbers of training rows, or NEW."""
        own = self.own_weight(known)

        def total(part: slice) -> np.ndarray:
            columns = np.ascontiguousarray(rows[part].T)
            out = np.zeros(columns.shape[1])
            for j, x in enumerate(columns):
                out += self.terms(j, x, own[part])
            return out

        parts = budget.blocks(len(rows), 8.0 * (rows.shape[1] + 8))
        return np.concatenate(map_threads(total, parts, budget.threads))


def _surprise(
    law: EmpiricalLaw | CategoryShares, x: np.ndarray, own: np.ndarray, place: np.ndarray | None = None
) -> np.ndarray:
    """Return minus the log tail shares of known cells of rows with weight `own` in the law, at their `place` if it is known."""
    # The row that is judged counts once, as in a p-value, so that no share is 0. At another value than its own, the weight
    # of a row may exceed the weight in the tail.
    if isinstance(law, CategoryShares):
        share = np.maximum(law.tail(x) - own + 1.0, 1.0) / (law.weight - own + 1.0)
    else:
        tail = np.minimum(*law.tails(x, place)) - own + 1.0
        share = 2.0 * np.maximum(tail, 1.0) / (law.weight - own + 1.0)
    return -np.log(np.minimum(share, 1.0))


def _mean_evidence(law: EmpiricalLaw | CategoryShares) -> float:
    """Return the mean of the evidence of a column over its law."""
    if isinstance(law, CategoryShares):
        counted = share = law.weights[law.weights > 0.0] / law.weight
    else:
        counted = np.diff(law.up_to) / law.weight
        share = np.minimum(2.0 * np.minimum(law.up_to[1:], law.weight - law.up_to[:-1]) / law.weight, 1.0)
    return float(-counted @ np.log(share))


KINDS = ("joint", "covariance", "columns")


@dataclass(frozen=True)
class PooledRule:
    """Sum of the log tail shares of three kinds of evidence."""

    # joint evidence: densities of many small samples. Strong if anomalies are few and far from all other rows
    committee: Committee
    covariance: CovarianceEvidence  # covariance evidence. Strong if a relation between columns is broken
    # evidence of single columns. Strong if anomalies are extreme, also if they are many or repeated
    columns: ColumnTails
    tails: list[Tail]  # law of each among the training rows

    @classmethod
    def fit(
        cls, table: TrainingTable, n_estimators: int, max_samples: int, seed: int, budget: Budget, shared: bool = False
    ) -> tuple[Self, np.ndarray]:
        """Fit to distinct rows. Returns the rule and its :meth:`surprises`, of shape (m, 3)."""
        operations = float(table.rows.size) * (100.0 + table.rows.shape[1])
        covariance, distances = interruptible(operations, CovarianceEvidence.fit, table, budget)
        columns, extreme = interruptible(operations, ColumnTails.fit, table)
        complete, rows, far = table, table.rows, covariance.without_own(distances, table.known)
        if table.has_gaps:
            rows = covariance.fill(table.rows, budget)
            complete = table.filled(without_rounding(rows))
            far = covariance.evidence(rows, table.known, budget) + np.isnan(table.rows).sum(axis=1)
        committee = Committee.fit(complete, n_estimators, max_samples, seed, budget, shared)
        rule = cls(committee, covariance, columns, [])
        evidence = np.stack([committee.evidence(rows, table.known, budget), far, extreme], axis=1)
        rule.tails.extend(Tail.of(values, table.weights) for values in evidence.T)
        return rule, rule.surprise_of(evidence)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of evidence."""
        return KINDS

    def complete(self, rows: np.ndarray, budget: Budget) -> np.ndarray:
        """Return rows with the conditional means of the numbers that are missing."""
        return self.covariance.fill(rows, budget)

    def evidence(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the three kinds of evidence, each in its own units, of shape (n, 3)."""
        complete = self.complete(rows, budget)
        missing = np.isnan(rows).sum(axis=1)  # a missing cell adds 1 to the squared distance on average
        return np.stack(
            [
                self.committee.evidence(complete, known, budget),
                self.covariance.evidence(complete, known, budget) + missing,
                self.columns.evidence(rows, known, budget),
            ],
            axis=1,
        )

    def surprise_of(self, evidence: np.ndarray) -> np.ndarray:
        """Return minus the log tail shares of evidence, whose last axis is the kinds."""
        return np.stack([tail.surprise(evidence[..., k]) for k, tail in enumerate(self.tails)], axis=-1)

    def surprises(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return minus the log tail shares of rows, of shape (n, 3); `known` are numbers of training rows, or NEW."""
        return self.surprise_of(self.evidence(rows, known, budget))
