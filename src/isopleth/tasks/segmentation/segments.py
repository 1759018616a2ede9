"""Segments of a series: a line or a constant in each, correlated noise throughout, and as many as pay for themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from isopleth.tasks.segmentation.costs import Noise, SegmentCosts, fitted_noise
from isopleth.tasks.segmentation.dynamic import LONG, MOST_PLACES, Pricing

# First correlations from which noise and segments are fitted in turn, besides that of a series without changes.
STARTS = (0.0, 0.5, 0.9)
# Steps of a series in which all places are looked at once more under the noise that was chosen.
_FINE = 1000
_ROUNDS = 3
# Of the variance that rounding leaves: less is no innovation but the error of arithmetic.
_NOTHING = 1e-6


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
    gains : array of shape (m,)
        Twice the nats that each change saves, without the surcharge.
    """

    bounds: np.ndarray
    degree: int
    noises: tuple[Noise, ...]
    innovations: np.ndarray
    extents: np.ndarray
    price: float
    gains: np.ndarray

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
                costs = SegmentCosts(z, noises, degree, weights)
                pricing = Pricing(costs, least, surcharge, moving)
                bounds, price = pricing.best(MOST_PLACES)
                if best is None or price < best[0]:
                    best = price, bounds, pricing
                noises = _fitted(costs, bounds, weights, lags)
    assert best is not None
    price, bounds, pricing = best
    if MOST_PLACES < n <= _FINE:
        bounds, price = min((bounds, price), pricing.best(_FINE), key=lambda found: found[1])
    costs = pricing.costs
    left = [
        noise.innovations(own, bounds) * weights
        for noise, own in zip(costs.noises, costs.residuals(bounds), strict=True)
    ]
    spreads = np.array([_spread(one, floor) for one, floor in zip(left, costs.floors, strict=True)])
    innovations = np.column_stack(left) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.zeros(dim))
    extents = np.ptp(z, axis=0) * np.divide(1.0, spreads, where=spreads > 0.0, out=np.ones(dim))
    units = 2.0 * n * np.log(scale).sum() - 2.0 * dim * np.log(weights).sum()
    gains = pricing.totals_without_each(bounds) - pricing.total(bounds) + surcharge if len(bounds) > 2 else np.empty(0)
    return Segmentation(bounds, costs.degree, costs.noises, innovations, extents, price + float(units), gains)


def _spread(innovations: np.ndarray, floor: float) -> float:
    """Their standard deviation; 0 where rounding leaves nothing else."""
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
    # A long series leaves no doubt about its noise that further starts could settle.
    starts = STARTS if len(z) <= LONG else STARTS[:1]
    return [*((Noise((start,) if start else ()),) * dim for start in starts), unbroken]
