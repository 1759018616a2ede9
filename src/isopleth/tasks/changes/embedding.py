"""Kernel mean embeddings of the lag windows of a series, averaged over blocks of equal length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist

from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.threads import ONE_BLAS_THREAD
from isopleth.operators.features import GaussianFeatures

LANDMARKS = 100
# Lengths of the windows whose shape is compared, as far as they fit in a block: longer ones would make neighbouring blocks alike.
SHAPE_LAGS = (10, 20)
# Parts of a block: changes are placed to a part, contrasts are computed over whole blocks.
PARTS = 8
# Largest length scale, relative to the median distance of landmarks, at which windows of different shape look alike. The other
# two scales are this divided by the root of 2 and by 2, so that one exponential gives all three.
WIDEST = 0.5
_SCALES = 3
# Added to the standard deviation of a window, in standard deviations of its column, so that windows without a signal do not
# become windows of noise.
_LEAST_SPREAD = 0.1
# Points of a window; longer windows are thinned.
_MOST_POINTS = 40
# Share of a part's windows that must count for a landmark.
_LEAST_SHARE = 0.25
_COMPONENTS = 100
# Blocks between one whose windows do not count and the one whose mean it gets: more than shuffles keep together.
_FAR = 5
# Columns of which all products are averaged.
_MOST_PAIRED = 12
# Share of the size of values below which differences are rounding errors, which have periods and shapes too: those of a line.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Blocks:
    """Blocks of equal length, which need not be a whole number of steps."""

    length: float  # steps of a block
    count: int  # number of blocks
    parts: int  # parts of each block

    @property
    def edges(self) -> np.ndarray:
        """Bounds of all parts, of shape (count parts + 1,)."""
        return np.linspace(0.0, self.count * self.length, self.count * self.parts + 1)


def blocks_of(steps: int, length: float, least: int, most: int) -> Blocks:
    """Divide a series into `least` to `most` blocks of about `length` steps, of longer ones in long series."""
    if steps < least * length:
        length = steps / least
    elif steps > most * length:
        length *= np.ceil(steps / (most * length))
    return Blocks(float(length), int(steps / length + 1e-9), int(np.clip(length, 1, PARTS)))


def lag_windows(values: np.ndarray, lag: int, normal: bool) -> np.ndarray:
    """Return windows of `lag` steps, of shape (T - lag + 1, points d), each column of each in standard units if `normal`."""
    windows = np.lib.stride_tricks.sliding_window_view(values, lag, axis=0)
    if lag > _MOST_POINTS:
        windows = windows[:, :, np.linspace(0, lag - 1, _MOST_POINTS).round().astype(int)]
    if normal:
        spread = windows.std(axis=2, keepdims=True) + _LEAST_SPREAD
        windows = (windows - windows.mean(axis=2, keepdims=True)) / spread
    return np.ascontiguousarray(windows).reshape(len(windows), -1)


def embedded(
    values: np.ndarray,
    lags: list[int],
    blocks: Blocks,
    rng: np.random.Generator,
    *,
    normal: bool,
    budget: Budget = DEFAULT_BUDGET,
) -> np.ndarray:
    """Compute the mean embedding of the windows in each part of each block.

    Gaussians at landmarks, for each lag and scale in units of the differences of neighbouring blocks, are reduced to principal
    components. With `normal`, windows are in standard units, so that only shape counts.
    """
    groups = []
    for lag in lags:
        for means in _of_lag(values, lag, blocks, rng, normal, budget):
            steps = np.diff(over_blocks(means, blocks.parts), axis=0)
            size = float(np.sqrt(np.sum(steps**2) / max(len(steps), 1)))
            if size > 0.0:
                groups.append(means / size)
    if not groups:
        return np.zeros((blocks.count * blocks.parts, 1))
    return _leading(np.concatenate(groups, axis=1), blocks.parts)


def moments(values: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Average roots of absolute values and of products of columns over the parts of blocks, with twice the weight of a lag.

    A change of scatter or correlation is spread over many components of an embedding, but appears in one of these.
    """
    rows = [np.sqrt(np.abs(values))]
    if values.shape[1] <= _MOST_PAIRED:
        for i in range(1, values.shape[1]):
            products = values[:, i : i + 1] * values[:, :i]
            rows.append(np.sign(products) * np.sqrt(np.abs(products)))
    return in_units_of_steps(means_over_parts(np.column_stack(rows), blocks), blocks.parts, 2.0)


