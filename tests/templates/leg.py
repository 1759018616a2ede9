"""Template of a leg of the search for changes. Copy this file to src/isopleth/tasks/changes/legs/, replace what is marked `todo`,
and add a line to `LEGS` in legs/__init__.py and one to the docstring of ChangePointDetector.

It is a complete leg: a change of the median of independent rows, by sums of signs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isopleth.tasks.changes.described import CalibratedDescription
from isopleth.tasks.changes.legs import Leg
from isopleth.tasks.changes.legs.leg import Candidate, LegCandidates
from isopleth.tasks.changes.series import ObservedSeries


def run(series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """todo: yield the changes of what is compared, at the rate ``series.rate``, which is the share of this leg.

    todo: `described` has the segments of level and slope, the innovations that they leave and the cycle. Random numbers come from
    `rng.spawn`, so that those of later legs stay the same. Yield nothing for a series to which the leg does not apply.
    """
    signs = np.sign(series.values - np.median(series.values, axis=0))
    sums = np.abs(np.cumsum(signs, axis=0)).max(axis=1) / np.sqrt(len(series))
    place = int(sums[:-1].argmax()) + 1
    # todo: p-value of the leg; here the tail of the largest value of a Brownian bridge, for each column.
    pvalue = min(1.0, 2.0 * signs.shape[1] * float(np.exp(-2.0 * sums[place - 1] ** 2)))
    if pvalue <= series.rate:
        # todo: what was compared, which decides how the change is named and placed: "location", "scatter" or "shape".
        yield LegCandidates([Candidate(place, pvalue, "location")], reach=5.0)


LEG = Leg("todo: name", 1.0 / 3.0, run)
