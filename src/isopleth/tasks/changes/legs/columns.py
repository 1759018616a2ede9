"""Changes of level and slope in one of many columns, which the noise of the others hides in the joint description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from isopleth.core.progress import unheard
from isopleth.tasks.changes.described import SHARE, CalibratedDescription, described
from isopleth.tasks.changes.description_length import describe, margin_of, unbroken
from isopleth.tasks.changes.legs import location
from isopleth.tasks.changes.legs.leg import NEAR, Candidate, Leg, LegCandidates
from isopleth.tasks.changes.segments import SegmentationSearch, SegmentCosts, standardised
from isopleth.tasks.changes.series import ObservedSeries

# Steps within twice which a change of the joint search is the same.
_REACH = 5.0
# Share of what a weak change saves in its column that has to be left beside the changes of the joint search.
_LEFT = 0.5


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
                for change in _news(found.changes, known, found.described or alone)
            ]
            yield LegCandidates(changes, reach=_REACH)


def _news(changes: list[Candidate], known: np.ndarray, alone: CalibratedDescription) -> list[Candidate]:
    """Return the changes of a column that `known` ones do not stand for.

    The bend of one column is found some hundred steps apart in all columns together and in this one alone. A change is news if it
    saves what it costs, or half of what it saves alone, where the column is cut at the known ones too, or if they save less.
    """
    far = [one for one in changes if all(abs(one.step - place) > NEAR * _REACH for place in known)]
    if not len(known) or not far:
        return far
    location = alone.found.location
    costs = SegmentCosts(standardised(alone.found.prepared), location.noises, location.degree, alone.found.precision)
    search = SegmentationSearch(costs, shortest=0, surcharge=alone.surcharges[0])

    def cost(*parts: Sequence[int]) -> float:
        """Return the cost without that of the places."""
        bounds = sorted({0, search.n, *chain(*parts)})
        return search.total(np.array(bounds)) - (len(bounds) - 2) * search.per_change

    def is_news(one: Candidate) -> bool:
        rest, own = [other.step for other in far if other is not one], [one.step]
        without, beside = cost(rest, known.tolist()), cost(rest, known.tolist(), own)
        saved = cost(rest) - cost(rest, own)
        return (
            without - beside >= min(search.per_change, _LEFT * saved) or without - cost(rest, own) >= search.per_change
        )

    return [one for one in far if is_news(one)]


def _all_known(changes: np.ndarray, known: np.ndarray) -> bool:
    """Tell whether there are changes and each is near a known one: a test of these takes long and finds nothing new."""
    if not len(changes) or not len(known):
        return False
    return bool((np.abs(changes[:, None] - known).min(axis=1) <= NEAR * _REACH).all())


LEG = Leg("columns", 0.5 * SHARE, run)
