"""Seasons and segments of a series together: a step hides seasons, and a wrong season looks like steps.

Where the first description has changes, seasons are sought again in what its segments leave, and in what segments of the series
with its seasons leave; a week is tried beside a day; cycles that differ from all others are left out of the means of phases; and
a season may have another size in each long segment. An alternative is taken if it costs less and has no more changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from isopleth.core.progress import unheard
from isopleth.tasks.changes.description_length import Description, cleaned, or_shocks, segments_of, varying_roots
from isopleth.tasks.changes.periods import Seasons, lines_of, seasonal, seasons_of, with_weeks
from isopleth.tasks.changes.preparation import TO_SIGMA, filled_gaps
from isopleth.tasks.changes.segments import STABLE, rounding_variance

# Time of a search in a progress bar, in descriptions of the series: as many as it takes where steps and seasons hide each other.
TIME = 40
# Range of what a season leaves, relative to that of the series, which is rounding.
_ROUNDING = 1e-9
# Times that seasons and segments are fitted in turn.
_ROUNDS = 2
# Robust standard deviations beyond which steps are left out of the means of phases, and times that this is done.
_WILD, _TRIMMED = 3.5, 3
# Cycles of a segment in which a season may have a size of its own, most such bounds, least size that shows the shape of a season,
# and fewest rows of a segment.
_CYCLES, _MOST_BOUNDS, _TOO_SMALL, _LEAST_ROWS = 2.0, 4, 0.2, 8
# Largest share of a series of a stretch that is left out of its season, most stretches that are, and fewest that are compared.
_SHORT, _MOST_STRETCHES, _STRETCHES = 0.1, 3, 2


@dataclass(frozen=True, eq=False)
class Seasonal:
    """Seasons of a series, and the segments of what they leave."""

    seasons: Seasons
    season: np.ndarray  # (n, d): sum of the seasons of each column
    rest: np.ndarray  # (n, d): the series without them, gaps filled, around 0
    found: Description  # of the rest
    cost: float  # twice the length of the description and of the seasons in nats

    @cached_property
    def or_shocks(self) -> Seasonal:
        """Same fit, or one without changes if heavy-tailed shocks describe what is left more cheaply than these."""
        found = or_shocks(self.found)
        return (
            self if found is self.found else replace(self, found=found, cost=self.cost + found.cost - self.found.cost)
        )

    @property
    def lines(self) -> np.ndarray:
        """Constants or lines of the segments."""
        return lines_of(self.rest, self.found.location)

    @property
    def changes(self) -> int:
        """Number of changes of level and slope."""
        return len(self.found.location.changes)


@dataclass(frozen=True, eq=False)
class SeasonSearch:
    """Cells of a series, NaN where unknown, in which seasons and segments are sought together."""

    cells: np.ndarray
    seconds: np.ndarray | None
    rng: np.random.Generator
    tick: Callable[[int], None] = unheard

    def fitted(self, seasons: Seasons, season: np.ndarray, freedom: int = 0) -> Iterator[Seasonal]:
        """Yield the description of what a season leaves by segments, if that is more than rounding.

        `freedom` is the number of coefficients of the season beyond those of the cycles.
        """
        rest = np.column_stack([filled_gaps(column, self.rng) for column in (self.cells - season).T])
        extents = np.nanmax(self.cells, axis=0) - np.nanmin(self.cells, axis=0)
        if (np.ptp(rest, axis=0) <= _ROUNDING * extents).any():
            return
        rest = rest - rest.mean(axis=0)
        found = segments_of(rest, floors=self.floors)
        self.tick(1)
        freedom += sum(cycle.freedom for cycles in seasons for cycle in cycles)
        yield Seasonal(seasons, season, rest, found, found.cost + freedom * float(np.log(len(rest))))

    def best(self, first: Seasonal) -> Seasonal:
        """Return the cheapest of the alternatives that have no more changes than `first`, or `first`."""
        if not first.changes or not varying_roots(first.found.innovations).size:  # without noise, rounding has seasons
            return first
        best = _best_of(first, self._sized(first), first.changes)
        for seasons, lines in self._others(first):
            for _ in range(_ROUNDS):
                fits = [*self.fitted(seasons, seasonal(self.cells - lines, seasons))]
                every = (one for fit in fits for one in (fit, *self._sized(fit)))
                found = _best_of(best, every, first.changes)
                if found is best:
                    break
                best, lines = found, fits[0].or_shocks.lines
        best = _best_of(best, self._plain, first.changes) if any(first.seasons) else best
        best = _best_of(best, self._without_far_cells(best), first.changes)
        out = np.zeros(len(self.cells), dtype=bool)
        for _ in range(_MOST_STRETCHES):
            found = _best_of(best, self._without_stretch(best, out), best.changes)
            if found is best:
                break
            best = found
        return best

    def _others(self, first: Seasonal) -> Iterator[tuple[Seasons, np.ndarray]]:
        """Yield seasons other than those of `first`, with the lines beside which they were found."""
        seen = {_key(first.seasons)}
        for lines in self._lines(first):
            cells = self.cells - lines
            seasons = seasons_of(cells, "auto", self.seconds)
            self.tick(1)
            for one in (seasons, *with_weeks(seasons, cells, self.seconds)):
                if any(one) and _key(one) not in seen:
                    seen.add(_key(one))
                    yield one, lines

    def _lines(self, first: Seasonal) -> Iterator[np.ndarray]:
        """Yield the lines of the segments, of the strongest change alone, and of the segments of the series with its seasons."""
        yield first.lines
        if first.changes > 1:
            yield _strongest(first.rest, first.found.location.changes)
        if not any(first.seasons):  # its segments are those of the series
            return
        for plain in self._plain:
            yield plain.or_shocks.lines

    @cached_property
    def _plain(self) -> list[Seasonal]:
        """Fit without seasons, if the series is more than rounding."""
        return [*self.fitted([[]] * self.cells.shape[1], np.zeros_like(self.cells))]

    @cached_property
    def floors(self) -> np.ndarray | None:
        """Variances of the rounding errors of the series, which no longer stands on its steps without a season.

        They are those of each fit if cells are missing: what fills these stands on no steps.
        """
        return None if np.isnan(self.cells).any() else rounding_variance(cleaned(self.cells).T)

    def _without_far_cells(self, best: Seasonal) -> Iterator[Seasonal]:
        """Yield the fit in which cells far from the season do not count in the means of phases; none without changes."""
        if not any(best.seasons) or not best.changes:
            return
        cells = self.cells - best.lines
        season = best.season
        for _ in range(_TRIMMED):
            off = np.abs(cells - season)
            far = off > _WILD * TO_SIGMA * np.nanmedian(off, axis=0)
            season = seasonal(np.where(far, np.nan, cells), best.seasons)
        yield from self.fitted(best.seasons, season)

    def _without_stretch(self, best: Seasonal, out: np.ndarray) -> Iterator[Seasonal]:
        """Yield the fit in which the strongest stretch between two changes is not in the means of phases, as those `out` are not.

        A day off in five weeks lowers the mean of its weekday by a fifth, so that the other four look like days of more.
        """
        stretch = _strongest_stretch(best, out)
        if not any(best.seasons) or stretch is None:
            return
        out[stretch] = True
        cells = np.where(out[:, None], np.nan, self.cells)
        lines = np.zeros_like(cells)
        for _ in range(_ROUNDS):
            fits = [*self.fitted(best.seasons, seasonal(cells - lines, best.seasons))]
            yield from fits
            lines = fits[0].lines if fits else lines

    def _sized(self, best: Seasonal) -> Iterator[Seasonal]:
        """Yield the fit in which the season has sizes of its own between some of the changes, if any."""
        if not any(best.seasons) or not best.changes:
            return
        shortest = min(cycle.period for cycles in best.seasons for cycle in cycles)
        lines, season = best.lines, best.season
        for _ in range(_ROUNDS):
            parts = [
                SizedSeason.of(column, wave, best.found.location.changes, _CYCLES * shortest)
                for column, wave in zip(self.cells.T, season.T, strict=True)
            ]
            if all(len(part.bounds) < 3 for part in parts):
                return
            sizes, lines = (np.column_stack([getattr(part, name) for part in parts]) for name in ("sizes", "levels"))
            # Means of phases in units of the first segment; a small season says little about its shape.
            units = np.where(np.abs(sizes) > _TOO_SMALL, sizes, np.nan)
            season = seasonal((self.cells - lines) / units, best.seasons)
        yield from self.fitted(best.seasons, season * sizes, sum(2 * (len(part.bounds) - 2) for part in parts))


@dataclass(frozen=True, eq=False)
class SizedSeason:
    """Season of a column that has a size and a level of its own between bounds."""

    bounds: list[int]
    sizes: np.ndarray  # (n,): 1 in the longest segment; 0 where there is no season
    levels: np.ndarray  # (n,)

    @classmethod
    def of(cls, column: np.ndarray, wave: np.ndarray, places: np.ndarray, least: float) -> SizedSeason:
        """Choose bounds among places, at least `least` steps apart, one after the other while that lowers the cost."""
        n, bounds = len(column), [0, len(column)]

        @cache
        def fit(start: int, end: int) -> _SizeFit:
            return _fit_of_size(column[start:end], wave[start:end])

        cost, fits = _cost_of_sizes(fit, bounds)
        while len(bounds) <= _MOST_BOUNDS:
            options = [
                sorted([*bounds, int(place)]) for place in places if min(abs(place - b) for b in bounds) >= least
            ]
            tried = [(*_cost_of_sizes(fit, option), option) for option in options]
            best = min(tried, key=lambda one: one[0], default=None)
            if best is None or best[0] >= cost:
                break
            cost, fits, bounds = best
        lengths = np.diff(bounds)
        unit = fits[int(lengths.argmax())][1] or 1.0
        levels, sizes = (np.repeat([fit[i] for fit in fits], lengths) for i in (0, 1))
        return cls(bounds, sizes / unit if n else sizes, levels)


# Sum of squared prediction errors, their number, the level and the size of a season in a segment.
_SizeFit = tuple[float, int, float, float]


def _cost_of_sizes(
    fit: Callable[[int, int], _SizeFit], bounds: Sequence[int]
) -> tuple[float, list[tuple[float, float]]]:
    """Return the BIC of a season with a level and a size, 1 or 0 or free, in each segment, and these."""
    squares, count, fits, freedom = 0.0, 0, [], 0
    for start, end in pairwise(bounds):
        square, rows, level, size = fit(start, end)
        squares, count, freedom = squares + square, count + rows, freedom + 2
        fits.append((level, size))
    length = bounds[-1]
    return count * float(np.log(max(squares, 1e-300))) + (freedom + 2 * len(bounds)) * float(np.log(length)), fits


def _fit_of_size(column: np.ndarray, wave: np.ndarray) -> _SizeFit:
    """Return the sum of squared prediction errors, their number, the level and the size of a season in a segment."""
    known = ~np.isnan(column)
    y, x = column[known], wave[known]
    if len(y) < _LEAST_ROWS:
        return 0.0, 0, 0.0, 1.0
    around, turned = y - y.mean(), x - x.mean()
    power = float(turned @ turned)
    phi = (
        _lag_1_autocorrelation(around - turned * float(turned @ around) / power)
        if power > 0.0
        else _lag_1_autocorrelation(around)
    )
    after, of_wave = around[1:] - phi * around[:-1], turned[1:] - phi * turned[:-1]
    after, of_wave = after - after.mean(), of_wave - of_wave.mean()
    power = float(of_wave @ of_wave)
    size = float(of_wave @ after) / power if power > 0.0 else 1.0
    # Within two standard errors of 0 there is no season.
    left = float(np.sum((after - size * of_wave) ** 2))
    if power > 0.0 and size**2 * power <= 4.0 * left / len(after):
        size, left = 0.0, float(after @ after)
    return left, len(after), float(y.mean() - size * x.mean()), size


def _best_of(best: Seasonal, fits: Iterable[Seasonal], most: int) -> Seasonal:
    """Return the cheapest fit that has at most so many changes, which the one before has.

    Shocks take long to compare. They cost more than the segments that they replace, so they need not be compared with those of a
    fit that is dearer already.
    """
    for fit in fits:
        if fit.cost < best.cost:
            judged = fit.or_shocks
            if judged.changes <= most and judged.cost < best.cost:
                best = judged
    return best


def _strongest(rest: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the means before and after that of the places whose step explains most, in units of the columns."""
    spread = np.maximum(rest.std(axis=0), 1e-300)
    sums = np.cumsum((rest - rest.mean(axis=0)) / spread, axis=0)[places - 1]
    explained = np.sum(sums**2, axis=1) / (places * (len(rest) - places))
    place = int(places[explained.argmax()])
    means = np.array([rest[:place].mean(axis=0), rest[place:].mean(axis=0)])
    return np.repeat(means, [place, len(rest) - place], axis=0)


