"""Changes of level and slope in one of many columns, which the noise of the others hides in the joint description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isopleth.core.progress import unheard
from isopleth.tasks.changes.described import SHARE, CalibratedDescription, described
from isopleth.tasks.changes.description_length import describe, margin_of, unbroken
from isopleth.tasks.changes.legs import location
from isopleth.tasks.changes.legs.leg import NEAR, Leg, LegCandidates
from isopleth.tasks.changes.series import ObservedSeries

# Steps within twice which a change of the joint search is the same.
_REACH = 5.0


def run(series: ObservedSeries, model: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of each column alone."""
    if series.values.shape[1] > 1:
        yield from each_alone(series, model.found.location.changes, rng, "location")


def each_alone(
    series: ObservedSeries, known: np.ndarray, rng: np.random.Generator, quantity: str
) -> Iterator[LegCandidates]:
    """Yield the changes of each column alone, each at the same part of the rate; those near `known` ones are no news."""
    count = series.values.shape[1]
    for j, own in enumerate(rng.spawn(count)):
        one = replace(series.column(j, series.rate / count), tick=unheard)
        if margin_of(unbroken(one.values)) <= 0.0:  # no change is worth its cost
            continue
        first = describe(one.values, floors=one.floors)
        if _all_known(first.location.changes, known):
            continue
        of_description, of_location = own.spawn(2)
        # A description takes its share of the rate.
        alone = described(replace(one, rate=one.rate / SHARE, first=first), of_description)
        for found in location.run(one, alone, of_location):
            changes = [
                replace(change, pvalue=min(1.0, count * change.pvalue), quantity=quantity, column=j)
                for change in found.changes
            ]
            yield LegCandidates(changes, reach=_REACH)


def _all_known(changes: np.ndarray, known: np.ndarray) -> bool:
    """Tell whether there are changes and each is near a known one: a test of these takes long and finds nothing new."""
    if not len(changes) or not len(known):
        return False
    return bool((np.abs(changes[:, None] - known).min(axis=1) <= NEAR * _REACH).all())


LEG = Leg("columns", 0.5 * SHARE, run)
