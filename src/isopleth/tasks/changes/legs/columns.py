"""Changes of level and slope in one of many columns, which are hidden by the noise of the others in the joint description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isopleth.core.progress import unheard
from isopleth.tasks.changes.described import SHARE, Described, described
from isopleth.tasks.changes.description_length import margin_of, unbroken
from isopleth.tasks.changes.legs import location
from isopleth.tasks.changes.legs.leg import Leg, LegCandidates
from isopleth.tasks.changes.series import ObservedSeries

# Steps within twice which a change of the joint search is the same.
_REACH = 5.0


def run(series: ObservedSeries, model: Described, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of each column alone, each at the same part of the rate."""
    count = series.values.shape[1]
    if count < 2:
        return
    children = rng.spawn(count)
    for j in range(count):
        one = replace(series.column(j, series.rate / count), tick=unheard)
        if margin_of(unbroken(one.values)) <= 0.0:  # no change is worth its cost
            continue
        # A description takes its share of the rate.
        own, of_description = children[j].spawn(2)
        alone = described(replace(one, rate=one.rate / SHARE), of_description)
        for found in location.run(one, alone, own):
            changes = [replace(change, pvalue=min(1.0, count * change.pvalue)) for change in found.changes]
            yield LegCandidates(changes, reach=_REACH)


LEG = Leg("columns", 0.5 * SHARE, run)
