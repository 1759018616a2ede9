"""Seasons of a series: means of phases of its periods, which are found, or given as numbers of steps or in units of its times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from isopleth.core.errors import InputError
from isopleth.tasks.changes.autocorrelation import cycle_of
from isopleth.tasks.changes.description_length import describe
from isopleth.tasks.changes.preparation import TO_SIGMA
from isopleth.tasks.changes.segments import STABLE, Segmentation, rounding_variance, segment

# Passes over several seasons, each fitted to what the others leave.
_PASSES = 3
# Numbers of harmonics of smooth seasons that are compared with means of all phases.
HARMONICS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, eq=False)
class Cycle:
    """Cycle of a season: the phase of each step, in a number of phases that are told apart."""

    phases: np.ndarray  # (n,), int
    count: int
    period: float  # mean length in steps
    harmonics: int = 0  # number of the first harmonics that a smooth season consists of; 0 for all phases
    growing: bool = False  # whether each phase has a line in time: the season grows, shrinks or turns into another
    edges: tuple[int, ...] = ()  # first steps of a cycle that has a few levels in the place of a phase for each step

    @property
    def freedom(self) -> int:
        """Number of coefficients."""
        return (2 * self.harmonics or self.count) * (1 + self.growing) + len(self.edges)

    @classmethod
    def of_fractions(cls, fractions: np.ndarray, count: int, period: float) -> Cycle:
        """Return the cycle in which each step is at this fraction, from 0 to 1."""
        return cls((fractions * count + 1e-6).astype(np.intp) % count, count, period)

    @classmethod
    def of_steps(cls, length: int, period: float, count: int | None = None) -> Cycle:
        """Return the cycle of `period` steps, with a phase for each step of it by default."""
        return cls.of_fractions(np.arange(length) / period % 1.0, count or max(round(period), 2), period)

    def over(self, length: int) -> Cycle:
        """Return the cycle of another series of steps."""
        if self.edges:
            return self.of_steps(length, self.period).in_levels(self.edges)
        return replace(self.of_steps(length, self.period, self.count), harmonics=self.harmonics, growing=self.growing)

    def in_levels(self, edges: tuple[int, ...]) -> Cycle:
        """Return the cycle with one phase from each of the edges to the next."""
        return replace(
            self, phases=np.searchsorted(edges, self.phases, side="right"), count=len(edges) + 1, edges=edges
        )

    def smooth(self) -> list[Cycle]:
        """Return the cycle with fewer and fewer harmonics."""
        return [replace(self, harmonics=some) for some in HARMONICS if 2 * some < self.count]


Seasons = Sequence[Sequence[Cycle]]  # cycles of each column


def seasonal(values: np.ndarray, seasons: Seasons) -> np.ndarray:
    """Return the sum of the seasons of each column, which may hold NaN: means of phases around 0."""
    return np.column_stack([_sum_of(column, cycles) for column, cycles in zip(values.T, seasons, strict=True)])


def _sum_of(column: np.ndarray, cycles: Sequence[Cycle]) -> np.ndarray:
    """Return the sum of several cycles, each fitted to what the others leave."""
    parts = np.zeros((len(cycles), len(column)))
    for _ in range(_PASSES if len(cycles) > 1 else 1):
        for i, cycle in enumerate(cycles):
            parts[i] = _means(column - (parts.sum(axis=0) - parts[i]), cycle)
    return np.asarray(parts.sum(axis=0))


def _means(column: np.ndarray, cycle: Cycle) -> np.ndarray:
    """Return the means of a column in the phases of a cycle."""
    known = ~np.isnan(column)
    if not known.any():
        return np.zeros(len(column))
    phases = cycle.phases[known]
    counts = np.bincount(phases, minlength=cycle.count)
    time = np.linspace(-1.0, 1.0, len(column))

    def mean(values: np.ndarray) -> np.ndarray:
        return np.bincount(phases, values, cycle.count) / np.maximum(counts, 1)

    # Means of phases along a line would rise within the cycle, like teeth of a saw. The line is that within phases, since the
    # cycle itself may rise, which would leave steps between cycles.
    apart = time[known] - mean(time[known])[phases]
    rest = column[known] - column[known].mean()
    rest = rest - time[known] * (apart @ rest / max(float(apart @ apart), 1e-300))

    def season(of_phases: np.ndarray) -> np.ndarray:
        out = of_phases - (of_phases @ (counts > 0)) / max(int((counts > 0).sum()), 1)
        if cycle.harmonics:
            waves = np.fft.rfft(out)
            waves[cycle.harmonics + 1 :] = 0.0
            out = np.fft.irfft(waves, cycle.count)
        return np.asarray(out)

    if not cycle.growing:
        return np.asarray(season(mean(rest))[cycle.phases])
    slopes = season(mean(apart * rest) / np.maximum(mean(apart**2), 1e-12))[cycle.phases] * time
    return np.asarray(slopes + season(mean(rest - slopes[known]))[cycle.phases])


def criterion(column: np.ndarray, cycles: Sequence[Cycle]) -> float:
    """Return the Bayesian information criterion of seasons with autoregressive errors, which few steps of level hardly raise."""
    rest = column - _sum_of(column, cycles)
    rest = rest - np.nanmean(rest)
    known = ~np.isnan(rest[1:]) & ~np.isnan(rest[:-1])
    before, after = rest[:-1][known], rest[1:][known]
    phi = float(np.clip(after @ before / max(float(before @ before), 1e-300), -STABLE, STABLE))
    # The mean of the innovations is the drift of a trend.
    variance = float(np.var(after - phi * before) + rounding_variance(np.nan_to_num(rest)))
    freedom = sum(cycle.freedom for cycle in cycles)
    return len(after) * float(np.log(variance + 1e-300)) + freedom * float(np.log(len(column)))


def chosen_seasons(column: np.ndarray, groups: Sequence[Sequence[Cycle]], given: bool) -> list[Cycle]:
    """Choose one cycle of each group in turn by the criterion; none of a group is possible unless they are `given`."""
    chosen: list[Cycle] = []
    cost = criterion(column, chosen)
    for group in groups:
        costs = [criterion(column, [*chosen, cycle]) for cycle in group]
        best = int(np.argmin(costs)) if group else -1
        if group and (given or costs[best] < cost):
            chosen.append(group[best])
            cost = costs[best]
    return chosen


def season_beside_levels(values: np.ndarray, seasons: Seasons, fill: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the seasons of `values` with gaps, fitted to what segments without them leave; `fill` fills gaps."""
    rest = fill(values - seasonal(values, seasons))
    if (np.ptp(rest, axis=0) <= 0.0).any():
        return seasonal(values, seasons)
    return seasonal(values - lines_of(rest, describe(rest).location), seasons)


