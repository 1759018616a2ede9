"""The other cells of a row as the inputs of trees and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isopleth.conditional.word_means import WordMeans, held_weights
from isopleth.core.covariance import oracle_shrinkage
from isopleth.core.rows import columns_by_key, differ, distinct_rows
from isopleth.core.scales import without_constants

# Words of a column that have an input of their own.
_MOST_WORDS = 15
# Steps of EM and sweeps by which gaps are put on lines, what is added to a correlation matrix, and the farthest place of a gap.
_EM_STEPS, _SWEEPS, _RIDGE, _FARTHEST = 4, 8, 1e-4, 5.0


@dataclass(frozen=True)
class NumberInput:
    """A column of numbers: its ranks for trees, which no unit or rounding error changes, and the numbers for lines."""

    place: int
    values: np.ndarray  # distinct values, ascending
    gaps: bool  # whether a cell is missing at fit, which then is an input of lines

    @classmethod
    def of(cls, place: int, cells: np.ndarray) -> Self:
        """Note the known values of a column."""
        known = np.sort(cells[~np.isnan(cells)])
        if len(known):
            known = known[np.concatenate([[True], differ(known)])] if len(known) > 1 else known
        return cls(place, known if len(known) else np.zeros(1), bool(np.isnan(cells).any()))

    def of_trees(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return the ranks, interpolated between values; NaN is a gap."""
        ranks = np.interp(cells, self.values, np.arange(len(self.values), dtype=np.float64))
        # Equal numbers differ by rounding; whole ranks keep them on one side of a split.
        near = np.rint(ranks)
        ranks = np.where(np.abs(ranks - near) < 1e-6, near, ranks)
        return [np.where(np.isnan(cells), np.nan, ranks)]

    def of_lines(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return the numbers, NaN where one is missing, and whether they are missing."""
        return [cells, *[np.isnan(cells).astype(np.float64)] * self.gaps]


@dataclass(frozen=True)
class LevelInput(NumberInput):
    """A column of few levels, for lines in its own unit and as ranks: levels such as 1, 2, 5, 10, 20 are even steps then."""

    def of_lines(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return the numbers, their ranks, and whether they are missing."""
        numbers, *marks = super().of_lines(cells)
        return [numbers, *self.of_trees(cells), *marks]


@dataclass(frozen=True)
class WordInput:
    """A column of words as columns of 0 and 1 of the most frequent ones."""

    place: int
    codes: np.ndarray  # words with a column of their own
    more: bool  # whether there are others
    gaps: bool

    @classmethod
    def of(cls, place: int, cells: np.ndarray, size: int) -> Self:
        """Note the words of a column; codes are in the order of frequency."""
        known = cells[~np.isnan(cells)].astype(np.intp)
        counts = np.bincount(known, minlength=size)
        codes = np.argsort(-counts, kind="stable")[:_MOST_WORDS]
        codes = codes[counts[codes] > 0]
        return cls(place, codes, int((counts > 0).sum()) > len(codes), bool(np.isnan(cells).any()))

    def of_lines(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return whether the word is each of the frequent ones, and whether it is missing."""
        return [
            *((cells == code).astype(np.float64) for code in self.codes),
            *[np.isnan(cells).astype(np.float64)] * self.gaps,
        ]

    def of_trees(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return the same, and the code itself where there are many words."""
        return self.of_lines(cells) + [np.where(np.isnan(cells), -1.0, cells)] * self.more


@dataclass(frozen=True)
class GapLines:
    r"""Lines that stand for gaps in the inputs of lines: the mean given the known inputs of a row, if all were normal.

    With the precision matrix P of the inputs, :math:`x_j = -\sum_{k \ne j} P_{jk} x_k / P_{jj}` for all gaps j of a row at
    once, which is solved by Gauss-Seidel sweeps over all rows. The covariance is found by EM, whose correction for the
    conditional variances of gaps is taken to be diagonal. That a cell is missing tells the lines nothing: no row says what
    is usual in such a gap, and EM would leave the gaps that come together at their start, the mean.
    """

    center: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)
    slopes: np.ndarray  # (p, p): of each input on the others, 0 on the diagonal

    @classmethod
    def of(cls, A: np.ndarray, weights: np.ndarray, marks: Sequence[int] = ()) -> Self:
        """Fit them to inputs with gaps; `marks` are those that say whether a cell is missing."""
        known = ~np.isnan(A)
        mass = weights @ known
        center = weights @ np.where(known, A, 0.0) / np.maximum(mass, 1e-300)
        Z = np.where(known, A - center, 0.0)
        scale = without_constants(np.sqrt(weights @ Z**2 / np.maximum(mass, 1e-300)), Z)
        scale[list(marks)] = np.inf
        Z /= scale
        share, gone = weights / weights.sum(), 1.0 - mass / weights.sum()
        lines = cls(center, scale, np.zeros((len(center), len(center))))
        doubt = gone.copy()
        for _ in range(_EM_STEPS if gone.any() else 1):
            S = Z.T @ (share[:, None] * Z) + np.diag(doubt)
            unit = np.sqrt(np.maximum(np.diag(S), 1e-12))
            R, eye = S / np.outer(unit, unit), np.eye(len(unit))
            rho = oracle_shrinkage(R, 1.0 / float(share @ share), terms=1.0)
            P = np.linalg.inv((1.0 - rho) * R + (rho + _RIDGE) * eye) / np.outer(unit, unit)
            slopes = -P / np.diag(P)[:, None]
            np.fill_diagonal(slopes, 0.0)
            lines, doubt = cls(center, scale, slopes), gone / np.diag(P)
            lines._sweep(Z, ~known)
        return lines

    def fill(self, A: np.ndarray) -> np.ndarray:
        """Return inputs with their gaps on the lines."""
        gaps = np.isnan(A)
        if not gaps.any():
            return A
        Z = np.where(gaps, 0.0, (A - self.center) / self.scale)
        self._sweep(Z, gaps)
        scale = np.where(np.isfinite(self.scale), self.scale, 0.0)
        return np.where(gaps, self.center + scale * Z, A)

    def _sweep(self, Z: np.ndarray, gaps: np.ndarray) -> None:
        columns = [(j, np.flatnonzero(gaps[:, j])) for j in np.flatnonzero(gaps.any(axis=0))]
        for _ in range(_SWEEPS):
            for j, rows in columns:
                Z[rows, j] = np.clip(Z[rows] @ self.slopes[j], -_FARTHEST, _FARTHEST)


# Share of the pairs of rows equal in the given columns that have one target, from which these columns decide it.
_DECIDED = 0.5


@dataclass(frozen=True)
class Inputs:
    """Inputs of the columns that vary, in an order that does not depend on that of the table."""

    columns: tuple[NumberInput | WordInput, ...]
    lines: GapLines
    means: tuple[WordMeans, ...] = ()

    @classmethod
    def fit(
        cls,
        rows: np.ndarray,
        weights: np.ndarray,
        n_numeric: int,
        order: np.ndarray,
        targets: np.ndarray,
        copies: np.ndarray,
        shrunk_by: float | None = None,
        levels: int | None = None,
    ) -> tuple[Self, np.ndarray, np.ndarray]:
        """Return the inputs for `targets`, (n, k), and those of trees and of lines at the rows of the fit.

        Means by word are `shrunk_by` so many rows, by default as many as variances say; `levels` is the place of LevelInput.
        """
        plain = cls.of(rows, weights, n_numeric, order, levels)
        many = [column.place for column in plain.columns if isinstance(column, WordInput) and column.more]
        X, A = plain.of_trees(rows), plain.of_lines(rows)
        if not many:
            return plain, X, A
        held = held_weights(weights, copies)
        fitted = [WordMeans.fit(place, rows[:, place], targets, held, shrunk_by) for place in many]
        parts = [part for _, part in fitted]
        found = replace(plain, means=tuple(means for means, _ in fitted))
        return found, np.column_stack([X, *parts]).astype(np.float32), np.column_stack([A, *parts])

    @classmethod
    def of(
        cls, rows: np.ndarray, weights: np.ndarray, n_numeric: int, order: np.ndarray, levels: int | None = None
    ) -> Self:
        """Note the columns of distinct rows: numbers, then codes of words; NaN is a gap. `levels` is the place of LevelInput."""
        found: list[NumberInput | WordInput] = []
        for j in order:
            cells = rows[:, j]
            missing = np.isnan(cells)
            known = cells[~missing]
            if not missing.any() and known.min() == known.max():
                continue
            if j < n_numeric:
                found.append((LevelInput if j == levels else NumberInput).of(int(j), cells))
            else:
                found.append(WordInput.of(int(j), cells, int(known.max(initial=0)) + 1))
        columns = tuple(found)
        ends = np.cumsum([len(column.of_lines(rows[:1, column.place])) for column in columns])
        marks = [int(end) - 1 for column, end in zip(columns, ends, strict=True) if column.gaps]
        return cls(columns, GapLines.of(_of_lines(columns, rows), weights, marks))

    def of_trees(self, rows: np.ndarray) -> np.ndarray:
        """Return the inputs of trees, (n, k), in single precision, which holds ranks and codes without error."""
        rows = self._on_lines(rows)
        parts = [part for column in self.columns for part in column.of_trees(rows[:, column.place])]
        parts += self._means_of(rows)
        return np.column_stack(parts).astype(np.float32) if parts else np.zeros((len(rows), 1), dtype=np.float32)

    def place_in_trees(self, column: int) -> int:
        """Return the place of a column of numbers among the inputs of trees."""
        places = [other.place for other in self.columns]
        before = self.columns[: places.index(column)]
        return sum(len(other.of_trees(np.zeros(1))) for other in before)

    def _means_of(self, rows: np.ndarray) -> list[np.ndarray]:
        return [means.at(rows[:, means.place]) for means in self.means]

    def _on_lines(self, rows: np.ndarray) -> np.ndarray:
        """Return rows whose missing numbers are on the lines."""
        numbers = [column for column in self.columns if isinstance(column, NumberInput)]
        if not np.isnan(rows[:, [column.place for column in numbers]]).any():
            return rows
        filled, out, at = self.lines.fill(_of_lines(self.columns, rows)), rows.copy(), 0
        for column in self.columns:
            if isinstance(column, NumberInput):
                out[:, column.place] = filled[:, at]
            at += len(column.of_lines(rows[:1, column.place]))
        return out

    def of_lines(self, rows: np.ndarray) -> np.ndarray:
        """Return the inputs of lines, (n, p), gaps filled by lines from the known ones."""
        return np.column_stack([self.lines.fill(_of_lines(self.columns, rows)), *self._means_of(rows)])


def _of_lines(columns: tuple[NumberInput | WordInput, ...], rows: np.ndarray) -> np.ndarray:
    parts = [part for column in columns for part in column.of_lines(rows[:, column.place])]
    return np.stack(parts, axis=1) if parts else np.zeros((len(rows), 1))


@dataclass(frozen=True)
class Sample:
    """Distinct rows of a fit with their targets, in an order that does not depend on that of the table."""

    rows: np.ndarray  # (m, d): the given cells, NaN where one is missing
    target: np.ndarray  # (m,): known numbers or codes, and lower ends of intervals
    upper: np.ndarray  # (m,): the same, and upper ends of intervals
    weights: np.ndarray  # (m,): summed weights, whose sum is that of the copies
    copies: np.ndarray  # (m,): number of independent rows that each stands for, at least 1
    place: np.ndarray  # (n,): distinct row of each row, -1 without weight
    order: np.ndarray  # (d,): columns in an order that does not depend on that of the table

    def inputs(
        self, n_numeric: int, told: np.ndarray, shrunk_by: float | None = None, levels: int | None = None
    ) -> tuple[Inputs, np.ndarray, np.ndarray]:
        """Return the rows as the inputs of trees and lines; `told`, (m, k), is what means of words stand for."""
        return Inputs.fit(self.rows, self.weights, n_numeric, self.order, told, self.copies, shrunk_by, levels)

    def take(self, places: np.ndarray) -> Self:
        """Return some of the distinct rows, and no row of the table."""
        rows, target, upper, weights, copies = (
            part[places] for part in (self.rows, self.target, self.upper, self.weights, self.copies)
        )
        return type(self)(rows, target, upper, weights, copies, np.empty(0, dtype=np.intp), self.order)

    @property
    def independent(self) -> np.ndarray:
        """Places of the rows, each as often as it stands for a row of its own."""
        return np.repeat(np.arange(len(self.rows)), np.floor(self.copies + 1e-9).astype(np.intp))

    def repeats(self) -> dict[int, int]:
        """Return the rows of the table that repeat an earlier one more often than independent rows do, and that one each."""
        order = np.argsort(self.place, kind="stable")
        start = np.searchsorted(self.place[order], np.arange(len(self.rows)))
        number = np.arange(len(order)) - start[self.place[order]]  # of each row among its equals
        again = np.sort(order[number >= np.floor(self.copies + 1e-9)[self.place[order]]])
        first = order[start]
        return dict(zip(again.tolist(), first[self.place[again]].tolist(), strict=True))

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray,
        upper: np.ndarray | None = None,
        n_numeric: int | None = None,
    ) -> Self:
        """Merge rows that are equal with their targets: a copy must not tell what its original holds.

        Rows of common words and values repeat by themselves, and each of them is a row of its own: of equal rows as many are
        independent as would be equal if the columns were, or the given ones where these hold a word (a column from `n_numeric`
        on) and decide the target, as articles decide their prices.
        """
        ends = target[:, None] if upper is None or (upper == target).all() else _finite(target, upper)
        gaps = np.isnan(rows)
        center = np.array([0.0 if g.all() else c[~g].min() for c, g in zip(rows.T, gaps.T, strict=True)])
        lacking = np.flatnonzero(gaps.any(axis=0))
        filled = np.where(gaps, center, rows)
        varying = np.flatnonzero((filled != filled[:1]).any(axis=0))  # a constant column must not change the order
        found, mass, place = distinct_rows(np.column_stack([filled[:, varying], gaps[:, lacking], ends]), weights)
        d = len(varying)
        kept = np.tile(filled[:1], (len(found), 1))
        kept[:, varying] = found[:, :d]
        absent = found[:, d : d + len(lacking)] > 0.5
        for k, j in enumerate(lacking):
            kept[absent[:, k], j] = np.nan
        order = columns_by_key(found)
        constant = np.setdiff1d(np.arange(rows.shape[1]), varying)
        low = found[:, d + len(lacking)].copy()
        high = low
        if ends.shape[1] > 1:
            low, high = _with_infinite(found[:, d + len(lacking) :])
        mass = mass * max(1.0, len(mass) / mass.sum())  # weights of a small sum are shares
        # Both ends of an interval are one cell.
        given = found[:, : d + len(lacking)]
        expected = _expected_copies(found[:, : d + len(lacking) + 1], mass)
        if n_numeric is not None and (varying >= n_numeric).any():
            expected = _expected_where_decided(given, mass, expected)
        independent = np.minimum(mass, np.maximum(expected, 1.0))
        columns = np.append(varying[order[order < d]], constant)
        weights = mass * (independent.sum() / mass.sum())
        return cls(kept, low, high, weights, np.maximum(independent, 1.0), place, columns)


