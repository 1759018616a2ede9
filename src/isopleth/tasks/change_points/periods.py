"""Periods of a series, found or given: numbers of steps, or days, weeks, months and years of its times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from isopleth.errors import InputError
from isopleth.tasks.change_points.scan import cycle_of
from isopleth.tasks.segmentation.seasons import Cycle, chosen_seasons

# Seconds of the calendar's periods on average.
_SECONDS = {"day": 86_400.0, "week": 604_800.0, "month": 2_629_746.0, "year": 31_556_952.0}
# 1970 began on a Thursday: seconds from a Monday to then.
_THURSDAY = 3 * 86_400.0
# Fewest cycles of a season that is found, and of one that is given; and fewest steps of a cycle.
_FOUND, _GIVEN, _SHORTEST = 4.0, 2.0, 2.0
# Days of a week, which is tried beside a season that was found.
_DAYS = 7
# Most parts of a period as which a shorter one repeats, for which the parts may differ in level only.
_MOST_PARTS = 31


def seasons_of(values: np.ndarray, period: Any, seconds: np.ndarray | None) -> list[Cycle]:
    """Return the seasons of a series: those that are given, or found where they describe it more cheaply.

    Parameters
    ----------
    values : ndarray of shape (T, d)
        The series; NaN is unknown.
    period : "auto", None, number, str or list of these
        The parameter of the detector.
    seconds : ndarray of shape (T,), optional
        Times of the steps.
    """
    if period is None:
        return []
    if isinstance(period, str) and period == "auto":
        return _found(values, seconds)
    given = [*period] if isinstance(period, (list, tuple, np.ndarray)) else [period]
    whole = sorted((_cycle(one, len(values), seconds) for one in given), key=lambda one: one.period)
    return chosen_seasons(values, [_options(whole[:i], cycle) for i, cycle in enumerate(whole)], given=True)


def check_period(period: Any) -> None:
    """Refuse what is no period."""
    if period is None or (isinstance(period, str) and period == "auto"):
        return
    given = [*period] if isinstance(period, (list, tuple, np.ndarray)) else [period]
    for one in given or [period]:
        known = one in _SECONDS if isinstance(one, str) else isinstance(one, Real) and float(one) >= _SHORTEST
        if not known or isinstance(one, bool):
            raise InputError(
                f"{{parameter}} = {one!r}: expected 'auto', None, a number of steps of at least 2, 'day', 'week', 'month' or "
                "'year', or a list of these",
                parameter="period",
            )


def _cycle(one: Any, length: int, seconds: np.ndarray | None) -> Cycle:
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
    length = _SECONDS[name]
    steps = length / float(np.median(np.diff(seconds)))
    count = max(round(steps), 1)
    if name in ("day", "week"):
        return Cycle.of_fractions((seconds + _THURSDAY) % length / length, count, steps)
    starts = seconds.astype("datetime64[s]").astype(f"datetime64[{name[0].upper()}]")
    first, last = (some.astype("datetime64[s]").astype(np.float64) for some in (starts, starts + 1))
    return Cycle.of_fractions((seconds - first) / (last - first), count, steps)


def _options(shorter: Sequence[Cycle], cycle: Cycle) -> list[Cycle]:
    """Return a cycle by its phases, by harmonics, and by one level for each shorter cycle within it."""
    options = [cycle, *cycle.smooth()]
    for one in shorter:
        parts = round(cycle.period / one.period)
        if 2 <= parts <= _MOST_PARTS and abs(parts * one.period - cycle.period) < one.period / 2:
            phases = np.minimum(cycle.phases * parts // cycle.count, parts - 1)
            options.append(Cycle(phases, parts, cycle.period))
    return options


def _found(values: np.ndarray, seconds: np.ndarray | None) -> list[Cycle]:
    n = len(values)
    cycle = cycle_of(np.column_stack([_bridged(column) for column in values.T]))
    whole = [Cycle.of_steps(n, round(cycle) + some) for some in (-1, 0, 1)] if cycle is not None and cycle >= 3 else []
    if seconds is not None:
        whole += [_of_calendar(name, seconds) for name in ("day", "week")]
    whole = [one for one in whole if 2 * _SHORTEST <= one.period <= n / _FOUND and one.count > 1]
    options = [option for one in whole for option in _options([], one)]
    # A season that grows is no change; one that changes at once is seen by the scan of shapes, which keeps a found season.
    first = chosen_seasons(values, [[*options, *(replace(one, growing=True) for one in options)]], given=False)
    if not first or _DAYS * first[0].period > n / _FOUND:
        return first
    longer = Cycle.of_steps(n, _DAYS * first[0].period)
    if seconds is not None and abs(first[0].period - _of_calendar("day", seconds).period) < 0.5:
        longer = _of_calendar("week", seconds)
    return chosen_seasons(values, [first, _options(first, longer)], given=False)


def _bridged(column: np.ndarray) -> np.ndarray:
    known = ~np.isnan(column)
    return np.interp(np.arange(len(column)), np.flatnonzero(known), column[known])
