"""States of a series: segments that are alike have the same one, so that a state may come back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, pairwise

import numpy as np

from isopleth.tasks.changes.segments import standardised

# Random kernels, their length, and most of a window over which one is spread.
_KERNELS, _LENGTH, _SPREAD = 100, 9, 0.5
# Cycles of a window, steps of one without a cycle and of the shortest one, fewest windows of a segment, and windows that begin
# within one. Segments with fewer windows have a state of their own.
_CYCLES, _STEPS, _SHORTEST, _FEWEST, _OVERLAP = 2.0, 20, 4, 5, 2
# Folds of consecutive windows, and ridge in units of the trace.
_FOLDS, _RIDGE = 5, 0.3
# Balanced accuracy below which two segments are one state.
_SEPARABLE = 0.7
# Share of a change by which two segments differ in what changed if it is still there.
_STILL_THERE = 0.5


def states_of(
    values: np.ndarray,
    places: np.ndarray,
    cycle: float | None,
    rng: np.random.Generator,
    told: Sequence[tuple[int, np.ndarray]] = (),
) -> np.ndarray:
    """Return the state of each segment between changes at `places`, numbered in the order in which they occur.

    Random kernels describe the windows of the segments (Dempster, Petitjean and Webb 2020). The two groups of segments that a
    ridge regression tells apart least are joined while it does so no better than by chance. Never in one group are neighbours,
    between which there is a change, and segments on two sides of a change whose difference is still there. `told` has the number
    of each change of a level or a scatter, and these of all segments: a season would hide them from the kernels.
    """
    bounds = np.concatenate([[0], places, [len(values)]]).astype(int)
    groups: list[tuple[int, ...]] = [(i,) for i in range(len(bounds) - 1)]
    if len(groups) < 3:
        return np.arange(len(groups))
    windows = _described_windows(values, bounds, cycle, rng)
    apart = _apart(len(groups), told)

    @cache
    def accuracy(first: tuple[int, ...], second: tuple[int, ...]) -> float:
        return _accuracy(*(np.concatenate([windows[i] for i in group]) for group in (first, second)))

    while pairs := [pair for pair in combinations(groups, 2) if not apart[np.ix_(*pair)].any()]:
        best = min(pairs, key=lambda pair: accuracy(*pair))
        if accuracy(*best) >= _SEPARABLE:
            break
        groups = sorted([*(group for group in groups if group not in best), tuple(sorted(sum(best, ())))])
    labels = np.empty(len(bounds) - 1, dtype=int)
    for number, group in enumerate(groups):
        labels[list(group)] = number
    return labels


def _apart(count: int, told: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
    """Return which segments are neighbours, or differ by more than half of a change that lies between them."""
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) == 1
    for change, numbers in told:
        distances = np.linalg.norm(numbers[:, None] - numbers, axis=2)
        before = np.arange(count) <= change
        apart |= (before[:, None] != before) & (distances > _STILL_THERE * distances[change, change + 1])
    return apart


def _described_windows(
    values: np.ndarray, bounds: np.ndarray, cycle: float | None, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return the windows of each segment: for each kernel the share above a quantile, and the log of the mean size."""
    lengths = np.diff(bounds)
    shortest = int(min((n for n in lengths if n >= _FEWEST * _SHORTEST), default=lengths.max()))
    size = int(np.clip(_STEPS if cycle is None else _CYCLES * cycle, 1, max(1, shortest // _FEWEST)))
    scaled = standardised(values)
    starts = [np.arange(start, end - size + 1, max(1, size // _OVERLAP)) for start, end in pairwise(bounds)]
    every = np.concatenate(starts)
    features = np.empty((len(every), 2 * _KERNELS))
    for k in range(_KERNELS):
        line = _filtered(scaled, size, rng)
        above = np.concatenate([[0.0], np.cumsum(line > np.quantile(line, rng.random()))])
        sizes = np.concatenate([[0.0], np.cumsum(np.abs(line))])
        features[:, 2 * k] = (above[every + size] - above[every]) / size
        features[:, 2 * k + 1] = np.log((sizes[every + size] - sizes[every]) / size + 1e-9)
    return np.split(features, np.cumsum([len(some) for some in starts])[:-1])


def _filtered(scaled: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the columns, mixed at random, after a random kernel; half of the kernels see levels."""
    mixed = scaled @ rng.normal(size=scaled.shape[1])
    kernel = rng.normal(size=_LENGTH)
    kernel = kernel - kernel.mean() * (rng.random() < 0.5)
    longest = max(1, int(_SPREAD * size / _LENGTH))
    spread = np.zeros((_LENGTH - 1) * int(rng.integers(1, longest + 1)) + 1)
    spread[:: max(1, (len(spread) - 1) // (_LENGTH - 1))] = kernel
    half = len(spread) // 2
    padded = np.pad(mixed, (half, len(spread) - 1 - half), mode="edge")
    return np.convolve(padded, spread, mode="valid")


def _accuracy(first: np.ndarray, second: np.ndarray) -> float:
    """Return the balanced accuracy of ridge regressions on windows that they have not seen; 1 if there are too few."""
    if min(len(first), len(second)) < _FOLDS:
        return 1.0
    rows = np.concatenate([first, second])
    rows = (rows - 0.5 * (first.mean(axis=0) + second.mean(axis=0))) / np.maximum(rows.std(axis=0), 1e-9)
    labels = np.repeat([1.0, -1.0], [len(first), len(second)])
    weights = np.repeat([0.5 / len(first), 0.5 / len(second)], [len(first), len(second)])
    folds = np.concatenate([np.arange(len(one)) * _FOLDS // len(one) for one in (first, second)])
    right = np.empty(len(rows))
    for fold in range(_FOLDS):
        left_out = folds == fold
        fitted = ~left_out
        scores = rows[left_out] @ _ridge(rows[fitted], weights[fitted], labels[fitted])
        right[left_out] = scores * labels[left_out] > 0.0
    return float(weights @ right)


def _ridge(rows: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the weights of features of a weighted ridge regression, by the smaller of its two systems."""
    weighted = weights[:, None] * rows
    penalty = _RIDGE * float((weighted * rows).sum())
    if len(rows) <= rows.shape[1]:
        gram = rows @ weighted.T
        gram.flat[:: len(gram) + 1] += penalty
        return weighted.T @ np.linalg.solve(gram, labels)
    moments = weighted.T @ rows
    moments.flat[:: len(moments) + 1] += penalty
    return np.linalg.solve(moments, weighted.T @ labels)