def lines_of(values: np.ndarray, location: Segmentation) -> np.ndarray:
    """Return the least-squares constant or line of each segment."""
    lines = np.empty_like(values)
    for start, end in pairwise(location.bounds):
        time = np.linspace(-1.0, 1.0, end - start)
        design = np.column_stack([np.ones(end - start), time][: 1 + location.degree])
        lines[start:end] = design @ np.linalg.lstsq(design, values[start:end], rcond=None)[0]
    return lines


# Seconds of the calendar's periods on average.
_SECONDS = {"day": 86_400.0, "week": 604_800.0, "month": 2_629_746.0, "year": 31_556_952.0}
# 1970 began on a Thursday: seconds from a Monday to then.
_THURSDAY = 3 * 86_400.0
# Fewest cycles of a season that is found, and of one that is given; and fewest steps of a cycle.
_FOUND, _GIVEN, _SHORTEST = 4.0, 2.0, 2.0
# Days of a week, which is tried beside a season that was found.
_DAYS = 7
# Longest period that is sought in differences, and robust standard deviations at which these are clipped.
_LONGEST, _WILD = 400, 6.0
# Shares of a period by which it may be wrong and numbers of phases, one look after the other, and periods that are compared.
_REACHES, _TRIED = ((0.1, 100), (0.01, 100), (0.002, 10_000)), 21
# Factor by which parts of a column become longer, the fewest of them, and fewest parts of a cycle.
_WIDER, _FEWEST_PARTS, _PARTS_OF_CYCLE = 4, 64, 8
# Fewest steps of a cycle that is described by a few levels.
_LONG_CYCLE = 100
# Most parts of a period as which a shorter one repeats, for which the parts may differ in level only.
_MOST_PARTS = 31


