"""Segments of a series: a line or a constant in each, correlated noise throughout, and as many as pay for themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from isopleth.tasks.segmentation.costs import ColumnCosts
from isopleth.tasks.segmentation.noise import Noise, fitted_noise

STARTS = (0.0, 0.5, 0.9)
"""First correlations from which noise and segments are fitted in turn, besides that of a series without changes."""
MOST_PLACES = 200
"""Places for changes that are looked at at first; all are looked at when those found are refined."""
_LEVELS = np.geomspace(1.0, 1e-3, 10)
"""Variances of the innovations over that without changes, for each of which the best segments are found."""
_FINE = 1000
"""Steps of a series in which all places are looked at once more under the noise that was chosen."""
_ROUNDS, _SWEEPS, _FEW, _LONG = 3, 6, 3, 5000
_NOTHING = 1e-6
"""Of the variance that rounding leaves: less is no innovation but the error of arithmetic."""


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Segments of a series.

    Parameters
    ----------
    bounds : array of shape (m + 2,)
        0, the first steps of new segments, and the length of the series.
    degree : int
        Whether segments are constants (0) or lines (1).
    noises : tuple of Noise
        Of each column.
    innovations : array of shape (n, d)
        What the past and the segment's line leave unpredicted, over its standard deviation.
    extents : array of shape (d,)
        Ranges of the columns over the standard deviations of their innovations.
    price : float
        Twice the nats that it takes to tell the series this way.
    """

    bounds: np.ndarray
    degree: int
    noises: tuple[Noise, ...]
    innovations: np.ndarray
    extents: np.ndarray
    price: float

    @property
    def changes(self) -> np.ndarray:
        """First steps of new segments."""
        return self.bounds[1:-1]


