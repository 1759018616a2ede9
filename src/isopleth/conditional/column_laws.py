"""Laws of all columns of a table, each given the others: the excess surprise of cells, and what would be usual there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Self

import numpy as np

from isopleth.conditional.binned_law import BinnedLaw, NumberBins, ScoreMap, WordBins, in_scores, score_maps
from isopleth.conditional.cell_judgement import CellJudgement, excess_of, quantiles_of
from isopleth.conditional.forest import Growth
from isopleth.conditional.related_columns import is_wide, related_columns
from isopleth.core.budget import ONE_THREAD, Budget
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.progress import unheard
from isopleth.core.threads import check_stopped, map_threads, slices

# Rows that are judged at once, and the trees that are grown in the time of one such batch, about.
_BATCH, _TREES_OF_BATCH = 2048, 8
# Upper quartile of normal scores, and bits of the key by which similar rows are put together.
_QUARTILE, _MOST_BITS = 0.6745, 62
# Columns whose laws are held with their compiled trees and tables, some ten megabytes each; and rows whose keys are made at once.
_COLUMNS_AT_ONCE, _ROWS_OF_KEYS = 16, 2**16

Leaves = Callable[[np.ndarray], np.ndarray]
# Takes the excess of the rows of the fit, and returns the function `chosen` of a Judging.
Choose = Callable[[np.ndarray], Callable[[np.ndarray, np.ndarray], np.ndarray]]


@dataclass(frozen=True)
class RowsOfLaws:
    """Rows that laws of columns are fitted to, and those that they judge besides."""

    rows: np.ndarray  # (n, d): all of them
    fitted: np.ndarray  # places of those of the fit, in an order that does not depend on that of the table
    rest: np.ndarray  # places of those that are judged besides
    order: np.ndarray  # (d,): columns in an order that does not depend on that of the table
    limits: IntervalCells  # of the rows


@dataclass(frozen=True)
class ColumnLaws:
    """Laws of the columns, each given the others, fitted to distinct rows or some of them."""

    laws: tuple[BinnedLaw | None, ...]  # None for a column that has one value
    maps: tuple[ScoreMap | None, ...]
    sizes: tuple[int, ...]  # words of each column of words

    @classmethod
    def fit(
        cls,
        given: RowsOfLaws,
        n_numeric: int,
        sizes: tuple[int, ...],
        judged: CellJudgement,
        *,
        growth: Growth,
        computed: Mapping[int, Collection[int]] = {},
        choose: Choose | None = None,
    ) -> Self:
        """Fit to some rows, and write answers for all to `judged`, for those of the fit by laws that do not know them.

        `computed` has, for columns, those that are computed from them: a wrong part and its result agree, so that the result is
        no evidence for the part. `choose` is called when the laws are fitted and returns what chooses the cell of each row whose
        quantiles are kept.
        """
        rows, fitted = given.rows, given.fitted
        maps = score_maps(rows[fitted], n_numeric)
        scored = in_scores(rows[fitted], maps)
        laws: list[BinnedLaw | None] = [None] * rows.shape[1]
        found = cls(laws, tuple(maps), sizes)  # type: ignore[arg-type]
        related = related_columns(scored, n_numeric, sizes, given.order)
        own = CellJudgement.empty(*scored.shape)
        # Threads have a column each. Random thresholds take a third of the time, and find fewer wrong cells beside bent lines.
        alone = replace(growth, budget=ONE_THREAD, random_splits=is_wide(rows.shape[1]))

        def fit_one(j: int) -> Leaves | None:
            check_stopped()
            known = ~np.isnan(scored[:, j])
            values = rows[fitted[known], j]
            if len(values) < 2 or values.min() == values.max():
                return None
            bins: NumberBins | WordBins = (
                WordBins(sizes[j - n_numeric]) if j >= n_numeric else _number_bins(values, maps[j])
            )
            others = related[j][~np.isin(related[j], list(computed.get(j, ())))]
            cells, limits, places = scored[known], given.limits.take(fitted[known]), np.flatnonzero(known)
            law, of_fit, leaves = BinnedLaw.fit_judging(bins, cells, j, n_numeric, others, alone)
            for part, masses in of_fit:
                own.put(places[part], j, law, masses, cells[part, j], limits.take(part))
            laws[j] = law.of_new_rows()
            return leaves

        rest = given.rest[alike_together(rows, given.rest, maps)]
        gaps = np.empty(0, dtype=np.intp) if judged.columns is not None else fitted[np.isnan(scored).any(axis=1)]
        chosen = None
        for columns in _groups(rows.shape[1]):
            leaves = dict(zip(columns, map_threads(fit_one, columns, growth.budget.threads), strict=True))
            judged.copy_columns(fitted, own, columns)
            work = Judging(found, rows, given.limits, judged, growth.budget)
            if len(gaps):
                work.judge(gaps, columns, leaves, np.isnan(rows), len(rest))
            if choose is not None and columns[-1] == len(laws) - 1:
                chosen = choose(own.excess)
            # Of wide tables no law is held until all columns are judged.
            every = chosen if len(columns) == len(laws) else None
            replace(work, tick=growth.tick, chosen=every).judge(rest, columns, leaves)
        if chosen is not None:
            judged.keep_of(fitted, chosen(fitted, judged.excess[fitted]), own)
        return replace(found, laws=tuple(laws))

    def judge_to(
        self,
        judged: CellJudgement,
        rows: np.ndarray,
        limits: IntervalCells | None = None,
    ) -> CellJudgement:
        """Write answers for rows that are not those of the fit to `judged`, and return it."""
        said = IntervalCells.none(len(rows)) if limits is None else limits
        work = Judging(self, rows, said, judged)
        order = alike_together(rows, np.arange(len(rows)), list(self.maps))
        for columns in _groups(rows.shape[1]):
            work.judge(order, columns, {})
        return judged

    def excess(
        self,
        rows: Callable[[np.ndarray], np.ndarray],
        limits: IntervalCells,
        at: np.ndarray,
        row: np.ndarray,
        column: np.ndarray,
    ) -> np.ndarray:
        """Return the excess of some cells of rows that are not those of the fit, by row and column.

        `rows` returns rows by their numbers, as they may be too many to be held, and `at` has the places of their limits.
        """
        out, order = np.full(len(row), np.nan), np.lexsort((row, column))
        starts = np.searchsorted(column[order], np.arange(len(self.laws) + 1))
        for columns in _groups(len(self.laws)):
            laws, maps = self.judging({j: int(starts[j + 1] - starts[j]) for j in columns}), self.maps_of(columns)
            asked = np.unique(row[order[starts[columns[0]] : starts[columns[-1] + 1]]])
            for part in (asked[some] for some in slices(len(asked), _BATCH)):
                scored, of_rows = in_scores(rows(part), maps), limits.take(at[part])
                for j, (law, masses_at) in laws.items():
                    check_stopped()
                    own = order[starts[j] : starts[j + 1]]
                    own = own[slice(*np.searchsorted(row[own], (part[0], part[-1] + 1)).tolist())]
                    if len(own):
                        places = np.searchsorted(part, row[own])
                        cells = scored[places]
                        out[own] = excess_of(law, j, masses_at(cells), cells[:, j], of_rows.take(places))
        return out

    def judging(
        self, counts: Mapping[int, int], leaves: Mapping[int, Leaves | None] = {}
    ) -> dict[int, tuple[BinnedLaw, Leaves]]:
        """Return the laws of some columns, and what gives the masses at some of so many rows each; without those of no rows."""
        found = {}
        for j, count in counts.items():
            if (law := self.laws[j]) is not None and count:
                # What laws compute once for all rows is kept with them, but for wide tables it would be gigabytes.
                found[j] = law, (law.copy() if is_wide(len(self.laws)) else law).judging(count, leaves.get(j))
        return found

    def maps_of(self, columns: Sequence[int]) -> list[ScoreMap | None]:
        """Return the maps of some columns and of those that their laws have as inputs; None for all others."""
        laws = [law for j in columns if (law := self.laws[j]) is not None]
        read = {*columns, *(column.place for law in laws for column in law.inputs.columns)}
        return [scores if j in read else None for j, scores in enumerate(self.maps)]

    def quantiles(self, rows: np.ndarray, j: int) -> np.ndarray:
        """Return the quantiles of column j in rows that are not those of the fit, (3, n); NaN where there is no law."""
        law, out = self.laws[j], np.full((3, len(rows)), np.nan)
        if law is None:
            return out
        at = law.judging(len(rows))
        for part in slices(len(rows), _BATCH):
            check_stopped()
            out[:, part] = quantiles_of(law.bins, at(in_scores(rows[part], list(self.maps))))
        return out

    def reads(self) -> np.ndarray:
        """Return a mask, (d, d), of the columns whose cells are judged by the cell of each column, itself among them."""
        out = np.eye(len(self.laws), dtype=bool)
        for j, law in enumerate(self.laws):
            if law is not None:
                out[[column.place for column in law.inputs.columns], j] = True
        return out

    def likeliest(self, rows: np.ndarray, j: int, among: Sequence[int]) -> np.ndarray:
        """Return which of some words the law gives the most in column j of each row; the first where there is no law."""
        law, words = self.laws[j], np.asarray(among, dtype=np.intp)
        if law is None or len(words) == 1:
            return np.full(len(rows), words[0])
        return np.asarray(words[law.at(in_scores(rows, list(self.maps)))[:, words].argmax(axis=1)])

    def word_shares(self, rows: np.ndarray, j: int) -> np.ndarray | None:
        """Return the probability of each word of column j in each row, (n, words); None where there is no law."""
        law = self.laws[j]
        return None if law is None else np.asarray(law.at(in_scores(rows, list(self.maps))))

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


@dataclass(frozen=True)
class Judging:
    """Rows that are judged by laws, some at a time: by the laws of all columns while their scores are in the cache."""

    laws: ColumnLaws
    rows: np.ndarray
    limits: IntervalCells
    judged: CellJudgement
    budget: Budget = ONE_THREAD
    tick: Callable[[int], None] = unheard
    # Takes numbers of rows and their excess, and returns the column of each whose quantiles are kept; None keeps none.
    chosen: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def judge(
        self,
        places: np.ndarray,
        columns: Sequence[int],
        leaves: Mapping[int, Leaves | None],
        asked: np.ndarray | None = None,
        more: int = 0,
    ) -> None:
        """Judge rows, or of them the cells `asked`, (n, d); `leaves` are those of forests by compiled trees.

        `more` is the number of rows that the same laws judge besides.
        """
        if not len(places):
            return
        counts = {j: len(places) if asked is None else int(asked[places, j].sum()) for j in columns}
        at = self.laws.judging({j: count + more for j, count in counts.items() if count}, leaves)
        maps = self.laws.maps_of(columns)

        def judge_some(part: np.ndarray) -> None:
            scored, kept = in_scores(self.rows[part], maps), {}
            for j, (law, masses_at) in at.items():
                some = np.arange(len(part)) if asked is None else np.flatnonzero(asked[part, j])
                if len(some):
                    check_stopped()
                    kept[j] = masses_at(scored[some])
                    self.judged.put(part[some], j, law, kept[j], scored[some, j], self.limits.take(part[some]))
                    if self.chosen is None:
                        del kept[j]
                self.tick(_TREES_OF_BATCH)
            if self.chosen is not None:
                self._keep(part, kept)

        map_threads(judge_some, np.split(places, np.arange(_BATCH, len(places), _BATCH)), self.budget.threads)

    def _keep(self, part: np.ndarray, masses: Mapping[int, np.ndarray]) -> None:
        """Keep the quantiles of one cell of each of some rows."""
        assert self.chosen is not None
        columns = self.chosen(part, self.judged.excess[part])
        for j, found in masses.items():
            here = np.flatnonzero(columns == j)
            law = self.laws.laws[j]
            if len(here) and law is not None:
                self.judged.keep(part[here], j, law, found[here])


def _groups(d: int) -> list[list[int]]:
    """Return the columns in groups whose laws are held at once with their tables."""
    return [list(range(d))[part] for part in slices(d, _COLUMNS_AT_ONCE)]


def alike_together(rows: np.ndarray, places: np.ndarray, maps: list[ScoreMap | None]) -> np.ndarray:
    """Return an order of the rows at places in which similar ones are neighbours: they take the same ways down trees.

    That halves the time. Rows are alike by the halves and quarters of their numbers, and by two bits of the codes of their words.
    """
    key = np.zeros(len(places), dtype=np.int64)
    for part in slices(len(places), _ROWS_OF_KEYS):
        scored = in_scores(rows[places[part]], maps)
        numbers, words = scored[:, : len(maps)], np.nan_to_num(scored[:, len(maps) :]).astype(np.int64)
        with np.errstate(invalid="ignore"):
            bits = [*(numbers > 0.0).T, *(words & 1).T, *(np.abs(numbers) > _QUARTILE).T, *(words >> 1 & 1).T]
        for bit in bits[:_MOST_BITS]:
            key[part] <<= 1
            key[part] |= bit
    return np.argsort(key, kind="stable")


def steps_of_fit(rows: int, columns: int, most: int, trees: int) -> int:
    """Return the steps of progress of :meth:`ColumnLaws.fit`: trees, and the worth of judging rows beyond those of the fit."""
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
