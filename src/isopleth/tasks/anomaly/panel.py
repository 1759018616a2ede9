"""Committees that have each not seen some of the training rows, and who judges which row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from isopleth.operators.threads import map_threads
from isopleth.rows import FOLDS, folds_of, row_keys
from isopleth.tasks.anomaly.committee import COMMON, COMMON_VALUE, Committee


class Limits(NamedTuple):
    """Bytes that scratch may take, and threads; those of the machine that asks, and so no part of a model."""

    memory: float
    threads: int


LEVEL_ROWS = 1000  # as many rows give the level of a committee


def folds_of_distinct(copies: np.ndarray, seed: int) -> np.ndarray:
    """Fold of each distinct row, so that few copies are held out together; COMMON_VALUE for rows that occur more often.

    The copies of a common value are observations of their own and are dealt over the folds: held out together, they would
    take from a committee what is most ordinary.
    """
    fold = np.full(len(copies), COMMON_VALUE)
    few = copies <= COMMON
    fold[few] = folds_of(int(few.sum()), seed)
    return fold


def committees_without_folds(
    rows: np.ndarray, copies: np.ndarray, fold: np.ndarray, members: int, max_samples: int, seed: int, threads: int
) -> list[Committee]:
    """One committee without each fold, and without a fold's share of the copies of common values; so many members in all."""
    count = int(max(fold.max() + 1, FOLDS if (fold == COMMON_VALUE).any() else 0))
    spare = rows.std(axis=0)
    kept = np.where(fold == COMMON_VALUE, copies * (1.0 - 1.0 / count), copies)

    def committee(k: int) -> Committee:
        size = members // count + (k < members % count)
        rng = np.random.default_rng([seed, k])
        outside = fold != k
        return Committee.of(rows[outside], kept[outside], spare, size, max_samples, rng)

    return map_threads(committee, range(count), threads)


@dataclass(frozen=True)
class Panel:
    """Committees of which number k has not seen the training rows of fold k.

    Parameters
    ----------
    committees : list of Committee
        Who judge.
    levels : array of shape (folds,)
        Log density of a median training row by each: committees differ a little in level.
    keys : array
        Of the training rows that are in a fold, ascending.
    key_folds : array
        The fold of each of them.
    """

    committees: list[Committee]
    levels: np.ndarray
    keys: np.ndarray
    key_folds: np.ndarray

    @classmethod
    def of(
        cls, committees: list[Committee], rows: np.ndarray, fold: np.ndarray, place: np.ndarray, limits: Limits
    ) -> Self:
        """Of committees, the distinct training rows, their folds, and the place among them of each row as it came."""
        inside = fold != COMMON_VALUE
        keys, key_folds = row_keys(rows[inside]), fold[inside]
        order = np.argsort(keys)
        even = cls(committees, np.zeros(len(committees)), keys[order], key_folds[order])
        # Each is counted from the median of the same rows, copies counted.
        typical = np.sort(place)[np.linspace(0, len(place) - 1, min(len(place), LEVEL_ROWS)).astype(int)]
        levels = np.median(even.scores(rows[typical], limits), axis=1)
        return cls(committees, levels, keys[order], key_folds[order])

    def _ask(self, question: Callable[[int], np.ndarray], limits: Limits) -> np.ndarray:
        """Answers of all committees to a question about their number, stacked."""
        return np.stack(map_threads(question, range(len(self.committees)), limits.threads))

    def _score_by(self, k: int, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Scores by committee `k`, within its share of the memory."""
        at_once = min(limits.threads, len(self.committees))
        return self.committees[k].score(rows, limits.memory / at_once) - self.levels[k]

    def scores(self, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Scores of every row by every committee, of shape (folds, n)."""
        return self._ask(lambda k: self._score_by(k, rows, limits), limits)

    def held_out_scores(self, rows: np.ndarray, fold: np.ndarray, limits: Limits) -> np.ndarray:
        """Scores of the distinct training rows by the committees that have not seen them, of shape (folds, n); NaN by others."""

        def score(k: int) -> np.ndarray:
            judged = (fold == k) | (fold == COMMON_VALUE)
            out = np.full(len(rows), np.nan)
            out[judged] = self._score_by(k, rows[judged], limits)
            return out

        return self._ask(score, limits)

    def judge_of(self, rows: np.ndarray) -> np.ndarray:
        """Which committee has not seen each row; COMMON_VALUE where that is all of them, or none."""
        keys = row_keys(rows)
        judge = np.full(len(rows), COMMON_VALUE)
        seen = np.isin(keys, self.keys)
        judge[seen] = self.key_folds[np.searchsorted(self.keys, keys[seen])]
        return judge

    def score(self, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Scores of rows, each by the committees that have not seen it."""
        scores = self.scores(rows, limits)
        judge = self.judge_of(rows)
        seen = np.flatnonzero(judge != COMMON_VALUE)
        out = scores.mean(axis=0)
        out[seen] = scores[judge[seen], seen]
        return out