class Pricing:
    """The price of whole segmentations of columns under given noise, and the search for the cheapest.

    Parameters
    ----------
    columns : list of ColumnCosts
        Of the same length and degree.
    shortest : int
        Least length of a segment.
    surcharge : float
        What a change costs on top of its description.
    moving : int, optional
        Steps that tell something of the variance: all but those of stretches that stand still.
    """

    def __init__(
        self, columns: list[ColumnCosts], shortest: int, surcharge: float = 0.0, moving: int | None = None
    ) -> None:
        self.columns, self.shortest = columns, shortest
        self.n = columns[0].n
        self._moving = self.n if moving is None else moving
        self.per_change = 2.0 * float(np.log(self.n)) + surcharge
        self._fixed = sum(column.noise.order for column in columns) * float(np.log(self.n))

    def total(self, bounds: np.ndarray) -> float:
        """Price of a segmentation at the variances that make it least; infinite where no freedom is left."""
        changes = len(bounds) - 2
        out = (changes * self.per_change if changes else 0.0) + self._fixed
        for column in self.columns:
            rss, price = column.parts(bounds[:-1], bounds[1:])
            freedom = self._moving - column.coefficients * len(rss)
            if freedom < 1:
                return float("inf")
            out += freedom * (np.log(rss.sum() / freedom) + 1.0) + price.sum()
        return float(out)

    def gain_of_one_change(self) -> float:
        """By how much the best single change makes the whole cheaper; negative where it does not."""
        place = np.arange(self.shortest, self.n - self.shortest + 1)
        freest = self._moving - 2 * self.columns[0].coefficients
        if not len(place) or freest < 1:
            return -float("inf")
        total = np.full(len(place), self.per_change + self._fixed)
        for column in self.columns:
            before, price_before = column.parts(np.zeros_like(place), place)
            after, price_after = column.parts(place, np.full_like(place, self.n))
            freedom = self._moving - 2 * column.coefficients
            total += freedom * (np.log((before + after) / freedom) + 1.0) + price_before + price_after
        return self.total(np.array([0, self.n])) - float(total.min())

    def of_segments(self, start: np.ndarray, end: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Prices of segments at each row of `variances` of shape (k, d)."""
        out = np.zeros((len(variances), len(start)))
        for column, variance in zip(self.columns, variances.T, strict=True):
            rss, price = column.parts(start, end)
            out += rss / variance[:, None] + price - column.coefficients * np.log(variance)[:, None]
        return out

    def cheapest(self, places: np.ndarray, variances: np.ndarray) -> list[np.ndarray]:
        """The cheapest segmentation with changes at some of the `places`, for each row of `variances`, by dynamic programming."""
        rows = np.arange(len(variances))
        best = np.full((len(variances), len(places)), np.inf)
        best[:, 0] = -self.per_change
        before = np.zeros(best.shape, dtype=np.intp)
        for j in range(1, len(places)):
            last = int(np.searchsorted(places, places[j] - self.shortest, side="right"))
            if last:
                start, end = places[:last], np.full(last, places[j])
                total = best[:, :last] + self.of_segments(start, end, variances) + self.per_change
                before[:, j] = total.argmin(axis=1)
                best[:, j] = total[rows, before[:, j]]
        return [places[_path(previous)] for previous in before]

    def refined(self, bounds: np.ndarray) -> np.ndarray:
        """Changes moved one at a time to their best places between their neighbours, and left out where that is cheaper."""
        for _ in range(_SWEEPS):
            moved = self._moved(bounds)
            shorter = self._without_superfluous(moved)
            if np.array_equal(shorter, bounds):
                break
            bounds = shorter
        return bounds

    def _moved(self, bounds: np.ndarray) -> np.ndarray:
        out = bounds.copy()
        parts = [column.parts(bounds[:-1], bounds[1:])[0].sum() for column in self.columns]
        freedom = max(1, self._moving - self.columns[0].coefficients * (len(bounds) - 1))
        variance = np.array([parts]) / freedom
        # Between far neighbours of a long series all places would be too many.
        reach = self.n if self.n <= _LONG else 2 * -(-self.n // MOST_PLACES)
        for j in range(1, len(out) - 1):
            low = max(out[j - 1] + self.shortest, out[j] - reach)
            high = min(out[j + 1] - self.shortest, out[j] + reach)
            place = np.arange(low, high + 1)
            before, after = np.full(len(place), out[j - 1]), np.full(len(place), out[j + 1])
            price = self.of_segments(before, place, variance)[0] + self.of_segments(place, after, variance)[0]
            if price.min() < price[out[j] - low]:
                out[j] = place[price.argmin()]
        return out

    def _without_superfluous(self, bounds: np.ndarray) -> np.ndarray:
        while len(bounds) > 2:
            totals = self.totals_without_each(bounds)
            if totals.min() > self.total(bounds):
                break
            bounds = np.delete(bounds, 1 + int(totals.argmin()))
        return bounds

    def totals_without_each(self, bounds: np.ndarray) -> np.ndarray:
        """Prices of the segmentations that lack one of the changes, all at once."""
        changes = len(bounds) - 3
        out = np.full(changes + 1, (changes * self.per_change if changes else 0.0) + self._fixed)
        for column in self.columns:
            rss, price = column.parts(bounds[:-1], bounds[1:])
            merged_rss, merged_price = column.parts(bounds[:-2], bounds[2:])
            freedom = self._moving - column.coefficients * (changes + 1)
            if freedom < 1:
                return np.full(changes + 1, np.inf)
            left = rss.sum() - rss[:-1] - rss[1:] + merged_rss
            out += freedom * (np.log(left / freedom) + 1.0) + price.sum() - price[:-1] - price[1:] + merged_price
        return out

    def best(self, most_places: int) -> tuple[np.ndarray, float]:
        """The cheapest segmentation found, and its price; a single segment where changes cost more than anything."""
        whole = np.array([0, self.n])
        if not np.isfinite(self.per_change):
            return whole, self.total(whole)
        step = -(-self.n // most_places)
        places = np.append(np.arange(0, self.n - self.shortest + 1, step), self.n)
        variance = np.array([column.parts(whole[:1], whole[1:])[0][0] / self.n for column in self.columns])
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
    """The cheapest description of a series by segments, over degrees and noises.

    Noise and segments are fitted in turn from several starts: changes that are overlooked look like correlation, and
    correlation that is overlooked looks like changes.

    Parameters
    ----------
    values : array of shape (n, d)
        No column constant.
    degrees : iterable of int
        Of the lines in the segments, 0 or 1.
    most_lags : int
        Largest order of the noise.
    shortest : int
        Least length of a segment; what the coefficients need if that is more.
    precision : array of shape (n,), optional
        One over the relative standard deviation of the innovations at each step.
    surcharge : float
        What a change costs on top of its description.
    moving : int, optional
        Steps that tell something of the variance, as for :class:`Pricing`.
    """
    n, dim = values.shape
    weights = np.ones(n) if precision is None else precision
    scale = values.std(axis=0)
    z = (values - values.mean(axis=0)) / scale
    lags = min(most_lags, n // 10)
    best: tuple[float, np.ndarray, Pricing] | None = None
    for degree in degrees:
        least = max(shortest, lags + degree + 3)
        tried: set[tuple[Noise, ...]] = set()
        for noises in _starting_noises(z, degree, weights, lags):
            for _ in range(_ROUNDS):
                rounded = tuple(Noise(tuple(round(r, 2) for r in noise.reflections)) for noise in noises)
                if rounded in tried:
                    break
                tried.add(rounded)
                columns = [ColumnCosts(z[:, c], noises[c], degree, weights) for c in range(dim)]
                pricing = Pricing(columns, least, surcharge, moving)
                bounds, price = pricing.best(MOST_PLACES)
                if best is None or price < best[0]:
                    best = price, bounds, pricing
                noises = _fitted(columns, bounds, weights, lags)
    assert best is not None
    price, bounds, pricing = best
    if MOST_PLACES < n <= _FINE:
        bounds, price = min((bounds, price), pricing.best(_FINE), key=lambda found: found[1])
    left = [c.noise.innovations(c.residuals(bounds), bounds) * weights for c in pricing.columns]
    spreads = np.array([_spread(one, column.floor) for one, column in zip(left, pricing.columns, strict=True)])
    innovations = np.column_stack(left) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.zeros(dim))
    extents = np.ptp(z, axis=0) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.ones(dim))
    units = 2.0 * n * np.log(scale).sum() - 2.0 * dim * np.log(weights).sum()
    noises = tuple(column.noise for column in pricing.columns)
    return Segmentation(bounds, pricing.columns[0].degree, noises, innovations, extents, price + float(units))


def _spread(innovations: np.ndarray, floor: float) -> float:
    """Their standard deviation; 0 where rounding leaves nothing else."""
    square = float(np.mean(innovations**2))
    return float(np.sqrt(square)) if square > _NOTHING * floor else 0.0


def _fitted(columns: list[ColumnCosts], bounds: np.ndarray, weights: np.ndarray, lags: int) -> tuple[Noise, ...]:
    return tuple(fitted_noise(column.residuals(bounds) * weights, bounds, lags) for column in columns)


def _starting_noises(z: np.ndarray, degree: int, weights: np.ndarray, lags: int) -> list[tuple[Noise, ...]]:
    dim = z.shape[1]
    white = tuple(Noise() for _ in range(dim))
    columns = [ColumnCosts(z[:, c], white[c], degree, weights) for c in range(dim)]
    unbroken = _fitted(columns, np.array([0, len(z)]), weights, lags)
    if not lags:
        return [white]
    # A long series leaves no doubt about its noise that further starts could settle.
    starts = STARTS if len(z) <= _LONG else STARTS[:1]
    return [*(tuple(Noise((start,) if start else ()) for _ in range(dim)) for start in starts), unbroken]