def _strongest_stretch(fit: Seasonal, out: np.ndarray) -> slice | None:
    """Return the short stretch between two changes that is farthest from what is beside it, of those that are not `out` yet.

    There is none with fewer than four changes: what a stretch adds to its phases elsewhere has two more.
    """
    places = fit.found.location.changes.tolist()
    if len(places) < 2 * _STRETCHES:
        return None
    bounds, strongest, found = [0, *places, len(out)], 0.0, None
    means = np.array([fit.rest[start:end].mean(axis=0) for start, end in pairwise(bounds)])
    means = means / np.maximum(fit.rest.std(axis=0), 1e-300)
    for i, (start, end) in enumerate(pairwise(places), start=1):
        height = np.abs(means[i] - 0.5 * (means[i - 1] + means[i + 1])).max()
        strength = float(height) * (end - start) ** 0.5
        if strength > strongest and end - start <= _SHORT * len(out) and not out[start:end].any():
            strongest, found = strength, slice(start, end)
    return found


def _key(seasons: Seasons) -> tuple[Any, ...]:
    """Return what tells seasons apart."""
    return tuple(
        tuple((round(c.period, 6), c.count, c.harmonics, c.growing, c.edges) for c in cycles) for cycles in seasons
    )


def _lag_1_autocorrelation(rest: np.ndarray) -> float:
    """Return the lag-1 autocorrelation."""
    power = float(rest @ rest)
    return float(np.clip(rest[1:] @ rest[:-1] / power, -STABLE, STABLE)) if power > 0.0 else 0.0
