"""Segments of a series: a constant or a line in each plus autoregressive noise, at the least total cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from isopleth.tasks.segmentation.costs import Noise, SegmentCosts, fitted_noise
from isopleth.tasks.segmentation.dynamic import LONG, MOST_PLACES, SegmentationSearch

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
    """Find the cheapest segments of a series over degrees and noises.

    Noise and segments are fitted in turn from several starts, because undetected changes look like correlation, and correlation
    that the noise lacks looks like changes.
    """
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
    gains = search.totals_without_each(bounds) - search.total(bounds) + surcharge if len(bounds) > 2 else np.empty(0)
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
