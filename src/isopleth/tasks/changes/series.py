"""A series as the legs get it: gaps filled, absurd values clipped, seasons subtracted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.core.progress import unheard
from isopleth.tasks.changes.description_length import logs_of_growth
from isopleth.tasks.changes.periods import Seasons, season_beside_levels, seasonal, seasons_of
from isopleth.tasks.changes.preparation import filled_gaps, without_absurd_values

# Range of a series without its seasons, relative to that with them, which is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Series:
    """A series in which changes are sought, and at which rate."""

    values: np.ndarray  # (n, d): without its seasons
    shapes: np.ndarray  # (n, d): what shapes are scanned in; a single season that was found is left in
    missing: np.ndarray  # (n, d), bool: filled gaps
    rate: float  # false alarm rate
    reference: np.ndarray | None = None  # (m, d): stretch without a change, without its seasons
    season: float | None = None  # period of the season that is left in `shapes`
    periods: tuple[float, ...] = ()  # mean lengths in steps of the seasons that were subtracted
    memory_limit: float = 2.0**30
    tick: Callable[[int], None] = unheard

    def __len__(self) -> int:
        return len(self.values)


def scaled(values: np.ndarray, reference: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return columns, and those of the reference, in units of their largest absolute value, absurd values clipped."""
    largest = np.abs(values).max(axis=0)
    return without_absurd_values(values / largest), None if reference is None else reference / largest


def prepared(
    values: np.ndarray,
    missing: np.ndarray,
    reference: np.ndarray | None,
    period: Any,
    seconds: np.ndarray | None,
    rng: np.random.Generator,
    **options: Any,
) -> Series:
    """Subtract the seasons of a series whose gaps are filled; `options` are fields of the result."""
    level = logs_of_growth(values)
    cells = np.where(missing, np.nan, level)
    seasons, season, rest = _without_seasons(cells, seasons_of(cells, period, seconds), rng)
    if not any(seasons) or (np.ptp(rest, axis=0) <= _ROUNDING * np.ptp(level, axis=0)).any():
        return Series(values, level, missing, reference=reference, **options)
    periods = np.unique([cycle.period for cycles in seasons for cycle in cycles])
    if reference is not None:
        reference, n = logs_of_growth(values, reference), len(reference)
        within = [[one.over(n) for one in own if 2 * one.period <= n] for own in seasons]
        reference = reference - seasonal(reference, within)
    level = np.where(missing, rest + season, level)
    # Around 0, so that no logarithm is taken of it.
    rest = rest - rest.mean(axis=0)
    # The scans keep a single season that was found.
    kept = float(periods[0]) if isinstance(period, str) and period == "auto" and len(periods) == 1 else None
    return Series(
        rest,
        rest if kept is None else level,
        missing,
        reference=reference,
        season=kept,
        periods=tuple(periods.tolist()),
        **options,
    )


def _without_seasons(
    cells: np.ndarray, seasons: Seasons, rng: np.random.Generator
) -> tuple[Seasons, np.ndarray, np.ndarray]:
    """Return the seasons, their sum, and the rest with its gaps filled."""
    if not any(seasons):
        return seasons, np.zeros_like(cells), cells

    def fill(columns: np.ndarray) -> np.ndarray:
        return np.column_stack([filled_gaps(column, rng) for column in columns.T])

    season = season_beside_levels(cells, seasons, fill)
    return seasons, season, fill(cells - season)
