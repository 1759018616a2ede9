"""Changes of anything between cycles: shapes of windows, innovations and dynamics, averaged over blocks of whole cycles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isopleth.tasks.changes.described import CalibratedDescription
from isopleth.tasks.changes.dynamics import mean_scores
from isopleth.tasks.changes.embedding import SHAPE_LAGS, Blocks, blocks_of, embedded
from isopleth.tasks.changes.legs.leg import Candidate, Leg, LegCandidates
from isopleth.tasks.changes.scan import (
    CHUNK,
    FEW_CYCLES,
    LEAST_BLOCKS,
    MOST_BLOCKS,
    ContrastScan,
    clipped,
)
from isopleth.tasks.changes.segments import standardised
from isopleth.tasks.changes.series import ObservedSeries

# A quarter of the rate of the scans is kept back, because blocks of an estimated period are less exchangeable than the shuffles
# assume.
_SHARE = 0.5
_KINDS = "scatter", "shape", "frequency"  # and the relation of columns
_LEAST_LAG = 3
# Least share by which blocks two apart differ more than neighbours where blocks are joined, see ContrastScan. Cycles resemble the
# cycle before them, and joined cycles would be few.
_ALIKE = 0.5
# Cycles that a shuffle keeps together where they are few and scanned as blocks of their own, and steps of a cycle below which it
# keeps as many as elsewhere: windows of a short cycle are mostly noise, of which neighbouring blocks share a half.
_FEW_TOGETHER, _SHORT = 2, 20.0


def run(series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes between blocks of a series with a period; with 12 to 40 cycles, of parts of these and of whole ones.

    A part of a cycle differs from its neighbour by the phase, which hides what differs between cycles.
    """
    if described.cycle is None:
        return
    short = described.cycle < _SHORT
    few = FEW_CYCLES <= len(series) / described.cycle < LEAST_BLOCKS
    options = [(_parts(len(series), described.cycle), CHUNK)]
    if few:
        whole = blocks_of(len(series), described.cycle, FEW_CYCLES, MOST_BLOCKS)
        options.append((whole, CHUNK if short else _FEW_TOGETHER))
    normal, left = standardised(described.shapes), clipped(described.innovations)
    for blocks, chunk in options:
        lags = _lags(blocks, described.cycle)
        shapes = embedded(normal, lags, blocks, rng, normal=True, budget=series.budget)
        laws = embedded(left, [1], blocks, rng, normal=False, budget=series.budget)
        parts = np.concatenate([shapes, laws, mean_scores(described.shapes, blocks)], axis=1)
        scan = ContrastScan(parts, blocks, rng, _ALIKE, chunk=chunk, overlaps=few and short)
        found = scan.changes(series.rate / len(options), described.found.location.changes)
        changes = [Candidate(one.step, len(options) * one.pvalue, "shape") for one in found]
        followed_by = scan.followed_by(len(series), *_KINDS, *["relation"] * (series.values.shape[1] > 1))
        yield LegCandidates(changes, reach=scan.block, followed_by=followed_by)


def _parts(steps: int, cycle: float) -> Blocks:
    """Return at least 40 blocks, which are whole cycles or more if there are as many."""
    blocks = blocks_of(steps, cycle, LEAST_BLOCKS, MOST_BLOCKS)
    if blocks.length >= SHAPE_LAGS[0]:
        return blocks
    return blocks_of(steps, max(SHAPE_LAGS[0], np.ceil(SHAPE_LAGS[0] / cycle) * cycle), 2, MOST_BLOCKS)


def _lags(blocks: Blocks, cycle: float) -> list[int]:
    """Return the lengths of windows that fit in a block, and that of a cycle."""
    return sorted({lag for lag in SHAPE_LAGS if lag <= blocks.length} | {max(round(cycle), _LEAST_LAG)})


LEG = Leg("cycles", _SHARE, run)
