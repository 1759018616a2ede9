"""Rule for clean references: densities of all rows in two sets of coordinates, nearest neighbours, and conditional laws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isopleth.conditional.pseudo_likelihood import PseudoLikelihood
from isopleth.core.budget import Budget
from isopleth.core.laws import normal_scores_of_counts
from isopleth.core.rows import columns_by_key, differ, keys_by_rank, row_keys, without_rounding
from isopleth.core.scales import bounded, deviations
from isopleth.core.tails import Tail
from isopleth.tasks.anomaly.covariance import CovarianceEvidence
from isopleth.tasks.anomaly.new_values import NewValues
from isopleth.tasks.anomaly.training_table import NEW, TrainingTable, distances_between

ROWS = 1024  # judged at once, so that they stay in the processor's cache
LEAF_ROWS = 32  # rows in the leaves of a row, for an estimate of memory


@dataclass(frozen=True)
class Conditionals:
    """Laws of columns given the others, in normal scores."""

    space: CenterSpace
    columns: np.ndarray  # (d,): columns in an order that does not depend on theirs in the table
    seed: int
    law: PseudoLikelihood

    @classmethod
    def fit(cls, space: CenterSpace, columns: np.ndarray, n_numeric: int, seed: int, budget: Budget) -> Self:
        """Fit to the rows of a space; its columns after the first `n_numeric` are codes."""
        z, words = space.rows[:, columns], columns >= n_numeric
        return cls(space, columns, seed, PseudoLikelihood.fit(z, words, space.copies, seed, budget))

    def evidence(self, rows: np.ndarray, budget: Budget) -> np.ndarray:
        """Return minus the log pseudolikelihood of complete rows."""
        return self._evidence(self.space.enter(rows)[:, self.columns], budget)

    def _evidence(self, z: np.ndarray, budget: Budget) -> np.ndarray:
        parts = budget.blocks(len(z), 8.0 * (4 * LEAF_ROWS + z.shape[1]), ROWS)
        return np.concatenate(budget.map("conditional laws", lambda part: self.law.evidence(z[part]), parts))


WIDTH = 1 / 4  # width of the kernel over the median distance between nearest neighbours
WIDTH_ROWS = 1000  # number of rows that determine this median
MOST_CENTERS = 2_000  # of more distinct rows, this many are drawn at random
NEIGHBOURS = 5
AT_ONCE = 2**17  # distances in one block of a thread, so that they stay in the processor's cache
# Cells of all folds, which are sorted by column: tables of few rows have a fold for each row. Where columns are many, a fold
# has several rows, but distances depend less on their number.
FOLD_CELLS = 10**6
FEWEST_FOLDS = 20
NO_FOLD = -2
FOREST_FOLDS = 5  # folds of the conditional laws: each has a fifth of the others

KINDS = ("density", "rank density", "rank neighbours", "new values", "conditionals")


@dataclass(frozen=True)
class NormalScores:
    r"""Map of each column to normal scores :math:`\Phi^{-1}(\frac12 P(X < x) + \frac12 P(X \le x))`.

    It is linear between training values, and logarithmic beyond them, so that far values still differ.
    """

    # values, scores: values of each column, rising, and their scores
    values: list[np.ndarray]
    scores: list[np.ndarray]
    spread: np.ndarray  # (p,): standard deviation of each column

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
class RankedColumns:
    """Columns of numbers and the places of their values in ascending order, which serve the scores without any of the folds."""

    columns: np.ndarray  # (m, p)
    values: list[np.ndarray]  # distinct values of each column, rising
    place: np.ndarray  # (m, p): index of each cell among them

    @classmethod
    def of(cls, columns: np.ndarray) -> Self:
        """Sort each column; values that differ by rounding are one."""
        place, values = np.empty(columns.shape, dtype=np.intp), []
        for j, x in enumerate(columns.T):
            order = np.argsort(x, kind="stable")
            ordered = x[order]
            last = np.append(differ(ordered), True)
            place[order, j] = np.cumsum(last) - last
            values.append(ordered[last])
        return cls(columns, values, place)

    def normal_scores(self, copies: np.ndarray) -> tuple[NormalScores, np.ndarray]:
        """Return the map of rows that occur `copies` times, and the scores of those that occur at all."""
        some = copies > 0.0
        place, left = self.place[some], copies[some]
        found, values, scores = np.empty(place.shape), [], []
        for j, distinct in enumerate(self.values):
            weight = np.bincount(place[:, j], left, len(distinct))
            score = normal_scores_of_counts(weight)
            found[:, j] = score[place[:, j]]
            values.append(distinct[weight > 0.0])
            scores.append(score[weight > 0.0])
        spread = deviations(self.columns[some], left)
        return NormalScores(values, scores, np.where(spread > 0.0, spread, 1.0)), found


@dataclass(frozen=True)
class CenterSpace:
    """Distinct rows in one set of coordinates, with the evidence of the distances from them.

    The *density* has Laplacian kernels of a quarter of the median distance of nearest neighbours, so that it follows single rows
    where rows are dense and regions elsewhere; *neighbours* are the mean distance to five.
    """

    scores: NormalScores | None  # coordinates are normal scores; None for the columns themselves
    scale: np.ndarray  # (d,): divides each column: its standard deviation
    rows: np.ndarray  # (m, d): distinct rows, divided by the scale
    copies: np.ndarray  # (m,): number of times each row occurs
    mismatch: np.ndarray  # (q,): distance of unlike categories in the last q columns
    width: float = 1.0  # width h

    @classmethod
    def of(cls, centers: Centers, copies: np.ndarray, ranked: RankedColumns | None) -> Self:
        """Fit the coordinates to the centres that have copies; normal scores if their columns are ranked."""
        scores, rows = None, centers.rows[copies > 0.0]
        if ranked is not None:
            scores, numbers = ranked.normal_scores(copies)
            rows[:, : centers.n_numeric] = numbers
        copies = copies[copies > 0.0]
        # Ordinary rows have no extreme values, so the plain standard deviation is used.
        share = copies / copies.sum()
        scale = np.sqrt(share @ (rows - share @ rows) ** 2)
        scale = np.where(scale > 0.0, scale, centers.spread)
        scale[centers.n_numeric :] = 1.0  # codes stay codes
        return cls(scores, scale, bounded(rows / scale), copies, centers.mismatch)

    def width_of(self, some: np.ndarray, groups: np.ndarray | None, budget: Budget) -> float:
        """Return the width that `some` of the rows determine."""
        apart = _nearest(self.rows, some, self.mismatch, groups, budget)
        # Distinct rows are 0 apart only where gaps were filled alike.
        return WIDTH * float(np.median(apart[apart > 0.0])) if (apart > 0.0).any() else 1.0

    @property
    def kinds(self) -> int:
        """Number of kinds of evidence: in normal scores also the neighbours."""
        return 1 if self.scores is None else 2

    def enter(self, rows: np.ndarray) -> np.ndarray:
        """Return complete rows in the coordinates of the centres."""
        return bounded((rows if self.scores is None else self.scores(rows)) / self.scale)

    def evidence(self, rows: np.ndarray) -> np.ndarray:
        """Return evidence of complete rows, of shape (n, kinds)."""
        return self._judged(distances_between(self.enter(rows), self.rows, self.mismatch))

    def _judged(self, distances: np.ndarray) -> np.ndarray:
        """Return evidence at distances of shape (..., m), which are overwritten, of shape (..., kinds)."""
        found = [] if self.scores is None else [_neighbour_distances(distances, self.copies)]
        nearest = distances.min(axis=-1)
        distances -= nearest[..., None]
        distances *= -1.0 / self.width
        np.exp(distances, out=distances)
        # Not a product with a matrix, whose last digits depend on the number of rows.
        total = np.einsum("...m,m->...", distances, self.copies)
        density = nearest / self.width - np.log(total / self.copies.sum())
        return np.stack([density, *found], axis=-1)


def _neighbour_distances(distances: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """Return mean distances to the nearest rows, of which each occurs as often as it has copies."""
    k = min(NEIGHBOURS, len(copies))
    if copies.max() == 1.0:  # faster than with the places
        return np.partition(distances, k - 1, axis=-1)[..., :k].mean(axis=-1)
    place = np.argpartition(distances, k - 1, axis=-1)[..., :k]
    near = np.take_along_axis(distances, place, axis=-1)
    order = np.argsort(near, axis=-1)
    near, place = np.take_along_axis(near, order, axis=-1), np.take_along_axis(place, order, axis=-1)
    before = np.minimum(np.cumsum(copies[place], axis=-1), NEIGHBOURS)
    return (np.diff(before, axis=-1, prepend=0.0) * near).sum(axis=-1) / before[..., -1]


@dataclass(frozen=True)
class Centers:
    """Complete rows that represent all training rows, and folds in which these are judged without themselves.

    Coordinates and distances are fitted without the fold too, so that training rows are to the rule what new rows are.
    """

    rows: np.ndarray  # (m, d): distinct rows
    copies: np.ndarray  # (m,): number of times each occurs
    spread: np.ndarray  # (d,): stands for a standard deviation of 0
    n_numeric: int
    mismatch: np.ndarray  # (q,): distance of unlike categories in the last q columns
    fold: np.ndarray  # (m,): fold of each; NEW for rows that are judged like new ones
    grouped: bool  # folds consist of whole groups

    @property
    def ranked(self) -> RankedColumns:
        """Columns of numbers with the places of their values."""
        return RankedColumns.of(self.rows[:, : self.n_numeric])

    def space(self, left_out: np.ndarray, ranked: RankedColumns | None) -> CenterSpace:
        """Return coordinates without one copy of some rows, or without these at all if they are of groups."""
        copies = np.where(left_out, 0.0 if self.grouped else self.copies - 1.0, self.copies)
        return CenterSpace.of(self, copies, ranked)


def _folds(table: TrainingTable, order: np.ndarray) -> np.ndarray:
    """Return the fold of each distinct row, NEW for those that are judged like new rows: all but centres and rows of groups."""
    m, d = min(len(order), MOST_CENTERS), table.rows.shape[1]
    most = max(FEWEST_FOLDS, FOLD_CELLS // (d * (m + 300)))  # a column costs as much as some 300 cells
    fold = np.full(len(order), NEW)
    if table.groups is None:
        fold[order[:m]] = np.arange(m) % most
        return np.where(table.known == NEW, NEW, fold)
    _, first, group = np.unique(table.groups[order], return_index=True, return_inverse=True)
    fold[order] = (np.argsort(np.argsort(first)) % most)[group]
    return fold


def _large(fold: np.ndarray) -> np.ndarray:
    """Return the large fold that each fold is part of."""
    return np.where(fold == NEW, NEW, fold % FOREST_FOLDS)


@dataclass(frozen=True)
class ReferenceRule:
    """Sum of the log tail shares of kinds of evidence among ordinary rows, each of which a density may follow.

    Normal scores of ranks let columns count alike where skewed ones would dominate, and conditional laws, fitted to larger folds,
    find a broken relation of few columns that distances hide.
    """

    centers: Centers
    # What judges new rows: centres on standardised columns, and on their normal scores, and conditional laws or None. All are
    # fitted without one fold, as those that judge training rows, so that evidence of both has the same law
    spaces: list[CenterSpace]
    conditionals: Conditionals | None
    new_values: NewValues
    left_out: int  # this fold; none if there are so few rows or groups that one of them makes a difference
    keys: np.ndarray  # (n,): `row_keys` of the distinct training rows, which tell them from rows with other cells
    fold: np.ndarray  # (n,): fold of each distinct training row
    own: np.ndarray  # (n, kinds): evidence of each, judged without itself
    tails: list[Tail]  # law of each kind of evidence among the training rows
    filler: CovarianceEvidence | None = None  # fills missing cells, where training rows had any

    @classmethod
    def fit(cls, table: TrainingTable, seed: int, fast: bool, budget: Budget) -> tuple[Self, np.ndarray]:
        """Fit to distinct rows, without conditional laws if `fast`. Returns the rule and their :meth:`surprises`."""
        filler, keys, given = None, row_keys(table.rows), table
        if table.has_gaps:
            filler, _ = CovarianceEvidence.fit(table, budget)
            table = table.filled(without_rounding(filler.fill(table.rows, budget)))
        rng = np.random.default_rng(seed)
        order = rng.permutation(np.argsort(keys_by_rank(table.rows), kind="stable"))
        fold, drawn = _folds(table, order), order[:MOST_CENTERS]
        few = (table.rows[drawn], table.copies[drawn], table.spread, table.categories.n_numeric)
        centers = Centers(*few, table.categories.mismatch, fold[drawn], table.groups is not None)
        some = np.arange(min(len(drawn), WIDTH_ROWS))
        groups = None if table.groups is None else table.groups[drawn]
        left_out = 0 if fold.max() + 1 >= FEWEST_FOLDS else NO_FOLD
        new_values = NewValues.of(given, next(iter(order[fold[order] == left_out].tolist()), NEW))
        spaces, ranked = [], centers.ranked
        for coordinates in (None, ranked):
            width = CenterSpace.of(centers, centers.copies, coordinates).width_of(some, groups, budget)
            spaces.append(replace(centers.space(centers.fold == left_out, coordinates), width=width))
        rule = cls(centers, spaces, None, new_values, left_out, keys, fold, np.empty(0), [], filler)
        if not fast:
            columns = columns_by_key(table.rows[order])
            space = centers.space(_large(centers.fold) == left_out, ranked)
            rule = replace(rule, conditionals=Conditionals.fit(space, columns, centers.n_numeric, seed, budget))
        own = rule._judged(table.rows, fold, new_values.evidence(given.rows, given.known), budget)
        tails = [Tail.of(values, table.copies).smooth() for values in own.T]
        rule = replace(rule, own=own, tails=tails)
        return rule, rule.surprise_of(own)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of evidence."""
        return KINDS if self.conditionals is not None else KINDS[:-1]

    def complete(self, rows: np.ndarray, budget: Budget) -> np.ndarray:
        """Return rows with their gaps filled: by the conditional mean or, if no training row had a gap, by the median."""
        if self.filler is not None:
            return self.filler.fill(rows, budget)
        return np.where(np.isnan(rows), 0.0, rows)

    def _spaces(self, fold: int, ranked: RankedColumns) -> list[CenterSpace]:
        """Return the coordinates that judge the rows of a fold."""
        if fold in (NEW, self.left_out):
            return self.spaces
        own, both = self.centers.fold == fold, zip((None, ranked), self.spaces, strict=True)
        return [replace(self.centers.space(own, coordinates), width=s.width) for coordinates, s in both]

    def _laws(self, fold: int, laws: Conditionals, budget: Budget) -> Conditionals:
        """Return the conditional laws that judge the rows of a large fold."""
        if fold in (NEW, self.left_out):
            return laws
        space = self.centers.space(_large(self.centers.fold) == fold, self.centers.ranked)
        return Conditionals.fit(space, laws.columns, self.centers.n_numeric, laws.seed, budget)

    def _judged(self, rows: np.ndarray, fold: np.ndarray, unseen: np.ndarray, budget: Budget) -> np.ndarray:
        """Return evidence of complete rows of some folds; `unseen` is that of new values."""
        found = np.empty((len(rows), len(self.kinds)))
        found[:, 3] = unseen
        m, ranked = len(self.centers.rows), self.centers.ranked
        few = max(1, AT_ONCE // m)
        new = np.flatnonzero(fold == NEW)
        order = np.argsort(fold, kind="stable")[len(new) :]
        each = np.split(order, np.flatnonzero(np.diff(fold[order])) + 1) if len(order) else []

        def judge(part: np.ndarray) -> None:
            spaces = self._spaces(int(fold[part[0]]), ranked)
            for some in np.split(part, range(few, len(part), few)):
                found[some, :3] = np.concatenate([space.evidence(rows[some]) for space in spaces], axis=1)

        parts = [new[part] for part in budget.blocks(len(new), 8.0 * 3 * m, few)]
        budget.map("densities of all rows", judge, parts + each)
        if self.conditionals is not None:
            large = _large(fold)
            for k in np.unique(large):
                some = np.flatnonzero(large == k)
                found[some, 4] = self._laws(int(k), self.conditionals, budget).evidence(rows[some], budget)
        return found

    def evidence(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return evidence of shape (n, kinds); `known` are numbers of the training rows that do not judge a row, or NEW."""
        out = self.own[known]
        other = (known == NEW) | (row_keys(rows) != self.keys[known])
        fold = np.where(known == NEW, NEW, self.fold[known])[other]
        unseen = self.new_values.evidence(rows[other], known[other])
        out[other] = self._judged(self.complete(rows[other], budget), fold, unseen, budget)
        return out

    def surprise_of(self, evidence: np.ndarray) -> np.ndarray:
        """Return minus the log tail shares of evidence, whose last axis is the kinds."""
        return np.stack([tail.surprise(evidence[..., k], new=0.0) for k, tail in enumerate(self.tails)], axis=-1)

    def surprises(self, rows: np.ndarray, known: np.ndarray, budget: Budget) -> np.ndarray:
        """Return minus the log tail shares of rows, of shape (n, kinds); `known` are numbers of training rows, or NEW."""
        return self.surprise_of(self.evidence(rows, known, budget))


def _nearest(
    centers: np.ndarray, some: np.ndarray, mismatch: np.ndarray, groups: np.ndarray | None, budget: Budget
) -> np.ndarray:
    """Return the distance of `some` of the centres to the nearest other centre, of another group if there are groups."""

    def nearest(part: slice) -> np.ndarray:
        distances = distances_between(centers[some[part]], centers, mismatch)
        distances[np.arange(len(distances)), some[part]] = np.inf
        if groups is not None:
            distances[groups[some[part], None] == groups] = np.inf
        return distances.min(axis=1)

    parts = budget.blocks(len(some), 8.0 * 2 * len(centers), max(1, AT_ONCE // len(centers)))
    return np.concatenate(budget.map("nearest rows", nearest, parts))
