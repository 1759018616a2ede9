"""Changes of level and slope in one of many columns, which the noise of the others hides in the joint description."""

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
    """Yield the changes of each column alone."""
    if series.values.shape[1] > 1:
        yield from each_alone(series, rng, "location")


def each_alone(series: ObservedSeries, rng: np.random.Generator, quantity: str) -> Iterator[LegCandidates]:
    """Yield the changes of each column alone, each at the same part of the rate."""
    count = series.values.shape[1]
    for j, own in enumerate(rng.spawn(count)):
        one = replace(series.column(j, series.rate / count), tick=unheard)
        if margin_of(unbroken(one.values)) <= 0.0:  # no change is worth its cost
            continue
        of_description, of_location = own.spawn(2)
        # A description takes its share of the rate.
        alone = described(replace(one, rate=one.rate / SHARE), of_description)
        for found in location.run(one, alone, of_location):
            changes = [
                replace(change, pvalue=min(1.0, count * change.pvalue), quantity=quantity, column=j)
                for change in found.changes
            ]
            yield LegCandidates(changes, reach=_REACH)


LEG = Leg("columns", 0.5 * SHARE, run)
