"""Rule for clean references: densities of all rows in two sets of coordinates, and distances to nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtri

from isopleth.scaled_columns import bounded, deviations
from isopleth.tasks.anomaly.evidence import CovarianceEvidence
from isopleth.tasks.anomaly.pooled_rule import EmpiricalLaw, Tail
from isopleth.tasks.anomaly.table import (
    NEW,
    Limits,
    TrainingTable,
    blocks,
    counterfactual_distances,
    distances_between,
    map_blocks,
)

WIDTH = 1 / 4  # width of the kernel over the median distance between nearest neighbours
WIDTH_ROWS = 1000  # number of rows that determine this median
MOST_CENTERS = 5_000  # of more rows, this many are drawn at random
NEIGHBOURS = 5
AT_ONCE = 2**17  # distances in one block of a thread, so that they stay in the processor's cache

KINDS = ("density", "rank density", "rank neighbours")


@dataclass(frozen=True)
class NormalScores:
    r"""Map of each column to the normal scores of its ranks among the training rows.

    A training value x has the score :math:`\Phi^{-1}(\frac12 P(X < x) + \frac12 P(X \le x))`. The map is linear between these
    values, and grows as a logarithm of the excess in standard deviations beyond them, so that far values still differ. An extreme
    value of one training row only counts as beyond: that row must look to the others as a new row would.
    """

    # values, scores: values of each column, rising, and their scores
    values: list[np.ndarray]
    scores: list[np.ndarray]
    spread: np.ndarray  # (p,): standard deviation of each column

    @classmethod
    def of(cls, columns: np.ndarray, copies: np.ndarray) -> Self:
        """Fit to columns of shape (m, p) whose rows occur `copies` times."""
        values, scores = [], []
        for column in columns.T:
            law = EmpiricalLaw.of(column, copies)
            single = np.diff(law.up_to) == 1.0
            several = len(single) > 2
            kept = slice(int(several and single[0]), len(single) - int(several and single[-1]))
            values.append(law.values[kept])
            scores.append(ndtri(0.5 * (law.up_to[:-1] + law.up_to[1:]) / law.weight)[kept])
        spread = deviations(columns, copies)
        return cls(values, scores, np.where(spread > 0.0, spread, 1.0))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with the scores of the first p columns; the others, codes of categories, stay."""
        out = rows.copy()
        for j, (values, scores) in enumerate(zip(self.values, self.scores, strict=True)):
            x = rows[:, j]
            below, above = np.maximum(values[0] - x, 0.0), np.maximum(x - values[-1], 0.0)
            far = np.log1p(above / self.spread[j]) - np.log1p(below / self.spread[j])
            out[:, j] = np.interp(x, values, scores) + far
        return out


