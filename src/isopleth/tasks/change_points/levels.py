"""What a change must save so that series without changes seldom show one: a parametric bootstrap of the noise found."""

from __future__ import annotations

import numpy as np

from isopleth.tasks.segmentation.costs import SegmentCosts
from isopleth.tasks.segmentation.description_length import MOST_LAGS
from isopleth.tasks.segmentation.dynamic import Pricing
from isopleth.tasks.segmentation.noise import Noise, fitted_noise
from isopleth.tasks.segmentation.segments import Segmentation

RUNS = 199
# Of the runs, for a quantile that is not the accident of one of them.
_LEAST_EXCEEDING = 4
# Steps of a made-up series: a price of 2 log n a change falls faster than longer series find more by chance.
_LONGEST = 2000


def null_gains(
    found: Segmentation, precision: np.ndarray, length: int, shortest: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw what the best change saves in series without changes; sorted.

    The series have the noise that was found: its correlation, its innovations drawn anew with replacement, and its scatter.

    Parameters
    ----------
    found : Segmentation
        Whose noise it is.
    precision : array of shape (n,)
        One over the relative standard deviation of the innovations.
    length : int
        Steps of the series that is judged, which may be longer than a reference.
    shortest : int
        Least length of a segment.
    rng : Generator
        Where the draws come from.
    """
    n = min(length, _LONGEST)
    places = np.linspace(0, len(precision) - 1, n).astype(int)
    return np.sort([_gain(found, precision[places], shortest, rng) for _ in range(RUNS)])


def surcharge(gains: np.ndarray, rate: float) -> float:
    """Return what the best change saves in a share `rate` of series without changes, at least 0.

    Rates below a few runs are reached by the tail of a likelihood ratio, of which twice the logarithm falls like exp(-g/2).
    """
    seen = max(rate, _LEAST_EXCEEDING / (RUNS + 1))
    place = int(np.ceil((RUNS + 1) * (1.0 - seen))) - 1
    return max(0.0, float(gains[place]) + 2.0 * float(np.log(seen / rate)))


def p_value_of_gain(gain: float, gains: np.ndarray) -> float:
    """Return the share of series without changes in which the best change saves as much; the inverse of :func:`surcharge`."""
    exceeding = int(np.sum(gains >= gain))
    if exceeding >= _LEAST_EXCEEDING:
        return (1 + exceeding) / (RUNS + 1)
    seen = _LEAST_EXCEEDING / (RUNS + 1)
    place = int(np.ceil((RUNS + 1) * (1.0 - seen))) - 1
    return float(seen * np.exp(-0.5 * max(gain - float(gains[place]), 0.0)))


def _gain(found: Segmentation, precision: np.ndarray, shortest: int, rng: np.random.Generator) -> float:
    n = len(precision)
    drawn = found.innovations[rng.integers(0, len(found.innovations), n)]
    made = zip(found.noises, drawn.T, strict=True)
    series = np.column_stack([noise.series(innovations / precision) for noise, innovations in made])
    if (np.ptp(series, axis=0) <= 0.0).any():
        return -float("inf")
    # What coefficients cost depends on the range, which is that of the series with its changes.
    white = SegmentCosts(series, (Noise(),) * series.shape[1], found.degree, precision, found.extents)
    whole = np.array([0, n])
    left = white.residuals(whole) * precision
    fitted = tuple(fitted_noise(own, whole, min(MOST_LAGS, n // 10)) for own in left)
    least = max(shortest, MOST_LAGS + found.degree + 3)
    return Pricing(SegmentCosts(series, fitted, found.degree, precision, found.extents), least).gain_of_one_change()
