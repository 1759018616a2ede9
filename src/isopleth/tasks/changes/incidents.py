"""Incidents of a series: a level that is left for a short while and comes back, which is one thing and not two changes.

Incidents with sharp edges are taken out before the search, as gaps are, so that they hide no season, curve or change. Others are
two changes of level that the legs found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isopleth.tasks.changes.odd_cycles import OddCycles
from isopleth.tasks.changes.preparation import TO_SIGMA, rests
from isopleth.tasks.changes.stretches import beyond_other_visits, beyond_others

# Largest length of an incident, as a share of the series and of the shorter part beside it, and largest difference of the levels
# around it as a share of its height.
_OF_SERIES, _OF_NEIGHBOUR, _COMES_BACK = 0.1, 0.5, 0.25


def with_incidents(
    values: np.ndarray, places: np.ndarray, kinds: np.ndarray, columns: list[tuple[int, ...]]
) -> np.ndarray:
    """Return the kinds of the changes, "incident" for both ends of an incident in `values`, from which seasons are subtracted."""
    bounds = np.concatenate([[0], places, [len(values)]]).astype(int)
    kinds = kinds.copy()
    for i in range(len(places) - 1):
        if kinds[i] == kinds[i + 1] == "level" and set(columns[i]) & set(columns[i + 1]):
            before, own, after = np.diff(bounds[i : i + 4])
            short = own <= min(_OF_SERIES * len(values), _OF_NEIGHBOUR * min(before, after))
            if short and _comes_back(values[bounds[i] : bounds[i + 3]], before, own, columns[i]):
                kinds[i : i + 2] = "incident"
    return kinds


def _comes_back(values: np.ndarray, before: int, own: int, columns: tuple[int, ...]) -> bool:
    """Tell whether the level after an incident is that before it, in all columns of the incident."""
    rows = values[:, list(columns)]
    first, during, last = (
        np.median(part, axis=0) for part in (rows[:before], rows[before : before + own], rows[before + own :])
    )
    heights = np.abs(during - 0.5 * (first + last))
    return bool((np.abs(last - first) <= _COMES_BACK * heights).all() and (heights > 0.0).all())


# Share of the false alarm rate at which incidents are taken out.
SHARE = 1.0 / 6.0
# Robust deviations of a height, of the steps into and out of it, and of the same phase elsewhere.
_HIGH, _SHARP = 6.0, 4.0
# Fewest steps: single values are outliers. Fewest steps on either side that are compared.
_SHORTEST, _AROUND = 2, 5
# Most steps of a level that begins just before the end: the segments of a description are longer.
_AT_THE_END = 5
# Share of the height that no step of an incident falls below and none beside it exceeds.
_HALF = 0.5
# Most sharp steps of a column, and most incidents: more are the nature of a series.
_MOST_EDGES, _MOST = 40, 5
# Powers in which columns of logarithms are searched, too: in logarithms, a burst at a busy hour is no larger than the noise of
# counts at a quiet one.
_POWERS = 0.5, 1.0
# Fewest other cycles with which the phases of an incident are compared.
_ELSEWHERE = 2


@dataclass(frozen=True)
class Incident:
    """Steps of a series that are far from those beside them, from `start` to the one before `end`."""

    start: int
    end: int
    columns: tuple[int, ...]
    pvalue: float

    def mask(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return which cells of a series of this shape it covers."""
        out = np.zeros(shape, dtype=bool)
        out[self.start : self.end, list(self.columns)] = True
        return out


def sharp_incidents(
    values: np.ndarray, missing: np.ndarray, periods: Sequence[float], rate: float, logs: Collection[int] = ()
) -> list[Incident]:
    """Return the incidents with sharp edges in series whose seasons of these periods are subtracted; columns are joined.

    What begins in the last few steps and goes on has only one edge, and the last step as its end. Columns with the numbers `logs`
    are logarithms, and are searched in powers, too.
    """
    found: list[Incident] = []
    for j, (column, gaps) in enumerate(zip(values.T, missing.T, strict=True)):
        scales = [np.exp(power * column) for power in _POWERS] if j in logs else []
        scales.append(column)
        count = values.shape[1] * len(scales)
        searches = [_IncidentSearch(scale, gaps, tuple(periods)) for scale in scales]
        for one in _likeliest([one for search in searches for one in search.found(SHARE * rate / count)]):
            same = [other for other in found if other.start < one.end and one.start < other.end]
            if not same:
                found.append(Incident(one.start, one.end, (j,), min(1.0, one.pvalue * count / SHARE)))
            elif len(same) == 1:  # the columns of one incident begin and end within a step or two
                other = same[0]
                both = Incident(
                    min(one.start, other.start),
                    max(one.end, other.end),
                    (*other.columns, j),
                    min(other.pvalue, one.pvalue),
                )
                found[found.index(other)] = both
    return sorted(found, key=lambda one: one.start) if len(found) <= _MOST else []


