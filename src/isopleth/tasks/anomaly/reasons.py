"""Reasons of rows: how much each cell surprises given the rest of its row and by itself, and what would be usual there.

The score says how unlikely a row is, and its cells say why: each is judged by the law of its column given the other cells of the
row, by which wrong cells are found, too. The laws are fitted when the first row is explained, to some distinct rows of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from isopleth.conditional.binned_law import OF_BINS, BinnedLaw, NumberBins, ScoreMap, WordBins, in_scores, score_maps
from isopleth.conditional.cell_judgement import CellJudgement
from isopleth.conditional.column_laws import without_each
from isopleth.conditional.inputs import Inputs, Sample
from isopleth.core.budget import Budget
from isopleth.core.rows import sample_places

# Most rows that laws are fitted to, trees of a column, and fewest columns that a node compares: a third of the columns names most
# planted cells, but one of three would make wide ranges of what is usual.
_ROWS, _TREES, _COLUMNS = 1000, 20, 3
# Columns up to which all cells of a row are judged. In wider tables those are judged that look odd by themselves or by
# a line, so many of each, and given so many of the columns that go with them.
_ALL, _CANDIDATES, _OTHERS = 24, 4, 16
# Total variation from which on a cell tells the law of another one.
_TELLING = 0.2
# Width of the kernel, in scores, by which frequencies of numbers are smoothed.
_WIDTH = 0.3
# Deviations that coordinates of lines count as at most.
_FARTHEST = 6.0


@dataclass(frozen=True)
class FrequencyLaw:
    """Law of one column by itself: smoothed masses of its bins."""

    bins: NumberBins | WordBins
    counts: np.ndarray  # (B,)

    def masses(self, cells: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the masses of bins at rows, (n, B), without the cell of those that are `own` rows of the fit."""
        counts = np.tile(self.counts + 0.5 / len(self.counts), (len(cells), 1))
        where = np.flatnonzero(own & ~np.isnan(cells))
        counts[where] -= self.bins.shares(cells[where]).toarray()
        masses = np.maximum(counts, 0.0)
        if isinstance(self.bins, NumberBins):
            t = (self.bins.centers[:, None] - self.bins.centers) / _WIDTH
            kernel = np.exp(-0.5 * t * t) * self.bins.widths
            masses = masses @ (kernel / kernel.sum(axis=1, keepdims=True))
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))

    def densities(self, masses: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return the densities of known cells; a word that no row has counts as half a row."""
        least = 0.5 / (self.counts.sum() + 0.5) / len(self.counts)
        shares = self.bins.shares(cells)
        row = np.repeat(np.arange(len(cells)), np.diff(shares.indptr))
        found = np.bincount(row, shares.data * (masses / self.bins.widths)[row, shares.indices], len(cells))
        return np.maximum(found, least) * self.bins.far(cells)


@dataclass(frozen=True)
class Judged:
    """Answers for the cells of rows, (n, d) each, encoded."""

    excess: np.ndarray  # surprisal given the others less its expectation, in nats; 0 in gaps and where it is less
    rarity: np.ndarray  # the same by the column's own frequencies
    usual: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Reasons:
    """Laws of the columns of a table, fitted when they are first needed, as is all that they are made from."""

    drawn: np.ndarray  # (k, d): some distinct training rows, encoded: numbers, then codes of words
    numbers: np.ndarray  # (k,): their numbers, ascending
    n_numeric: int
    sizes: np.ndarray  # (d - n_numeric,): numbers of codes that a column of words can have
    laws: dict[str, BinnedLaw] = field(default_factory=dict)  # by the number of their column

    @classmethod
    def of(cls, rows: np.ndarray, first: np.ndarray, n_numeric: int, sizes: np.ndarray) -> Self:
        """Choose some of the distinct training rows, of which `first` are the places."""
        numbers = sample_places(len(first), _ROWS)
        return cls(rows[first[numbers]], numbers, n_numeric, sizes)

    @cached_property
    def _sample(self) -> Sample:
        return Sample.of(self.drawn, np.zeros(len(self.drawn)), np.ones(len(self.drawn)))

    @property
    def rows(self) -> np.ndarray:
        """Distinct rows, (m, d), in an order that does not depend on that of the table."""
        return self._sample.rows

    @cached_property
    def maps(self) -> tuple[ScoreMap | None, ...]:
        """Maps of the columns of numbers to scores."""
        return tuple(score_maps(self.rows, self.n_numeric))

    @cached_property
    def bins(self) -> tuple[NumberBins | WordBins | None, ...]:
        """Bins of the laws of columns; None for a column that has one value."""
        found: list[NumberBins | WordBins | None] = []
        for j, cells in enumerate(self.rows.T):
            known = cells[~np.isnan(cells)]
            scores = self.maps[j] if j < self.n_numeric else None
            if len(known) < 2 or known.min() == known.max():
                found.append(None)
            elif scores is not None:
                found.append(NumberBins.of(known, scores))
            else:
                found.append(WordBins(int(self.sizes[j - self.n_numeric])))
        return tuple(found)

    @cached_property
    def order(self) -> np.ndarray:
        """Columns that vary, in an order that does not depend on that of the table."""
        return np.array([j for j in self._sample.order if self.bins[j] is not None], dtype=np.intp)

    def judge(self, rows: np.ndarray, numbers: np.ndarray, seed: int, budget: Budget) -> Judged:
        """Judge the cells of encoded rows; `numbers` are those of training rows, which laws then do not know, or negative."""
        scored, own = in_scores(rows, list(self.maps)), self._places(numbers)
        rarity, found = CellJudgement.empty(*rows.shape), CellJudgement.empty(*rows.shape)
        for j, bins in enumerate(self.bins):
            if bins is None:  # a column of one value, or of none
                known = self.rows[~np.isnan(self.rows[:, j]), j]
                for part in (rarity.usual, rarity.low, rarity.high):
                    part[:, j] = known[0] if len(known) else np.nan
            else:
                law, cells = self._frequencies[j], scored[:, j]
                rarity.put(np.arange(len(rows)), j, law, law.masses(cells, own >= 0), cells)
        asked = self._asked(scored, rarity.excess)
        self._fit(np.flatnonzero(asked.any(axis=0)), seed, budget)
        for j in np.flatnonzero(asked.any(axis=0)).tolist():
            self._put(found, j, np.flatnonzero(asked[:, j]), scored, own)
        excess, alone = (np.fmax(part.excess, 0.0) for part in (found, rarity))
        usual, low, high = (
            np.where(np.isnan(part), other, part)
            for part, other in zip(
                (found.usual, found.low, found.high), (rarity.usual, rarity.low, rarity.high), strict=True
            )
        )
        return Judged(excess, alone, usual, low, high)

    def telling(self, rows: np.ndarray, j: int) -> np.ndarray:
        """Return for each row the column without whose cell the law of cell j would be most different, -1 for none.

        The difference of two laws is their total variation.
        """
        if str(j) not in self.laws:  # a column that had one value
            return np.full(len(rows), -1)
        others = self.laws[str(j)].inputs.columns
        places = np.array([column.place for column in others], dtype=np.intp)
        if not len(places):
            return np.full(len(rows), -1)
        law, scored = self.laws[str(j)], in_scores(rows, list(self.maps))
        masses = law.at(without_each(scored, places)).reshape(len(rows), len(places) + 1, -1)
        change = 0.5 * np.abs(masses[:, :-1] - masses[:, -1:]).sum(axis=2)
        change[np.isnan(rows[:, places])] = 0.0
        best = change.argmax(axis=1)
        return np.where(change[np.arange(len(rows)), best] > _TELLING, places[best], -1)

    # ---- inside ------------------------------------------------------------------------------------------------------------

    def _places(self, known: np.ndarray) -> np.ndarray:
        """Return the places among the rows of the laws of training rows; -1 for all others."""
        at = np.minimum(np.searchsorted(self.numbers, known), len(self.numbers) - 1)
        return np.where(self.numbers[at] == known, self._sample.place[at], -1)

    @cached_property
    def _frequencies(self) -> dict[int, FrequencyLaw]:
        """Laws of the columns by themselves, by their numbers."""
        scored = in_scores(self.rows, list(self.maps))
        found = {}
        for j, bins in enumerate(self.bins):
            if bins is not None:
                counts = np.asarray(bins.shares(scored[~np.isnan(scored[:, j]), j]).sum(axis=0)).ravel()
                found[j] = FrequencyLaw(bins, counts)
        return found

    def _asked(self, scored: np.ndarray, rarity: np.ndarray) -> np.ndarray:
        """Return which cells are judged given the others: all, or in a wide table the oddest by themselves and by lines."""
        known = ~np.isnan(scored) & np.array([bins is not None for bins in self.bins])
        if len(self.order) <= _ALL:
            return known
        alone = np.where(known, np.nan_to_num(rarity, nan=-np.inf), -np.inf)
        given = np.where(known, self._from_lines(scored), -np.inf)
        out = np.zeros_like(known)
        for part in (alone, given):
            np.put_along_axis(out, np.argsort(-part, axis=1, kind="stable")[:, :_CANDIDATES], True, axis=1)
        return out & known

    def _lines(self) -> tuple[Inputs, np.ndarray]:
        """Return the inputs of lines of all columns, and of which column each is."""
        scored = in_scores(self.rows, list(self.maps))
        inputs = Inputs.of(scored, np.ones(len(scored)), self.n_numeric, self.order)
        of = [np.full(len(c.of_lines(scored[:1, c.place])), c.place) for c in inputs.columns]
        return inputs, np.concatenate(of)

    def _from_lines(self, scored: np.ndarray) -> np.ndarray:
        """Return the largest distance of a cell from the line of the others, in deviations of these distances."""
        inputs, of = self._lines()
        residuals = []
        for part in (in_scores(self.rows, list(self.maps)), scored):
            Z = np.clip((inputs.of_lines(part) - inputs.lines.center) / inputs.lines.scale, -_FARTHEST, _FARTHEST)
            residuals.append(np.abs(Z - Z @ inputs.lines.slopes.T))
        far = residuals[1] / np.maximum(np.sqrt(np.mean(residuals[0] ** 2, axis=0)), 1e-9)
        out = np.zeros(scored.shape)
        for place, column in zip(of, far.T, strict=True):
            out[:, place] = np.maximum(out[:, place], column)
        return out

    def _fit(self, columns: np.ndarray, seed: int, budget: Budget) -> None:
        """Fit the laws of columns that have none yet."""
        missing = [int(j) for j in columns if str(j) not in self.laws]
        if not missing:
            return
        scored, orders = in_scores(self.rows, list(self.maps)), self._orders(missing)

        def fit_one(j: int) -> BinnedLaw:
            known, bins = ~np.isnan(self.rows[:, j]), self.bins[j]
            assert bins is not None
            share = min(max(1.0 / 3.0, _COLUMNS / max(len(orders[j]) - 1, 1)), 1.0)
            growth = replace(OF_BINS, trees=_TREES, columns=share, seed=seed)
            return BinnedLaw.fit(bins, scored[known], j, self.n_numeric, orders[j], growth)

        for j, law in zip(missing, budget.map("laws of columns", fit_one, missing), strict=True):
            self.laws[str(j)] = law

    def _orders(self, columns: list[int]) -> dict[int, np.ndarray]:
        """Return the columns that tell each of some: all, or in a wide table those that go with it most."""
        if len(self.order) <= _ALL:
            return dict.fromkeys(columns, self.order)
        inputs, of = self._lines()
        A = inputs.of_lines(in_scores(self.rows, list(self.maps)))
        spread = A.std(axis=0)
        Z = (A - A.mean(axis=0)) / np.where(spread > 0.0, spread, np.inf)
        found = {}
        for j in columns:
            strength, each = np.zeros(len(self.bins)), np.abs(Z[:, of == j].T @ Z).max(axis=0, initial=0.0)
            np.maximum.at(strength, of, each)
            strength[j] = np.inf
            chosen = np.argsort(-strength[self.order], kind="stable")[: _OTHERS + 1]
            found[j] = self.order[np.sort(chosen)]
        return found

    def _put(self, found: CellJudgement, j: int, asked: np.ndarray, scored: np.ndarray, own: np.ndarray) -> None:
        """Write the answers for a column at some rows."""
        law, known = self.laws[str(j)], ~np.isnan(self.rows[:, j])
        seen = own[asked] >= 0
        if seen.any():
            places = asked[seen]
            rank = np.cumsum(known) - 1  # among the rows that the law was fitted to
            found.put(places, j, law, law.of_fit(rank[own[places]]), scored[places, j])
        if (~seen).any():
            places = asked[~seen]
            found.put(places, j, law, law.at(scored[places]), scored[places, j])
