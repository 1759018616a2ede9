"""Kinds of changes, and the columns that take part in them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from isopleth.tasks.changes.autocorrelation import cycle_of

# Steps on either side of a change that are compared.
_FARTHEST = 20_000
# Steps of a block, and fewest and most blocks on a side.
_BLOCK = 10.0
_LEAST, _MOST = 4, 30
# Standard errors from which a difference counts.
_SURE = 4.0
# A column counts as changed from this many standard errors, and from this share of the largest number of them.
_COLUMN, _SHARE = 3.0, 0.5
# Least difference of log standard deviations, log rates of crossings or log periods, and correlations; smaller ones are named
# changes of shape.
_EFFECTS = {"scatter": 0.15, "frequency": 0.1, "relation": 0.2}
# Difference of log standard deviations from which a change is one of scatter whatever else differs.
_WILDER = 0.7
# Columns of which all pairs are compared.
_MOST_PAIRS = 20


def kind_of_location(left: np.ndarray, right: np.ndarray, lines: bool) -> tuple[str, tuple[int, ...]]:
    """Tell a jump of level from a change of slope between segments, lines if `lines`, and name the columns that take part."""
    left, right = left[-_FARTHEST:], right[:_FARTHEST]
    if not lines:
        differences = right.mean(axis=0) - left.mean(axis=0)
        spread = np.sqrt(left.var(axis=0) / len(left) + right.var(axis=0) / len(right))
        return "level", _columns(_over(differences, spread))
    fits, errors = zip(*(_line(side, at) for side, at in ((left, len(left)), (right, 0))), strict=True)
    difference = fits[1] - fits[0]
    error = np.sqrt(errors[0] ** 2 + errors[1] ** 2)
    reach = 0.5 * min(len(left), len(right))
    bent = np.abs(difference[1]).sum() * reach > np.abs(difference[0]).sum()
    scores = _over(difference[1], error[1]) if bent else _over(difference[0], error[0])
    return ("slope" if bent else "level"), _columns(scores)


def kind_of_shape(left: np.ndarray, right: np.ndarray, cycle: float | None) -> tuple[str, tuple[int, ...]]:
    """Tell changes of scatter, frequency, relation and shape apart, by Welch's t of blocks, and name their columns."""
    left, right = left[-_FARTHEST:], right[:_FARTHEST]
    length = max(_BLOCK, cycle or 0.0)
    sides = [_in_blocks(side, length) for side in (left, right)]
    if min(len(side) for side in sides) < _LEAST:
        return _by_period(left, right)
    best, found = _SURE, None
    for kind, statistics in (("scatter", _scatter), ("frequency", _crossings), ("relation", _relation)):
        if kind == "relation" and not 1 < left.shape[1] <= _MOST_PAIRS:
            continue
        difference, scores = _compared(sides, statistics, _EFFECTS[kind])
        if scores.max() > best:
            best, found = float(scores.max()), (kind, _columns(scores))
            if kind == "scatter" and np.abs(difference).max() >= _WILDER:
                break  # a stretch that hardly moves has no frequency to compare
    if found and found[0] == "relation":
        pairs = list(combinations(range(left.shape[1]), 2))
        return "relation", tuple(sorted({column for pair in found[1] for column in pairs[pair]}))
    return found or _by_period(left, right)


def scatter_of(side: np.ndarray, cycle: float | None) -> np.ndarray:
    """Return the mean root of the standard deviations of blocks, which wild ones do not dominate."""
    blocks = _in_blocks(side, max(_BLOCK, cycle or 0.0)) or [side]
    return np.asarray(np.mean([np.sqrt(block.std(axis=0)) for block in blocks], axis=0))


def _compared(
    sides: list[list[np.ndarray]], statistics: Callable[[np.ndarray], np.ndarray], least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences of the means of block statistics, and Welch's t of those that are at least `least`."""
    before, after = (np.array([statistics(block) for block in side]) for side in sides)
    difference = after.mean(axis=0) - before.mean(axis=0)
    error = np.sqrt(before.var(axis=0, ddof=1) / len(before) + after.var(axis=0, ddof=1) / len(after))
    return difference, np.where(np.abs(difference) >= least, np.abs(_over(difference, error)), 0.0)


def _by_period(left: np.ndarray, right: np.ndarray) -> tuple[str, tuple[int, ...]]:
    """Tell segments of different periods from segments of another shape."""
    columns = []
    for j in range(left.shape[1]):
        before, after = cycle_of(left[:, [j]]), cycle_of(right[:, [j]])
        if before is not None and after is not None and abs(np.log(after / before)) >= _EFFECTS["frequency"]:
            columns.append(j)
    return ("frequency", tuple(columns)) if columns else ("shape", tuple(range(left.shape[1])))


def _over(difference: np.ndarray, error: np.ndarray) -> np.ndarray:
    return np.asarray(difference / np.maximum(error, 1e-12 * np.abs(difference) + 1e-300))


def _columns(scores: np.ndarray) -> tuple[int, ...]:
    sizes = np.abs(scores)
    least = min(float(sizes.max()), max(_COLUMN, _SHARE * float(sizes.max())))
    return tuple(int(j) for j in np.flatnonzero(sizes >= least))


def _line(side: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Return value at step `at` and slope of the least-squares line, and their standard errors, each of shape (2, d)."""
    design = np.column_stack([np.ones(len(side)), np.arange(len(side)) - at])
    fit = np.linalg.lstsq(design, side, rcond=None)[0]
    left = side - design @ fit
    variance = np.sum(left**2, axis=0) / max(len(side) - 2, 1)
    inverse = np.diag(np.linalg.inv(design.T @ design))
    return fit, np.sqrt(inverse[:, None] * variance)


def _in_blocks(side: np.ndarray, length: float) -> list[np.ndarray]:
    count = int(min(len(side) // length, _MOST))
    return [] if count < 1 else np.array_split(side, count)


def _scatter(block: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * np.log(block.var(axis=0) + 1e-300))


def _crossings(block: np.ndarray) -> np.ndarray:
    """Return the log rate at which each column crosses its mean."""
    above = block > block.mean(axis=0)
    return np.asarray(np.log((0.5 + np.sum(above[1:] != above[:-1], axis=0)) / len(block)))


def _relation(block: np.ndarray) -> np.ndarray:
    """Return the correlations of all pairs of columns."""
    rest = block - block.mean(axis=0)
    rest = rest / np.maximum(np.sqrt(np.sum(rest**2, axis=0)), 1e-300)
    products = rest.T @ rest
    return np.asarray(products[np.triu_indices(len(products), 1)])
