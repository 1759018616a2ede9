"""Rarity of a stretch of a series that lies far from what is beside it, by the other stretches of the same length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median_filter
from scipy.signal import find_peaks

# Fewest steps on either side with which a stretch is compared, places of a stretch within its length, and most and fewest peaks
# that tell the tail.
_AROUND, _PLACES, _PEAKS, _FEWEST = 5, 4, 20, 4
# Steps whose median is the level near a value, share of the values in a tail, share of the outermost on each side, which may be
# incidents, and largest scale in spreads, which is a straight line.
_NEAR, _TAIL, _OUTER, _STRAIGHT = 51, 0.25, 0.05, 1e6


@dataclass(frozen=True)
class SkewScale:
    r"""The scale of the sizes of differences x from the level near them, by which skewed ones are as often large up as down.

    It is :math:`\log(1 + x / s)` on the side with the longer tail and linear on the other. With the means :math:`a, b, c` of the
    lower quarter, the middle half and the upper quarter, :math:`s + b = (c - b)(b - a) / (a + c - 2b)`; the outermost twentieth
    on either side is left out.
    """

    sign: float
    scale: float

    @classmethod
    def of(cls, values: np.ndarray) -> SkewScale:
        """Return the scale of a series."""
        off = np.sort(values - median_filter(values, _NEAR, mode="reflect"))
        off = off[int(_OUTER * len(off)) : len(off) - int(_OUTER * len(off))]
        count = max(int(_TAIL * len(off)), 1)
        low, middle, high = float(off[:count].mean()), float(off[count:-count].mean()), float(off[-count:].mean())
        up, down = high - middle, middle - low
        most, more = _STRAIGHT * (up + down), abs(up - down)
        scale = up * down / more if more > up * down / most else most
        sign = 1.0 if up >= down else -1.0
        return cls(sign, max(scale - sign * middle, (up + down) / _STRAIGHT, 1e-300))

    def sizes(self, differences: np.ndarray) -> np.ndarray:
        """Return the sizes of differences."""
        along = self.sign * differences / self.scale
        return np.where(along > 0.0, np.log1p(np.maximum(along, 0.0)), -along)


def beyond_others(values: np.ndarray, stretch: tuple[int, int], higher: Sequence[tuple[int, int]]) -> float:
    r"""Return the probability that a stretch is by chance so much farther off than the next one of its length; 1 if few are left.

    Stretches of a skewed or bursting series with memory are high together, so no law of single values tells how high they get.
    Where the sizes of stretches have an exponential tail, the spacings :math:`i (x_i - x_{i+1})` of the largest peaks
    :math:`x_1 > x_2 > \dots` are independent and exponential, and the ratio of one to the mean of the others follows an
    F distribution (Rényi 1953). `higher` are stretches that are known to be apart, which do not count.
    """
    start, end = stretch
    length, scale = end - start, SkewScale.of(values)
    around = max(length, _AROUND)
    starts = np.arange(around, len(values) - length - around + 1, max(1, length // _PLACES))
    for first, last in (stretch, *higher):
        starts = starts[(starts + length + around <= first) | (starts - around >= last)]
    if not len(starts):
        return 1.0
    # Between two low ends, so that the highest of all is a peak.
    others = np.pad(scale.sizes(_heights(values, starts, length, around)), 1, constant_values=-1.0)
    peaks = others[find_peaks(others, distance=_PLACES if length >= _PLACES else length)[0]]
    own = float(scale.sizes(np.array([_height(values, start, end, around)]))[0])
    return beyond_next(own, peaks, len(higher))


def beyond_next(size: float, others: np.ndarray, higher: int, least: float = 1e-300) -> float:
    """Return the probability that a size is by chance so much above the largest of the others; 1 if they are few.

    `higher` is the number of sizes above it, and `least` the least mean of a spacing, which is a unit where sizes are whole.
    """
    largest = np.sort(others)[::-1][:_PEAKS]
    if len(largest) < _FEWEST:
        return 1.0
    return _chance_of_spacing(float(size - largest[0]), largest, higher, least)


def _chance_of_spacing(own: float, peaks: np.ndarray, higher: int, least: float = 1e-300) -> float:
    """Return the probability of a spacing from the largest of the descending `peaks` to one above it, below so many others."""
    count = len(peaks) - 1
    usual = float(np.mean((np.arange(count) + 2.0 + higher) * -np.diff(peaks)))
    ratio = (1.0 + higher) * max(own, 0.0) / max(usual, least)
    return float(np.exp(-count * np.log1p(ratio / count)))


def beyond_other_visits(values: np.ndarray, stretch: tuple[int, int], higher: Sequence[tuple[int, int]]) -> float:
    """Return the same for a series that mostly rests at one value: the other stretches are those where it is not at rest.

    Their sizes are the logarithms of their areas, in which both high and long ones count, and even a heavy tail is exponential.
    """
    off = np.abs(values - np.median(values))
    start, end = stretch
    own = float(np.log(max(off[start:end].sum(), 1e-300)))
    away = off > 0.0
    for first, last in (stretch, *higher):
        away[first:last] = False
    bounds = np.flatnonzero(np.diff(away, prepend=False, append=False))
    areas = np.add.reduceat(np.append(off * away, 0.0), bounds)[::2] if len(bounds) else np.empty(0)
    peaks = np.sort(np.log(areas))[::-1][:_PEAKS]
    return 1.0 if len(peaks) < _FEWEST else _chance_of_spacing(own - float(peaks[0]), peaks, len(higher))


def _heights(values: np.ndarray, starts: np.ndarray, length: int, around: int) -> np.ndarray:
    """Return how far all of the nearer half of each stretch is from the mean of the medians on both sides."""
    sides = np.lib.stride_tricks.sliding_window_view(values, around)
    base = 0.5 * (np.median(sides[starts - around], axis=1) + np.median(sides[starts + length], axis=1))
    own = np.lib.stride_tricks.sliding_window_view(values, length)[starts] - base[:, None]
    return _nearer_middle(own)


def _height(values: np.ndarray, start: int, end: int, around: int) -> float:
    """Return the same of one stretch, which may have a shorter side."""
    sides = values[max(start - around, 0) : start], values[end : end + around]
    base = 0.5 * sum(float(np.median(side)) for side in sides)
    return float(_nearer_middle(values[None, start:end] - base)[0])


def _nearer_middle(rows: np.ndarray) -> np.ndarray:
    """Return the lower or upper median of each row, whichever is nearer to 0; 0 between the two."""
    rows, count = np.sort(rows, axis=1), rows.shape[1]
    low, high = rows[:, (count - 1) // 2], rows[:, count // 2]
    return np.asarray(np.maximum(low, 0.0) + np.minimum(high, 0.0))
