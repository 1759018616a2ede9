"""Two scans of a series: the shape of its windows, and the distribution of the innovations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.tasks.change_points.embedding import Blocks, blocks_of, embedded, moments, period_of
from isopleth.tasks.change_points.scan import ContrastScan

# Lengths of the windows whose shape is compared, as far as they fit in a block: longer ones would make neighbouring blocks alike.
SHAPE_LAGS = (10, 20)
_LEAST_LAG = 3
# Least height of the autocorrelation at a period, as it is and in its standard errors for independent values; and least height
# in standard errors that are estimated from the products of values one period apart.
_PERIODIC, _ERRORS, _SURE = 0.1, 4.0, 4.0
# Least share by which blocks two apart differ more than neighbours where blocks are joined, see ContrastScan. Cycles resemble the
# cycle before them, and joined cycles would be few.
_ALIKE, _ALIKE_CYCLES = 0.1, 0.5
# Blocks within which two changes are one.
_NEAR = 2.0
# Share of the rate at which shapes and innovations are scanned together: blocks of an estimated period are less exchangeable than
# the shuffles assume.
_TOGETHER = 0.75
# Shares of the rate without a period, together more than 1. Chunks keep blocks together in the shuffles, and steps that an
# autoregression explains are left out, so that in independent series the scan of innovations alarms less often than its share.
_INNOVATIONS, _SHAPES = 1.0, 0.5
# False alarm rate of the detector over that of the scans.
_OF_DETECTOR = 1.5
# Steps of a block of windows in a series without a period, and of a block of innovations.
_WITHOUT_PERIOD, _ROWS = 20.0, 5.0
# Fewest and most blocks.
_LEAST, _MOST = 40, 1000
# Innovations are clipped at this many standard deviations.
_FARTHEST = 4.0
# Steps of a series without a period that has enough blocks for the scan of innovations, and for that of shapes, whose blocks are
# as long as a window at least.
SHORTEST_LAWS = round(_LEAST * _ROWS)
SHORTEST_SHAPES = _LEAST * SHAPE_LAGS[0]


@dataclass(frozen=True)
class Candidate:
    """A change that one part of the detector found."""

    step: int  # first step after the change
    pvalue: float  # least false alarm rate of the detector at which it would be found
    kind: str  # quantity that was compared: levels and slopes, the scatter of innovations, or mean embeddings


@dataclass(frozen=True, eq=False)
class Scanned:
    """Changes that a scan found, and the length of its blocks in steps."""

    changes: list[Candidate]
    block: float


def cycle_of(values: np.ndarray) -> float | None:
    """Return the period of a series, or None if its autocorrelation has no peak higher than noise would give."""
    spread = np.maximum(values.std(axis=0), 1e-300)
    length, height, sureness = period_of((values - values.mean(axis=0)) / spread)
    return length if height >= max(_PERIODIC, _ERRORS / np.sqrt(len(values))) and sureness >= _SURE else None


def merged(changes: list[Candidate], scanned: Scanned) -> list[Candidate]:
    """Add the changes of a scan that are farther than two blocks from the changes known."""
    near = _NEAR * scanned.block
    return changes + [one for one in scanned.changes if all(abs(one.step - other.step) > near for other in changes)]


def one_a_gap(changes: list[Candidate], known: np.ndarray) -> list[Candidate]:
    """Keep the surest of changes between which more steps are missing than known: a gap is filled along a line."""
    kept: list[Candidate] = []
    for one in sorted(changes, key=lambda one: one.step):
        if kept and 2 * np.sum(known[kept[-1].step : one.step]) < one.step - kept[-1].step:
            kept.append(min(kept.pop(), one, key=lambda two: two.pvalue))
        else:
            kept.append(one)
    return kept


def scans(
    values: np.ndarray,
    innovations: np.ndarray,
    cycle: float | None,
    rate: float,
    rng: np.random.Generator,
    memory_limit: float,
) -> list[Scanned]:
    """Scan the shapes of windows and the distribution of innovations.

    If the series has a period, both are averaged over blocks of one period and scanned together, with three quarters of the
    rate. Otherwise innovations are scanned over blocks of five steps, which place a change more precisely. This scan has the
    whole rate, and that of windows half of it. A scan for which the series has too few blocks is left out.
    `rate` is the false alarm rate of both scans together.
    """
    spread = np.maximum(values.std(axis=0), 1e-300)
    normal = (values - values.mean(axis=0)) / spread
    left = np.clip(innovations / np.maximum(np.sqrt(np.mean(innovations**2, axis=0)), 1e-300), -_FARTHEST, _FARTHEST)
    length = _WITHOUT_PERIOD if cycle is None else cycle

    def embedding(rows: np.ndarray, chosen: list[int], blocks: Blocks, shapes: bool) -> np.ndarray:
        return embedded(rows, chosen, blocks, rng, normal=shapes, memory_limit=memory_limit)

    least = SHAPE_LAGS[0]
    wide = blocks_of(len(values), length, _LEAST, _MOST)
    if wide.length < least:
        wide = blocks_of(len(values), max(least, np.ceil(least / length) * length), 2, _MOST)
    short = {lag for lag in SHAPE_LAGS if cycle is not None and lag <= wide.length} | {SHAPE_LAGS[0]}
    lags = sorted({*short} if cycle is None else {*short, max(round(cycle), _LEAST_LAG)})
    if cycle is not None:
        both = [embedding(normal, lags, wide, True), embedding(left, [1], wide, False)]
        return [_scanned(np.concatenate(both, axis=1), wide, _TOGETHER, rate, rng, _ALIKE_CYCLES)]
    found = []
    if len(values) >= SHORTEST_LAWS:
        narrow = blocks_of(len(values), _ROWS, _LEAST, _MOST)
        laws = np.concatenate([moments(left, narrow), embedding(left, [1], narrow, False)], axis=1)
        found.append(_scanned(laws, narrow, _INNOVATIONS, rate, rng, remembers=True))
    if len(values) >= SHORTEST_SHAPES:
        found.append(_scanned(embedding(normal, lags, wide, True), wide, _SHAPES, rate, rng, remembers=True))
    return found


def _scanned(
    parts: np.ndarray,
    blocks: Blocks,
    share: float,
    rate: float,
    rng: np.random.Generator,
    alike: float = _ALIKE,
    remembers: bool = False,
) -> Scanned:
    """Return the changes of one scan, with p-values of the whole detector, of whose rate the scan has a share."""
    scan = ContrastScan(parts, blocks, rng, alike, remembers)
    found = scan.changes(share * rate)
    return Scanned(
        [Candidate(one.step, min(1.0, _OF_DETECTOR / share * one.pvalue), "shape") for one in found], scan.block
    )
