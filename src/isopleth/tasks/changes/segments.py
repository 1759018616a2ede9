"""Segments of a series at the least total cost, exact likelihoods under autoregressive noise, found by dynamic programming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from isopleth.core.threads import slices

# Largest absolute reflection coefficient: closer to 1, rounding errors exceed the variance of the innovations.
STABLE = 0.999
_LOG_TWO_PI = float(np.log(2.0 * np.pi))
# Smallest variance of time in a segment, in units of its squared length; smaller ones are rounding errors of cumulative sums.
_LEAST_SPREAD = 1e-4
# Variance that counts as rounding, as a share of the variance of the column. Without it, the likelihood of a constant stretch
# would be infinite.
_RELATIVE_FLOOR = 1e-8
# Difference as a share of the range below which two values count as equal: their rounding errors may differ.
_TINY = 1e-9


@dataclass(frozen=True)
class Noise:
    r"""Stationary autoregressive process :math:`x_t = \sum_i a_i x_{t-i} + \varepsilon_t`, given by reflection coefficients."""

    reflections: tuple[float, ...] = ()  # partial autocorrelations at lags 1, 2, ..., each between -1 and 1

    @property
    def order(self) -> int:
        return len(self.reflections)

    @cached_property
    def predictors(self) -> list[np.ndarray]:
        """Filters (1, -a_1, ..., -a_i) that give the error of a prediction from the last i values, for i = 0 to the order."""
        filters = [np.ones(1)]
        for reflection in self.reflections:
            longer = np.append(filters[-1], 0.0)
            filters.append(longer - reflection * longer[::-1])
        return filters

    @cached_property
    def variances(self) -> np.ndarray:
        """Variances of predictions from i = 0 to `order` values, divided by that of the innovations."""
        remaining = np.cumprod([1.0, *(1.0 - reflection**2 for reflection in self.reflections)])
        return np.asarray(remaining / remaining[-1])

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant of the covariance of a segment, in units of the innovations' variance."""
        return float(np.log(self.variances[:-1]).sum())

    def innovations(self, residuals: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Return the prediction errors within each segment, scaled to equal variance."""
        out = np.empty(len(residuals))
        for start, end in pairwise(bounds):
            own = residuals[start:end]
            left = np.convolve(self.predictors[-1], own)[: len(own)]
            for i in range(min(self.order, len(own))):
                left[i] = self.predictors[i] @ own[i::-1] / np.sqrt(self.variances[i])
            out[start:end] = left
        return out

    def series(self, innovations: np.ndarray) -> np.ndarray:
        """Return a stationary series with these innovations."""
        out = innovations.copy()
        if self.order:  # the first values have no past: they follow the stationary distribution
            for i in range(min(self.order, len(out))):
                past = self.predictors[i][1:] @ out[i - 1 :: -1][:i] if i else 0.0
                out[i] = innovations[i] * np.sqrt(self.variances[i]) - past
            state = [
                -self.predictors[-1][j + 1 :] @ out[self.order - 1 :: -1][: self.order - j] for j in range(self.order)
            ]
            out[self.order :] = filtered([1.0], self.predictors[-1], innovations[self.order :], state)
        return out


def fitted_noises(residuals: np.ndarray, bounds: np.ndarray, most: int, stable: float = STABLE) -> tuple[Noise, ...]:
    """Estimate the noise of each row by Burg's method from pairs within segments; the order up to `most` minimises the BIC.

    Reflection coefficients are at most `stable` in size.
    """
    rows, n = residuals.shape
    position = np.arange(n) - np.repeat(bounds[:-1], np.diff(bounds))
    forward = backward = residuals
    found, criterion, best = [], np.zeros(rows), np.zeros(rows)
    order = np.zeros(rows, dtype=int)
    for lag in range(1, most + 1):
        # Pairs that a bound parts are 0 from here on.
        inside = position[lag:] >= lag
        if np.count_nonzero(inside) < 4:
            break
        reflection, moving, forward, backward = _next_lag(forward[:, 1:] * inside, backward[:, :-1] * inside, stable)
        found.append(reflection)
        criterion = criterion + n * np.log1p(-(reflection**2)) + np.log(n)
        better = moving & (criterion < best)
        best, order = np.where(better, criterion, best), np.where(better, lag, order)
    return tuple(Noise(tuple(float(own[i]) for own in found[: order[i]])) for i in range(rows))


def _next_lag(
    ahead: np.ndarray, behind: np.ndarray, stable: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the reflection coefficient of each row, which rows have any residuals, and the prediction errors that it leaves."""
    power = np.einsum("ij,ij->i", ahead, ahead) + np.einsum("ij,ij->i", behind, behind)
    moving = power > 0.0
    shared = 2.0 * np.einsum("ij,ij->i", ahead, behind) / np.where(moving, power, 1.0)
    reflection = np.minimum(np.maximum(shared, -stable), stable)
    return reflection, moving, ahead - reflection[:, None] * behind, behind - reflection[:, None] * ahead


def rounding_variance(columns: np.ndarray) -> np.ndarray:
    """Return the variance of rounding to the smallest difference, plus a small share of the column's, along the last axis."""
    ordered = np.sort(columns, axis=-1)
    steps = np.diff(ordered, axis=-1)
    tiny = _TINY * (ordered[..., -1:] - ordered[..., :1])
    least = steps.min(axis=-1, initial=np.inf, where=steps > tiny)
    return np.where(np.isfinite(least), least, 0.0) ** 2 / 12.0 + _RELATIVE_FLOOR * columns.var(axis=-1)


def filtered(b: Any, a: Any, x: np.ndarray, state: Any = None) -> np.ndarray:
    """Return scipy.signal.lfilter of a series; that module is imported with the first series, because it takes a while."""
    from scipy.signal import lfilter

    return np.asarray(lfilter(b, a, x) if state is None else lfilter(b, a, x, zi=state)[0])


class SegmentCosts:
    r"""Costs of segments, each a constant or a line plus autoregressive noise, for all columns at once.

    Beyond the first `order` steps one filter whitens all segments, so differences of cumulative sums give what least squares
    need. With uniform priors over the range R of level and rise, minus twice the log marginal likelihood is

    .. math:: \frac{\mathrm{RSS}}{\sigma^2} + \log\det\Omega + \log\det\frac{X^\top \Omega^{-1} X}{2 \pi \sigma^2} + 2 \log V .
    """

    def __init__(
        self,
        values: np.ndarray,
        noises: tuple[Noise, ...],
        degree: int,
        precision: np.ndarray,
        extents: np.ndarray | None = None,
        floors: np.ndarray | None = None,
    ) -> None:
        columns = np.ascontiguousarray(values.T)
        n = columns.shape[1]
        self._floors = floors
        self.n, self.noises, self.degree = n, noises, degree
        self.coefficients = degree + 1
        self._log_dets = np.array([[noise.log_det] for noise in noises])
        self._log_ranges = np.log(np.ptp(columns, axis=1) if extents is None else extents)[:, None]
        time = (np.arange(n) - 0.5 * (n - 1)) / n
        self._terms = [np.ones((1, n)), time[None], columns] if degree else [np.ones((1, n)), columns]
        orders = [noise.order for noise in noises]
        self._of_order = {
            order: np.array([c for c in range(len(orders)) if orders[c] == order]) for order in set(orders)
        }
        self._until_end = self._later_steps(precision)
        self._from_start = self._first_steps(precision)
        for order, chosen in self._of_order.items():
            own = self._view(chosen)
            self._from_start[:, own, : n + 1 - order] -= self._until_end[:, own, order:]
            self._from_start[:, own, n + 1 - order :] -= self._until_end[:, own, n:]

    @cached_property
    def floors(self) -> np.ndarray:
        """Variance of the rounding errors of each column, of shape (d,); it takes a sort, so searches hand it on."""
        return rounding_variance(self._terms[-1]) if self._floors is None else self._floors

    def _view(self, chosen: np.ndarray) -> Any:
        """Return the index of the chosen columns, of which all are a view and no copy."""
        return slice(None) if len(chosen) == len(self.noises) else chosen

    def _pairs(self, rows: list[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield products in the order 11, 1t, 1y, tt, ty, yy."""
        for i in range(len(rows)):
            for j in range(i, len(rows)):
                yield rows[i] * rows[j]

    def _filtered(self, filters: np.ndarray, chosen: np.ndarray, first: int) -> list[np.ndarray]:
        """Apply to the terms of each chosen column its row of `filters`, from step `first` on, where all lags exist."""
        out = []
        for term in self._terms:
            own = term[chosen] if len(term) > 1 else term
            left = np.zeros((len(chosen), self.n - first))
            for lag in range(filters.shape[1] - 1, -1, -1):  # the oldest first
                left += filters[:, lag, None] * own[:, first - lag : self.n - lag]
            out.append(left)
        return out

    def _first_steps(self, precision: np.ndarray) -> np.ndarray:
        """Return the sums over the first steps of a segment, which lack some lags, by the start of the segment."""
        size = len(self._terms)
        out = np.zeros((size * (size + 1) // 2, len(self.noises), self.n + 1))
        for i in range(max(self._of_order)):
            chosen = np.concatenate([some for order, some in self._of_order.items() if order > i])
            filters = np.array([self.noises[c].predictors[i] for c in chosen])
            spreads = np.sqrt([self.noises[c].variances[i] for c in chosen])
            weights = precision[i:] / spreads[:, None]
            rows = [left * weights for left in self._filtered(filters, chosen, i)]
            for sums, products in zip(out, self._pairs(rows), strict=True):
                sums[self._view(chosen), : self.n - i] += products
        return out

    def _later_steps(self, precision: np.ndarray) -> np.ndarray:
        """Return cumulative sums over the steps for which all lags exist."""
        size = len(self._terms)
        out = np.zeros((size * (size + 1) // 2, len(self.noises), self.n + 1))
        for order, chosen in self._of_order.items():
            filters = np.array([self.noises[c].predictors[-1] for c in chosen])
            rows = [precision[order:] * left for left in self._filtered(filters, chosen, order)]
            for sums, products in zip(out, self._pairs(rows), strict=True):
                sums[self._view(chosen), order + 1 :] = np.cumsum(products, axis=1)
        return out

    def _moments(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        return self._from_start.take(start, axis=2) + self._until_end.take(end, axis=2)

    def fit(self, start: np.ndarray, end: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        """Fit segments; return level at 0, slope, residuals squared and log det of the equations, each of shape (d, m)."""
        return self._fitted(self._moments(start, end), end - start)

    def _fitted(
        self, moments: np.ndarray, length: np.ndarray
    ) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        """Fit segments of which the moments are known."""
        if not self.degree:
            one, first, square = moments
            level = first / one
            return (level, np.zeros_like(level)), square - first * level, np.log(one)
        one, by_time, first, time, slope_part, square = moments
        middle = by_time / one
        # In short segments, differences of long sums lose digits.
        spread = np.maximum(time - by_time * middle, _LEAST_SPREAD * one * (length / self.n) ** 2)
        co_moment = slope_part - first * middle
        slope, level = co_moment / spread, first / one
        rss = square - first * level - slope * co_moment
        return (level - slope * middle, slope), rss, np.log(one) + np.log(spread)

    def parts(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residual sums of squares, with rounding errors added, and the part of the cost without the variance."""
        return self._parts(self._moments(start, end), end - start)

    def parts_beside(self, start: int, places: range, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of the segments from `start` to each place, and of those from there to `end`.

        Consecutive places are slices of the sums, which takes less time than to gather them.
        """
        here = slice(places.start, places.stop)
        before = self._from_start[:, :, start, None] + self._until_end[:, :, here]
        after = self._from_start[:, :, here] + self._until_end[:, :, end, None]
        steps = np.arange(places.start, places.stop)
        return self._parts(np.concatenate([before, after], axis=2), np.concatenate([steps - start, end - steps]))

    def _parts(self, moments: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of segments of which the moments are known."""
        _, rss, log_information = self._fitted(moments, length)
        volume = self._log_ranges + (self.degree * (self._log_ranges + np.log(self.n / length)))
        cost = log_information + 2.0 * volume - self.coefficients * _LOG_TWO_PI + self._log_dets
        return np.maximum(rss, 0.0) + self.floors[:, None] * length, cost

    def parts_of_two_levels(self, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of the odd and of the even segments, which are one constant each."""
        moments, lengths = self._moments(bounds[:-1], bounds[1:]), np.diff(bounds)
        both = np.stack([moments[..., first::2].sum(axis=2) for first in (0, 1)], axis=2)
        rss, cost = self._parts(both, np.array([lengths[first::2].sum() for first in (0, 1)]))
        # Each segment begins anew.
        return rss, cost + 0.5 * (len(lengths) - 2) * self._log_dets

    def residuals(self, bounds: np.ndarray) -> np.ndarray:
        """Subtract the fitted lines of segments from the columns; shape (d, n)."""
        (level, slope), _, _ = self.fit(bounds[:-1], bounds[1:])
        lengths = np.diff(bounds)
        time = self._terms[1] if self.degree else 0.0
        return np.asarray(
            self._terms[-1] - np.repeat(level, lengths, axis=1) - np.repeat(slope, lengths, axis=1) * time
        )


# Places that dynamic programming compares. The changes found are then moved to their best places among all.
MOST_PLACES = 200
# Steps of a series beyond which fewer places and starts are tried, to save time.
LONG = 5000
# Variances of the innovations for which segments are searched, relative to the variance without changes.
_LEVELS = np.geomspace(1.0, 1e-3, 10)
# Most passes over the changes when they are moved, and number of segmentations for which this is done.
_SWEEPS, _FEW = 6, 3
# Most changes between two levels that take turns.
_MOST_TURNS = 12
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
        self.surcharge = surcharge
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
        return self._priced(*self.costs.parts(start, end), variances)

    def _priced(self, rss: np.ndarray, cost: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Return the costs of segments by their parts, for each row of `variances`."""
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

    def refined(self, bounds: np.ndarray, settled: set[tuple[int, int, int]]) -> np.ndarray:
        """Move each change to its best place between its neighbours, and remove changes where that lowers the cost.

        `settled` has the changes that are at their best places between their neighbours, of earlier refinements too.
        """
        if self.n > LONG:  # most of the changes that are superfluous were so before they are moved, which takes long
            bounds = self._without_superfluous(bounds)
        for _ in range(_SWEEPS):
            moved = self._moved(bounds, settled)
            shorter = self._without_superfluous(moved)
            if np.array_equal(shorter, bounds):
                break
            bounds = shorter
        return bounds

    def near(self, bounds: np.ndarray, reach: int) -> tuple[np.ndarray, float]:
        """Return each change at its best place within `reach` steps, and their cost, that of two levels in turn if it is less."""
        settled: set[tuple[int, int, int]] = set()
        for _ in range(_SWEEPS):
            before, bounds = bounds, self._moved(bounds, settled, reach)
            if np.array_equal(before, bounds):
                break
        cost = self.total(bounds)
        return bounds, cost if self.costs.degree or len(bounds) < 5 else min(cost, self.total_of_two_levels(bounds))

    def _moved(self, bounds: np.ndarray, settled: set[tuple[int, int, int]], reach: int | None = None) -> np.ndarray:
        """Return bounds, each moved to its best place between its neighbours."""
        out = bounds.copy()
        rss, _ = self.costs.parts(bounds[:-1], bounds[1:])
        variance = rss.sum(axis=1)[None] / max(1, self._freedom(len(bounds) - 1))
        for j in range(1, len(out) - 1):
            before, place, after = out[j - 1 : j + 2].tolist()
            if (before, place, after) not in settled:
                out[j] = self._best_place(before, place, after, variance, self._reach if reach is None else reach)
                settled.add((before, int(out[j]), after))
        return out

    @property
    def _reach(self) -> int:
        """Most steps by which a change is moved: to try all places between distant neighbours would take too long."""
        return self.n if self.n <= LONG else 2 * -(-self.n // MOST_PLACES)

    def _best_place(self, before: int, place: int, after: int, variance: np.ndarray, reach: int) -> int:
        """Return the best place of a change between two others."""
        low = max(before + self.shortest, place - reach)
        high = min(after - self.shortest, place + reach)
        # Segments on both sides in one call, which takes longer than its numbers.
        parts = self.costs.parts_beside(before, range(low, high + 1), after)
        cost = self._priced(*parts, variance)[0].reshape(2, -1).sum(axis=0)
        return low + int(cost.argmin()) if cost.min() < cost[place - low] else place

    def _without_superfluous(self, bounds: np.ndarray) -> np.ndarray:
        """Return bounds without those whose removal shortens the description."""
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

    def total_of_two_levels(self, bounds: np.ndarray) -> float:
        """Return the cost of constants of which every second one is the same; infinite without residual degrees of freedom."""
        rss, cost = self.costs.parts_of_two_levels(bounds)
        repeated = len(bounds) - 3
        return float(self._total(rss.sum(axis=1), cost.sum(axis=1), 2)) + repeated * self.per_change

    def of_two_levels(self) -> tuple[np.ndarray, float]:
        """Return the cheapest segmentation found in which two levels take turns, and its cost."""
        places = np.append(np.arange(0, self.n - self.shortest + 1, -(-self.n // MOST_PLACES)), self.n)
        distinct = {tuple(bounds): bounds for bounds in self.among(places) if 4 <= len(bounds) <= _MOST_TURNS + 2}
        few = sorted(distinct.values(), key=self.total_of_two_levels)[:_FEW]
        settled: set[tuple[int, int, int]] = set()
        found = [self._with_fewer_turns(self._moved(self._with_fewer_turns(bounds), settled)) for bounds in few]
        costs = [self.total_of_two_levels(bounds) if len(bounds) > 3 else np.inf for bounds in found]
        if not costs:
            return np.array([0, self.n]), float("inf")
        return found[int(np.argmin(costs))], min(costs)

    def _with_fewer_turns(self, bounds: np.ndarray) -> np.ndarray:
        """Return bounds without those whose removal makes two levels cheaper: the first, the last, or two neighbours."""
        while len(bounds) > 4:
            pairs = [[1], *([i, i + 1] for i in range(1, len(bounds) - 2)), [len(bounds) - 2]]
            options = [np.delete(bounds, pair) for pair in pairs]
            totals = [self.total_of_two_levels(option) for option in options]
            if min(totals) > self.total_of_two_levels(bounds):
                break
            bounds = options[int(np.argmin(totals))]
        return bounds

    def among(self, places: np.ndarray) -> list[np.ndarray]:
        """Find the cheapest segmentations with changes at some of `places`, for variances up to that without changes."""
        variance = self.costs.parts(places[:1], places[-1:])[0][:, 0] / self.n
        return self.cheapest(places, variance * _LEVELS[:, None])

    def best(self, most_places: int, few: int = _FEW) -> tuple[np.ndarray, float]:
        """Return the cheapest segmentation found and its cost; one segment if `surcharge` is infinite.

        The `few` cheapest at the places that are compared are moved to their best places.
        """
        whole = np.array([0, self.n])
        if not np.isfinite(self.per_change):
            return whole, self.total(whole)
        step = -(-self.n // most_places)
        places = np.append(np.arange(0, self.n - self.shortest + 1, step), self.n)
        found = self.among(places)
        distinct = {tuple(bounds): bounds for bounds in found}
        cheapest = sorted(distinct.values(), key=self.total)[:few]
        settled: set[tuple[int, int, int]] = set()
        candidates = [whole, *(self.refined(bounds, settled) for bounds in cheapest)]
        totals = [self.total(bounds) for bounds in candidates]
        return candidates[int(np.argmin(totals))], min(totals)

    def segmentation(self, bounds: np.ndarray, cost: float, values: np.ndarray, weights: np.ndarray) -> Segmentation:
        """Return the segments of values, which the search has in standard units."""
        innovations, extents = _standard_innovations(self.costs, bounds, standardised(values), weights)
        units = 2.0 * self.n * np.log(values.std(axis=0)).sum() - 2.0 * values.shape[1] * np.log(weights).sum()
        total, without_each = self.totals_without_each(bounds) if len(bounds) > 2 else (0.0, np.empty(0))
        gains = without_each - total + self.surcharge
        noises, degree = self.costs.noises, self.costs.degree
        return Segmentation(bounds, degree, noises, innovations, extents, cost + float(units), gains)


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
# Times that noise and two levels are fitted in turn.
_ROUNDS_OF_TURNS = 2
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
    floors: np.ndarray | None = None,
    few: int = _FEW,
) -> Segmentation:
    """Find the cheapest segments over degrees and noises, from several starts, as changes and correlation look alike.

    `floors` are the variances of rounding errors, by default those that the values show; of each noise the `few` cheapest
    segmentations are moved to their best places.
    """
    n = len(values)
    weights = np.ones(n) if precision is None else precision
    z = standardised(values)
    floors = rounding_variance(z.T) if floors is None else floors / values.var(axis=0)
    tried = (
        (cost, bounds, search)
        for degree in degrees
        for cost, bounds, search in _tried(z, degree, weights, floors, (most_lags, shortest, surcharge, moving, few))
    )
    cost, bounds, search = min(tried, key=lambda one: one[0])
    if len(bounds) > 2 and search.costs.degree and 0 in degrees:
        constants = _as_constants(bounds, search, z, weights, search.shortest, surcharge, moving)
        cost, bounds, search = min(constants, (cost, bounds, search), key=lambda one: one[0])
    if MOST_PLACES < n <= _FINE:
        bounds, cost = min((bounds, cost), search.best(_FINE), key=lambda found: found[1])
    if len(bounds) > 2 and 0 in degrees and 1 in degrees:
        turns = _of_two_levels(search, z, weights, most_lags, surcharge, moving)
        cost, bounds, search = min(turns, (cost, bounds, search), key=lambda one: one[0])
    return search.segmentation(bounds, cost, values, weights)


def shortest_segment(n: int, most_lags: int, degree: int) -> int:
    """Return the fewest steps of a segment: those of its coefficients, the past of its noise and two more."""
    return min(most_lags, n // 10) + degree + 3


def standardised(values: np.ndarray) -> np.ndarray:
    """Return columns around 0 in standard deviations."""
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-300))


def _tried(
    z: np.ndarray,
    degree: int,
    weights: np.ndarray,
    floors: np.ndarray,
    options: tuple[int, int, float, int | None, int],
) -> Iterator[tuple[float, np.ndarray, SegmentationSearch]]:
    """Yield cost, bounds and search of each noise: noise and segments are fitted in turn from each start."""
    most_lags, shortest, surcharge, moving, few = options
    lags, least = min(most_lags, len(z) // 10), max(shortest, shortest_segment(len(z), most_lags, degree))
    seen: set[tuple[Noise, ...]] = set()
    for noises in _starting_noises(z, degree, weights, lags, least):
        for _ in range(_ROUNDS):
            rounded = tuple(Noise(tuple(round(r, 2) for r in noise.reflections)) for noise in noises)
            if rounded in seen:
                break
            seen.add(rounded)
            search = SegmentationSearch(
                SegmentCosts(z, noises, degree, weights, floors=floors), least, surcharge, moving
            )
            bounds, cost = search.best(MOST_PLACES, few)
            yield cost, bounds, search
            noises = _fitted(search.costs, bounds, weights, lags)


def _as_constants(
    bounds: np.ndarray, search: SegmentationSearch, z: np.ndarray, weights: np.ndarray, *options: Any
) -> tuple[float, np.ndarray, SegmentationSearch]:
    """Return cost, bounds and search of constants that begin with the changes of lines, which their own search may miss."""
    costs = SegmentCosts(z, search.costs.noises, 0, weights, floors=search.costs.floors)
    constants = SegmentationSearch(costs, *options)
    bounds = constants.refined(bounds, set())
    return constants.total(bounds), bounds, constants


def _of_two_levels(
    search: SegmentationSearch, z: np.ndarray, weights: np.ndarray, most_lags: int, *options: Any
) -> tuple[float, np.ndarray, SegmentationSearch]:
    """Return cost, bounds and search of two levels that take turns: these cost less than a level for each segment."""
    noises, floors, lags = search.costs.noises, search.costs.floors, min(most_lags, len(z) // 10)
    tried = []
    for _ in range(_ROUNDS_OF_TURNS):
        turns = SegmentationSearch(SegmentCosts(z, noises, 0, weights, floors=floors), search.shortest, *options)
        bounds, cost = turns.of_two_levels()
        tried.append((cost, bounds, turns))
        noises = _fitted(turns.costs, bounds, weights, lags)
    return min(tried, key=lambda one: one[0])


def _standard_innovations(
    costs: SegmentCosts, bounds: np.ndarray, z: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the innovations in standard deviations, and the ranges of the columns in these."""
    left = [
        noise.innovations(own, bounds) * weights
        for noise, own in zip(costs.noises, costs.residuals(bounds), strict=True)
    ]
    spreads = np.array([_spread(one, floor) for one, floor in zip(left, costs.floors, strict=True)])
    innovations = np.column_stack(left) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.zeros(len(left)))
    return innovations, np.ptp(z, axis=0) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.ones(len(left)))


def _spread(innovations: np.ndarray, floor: float) -> float:
    """Return the root mean square of innovations, or 0 if they are rounding errors."""
    square = float(np.mean(innovations**2))
    return float(np.sqrt(square)) if square > _NOTHING * floor else 0.0


def _fitted(costs: SegmentCosts, bounds: np.ndarray, weights: np.ndarray, lags: int) -> tuple[Noise, ...]:
    return fitted_noises(costs.residuals(bounds) * weights, bounds, lags)


def _starting_noises(z: np.ndarray, degree: int, weights: np.ndarray, lags: int, least: int) -> list[tuple[Noise, ...]]:
    """Return the noises from which the search begins."""
    dim = z.shape[1]
    white = (Noise(),) * dim
    if not lags:
        return [white]
    costs = SegmentCosts(z, white, degree, weights)
    unbroken = _fitted(costs, np.array([0, len(z)]), weights, lags)
    if len(z) <= LONG:
        return [*((Noise((start,) if start else ()),) * dim for start in STARTS), unbroken]
    # A long series determines its noise well between the places of a grid, so one start more is enough.
    grid = np.append(np.arange(0, len(z) - least + 1, -(-len(z) // MOST_PLACES)), len(z))
    return [_fitted(costs, grid, weights, lags), unbroken]
