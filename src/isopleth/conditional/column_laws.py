"""Laws of all columns of a table, each given the others: the excess surprise of cells, and what would be usual there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol, Self

import numpy as np

from isopleth.conditional.binned_law import BinnedLaw, NumberBins, ScoreMap, WordBins, in_scores, score_maps
from isopleth.conditional.forest import Growth
from isopleth.core.budget import ONE_THREAD
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.rows import sample_places
from isopleth.core.threads import check_stopped, map_threads

# Quantiles of the law between which a number is usual.
USUAL = (0.05, 0.95)
# Rows that are judged at once, and the trees that are grown in the time of one such batch, about.
_BATCH, _TREES_OF_BATCH = 2048, 8
# Upper quartile of normal scores, and bits of the key by which similar rows are put together.
_QUARTILE, _MOST_BITS = 0.6745, 62


class LawOfBins(Protocol):
    """Law whose masses of bins give densities of cells."""

    @property
    def bins(self) -> NumberBins | WordBins:
        """Bins of the column."""

    def densities(self, masses: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return the densities of known cells."""


@dataclass(frozen=True)
class CellJudgement:
    """Answers for the cells of rows, (n, d) each; NaN in gaps of `excess` and in columns that are not judged."""

    excess: np.ndarray  # surprisal less its expectation, in nats
    usual: np.ndarray  # median of the law, or code of its likeliest word
    low: np.ndarray  # quantiles of the law; of words the likeliest one
    high: np.ndarray

    @classmethod
    def empty(cls, n: int, d: int) -> Self:
        """Return answers that are to be written."""
        return cls(*(np.full((n, d), np.nan) for _ in range(4)))

    def take(self, places: np.ndarray) -> CellJudgement:
        """Return the answers for some rows."""
        return CellJudgement(self.excess[places], self.usual[places], self.low[places], self.high[places])

    def rearrange(self, places: np.ndarray) -> None:
        """Put the answers for some rows in the place of these, one array after another: all at once take twice the memory."""
        for name in ("excess", "usual", "low", "high"):
            vars(self)[name] = getattr(self, name)[places]

    def put(
        self,
        places: np.ndarray,
        j: int,
        law: LawOfBins,
        masses: np.ndarray,
        cells: np.ndarray,
        limits: IntervalCells | None = None,
    ) -> None:
        """Write the answers for a column at some rows by the masses of its bins; `cells` are scores or codes.

        The density of a cell that says a limit is the probability of its interval over the length.
        """
        known = ~np.isnan(cells)
        density = np.full(len(cells), np.nan)
        density[known] = law.densities(masses[known], cells[known])
        where, low, high = (limits or IntervalCells.none(len(cells))).of(j)
        if len(where):
            inside = (law.bins.values > low[:, None]) & (law.bins.values < high[:, None])  # type: ignore[union-attr]
            length = inside @ law.bins.widths
            found = (masses[where] * inside).sum(axis=1) / np.maximum(length, 1e-300)
            density[where] = np.where(length > 0.0, np.maximum(found, 1e-300), density[where])
        self.excess[places, j] = _expected_log(masses, law.bins.widths) - np.log(density)
        if isinstance(law.bins, WordBins):
            self.usual[places, j] = self.low[places, j] = self.high[places, j] = masses.argmax(axis=1)
            return
        below = np.cumsum(masses, axis=1)
        for out, level in ((self.low, USUAL[0]), (self.usual, 0.5), (self.high, USUAL[1])):
            at = np.minimum(np.count_nonzero(below < level, axis=1), len(law.bins) - 1)
            out[places, j] = law.bins.values[at]


