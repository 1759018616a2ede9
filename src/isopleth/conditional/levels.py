"""Laws of rows whose number in a column lies between the levels that all rows of the fit share.

A column of a designed experiment has few levels and many rows at each. A law that is judged by rows left out one at a time is
judged at the levels alone, where the other rows of the level know the answer: steps from level to level look as good as a line.
Here whole levels are left out, those at the ends aside, so that a line, a smooth function and steps are judged between levels.
Rows at a level are answered by the law of all rows, and rows close to one by a mixture of both laws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Generic, Self, TypeVar

import numpy as np

from isopleth.conditional.forest import Growth
from isopleth.conditional.inputs import NumberInput, Sample
from isopleth.conditional.number_law import BLEND, At, NumberLaw
from isopleth.conditional.trends import HeldGroups
from isopleth.core.rows import sample_places

# Fewest and most levels of a column, and fewest rows to each of them in the mean.
_LEAST, _MOST, _FEWEST = 3, 40, 3.0
# Fewest and most levels of a target, and fewest rows to each: counts have more levels, and few rows at those that are rare.
_LEAST_OF_TARGET, _MOST_OF_TARGET, _FEWEST_OF_TARGET = 4, 15, 5.0
# A trend places a row near its level within such a part of the distance to the next one. Of rows all over the stretch from one
# level to the next it places half there; more are needed to fit the law of a scale, and halfway from that to all to use it.
_NEAR, _TRIED, _PLACED = 0.25, 0.5, 0.75
# Probability on each side of an interval; weight of the levels where they are in it.
_OUTSIDE, _AT_LEVELS = 0.01, 0.5
# Part of the distance from one level to the next from which on a row is answered by the law between levels alone.
_AWAY = 0.25
# Most times that the laws are fitted without some levels, most rows that they are fitted to, and most that judge them.
_FOLDS, _ROWS, _JUDGED = 6, 2000, 400
# Trees of a forest.
_TREES = 60

T = TypeVar("T")


class FittedOnce(Generic[T]):
    """Laws that are fitted when one of the threads asks for them first; copies of a model take them along, without the lock."""

    def __init__(self, laws: dict[int, T]) -> None:
        self._lock, self._laws = Lock(), laws

    def get(self, k: int, fit: Callable[[], T]) -> T:
        """Return law k, fitted if no one has asked for it."""
        with self._lock:
            if k not in self._laws:
                self._laws[k] = fit()
            return self._laws[k]

    def __reduce__(self) -> tuple[type[Self], tuple[dict[int, T]]]:
        with self._lock:
            return type(self), (dict(self._laws),)


@dataclass(frozen=True)
class Levels:
    """Levels of a column of numbers."""

    place: int | None  # None for the target
    values: np.ndarray  # ascending

    @classmethod
    def of(cls, place: int | None, cells: np.ndarray, copies: np.ndarray) -> Self | None:
        """Return the levels of numbers, NaN where one is missing; None if there are too few or too many."""
        values = NumberInput.of(0, cells).values
        rows = float(copies[~np.isnan(cells)].sum())
        least, most, fewest = _LEAST, _MOST, _FEWEST
        if place is None:
            least, most, fewest = _LEAST_OF_TARGET, _MOST_OF_TARGET, _FEWEST_OF_TARGET
        return cls(place, values) if least <= len(values) <= min(most, rows / fewest) else None

    def leave_out(self, step: float) -> bool:
        """Tell whether some multiples of a step between the levels are none."""
        return step == 0.0 or len(self.values) < float(np.ptp(self.values)) / step + 0.5

    def are_placed(self, law: NumberLaw, target: np.ndarray, copies: np.ndarray, least: float) -> bool:
        """Tell whether the trend of a law places a share of the rows of a level near it, in the mean over levels."""
        steps = np.diff(self.values)
        nearest = np.minimum(np.append(steps, np.inf), np.append(np.inf, steps))
        rank = np.rint(np.interp(target, self.values, np.arange(len(self.values)))).astype(np.intp)
        apart = np.abs(law.unscale(BLEND, law.loo_trends[BLEND]) - target)
        near = np.bincount(rank, copies * (apart < _NEAR * nearest[rank])) / np.bincount(rank, copies)
        return float(near.mean()) >= least

    def shares(self, cells: np.ndarray) -> np.ndarray:
        """Return the weight of the law between levels: 0 at a level and where a number is missing, 1 well away from levels.

        It is linear in the distance to the nearest level, so that answers do not jump beside one.
        """
        rank = NumberInput(0, self.values, False).of_trees(cells)[0]
        return np.nan_to_num(np.minimum(np.abs(rank - np.rint(rank)) / _AWAY, 1.0))

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
        kept = sample.take(sample_places(len(sample.target), _ROWS))
        found = []
        for j in range(n_numeric):
            levels = Levels.of(j, sample.rows[:, j], sample.copies)
            if levels is not None and Levels.of(j, kept.rows[:, j], kept.copies) is not None:
                found.append(levels)
        if not found:
            return None
        rank = np.argsort(sample.order)  # decides between columns of as many levels, whatever their order in the table
        found.sort(key=lambda levels: (len(levels.values), rank[levels.place]))
        return cls(kept, n_numeric, step, (min(growth.trees, _TREES), growth.seed, 1 + residual_forest), tuple(found))

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """Return the share of each column's law in its mixture with the laws of the columns after it, (n, columns).

        The last column is mixed with the law of all rows. Together the laws between levels have the weight of the column whose
        levels are the farthest away; of that, a column has what the ones before it leave.
        """
        alone = np.stack([levels.shares(rows[:, levels.place]) for levels in self.columns], axis=1)
        total = np.maximum.accumulate(alone, axis=1)
        before = np.pad(total[:, :-1], ((0, 0), (1, 0)))
        return np.asarray((total - before) / np.where(before < 1.0, 1.0 - before, 1.0))

    def law(self, k: int) -> NumberLaw:
        """Return the law of rows between the levels of a column."""
        return self._fitted.get(k, lambda: self._fit(self.columns[k]))

    def _fit(self, levels: Levels) -> NumberLaw:
        cells = self.sample.rows[:, levels.place]
        held = replace(levels, values=NumberInput.of(0, cells).values).held(
            cells
        )  # of many rows some levels may be lost
        trees, seed, forests = self.growth
        return NumberLaw.fit(
            self.sample, self.n_numeric, self.step, Growth(trees, seed=seed), residual_forest=forests == 2, held=held
        )

    @cached_property
    def _fitted(self) -> FittedOnce[NumberLaw]:
        return FittedOnce({})


@dataclass(frozen=True)
class TargetLevels:
    """Law of a target that has few levels and is a scale nevertheless, such as the concentrations of standards.

    Trends that do not know a level place its rows near it, and nothing is between the levels: so a new row may be anywhere on the
    scale. Ratings and months are not of the kind, because trends place their rows all over the stretch from one to the next.
    """

    sample: Sample
    n_numeric: int
    growth: tuple[int, int, int]  # trees, seed and forests
    levels: Levels

    @classmethod
    def of(cls, sample: Sample, n_numeric: int, law: NumberLaw, growth: Growth, residual_forest: bool) -> Self | None:
        """Return the law if trends that do not know a row place it near its level."""
        if (sample.target != sample.upper).any():
            return None
        levels = Levels.of(None, sample.target, sample.copies)
        if levels is None or not levels.are_placed(law, sample.target, sample.copies, _TRIED):
            return None
        kept = sample.take(sample_places(len(sample.target), _ROWS))
        some = Levels.of(None, kept.target, kept.copies)
        return (
            None
            if some is None
            else cls(kept, n_numeric, (min(growth.trees, _TREES), growth.seed, 1 + residual_forest), some)
        )

    def law(self) -> NumberLaw | None:
        """Return the law of rows anywhere on the scale; None if trends that do not know a level do not place its rows."""
        return self._fitted.get(0, self._fit)

    def _fit(self) -> NumberLaw | None:
        trees, seed, forests = self.growth
        growth, held = Growth(trees, seed=seed), self.levels.held(self.sample.target)
        law = NumberLaw.fit(self.sample, self.n_numeric, 0.0, growth, residual_forest=forests == 2, held=held)
        placed = self.levels.are_placed(law, self.sample.target, self.sample.copies, _PLACED)
        return law if placed else None

    def share(self, law: NumberLaw, at: At) -> np.ndarray:
        """Return the weight of the levels in rows, a half where one of them is within reach: a row may be at it or beside it."""
        F = np.stack(
            [law.cells(at, level, level)[0] for level in np.tile(self.levels.values[:, None], (1, at.n))], axis=1
        )
        return np.where(((F > _OUTSIDE) & (F < 1.0 - _OUTSIDE)).any(axis=1), _AT_LEVELS, 0.0)

    @cached_property
    def _fitted(self) -> FittedOnce[NumberLaw | None]:
        return FittedOnce({})
