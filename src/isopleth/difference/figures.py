"""Plot density differences: the regions in which each sample has the higher density."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.core.arrays import to_numpy
from isopleth.core.errors import InputError
from isopleth.core.p_values import normal_quantile
from isopleth.results.charts import Chart, Contours, dots, robust_range, robust_z, some
from isopleth.results.figures import (
    BLACK,
    BLUE,
    VERMILLION,
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
from isopleth.tables.checks import check_mass, enter, plain_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_GRID, _CONFIDENCE = 120, 0.95
# Of the range of the centres: no wider is the rim, which has the width of a length scale.
_MARGIN = 0.25
# Robust deviations beyond which a centre may lie outside the frame, if no more than this share of them does at either
# end.
_FAR, _RARE = 5.0, 0.01
_MOST_DOTS = 2500
_COLORS = (BLUE, VERMILLION)
_REDS = ("#FCEBDD", "#F9D3B8", "#F3B88F", "#EA9A66")


@dataclass(frozen=True, eq=False)
class _Picture:
    """Fitted difference over its one or two varying columns, between `low` and `high`, with thresholds (2, k) of its regions."""

    difference: Any
    columns: np.ndarray
    names: list[str]
    low: np.ndarray
    high: np.ndarray
    masses: np.ndarray
    thresholds: np.ndarray

    def at(self, evaluate: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
        """Call a method of the difference at points of the varying columns."""
        rows = np.tile(to_numpy(self.difference.centers_)[0], (len(points), 1))
        rows[:, self.columns] = points
        return quietly(evaluate, rows)


def plot_difference(
    difference: Any,
    masses: Sequence[float] = (0.5, 0.8, 0.95),
    rows: Any = None,
    labels: Sequence[str] = ("X", "Y"),
    ax: Axes | None = None,
) -> Axes:
    """Draw a fitted density difference of one or two columns; :meth:`isopleth.LSDD.plot` describes the parameters."""
    if labels is None or len(labels) != 2:
        raise InputError(f"labels = {labels!r}: expected two names, one a sample.")
    names = [column_label(str(label)) for label in labels]
    columns = np.flatnonzero(~np.isnan(to_numpy(difference.length_scale_)))
    if len(columns) > 2:
        raise InputError(
            f"the difference has {len(columns)} columns; fit it to the one or two of them that are to be drawn."
        )
    samples = _samples(difference, rows, columns)
    picture = _picture(difference, columns, masses)
    ax = given_or_new(ax, 4.8)
    if len(columns) == 1:
        _draw_line(ax, picture, names)
    else:
        _draw_plane(ax, picture)
    ax.set_title(_title(picture, names), loc="left", fontsize=10)
    notes = _draw_dots(ax, picture, samples, names)
    write_note(ax, [*notes, _distance_note(difference)])
    return ax


def _samples(difference: Any, rows: Any, columns: np.ndarray) -> list[np.ndarray]:
    """Return the chosen columns of the rows of both samples, none where no rows are to be drawn."""
    if rows is None:
        return [np.empty((0, len(columns)))] * 2
    if isinstance(rows, np.ndarray) or len(rows) != 2:
        raise InputError("rows: expected a tuple of two, the rows of the first and those of the second sample.")
    return [enter(difference, part).rows[:, columns] for part in rows]


def _frame(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a frame around all centres except a few that are far from the others in one column."""
    usual = np.abs(robust_z(centers, centers)) <= _FAR
    first = np.quantile(centers, _RARE, axis=0, method="higher")
    last = np.quantile(centers, 1.0 - _RARE, axis=0, method="lower")
    shown = (usual | ((centers >= first) & (centers <= last))).all(axis=1)
    low, high = robust_range(centers)
    if not shown.any():
        return low, high
    return np.maximum(low, centers[shown].min(axis=0)), np.minimum(high, centers[shown].max(axis=0))


def _picture(difference: Any, columns: np.ndarray, masses: Sequence[float]) -> _Picture:
    """Check the masses, and find the regions and the frame of a picture."""
    asked = -np.sort(-np.atleast_1d(check_mass(masses)))
    if not 1 <= asked.size <= len(_REDS):
        raise InputError(f"masses = {masses!r}: expected one to {len(_REDS)} numbers between 0 and 1.")
    below, above = difference.level_set(asked)
    low, high = _frame(to_numpy(difference.centers_)[:, columns])
    rim = np.minimum(to_numpy(difference.length_scale_)[columns], _MARGIN * (high - low))
    names = [plain_names(difference)[j] for j in columns]
    return _Picture(difference, columns, names, low - rim, high + rim, asked, np.array([above, below]))


