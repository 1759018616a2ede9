"""Plot densities: isopleths around given masses for two columns, and a curve for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from isopleth.core.arrays import to_numpy
from isopleth.core.errors import InputError
from isopleth.density.search import Search
from isopleth.frames import BoundedMap
from isopleth.results.charts import Chart, Contours, dots, robust_range, some
from isopleth.results.figures import (
    BLUE,
    MASSES,
    beyond_frame,
    column_label,
    draw_contours,
    draw_series,
    fills,
    given_or_new,
    percent,
    quietly,
    write_note,
)
from isopleth.tables.checks import enter, plain_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Of the range of the centres: no nearer to a bound is a density looked at, which on the bound itself is none.
_NEAREST = 1e-3


@dataclass(frozen=True, eq=False)
class Section:
    """Fitted density of one or two columns of `whole`, with their bounds."""

    density: Any
    whole: Any
    columns: list[int]
    names: list[str]
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, density: Any, columns: Any) -> Self:
        """Return the density itself if `columns` are all it has, and one of the same kind fitted to them if it has more."""
        if hasattr(density, "category_scale_") or getattr(density, "schema_", None) is not None:
            raise InputError(
                "plot draws densities of complete numeric tables, and this one is of a table with words, times, gaps or limits; "
                "fit the columns of numbers without these."
            )
        names = plain_names(density)
        chosen = _chosen(columns, names)
        for j in chosen:
            if np.ptp(to_numpy(density.centers_)[:, j]) == 0:
                raise InputError(f"{names[j]} is constant, so there is no density of it to draw; choose other columns.")
        bounds = BoundedMap.of(density.get_params(deep=False).get("bounds"), names, names)
        low, high = bounds.low[chosen], bounds.high[chosen]
        whole = sorted(chosen) == list(range(len(names)))
        drawn = density if whole else _refitted(density, chosen, list(zip(low, high, strict=True)))
        return cls(drawn, density, chosen, [names[j] for j in chosen], low, high)

    @property
    def centers(self) -> np.ndarray:
        return np.asarray(to_numpy(self.whole.centers_)[:, self.columns])

    def rows(self, rows: Any) -> np.ndarray:
        """Return the chosen columns of `rows`, or an empty array for None."""
        if rows is None:
            return np.empty((0, len(self.columns)))
        return enter(self.whole, rows).rows[:, self.columns]

    def level_set(self, masses: np.ndarray) -> np.ndarray:
        """Return the log-density thresholds of the regions that hold `masses`."""
        return self.density.level_set(masses)

    def within_bounds(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of the frame, cut off at the bounds."""
        return np.maximum(low, self.low), np.minimum(high, self.high)

    def score_samples(self, points: np.ndarray) -> np.ndarray:
        """Return the log density at points of the chosen columns; points on or beyond a bound are moved just inside."""
        near = _NEAREST * np.ptp(self.centers, axis=0)
        inside = np.clip(points, self.low + near, self.high - near)
        in_order = inside[:, np.argsort(self.columns)] if self.density is self.whole else inside
        return quietly(self.density.score_samples, in_order)


def _chosen(columns: Any, names: list[str]) -> list[int]:
    """Return the positions of the chosen columns."""
    if columns is None:
        if len(names) > 2:
            raise InputError(
                f"columns = None: the density has {len(names)} columns; name or number the one or two of them to draw."
            )
        return list(range(len(names)))
    asked = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
    if len(asked) not in (1, 2):
        raise InputError(f"columns = {columns!r}: expected one or two columns, got {len(asked)}.")
    places = [_place(column, names) for column in asked]
    if len(set(places)) < len(places):
        raise InputError(f"columns = {columns!r}: the same column twice; name two that differ, or one.")
    return places


