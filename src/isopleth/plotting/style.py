"""Define the colours and text styles of all pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree

from isopleth.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib counts days on axes of dates.
DAY = 86_400.0
MASSES = (0.5, 0.8, 0.95, 0.99)
# Okabe and Ito's colours can be distinguished by readers with any kind of colour vision, and in grey.
BLUE, VERMILLION, GREY, BLACK = "#0072B2", "#D55E00", "#7A7A7A", "#000000"
_PALEST, _DEEPEST = (0xEA, 0xF3, 0xFA), (0x8F, 0xBE, 0xDD)


def fills(count: int) -> list[str]:
    """Return blues for `count` nested regions, from the outermost (lightest) to the innermost."""
    shades = np.linspace(_PALEST, _DEEPEST, max(count, 2))[-count:]
    return ["#{:02X}{:02X}{:02X}".format(*shade) for shade in shades.round().astype(int)]


def column_label(name: str, longest: int = 60) -> str:
    """Return the name of a column, shortened to one line, with dollar signs escaped: they would begin a formula."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return (shown if len(shown) <= longest else f"{shown[: longest - 3]}...").replace("$", r"\$")


def write_dates(axis: Any) -> None:
    """Write dates and times at the ticks of an axis of days since 1970."""
    dates = require("matplotlib.dates", "plot", "Plotting")
    locator = dates.AutoDateLocator(minticks=3, maxticks=7)
    axis.set_major_locator(locator)
    axis.set_major_formatter(dates.ConciseDateFormatter(locator))


def percent(share: float) -> str:
    """Format a share in per cent with all its digits: 0.995 is not 100 %."""
    return f"{100 * share:.6g}%"


def new_figure(width: float, height: float) -> Figure:
    """Create a figure without pyplot: no window opens, and no display is needed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    return require("matplotlib.figure", "plot", "Plotting").Figure(figsize=(width, height), layout="constrained")


def given_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw on."""
    return new_figure(width, height).subplots() if ax is None else ax


def halo() -> list[Any]:
    """Draw a white outline around text, to keep it legible among dots."""
    return [require("matplotlib.patheffects", "plot", "Plotting").withStroke(linewidth=2.5, foreground="white")]


def write_note(axes: Axes, lines: list[str], *, over_dots: bool = False) -> None:
    """Write small `lines` in the lower right corner, above dots on the axis."""
    style: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 8, "zorder": 6, "path_effects": halo()}
    axes.text(0.99, 0.07 if over_dots else 0.01, "\n".join(lines), transform=axes.transAxes, **style)


def beyond_frame(count: int) -> list[str]:
    """Return the note about rows that are drawn as triangles at the edge of the frame."""
    return [f"{count:,} beyond the frame, drawn as triangles at its edge"] * bool(count)


# Of the longest line of a level, others as long as this are labelled too; islands around single rows are not.
_LABELLED = 0.5
# Of the sides of the frame: a shorter line has no space for a label.
_SHORTEST = 0.15


def label_places(lines: Any, low: np.ndarray, high: np.ndarray) -> list[tuple[float, float]]:
    """Return label points on long lines of a contour set, far from other levels, other labels and the edge.

    matplotlib itself would label every line, at its flattest place, over others and half outside the frame.
    """
    levels = [
        [(part - low) / (high - low) for part in path.to_polygons(closed_only=False)] for path in lines.get_paths()
    ]
    placed = np.empty((0, 2))
    for k, parts in enumerate(levels):
        taken = [part for other in levels[:k] + levels[k + 1 :] for part in other]
        for part in _long_ones(parts):
            edge = np.minimum(part, 1.0 - part).min(axis=1)
            clearance = np.minimum(edge, _distance(part, np.concatenate([placed, *taken])))
            placed = np.vstack([placed, part[np.argmax(clearance)]])
    return [tuple(place) for place in low + placed * (high - low)]


def _long_ones(parts: list[np.ndarray]) -> list[np.ndarray]:
    lengths = [np.linalg.norm(np.diff(part, axis=0), axis=1).sum() for part in parts]
    least = max(_SHORTEST, _LABELLED * max(lengths, default=0.0))
    return [part for part, length in zip(parts, lengths, strict=True) if length >= least]


def _distance(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the distance of each point from the nearest of the others; infinite if there are none."""
    return cKDTree(others).query(points)[0] if len(others) else np.full(len(points), np.inf)