def seasons_of(values: np.ndarray, period: Any, seconds: np.ndarray | None) -> list[list[Cycle]]:
    """Return the seasons of each column, NaN where unknown: given, or found where they describe it more cheaply."""
    if period is None:
        return [[]] * values.shape[1]
    if isinstance(period, str) and period == "auto":
        joint = cycle_of(np.column_stack([_bridged(column) for column in values.T]))
        return [_found(column, joint, seconds) for column in values.T]
    given = [*period] if isinstance(period, (list, tuple, np.ndarray)) else [period]
    whole = sorted((_cycle(one, len(values), seconds) for one in given), key=lambda one: one.period)
    groups = [_options(whole[:i], cycle) for i, cycle in enumerate(whole)]
    return [chosen_seasons(column, groups, given=True) for column in values.T]


def check_period(period: Any) -> None:
    """Refuse what is no period."""
    if period is None or (isinstance(period, str) and period == "auto"):
        return
    given = [*period] if isinstance(period, (list, tuple, np.ndarray)) else [period]
    for one in given or [period]:
        known = one in _SECONDS if isinstance(one, str) else isinstance(one, Real) and float(one) >= _SHORTEST
        if not known or isinstance(one, bool):
            close = get_close_matches(str(one).lower(), ["auto", "none", *_SECONDS], 1) if isinstance(one, str) else []
            raise InputError(
                f"{{parameter}} = {one!r}: {f'did you mean {close[0]!r}? E' if close else 'e'}xpected 'auto', None, a number of "
                "steps of at least 2, 'day', 'week', 'month' or 'year', or a list of these",
                parameter="period",
            )


def _cycle(one: Any, length: int, seconds: np.ndarray | None) -> Cycle:
    """Return a cycle that the user names or gives in steps."""
    if not isinstance(one, str):
        cycle = Cycle.of_steps(length, float(one))
    elif seconds is None:
        raise InputError(
            f"{{parameter}} = {one!r} needs the times of the steps as dates; give times", parameter="period"
        )
    else:
        cycle = _of_calendar(one, seconds)
    if not _SHORTEST <= cycle.period <= length / _GIVEN:
        raise InputError(
            f"{{parameter}} = {one!r}: {cycle.period:.6g} steps of {length}; expected at least 2, and two periods in the series",
            parameter="period",
        )
    return cycle


def _of_calendar(name: str, seconds: np.ndarray) -> Cycle:
    """Return the cycle of days, weeks, months or years."""
    length = _SECONDS[name]
    steps = length / float(np.median(np.diff(seconds)))
    count = max(round(steps), 1)
    if name in ("day", "week"):
        return Cycle.of_fractions((seconds + _THURSDAY) % length / length, count, steps)
    starts = seconds.astype("datetime64[s]").astype(f"datetime64[{name[0].upper()}]")
    first, last = (some.astype("datetime64[s]").astype(np.float64) for some in (starts, starts + 1))
    return Cycle.of_fractions((seconds - first) / (last - first), count, steps)


def days_by_clock(values: np.ndarray, instants: np.ndarray, wall: np.ndarray) -> bool:
    """Return whether days of rows follow a clock that is set, shown at each row, and not the time that passed.

    The sun and what runs in UTC do not follow it; they have to describe the rows more cheaply than the clock and than no days.
    """

    def cost(seconds: np.ndarray) -> float:
        cycles = [_of_calendar(name, seconds) for name in ("day", "week")]
        known = [one for one in cycles if one.count > 1 and _GIVEN * one.period <= len(values)]
        return sum(min(criterion(column, own) for own in ([], *([one] for one in known))) for column in values.T)

    return cost(wall) <= cost(instants)