def _likeliest(found: list[Incident]) -> list[Incident]:
    """Return the incidents of one column, of those that overlap the one with the least p-value."""
    out: list[Incident] = []
    for one in sorted(found, key=lambda one: one.pvalue):
        if all(one.end <= other.start or other.end <= one.start for other in out):
            out.append(one)
    return out


def odd_cycles(values: np.ndarray, seasons: np.ndarray | None, periods: Sequence[float], rate: float) -> list[Incident]:
    """Return the incidents of cycles that are absent from a season, or are no part of it, in series less their `seasons`."""
    found: list[Incident] = []
    if seasons is None:
        return found
    for j, (column, season) in enumerate(zip(values.T, seasons.T, strict=True)):
        cycles = OddCycles.of(column + season, season, periods)
        if cycles is not None:
            own = cycles.found(SHARE * rate / values.shape[1])
            found += [
                Incident(start, end, (j,), min(1.0, pvalue * values.shape[1] / SHARE)) for start, end, pvalue in own
            ]
    return found if len(found) <= _MOST else []


def apart(incidents: list[Incident]) -> list[Incident]:
    """Return the incidents in order, those that overlap as one."""
    out: list[Incident] = []
    for one in sorted(incidents, key=lambda one: one.start):
        if out and one.start <= out[-1].end:
            last = out.pop()
            columns = tuple(sorted({*last.columns, *one.columns}))
            one = Incident(last.start, max(last.end, one.end), columns, min(last.pvalue, one.pvalue))
        out.append(one)
    return out


