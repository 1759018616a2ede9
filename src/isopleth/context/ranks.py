"""Ranks of cells given the context of their rows: the time of day, the day of the week, and columns that name a kind of row.

A stream of minutes or hours has days and weeks. A value that is ordinary at noon may be far out at night, so each cell is
ranked among the rows of a reference at about the same time of day, on the same kind of day. Where a column rises or falls with
the clock, rows half an hour apart differ by that; so cells are brought to one time of day along a line (local linear regression).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from isopleth.core.rows import mixed, row_keys

_DAY = 24.0
# Parts of a day whose rows share one law.
_PARTS_OF_DAY = 96
# Half widths of the triangular kernel in the time of day, in hours.
_WIDTHS = (0.5, 1.0, 2.0)
# Rows by which kinds of days and the width are chosen, quantiles whose loss is compared, and the excess of the loss that is
# allowed for fewer kinds.
_ROWS_OF_CHOICE, _LEVELS, _EXCESS = 600, (0.1, 0.5, 0.9), 1.01
# Parts of a day by which profiles of the kinds are compared.
_PARTS_OF_PROFILE = 12
# Cells that a slope needs; fewer have a level only.
_FEWEST_OF_SLOPE = 12
# A normal law has this many standard deviations between its quartiles.
_QUARTILES = 1.35
# Cells this many quartile distances from the median are moved to there before a slope is fitted: an incident has no part in it.
_REACH_OF_SLOPE = 1.5
# Scores beyond all rows of a context, in these units, and the least unit as a share of that of the column.
_FARTHEST, _LEAST_UNIT = 30.0, 1e-3


@dataclass(frozen=True, eq=False)
class RowContexts:
    """Contexts of rows."""

    hour: np.ndarray  # (n,): time of day from 0 to 24; 0 without a clock
    kind: np.ndarray  # (n,): number of the kind of row, such as the day of the week
    day: (
        np.ndarray
    )  # (n,): number of the day, or of the part of the reference, that is left out where its rows are ranked

    def take(self, rows: np.ndarray) -> Self:
        """Return the contexts of some rows."""
        return type(self)(self.hour[rows], self.kind[rows], self.day[rows])

    @property
    def part(self) -> np.ndarray:
        """Part of the day of each row, of 96."""
        return np.minimum((self.hour * (_PARTS_OF_DAY / _DAY)).astype(np.intp), _PARTS_OF_DAY - 1)


@dataclass(frozen=True, eq=False)
class ContextRanks:
    """Reference whose rows are weighted by a triangular kernel in the time of day, and by which kinds of rows go together."""

    rows: np.ndarray  # (n, d): reference; NaN where a cell is missing
    hour: np.ndarray  # (n,): contexts of its rows
    kind: np.ndarray
    day: np.ndarray
    groups: np.ndarray  # (k,): group of each kind of row; kinds of one group go together
    width: float  # half width of the kernel in hours; infinite without a clock
    unit: np.ndarray  # (d,): unit of each column, from its quartiles

    @classmethod
    def of(cls, rows: np.ndarray, contexts: RowContexts, kinds: int, *, clock: bool) -> Self:
        """Choose which of the `kinds` go together, and the width, by the loss of quantiles of days that are left out."""
        low, high = np.nanquantile(rows, [0.25, 0.75], axis=0)
        unit = np.where(high > low, high - low, np.maximum(np.nanstd(rows, axis=0), np.finfo(np.float64).tiny))
        about = rows, contexts.hour, contexts.kind, contexts.day
        chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS_OF_CHOICE)).astype(int))
        width = 1.0 if clock else np.inf
        partitions = _partitions(rows, contexts, kinds)
        losses = [cls(*about, groups, width, unit)._loss(chosen) for groups in partitions]
        groups = partitions[int(np.flatnonzero(np.array(losses) <= min(losses) * _EXCESS)[-1])]
        widths = _WIDTHS if clock else (np.inf,)
        tried = [cls(*about, groups, each, unit) for each in widths]
        return tried[int(np.argmin([each._loss(chosen) for each in tried]))]

    def _weights(self, part: int, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the reference that count in a part of the day for a group of kinds, and their weights."""
        if np.isinf(self.width):
            found = np.flatnonzero(self.groups[self.kind] == group)
            return found, np.ones(len(found))
        away = np.abs(self.hour - (part + 0.5) * _DAY / _PARTS_OF_DAY)
        weights = 1.0 - np.minimum(away, _DAY - away) / self.width
        found = np.flatnonzero((weights > 0.0) & (self.groups[self.kind] == group))
        return found, weights[found]

    def _away(self, hour: np.ndarray, part: int) -> np.ndarray:
        """Return how many hours times of day are after the middle of a part of the day; 0 without a clock."""
        if np.isinf(self.width):
            return np.zeros(len(hour))
        away = hour - (part + 0.5) * _DAY / _PARTS_OF_DAY
        return np.asarray((away + 0.5 * _DAY) % _DAY - 0.5 * _DAY)

    def _loss(self, chosen: np.ndarray) -> float:
        """Return the mean quantile loss at some rows of the reference, whose own days are left out."""
        contexts, loss, count = RowContexts(self.hour, self.kind, self.day), 0.0, 0
        for part, group, day, asked in self._keys(contexts.take(chosen), own_day=True):
            found, weights = self._weights(part, group)
            kept = self.day[found] != day
            if not kept.any():
                return np.inf
            values, weights = self.rows[chosen[asked]], weights[kept]
            away, own = self._away(self.hour[found[kept]], part), self._away(self.hour[chosen[asked]], part)
            for j, column in enumerate(self.rows[found[kept]].T):
                slope = _slope(column, weights, away)
                known, total = _sorted(column - slope * away, weights)
                cells = values[:, j] - slope * own
                cells = cells[~np.isnan(cells)]
                if not len(known) or not len(cells):
                    continue
                places = np.searchsorted(total[1:] / total[-1], _LEVELS)
                off = (cells[:, None] - known[np.minimum(places, len(known) - 1)]) / self.unit[j]
                loss += float(np.maximum(np.multiply(_LEVELS, off), np.subtract(_LEVELS, 1.0) * off).sum())
                count += len(cells)
        return loss / max(count, 1)

    def _keys(self, contexts: RowContexts, own_day: bool) -> list[tuple[int, int, int, np.ndarray]]:
        """Return part of the day, group and day of rows that are judged by one law, and their positions."""
        part = np.zeros(len(contexts.hour), dtype=np.intp) if np.isinf(self.width) else contexts.part
        known = np.clip(contexts.kind, 0, len(self.groups) - 1)
        group = np.where(contexts.kind == known, self.groups[known], -1)  # kinds that the reference does not have
        keys = np.stack([part, group, contexts.day if own_day else np.zeros_like(group)], axis=1)
        distinct, place = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(place.ravel(), kind="stable")
        ends = np.searchsorted(place.ravel()[order], np.arange(len(distinct) + 1))
        return [
            (int(key[0]), int(key[1]), int(key[2]), order[a:b])
            for key, a, b in zip(distinct, ends[:-1], ends[1:], strict=True)
        ]

    def scores(self, rows: np.ndarray, contexts: RowContexts, *, own_day: bool = False) -> np.ndarray:
        """Return normal scores of cells given their contexts, (n, d); rows of the reference without their `own_day`.

        Beyond all rows of a context scores go on in units of its quartile distance. Ties are broken by keys of the rows.
        A missing cell, and one of a context without rows of the reference, has the score 0: nothing is known about it.
        """
        out, keys = np.zeros(rows.shape), row_keys(rows)
        for part, group, day, asked in self._keys(contexts, own_day):
            found, weights = self._weights(part, group)
            if own_day:
                kept = self.day[found] != day
                found, weights = found[kept], weights[kept]
            away, own = self._away(self.hour[found], part), self._away(contexts.hour[asked], part)
            for j, column in enumerate(self.rows[found].T):
                slope = _slope(column, weights, away)
                known, total = _sorted(column - slope * away, weights)
                if not len(known):
                    continue
                ties = mixed(keys[asked], j) / 2.0**64
                cells = rows[asked, j] - slope * own
                out[asked, j] = self._scores_of_cells(cells, known, total, ties, self.unit[j])
        return np.where(np.isnan(rows), 0.0, out)

    @staticmethod
    def _scores_of_cells(
        cells: np.ndarray, known: np.ndarray, total: np.ndarray, ties: np.ndarray, unit: float
    ) -> np.ndarray:
        """Return the scores of cells among sorted known ones, whose weights add up to `total`."""
        low, high = total[np.searchsorted(known, cells, "left")], total[np.searchsorted(known, cells, "right")]
        weights = np.diff(total)
        least = 0.5 / (total[-1] ** 2 / (weights**2).sum() + 1.0)  # half a row of the effective number
        score = ndtri(np.clip((low + ties * (high - low)) / total[-1], least, 1.0 - least))
        quartiles = known[np.minimum(np.searchsorted(total[1:] / total[-1], [0.25, 0.75]), len(known) - 1)]
        unit = max((quartiles[1] - quartiles[0]) / _QUARTILES, _LEAST_UNIT * unit)
        above, below = (cells - known[-1]) / unit, (known[0] - cells) / unit
        return np.asarray(score + np.clip(above, 0.0, _FARTHEST) - np.clip(below, 0.0, _FARTHEST))


def _slope(column: np.ndarray, weights: np.ndarray, away: np.ndarray) -> float:
    """Return the slope of the known cells of a column against hours, by weighted least squares of cells that are not far out."""
    known = ~np.isnan(column)
    if known.sum() < _FEWEST_OF_SLOPE or not away.any():
        return 0.0
    x, y, w = away[known], column[known], weights[known]
    low, middle, high = np.quantile(y, (0.25, 0.5, 0.75))
    reach = _REACH_OF_SLOPE * (high - low)
    y = np.clip(y, middle - reach, middle + reach)
    x = x - w @ x / w.sum()
    spread = float(w @ x**2)
    return float(w @ (x * y)) / spread if spread > 0.0 else 0.0


def _sorted(column: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the known cells of a column in order, and the sums of their weights from 0 on."""
    order = np.argsort(column, kind="stable")[: np.count_nonzero(~np.isnan(column))]
    return column[order], np.concatenate([[0.0], np.cumsum(weights[order])])


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
