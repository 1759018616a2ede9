"""Rows of tables with words and missing cells as complete numbers, for tests and monitors that compare rows.

Each row is encoded by itself, by rules that are made from all rows together. So rows that are exchangeable remain
exchangeable, and a permutation test of encoded rows is as exact as one of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from isopleth.core.errors import InputError, listed
from isopleth.tables.checks import CheckedRows, in_quotes, used_names, varying_columns
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema

# Words of a column that have a coordinate of their own: the most frequent ones that occur at least so often.
MOST_WORDS, _FEWEST_ROWS = 100, 2
# A word is this rare at most for the distance of two unlike words: rarer words are no farther from the others.
_LEAST_VARIANCE = 0.1
_MOST_KNOWN = 1001
# Ranges of a column by which a missing cell is away from all others, if no cell was missing before: no kernel reaches so far.
_FAR = 1000.0


@dataclass(frozen=True, eq=False)
class CellEncoding:
    """Encoding of one column: independent words are 2 squared units apart on average, as numbers of deviation 1."""

    name: str
    kind: str  # "numeric", "time" or "categorical"
    place: int  # place in the rows of CheckedRows
    # Known cells in order, or some at equal steps, from which missing cells that are not compared can be drawn.
    known: np.ndarray = field(default_factory=lambda: np.empty(0), kw_only=True)
    gap: float = 0.0  # value of the indicator of a missing number; 0 without such a coordinate


@dataclass(frozen=True, eq=False)
class NumberEncoding(CellEncoding):
    """Encoding of a column of numbers or times: the number, and an indicator of a missing one where some are missing."""

    center: float = 0.0  # median, in place of a missing number
    absent: float = 0.0  # what a missing number becomes if none was missing among the rows that chose

    @classmethod
    def of(cls, name: str, kind: str, place: int, cells: np.ndarray, compared: bool, far: bool) -> Self:
        """Choose the encoding of numbers, some of which may be missing."""
        known = cells[~np.isnan(cells)]
        if not len(known):
            return cls(name, kind, place)
        center = float(np.median(known))
        span = float(known.max() / 2.0 - known.min() / 2.0) or abs(center) or 1.0
        share = 1.0 - len(known) / len(cells)
        gap = _unit(np.array([share, 1.0 - share])) if compared and share else 0.0
        absent = center + far * _FAR * span
        # An indicator has one coordinate, and two categories have two.
        return cls(name, kind, place, float(np.sqrt(2.0)) * gap, center, absent, known=_steps(known, compared))

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return 1 + (self.gap > 0.0)

    @property
    def scaled(self) -> np.ndarray:
        """Mask of the coordinates whose scale is 1: the indicator."""
        return np.arange(self.width) > 0

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return the coordinates, (n, width), of cells of shape (n,), NaN where one is missing."""
        missing = np.isnan(cells)
        filled = np.where(missing, self.center if self.gap else self.absent, cells)
        return np.column_stack([filled, np.where(missing, self.gap, 0.0)][: self.width])