def _place(column: Any, names: list[str]) -> int:
    """Return the number of the column that is to be drawn."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(names):
        return int(column)
    listed = ", ".join(repr(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(
        f"columns: there is no column {column!r}; expected a number from 0 to {len(names) - 1} or one of {listed}."
    )


def _refitted(density: Any, columns: list[int], bounds: list[tuple[float, float]]) -> Any:
    """Fit a density of the same kind to these columns of the centres of `density`."""
    settings = density.get_params(deep=False)
    own = {"length_scale": _own(settings["length_scale"], columns), "bounds": bounds}
    fresh = clone(density).set_params(**{name: own[name] for name in own if settings.get(name) is not None})
    return fresh.fit(to_numpy(density.centers_)[:, columns], sample_weight=density.weights_)


def _own(length_scale: Any, columns: list[int]) -> Any:
    """Return the part of a length scale, or of the base of a search, that belongs to these columns."""
    if isinstance(length_scale, Search):
        return replace(length_scale, base=_own(length_scale.base, columns))
    one_for_all = isinstance(length_scale, str) or np.ndim(length_scale) == 0
    return length_scale if one_for_all else np.asarray(to_numpy(length_scale))[columns]


_GRID, _MOST_DOTS = 120, 5000
# Of its width, the frame grows by this at each side where the outermost isopleth runs out of it.
_STEP = 0.07
_MOST_STEPS = 10
# Nats below the peak at which a curve may end.
_TAIL = np.log(100.0)
# Nats below the outermost isopleth: between a number and minus infinity, no place of a line can be interpolated.
_FLOOR = 50.0


@dataclass(frozen=True, eq=False)
class Isopleths:
    """Increasing levels of a log density and the decreasing masses of their regions."""

    log_density: Callable[[np.ndarray], np.ndarray]
    levels: np.ndarray
    masses: np.ndarray

    @classmethod
    def of(cls, density: Any, masses: Sequence[float] | np.ndarray) -> Self:
        """Compute the isopleths of a fitted density of one or two columns."""
        asked = np.atleast_1d(np.asarray(masses))
        if not asked.size:
            raise InputError("masses is empty; expected at least one number between 0 and 1.")
        levels, asked = np.asarray(density.level_set(asked)), -np.sort(-asked)
        # Rows that repeat much can give two masses one level, and a density can be 0 at the outermost.
        levels, first = np.unique(np.sort(levels), return_index=True)
        finite = np.isfinite(levels)
        if not finite.any():
            raise InputError(
                f"the density is 0 at the boundary of the regions of masses = {asked.tolist()}; fit with a larger length_scale."
            )
        return cls(density.score_samples, levels[finite], asked[first[finite]])

    def heights(self, points: np.ndarray) -> np.ndarray:
        """Return the log density at `points`, cut off a little below the lowest level."""
        return np.maximum(self.log_density(points), self.levels[0] - _FLOOR)

    @property
    def labels(self) -> list[str]:
        return [percent(mass) for mass in self.masses]


def plot_density(
    density: Any,
    columns: Any = None,
    masses: Sequence[float] = MASSES,
    rows: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a fitted density of one or two columns; the method ``plot`` of densities describes the parameters."""
    section = Section.of(density, columns)
    points = section.rows(rows)
    ax = given_or_new(ax, 4.8)
    isopleths = Isopleths.of(section, masses)
    low, high = _closing_frame(isopleths, section, *robust_range(np.concatenate([section.centers, points])))
    _draw_isopleths(ax, isopleths, section.names, low, high)
    ax.set_title("Regions of highest density, by the mass they hold", loc="left", fontsize=10)
    shown = some(points, _MOST_DOTS)
    if len(points):
        draw_series(ax, dots("", shown, low, high), Chart("", "", "", []))
    outside = int(((shown < low) | (shown > high)).any(axis=1).sum())
    notes = [f"{len(shown):,} of {len(points):,} rows shown"] * (len(shown) < len(points))
    write_note(ax, notes + beyond_frame(outside), over_dots=len(section.names) == 1)
    return ax


def _closing_frame(
    isopleths: Isopleths, section: Section, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Enlarge the frame until the outermost isopleth closes inside it or at the bounds of the columns."""
    margin = 0.05 * (high - low)
    low, high = section.within_bounds(low - margin, high + margin)
    floor = isopleths.levels[0]
    if len(low) == 1:
        floor = min(floor, isopleths.heights(section.centers).max() - _TAIL)
    for _ in range(_MOST_STEPS):
        sides = np.array([[_reaches(isopleths, floor, low, high, j, end) for end in (0, 1)] for j in range(len(low))])
        step = _STEP * (high - low)
        before = low, high
        low, high = section.within_bounds(low - step * sides[:, 0], high + step * sides[:, 1])
        if np.array_equal(before, (low, high)):
            break
    return low, high


def _reaches(isopleths: Isopleths, floor: float, low: np.ndarray, high: np.ndarray, column: int, end: int) -> bool:
    """Return whether the log density exceeds `floor` somewhere on one edge of the frame."""
    edge = np.linspace(low, high, _GRID)
    edge[:, column] = (low, high)[end][column]
    return bool((isopleths.heights(edge) >= floor).any())


def _draw_isopleths(axes: Axes, isopleths: Isopleths, names: list[str], low: np.ndarray, high: np.ndarray) -> None:
    """Draw the isopleths of a density of one or two columns between the corners `low` and `high`."""
    if len(names) == 1:
        _draw_curve(axes, isopleths, low, high)
    else:
        x, y = np.linspace(low, high, _GRID, axis=-1)
        height = isopleths.heights(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)).reshape(_GRID, _GRID)
        draw_contours(axes, Contours(x, y, height, isopleths.levels.tolist(), isopleths.labels))
    axes.set_xlabel(column_label(names[0]))
    axes.set_ylabel("density" if len(names) == 1 else column_label(names[1]))


def _draw_curve(axes: Axes, isopleths: Isopleths, low: np.ndarray, high: np.ndarray) -> None:
    """Draw the density along one column, with its regions."""
    x = np.linspace(low[0], high[0], 4 * _GRID)
    height = isopleths.heights(x[:, None])
    for level, label, fill in zip(isopleths.levels, isopleths.labels, fills(len(isopleths.levels)), strict=True):
        axes.fill_between(x, np.exp(height), where=height >= level, color=fill, linewidth=0, label=label)
    axes.plot(x, np.exp(height), color=BLUE, linewidth=1.2)
    axes.legend(title="region holding", frameon=False, fontsize=8, title_fontsize=8)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(bottom=0.0)
