"""Changes of scatter and relation: the distribution of the innovations of a series without a period."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isopleth.tasks.changes.described import CalibratedDescription
from isopleth.tasks.changes.embedding import blocks_of, embedded, moments
from isopleth.tasks.changes.legs.leg import Candidate, Leg, LegCandidates
from isopleth.tasks.changes.scan import LEAST_BLOCKS, MOST_BLOCKS, ContrastScan, clipped
from isopleth.tasks.changes.series import ObservedSeries

_SHARE = 4.0 / 9.0
# Steps of a block, and of a series that has enough blocks.
_ROWS = 5.0
SHORTEST = round(LEAST_BLOCKS * _ROWS)


def run(series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of the innovations, averaged over five steps."""
    if described.cycle is not None or len(series) < SHORTEST:
        return
    left = clipped(described.innovations)
    blocks = blocks_of(len(series), _ROWS, LEAST_BLOCKS, MOST_BLOCKS)
    laws = embedded(left, [1], blocks, rng, normal=False, budget=series.budget)
    scan = ContrastScan(np.concatenate([moments(left, blocks), laws], axis=1), blocks, rng, remembers=True)
    found = scan.changes(series.rate, described.found.location.changes)
    changes = [Candidate(one.step, one.pvalue, "shape") for one in found]
    kinds = ["scatter", *["relation"] * (series.values.shape[1] > 1)]
    yield LegCandidates(changes, reach=scan.block, followed_by=scan.followed_by(len(series), *kinds))


LEG = Leg("innovations", _SHARE, run)
