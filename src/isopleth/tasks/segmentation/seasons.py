"""Seasons of a series, one or several, as means of phases that are fitted together with segments of level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from isopleth.tasks.segmentation.costs import STABLE, rounding_variance
from isopleth.tasks.segmentation.description_length import describe
from isopleth.tasks.segmentation.segments import Segmentation

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

    @property
    def freedom(self) -> int:
        """Number of coefficients."""
        return (2 * self.harmonics or self.count) * (1 + self.growing)

    @classmethod
    def of_fractions(cls, fractions: np.ndarray, count: int, period: float) -> Cycle:
        """Return the cycle in which each step is at this fraction, from 0 to 1."""
        return cls(np.minimum((fractions * count + 1e-6).astype(np.intp), count - 1), count, period)

    @classmethod
    def of_steps(cls, length: int, period: float, count: int | None = None) -> Cycle:
        """Return the cycle of `period` steps, with a phase for each step of it by default."""
        return cls.of_fractions(np.arange(length) / period % 1.0, count or max(round(period), 2), period)

    def over(self, length: int) -> Cycle:
        """Return the cycle of another series of steps."""
        return replace(self.of_steps(length, self.period, self.count), harmonics=self.harmonics, growing=self.growing)

    def smooth(self) -> list[Cycle]:
        """Return the cycle with fewer and fewer harmonics."""
        return [replace(self, harmonics=some) for some in HARMONICS if 2 * some < self.count]


def seasonal(values: np.ndarray, cycles: Sequence[Cycle]) -> np.ndarray:
    """Return the sum of the seasons of each column, which may hold NaN: means of phases around 0."""
    parts = np.zeros((len(cycles), *values.shape))
    for _ in range(_PASSES if len(cycles) > 1 else 1):
        for i, cycle in enumerate(cycles):
            rest = values - (parts.sum(axis=0) - parts[i])
            parts[i] = np.column_stack([_means(column, cycle) for column in rest.T])
    return np.asarray(parts.sum(axis=0))


def _means(column: np.ndarray, cycle: Cycle) -> np.ndarray:
    known = ~np.isnan(column)
    phases = cycle.phases[known]
    counts = np.bincount(phases, minlength=cycle.count)
    rest = column[known] - column[known].mean()

    def mean(values: np.ndarray) -> np.ndarray:
        return np.bincount(phases, values, cycle.count) / np.maximum(counts, 1)

    def season(of_phases: np.ndarray) -> np.ndarray:
        out = of_phases - of_phases[counts > 0].mean()
        if cycle.harmonics:
            waves = np.fft.rfft(out)
            waves[cycle.harmonics + 1 :] = 0.0
            out = np.fft.irfft(waves, cycle.count)
        return np.asarray(out)

    if not cycle.growing:
        return np.asarray(season(mean(rest))[cycle.phases])
    time = np.linspace(-1.0, 1.0, len(column))
    apart = time[known] - mean(time[known])[phases]
    slopes = season(mean(apart * rest) / np.maximum(mean(apart**2), 1e-12))[cycle.phases] * time
    return np.asarray(slopes + season(mean(rest - slopes[known]))[cycle.phases])


def criterion(values: np.ndarray, cycles: Sequence[Cycle]) -> float:
    """Return the Bayesian information criterion of seasons with autoregressive errors, which few steps of level hardly raise."""
    rest = values - seasonal(values, cycles)
    total = 0.0
    for column, floor in zip(rest.T, rounding_variance(np.nan_to_num(rest.T)), strict=True):
        column = column - np.nanmean(column)
        known = ~np.isnan(column[1:]) & ~np.isnan(column[:-1])
        before, after = column[:-1][known], column[1:][known]
        phi = float(np.clip(after @ before / max(float(before @ before), 1e-300), -STABLE, STABLE))
        total += len(after) * np.log(float(np.mean((after - phi * before) ** 2)) + floor + 1e-300)
    return total + values.shape[1] * sum(cycle.freedom for cycle in cycles) * float(np.log(len(values)))


def chosen_seasons(values: np.ndarray, groups: Sequence[Sequence[Cycle]], given: bool) -> list[Cycle]:
    """Choose one cycle of each group in turn by the criterion; none of a group is possible unless they are `given`."""
    chosen: list[Cycle] = []
    cost = criterion(values, chosen)
    for group in groups:
        costs = [criterion(values, [*chosen, cycle]) for cycle in group]
        best = int(np.argmin(costs)) if group else -1
        if group and (given or costs[best] < cost):
            chosen.append(group[best])
            cost = costs[best]
    return chosen


def season_beside_levels(
    values: np.ndarray, cycles: Sequence[Cycle], fill: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the seasons of `values`, which may hold NaN, fitted to what segments of level and slope leave.

    The segments are those of the series without the seasons that the whole series has. `fill` fills gaps.
    """
    rest = fill(values - seasonal(values, cycles))
    if (np.ptp(rest, axis=0) <= 0.0).any():
        return seasonal(values, cycles)
    return seasonal(values - lines_of(rest, describe(rest).location), cycles)


def lines_of(values: np.ndarray, location: Segmentation) -> np.ndarray:
    """Return the least-squares constant or line of each segment."""
    lines = np.empty_like(values)
    for start, end in pairwise(location.bounds):
        time = np.linspace(-1.0, 1.0, end - start)
        design = np.column_stack([np.ones(end - start), time][: 1 + location.degree])
        lines[start:end] = design @ np.linalg.lstsq(design, values[start:end], rcond=None)[0]
    return lines