@dataclass(frozen=True, eq=False)
class _IncidentSearch:
    """A column around its seasons, in which incidents are sought."""

    values: np.ndarray
    gaps: np.ndarray  # filled cells
    periods: tuple[float, ...]

    def found(self, rate: float) -> list[Incident]:
        """Return the incidents, and the level that begins in the last steps."""
        return [*self.incidents(rate), *self.going_on(rate)]

    def incidents(self, rate: float) -> list[Incident]:
        """Return the incidents that are no chance, the highest of those that overlap."""
        pairs = self._pairs()
        if not pairs:
            return []
        runs = np.zeros(len(self.values), dtype=bool)
        for start, end, _ in pairs:
            runs[start:end] = True
        single = int(np.sum(self._far() & ~runs))
        found: list[Incident] = []
        for start, end, _ in sorted(pairs, key=lambda pair: -pair[2]):
            if all(end <= one.start or one.end <= start for one in found):
                pvalue = self._chance(end - start, single)
                if pvalue <= rate:
                    found.append(Incident(start, end, (0,), pvalue))
        return self._beyond_others(found, rate) if len(found) <= _MOST else []

    def going_on(self, rate: float) -> list[Incident]:
        """Return the level that begins in the last steps, if there is one: the steps before it stand for those to come."""
        n = len(self.values)
        for start in range(max(n - _AT_THE_END, _AROUND), n - _SHORTEST + 1):
            before = slice(start - _AROUND, start)
            values, gaps = (np.append(some, some[before][::-1]) for some in (self.values, self.gaps))
            found = replace(self, values=values, gaps=gaps).incidents(rate)
            if own := [one for one in found if (one.start, one.end) == (start, n)]:
                return own
        return []

    def _beyond_others(self, found: list[Incident], rate: float) -> list[Incident]:
        """Return the incidents, the highest first, down to the last that is farther off than stretches without one get."""
        places = [(one.start, one.end) for one in found]
        beyond = beyond_other_visits if self.rests else beyond_others
        apart = [len(found) * beyond(self.values, place, places[:i]) for i, place in enumerate(places)]
        last = max((i for i, pvalue in enumerate(apart) if pvalue <= rate), default=-1)
        return [
            replace(one, pvalue=max(one.pvalue, min(apart[i : last + 1]))) for i, one in enumerate(found[: last + 1])
        ]

    def _chance(self, length: int, single: int) -> float:
        """Return the expected number of runs of far values that are single ones side by side by chance."""
        n = len(self.values)
        return float(min(1.0, n * np.exp(min(length, 100) * np.log((single + 1.0) / n))))

    def _spread(self, lag: int) -> float:
        """Return the robust deviation of values from those `lag` steps before: what wanders meanwhile counts as noise."""
        apart = np.abs(self.values[lag:] - self.values[:-lag])
        moved = apart[apart > 0.0] if self.rests else apart
        return TO_SIGMA * float(np.median(moved)) / np.sqrt(2.0) if len(moved) else 0.0

    @cached_property
    def rests(self) -> bool:
        """Mark of a column that mostly rests, whose spread is that of its moves."""
        return rests(self.values)

    def _far(self) -> np.ndarray:
        """Return which values are far from the median of the five around them."""
        near = np.lib.stride_tricks.sliding_window_view(np.pad(self.values, 2, mode="edge"), 5)
        return np.asarray(np.abs(self.values - np.median(near, axis=1)) > _HIGH * self._spread(1))

    def _pairs(self) -> list[tuple[int, int, float]]:
        """Return starts, ends and heights of what lies between two opposite sharp steps."""
        steps, spread = np.diff(self.values), np.sqrt(2.0) * self._spread(1)
        edges = 1 + np.flatnonzero(np.abs(steps) >= _SHARP * spread)
        if spread <= 0.0 or not 2 <= len(edges) <= _MOST_EDGES:
            return []
        out = []
        for i, start in enumerate(edges.tolist()):
            for end in edges[i + 1 :].tolist():
                length = end - start
                opposite = steps[start - 1] * steps[end - 1] < 0.0
                if opposite and _SHORTEST <= length <= _OF_SERIES * len(self.values):
                    height = self._height(start, end)
                    if height > 0.0:
                        out.append((start, end, height))
        return out

    def _height(self, start: int, end: int) -> float:
        """Return how far the steps between two edges are from those beside them; 0 if that is no incident."""
        length = max(end - start, _AROUND)
        sides = slice(max(start - length, 0), start), slice(end, end + length)
        parts = [self.values[side][~self.gaps[side]] for side in sides]
        own = self.values[start:end][~self.gaps[start:end]]
        if (
            min(map(len, parts)) < _AROUND
            or 2 * len(own) < end - start
            or self.gaps[[start - 1, start, end - 1, end]].any()
        ):
            return 0.0
        before, after = (float(np.median(part)) for part in parts)
        base = 0.5 * (before + after)
        height = float(np.median(own)) - base
        rise = np.sign(height)
        whole = float((rise * (own - base)).min())
        beside = max(float((rise * (part - base)).max()) for part in parts)
        alone = whole > _HALF * abs(height) and beside < _HALF * abs(height)
        comes_back = abs(after - before) <= _COMES_BACK * abs(height)
        high = abs(height) >= _HIGH * self._spread(end - start)
        return abs(height) if alone and comes_back and high and self._off_phase(start, end) else 0.0

    def _off_phase(self, start: int, end: int) -> bool:
        """Tell whether steps are far from those at the same phase elsewhere: what a season leaves there is no incident."""
        own, steps = float(np.median(self.values[start:end])), np.arange(start, end)
        for period in self.periods:
            if end - start > 0.5 * period:
                continue
            most = int(len(self.values) / period) + 1
            shifts = np.round(np.arange(-most, most + 1) * period).astype(int)
            there = (steps + shifts[shifts != 0, None]).ravel()
            there = there[(there >= 0) & (there < len(self.values))]
            if len(there) < _ELSEWHERE * (end - start):
                continue
            center = float(np.median(self.values[there]))
            scale = TO_SIGMA * float(np.median(np.abs(self.values[there] - center)))
            if abs(own - center) < _HIGH * max(scale, self._spread(end - start)):
                return False
        return True
