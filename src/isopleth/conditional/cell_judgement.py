"""Answers about the cells of rows by the masses of their laws: how much each surprises, and what would be usual there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from isopleth.conditional.binned_law import NumberBins, WordBins
from isopleth.core.interval_cells import IntervalCells

# Quantiles of the law of a number: the ends of what is usual, and the median between them.
LEVELS = (0.05, 0.5, 0.95)


class LawOfBins(Protocol):
    """Law whose masses of bins give densities of cells."""

    @property
    def bins(self) -> NumberBins | WordBins:
        """Bins of the column."""

    def densities(self, masses: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return the densities of known cells."""


@dataclass(frozen=True)
class CellJudgement:
    """Answers for the cells of rows; NaN in gaps of `excess` and in columns that are not judged.

    Of the rows of a large table the quantiles of one cell each are kept, that which is likely to be the worst.
    """

    excess: np.ndarray  # (n, d): surprisal less its expectation, in nats
    # (3, n, d), or (3, n) of one cell a row: quantiles of the law at LEVELS; of words three times the code of the likeliest one
    quantiles: np.ndarray
    columns: np.ndarray | None = None  # (n,): column of the one cell, -1 for none

    @classmethod
    def empty(cls, n: int, d: int) -> Self:
        """Return answers that are to be written."""
        return cls(np.full((n, d), np.nan), np.full((3, n, d), np.nan))

    @classmethod
    def of_many(cls, n: int, d: int, dtype: Any) -> Self:
        """Return answers for the rows of a large table that are to be written."""
        return cls(np.full((n, d), np.nan, dtype=dtype), np.full((3, n), np.nan), np.full(n, -1, dtype=np.int32))

    @property
    def low(self) -> np.ndarray:
        """Ends of what is usual."""
        return np.asarray(self.quantiles[0])

    @property
    def usual(self) -> np.ndarray:
        """Median of the law, or code of its likeliest word."""
        return np.asarray(self.quantiles[1])

    @property
    def high(self) -> np.ndarray:
        """Ends of what is usual."""
        return np.asarray(self.quantiles[2])

    def take(self, places: np.ndarray) -> CellJudgement:
        """Return the answers for some rows."""
        columns = None if self.columns is None else self.columns[places]
        return CellJudgement(self.excess[places], self.quantiles[:, places], columns)

    def as_first(self, place: np.ndarray) -> CellJudgement:
        """Return the answers for the rows at places; where these are the rows themselves but for some, those are copied."""
        if len(place) != len(self.excess):
            return self.take(place)
        again = np.flatnonzero(place != np.arange(len(place)))
        self.excess[again], self.quantiles[:, again] = self.excess[place[again]], self.quantiles[:, place[again]]
        if self.columns is not None:
            self.columns[again] = self.columns[place[again]]
        return self

    def copy_columns(self, places: np.ndarray, other: CellJudgement, columns: Sequence[int]) -> None:
        """Copy the answers for some columns from those of other rows, which are rows of these at places."""
        cells = places[:, None], np.asarray(columns)
        self.excess[cells] = other.excess[:, columns]
        if self.columns is None:
            self.quantiles[:, cells[0], cells[1]] = other.quantiles[:, :, columns]

    def keep_of(self, places: np.ndarray, columns: np.ndarray, other: CellJudgement) -> None:
        """Keep the quantiles of one cell of each of the rows at places, from those of all cells of these rows."""
        assert self.columns is not None
        self.columns[places] = columns
        self.quantiles[:, places] = other.quantiles[:, np.arange(len(places)), columns]

    def put(
        self,
        places: np.ndarray,
        j: int,
        law: LawOfBins,
        masses: np.ndarray,
        cells: np.ndarray,
        limits: IntervalCells | None = None,
    ) -> None:
        """Write the answers for a column at some rows by the masses of its bins; `cells` are scores or codes."""
        self.excess[places, j] = excess_of(law, j, masses, cells, limits)
        if self.columns is None:
            self.quantiles[:, places, j] = quantiles_of(law.bins, masses)

    def keep(self, places: np.ndarray, j: int, law: LawOfBins, masses: np.ndarray) -> None:
        """Write the quantiles of column j as those of the one cell of some rows."""
        assert self.columns is not None
        self.columns[places], self.quantiles[:, places] = j, quantiles_of(law.bins, masses)


def excess_of(
    law: LawOfBins, j: int, masses: np.ndarray, cells: np.ndarray, limits: IntervalCells | None = None
) -> np.ndarray:
    """Return how much the cells of column j surprise beyond the expectation, by the masses of the bins.

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
    return np.asarray(_expected_log(masses, law.bins.widths) - np.log(density))


def quantiles_of(bins: NumberBins | WordBins, masses: np.ndarray) -> np.ndarray:
    """Return the quantiles of laws at LEVELS, (3, k); of words three times the likeliest one."""
    if isinstance(bins, WordBins):
        return np.tile(masses.argmax(axis=1).astype(np.float64), (3, 1))
    below = np.cumsum(masses, axis=1, dtype=np.float64)
    at = [np.minimum(np.count_nonzero(below < level, axis=1), len(bins) - 1) for level in LEVELS]
    return np.asarray(bins.values[np.stack(at)])


def _expected_log(masses: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the expectation of the log density of a cell under its law, for each line of masses."""
    logs = np.log(np.maximum(masses, 1e-30 if masses.dtype == np.float32 else 1e-300))  # bins without mass count 0
    return np.asarray(np.einsum("ij,ij->i", masses, logs) - masses @ np.log(widths).astype(masses.dtype))