def _shades(sample: int, count: int) -> list[str]:
    return fills(count) if sample == 0 else list(_REDS[-count:])


def _draw_line(axes: Axes, picture: _Picture, names: list[str]) -> None:
    """Draw the difference along one column, with its confidence band."""
    x = np.linspace(picture.low[0], picture.high[0], 4 * _GRID)
    height = picture.at(picture.difference.difference, x[:, None])
    reach = normal_quantile(_CONFIDENCE) * picture.at(picture.difference.difference_std, x[:, None])
    for sample, sign in enumerate((1.0, -1.0)):
        shades = _shades(sample, len(picture.masses))
        for level, shade in zip(picture.thresholds[sample], shades, strict=True):
            inside = sign * height >= sign * level
            axes.fill_between(x, height, where=inside.tolist(), color=shade, linewidth=0)
    axes.fill_between(x, height - reach, height + reach, color=BLACK, alpha=0.2, linewidth=0)
    axes.axhline(0.0, color=BLACK, linewidth=0.6)
    axes.plot(x, height, color=BLACK, linewidth=1.2)
    axes.set(xlim=(x[0], x[-1]), xlabel=column_label(picture.names[0]))
    axes.set_ylabel(f"density of {names[0]} - density of {names[1]}")


def _draw_plane(axes: Axes, picture: _Picture) -> None:
    """Draw the regions of the difference in two columns."""
    low, high = picture.low, picture.high
    x, y = np.linspace(low, high, _GRID, axis=-1)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    height = picture.at(picture.difference.difference, points).reshape(_GRID, _GRID)
    for sample, sign in enumerate((1.0, -1.0)):
        # Rows that repeat much can give two masses one level; an empty region has none.
        levels, first = np.unique(sign * picture.thresholds[sample], return_index=True)
        finite = np.isfinite(levels)
        levels, masses = levels[finite], picture.masses[first[finite]]
        if not len(levels) or levels[0] >= (sign * height).max():
            continue
        regions = Contours(x, y, sign * height, levels.tolist(), list(map(percent, masses)))
        draw_contours(axes, regions, _COLORS[sample], _shades(sample, len(levels)))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set(xlabel=column_label(picture.names[0]), ylabel=column_label(picture.names[1]))


def _title(picture: _Picture, names: list[str]) -> str:
    if not np.isfinite(picture.thresholds).any():
        return f"No region where held-out rows of {names[0]} and {names[1]} differ"
    shares = ", ".join(percent(mass) for mass in picture.masses[::-1])
    return f"Regions with {shares} of the excess\nof {names[0]} (blue) and of {names[1]} (vermillion)"


def _distance_note(difference: Any) -> str:
    low, high = difference.squared_l2_interval(_CONFIDENCE)
    doubt = ": equal densities are not excluded by it; two_sample_test tests them" if low == 0.0 else ""
    return f"squared L2 distance {low:.3g} to {high:.3g} ({percent(_CONFIDENCE)}){doubt}"


def _draw_dots(axes: Axes, picture: _Picture, samples: list[np.ndarray], names: list[str]) -> list[str]:
    """Draw the rows of both samples, on the upper and lower edge for a single column; return notes about them."""
    notes, outside = [], 0
    for sample, points in enumerate(samples):
        if not len(points):
            continue
        shown = points[some(np.arange(len(points)), _MOST_DOTS)]
        outside += int(np.any((shown < picture.low) | (shown > picture.high), axis=1).sum())
        if len(shown) < len(points):
            notes.append(f"{len(shown):,} of {len(points):,} rows of {names[sample]} shown")
        if len(picture.names) == 2:
            colour = ("blue", "vermillion")[sample]
            draw_series(axes, dots("", shown, picture.low, picture.high, colour), Chart("", "", "", []))
            continue
        place, edge = np.clip(shown[:, 0], picture.low, picture.high), np.full(len(shown), 1.0 - sample)
        style: dict[str, Any] = {"color": _COLORS[sample], "linewidths": 0, "zorder": 3, "alpha": 0.5, "clip_on": False}
        axes.scatter(place, edge, 9, transform=axes.get_xaxis_transform(), **style)
    return notes + beyond_frame(outside)
