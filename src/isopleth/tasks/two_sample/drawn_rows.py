"""Rows of large samples that a test is computed from: at most so many of both samples together, drawn by what they hold."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isopleth.core.interval_cells import IntervalCells
from isopleth.core.rows import distinct_rows
from isopleth.core.threads import interruptible
from isopleth.tables.checks import CheckedRows

# Most rows of both samples together. What the test computes is linear in them: some 40 CPU seconds for nine columns.
MOST_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class WholeSamples:
    """All rows of two samples of which a test uses some."""

    tables: tuple[
        np.ndarray, np.ndarray
    ]  # cells of all rows of each sample: numbers, then codes, NaN where one is missing
    weights: np.ndarray  # (m, 2): how often each distinct row occurs in each sample
    used: tuple[np.ndarray, np.ndarray]  # positions in each sample of the rows that the test uses


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows that a test uses, with the number of the group of each if there are groups."""

    x: CheckedRows
    y: CheckedRows
    groups: tuple[np.ndarray, np.ndarray] | None
    every: WholeSamples | None  # the rows that they were drawn from; None if all are used

    @classmethod
    def of(
        cls, x: CheckedRows, y: CheckedRows, groups: tuple[np.ndarray, np.ndarray] | None, seed: int, most: int
    ) -> Self:
        """Draw at most `most` rows without replacement, so that samples from one distribution stay exchangeable.

        Rows are drawn from their order by what they hold, so that the order in which they are given has no effect. With groups,
        as many rows of each group are drawn, fewer where it has not so many: as before, only lengths tell groups apart.
        """
        samples = x, y
        if len(x.rows) + len(y.rows) <= most:
            return cls(x, y, groups, None)
        places, weights = _distinct(x.rows, y.rows)
        counts = _shares_of(len(x.rows), len(y.rows), most)
        longest = None if groups is None else _longest(groups, most)
        chosen = []
        for sample, turn in enumerate(_turns(weights)):
            rng = np.random.default_rng([seed, 10, turn])
            if groups is None or longest is None:
                order = np.argsort(places[sample], kind="stable")
                chosen.append(order[np.sort(rng.permutation(len(order))[: counts[sample]])])
            else:
                chosen.append(_of_groups(groups[sample], places[sample], longest, rng))
        first, second = (_taken(each, rows) for each, rows in zip(samples, chosen, strict=True))
        if groups is not None:
            groups = groups[0][chosen[0]], groups[1][chosen[1]]
        return cls(first, second, groups, WholeSamples((x.rows, y.rows), weights, (chosen[0], chosen[1])))


def _distinct(x: np.ndarray, y: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the index of each row of both samples among the distinct ones, and how often each of these occurs in each."""
    cells = np.vstack([x, y])
    gaps = np.isnan(cells)
    cells = np.hstack([np.where(gaps, 0.0, cells), gaps[:, gaps.any(axis=0)]])
    rows, _, place = interruptible(100.0 * cells.size, distinct_rows, cells, np.ones(len(cells)))
    places = place[: len(x)], place[len(x) :]
    return places, np.stack([np.bincount(each, minlength=len(rows)) for each in places], axis=1).astype(np.float64)


def _shares_of(n: int, m: int, most: int) -> tuple[int, int]:
    """Return how many rows of each sample are drawn: half of them from each, or all of a small one and more of the other."""
    half = most // 2
    return min(n, max(half, most - m)), min(m, max(half, most - n))


def _turns(weights: np.ndarray) -> tuple[int, int]:
    """Return which random numbers each sample gets, such that it does not matter which of them is called X."""
    differ = weights[:, 0] != weights[:, 1]
    i = int(np.argmax(differ))
    return (0, 1) if weights[i, 0] >= weights[i, 1] else (1, 0)


def _longest(groups: tuple[np.ndarray, np.ndarray], most: int) -> int:
    """Return the most rows of a group with which all groups have at most `most` rows together; at least 1."""
    lengths = np.concatenate([np.bincount(np.unique(each, return_inverse=True)[1].ravel()) for each in groups])
    return max(1, bisect_right(range(1, int(lengths.max()) + 1), most, key=lambda k: np.minimum(lengths, k).sum()))


def _of_groups(groups: np.ndarray, places: np.ndarray, longest: int, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of at most `longest` rows of each group, drawn at random from their order by what they hold."""
    order = np.lexsort([places, groups])
    order = order[np.lexsort([rng.random(len(order)), groups[order]])]
    ordered = groups[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    within = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    kept = order[within < longest]
    return np.asarray(kept[np.lexsort([places[kept], groups[kept]])])


def _taken(sample: CheckedRows, rows: np.ndarray) -> CheckedRows:
    """Return some rows of a sample. What is known of cells that are NaN has been used where values were merged."""
    return replace(sample, rows=sample.rows[rows], weights=sample.weights[rows], limits=IntervalCells.none(len(rows)))
