"""Changes of a column given the other columns: it moves by little of its spread, and by much of what the others leave open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isopleth.context.residuals import RankRegression
from isopleth.tasks.changes.described import SHARE, CalibratedDescription
from isopleth.tasks.changes.description_length import MOST_LAGS
from isopleth.tasks.changes.legs.columns import each_alone
from isopleth.tasks.changes.legs.leg import Leg, LegCandidates
from isopleth.tasks.changes.long_series import shortest_at_the_end
from isopleth.tasks.changes.periods import lines_of
from isopleth.tasks.changes.segments import Segmentation
from isopleth.tasks.changes.series import ObservedSeries

# Fewest steps for each column, so that the regressions on the others are known.
_STEPS_A_COLUMN = 10


def run(series: ObservedSeries, model: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of the residuals of each column by its regression on the others, at the same step."""
    length, count = series.values.shape
    if count < 2 or length < _STEPS_A_COLUMN * count:
        return
    within = _without_levels(series.values, model.found.location)
    residuals = RankRegression.of(within)(within)
    if (np.ptp(residuals, axis=0) <= 0.0).any():
        return
    yield LegCandidates([], followed_by={"relation": shortest_at_the_end(length, MOST_LAGS, 0)})
    given = replace(series, values=residuals, shapes=residuals, reference=None)
    for found in each_alone(given, model.found.location.changes, rng, "given"):
        yield replace(found, described=replace(model, residuals=residuals))


def _without_levels(values: np.ndarray, found: Segmentation) -> np.ndarray:
    """Return values less their segments: steps and bends of columns at different times would pass for relations of them."""
    if found.degree > 0:
        return values - lines_of(values, found)
    parts = np.split(values, found.changes)
    return np.concatenate([part - np.median(part, axis=0) for part in parts])


LEG = Leg("given others", 0.5 * SHARE, run)
