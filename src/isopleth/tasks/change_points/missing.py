"""Gaps of a series, filled so that they look neither calm nor alarming."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

_NEAR = 20
# Values on either side of a gap that tell its level.
_MOST = 0.9999


def filled_gaps(column: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fill the missing values of a column with draws of an autoregression that meets the values at both ends.

    The level goes on a line from the median of the values before a gap to that of the values after it. Around it an
    autoregression of one lag is drawn given its values at both ends of the gap. So the innovations of a filled gap have the
    scatter of the others, and a gap in a random walk is bridged by a random walk.
    """
    missing = np.isnan(column)
    if not missing.any() or missing.all():
        return column
    out = column.copy()
    known = np.flatnonzero(~missing)
    starts = np.flatnonzero(missing & ~np.concatenate([[False], missing[:-1]]))
    ends = np.flatnonzero(missing & ~np.concatenate([missing[1:], [False]])) + 1
    phi, spread = _autoregression(column)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        place = int(np.searchsorted(known, start))
        before, after = column[known[max(0, place - _NEAR) : place]], column[known[place : place + _NEAR]]
        levels = [float(np.median(some)) for some in (before, after) if len(some)]
        line = np.linspace(levels[0], levels[-1], end - start + 2)
        left = float(before[-1]) - line[0] if len(before) else None
        right = float(after[0]) - line[-1] if len(after) else None
        out[start:end] = line[1:-1] + _bridge(end - start, left, right, phi, spread, rng)
    return out


def _autoregression(column: np.ndarray) -> tuple[float, float]:
    """Correlation of neighbouring values and standard deviation of innovations, robust against changes of level."""
    pairs = ~np.isnan(column[1:]) & ~np.isnan(column[:-1])
    center = np.nanmedian(column)
    first, second = column[:-1][pairs] - center, column[1:][pairs] - center
    power = float(first @ first + second @ second)
    phi = float(np.clip(2.0 * (first @ second) / power, -_MOST, _MOST)) if power > 0.0 else 0.0
    left = second - phi * first
    return phi, float(np.sqrt(np.mean(left**2))) if len(left) else 0.0


def _bridge(
    length: int, left: float | None, right: float | None, phi: float, spread: float, rng: np.random.Generator
) -> np.ndarray:
    """Draw an autoregression between two values; one that is None is left open.

    A free path is drawn, and the expectation of what it misses at the ends is taken off.
    """
    stationary = spread / np.sqrt(1.0 - phi**2)
    start = rng.normal() * stationary if left is None else left
    noise = np.concatenate([[start], spread * rng.normal(size=length + 1)])
    path = np.asarray(lfilter([1.0], [1.0, -phi], noise))
    if right is None:
        return path[1:-1]
    steps = np.arange(1, length + 1)
    # Weight of the right end in the expectation of step i given both ends, by the covariances phi^|i - j|.
    if left is None:
        weight = phi ** (length + 1.0 - steps)
    elif abs(phi) < 1e-12:
        weight = np.zeros(length)
    else:
        squares = phi**2
        weight = phi ** (length + 1.0 - steps) * (1.0 - squares**steps) / (1.0 - squares ** (length + 1))
    return path[1:-1] + weight * (right - path[-1])