@dataclass(frozen=True, eq=False)
class WordEncoding(CellEncoding):
    """Encoding of a column of words: a coordinate for each frequent word, one for all others and one for missing cells.

    Where some words occur once, others do not occur at all, and they are no farther from the rest than rare ones.
    """

    # Categories with coordinates of their own. Others share one more, and missing cells, if compared, have the last.
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    # Categories without one among those seen by the rows that chose, if unseen ones have one more.
    rare: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    unit: float = 1.0  # value of the coordinate of a category
    other: float = 1.0  # that of other words
    lost: float = 1.0  # that of missing cells; both are larger than `unit` if there were none
    # Coordinates of a missing category that is not compared, the mean of all known ones; empty if it is compared.
    shares: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, name: str, place: int, codes: np.ndarray, unseen: int, compared: bool, far: bool) -> Self:
        """Choose the encoding of categories, NaN where a cell is missing; `unseen` is the code of words that are not known."""
        known = codes[~np.isnan(codes)].astype(np.intp)
        counts = np.bincount(known, minlength=unseen + 1).astype(np.float64)
        ranked = np.argsort(-counts[:unseen], kind="stable")[:MOST_WORDS]
        kept = np.sort(ranked[counts[ranked] >= _FEWEST_ROWS])
        rare = np.setdiff1d(np.flatnonzero(counts), kept) if far else kept[:0]
        weights = np.concatenate([counts[kept], [counts.sum() - counts[kept].sum()], np.zeros(min(len(rare), 1))])
        if compared:
            weights = np.append(weights, len(codes) - len(known))
        shares = weights / max(weights.sum(), 1.0)
        unit = _unit(shares)
        other, lost = (unit * _FAR if far and not count else unit for count in (weights[len(kept)], weights[-1]))
        mean = np.empty(0) if compared else unit * shares
        return cls(name, "categorical", place, 0.0, kept, rare, unit, other, lost, mean, known=_steps(known, compared))

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.shares) or len(self.codes) + 2 + min(len(self.rare), 1)

    @property
    def scaled(self) -> np.ndarray:
        """Mask of the coordinates whose scale is 1: all of them."""
        return np.ones(self.width, dtype=bool)

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return the coordinates, (n, width), of cells of shape (n,), NaN where one is missing."""
        missing = np.isnan(cells)
        place = self._places(np.where(missing, 0, cells).astype(np.intp))
        values = np.where(place == len(self.codes), self.other, self.unit)
        place[missing], values[missing] = self.width - 1, self.lost
        out = np.zeros((len(cells), self.width))
        out[np.arange(len(cells)), place] = values
        if len(self.shares):
            out[missing] = self.shares
        return out

    def _places(self, codes: np.ndarray) -> np.ndarray:
        """Return the coordinate of each category."""
        last = max(int(part.max(initial=0)) for part in (codes, self.codes, self.rare))
        places = np.full(last + 1, len(self.codes) + min(len(self.rare), 1))
        places[self.rare] = len(self.codes)
        places[self.codes] = np.arange(len(self.codes))
        return places[codes]


def _steps(known: np.ndarray, compared: bool) -> np.ndarray:
    """Return at most 1,001 of the known cells, from the smallest to the largest at equal steps; none if gaps are compared."""
    if compared or not len(known):
        return np.empty(0)
    steps = np.unique(np.linspace(0, len(known) - 1, min(len(known), _MOST_KNOWN)).round().astype(int))
    return np.sort(known)[steps]


def _unit(shares: np.ndarray) -> float:
    return float(1.0 / np.sqrt(max(float((shares * (1.0 - shares)).sum()), _LEAST_VARIANCE)))


@dataclass(frozen=True, eq=False)
class RowEncoding:
    """Encoding of rows as complete rows of numbers: words as corners of a simplex, gaps as medians with an indicator."""

    cells: tuple[NumberEncoding | WordEncoding, ...]  # one a column, in the order of the table
    columns: Schema | None  # kinds of the columns, where there are others than numbers
    compared: bool  # whether a missing cell differs from all others; otherwise it is at the centre of its column

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        names: list[str],
        columns: Schema | None = None,
        *,
        compared: bool = True,
        far: bool = True,
        words_from: np.ndarray | None = None,
    ) -> Self:
        """Choose the encoding by all rows, words by `words_from`; unseen words and gaps are far away if `far`."""
        kinds = columns.columns if columns is not None else tuple(Column(j, "numeric") for j in range(rows.shape[1]))
        order = columns.order if columns is not None else np.arange(rows.shape[1])
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        found: list[NumberEncoding | WordEncoding] = []
        chosen = slice(None) if words_from is None else words_from
        for name, column, j in zip(names, kinds, place.tolist(), strict=True):
            if column.kind == "categorical":
                found.append(WordEncoding.of(name, j, rows[chosen, j], len(column.levels), compared, far))
            else:
                found.append(NumberEncoding.of(name, column.kind, j, rows[:, j], compared, far and compared))
        return cls(tuple(found), columns, compared)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in the order of the table."""
        return [cell.name for cell in self.cells]

    @property
    def blocks(self) -> list[slice]:
        """Coordinates of each column."""
        ends = np.cumsum([cell.width for cell in self.cells]).tolist()
        return [slice(end - cell.width, end) for cell, end in zip(self.cells, ends, strict=True)]

    def name_at(self, place: int) -> str:
        """Return the column that a coordinate belongs to, as messages name it."""
        return in_quotes(next(c.name for c, block in zip(self.cells, self.blocks, strict=True) if place < block.stop))

    @property
    def scaled(self) -> np.ndarray:
        """Mask of the coordinates of words and indicators, whose scale is 1; the others have the units of their columns."""
        return np.concatenate([cell.scaled for cell in self.cells])

    @property
    def of_words(self) -> np.ndarray:
        """Mask of the coordinates of words."""
        return np.repeat([cell.kind == "categorical" for cell in self.cells], [cell.width for cell in self.cells])

    @property
    def kinds(self) -> tuple[Column, ...]:
        """The columns, in the order of the table."""
        return tuple(Column(name, "numeric") for name in self.names) if self.columns is None else self.columns.columns

    def in_order(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with their columns in the order of the table."""
        return rows[:, [cell.place for cell in self.cells]]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return complete rows of shape (n, coordinates)."""
        if not self.scaled.any() and not np.isnan(rows).any():
            return rows
        return np.column_stack([cell(rows[:, cell.place]) for cell in self.cells])

    def filled(self, rows: np.ndarray, seed: int, first: int = 0) -> np.ndarray:
        """Return rows with gaps that are not compared drawn from known cells, which leaves distributions as they are."""
        lacking = np.flatnonzero(np.isnan(rows).any(axis=1))
        if self.compared or not len(lacking):
            return rows
        out = rows.copy()
        for i in lacking:
            draws = np.random.default_rng([seed, first + int(i)]).random(len(self.cells))
            for cell, draw in zip(self.cells, draws, strict=True):
                if np.isnan(out[i, cell.place]) and len(cell.known):
                    out[i, cell.place] = cell.known[int(draw * len(cell.known))]
        return out

    def refuse_new_gaps(self, rows: np.ndarray) -> None:
        """Raise an InputError for missing numbers in columns that were complete at fit."""
        refuse_gaps(rows, [(c.name, c.place) for c in self.cells if c.kind != "categorical" and not c.gap])

    @property
    def is_plain(self) -> bool:
        """Tell whether all columns were complete numbers, so that rows are not changed."""
        return self.columns is None and not self.scaled.any()

    def varying(self, estimator: BaseEstimator, rows: np.ndarray) -> np.ndarray:
        """Return a mask of the coordinates of columns that vary in the encoded `rows`, and warn with the names of the others."""
        if self.is_plain:
            return varying_columns(estimator, rows)
        return varying_columns(estimator, rows, self.names, self.blocks)

    def varying_coordinates(self, estimator: BaseEstimator, rows: np.ndarray) -> np.ndarray:
        """Return :meth:`varying` without numbers that are constant beside gaps, whose indicator alone varies."""
        numbers = ~self.of_words & (rows.min(axis=0) == rows.max(axis=0))
        return self.varying(estimator, rows) & ~numbers

    def kept_columns(self, keep: np.ndarray) -> int:
        """Return how many columns have coordinates in the mask `keep`."""
        return sum(bool(keep[block].any()) for block in self.blocks)

    def spreads(self, rows: np.ndarray, spread: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return `spread` of the known cells of each numeric column of the unencoded `rows`, and 1 for words and indicators."""
        out = np.ones(len(self.scaled))
        for cell, block in zip(self.cells, self.blocks, strict=True):
            known = rows[~np.isnan(rows[:, cell.place]), cell.place]
            if cell.kind != "categorical" and len(known):
                found = float(spread(known[:, None])[0])
                out[block.start] = found if found > 0.0 else 1.0
        return out

    @classmethod
    def of_table(cls, estimator: BaseEstimator, table: CheckedRows, **how: Any) -> Self:
        """Choose the encoding of the rows that an estimator is fitted to; keyword arguments as for :meth:`of`."""
        return cls.of(table.rows, used_names(estimator, table.columns), table.columns, **how)

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """Return values of coordinates for the numeric columns and times; NaN for categories."""
        return np.array(
            [values[b][0] if c.kind != "categorical" else np.nan for c, b in zip(self.cells, self.blocks, strict=True)]
        )


def refuse_gaps(rows: np.ndarray, complete: Iterable[tuple[str, int]]) -> None:
    """Refuse missing numbers in columns that were complete at fit."""
    found = []
    for name, place in complete:
        count = int(np.isnan(rows[:, place]).sum())
        if count:
            found.append(f"{in_quotes(name)} ({count} row{'s' if count > 1 else ''})")
    if found:
        raise InputError(
            f"X contains NaN in {listed(found)}, but had none there at fit; fill them, or drop those rows."
        )