@dataclass(frozen=True)
class Centers:
    r"""Distinct rows in one set of coordinates, with the evidence of the distances from them.

    The *density* is minus the logarithm of :math:`\sum_i c_i \exp(-|x - x_i|_1/h) / \sum_i c_i`. With h a quarter of the
    median distance between nearest neighbours, it depends mostly on the nearest row where rows are dense, and farther away
    on all rows of a region. The *neighbours* are the mean distance to the five nearest rows. A training row is judged
    without one copy of it or, if rows belong to groups, without the rows of its group.
    """

    scores: NormalScores | None  # coordinates are normal scores; None for the columns themselves
    scale: np.ndarray  # (d,): divides each column: its standard deviation
    rows: np.ndarray  # (m, d): distinct rows, divided by the scale
    copies: np.ndarray  # (m,): number of times each row occurs
    number: np.ndarray  # index among the centres of each distinct training row; NEW for rows that were not drawn
    width: float  # width h
    mismatch: np.ndarray  # (q,): distance of unlike categories in the last q columns
    groups: np.ndarray | None = None  # group of each distinct training row

    @classmethod
    def of(
        cls, table: TrainingTable, scores: NormalScores | None, drawn: np.ndarray, some: np.ndarray, limits: Limits
    ) -> Self:
        """Take the rows `drawn` of a complete table as centres; `some` of these determine the width."""
        rows = table.rows if scores is None else scores(table.rows)
        # Ordinary rows have no extreme values, so the plain standard deviation is used.
        scale = np.sqrt(table.copies @ (rows - table.copies @ rows / table.copies.sum()) ** 2 / table.copies.sum())
        scale = np.where(scale > 0.0, scale, table.spread)
        scale[table.categories.n_numeric :] = 1.0  # codes stay codes
        centers = bounded(rows[drawn] / scale)
        number = np.full(len(rows), NEW)
        number[drawn] = np.arange(len(drawn))
        mismatch = table.categories.mismatch
        of_group = None if table.groups is None else table.groups[drawn]
        apart = _nearest(centers, some, mismatch, of_group, limits)
        # Distinct rows are 0 apart only where gaps were filled alike.
        width = WIDTH * float(np.median(apart[apart > 0.0])) if (apart > 0.0).any() else 1.0
        return cls(scores, scale, centers, table.copies[drawn], number, width, mismatch, table.groups)

    @property
    def kinds(self) -> int:
        """Number of kinds of evidence: in normal scores also the neighbours."""
        return 1 if self.scores is None else 2

    def enter(self, rows: np.ndarray) -> np.ndarray:
        """Return complete rows in the coordinates of the centres."""
        return bounded((rows if self.scores is None else self.scores(rows)) / self.scale)

    def evidence(self, rows: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return evidence of complete rows, of shape (n, kinds)."""
        return self._judged(distances_between(self.rows, self.enter(rows), self.mismatch)[:, :, None], known)[:, 0]

    def counterfactual_evidence(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return evidence of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k, kinds)."""
        after = counterfactual_distances(self.enter(rows), self.enter(values), self.rows, self.mismatch)
        return np.stack([self._judged(distances, known) for distances in after], axis=1)

    def _judged(self, distances: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return evidence at distances of shape (m, n, k), which are overwritten, of shape (n, k, kinds)."""
        n = distances.shape[1]
        counts: np.ndarray = self.copies[:, None]
        own = np.where(known == NEW, NEW, self.number[known])
        if self.groups is not None:
            counts = np.where(self._same_group(known, self.groups), 0.0, counts)
        elif (own != NEW).any():
            counts = np.tile(counts, n)
            judged = np.flatnonzero(own != NEW)
            counts[own[judged], judged] -= 1.0
        gone = counts == 0.0
        if gone.any():
            distances[gone] = np.inf
        found = [] if self.scores is None else [_neighbour_distances(distances, counts)]
        return np.stack([self._density(distances, counts), *found], axis=-1)

    def _density(self, distances: np.ndarray, counts: np.ndarray) -> np.ndarray:
        nearest = distances.min(axis=0)
        distances -= nearest
        distances *= -1.0 / self.width
        np.exp(distances, out=distances)
        same = counts.shape[1] == 1  # for all rows, which is a product of matrices
        total = counts[:, 0] @ distances.swapaxes(0, 1) if same else np.einsum("mnk,mn->nk", distances, counts)
        return nearest / self.width - np.log(total) + np.log(counts.sum(axis=0))[:, None]

    def _same_group(self, known: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Tell which centres are of the group of each row; a new row has none."""
        own = np.where(known == NEW, -1, groups[known])
        of_center = np.empty(len(self.rows), dtype=np.intp)
        drawn = self.number != NEW
        of_center[self.number[drawn]] = groups[drawn]
        return of_center[:, None] == own


def _neighbour_distances(distances: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return mean distances to the nearest rows, of which each occurs as often as it counts."""
    k = min(NEIGHBOURS, len(distances))
    if counts.max() == 1.0 and len(distances) > NEIGHBOURS:  # faster than with the places
        near = np.partition(distances, k - 1, axis=0)[:k]
        if np.isfinite(near).all():
            return near.mean(axis=0)
    place = np.argpartition(distances, k - 1, axis=0)[:k]
    near = np.take_along_axis(distances, place, axis=0)
    order = np.argsort(near, axis=0)
    near = np.take_along_axis(near, order, axis=0)
    place = np.take_along_axis(place, order, axis=0)
    column = np.arange(counts.shape[1])[:, None]
    occurs = counts[place, column] if counts.shape[1] > 1 else counts[place, 0]
    before = np.minimum(np.cumsum(occurs, axis=0), NEIGHBOURS)
    weight = np.diff(before, axis=0, prepend=0.0)
    near[weight == 0.0] = 0.0  # rows that do not count are infinitely far
    return (weight * near).sum(axis=0) / before[-1]


@dataclass(frozen=True)
class ReferenceRule:
    """Sum of the log tail shares of three kinds of evidence among ordinary rows.

    If all training rows are ordinary, a density may follow each of them. On the columns as they are it is dominated by skewed
    ones; on the normal scores of ranks each column counts alike.
    """

    tails: list[Tail]  # law of each kind of evidence among the training rows
    spaces: list[Centers]  # training rows on standardised columns, and on their normal scores
    filler: CovarianceEvidence | None = None  # fills missing cells, where training rows had any

    @classmethod
    def fit(cls, table: TrainingTable, seed: int, limits: Limits) -> tuple[Self, np.ndarray]:
        """Fit to distinct rows."""
        training, filler = table, None
        if table.has_gaps:
            filler = CovarianceEvidence.fit(table, limits)
            table = table.filled(filler.fill(table.rows, limits))
        n = len(table.rows)
        rng = np.random.default_rng(seed)
        drawn = np.arange(n) if n <= MOST_CENTERS else np.sort(rng.choice(n, size=MOST_CENTERS, replace=False))
        some = np.sort(rng.permutation(len(drawn))[:WIDTH_ROWS])
        scores = NormalScores.of(table.rows[:, : table.categories.n_numeric], table.copies)
        spaces = [Centers.of(table, coordinates, drawn, some, limits) for coordinates in (None, scores)]
        rule = cls([], spaces, filler)
        evidence = rule.evidence(training.rows, training.known, limits)
        rule = replace(rule, tails=[Tail.of(values, table.copies) for values in evidence.T])
        return rule, rule.surprise_of(evidence, training.known)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of evidence."""
        return KINDS

    def complete(self, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Return rows with their gaps filled: by the conditional mean or, if no training row had a gap, by the median."""
        if self.filler is not None:
            return self.filler.fill(rows, limits)
        return np.where(np.isnan(rows), 0.0, rows)

    def evidence(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return the three kinds of evidence, of shape (n, 3); `known` are numbers of training rows, or NEW."""
        rows = self.complete(rows, limits)
        m = len(self.spaces[0].rows)
        parts = blocks(len(rows), 8.0 * 5 * m, limits, max(1, AT_ONCE // m))

        def judged(part: slice) -> np.ndarray:
            return np.concatenate([space.evidence(rows[part], known[part]) for space in self.spaces], axis=1)

        return np.concatenate(map_blocks("densities of all rows", judged, parts, limits))

    def surprise_of(self, evidence: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return minus the log tail shares of evidence of shape (n, ..., kinds).

        A new row counts itself in a tail share; a training row is among those that are counted.
        """
        new = known == NEW
        out = np.empty(evidence.shape)
        for k, tail in enumerate(self.tails):
            for rows, itself in ((new, 1.0), (~new, 0.0)):
                out[rows, ..., k] = tail.surprise(evidence[rows, ..., k], new=itself)
        return out

    def surprises(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return minus the log tail shares of rows, of shape (n, 3); `known` are numbers of training rows, or NEW."""
        return self.surprise_of(self.evidence(rows, known, limits), known)

    def counterfactual_surprise(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the surprise of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k)."""
        rows = self.complete(rows, Limits(np.inf, 1))
        found = [space.counterfactual_evidence(rows, known, values) for space in self.spaces]
        return self.surprise_of(np.concatenate(found, axis=-1), known).sum(axis=-1)

    def counterfactual_bytes(self, values: int) -> float:
        """Return the scratch memory of :meth:`counterfactual_surprise` for one row and this number of values."""
        m, d = self.spaces[0].rows.shape
        return 8.0 * m * (3 * d + 4 * (values + 1))


def _nearest(
    centers: np.ndarray, some: np.ndarray, mismatch: np.ndarray, groups: np.ndarray | None, limits: Limits
) -> np.ndarray:
    """Return the distance of `some` of the centres to the nearest other centre, of another group if there are groups."""

    def nearest(part: slice) -> np.ndarray:
        distances = distances_between(centers[some[part]], centers, mismatch)
        distances[np.arange(len(distances)), some[part]] = np.inf
        if groups is not None:
            distances[groups[some[part], None] == groups] = np.inf
        return distances.min(axis=1)

    parts = blocks(len(some), 8.0 * 2 * len(centers), limits, max(1, AT_ONCE // len(centers)))
    return np.concatenate(map_blocks("nearest rows", nearest, parts, limits))
