"""Ranks of cells given the context of their rows: the time of day, the day of the week, a number such as a temperature or a
load, and columns that name a kind of row.

A stream of minutes or hours has days and weeks. A value that is ordinary at noon may be far out at night, so each cell is
ranked among the rows of a reference at about the same time of day, on the same kind of day, at about the same number. Where a
column rises or falls with these, near rows differ by that; so cells are brought to one place along a line (local linear
regression).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtri

from isopleth.core.rows import mixed, row_keys

_DAY = 24.0
# Parts of a day, and of the ranks of a number, whose rows share one law.
_PARTS_OF_DAY, _PARTS_OF_NUMBER = 96, 16
# Half widths of the triangular kernels: in the time of day, in hours, and in the ranks of a number.
_WIDTHS, _REACHES = (0.5, 1.0, 2.0), (0.1, 0.2, 0.4)
# Rows by which kinds of days and the widths are chosen, and parts of the day that they are of; quantiles whose loss is compared,
# and the excess of the loss that is allowed for fewer kinds and wider kernels.
_ROWS_OF_CHOICE, _PARTS_OF_CHOICE, _LEVELS, _EXCESS = 600, 12, (0.1, 0.5, 0.9), 1.01
# Parts of a day by which profiles of the kinds are compared.
_PARTS_OF_PROFILE = 12
# Cells that a slope needs; fewer have a level only.
_FEWEST_OF_SLOPE = 12
# A normal law has this many standard deviations between its quartiles, and between its median and a tenth of it.
_QUARTILES, _TENTH = 1.35, 1.28
# Cells this many quartile distances from the median are moved to there before a slope is fitted: an incident has no part in it.
_REACH_OF_SLOPE = 1.5
# Ridge of a slope, as a share of the variance that the kernel gives to even places. Where the places hardly differ, as those of
# hourly rows some seconds after the hour, there is no slope to speak of.
_RIDGE = 0.03
# Scores beyond all rows of a context, in these units, and the least unit as a share of that of the column. A column of which most
# cells are equal has no smaller unit than its deviation: its quartiles say nothing of its tail.
_FARTHEST, _LEAST_UNIT = 30.0, 1e-3
# Medians of counts from here on are told as those of other numbers.
_LARGE_COUNT = 10.0
# Cells of the laws that are kept for the next rows.
_MOST_KEPT = 4_000_000


@dataclass(frozen=True, eq=False)
class RowContexts:
    """Contexts of rows: of each its time of day, its kind, its day, and the rank of its number."""

    hour: np.ndarray  # (n,): time of day from 0 to 24; 0 without a clock
    kind: np.ndarray  # (n,): number of the kind of row, such as the day of the week
    day: np.ndarray  # (n,): number of the day, or of the part of the reference, left out where its rows are ranked
    rank: np.ndarray | None = None  # (n,): rank from 0 to 1 of a number that is a context; None without one
    given: np.ndarray | None = None  # (n, m): several numbers, and words, that are a context; None without them

    def take(self, rows: np.ndarray) -> Self:
        """Return the contexts of some rows."""
        rank, given = (None if each is None else each[rows] for each in (self.rank, self.given))
        return type(self)(self.hour[rows], self.kind[rows], self.day[rows], rank, given)

    def ranked(self, rank: np.ndarray | None) -> Self:
        """Return the contexts with other ranks of their numbers."""
        return type(self)(self.hour, self.kind, self.day, rank)

    @property
    def part(self) -> np.ndarray:
        """Part of the day of each row, of 96."""
        return _part(self.hour / _DAY, _PARTS_OF_DAY)


def _part(shares: np.ndarray, parts: int) -> np.ndarray:
    return np.clip((shares * parts).astype(np.intp), 0, parts - 1)


class _Law(NamedTuple):
    """Cells of one column in one context, in order."""

    slope: np.ndarray  # (2,): of the column against the hour and the rank of the number
    known: np.ndarray  # (m,): cells, brought to the middle of the part
    weights: np.ndarray  # (m,)
    total: np.ndarray  # (m + 1,): sums of the weights from 0 on
    day: np.ndarray  # (m,)

    def middle(self) -> float:
        """Return the median."""
        return float(self.known[np.searchsorted(self.total[1:], 0.5 * self.total[-1])])

    def mean(self) -> float:
        """Return the mean."""
        return float(self.known @ self.weights) / float(self.total[-1])

    def unit(self) -> float:
        """Return the unit of scores beyond all cells: the largest of three, since each of few cells may be small by chance."""
        places = np.searchsorted(self.total[1:], np.multiply((0.1, 0.25, 0.5, 0.75, 0.9), self.total[-1]))
        lowest, low, middle, high, highest = self.known[np.minimum(places, len(self.known) - 1)]
        return float(max((high - low) / _QUARTILES, max(highest - middle, middle - lowest) / _TENTH))

    def scores(self, cells: np.ndarray, ties: np.ndarray, least_unit: float, days: np.ndarray | None) -> np.ndarray:
        """Return the normal scores of cells; with `days` each among the cells of other days, 0 if there are none."""
        left, right = (np.searchsorted(self.known, cells, side) for side in ("left", "right"))
        low, high, whole = self.total[left], self.total[right], np.full(len(cells), self.total[-1])
        squares, first, last = float((self.weights**2).sum()), self.known[0], self.known[-1]
        if days is not None:
            own = self.day == days[:, None]
            weights = own * self.weights
            sums = np.hstack([np.zeros((len(cells), 1)), np.cumsum(weights, axis=1)])
            at = np.arange(len(cells))
            low, high, whole = low - sums[at, left], high - sums[at, right], whole - sums[:, -1]
            squares = squares - (weights**2).sum(axis=1)
            first, last = self.known[np.argmin(own, axis=1)], self.known[::-1][np.argmin(own[:, ::-1], axis=1)]
        some = whole > 1e-9 * self.total[-1]
        whole = np.where(some, whole, 1.0)
        least = 0.5 / (
            whole**2 / np.maximum(squares, np.finfo(np.float64).tiny) + 1.0
        )  # half a row of the effective number
        share = np.clip((low + ties * (high - low)) / whole, least, 1.0 - least)
        unit = max(self.unit(), least_unit)
        above, below = (cells - last) / unit, (first - cells) / unit
        beyond = np.clip(above, 0.0, _FARTHEST) - np.clip(below, 0.0, _FARTHEST)
        return np.where(some, ndtri(np.where(some, share, 0.5)) + beyond, 0.0)


# Laws of the contexts that rows have been judged by, for the next rows. They are no part of a saved reference.
_KEPT: WeakKeyDictionary[ContextRanks, dict[tuple[int, int, int], list[_Law | None]]] = WeakKeyDictionary()


def column_units(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the distance of the quartiles of each column, or where they are equal its deviation; never 0."""
    return np.where(high > low, high - low, np.maximum(np.nanstd(rows, axis=0), np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class ContextRanks:
    """Reference whose rows are weighted by triangular kernels in the time of day and in the ranks of a number, and by which kinds
    of rows go together.
    """

    rows: np.ndarray  # (n, d): reference; NaN where a cell is missing
    hour: np.ndarray  # (n,): contexts of its rows
    kind: np.ndarray
    day: np.ndarray
    groups: np.ndarray  # (k,): group of each kind of row; kinds of one group go together
    width: float  # half width of the kernel in hours; infinite without a clock
    unit: np.ndarray  # (d,): unit of each column, from its quartiles
    least: np.ndarray  # (d,): least unit of scores beyond all rows of a context
    rank: np.ndarray | None = None  # (n,): rank of the number
    reach: float = np.inf  # half width of the kernel in these ranks; infinite without a number

    @classmethod
    def of(cls, rows: np.ndarray, contexts: RowContexts, kinds: int, *, clock: bool) -> ContextRanks:
        """Choose which of the `kinds` go together, and the widths, by the loss of quantiles of days that are left out."""
        low, high = np.nanquantile(rows, [0.25, 0.75], axis=0)
        unit = column_units(rows, low, high)
        least = np.where(high > low, _LEAST_UNIT * unit, unit)
        least = np.where(small_counts(rows), np.maximum(least, 1.0), least)  # tails of counts fall from one to the next
        chosen = _rows_of_choice(contexts)
        widths = _WIDTHS if clock else (np.inf,)
        reaches = (np.inf,) if contexts.rank is None else _REACHES

        def tried(groups: np.ndarray, width: float, reach: float) -> ContextRanks:
            about = rows, contexts.hour, contexts.kind, contexts.day, groups, width, unit, least, contexts.rank, reach
            return ContextRanks(*about)

        partitions = _partitions(rows, contexts, kinds)
        losses = [
            tried(groups, widths[len(widths) // 2], reaches[len(reaches) // 2])._loss(chosen) for groups in partitions
        ]
        groups = partitions[_last_of_good(losses)]
        every = [tried(groups, width, reach) for width in widths for reach in reaches]
        return every[_last_of_good([each._loss(chosen) for each in every])]

    def _away(self, contexts: RowContexts, part: int, place: int) -> np.ndarray:
        """Return how far rows are from the middle of a part of the day, in hours, and of a part of the number (n, 2)."""
        away = np.zeros((len(contexts.hour), 2))
        if np.isfinite(self.width):
            hours = contexts.hour - (part + 0.5) * _DAY / _PARTS_OF_DAY
            away[:, 0] = (hours + 0.5 * _DAY) % _DAY - 0.5 * _DAY
        if contexts.rank is not None and np.isfinite(self.reach):
            away[:, 1] = contexts.rank - (place + 0.5) / _PARTS_OF_NUMBER
        return away

    def _laws(self, part: int, place: int, group: int) -> list[_Law | None]:
        """Return the laws of the columns in a context; None for those without cells."""
        kept = _KEPT.setdefault(self, {})
        if (part, place, group) not in kept:
            if sum(len(law.known) for laws in kept.values() for law in laws if law) > _MOST_KEPT:
                kept.clear()
            kept[part, place, group] = self._new_laws(part, place, group)
        return kept[part, place, group]

    def _new_laws(self, part: int, place: int, group: int) -> list[_Law | None]:
        """Return the laws of the columns, from the rows whose weights are positive."""
        away = self._away(RowContexts(self.hour, self.kind, self.day, self.rank), part, place)
        widths = np.array([self.width, self.reach])
        weights = np.prod(np.maximum(1.0 - np.abs(away) / widths, 0.0), axis=1)
        found = np.flatnonzero((weights > 0.0) & (self.groups[self.kind] == group))
        return [_law(column, weights[found], away[found], self.day[found], widths) for column in self.rows[found].T]

    def _keys(self, contexts: RowContexts) -> list[tuple[int, int, int, np.ndarray]]:
        """Return part of the day, part of the number and group of rows that are judged by one law, and their positions."""
        part = np.zeros(len(contexts.hour), dtype=np.intp) if np.isinf(self.width) else contexts.part
        place = np.zeros_like(part) if contexts.rank is None else _part(contexts.rank, _PARTS_OF_NUMBER)
        known = np.clip(contexts.kind, 0, len(self.groups) - 1)
        group = np.where(contexts.kind == known, self.groups[known], -1)  # kinds that the reference does not have
        keys = (group + 1) * (_PARTS_OF_DAY * _PARTS_OF_NUMBER) + part * _PARTS_OF_NUMBER + place
        order = np.argsort(keys, kind="stable")
        firsts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        return [
            (int(part[some[0]]), int(place[some[0]]), int(group[some[0]]), some)
            for some in np.split(order, firsts[1:])
            if len(some)
        ]

    def _loss(self, chosen: np.ndarray) -> float:
        """Return the mean quantile loss at some rows of the reference, whose own days are left out."""
        every, loss, count = RowContexts(self.hour, self.kind, self.day, self.rank), 0.0, 0
        for part, place, group, some in self._keys(every.take(chosen)):
            asked = chosen[some]
            away = self._away(every.take(asked), part, place)
            for j, law in enumerate(self._laws(part, place, group)):
                cells = self.rows[asked, j] if law is None else self.rows[asked, j] - away @ law.slope
                known = ~np.isnan(cells)
                if law is None or not known.any():
                    continue
                sums = np.cumsum((law.day != self.day[asked[known], None]) * law.weights, axis=1)
                if not (sums[:, -1] > 0.0).all():
                    return np.inf
                places = np.stack([(sums < level * sums[:, -1:]).sum(axis=1) for level in _LEVELS], axis=1)
                off = (cells[known, None] - law.known[np.minimum(places, len(law.known) - 1)]) / self.unit[j]
                loss += float(np.maximum(np.multiply(_LEVELS, off), np.subtract(_LEVELS, 1.0) * off).sum())
                count += int(known.sum())
        return loss / max(count, 1)

    def of_reference(self, rows: np.ndarray, contexts: RowContexts, _usable: np.ndarray) -> np.ndarray:
        """Return the scores of the reference of the fit among other days."""
        return self.scores(rows, contexts, own_day=True)

    def scores(self, rows: np.ndarray, contexts: RowContexts, *, own_day: bool = False) -> np.ndarray:
        """Return the normal scores of :meth:`judge`."""
        return self.judge(rows, contexts, own_day=own_day)[0]

    def judge(
        self,
        rows: np.ndarray,
        contexts: RowContexts,
        *,
        own_day: bool = False,
        means: np.ndarray | None = None,
        keys: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return normal scores of cells given their contexts, (n, d); rows of the reference without their `own_day`.

        Beyond all rows of a context scores go on in units of its quartile distance. Ties are broken by keys, by default those of
        the rows.
        A missing cell, and one of a context without rows of the reference, has the score 0: nothing is known about it.
        The second array holds what is usual: medians of the contexts, and `means` of those columns (d,) that have small counts;
        NaN without rows of the reference.
        """
        out, usual = np.zeros(rows.shape), np.full(rows.shape, np.nan)
        keys = row_keys(rows) if keys is None else keys
        for part, place, group, asked in self._keys(contexts):
            away = self._away(contexts.take(asked), part, place)
            for j, law in enumerate(self._laws(part, place, group)):
                if law is None:
                    continue
                along = (away * law.slope).sum(axis=1)
                usual[asked, j] = (law.mean() if means is not None and means[j] else law.middle()) + along
                cells, ties = rows[asked, j] - along, mixed(keys[asked], j) / 2.0**64
                out[asked, j] = law.scores(cells, ties, self.least[j], contexts.day[asked] if own_day else None)
        return np.where(np.isnan(rows), 0.0, out), usual


def small_counts(rows: np.ndarray) -> np.ndarray:
    """Return which columns (d,) hold small counts: whole numbers from 0 on whose median says little of their mean."""
    whole = np.all(np.isnan(rows) | (rows == np.floor(rows)), axis=0)
    return np.asarray(whole & (np.nanmin(rows, axis=0) == 0.0) & (np.nanmedian(rows, axis=0) < _LARGE_COUNT))


def _last_of_good(losses: list[float]) -> int:
    """Return the last loss that is next to the least: fewer kinds and wider kernels come later, and have more rows a context."""
    return int(np.flatnonzero(np.array(losses) <= min(losses) * _EXCESS)[-1])


def _rows_of_choice(contexts: RowContexts) -> np.ndarray:
    """Return rows of some parts of the day, at equal distances: few laws are needed to judge them."""
    parts = np.unique(contexts.part)
    found = np.flatnonzero(np.isin(contexts.part, parts[:: -(-len(parts) // _PARTS_OF_CHOICE)]))
    return found[np.unique(np.linspace(0, len(found) - 1, min(len(found), _ROWS_OF_CHOICE)).astype(int))]


def _law(column: np.ndarray, weights: np.ndarray, away: np.ndarray, day: np.ndarray, widths: np.ndarray) -> _Law | None:
    """Return the law of the known cells of a column, brought to one place along a line."""
    order = np.argsort(column, kind="stable")[: np.count_nonzero(~np.isnan(column))]
    if not len(order):
        return None
    slope = _slope(column[order], weights[order], away[order], widths)
    if slope.any():
        column = column - (away * slope).sum(axis=1)
        order = order[np.argsort(column[order], kind="stable")]
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    return _Law(slope, column[order], weights[order], total, day[order])


def _slope(y: np.ndarray, w: np.ndarray, away: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the slopes of sorted cells against hours and ranks, by weighted least squares of cells that are not far out."""
    some = np.isfinite(widths)
    if len(y) < _FEWEST_OF_SLOPE or not away.any():
        return np.zeros(2)
    low, middle, high = y[[len(y) // 4, len(y) // 2, 3 * len(y) // 4]]
    reach = _REACH_OF_SLOPE * (high - low)
    y = np.clip(y, middle - reach, middle + reach)
    x = away[:, some] - w @ away[:, some] / w.sum()
    ridge = _RIDGE * w.sum() * widths[some] ** 2 / 6.0  # the variance of a triangular kernel
    slope = np.zeros(2)
    slope[some] = np.linalg.solve((x * w[:, None]).T @ x + np.diag(ridge), x.T @ (w * (y - middle)))
    return slope


def _partitions(rows: np.ndarray, contexts: RowContexts, kinds: int) -> list[np.ndarray]:
    """Return ways in which the kinds may go together, from each by itself to all together, the most alike ones first."""
    ranks = np.argsort(np.argsort(rows, axis=0), axis=0) / len(rows)
    part = (contexts.hour * (_PARTS_OF_PROFILE / _DAY)).astype(np.intp)
    profiles = np.full((kinds, _PARTS_OF_PROFILE, rows.shape[1]), 0.5)
    for kind, hour in np.unique(np.stack([contexts.kind, part], axis=1), axis=0):
        profiles[kind, hour] = ranks[(contexts.kind == kind) & (part == hour)].mean(axis=0)
    apart = np.abs(profiles[:, None] - profiles).mean(axis=(2, 3))
    members, found = [[kind] for kind in range(kinds)], []
    while True:
        groups = np.empty(kinds, dtype=np.intp)
        for number, some in enumerate(members):
            groups[some] = number
        found.append(groups)
        if len(members) == 1:
            return found
        pairs = [(apart[np.ix_(members[i], members[k])].max(), k, i) for i in range(len(members)) for k in range(i)]
        _, k, i = min(pairs)
        members[k] += members.pop(i)
