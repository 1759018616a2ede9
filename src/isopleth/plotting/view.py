"""Choose the part of a table that a picture shows, and draw its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isopleth.length_scales import robust_z
from isopleth.plotting.style import DAY, GREY
from isopleth.tables.clock_times import time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 5000
# So many dots are paler, and an image within vector files, which would be slow to open otherwise.
_MANY_DOTS = 1000
# Robust standard deviations from the median at which the frame ends: one wild value must not shrink all others.
_FARTHEST = 15.0
# Rows that medians for the choice of columns are computed from.
_MOST_OF_SCALE = 50_000


@dataclass(frozen=True, eq=False)
class View:
    """Rows of one or two columns, the column names, the corners of the frame, and which columns are days since 1970."""

    points: np.ndarray
    names: list[str]
    low: np.ndarray
    high: np.ndarray
    times: frozenset[str] = frozenset()

    @property
    def outside(self) -> int:
        """Return the number of rows outside the frame."""
        return int(self.beyond(np.arange(len(self.points))).sum())

    def placed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where `rows` are drawn: those outside the frame at its edge, those of a single column on the axis."""
        points = np.clip(self.points[rows], self.low, self.high)
        return points[:, 0], points[:, 1] if points.shape[1] == 2 else np.zeros(len(points))

    def beyond(self, rows: np.ndarray) -> np.ndarray:
        """Return the mask of those of `rows` that are outside the frame."""
        return np.any((self.points[rows] < self.low) | (self.points[rows] > self.high), axis=1)

    def angles(self, rows: np.ndarray) -> np.ndarray:
        """Return the direction in degrees, counter-clockwise from the right, from where rows are drawn to their true place."""
        points = self.points[rows]
        away = (points - np.clip(points, self.low, self.high)) / (self.high - self.low)
        return np.degrees(np.arctan2(away[:, 1] if away.shape[1] == 2 else 0.0, away[:, 0]))

    def true_values(self, row: int) -> str:
        """Return the values of a row that are outside the frame, as text."""
        point = self.points[row]
        outside = np.flatnonzero((point < self.low) | (point > self.high))
        return ", ".join(
            time_text(DAY * point[j]) if self.names[j] in self.times else f"{point[j]:,.10g}" for j in outside
        )


def extreme_columns(values: np.ndarray, extreme: np.ndarray) -> np.ndarray:
    """Return the columns that vary, those first in which the rows with the numbers `extreme` deviate most from the others."""
    varying = np.flatnonzero(np.ptp(values, axis=0) > 0)
    if not len(varying):
        return varying
    # The logarithm keeps one row with one wild cell from choosing for all the others.
    deviation = np.log1p(np.abs(deviations_of(values[extreme], values)[:, varying])).mean(axis=0)
    return varying[np.argsort(-deviation, kind="stable")]


def deviations_of(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return robust deviations of rows from a table; of a large table, from some of its rows."""
    return robust_z(rows, some(values, _MOST_OF_SCALE))


def robust_range(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of varying columns, without values that are far from all others."""
    middle = np.median(points, axis=0)
    z = robust_z(points, points)
    # From the definition z = (x - middle)/spread, at the row that is farthest out.
    farthest = np.argmax(np.abs(z), axis=0)
    columns = np.arange(points.shape[1])
    spread = (points[farthest, columns] - middle) / z[farthest, columns]
    low = np.maximum(points.min(axis=0), middle - _FARTHEST * spread)
    high = np.minimum(points.max(axis=0), middle + _FARTHEST * spread)
    return low, high


def bin_edges(values: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """Return the edges of the bins of a histogram; few whole numbers have a bin each, of which they are the middle."""
    inside = values[(values >= low) & (values <= high)]
    if high - low < bins and (inside == np.rint(inside)).all():
        return np.arange(np.ceil(low) - 0.5, np.floor(high) + 1.0)
    return np.linspace(low, high if high > low else low + 1.0, bins + 1)


def some(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` of the rows, the same ones in each call."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]


def draw_dots(axes: Axes, view: View, rows: np.ndarray) -> list[str]:
    """Draw the rows with these numbers in grey, those beyond the frame as arrows; return the note about rows left out."""
    shown = some(rows, _MOST_DOTS)
    many = len(shown) > _MANY_DOTS
    alpha = 0.25 if many else 0.6
    beyond = view.beyond(shown)
    place = view.placed(shown[~beyond])
    axes.scatter(*place, 7, color=GREY, alpha=alpha, linewidths=0, zorder=3, rasterized=many, clip_on=False)
    draw_arrows(axes, view, shown[beyond], GREY, 22)
    left_out, count = len(rows) - len(shown), len(view.points)
    return [f"{count - left_out:,} of {count:,} rows shown"] * bool(left_out)


def draw_arrows(axes: Axes, view: View, rows: np.ndarray, color: str, size: float) -> None:
    """Draw rows beyond the frame at its edge, as triangles that point to their true place; eight directions are drawn."""
    turns = (view.angles(rows) / 45.0).round().astype(int) % 8
    for turn in np.unique(turns):
        x, y = view.placed(rows[turns == turn])
        # The first corner of a marker with three corners points up.
        marker = (3, 0, 45.0 * turn - 90.0)
        axes.scatter(x, y, size, marker=marker, color=color, linewidths=0, zorder=5, clip_on=False)
