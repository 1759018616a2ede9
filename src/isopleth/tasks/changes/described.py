"""The description of a series that the legs get: segments, each of which saves more than the best one does by chance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isopleth.tasks.changes.autocorrelation import cycle_of
from isopleth.tasks.changes.description_length import (
    RUNS,
    SHORTEST_SCATTER,
    Description,
    describe,
    in_stages,
    null_gains,
    surcharge,
    unbroken,
)
from isopleth.tasks.changes.series import ObservedSeries

# Share of the false alarm rate at which a change of level or slope, or one of scatter, has to save more than by chance.
SHARE = 1.0 / 3.0
# Time of a description in a progress bar, in simulated series, as measured for long series.
TIME = 2 * RUNS


@dataclass(frozen=True, eq=False)
class CalibratedDescription:
    """Description of a series, and what its changes save by chance."""

    found: Description
    unchanged: Description  # the same, or that of the reference
    gains: np.ndarray  # savings of the best change of level or slope in simulated series without one, sorted
    scatters: np.ndarray  # the same for changes of scatter
    surcharges: tuple[float, float]  # what a change of level or slope, and one of scatter, costs in addition
    cycle: float | None  # period of `shapes` in steps
    shapes: np.ndarray  # (n, d): what shapes are scanned in
    residuals: np.ndarray | None = (
        None  # (n, d): residuals of each column given the others, if changes of these were found
    )
    curve: np.ndarray | None = None  # (n, d): smooth curve that explains all levels and slopes

    @property
    def innovations(self) -> np.ndarray:
        """Prediction errors given level, slope and past, in units of the whole series."""
        return self.found.location.innovations / self.found.precision[:, None]

    def without_levels(self) -> CalibratedDescription:
        """Describe the series without changes of level and slope."""
        return replace(self, found=in_stages(self.found.prepared, (np.inf, self.surcharges[1]), self.found.floors))


def described(series: ObservedSeries, rng: np.random.Generator) -> CalibratedDescription:
    """Describe a series by segments, each of which saves more than the best change in a series without any."""
    found = series.first or describe(series.values, floors=series.floors)
    unchanged = found if series.reference is None else unbroken(series.reference)
    series.tick(TIME)
    # Simulations that cannot change the answer are left out, so each has random numbers of its own.
    of_gains, of_scatter = rng.spawn(2)
    gains, scatters, surcharges = np.zeros(RUNS), np.zeros(RUNS), (0.0, np.inf)
    if len(found.location.changes) or (found.scatter is not None and len(found.scatter.changes)):
        gains = null_gains(unchanged.location, unchanged.precision, len(series), 0, of_gains, series.tick)
        scatters = _null_gains_of_scatter(unchanged, series, of_scatter)
        surcharges = surcharge(gains, SHARE * series.rate), surcharge(scatters, SHARE * series.rate)
    else:  # where no change is worth its cost, none is worth more
        series.tick(2 * RUNS)
    if surcharges[0] > 0.0 or 0.0 < surcharges[1] < np.inf:
        level_unchanged = found.shocks or not len(found.location.changes)
        found = in_stages(found.prepared, (np.inf if level_unchanged else surcharges[0], surcharges[1]), found.floors)
    cycle = cycle_of(series.shapes, series.season)
    return CalibratedDescription(found, unchanged, gains, scatters, surcharges, cycle, series.shapes)


def _null_gains_of_scatter(unchanged: Description, series: ObservedSeries, rng: np.random.Generator) -> np.ndarray:
    """Simulate the saving of the best change of scatter in series without changes; zeros if there are no scatters."""
    if unchanged.scatter is None:
        series.tick(RUNS)
        return np.zeros(RUNS)
    even = np.ones(len(unchanged.precision))
    return null_gains(unchanged.scatter, even, len(series), SHORTEST_SCATTER, rng, series.tick)
