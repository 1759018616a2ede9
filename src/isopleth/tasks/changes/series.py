"""A series as the legs get it: gaps filled, absurd values clipped, seasons subtracted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.progress import unheard
from isopleth.tasks.changes.description_length import Description, logs_of_growth
from isopleth.tasks.changes.incidents import Incident, apart, odd_cycles, sharp_incidents
from isopleth.tasks.changes.periods import Seasons, season_beside_levels, seasonal, seasons_of
from isopleth.tasks.changes.preparation import filled_gaps, log_of_growth, raised_by, rests, without_absurd_values
from isopleth.tasks.changes.seasons_beside import Seasonal, SeasonSearch


@dataclass(frozen=True, eq=False)
class ObservedSeries:
    """A series in which changes are sought, and at which rate."""

    values: np.ndarray  # (n, d): without its seasons
    shapes: np.ndarray  # (n, d): what shapes are scanned in; a single season that was found is left in
    missing: np.ndarray  # (n, d), bool: filled gaps
    rate: float  # false alarm rate
    reference: np.ndarray | None = None  # (m, d): stretch without a change, without its seasons
    season: float | None = None  # period of the season that is left in `shapes`
    first: Description | None = None  # description of `values` by segments, if it is known
    periods: tuple[float, ...] = ()  # mean lengths in steps of the seasons that were subtracted
    seasons: np.ndarray | None = None  # (n, d): what was subtracted, from logarithms where the columns grow
    columns: np.ndarray | None = None  # (n, d): what they were subtracted from, before logarithms
    floors: np.ndarray | None = None  # (d,): variances of the rounding errors of `values`, if these do not show them
    budget: Budget = DEFAULT_BUDGET
    tick: Callable[[int], None] = unheard
    incidents: tuple[Incident, ...] = ()  # what was taken out as gaps are

    def __len__(self) -> int:
        return len(self.values)

    @property
    def logs(self) -> list[int]:
        """Numbers of the columns of which `values` are logarithms without their seasons."""
        grow = [] if self.columns is None else [log_of_growth(column) is not None for column in self.columns.T]
        return np.flatnonzero(grow).tolist()

    def column(self, number: int, rate: float) -> ObservedSeries:
        """Return a column alone, with another rate."""
        own = [number]
        known = None if self.reference is None else self.reference[:, own]
        values, shapes, missing = self.values[:, own], self.shapes[:, own], self.missing[:, own]
        floors = None if self.floors is None else self.floors[own]
        alone = replace(self, values=values, shapes=shapes, missing=missing, reference=known, floors=floors)
        return replace(alone, rate=rate, first=None)


def scaled(values: np.ndarray, reference: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return columns, and those of the reference, in units of their largest absolute value, absurd values clipped."""
    largest = np.abs(values).max(axis=0)
    return without_absurd_values(values / largest), None if reference is None else reference / largest


def without_seasons(columns: np.ndarray, prepared_columns: np.ndarray, seasons: np.ndarray) -> np.ndarray:
    """Return columns in their own units without seasons that were found in the prepared ones, or in the logarithms of these.

    A factor that varies with the season is divided by, and the result has the level of the average season.
    """
    out = columns.copy()
    for j in np.flatnonzero(np.any(seasons, axis=0)):
        season, of = seasons[:, j], prepared_columns[:, j]
        if log_of_growth(of) is None:
            out[:, j] = columns[:, j] - season
        else:
            factor, least = np.exp(season), raised_by(of)
            out[:, j] = (columns[:, j] + least) * factor.mean() / factor - least
    return out


def prepared(
    values: np.ndarray,
    missing: np.ndarray,
    reference: np.ndarray | None,
    period: Any,
    seconds: np.ndarray | None,
    rng: np.random.Generator,
    **options: Any,
) -> ObservedSeries:
    """Subtract the seasons of a series whose gaps are filled, and take incidents out; `options` are fields of the result."""
    ready = _prepared(values, missing, reference, period, seconds, rng, **options)
    # Logarithms and seasons would hide where a column rests, and make the rest of it noise.
    resting = np.array([rests(column) for column in values.T])
    sharp = np.where(resting, values, ready.values)
    logs = [j for j in ready.logs if not resting[j]]
    incidents = sharp_incidents(sharp, missing, ready.periods, options["rate"], logs)
    incidents = apart([*incidents, *odd_cycles(ready.values, ready.seasons, ready.periods, options["rate"])])
    if not incidents:
        return ready
    missing = np.any([missing, *(one.mask(missing.shape) for one in incidents)], axis=0)
    cells = np.where(missing, np.nan, values)
    values = np.column_stack([filled_gaps(column, rng) for column in cells.T])
    ready = _prepared(values, missing, reference, period, seconds, rng, **options)
    return replace(ready, incidents=tuple(incidents))


def _prepared(
    values: np.ndarray,
    missing: np.ndarray,
    reference: np.ndarray | None,
    period: Any,
    seconds: np.ndarray | None,
    rng: np.random.Generator,
    **options: Any,
) -> ObservedSeries:
    """Subtract the seasons."""
    level = logs_of_growth(values)
    search = SeasonSearch(np.where(missing, np.nan, level), seconds, rng, options.get("tick", unheard))
    fit = _without_seasons(search, period)
    if fit is None or not any(fit.seasons):
        # Gaps are filled anew by the search of seasons; otherwise its description is that of the series.
        first = None if fit is None or missing.any() else fit.found
        return ObservedSeries(values, level, missing, reference=reference, first=first, **options)
    periods = np.unique([cycle.period for cycles in fit.seasons for cycle in cycles])
    level = np.where(missing, fit.rest + fit.season, level)
    # The scans keep a single season that was found.
    kept = float(periods[0]) if isinstance(period, str) and period == "auto" and len(periods) == 1 else None
    return ObservedSeries(
        fit.rest,
        fit.rest if kept is None else level,
        missing,
        reference=None if reference is None else _reference(values, reference, fit.seasons),
        season=kept,
        periods=tuple(periods.tolist()),
        seasons=fit.season,
        columns=values,
        first=fit.found,
        floors=search.floors,
        **options,
    )


def _reference(values: np.ndarray, reference: np.ndarray, seasons: Seasons) -> np.ndarray:
    """Return the reference without the seasons that it holds twice."""
    reference, n = logs_of_growth(values, reference), len(reference)
    return reference - seasonal(reference, [[one.over(n) for one in own if 2 * one.period <= n] for own in seasons])


def _without_seasons(search: SeasonSearch, period: Any) -> Seasonal | None:
    """Return the seasons of cells, NaN where unknown, and what they leave; None if that is rounding, or none are sought."""
    cells = search.cells
    seasons = seasons_of(cells, period, search.seconds)
    search.tick(1)
    season = np.zeros_like(cells)
    if any(seasons):

        def fill(columns: np.ndarray) -> np.ndarray:
            return np.column_stack([filled_gaps(column, search.rng) for column in columns.T])

        season = season_beside_levels(cells, seasons, fill)
        search.tick(1)
    elif period is None:
        return None
    for fit in search.fitted(seasons, season):
        first = fit.or_shocks
        return search.best(first) if isinstance(period, str) and period == "auto" else first
    return None
