"""Ranks of cells given several numbers and words of their rows, such as a temperature, a load and a region.

Kernels in each of several numbers would leave no rows. So what they say of a column is one number, its expected value by a
regression on the numbers, their bends and products, and on indicators of the words, beside the clock and the kinds of rows. What
the regression leaves is ranked among rows of about the same expected value, time of day and kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.context.ranks import ContextRanks, RowContexts, column_units
from isopleth.core.rows import mixed, row_keys

# Waves of a day beside which numbers are regressors: what follows the clock is no effect of the numbers that follow it, too.
_WAVES = 4
# Quantiles of a number at which its line may bend, and half the range of products of numbers, in deviations.
_BENDS, _LARGEST = (0.1, 0.3, 0.5, 0.7, 0.9), 3.0
# Cells so many quartile distances beyond the quartiles are moved to there before the regression: an incident has no part in it.
_REACH = 3.0
# Parts of consecutive days that are left out in turn, and the ridge in rows.
_PARTS, _RIDGE = 5, 1.0
# Expected values are multiples of this share of a quartile distance, so that rounding errors change no rank.
_STEP = 2.0**-20


@dataclass(frozen=True, eq=False)
class ContextIndex:
    """Expected values of columns given the numbers and words of a row, less what the clock and the kinds of rows say."""

    bends: np.ndarray  # (b, m): quantiles of each number
    centre: np.ndarray  # (m,)
    unit: np.ndarray  # (m,)
    words: tuple[np.ndarray, ...]  # known values of each column of words, which come after the numbers
    slopes: np.ndarray  # (p, d)
    step: np.ndarray  # (d,)

    @classmethod
    def of(cls, given: np.ndarray, words: tuple[np.ndarray, ...], rows: np.ndarray, beside: np.ndarray) -> Self:
        """Regress columns of `rows` (n, d) on what is `given` (n, m) `beside` regressors of the clock and the kinds (n, q)."""
        numbers = given[:, : given.shape[1] - len(words)]
        unit = numbers.std(axis=0)
        about = np.quantile(numbers, _BENDS, axis=0), numbers.mean(axis=0), np.where(unit > 0.0, unit, 1.0), words
        x = cls(*about, np.empty((0, 0)), np.empty(0))._regressors(given)
        scale = x.std(axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        every = np.hstack([x / scale, beside])
        every -= every.mean(axis=0)
        low, high = np.nanquantile(rows, (0.25, 0.75), axis=0)
        slopes = np.zeros((x.shape[1], rows.shape[1]))
        for j, column in enumerate(rows.T):
            known, reach = ~np.isnan(column), _REACH * (high[j] - low[j])
            y = np.clip(column, low[j] - reach, high[j] + reach) if reach > 0.0 else column
            a, y = every[known], y[known] - y[known].mean()
            slopes[:, j] = np.linalg.solve(a.T @ a + _RIDGE * np.eye(a.shape[1]), a.T @ y)[: x.shape[1]] / scale
        step = _STEP * column_units(rows, low, high)
        return cls(*about, slopes, step)

    def _regressors(self, given: np.ndarray) -> np.ndarray:
        """Return numbers, their excesses over the bends, products of two of them, and indicators of words."""
        count = len(self.unit)
        numbers = given[:, :count]
        over = [np.maximum(numbers - bend, 0.0) / self.unit for bend in self.bends]
        z = (numbers - self.centre) / self.unit
        cut, (one, other) = np.clip(z, -_LARGEST, _LARGEST), np.triu_indices(count, 1)
        levels = zip(given[:, count:].T, self.words, strict=True)
        indicators = [(column[:, None] == values[:-1]).astype(np.float64) for column, values in levels]
        return np.hstack([z, *over, cut[:, one] * cut[:, other], *indicators])

    def __call__(self, given: np.ndarray) -> np.ndarray:
        """Return the expected values of columns (n, d), with the same bits whatever rows come with a row."""
        expected = np.matmul(self._regressors(given)[:, None, :], self.slopes)[:, 0]
        return np.asarray(np.rint(expected / self.step) * self.step)


@dataclass(frozen=True, eq=False)
class IndexedRanks:
    """Ranks of what regressions leave of each column, given its expected value, the clock and the kinds of rows."""

    index: ContextIndex
    expected: np.ndarray  # (n, d): of the rows of the reference whose contexts are known, by regressions on other days
    known: np.ndarray  # (n, d): the same in order
    ranks: tuple[ContextRanks, ...]  # of each column

    @classmethod
    def of(
        cls, rows: np.ndarray, contexts: RowContexts, words: tuple[np.ndarray, ...], kinds: int, *, clock: bool
    ) -> Self:
        """Learn from a reference; its expected values are by regressions on other days, as those of new rows are."""
        assert contexts.given is not None
        given, beside = contexts.given, _beside(contexts, kinds, clock=clock)
        days, day = np.unique(contexts.day, return_inverse=True)
        part, expected = day.ravel() * _PARTS // len(days), np.empty(rows.shape)
        for k in np.unique(part):
            some = part != k
            expected[~some] = ContextIndex.of(given[some], words, rows[some], beside[some])(given[~some])
        known = np.sort(expected, axis=0)
        ranks = tuple(
            ContextRanks.of(
                (rows - expected)[:, [j]], contexts.ranked(_ranks(known[:, j], expected[:, j])), kinds, clock=clock
            )
            for j in range(rows.shape[1])
        )
        return cls(ContextIndex.of(given, words, rows, beside), expected, known, ranks)

    def of_reference(self, rows: np.ndarray, contexts: RowContexts, usable: np.ndarray) -> np.ndarray:
        """Return the scores of the reference of the fit among other days; those of rows that are not `usable` are 0."""
        out = np.zeros(rows.shape)
        out[usable] = self._judged(rows[usable], contexts.take(usable), self.expected, own_day=True)[0]
        return out

    def judge(
        self, rows: np.ndarray, contexts: RowContexts, *, means: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return normal scores and what is usual, as :meth:`ContextRanks.judge` does."""
        assert contexts.given is not None
        known = contexts.kind >= 0
        expected = self.index(np.where(known[:, None], contexts.given, 0.0))
        return self._judged(rows, contexts, expected, means=means)

    def _judged(
        self,
        rows: np.ndarray,
        contexts: RowContexts,
        expected: np.ndarray,
        *,
        own_day: bool = False,
        means: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        keys, judged = row_keys(rows), []
        for j, ranks in enumerate(self.ranks):
            own = contexts.ranked(_ranks(self.known[:, j], expected[:, j]))
            about = {"means": None if means is None else means[[j]], "keys": mixed(keys, j)}
            judged.append(ranks.judge((rows - expected)[:, [j]], own, own_day=own_day, **about))
        return np.hstack([scores for scores, _ in judged]), np.hstack([usual for _, usual in judged]) + expected


def regressors(numbers: int, words: tuple[np.ndarray, ...]) -> int:
    """Return how many regressors so many numbers, and words of these values, make."""
    return numbers * (1 + len(_BENDS)) + numbers * (numbers - 1) // 2 + sum(len(values) - 1 for values in words)


def _ranks(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the ranks of values from 0 to 1 among the known ones."""
    below, up_to = (np.searchsorted(known, values, side) for side in ("left", "right"))
    return np.asarray((below + up_to) / (2.0 * len(known)))


def _beside(contexts: RowContexts, kinds: int, *, clock: bool) -> np.ndarray:
    """Return waves of the day and indicators of the kinds of rows."""
    angle = contexts.hour[:, None] * (np.pi / 12.0) * np.arange(1, _WAVES + 1)
    waves = [np.sin(angle), np.cos(angle)] * clock
    return np.hstack([*waves, contexts.kind[:, None] == np.arange(1, kinds)]).astype(np.float64)
