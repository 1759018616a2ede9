"""Changes of level and slope: those of the description, if they are no chance, no cycle and no smooth curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isopleth.tasks.changes.autocorrelation import cycle_of
from isopleth.tasks.changes.described import SHARE, CalibratedDescription
from isopleth.tasks.changes.description_length import (
    MOST_LAGS,
    RUNS,
    Description,
    describe,
    in_stages,
    margin_of,
    null_margins,
    or_shocks,
    pvalue_of_gain,
    smooth_curve,
    surcharge,
    varying_roots,
)
from isopleth.tasks.changes.legs.leg import Candidate, Leg, LegCandidates
from isopleth.tasks.changes.local_scatter import beside_local_scatter
from isopleth.tasks.changes.long_series import shortest_at_the_end
from isopleth.tasks.changes.periods import lines_of
from isopleth.tasks.changes.scan import FEW_CYCLES
from isopleth.tasks.changes.series import ObservedSeries

# Share of the bound exp(-saved nats) that is used as a p-value for all changes of location together, in units of the leg. In
# simulated random walks of 60 and 200 steps and autoregressions (0.9 at 200 steps, 0.97 at 500) the frequency was below a third
# of the bound, up to the error of 200 series.
_OF_BOUND = SHARE / 3.0
# Cycles within which means over cycles have to show a change.
_NEAR = 2.0


def run(series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator) -> Iterator[LegCandidates]:
    """Yield the changes of level and slope, and the description that remains."""
    changes = _of_segments(series, described)
    if not changes and len(described.found.location.changes):
        described = described.without_levels()
    if not changes and not described.found.shocks:
        changes, described = _of_one_weak_change(series, described, rng)
    else:
        series.tick(RUNS)
    kept = _seen_in_cycles(changes, described.found)
    if changes and not kept:
        described = described.without_levels()
    least = (shortest_at_the_end(len(series), MOST_LAGS, degree) for degree in (0, 1))
    yield LegCandidates(*_or_a_curve(kept, described), followed_by=dict(zip(("level", "slope"), least, strict=True)))


def _or_a_curve(
    changes: list[Candidate], described: CalibratedDescription
) -> tuple[list[Candidate], float, CalibratedDescription]:
    """Return no changes and what a curve leaves, if a smooth curve describes the series more cheaply than changes do."""
    found = described.found
    # If the changes leave no noise, the descriptions differ by the error of rounding only, which is as large as the steps.
    compared = changes and varying_roots(found.innovations).size
    curve = smooth_curve(found.prepared, found.precision, found.location.changes) if compared else None
    if curve is None:
        return changes, 0.0, described
    found = in_stages(found.prepared - curve, (np.inf, described.surcharges[1]), found.floors)
    return [], 0.0, replace(described, found=found, shapes=described.shapes - curve, curve=curve)


def _of_segments(series: ObservedSeries, described: CalibratedDescription) -> list[Candidate]:
    """Return the changes of level and slope that remain beside local scatter, if all together save enough against none.

    Noise fitted with the changes is much too small for a nearly integrated process, so whole descriptions are compared; the
    probability that a code is c nats shorter is at most :math:`e^{-c}`, of which a share is used.
    """
    found, (extra, scatter) = described.found, described.surcharges
    if not len(found.location.changes):
        return []
    of_all = 0.0
    if found.location.innovations.any():  # without residuals there is no noise to compare
        whole = describe(series.values, (np.inf, scatter), series.floors)
        saved = whole.cost - (found.cost - len(found.location.changes) * extra)
        of_all = _OF_BOUND * float(np.exp(-0.5 * max(saved, 0.0)))
    if of_all > series.rate:
        return []
    kept = beside_local_scatter(found, extra)
    p_values = [max(of_all, pvalue_of_gain(gain, described.gains)) for gain in found.location.gains]
    return [
        Candidate(step, pvalue, "location", lines=found.location.degree > 0)
        for step, pvalue in zip(found.location.changes.tolist(), p_values, strict=True)
        if step in kept
    ]


def _of_one_weak_change(
    series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator
) -> tuple[list[Candidate], CalibratedDescription]:
    """Return a change that costs more than it saves, but less than simulations do at the rate, and its description."""
    found = described.found
    own = margin_of(found) if found.location.innovations.any() else np.inf
    simulated = found if series.reference is None else described.unchanged
    (of_weak,) = rng.spawn(1)
    margins = null_margins(simulated, len(series), of_weak, series.tick, own, series.rate * (RUNS + 1))
    if not len(margins):
        return [], described
    extra = surcharge(margins, series.rate, least=-np.inf)
    surcharges = extra, described.surcharges[1]
    weak = or_shocks(in_stages(found.prepared, surcharges, found.floors)) if np.isfinite(extra) else found
    if len(weak.location.changes) != 1:
        return [], described
    pvalue = pvalue_of_gain(found.cost - (weak.cost - extra), margins)
    if pvalue > series.rate:
        return [], described
    change = Candidate(int(weak.location.changes[0]), pvalue, "location", lines=weak.location.degree > 0)
    return [change], replace(described, found=weak)


def _seen_in_cycles(changes: list[Candidate], found: Description) -> list[Candidate]:
    """Return the changes of level and slope that are no part of a cycle beside the segments.

    Beside the segments, because a step less a line is like one tooth of a saw, which repeats.
    """
    left_cycle = cycle_of(found.prepared - lines_of(found.prepared, found.location)) if changes else None
    return changes if left_cycle is None else seen_in_cycles(changes, found.prepared, left_cycle)


def seen_in_cycles(changes: list[Candidate], values: np.ndarray, cycle: float) -> list[Candidate]:
    """Return the changes of level and slope that the means over whole cycles show too, up to two cycles away."""
    count = int(len(values) / cycle)
    if count < FEW_CYCLES:
        return []
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    edges = np.arange(count + 1) * cycle
    whole = np.minimum(edges.astype(int), len(values) - 1)
    means = np.diff(sums[whole] + (edges - whole)[:, None] * values[whole], axis=0) / cycle
    if (np.ptp(means, axis=0) <= 0.0).any():
        return []
    places = describe(means).location.changes * cycle
    return [one for one in changes if (np.abs(places - one.step) <= _NEAR * cycle).any()]


LEG = Leg("location", SHARE, run)
