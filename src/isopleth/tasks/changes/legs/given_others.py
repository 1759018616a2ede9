"""Changes of a column given the other columns: it moves by little of its spread, and by much of what the others leave open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isopleth.context.residuals import Residuals
from isopleth.tasks.changes.described import SHARE, Described
from isopleth.tasks.changes.legs.columns import each_alone
from isopleth.tasks.changes.legs.leg import Leg, LegCandidates
from isopleth.tasks.changes.series import ObservedSeries

# Fewest steps for each column, so that the regressions on the others are known.
_STEPS_A_COLUMN = 10


def run(series: ObservedSeries, model: Described, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of the residuals of each column by its regression on the others, at the same step."""
    length, count = series.values.shape
    if count < 2 or length < _STEPS_A_COLUMN * count:
        return
    residuals = Residuals.of(series.values)(series.values)
    if (np.ptp(residuals, axis=0) <= 0.0).any():
        return
    given = replace(series, values=residuals, shapes=residuals, reference=None)
    for found in each_alone(given, model.found.location.changes, rng, "given"):
        yield replace(found, described=replace(model, residuals=residuals))


LEG = Leg("given others", 0.5 * SHARE, run)
