"""What a change must save so that series without changes seldom show one: a parametric bootstrap of the noise found."""

from __future__ import annotations

import numpy as np

from isopleth.tasks.segmentation.costs import SegmentCosts
from isopleth.tasks.segmentation.dynamic import Pricing
from isopleth.tasks.segmentation.noise import Noise, fitted_noise
from isopleth.tasks.segmentation.segments import Segmentation
from isopleth.tasks.segmentation.stages import MOST_LAGS

RUNS = 199
# Of the runs, for a quantile that is not the accident of one of them.
_LEAST_EXCEEDING = 4
# Steps of a made-up series: a price of 2 log n a change falls faster than longer series find more by chance.
_LONGEST = 2000


def surcharge(
    found: Segmentation, precision: np.ndarray, length: int, shortest: int, rate: float, rng: np.random.Generator
) -> float:
    """What the best change saves in a share `rate` of series without changes, at least 0.

    The series have the noise that was found: its correlation, its innovations drawn anew with replacement, and its scatter.
    Rates below a few runs are reached by the tail of a likelihood ratio, of which twice the logarithm falls like exp(-g/2).

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
    rate : float
        Share of such series that may show a change.
    rng : Generator
        Where the draws come from.
    """
    n = min(length, _LONGEST)
    places = np.linspace(0, len(precision) - 1, n).astype(int)
    gains = [_gain(found, precision[places], shortest, rng) for _ in range(RUNS)]
    seen = max(rate, _LEAST_EXCEEDING / (RUNS + 1))
    place = int(np.ceil((RUNS + 1) * (1.0 - seen))) - 1
    return max(0.0, float(np.sort(gains)[place]) + 2.0 * float(np.log(seen / rate)))


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
