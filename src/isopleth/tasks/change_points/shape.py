"""Changes that levels, slopes and scatters do not show: of shape and of dependence, by LSDD between windows of innovations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from isopleth.tasks.change_points.curve import SlidingLSDD, along_series, drawn_centers, subsequences

_RUNS = 79
_LONGEST = 2000
_FARTHEST = 4.0
_EULER = 0.5772156649


class ShapeTest:
    """LSDD between neighbouring windows of innovations, held against innovations that are shuffled.

    Within a segment without a change innovations, and blocks of them, are exchangeable, so that blocks are shuffled there;
    steps nearer than a window to the bounds of segments are left out. The maxima of shuffled curves are fitted by Gumbel's
    law, of which the quantile is taken. Long series are shuffled in part, and the law is moved by what the maximum over the
    rest adds.

    Parameters
    ----------
    innovations : array of shape (n, d)
        What segments leave unpredicted.
    bounds : array of int
        0, the changes that are known, and n.
    subsequence, window : int
        k and r.
    centers : int
        How many subsequences are centres.
    memory_limit : float
        Bytes that a block of windows may take.
    rng : Generator
        For centres and shuffles.
    """

    def __init__(
        self,
        innovations: np.ndarray,
        bounds: np.ndarray,
        subsequence: int,
        window: int,
        centers: int,
        memory_limit: float,
        rng: np.random.Generator,
    ) -> None:
        self._values = np.clip(innovations, -_FARTHEST, _FARTHEST)
        self._bounds, self._subsequence, self._window, self._rng = bounds, subsequence, window, rng
        rows = subsequences(self._even(self._values), subsequence)
        chosen = drawn_centers(rows, centers, rng)
        self._sliding = SlidingLSDD.at(chosen, memory_limit) if len(chosen) > 1 else None
        self.curve = self._curve(self._values, bounds)

    def _curve(self, values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Scores where a window on either side lies within a segment, NaN elsewhere."""
        n = len(values)
        if self._sliding is None or n < 2 * self._window + self._subsequence - 1:
            return np.full(n, np.nan)
        rows = subsequences(self._even(values), self._subsequence)
        curve = along_series(self._sliding.scores(rows, self._window), n, self._subsequence, self._window)
        for place in bounds[1:-1]:
            curve[max(0, place - self._window + 1) : place + self._window] = np.nan
        return curve

    def _even(self, values: np.ndarray) -> np.ndarray:
        """The values over their mean absolute value within a window on either side: slow changes of scatter are none of shape."""
        reach = 2 * self._window + 1
        if len(values) < reach:
            return values
        sizes = np.pad(np.abs(values).mean(axis=1), self._window, mode="reflect")
        sums = np.cumsum(np.concatenate([[0.0], sizes]))
        local = np.maximum(sums[reach:] - sums[:-reach], 0.0) / reach
        return np.asarray(values / np.maximum(local, 1e-3 * local.max() + 1e-300)[:, None])

    def _shuffled(self, calm: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Innovations without a change, and the bounds of the segments within which they are like one another."""
        if calm is not None:
            order = self._in_blocks(0, len(calm))[:_LONGEST]
            return np.clip(calm[order], -_FARTHEST, _FARTHEST), np.array([0, len(order)])
        order = np.concatenate([self._in_blocks(start, end) for start, end in pairwise(self._bounds)])
        start = int(self._rng.integers(0, max(1, len(order) - _LONGEST + 1)))
        end = min(start + _LONGEST, len(order))
        inside = self._bounds[(self._bounds > start) & (self._bounds < end)] - start
        return self._values[order[start:end]], np.concatenate([[0], inside, [end - start]])

    def _in_blocks(self, start: int, end: int) -> np.ndarray:
        """The steps of a segment, closed to a ring and cut at random into blocks of half a window, in random order.

        Innovations of a model that fits less than perfectly keep some dependence, and so do the blocks.
        """
        length = end - start
        ring = start + (np.arange(length) + self._rng.integers(length)) % length
        blocks = np.array_split(ring, max(1, 2 * length // self._window))
        return np.concatenate([blocks[i] for i in self._rng.permutation(len(blocks))])

    def threshold(self, rate: float, calm: np.ndarray | None = None) -> float:
        """What the curve exceeds anywhere with probability `rate` without a change; by `calm` innovations if known."""
        maxima, lengths = [], []
        for _ in range(_RUNS):
            curve = self._curve(*self._shuffled(calm))
            scored = ~np.isnan(curve)
            if scored.any():
                maxima.append(curve[scored].max())
                lengths.append(scored.sum())
        if len(maxima) < 2:
            return float("inf")
        spread = np.std(maxima, ddof=1) * np.sqrt(6.0) / np.pi
        longer = max(np.sum(~np.isnan(self.curve)) / np.mean(lengths), 1.0)
        middle = np.mean(maxima) + spread * (np.log(longer) - _EULER)
        return float(middle - spread * np.log(-np.log1p(-rate)))

    def changes(self, threshold: float) -> np.ndarray:
        """Places of the highest scores above the threshold, each a window or more from higher ones."""
        left = np.where(np.isnan(self.curve), -np.inf, self.curve)
        found = []
        while left.max() > threshold:
            place = int(left.argmax())
            found.append(place)
            left[max(0, place - self._window + 1) : place + self._window] = -np.inf
        return np.array(sorted(found), dtype=int)