def means_over_parts(rows: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Average rows, one a step, over the parts of blocks; their edges need not be whole steps."""
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    at = np.minimum(blocks.edges, len(rows))
    whole = np.minimum(at.astype(int), len(rows) - 1)
    cut = sums[whole] + (at - whole)[:, None] * (sums[whole + 1] - sums[whole])
    return np.asarray(np.diff(cut, axis=0) * (blocks.parts / blocks.length))


def in_units_of_steps(means: np.ndarray, parts: int, weight: float) -> np.ndarray:
    """Return means of parts times a weight, in units of the differences of neighbouring blocks."""
    steps = np.diff(over_blocks(means, parts), axis=0)
    return np.asarray(means * (weight / max(float(np.sqrt(np.sum(steps**2) / max(len(steps), 1))), 1e-300)))


def over_blocks(parts: np.ndarray, count: int) -> np.ndarray:
    """Average over the parts of each block."""
    return np.asarray(parts.reshape(len(parts) // count, count, parts.shape[1]).mean(axis=1))


def _leading(features: np.ndarray, parts: int) -> np.ndarray:
    features = features - features.mean(axis=0)
    means = over_blocks(features, parts)
    _, _, axes = np.linalg.svd(means, full_matrices=False)
    return np.asarray(features @ axes[:_COMPONENTS].T)


def _of_lag(
    values: np.ndarray,
    lag: int,
    blocks: Blocks,
    rng: np.random.Generator,
    normal: bool,
    budget: Budget,
) -> Iterator[np.ndarray]:
    """Yield means of the functions of windows of one lag, for each length scale."""
    count = len(values) - lag + 1
    places = np.unique(((np.arange(LANDMARKS) + rng.random(LANDMARKS)) * count / LANDMARKS).astype(int))
    landmarks = np.concatenate([lag_windows(values[place : place + lag], lag, normal) for place in places])
    distances = pdist(landmarks)
    distances = distances[distances > _ROUNDING * np.abs(landmarks).max()]
    if not len(distances):
        return
    scale = WIDEST * float(np.median(distances))
    middles = blocks.edges - 0.5 * (lag - 1)
    edges = np.clip(middles, 0.0, count)
    functions = _Functions(values, lag, normal, places, GaussianFeatures(landmarks, scale))
    sums = np.diff(functions.until(edges, budget), axis=0)
    weights = _weights(edges, places, lag, count)
    # Windows at the ends of the series are part of a cycle, and their means those of some phases only.
    whole = (np.diff(edges) > (1.0 - _ROUNDING) * np.diff(middles))[:, None]
    enough = whole & (weights >= _LEAST_SHARE * blocks.length / blocks.parts)
    for number in range(_SCALES):
        means = sums[:, number] / np.maximum(weights, 1e-9)
        yield _filled(means, enough, blocks.parts)


@dataclass(frozen=True)
class _Functions:
    """Gaussian functions of windows at landmarks, at three length scales, and their cumulative sums."""

    values: np.ndarray
    lag: int
    normal: bool
    places: np.ndarray
    landmarks: GaussianFeatures  # of the largest scale

    def until(self, edges: np.ndarray, budget: Budget) -> np.ndarray:
        """Compute sums over the windows before each edge, of shape (edges, scales, landmarks); edges need not be whole steps."""
        count, size = len(self.values) - self.lag + 1, len(self.landmarks.centers)
        step = int(np.clip(budget.memory / (64.0 * (size + self.landmarks.centers.shape[1])), 256, 16384))
        out = np.empty((len(edges), _SCALES, size))
        total = np.zeros((_SCALES, size))
        done = 0
        with ONE_BLAS_THREAD:
            for start in range(0, count, step):
                stop = min(start + step, count)
                last = len(edges) if stop == count else int(np.searchsorted(edges, stop, side="right"))
                inside = edges[done:last] - start
                whole = np.minimum(inside.astype(int), stop - start - 1)
                share = (inside - whole)[:, None]
                functions = self._at(start, stop)
                for number in range(_SCALES):
                    sums = np.concatenate([np.zeros((1, size)), np.cumsum(functions, axis=0)])
                    out[done:last, number] = total[number] + sums[whole] + share * functions[whole]
                    total[number] += sums[-1]
                    functions = functions * functions
                done = last
        return out

    def _at(self, start: int, stop: int) -> np.ndarray:
        windows = lag_windows(self.values[start : stop + self.lag - 1], self.lag, self.normal)
        centers = self.landmarks.centers
        # By a product: windows have many numbers, and are in units in which these are small.
        squares = np.einsum("ij,ij->i", windows, windows)[:, None] - 2.0 * windows @ centers.T
        squares += np.einsum("ij,ij->i", centers, centers)
        functions = self.landmarks.at(np.maximum(squares, 0.0))
        # Windows that overlap a landmark are left out, because they share values with it.
        for column in np.flatnonzero((self.places > start - self.lag) & (self.places < stop + self.lag)):
            low, high = self.places[column] - self.lag + 1 - start, self.places[column] + self.lag - start
            functions[max(low, 0) : max(high, 0), column] = 0.0
        return np.asarray(functions)


def _weights(edges: np.ndarray, places: np.ndarray, lag: int, count: int) -> np.ndarray:
    """Count the windows in each part that are compared with each landmark, of shape (parts, landmarks)."""
    low, high = np.maximum(places - lag + 1, 0.0), np.minimum(places + lag, float(count))
    left_out = np.clip(edges[1:, None], low, high) - np.clip(edges[:-1, None], low, high)
    return np.diff(edges)[:, None] - left_out


def _filled(means: np.ndarray, enough: np.ndarray, parts: int) -> np.ndarray:
    """Replace means of too few windows by those of the nearest blocks beyond a chunk.

    Copies of near blocks would make the blocks at both ends of a series more alike than those of any shuffle.
    """
    shape = (len(means) // parts, parts * means.shape[1])  # each part of the blocks and each landmark is a column
    chosen = ~enough.reshape(shape).all(axis=0)
    out = means.reshape(shape).copy()
    own, known = out[:, chosen], enough.reshape(shape)[:, chosen]
    rows = np.arange(len(own))[:, None]
    last = np.maximum.accumulate(np.where(known, rows, -len(own)))
    following = np.minimum.accumulate(np.where(known, rows, 2 * len(own))[::-1])[::-1]
    far = min(_FAR, len(own) // 2)
    low = np.concatenate([np.full((far, own.shape[1]), -len(own)), last[: len(own) - far]])
    high = np.concatenate([following[far:], np.full((far, own.shape[1]), 2 * len(own))])
    nearest = np.clip(np.where(rows - low <= high - rows, low, high), 0, len(own) - 1)
    there = np.take_along_axis(known, nearest, axis=0)
    out[:, chosen] = np.where(known, own, np.where(there, np.take_along_axis(own, nearest, axis=0), 0.0))
    return np.asarray(out.reshape(means.shape))
