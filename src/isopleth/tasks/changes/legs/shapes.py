"""Changes of shape: the windows of a series without a period, in standard units."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isopleth.tasks.changes.described import CalibratedDescription
from isopleth.tasks.changes.embedding import SHAPE_LAGS, blocks_of, embedded
from isopleth.tasks.changes.legs.leg import Candidate, Leg, LegCandidates
from isopleth.tasks.changes.scan import LEAST_BLOCKS, MOST_BLOCKS, ContrastScan
from isopleth.tasks.changes.segments import standardised
from isopleth.tasks.changes.series import ObservedSeries

_SHARE = 2.0 / 9.0
# Steps of a block, and of a series that has enough blocks, which are as long as a window at least.
_ROWS = 20.0
SHORTEST = LEAST_BLOCKS * SHAPE_LAGS[0]


def run(series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of the shapes of windows of 10 steps, and of the dependence of neighbouring steps."""
    if described.cycle is not None or len(series) < SHORTEST:
        return
    blocks = blocks_of(len(series), _ROWS, LEAST_BLOCKS, MOST_BLOCKS)
    normal = standardised(described.shapes)
    parts = embedded(normal, [SHAPE_LAGS[0]], blocks, rng, normal=True, budget=series.budget)
    scan = ContrastScan(parts, blocks, rng, remembers=True)
    found = scan.changes(series.rate, described.found.location.changes)
    changes = [Candidate(one.step, one.pvalue, "shape") for one in found]
    followed_by = scan.followed_by(len(series), "shape", "frequency")
    yield LegCandidates(changes, reach=scan.block, followed_by=followed_by)


LEG = Leg("shapes", _SHARE, run)