def _expected_where_decided(given: np.ndarray, mass: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the copies that are expected of rows whose given columns decide the target; `expected` where these do not.

    They do if two rows that are equal in these columns nearly always have one target. Of each row the share is independent that
    is of the rows equal in them.
    """
    _, _, place = distinct_rows(given, mass)
    alike = np.bincount(place, mass)
    pairs = float(alike @ alike - mass @ mass), float(alike @ alike - alike.sum())
    if pairs[1] <= 0.0 or pairs[0] > (1.0 - _DECIDED) * pairs[1]:
        return expected
    return np.asarray(mass * np.minimum(1.0, _expected_copies(given, mass) / alike[place]))


def _expected_copies(rows: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return how many of the rows would be equal to each one if its cells were independent of each other."""
    total = mass.sum()
    out = np.full(len(rows), np.log(total))
    for cells in rows.T:
        _, place = np.unique(cells, return_inverse=True)
        out += np.log(np.bincount(place, mass) / total)[place]
    return np.asarray(np.exp(out))


def _finite(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return ends of intervals as finite numbers, and which are infinite."""
    infinite = np.isinf(low), np.isinf(high)
    low, high = np.where(infinite[0], high, low), np.where(infinite[1], low, high)
    return np.column_stack([low, high, *infinite])


def _with_infinite(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals of :func:`_finite`."""
    low, high, no_low, no_high = ends.T
    return np.where(no_low > 0.5, -np.inf, low), np.where(no_high > 0.5, np.inf, high)
