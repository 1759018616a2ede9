"""Changes of scatter in the description, for series that are too short for the scan of shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isopleth.tasks.changes.described import SHARE, CalibratedDescription
from isopleth.tasks.changes.description_length import SHORTEST_SCATTER, pvalue_of_gain, scatter_drifts
from isopleth.tasks.changes.legs.leg import Candidate, Leg, LegCandidates
from isopleth.tasks.changes.legs.shapes import SHORTEST
from isopleth.tasks.changes.series import ObservedSeries


def run(series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of scatter between the segments of a short series, unless a line describes the scatter better."""
    scatter = described.found.scatter
    if len(series) >= SHORTEST or scatter is None:
        return
    changes: list[Candidate] = []
    if len(scatter.changes) and not scatter_drifts(described.innovations, scatter.bounds):
        found = zip(scatter.changes, scatter.gains, strict=True)
        changes = [Candidate(int(step), pvalue_of_gain(gain, described.scatters), "scatter") for step, gain in found]
    yield LegCandidates(changes, reach=0.5 * SHORTEST_SCATTER, followed_by={"scatter": SHORTEST_SCATTER})


LEG = Leg("scatter", SHARE, run)
