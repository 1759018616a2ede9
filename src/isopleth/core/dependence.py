"""Dependence of rows on earlier ones: how many rows say as much as an independent one, how far it reaches, and its season."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

# Most columns that autocorrelations are summed over.
DIRECTIONS = 24
# Rows depend on each other if a sum of autocorrelations is this many standard errors above 0.
_DEPENDENT = 4.5
# Fewer rows do not tell whether they depend on each other.
_FEWEST_TO_TELL = 50
# Lags over which autocorrelations are summed, in units of their sum (Sokal 1997).
_REACH = 5.0
# A season has an autocorrelation of this at least, one period apart.
_LEAST_OF_SEASON = 0.2
# Standard errors by which an autocorrelation may be lower or higher by chance.
_SURE = 3.0
# Blocks have this many windows at least and at most, and a reference has this many blocks at least.
_FEWEST_WINDOWS, _MOST_WINDOWS, FEWEST_BLOCKS = 3, 8, 8


@dataclass(frozen=True)
class Dependence:
    """Dependence of the rows of a reference on each other."""

    rows: float = 1.0  # number of rows that say as much about a mean as one independent row; 1 if rows are independent
    reach: int = 0  # lag beyond which rows are about independent; 0 if rows are independent
    period: int = 0  # period of a season; 0 if there is none
    correlations: tuple[float, ...] = ()  # autocorrelations of lags from 1 up to `reach`

    @classmethod
    def of(cls, values: np.ndarray, places: np.ndarray) -> Self:
        """Estimate it from values of mean 0 at some rows, by the autocorrelation of the vectors of values."""
        values, n = values[:, :DIRECTIONS], int(places[-1]) + 1
        if n < _FEWEST_TO_TELL:
            return cls()
        values = values / np.abs(values).max()  # squares of tiny values would be 0
        power, filled = np.zeros(n + 1), np.zeros((2 * n, 2))
        filled[places, 1] = 1.0
        for column in values.T:
            filled[places, 0] = column
            power += np.abs(np.fft.rfft(filled[:, 0])) ** 2
        pairs = np.fft.irfft(np.abs(np.fft.rfft(filled[:, 1])) ** 2)[: n // 2]
        means = np.fft.irfft(power)[: n // 2] / np.maximum(pairs, 1.0)
        variances = (values**2).mean(axis=0)
        found, pairs = means[1:] / means[0], np.maximum(pairs[1:], 1.0)
        error = np.sqrt((variances**2).sum()) / variances.sum() / np.sqrt(pairs)
        lags = 2 ** np.arange(int(np.log2(max(len(found) // 2, 1))) + 1)
        if not (np.cumsum(found)[lags - 1] > _DEPENDENT * np.sqrt(np.cumsum(error**2)[lags - 1])).any():
            return cls()
        sums = np.maximum(1.0 + 2.0 * np.cumsum(found), 1.0)
        reach = int(np.argmax(np.append(np.arange(1, len(sums) + 1) >= _REACH * sums, True))) + 1
        rows = float(sums[min(reach, len(sums)) - 1])
        return cls(rows, reach, _period(found, error * np.sqrt(2.0 * rows)), tuple(found[:reach].tolist()))

    def block(self, window: int, rows: int) -> int:
        """Return the length of the blocks that simulations draw, as long as possible: windows across their ends vary less."""
        long = max(min(max(rows // FEWEST_BLOCKS, _FEWEST_WINDOWS * window), _MOST_WINDOWS * window), self.reach)
        return -(-long // self.period) * self.period if self.period else long

    def lost(self, window: int, block: int, rows: int) -> float:
        """Return the variance of a mean over windows of a stream, relative to that over windows of blocks of a reference.

        Rows k apart are in different blocks with probability k over the length of a block, and do not depend on each other then.
        Autocovariances about the mean of a reference lack the variance of this mean.
        """
        if self.period:
            return 1.0
        lags = np.arange(min(window, len(self.correlations) + 1))
        pairs = (window - lags) * np.where(lags, 2.0, 1.0) / window**2
        correlations = np.append(1.0, self.correlations)[lags]
        seen = float(pairs @ (correlations * np.maximum(1.0 - lags / block, 0.0)))
        return (float(pairs @ correlations) + self.rows / rows) / seen


def _period(found: np.ndarray, error: np.ndarray) -> int:
    """Return the lag behind the first negative autocorrelation whose multiples have the largest mean; 0 if uncertain.

    Shorter lags have more multiples and a surer mean, so the shortest part of the best lag counts that is not surely worse.
    """
    negative = np.flatnonzero(found < 0.0)
    if not len(negative):
        return 0
    first = int(negative[0]) + 1
    lags = np.arange(first, len(found) + 1)
    means = np.array([found[lag - 1 :: lag].mean() for lag in lags])
    noise = error[lags - 1] * np.sqrt(lags / len(found))
    best = int((means - _SURE * noise).argmax())
    if means[best] <= max(_DEPENDENT * noise[best], _LEAST_OF_SEASON * found[0]):
        return 0
    lag, least = int(lags[best]), means[best] - _SURE * noise[best]
    parts = (np.flatnonzero(np.abs(lags * count - lag) <= count / 2) for count in range(lag // first, 1, -1))
    shorter = (int(part[means[part].argmax()]) for part in parts if len(part) and means[part].max() >= least)
    return int(lags[next(shorter, best)])
