"""How much a change shortens the description of a series without changes, by chance: simulated distributions and p-values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isopleth.progress import unheard
from isopleth.tasks.segmentation.costs import STABLE, Noise, SegmentCosts, fitted_noise
from isopleth.tasks.segmentation.description_length import MOST_LAGS, Description
from isopleth.tasks.segmentation.segments import Segmentation, SegmentationSearch

# Simulated series without a change.
RUNS = 199
# Fewest draws beyond a quantile, so that it does not depend on a single one.
_LEAST_EXCEEDING = 4
# Most steps of a simulated series. In longer series the cost of a change, 2 log n, grows faster than the best chance saving.
_LONGEST = 2000
# Times that noise and change are fitted in turn.
_ROUNDS = 3
# Twice the nats by which a simulated margin must exceed the observed one to count: the final search tries more noises.
_CLEARLY = 1.0


def null_gains(
    found: Segmentation,
    precision: np.ndarray,
    length: int,
    shortest: int,
    rng: np.random.Generator,
    tick: Callable[[int], None] = unheard,
) -> np.ndarray:
    """Simulate the saving of the best change in series without changes, of the noise that was found; sorted."""
    n = min(length, _LONGEST)
    places = np.linspace(0, len(precision) - 1, n).astype(int)
    gains = []
    for _ in range(RUNS):
        gains.append(_gain(found, precision[places], shortest, rng))
        tick(1)
    return np.sort(gains)


def null_margins(
    calm: Description,
    length: int,
    rng: np.random.Generator,
    tick: Callable[[int], None] = unheard,
    own: float = np.inf,
    most: float = RUNS,
) -> np.ndarray:
    """Simulate by how much the best description with one change is shorter than the best without; sorted.

    Innovations keep sizes and order, with random signs, so that a stretch of large ones stays; each series is described anew.
    Once more than `most` margins clearly exceed `own`, the observed one, its p-value is too large, and the result is empty.
    """
    n, location = min(length, _LONGEST), calm.location
    places = np.linspace(0, len(calm.precision) - 1, n).astype(int)
    precision, innovations = calm.precision[places], location.innovations[places]
    time = np.linspace(-1.0, 1.0, len(calm.prepared))
    rises = location.degree * (time @ calm.prepared) / (time @ time) * location.extents / np.ptp(calm.prepared, axis=0)
    line = np.linspace(-1.0, 1.0, n)[:, None] * rises
    noises = [_without_bias(noise, n, location.degree) for noise in location.noises]
    margins, larger = [], 0
    for done in range(RUNS):
        drawn = rng.choice([-1.0, 1.0], (n, 1)) * innovations / precision[:, None]
        made = [noise.series(column) for noise, column in zip(noises, drawn.T, strict=True)]
        margins.append(_margin(line + np.column_stack(made), precision, location.extents))
        larger += margins[-1] > own + _CLEARLY
        if larger > max(most, _LEAST_EXCEEDING):
            tick(RUNS - done)
            return np.empty(0)
        tick(1)
    return np.sort(margins)


def margin_of(found: Description) -> float:
    """Return by how much the best description with one change is shorter than the best without, as :func:`null_margins`."""
    scale = found.location.extents / np.ptp(found.prepared, axis=0)
    return _margin(found.prepared * scale, found.precision, found.location.extents)


def surcharge(gains: np.ndarray, rate: float, least: float = 0.0) -> float:
    """Return the saving exceeded in a share `rate` of series without changes, at least `least`; the tail is exp(-g/2)."""
    seen = max(rate, _LEAST_EXCEEDING / (RUNS + 1))
    place = int(np.ceil((RUNS + 1) * (1.0 - seen))) - 1
    return max(least, float(gains[place]) + 2.0 * float(np.log(seen / rate)))


def pvalue_of_gain(gain: float, gains: np.ndarray) -> float:
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
    # The cost of coefficients depends on the range. It has to be the range of the observed series with its changes.
    white = SegmentCosts(series, (Noise(),) * series.shape[1], found.degree, precision, found.extents)
    whole = np.array([0, n])
    left = white.residuals(whole) * precision
    fitted = tuple(fitted_noise(own, whole, min(MOST_LAGS, n // 10)) for own in left)
    least = max(shortest, MOST_LAGS + found.degree + 3)
    return SegmentationSearch(
        SegmentCosts(series, fitted, found.degree, precision, found.extents), least
    ).gain_of_one_change()


def _without_bias(noise: Noise, n: int, degree: int) -> Noise:
    r"""Correct the first autocorrelation by the bias of its estimate, which is about :math:`-(1 + 3a) / n` around a constant and
    :math:`-(2 + 4a) / n` around a line (Kendall 1954): a walk would be simulated as a process that returns to its mean.
    """
    if not noise.order:
        return noise
    first, *others = noise.reflections
    bias = (1.0 + degree + (3.0 + degree) * first) / n
    return Noise((min(first + max(bias, 0.0), STABLE), *others))


def _margin(series: np.ndarray, precision: np.ndarray, extents: np.ndarray) -> float:
    n = len(series)
    if (np.ptp(series, axis=0) <= 0.0).any():
        return -float("inf")
    lags, whole = min(MOST_LAGS, n // 10), np.array([0, n])
    without, with_one = [], []
    for degree in (0, 1):
        noises, bounds = (Noise(),) * series.shape[1], whole
        for _ in range(_ROUNDS):
            left = SegmentCosts(series, noises, degree, precision, extents).residuals(bounds) * precision
            noises = tuple(fitted_noise(own, bounds, lags) for own in left)
            search = SegmentationSearch(SegmentCosts(series, noises, degree, precision, extents), lags + degree + 3)
            bounds, cost = search.best_change()
            without.append(search.total(whole))
            with_one.append(cost)
    return min(without) - min(with_one)