@dataclass(frozen=True)
class CellLaws:
    """Laws of the columns, each given the others, fitted to distinct rows or some of them."""

    laws: tuple[BinnedLaw | None, ...]  # None for a column that has one value
    maps: tuple[ScoreMap | None, ...]
    sizes: tuple[int, ...]  # words of each column of words

    @classmethod
    def fit(
        cls,
        rows: np.ndarray,
        n_numeric: int,
        sizes: tuple[int, ...],
        order: np.ndarray,
        limits: IntervalCells | None = None,
        *,
        most: int,
        growth: Growth,
        computed: Mapping[int, Collection[int]] = {},
    ) -> tuple[Self, CellJudgement]:
        """Fit to at most `most` of the distinct `rows`, and judge all of them, those of the fit by laws that do not know them.

        Rows and `order`, that of the columns, do not depend on the order of the table. Cells with `limits` have points in `rows`.
        `computed` has, for columns, those that are computed from them: a wrong part and its result agree, so that the result is
        no evidence for the part.
        """
        said = IntervalCells.none(len(rows)) if limits is None else limits
        fitted = np.sort(sample_places(len(rows), most))
        maps = score_maps(rows[fitted], n_numeric)
        scored = in_scores(rows, maps)
        judged = CellJudgement.empty(*rows.shape)
        rest = np.setdiff1d(np.arange(len(rows)), fitted)
        rest = rest[alike_together(scored[rest], n_numeric)]

        def used(j: int) -> np.ndarray:
            return order[~np.isin(order, [k for k in computed.get(j, ()) if k != j])]

        def fit_one(j: int) -> BinnedLaw | None:
            check_stopped()
            known = fitted[~np.isnan(rows[fitted, j])]
            values = rows[known, j]
            if len(known) < 2 or values.min() == values.max():
                return None
            bins: NumberBins | WordBins = (
                WordBins(sizes[j - n_numeric]) if j >= n_numeric else _number_bins(values, maps[j])
            )
            alone = replace(growth, budget=ONE_THREAD)  # threads have a column each
            law, of_fit, leaves = BinnedLaw.fit_judging(bins, scored[known], j, n_numeric, used(j), alone)
            for part, masses in of_fit:
                judged.put(known[part], j, law, masses, scored[known[part], j], said.take(known[part]))
            others = np.concatenate([np.setdiff1d(fitted, known), rest])
            at = law.judging(len(others), leaves)
            for part in np.split(others, np.arange(_BATCH, len(others), _BATCH)):
                if len(part):
                    check_stopped()
                    judged.put(part, j, law, at(scored[part]), scored[part, j], said.take(part))
                    growth.tick(_TREES_OF_BATCH)
            return law

        laws = map_threads(fit_one, range(rows.shape[1]), growth.budget.threads)
        return cls(tuple(laws), tuple(maps), sizes), judged

    def judge(
        self, rows: np.ndarray, limits: IntervalCells | None = None, asked: np.ndarray | None = None
    ) -> CellJudgement:
        """Judge rows that are not those of the fit; `asked`, (n, d), is a mask of the cells that are judged, all by default."""
        said = IntervalCells.none(len(rows)) if limits is None else limits
        scored = in_scores(rows, list(self.maps))
        judged = CellJudgement.empty(*rows.shape)
        order = alike_together(scored, len(self.laws) - len(self.sizes))
        for j, law in enumerate(self.laws):
            if law is None:
                continue
            some = order if asked is None else order[asked[order, j]]
            at = law.judging(len(some))
            for part in np.split(some, np.arange(_BATCH, len(some), _BATCH)):
                judged.put(part, j, law, at(scored[part]), scored[part, j], said.take(part))
        return judged

    def likeliest(self, rows: np.ndarray, j: int, among: Sequence[int]) -> np.ndarray:
        """Return which of some words the law gives the most in column j of each row; the first where there is no law."""
        law, words = self.laws[j], np.asarray(among, dtype=np.intp)
        if law is None or len(words) == 1:
            return np.full(len(rows), words[0])
        return np.asarray(words[law.at(in_scores(rows, list(self.maps)))[:, words].argmax(axis=1)])

    def likeliest_share(self, rows: np.ndarray, j: int) -> np.ndarray:
        """Return the probability of the likeliest word of column j in each row; 0 where there is no law."""
        law = self.laws[j]
        if law is None:
            return np.zeros(len(rows))
        return np.asarray(law.at(in_scores(rows, list(self.maps))).max(axis=1))

    def against(self, row: np.ndarray, j: int) -> list[int]:
        """Return the columns whose cells speak against cell j of a row, the strongest first.

        Without such a cell the law gives cell j more than half a nat more.
        """
        law, scored = self.laws[j], in_scores(row[None], list(self.maps))
        others = np.array([k for k in range(len(row)) if k != j and not np.isnan(row[k])])
        if law is None or not len(others):
            return []
        changed = without_each(scored, others)
        logs = np.log(law.densities(law.at(changed), changed[:, j]))
        gain = logs[:-1] - logs[-1]
        order = np.argsort(-gain, kind="stable")
        return [int(others[k]) for k in order if gain[k] > 0.5]


def _expected_log(masses: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the expectation of the log density of a cell under its law, for each line of masses."""
    logs = np.log(np.maximum(masses, 1e-300))  # bins without mass count 0
    return np.asarray(np.einsum("ij,ij->i", masses, logs) - masses @ np.log(widths))


def alike_together(scored: np.ndarray, n_numeric: int) -> np.ndarray:
    """Return an order of rows in which similar ones are neighbours: they take the same ways down trees, in half the time.

    Rows are alike by the halves and quarters of their numbers, and by two bits of the codes of their words.
    """
    numbers, words = scored[:, :n_numeric], np.nan_to_num(scored[:, n_numeric:]).astype(np.int64)
    with np.errstate(invalid="ignore"):
        bits = [*(numbers > 0.0).T, *(words & 1).T, *(np.abs(numbers) > _QUARTILE).T, *(words >> 1 & 1).T]
    key = np.zeros(len(scored), dtype=np.int64)
    for bit in bits[:_MOST_BITS]:
        key <<= 1
        key |= bit
    return np.argsort(key, kind="stable")


def steps_of_fit(rows: int, columns: int, most: int, trees: int) -> int:
    """Return the steps of progress of :meth:`CellLaws.fit`: trees, and what judging the rows beyond those of the fit is worth."""
    return columns * (trees + _TREES_OF_BATCH * ceil(max(rows - most, 0) / _BATCH))


def without_each(scored: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return each row without each of the cells in columns `others` in turn, and then as it is, (n (k + 1), d)."""
    n, k = len(scored), len(others)
    changed = np.repeat(scored, k + 1, axis=0).reshape(n, k + 1, -1)
    changed[:, np.arange(k), others] = np.nan
    return changed.reshape(n * (k + 1), -1)


def _number_bins(values: np.ndarray, scores: ScoreMap | None) -> NumberBins:
    assert scores is not None
    return NumberBins.of(values, scores)
