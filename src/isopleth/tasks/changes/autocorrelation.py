"""The period of a series by its autocorrelation."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtr

# The period is the shortest lag with a peak of the autocorrelation at least this high relative to the highest: multiples of a
# period have peaks as high as it.
_PEAK_SHARE = 0.7
# The autocorrelation must have fallen to this share of a peak before it; otherwise the peak is a ripple on a slower cycle.
_FALLEN = 0.5
# A period must be seen this many times.
_CYCLES = 8
# Lags beyond the longest period, as a share of it, in which a peak may go on rising: it is the flank of a longer period then.
_FLANK = 0.25
# Share of the size of values below which differences are rounding errors, which have periods too: those of a line.
_ROUNDING = 1e-9
# Least height of the autocorrelation at a period, as it is and in its standard errors for independent values; and least test
# statistic of a period, which 0 to 3 % of autoregressions of 0 to .95 with 300 and 2,000 steps reach.
_PERIODIC, _ERRORS, _LEAST_STATISTIC = 0.1, 4.0, 3.0
# Ratio of the period of a season to that of the autocorrelation from which the latter is a part of a cycle.
_PART = 1.5
# Steps of a season below which its period is more precise than the peak, and share of it by which phases may drift in a series.
_SHORT, _DRIFT = 10.0, 0.25
# Fewest blocks of a series that is scanned in blocks of the period of its season.
_LEAST_BLOCKS = 40


def autocorrelation(column: np.ndarray, most: int) -> np.ndarray:
    """Compute the autocorrelation of a column at lags 0 to `most`, each over the pairs that there are."""
    n = len(column)
    size = 1 << (n + most).bit_length()
    power = np.abs(np.fft.rfft(column - column.mean(), size)) ** 2
    found = np.fft.irfft(power, size)[: most + 1] / (n - np.arange(most + 1))
    return np.asarray(found / max(float(found[0]), 1e-300))


def period_of(values: np.ndarray) -> tuple[float, float, float]:
    """Return period, height and statistic of a peak of the autocorrelation of columns less a line; (nan, 0, 0) without.

    The statistic is N(0, 1) in noise with memory too: products one period apart, summed over a cycle, are nearly independent.
    """
    n = len(values)
    time = np.linspace(-1.0, 1.0, n)
    rest = values - values.mean(axis=0)
    rest = rest - np.outer(time, time @ rest / (time @ time))
    rest[:, np.ptp(rest, axis=0) <= _ROUNDING * np.ptp(values, axis=0)] = 0.0
    longest = n // _CYCLES
    found = np.mean([autocorrelation(column, longest + int(_FLANK * longest)) for column in rest.T], axis=0)
    lags = np.arange(2, len(found) - 1)
    peaks = lags[(found[lags] > found[lags - 1]) & (found[lags] >= found[lags + 1])]
    peaks = peaks[np.minimum.accumulate(found)[peaks] <= _FALLEN * found[peaks]]
    near = peaks[peaks < longest]
    if not len(near) or found[near].max() <= 0.0:
        return float("nan"), 0.0, 0.0
    first = int(near[found[near] >= _PEAK_SHARE * found[near].max()][0])
    fallen = np.flatnonzero(found[first:] < _FALLEN * found[first])
    hill = peaks[(peaks >= first) & (peaks < (first + fallen[0] if len(fallen) else len(found)))]
    lag = int(hill[found[hill].argmax()])
    if lag >= longest:
        return float("nan"), 0.0, 0.0
    before, at, after = found[lag - 1 : lag + 2]
    return lag + 0.5 * float(before - after) / float(before - 2.0 * at + after), float(at), _statistic(rest, lag)


def _statistic(rest: np.ndarray, lag: int) -> float:
    """Return the test statistic of a period: the mean of products one period apart over its standard error, as N(0, 1)."""
    products = np.sum(rest[:-lag] * rest[lag:], axis=1)
    sums = products[: len(products) // lag * lag].reshape(-1, lag).sum(axis=1)
    ratio = float(sums.mean()) / max(float(sums.std(ddof=1)) / np.sqrt(len(sums)), 1e-300)
    return -float(ndtri(stdtr(len(sums) - 1, -ratio)))


def cycle_of(values: np.ndarray, season: float | None = None) -> float | None:
    """Return the period of a series, or None if its autocorrelation has no peak higher than noise would give.

    The period of a `season` that was found is taken instead if the peak is a part of it, as neighbouring parts differ without
    a change, or if it is short and the two periods are the same but for the error of the peak, which would let phases drift.
    """
    spread = np.maximum(values.std(axis=0), 1e-300)
    length, height, statistic = period_of((values - values.mean(axis=0)) / spread)
    if height < max(_PERIODIC, _ERRORS / np.sqrt(len(values))) or statistic < _LEAST_STATISTIC:
        return None
    if season is None:
        return length
    part = _PART * length < season <= len(values) / _LEAST_BLOCKS
    drift = abs(length - season) * len(values) / length
    return season if part or (season < _SHORT and drift < _DRIFT * season) else length
