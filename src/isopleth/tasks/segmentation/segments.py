"""Segments of a series at the least total cost, found by dynamic programming: a constant or a line plus autoregressive noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.operators.threads import slices
from isopleth.tasks.segmentation.costs import Noise, SegmentCosts, fitted_noise

# Places that dynamic programming compares. The changes found are then moved to their best places among all.
MOST_PLACES = 200
# Steps of a series beyond which fewer places and starts are tried, to save time.
LONG = 5000
# Variances of the innovations for which segments are searched, relative to the variance without changes.
_LEVELS = np.geomspace(1.0, 1e-3, 10)
# Most passes over the changes when they are moved, and number of segmentations for which this is done.
_SWEEPS, _FEW = 6, 3
# Starts and ends of all segments, and of those of which one change is removed.
_WITHOUT_EACH = (slice(None, -1), slice(None, -2)), (slice(1, None), slice(2, None))
# Numbers that are computed together, so that they stay in the cache of the processor.
_AT_ONCE = 2**16


def _added(to: Any, terms: np.ndarray) -> Any:
    """Add `terms` one by one, so that the sum over several columns has the same bits as adding the columns in turn."""
    for term in terms:
        to = to + term
    return to


class SegmentationSearch:
    """Search for the segmentation of least cost under given noise."""

    def __init__(self, costs: SegmentCosts, shortest: int, surcharge: float = 0.0, moving: int | None = None) -> None:
        self.costs, self.shortest = costs, shortest
        self.n = costs.n
        self._moving = self.n if moving is None else moving
        self.per_change = 2.0 * float(np.log(self.n)) + surcharge
        self._fixed = sum(noise.order for noise in costs.noises) * float(np.log(self.n))

    def _freedom(self, segments: int) -> int:
        """Return the residual degrees of freedom of each column."""
        return self._moving - self.costs.coefficients * segments

    def _without_data(self, changes: int) -> float:
        """Return the cost of the changes and of the noise, which does not depend on the data."""
        return (changes * self.per_change if changes else 0.0) + self._fixed

    def total(self, bounds: np.ndarray) -> float:
        """Return the cost of a segmentation at the best variances; infinite without residual degrees of freedom."""
        rss, cost = self.costs.parts(bounds[:-1], bounds[1:])
        return float(self._total(rss.sum(axis=1), cost.sum(axis=1), len(bounds) - 1))

    def best_change(self) -> tuple[np.ndarray, float]:
        """Return the bounds and the cost of the best segmentation with one change; an infinite cost if there is none."""
        place = np.arange(self.shortest, self.n - self.shortest + 1)
        freedom = self._freedom(2)
        if not len(place) or freedom < 1:
            return np.array([0, self.n]), float("inf")
        before, cost_before = self.costs.parts(np.array([0]), place)
        after, cost_after = self.costs.parts(place, np.array([self.n]))
        costs = freedom * (np.log((before + after) / freedom) + 1.0) + cost_before + cost_after
        total = _added(self._without_data(1), costs)
        best = int(total.argmin())
        return np.array([0, place[best], self.n]), float(total[best])

    def gain_of_one_change(self) -> float:
        """Return the saving of the best single change; negative if there is none."""
        return self.total(np.array([0, self.n])) - self.best_change()[1]

    def of_segments(self, start: np.ndarray, end: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Return the costs of segments for each row of `variances` of shape (k, d)."""
        rss, cost = self.costs.parts(start, end)
        logs = self.costs.coefficients * np.log(variances)
        out = np.zeros((len(variances), rss.shape[1]))
        for some in slices(len(rss), _AT_ONCE // out.size):
            terms = rss[some, None] / variances.T[some, :, None]
            terms += cost[some, None]
            terms -= logs.T[some, :, None]
            out = _added(out, terms)
        return out

    def cheapest(self, places: np.ndarray, variances: np.ndarray) -> list[np.ndarray]:
        """Find the cheapest segmentation with changes at some of `places` for each row of `variances`."""
        rows = np.arange(len(variances))
        best = np.full((len(variances), len(places)), np.inf)
        best[:, 0] = -self.per_change
        before = np.zeros(best.shape, dtype=np.intp)
        lasts = np.searchsorted(places, places - self.shortest, side="right")
        lasts[0] = 0
        ends = np.flatnonzero(lasts)
        # The segments that end at many places are computed in one call, which for one place would take longer than its numbers.
        calls = np.cumsum(lasts[ends]) // max(1, _AT_ONCE // (len(variances) * len(self.costs.noises)))
        for some in np.split(ends, np.flatnonzero(np.diff(calls)) + 1) if len(ends) else []:
            start = np.concatenate([places[:last] for last in lasts[some]])
            costs = self.of_segments(start, np.repeat(places[some], lasts[some]), variances)
            for j, own in zip(some, np.split(costs, np.cumsum(lasts[some])[:-1], axis=1), strict=True):
                total = best[:, : lasts[j]] + own + self.per_change
                before[:, j] = total.argmin(axis=1)
                best[:, j] = total[rows, before[:, j]]
        return [places[_path(previous)] for previous in before]

    def refined(self, bounds: np.ndarray) -> np.ndarray:
        """Move each change to its best place between its neighbours, and remove changes where that lowers the cost."""
        for _ in range(_SWEEPS):
            moved = self._moved(bounds)
            shorter = self._without_superfluous(moved)
            if np.array_equal(shorter, bounds):
                break
            bounds = shorter
        return bounds

    def _moved(self, bounds: np.ndarray) -> np.ndarray:
        out = bounds.copy()
        rss, _ = self.costs.parts(bounds[:-1], bounds[1:])
        variance = rss.sum(axis=1)[None] / max(1, self._freedom(len(bounds) - 1))
        # In a long series, trying all places between distant neighbours would take too long.
        reach = self.n if self.n <= LONG else 2 * -(-self.n // MOST_PLACES)
        for j in range(1, len(out) - 1):
            low = max(out[j - 1] + self.shortest, out[j] - reach)
            high = min(out[j + 1] - self.shortest, out[j] + reach)
            place = np.arange(low, high + 1)
            # Segments on both sides in one call, which takes longer than its numbers.
            start = np.concatenate([np.full(len(place), out[j - 1]), place])
            end = np.concatenate([place, np.full(len(place), out[j + 1])])
            cost = self.of_segments(start, end, variance)[0].reshape(2, -1).sum(axis=0)
            if cost.min() < cost[out[j] - low]:
                out[j] = place[cost.argmin()]
        return out

    def _without_superfluous(self, bounds: np.ndarray) -> np.ndarray:
        while len(bounds) > 2:
            total, totals = self.totals_without_each(bounds)
            if totals.min() > total:
                break
            bounds = np.delete(bounds, 1 + int(totals.argmin()))
        return bounds

    def totals_without_each(self, bounds: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the cost of a segmentation, and the costs of those without one of its changes, for each of them."""
        m = len(bounds) - 1
        start, end = (np.concatenate([bounds[some], bounds[two]]) for some, two in _WITHOUT_EACH)
        rss, cost = self.costs.parts(start, end)
        (rss, merged_rss), (cost, merged_cost) = ((part[:, :m], part[:, m:]) for part in (rss, cost))
        total = self._total(rss.sum(axis=1), cost.sum(axis=1), m)
        left = rss.sum(axis=1)[:, None] - rss[:, :-1] - rss[:, 1:] + merged_rss
        costs = cost.sum(axis=1)[:, None] - cost[:, :-1] - cost[:, 1:] + merged_cost
        return float(total), np.asarray(self._total(left, costs, m - 1))

    def _total(self, rss: np.ndarray, cost: np.ndarray, segments: int) -> Any:
        """Return the cost by the sums of all segments of each column, which come first."""
        freedom = self._freedom(segments)
        if freedom < 1:
            return np.full(rss.shape[1:], np.inf)
        return _added(self._without_data(segments - 1), freedom * (np.log(rss / freedom) + 1.0) + cost)

    def best(self, most_places: int) -> tuple[np.ndarray, float]:
        """Return the cheapest segmentation found and its cost; one segment if `surcharge` is infinite."""
        whole = np.array([0, self.n])
        if not np.isfinite(self.per_change):
            return whole, self.total(whole)
        step = -(-self.n // most_places)
        places = np.append(np.arange(0, self.n - self.shortest + 1, step), self.n)
        variance = self.costs.parts(whole[:1], whole[1:])[0][:, 0] / self.n
        found = self.cheapest(places, variance * _LEVELS[:, None])
        distinct = {tuple(bounds): bounds for bounds in found}
        few = sorted(distinct.values(), key=self.total)[:_FEW]
        candidates = [whole, *(self.refined(bounds) for bounds in few)]
        totals = [self.total(bounds) for bounds in candidates]
        return candidates[int(np.argmin(totals))], min(totals)


def _path(before: np.ndarray) -> list[int]:
    path = [len(before) - 1]
    while path[-1] > 0:
        path.append(int(before[path[-1]]))
    return path[::-1]


# Lag-1 autocorrelations from which noise and segments are fitted in turn. The noise of a fit without changes is another start.
STARTS = (0.0, 0.5, 0.9)
# Longest series in which the search is repeated over all places, under the chosen noise.
_FINE = 1000
# Most alternations of noise and segments from one start.
_ROUNDS = 3
# Innovations whose variance is below this share of the variance of rounding errors count as 0.
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Segments of a series."""

    bounds: np.ndarray  # (m + 2,): 0, the first steps of new segments, and the length of the series
    degree: int  # whether segments are constants (0) or lines (1)
    noises: tuple[Noise, ...]  # noise of each column
    # (n, d): prediction errors, given the line of the segment and the past, over their standard deviation
    innovations: np.ndarray
    extents: np.ndarray  # (d,): ranges of the columns over the standard deviations of their innovations
    cost: float  # twice the length of the description in nats
    gains: np.ndarray  # (m,): twice the nats by which each change shortens the description, without the surcharge

    @property
    def changes(self) -> np.ndarray:
        """First steps of new segments."""
        return self.bounds[1:-1]


def segment(
    values: np.ndarray,
    *,
    degrees: Iterable[int] = (0, 1),
    most_lags: int = 2,
    shortest: int = 0,
    precision: np.ndarray | None = None,
    surcharge: float = 0.0,
    moving: int | None = None,
) -> Segmentation:
    """Find the cheapest segments over degrees and noises, from several starts, as changes and correlation look alike."""
    n, dim = values.shape
    weights = np.ones(n) if precision is None else precision
    scale = values.std(axis=0)
    z = (values - values.mean(axis=0)) / scale
    lags = min(most_lags, n // 10)
    best: tuple[float, np.ndarray, SegmentationSearch] | None = None
    for degree in degrees:
        least = max(shortest, lags + degree + 3)
        tried: set[tuple[Noise, ...]] = set()
        for noises in _starting_noises(z, degree, weights, lags):
            for _ in range(_ROUNDS):
                rounded = tuple(Noise(tuple(round(r, 2) for r in noise.reflections)) for noise in noises)
                if rounded in tried:
                    break
                tried.add(rounded)
                costs = SegmentCosts(z, noises, degree, weights)
                search = SegmentationSearch(costs, least, surcharge, moving)
                bounds, cost = search.best(MOST_PLACES)
                if best is None or cost < best[0]:
                    best = cost, bounds, search
                noises = _fitted(costs, bounds, weights, lags)
    assert best is not None
    cost, bounds, search = best
    if MOST_PLACES < n <= _FINE:
        bounds, cost = min((bounds, cost), search.best(_FINE), key=lambda found: found[1])
    costs = search.costs
    left = [
        noise.innovations(own, bounds) * weights
        for noise, own in zip(costs.noises, costs.residuals(bounds), strict=True)
    ]
    spreads = np.array([_spread(one, floor) for one, floor in zip(left, costs.floors, strict=True)])
    innovations = np.column_stack(left) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.zeros(dim))
    extents = np.ptp(z, axis=0) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.ones(dim))
    units = 2.0 * n * np.log(scale).sum() - 2.0 * dim * np.log(weights).sum()
    total, without_each = search.totals_without_each(bounds) if len(bounds) > 2 else (0.0, np.empty(0))
    gains = without_each - total + surcharge
    return Segmentation(bounds, costs.degree, costs.noises, innovations, extents, cost + float(units), gains)


def _spread(innovations: np.ndarray, floor: float) -> float:
    """Return the root mean square of innovations, or 0 if they are rounding errors."""
    square = float(np.mean(innovations**2))
    return float(np.sqrt(square)) if square > _NOTHING * floor else 0.0


def _fitted(costs: SegmentCosts, bounds: np.ndarray, weights: np.ndarray, lags: int) -> tuple[Noise, ...]:
    return tuple(fitted_noise(own, bounds, lags) for own in costs.residuals(bounds) * weights)


def _starting_noises(z: np.ndarray, degree: int, weights: np.ndarray, lags: int) -> list[tuple[Noise, ...]]:
    dim = z.shape[1]
    white = (Noise(),) * dim
    if not lags:
        return [white]
    unbroken = _fitted(SegmentCosts(z, white, degree, weights), np.array([0, len(z)]), weights, lags)
    # A long series determines its noise well, so one start is enough.
    starts = STARTS if len(z) <= LONG else STARTS[:1]
    return [*((Noise((start,) if start else ()),) * dim for start in starts), unbroken]
