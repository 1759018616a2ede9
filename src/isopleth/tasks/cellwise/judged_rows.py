"""Rows by which the laws of a table are fitted and judged: equal ones once, and of many a sample that no order changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.conditional.column_laws import RowsOfLaws
from isopleth.conditional.inputs import Sample
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.rows import grid_keys, row_draws, sample_places
from isopleth.core.threads import slices

# Rows from which on they are not sorted by all their columns, which takes several times their memory.
MANY_ROWS = 20_000
# Rows that are compared at once.
_COMPARED = 2**16


@dataclass(frozen=True)
class JudgedRows:
    """Rows of the laws of a table, and where in them the rows of the table are."""

    of_laws: RowsOfLaws
    counted: np.ndarray  # places of the rows that count for bounds: of equal ones as many as chance explains
    place: np.ndarray  # (n,): of the row that each row of the table is judged as
    known: np.ndarray  # (n,): mask of the rows of the table that the laws are fitted to
    repeats: dict[int, int]  # rows of the table that repeat an earlier one without chance, and that one

    @classmethod
    def of(cls, rows: np.ndarray, limits: IntervalCells, most: int) -> Self:
        """Choose at most `most` rows for the fit of laws."""
        return (cls._of_few if len(rows) <= MANY_ROWS else cls._of_many)(rows, limits, most)

    @classmethod
    def _of_few(cls, rows: np.ndarray, limits: IntervalCells, most: int) -> Self:
        """Sort the rows by all their columns, and draw by the places of the distinct ones."""
        sample = Sample.of(rows, np.zeros(len(rows)), np.ones(len(rows)))
        independent = sample.independent
        fitted = np.sort(sample_places(len(independent), most))
        every = np.arange(len(independent))
        first = np.unique(sample.place, return_index=True)[1]
        given = RowsOfLaws(
            sample.rows[independent],
            fitted,
            np.setdiff1d(every, fitted),
            sample.order,
            limits.take(first[independent]),
        )
        known = np.isin(sample.place, independent[fitted])
        return cls(given, every, np.searchsorted(independent, sample.place), known, sample.repeats())

    @classmethod
    def _of_many(cls, rows: np.ndarray, limits: IntervalCells, most: int) -> Self:
        """Find equal rows by their keys, and draw by numbers that follow from the content of the rows."""
        first = first_equal(rows)
        again = np.flatnonzero(first != np.arange(len(rows)))
        independent = np.ones(len(rows), dtype=bool)
        independent[again] = _by_chance(rows, first, again)
        counted = np.flatnonzero(independent)
        draws = row_draws(rows)[counted]
        chosen = np.argpartition(draws, most)[:most] if len(counted) > most else np.arange(len(counted))
        fitted = counted[chosen[np.argsort(draws[chosen], kind="stable")]]
        order = Sample.of(rows[fitted], np.zeros(len(fitted)), np.ones(len(fitted))).order
        alone = np.ones(len(rows), dtype=bool)
        alone[again] = alone[fitted] = False
        known = np.zeros(len(rows), dtype=bool)
        known[first[fitted]] = True
        repeats = np.flatnonzero(~independent)
        return cls(
            RowsOfLaws(rows, fitted, np.flatnonzero(alone), order, limits),
            counted,
            first,
            known[first],
            dict(zip(repeats.tolist(), first[repeats].tolist(), strict=True)),
        )


def first_equal(rows: np.ndarray) -> np.ndarray:
    """Return for each row the first one that is equal to it up to rounding, with equal gaps."""
    keys = grid_keys(rows)
    order = np.argsort(keys, kind="stable")
    starts = np.append(True, np.diff(keys[order]) != 0)
    first = np.empty(len(rows), dtype=np.intp)
    first[order] = order[starts][np.cumsum(starts) - 1]
    again = np.flatnonzero(first != np.arange(len(rows)))
    other = np.zeros(len(rows), dtype=bool)
    for part in slices(len(again), _COMPARED):
        one, two = rows[again[part]], rows[first[again[part]]]
        same = ((one == two) | (np.isnan(one) & np.isnan(two))).all(axis=1)
        other[first[again[part][~same]]] = True
    doubtful = np.flatnonzero(
        other[first]
    )  # of equal keys: permutations of one another, and numbers that differ a little
    if len(doubtful):
        place = Sample.of(rows[doubtful], np.zeros(len(doubtful)), np.ones(len(doubtful))).place
        first[doubtful] = doubtful[np.unique(place, return_index=True)[1]][place]
    return first


def _by_chance(rows: np.ndarray, first: np.ndarray, again: np.ndarray) -> np.ndarray:
    """Return which of the rows that equal an earlier one are rows of their own.

    Of equal rows as many are independent as would be equal if the columns were.
    """
    if not len(again):
        return np.zeros(0, dtype=bool)
    found, place = np.unique(first[again], return_inverse=True)
    log_share = np.full(len(found), np.log(len(rows)))
    for cells in rows.T:
        log_share += np.log(_counts(cells, cells[found]) / len(rows))
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(found)))
    number = np.empty(len(again), dtype=np.intp)
    number[order] = np.arange(len(again)) - starts[place[order]] + 1  # of equal rows before each
    return np.asarray(number < np.floor(np.maximum(np.exp(log_share), 1.0) + 1e-9)[place])


def _counts(cells: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return how often each of some cells occurs in a column."""
    values = np.unique(asked[~np.isnan(asked)])
    out = np.full(len(asked), max(int(np.isnan(cells).sum()), 1), dtype=np.float64)
    if len(values):
        at = np.minimum(np.searchsorted(values, cells), len(values) - 1)
        count = np.bincount(at[values[at] == cells], minlength=len(values))
        known = ~np.isnan(asked)
        out[known] = count[np.searchsorted(values, asked[known])]
    return out
