"""Laws of rows whose number in a column lies between the levels that all rows of the fit share.

A column of a designed experiment has few levels and many rows at each. A law that is judged by rows left out one at a time is
judged at the levels alone, where the other rows of the level know the answer: steps from level to level look as good as a line.
Here whole levels are left out, those at the ends aside, so that a line, a smooth function and steps are judged between levels.
Rows at a level are answered by the law of all rows, as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Self

import numpy as np

from isopleth.conditional.forest import Growth
from isopleth.conditional.inputs import NumberInput, Sample
from isopleth.conditional.number_law import NumberLaw
from isopleth.conditional.trends import HeldGroups
from isopleth.core.rows import sample_places

# Most levels of a column, and fewest rows to each of them in the mean.
_MOST, _FEWEST = 40, 3.0
# Most times that the laws are fitted without some levels, most rows that they are fitted to, and most that judge them.
_FOLDS, _ROWS, _JUDGED = 6, 2000, 400
# Trees of a forest.
_TREES = 60


@dataclass(frozen=True)
class Levels:
    """Levels of a column of numbers."""

    place: int
    values: np.ndarray  # ascending

    def between(self, cells: np.ndarray) -> np.ndarray:
        """Tell which numbers are between two levels, and no level but for rounding."""
        rank = NumberInput(self.place, self.values, False).of_trees(cells)[0]
        return np.asarray(rank != np.rint(rank)) & ~np.isnan(rank)

    def held(self, cells: np.ndarray) -> HeldGroups:
        """Return the rows by levels; neighbouring levels are in unlike folds, and those at the ends in none.

        What lies beside an end is as uncertain as what lies beside the next level, whose rows stand for those of the end.
        """
        last = len(self.values) - 1
        gaps = np.isnan(cells)
        rank = np.rint(np.interp(np.nan_to_num(cells), self.values, np.arange(last + 1.0)))
        known = ~gaps & (rank > 0) & (rank < last)
        fold = np.where(known, (rank - 1) % min(last - 1, _FOLDS), -1).astype(np.intp)
        inner, like = np.flatnonzero(known), np.arange(len(cells))
        for end, next_ in ((0, 1), (last, last - 1)):
            there = np.flatnonzero(~gaps & (rank == end))
            like[there] = np.resize(np.flatnonzero(known & (rank == next_)), len(there))
        like[gaps] = np.resize(inner, int(gaps.sum()))
        part = np.ones(len(cells))
        for level in range(last + 1):
            there = np.flatnonzero(~gaps & (rank == level))
            part[there] = (np.arange(len(there)) + 0.5) / len(there)
        return HeldGroups(self.place, self.values, fold, like, part, inner[sample_places(len(inner), _JUDGED)])


@dataclass(frozen=True)
class LevelLaws:
    """Laws of rows between levels, each fitted when a row asks for it."""

    sample: Sample
    n_numeric: int
    step: float
    growth: tuple[int, int, int]  # trees, seed and forests
    columns: tuple[Levels, ...]  # that with the fewest levels first

    @classmethod
    def of(cls, sample: Sample, n_numeric: int, step: float, growth: Growth, residual_forest: bool) -> Self | None:
        """Find the columns of numbers with few levels; None if there is none."""
        found = []
        for j in range(n_numeric):
            cells = sample.rows[:, j]
            values = NumberInput.of(j, cells).values
            rows = float(sample.copies[~np.isnan(cells)].sum())
            if 3 <= len(values) <= min(_MOST, rows / _FEWEST):
                found.append(Levels(j, values))
        if not found:
            return None
        found.sort(key=lambda levels: len(levels.values))
        kept = sample.take(sample_places(len(sample.target), _ROWS))
        return cls(kept, n_numeric, step, (min(growth.trees, _TREES), growth.seed, 1 + residual_forest), tuple(found))

    def asked(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of the first column between whose levels each row is; -1 for rows that are at levels."""
        out = np.full(len(rows), -1)
        for k in range(len(self.columns) - 1, -1, -1):
            out[self.columns[k].between(rows[:, self.columns[k].place])] = k
        return out

    def law(self, k: int) -> NumberLaw:
        """Return the law of rows between the levels of a column."""
        lock, laws = self._fitted
        with lock:
            if k not in laws:
                laws[k] = self._fit(self.columns[k])
            return laws[k]

    def _fit(self, levels: Levels) -> NumberLaw:
        held = levels.held(self.sample.rows[:, levels.place])
        trees, seed, forests = self.growth
        return NumberLaw.fit(
            self.sample, self.n_numeric, self.step, Growth(trees, seed=seed), residual_forest=forests == 2, held=held
        )

    @cached_property
    def _fitted(self) -> tuple[Lock, dict[int, NumberLaw]]:
        return Lock(), {}