def _options(shorter: Sequence[Cycle], cycle: Cycle) -> list[Cycle]:
    """Return a cycle by its phases, by harmonics, and by one level for each shorter cycle within it."""
    options = [cycle, *cycle.smooth()]
    for one in shorter:
        parts = round(cycle.period / one.period)
        if 2 <= parts <= _MOST_PARTS and abs(parts * one.period - cycle.period) < one.period / 2:
            phases = np.minimum(cycle.phases * parts // cycle.count, parts - 1)
            options.append(Cycle(phases, parts, cycle.period))
    return options


def _found(column: np.ndarray, joint: float | None, seconds: np.ndarray | None) -> list[Cycle]:
    """Return the seasons of a column; `joint` is the period of all columns together."""
    n = len(column)
    periods = set(_of_means(column))
    if joint is not None and joint >= 3:
        periods |= {round(joint) + some for some in (-1, 0, 1)} | {_refined(_bridged(column), joint)}
    own = period_of_differences(column)
    whole = [Cycle.of_steps(n, period) for period in sorted(periods | ({own} if own else set()))]
    cycles = dict.fromkeys(whole, _FOUND)
    if seconds is not None:  # a day of the calendar is known beforehand; weeks beside it are tried below
        cycles |= {_of_calendar("day", seconds): _GIVEN, _of_calendar("week", seconds): _FOUND}
    whole = [one for one, least in cycles.items() if _SHORTEST <= one.period <= n / least and one.count > 1]
    options = [option for one in whole for option in [*_options([], one), *_levels(column, one)]]
    # A season that grows is no change; one that changes at once is seen by the scan of shapes, which keeps a found season.
    # Of two or three cycles it would describe everything.
    growing = [replace(one, growing=True) for one in options if one.period <= n / _FOUND]
    first = chosen_seasons(column, [[*options, *growing]], given=False)
    tried = [_with_a_week(column, first, seconds)]
    if seconds is not None and first and abs(first[0].period - _of_calendar("week", seconds).period) < 0.5:
        # A week explains more than a day alone, and often less, or with more coefficients, than a day with a level of each day.
        steps = _of_calendar("day", seconds).period
        day = chosen_seasons(column, [[one for one in options if abs(one.period - steps) < 0.5]], given=False)
        tried.append(_with_a_week(column, day, seconds))
    return min(tried, key=lambda cycles: criterion(column, cycles))


def _with_a_week(column: np.ndarray, found: list[Cycle], seconds: np.ndarray | None) -> list[Cycle]:
    """Return cycles with a week of the one that was found, if that describes the column more cheaply."""
    longer = _week_of(found, len(column), seconds)
    return found if longer is None else chosen_seasons(column, [found, _options(found, longer)], given=False)


def _levels(column: np.ndarray, cycle: Cycle) -> Iterator[Cycle]:
    """Yield a long cycle by the segments of the medians of its phases, as of machines that are on or off."""
    if cycle.count < _LONG_CYCLE or cycle.period * _FOUND > len(column):
        return
    # Medians over cycles, so that what happened in one of them, such as an incident, is no part of the season.
    number = np.cumsum(np.diff(cycle.phases, prepend=cycle.phases[0]) < 0)
    values = np.full((number[-1] + 1, cycle.count), np.nan)
    values[number, cycle.phases] = _bridged(column)
    medians = np.nanmedian(values, axis=0)
    found = segment(medians[:, None], degrees=(0,), most_lags=0).changes if np.ptp(medians) > 0.0 else ()
    if len(found):
        yield cycle.in_levels(tuple(int(step) for step in found))


def _week_of(found: Sequence[Cycle], length: int, seconds: np.ndarray | None) -> Cycle | None:
    """Return the cycle of seven of a single cycle, which is the week of a day; None if it does not occur often enough.

    A week of the calendar is known beforehand, and twice is enough; one that is guessed from the steps has to occur four times.
    """
    if len(found) != 1:
        return None
    days = seconds is not None and abs(found[0].period - _of_calendar("day", seconds).period) < 0.5
    if _DAYS * found[0].period > length / (_GIVEN if days else _FOUND):
        return None
    return (
        _of_calendar("week", seconds)
        if days and seconds is not None
        else Cycle.of_steps(length, _DAYS * found[0].period)
    )


def with_weeks(seasons: Seasons, values: np.ndarray, seconds: np.ndarray | None) -> Iterator[Seasons]:
    """Yield the seasons with a week beside the day of a column, even where it costs more: the cheapest, and levels of days."""
    days = [list(own[:1]) for own in seasons]
    longer = [_week_of(own, len(values), seconds) for own in days]
    if not any(longer):
        return
    columns = [*zip(values.T, days, longer, strict=True)]
    for last in (slice(None), slice(-1, None)):
        yield [
            own if week is None else chosen_seasons(column, [own, _options(own, week)[last]], given=True)
            for column, own, week in columns
        ]


def period_of_differences(column: np.ndarray) -> int | None:
    """Return the period whose phases explain most of the differences, which no level affects; None if not worth it."""
    steps = np.diff(column)
    known = ~np.isnan(steps)
    n, length = int(known.sum()), len(steps)
    if n < _FOUND:
        return None
    middle = float(np.median(steps[known]))
    most = _WILD * TO_SIGMA * float(np.median(np.abs(steps[known] - middle))) or np.inf
    steps = np.clip(steps, middle - most, middle + most)
    steps = np.where(known, steps - steps[known].mean(), 0.0)
    total = float(steps @ steps)
    longest = min(int((length + 1) / _FOUND), _LONGEST)
    if total <= 0.0 or longest < _SHORTEST:
        return None
    sums = np.fft.irfft(np.abs(np.fft.rfft(steps, 2 * length)) ** 2, 2 * length)[:length]
    periods = np.arange(int(_SHORTEST), longest + 1)
    explained = np.array([(sums[0] + 2.0 * sums[period::period].sum()) * period / n for period in periods])
    costs = n * np.log(np.maximum(1.0 - explained / total, 1e-12)) + (periods + 1.0) * np.log(n)
    best = int(costs.argmin())
    return int(periods[best]) if costs[best] < 0.0 else None


def _of_means(column: np.ndarray) -> Iterator[int]:
    """Yield the periods of differences of means over parts of a long column: single differences of slow cycles are noise."""
    column, width = _bridged(column), _WIDER
    while (count := len(column) // width) >= _FEWEST_PARTS:
        found = period_of_differences(column[: count * width].reshape(count, width).mean(axis=1))
        if found is not None and found >= _PARTS_OF_CYCLE:  # shorter ones are seen in shorter parts
            yield _refined(column, found * width)
        width *= _WIDER


def _refined(column: np.ndarray, period: float) -> int:
    """Return the whole number of steps near a period whose phases explain most of a column less its means over a period.

    Few long cycles say their period to some hundredths only, so that late cycles would be out of phase.
    """
    sums = np.concatenate([[0.0], np.cumsum(column)])
    length = round(period)
    rest = column[length // 2 :][: len(column) - length + 1] - (sums[length:] - sums[:-length]) / length
    best = period
    for reach, phases in _REACHES:
        tried = np.unique(np.round(best * np.linspace(1.0 - reach, 1.0 + reach, _TRIED)))
        costs = [_unexplained(rest, Cycle.of_steps(len(rest), one, min(int(one), phases))) for one in tried]
        best = float(tried[int(np.argmin(costs))])
    return int(best)


def _unexplained(rest: np.ndarray, cycle: Cycle) -> float:
    """Return minus the sum of squares that the means of phases explain."""
    sums, counts = np.bincount(cycle.phases, rest), np.bincount(cycle.phases)
    return -float((sums**2 / np.maximum(counts, 1)).sum())


def _bridged(column: np.ndarray) -> np.ndarray:
    known = ~np.isnan(column)
    return np.interp(np.arange(len(column)), np.flatnonzero(known), column[known])
