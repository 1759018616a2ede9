"""Draw charts with matplotlib, and write figures to files."""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree

from isopleth.core.errors import caller_level, require, warn_user
from isopleth.io.output_files import atomic_write, check_suffix, check_target
from isopleth.results.charts import Chart, Contours, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib counts days on axes of dates.
DAY = 86_400.0
MASSES = (0.5, 0.8, 0.95, 0.99)
# Okabe and Ito's colours can be distinguished by readers with any kind of colour vision, and in grey.
BLUE, VERMILLION, GREY, BLACK = "#0072B2", "#D55E00", "#757575", "#000000"
_COLOURS = {"blue": BLUE, "vermillion": VERMILLION, "grey": GREY, "text": BLACK}
_PALEST, _DEEPEST = (0xEA, 0xF3, 0xFA), (0x8F, 0xBE, 0xDD)
_LONGEST_NAME = 24
# From here on dots are an image within vector files, which would be slow to open otherwise.
_MANY_DOTS = 1000
# Shares of the frame that a letter at a bar, and a label of a dot, take.
_LETTER = 0.02
_ROOM_OF_LABEL = (0.045, 0.035)
FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def draw(charts: Sequence[Chart], ax: Axes | None = None) -> Axes:
    """Draw the first chart on `ax`, or all of them on a new figure; return the axes of the first."""
    axes = [ax] if ax is not None else _grid(charts)
    for each, chart in zip(axes, charts, strict=False):
        draw_chart(each, chart)
    return axes[0]


def _grid(charts: Sequence[Chart]) -> list[Any]:
    """Return axes for charts: wide ones above each other, others side by side."""
    if charts[0].wide:
        heights = [1.2 if chart.title == charts[-1].title else 1.6 for chart in charts]
        figure = new_figure(9.0, sum(heights) + 0.8 * len(charts) + 0.4)
        return list(figure.subplots(len(charts), 1, sharex=True, height_ratios=heights, squeeze=False).ravel())
    columns = min(len(charts), 2)
    rows = -(-len(charts) // columns)
    longest = max(len(chart.names) for chart in charts)
    figure = new_figure(5.6 * columns, rows * max(4.6 if rows == 1 else 3.4, 1.6 + 0.26 * longest))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for left in axes[len(charts) :]:
        left.set_axis_off()
    return list(axes[: len(charts)])


def draw_cells(
    title: str, names: Sequence[str], texts: Sequence[Sequence[str]], shades: np.ndarray, ax: Axes | None = None
) -> Axes:
    """Draw a table of texts, each row a line under the names, whose cells are shaded by numbers between 0 and 1."""
    widths = [
        2
        + max(
            1.2 * len(column_label(name, _LONGEST_NAME)), *(len(column_label(text, _LONGEST_NAME)) for text in column)
        )
        for name, column in zip(names, zip(*texts, strict=True), strict=True)
    ]
    if ax is None:
        ax = new_figure(min(0.4 + 0.085 * sum(widths), 12.0), 0.9 + 0.24 * (len(texts) + 1)).subplots()
    ax.set_axis_off()
    inches = float(ax.get_figure().get_size_inches()[0])  # type: ignore[union-attr]
    size = min(8.0, 112.0 * inches / sum(widths))  # letters are .6 of their height wide
    left, lines = np.concatenate([[0], np.cumsum(widths)]), [names, *texts]
    colours = require("matplotlib.colors", "plot", "Plotting").LinearSegmentedColormap.from_list(
        "", ["white", "#E08A4D"]
    )
    shaded = np.vstack([np.zeros(len(names)), shades])
    ax.pcolormesh(
        left, np.arange(len(lines) + 1), shaded, cmap=colours, vmin=0.0, vmax=1.0, edgecolors="#DDDDDD", linewidth=0.5
    )
    for k, line in enumerate(lines):
        for x, text in zip(left, line, strict=False):
            shown = column_label(text, _LONGEST_NAME)
            ax.text(x + 0.6, k + 0.5, shown, va="center", fontsize=size, fontweight="normal" if k else "bold")
    ax.set_ylim(len(lines), 0)
    ax.set_title("\n".join(textwrap.wrap(column_label(title, 200), max(int(13 * inches), 30))), loc="left", fontsize=9)
    return ax


def draw_chart(ax: Axes, chart: Chart) -> None:
    """Draw one chart."""
    if chart.contours is not None:
        draw_contours(ax, chart.contours)
    for k, series in enumerate(chart.series):
        draw_series(ax, series, chart, k)
    _draw_verticals(ax, chart)
    if chart.names:
        ax.set_yticks(range(len(chart.names)), [column_label(name, _LONGEST_NAME) for name in chart.names])
        ax.set_ylim(len(chart.names) - 0.4, -0.6)
        ax.set_xlim(left=0.0)
    elif any(series.style == "steps" for series in chart.series):
        ax.set_ylim(bottom=0.0)
    for axis, name in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        if name in chart.times:
            write_dates(axis)
    if chart.log_x:
        ax.set_xscale("log")
    ax.set(xlabel=column_label(chart.x_label), ylabel=column_label(chart.y_label))
    ax.spines[["top", "right"]].set_visible(False)
    if sum(bool(series.name) for series in chart.series) > 1:
        ax.legend(frameon=False, fontsize=8)
    _write_title(ax, chart)


def _draw_verticals(ax: Axes, chart: Chart) -> None:
    """Draw bands and vertical lines."""
    unit = DAY if "x" in chart.times else 1.0
    for low, high in chart.bands:
        ax.axvspan(low / unit, high / unit, color=VERMILLION, alpha=0.15, linewidth=0.0, zorder=1)
    for place, _ in chart.lines:
        ax.axvline(place / unit, color=VERMILLION, linewidth=1.0, zorder=2)


def _write_title(ax: Axes, chart: Chart) -> None:
    """Write the finding above the axes, and below it how to read the picture."""
    inches = ax.get_figure().get_size_inches()[0] * ax.get_position().width  # type: ignore[union-attr]
    title = column_label(chart.title, 200).replace(" %", "\u00a0%")  # a line does not begin with a percent sign
    lines = textwrap.wrap(title, max(int(14 * inches), 30))
    about = textwrap.wrap(chart.about.replace("$", r"\$"), max(int(18 * inches), 40))
    ax.set_title("\n".join(lines), loc="left", fontsize=10, pad=6 + 11 * len(about))
    if about:
        style: dict[str, Any] = {
            "xycoords": "axes fraction",
            "textcoords": "offset points",
            "va": "bottom",
            "fontsize": 8,
        }
        ax.annotate("\n".join(about), (0.0, 1.0), xytext=(0, 3), color=GREY, **style)


def draw_series(ax: Axes, series: Series, chart: Chart, number: int = 0) -> None:
    """Draw one series of a chart."""
    colour, label = _COLOURS[series.colour], column_label(series.name) or None
    scale = [DAY if axis in chart.times else 1.0 for axis in "xy"]
    x, y = np.asarray(series.x, dtype=float) / scale[0], np.asarray(series.y, dtype=float) / scale[1]
    places = np.arange(len(y), dtype=float)
    if series.style in ("bars", "ranges", "pairs"):
        low = np.asarray(series.low, dtype=float) if len(series.low) else np.zeros(len(y))
        shift, height = ((0.4 * number - 0.2), 0.36) if series.style == "pairs" else (0.0, 0.7)
        height = 0.3 if series.style == "ranges" else height
        drawn = ax.barh(places + shift, y - low, height, low, color=colour, alpha=0.8, label=label)
        if len(series.labels):
            ax.bar_label(drawn, list(map(column_label, series.labels)), padding=4, fontsize=8)
            room = max(0.3, 1.0 - _LETTER * (2 + max(map(len, series.labels))))
            ax.set_xlim(0.0, float(y.max()) / room)
    elif series.style in ("line", "steps"):
        style: dict[str, Any] = {
            "linewidth": 1.6 if series.strong else 1.1,
            "linestyle": "--" if series.dashed else "-",
        }
        how: dict[str, Any] = {"drawstyle": "steps-post"} if series.style == "steps" else {}
        ax.plot(x, y, color=colour, label=label, **style, **how)
        if series.style == "steps":
            ax.fill_between(x, y, step="post", color=colour, alpha=0.18, linewidth=0)
    elif chart.names:
        ax.scatter(y, places, 36 if series.strong else 16, color=colour, label=label, zorder=3)
    else:
        _draw_dots(ax, series, x, y, colour, label)


def _draw_dots(ax: Axes, series: Series, x: np.ndarray, y: np.ndarray, colour: str, label: str | None) -> None:
    """Draw dots or crosses; arrows stand for those beyond the frame."""
    beyond = np.asarray(series.beyond, dtype=float) if len(series.beyond) else np.full(len(x), -1.0)
    inside = beyond < 0.0
    style: dict[str, Any] = {"color": colour, "zorder": 5 if series.strong else 3, "clip_on": False}
    many = len(x) > _MANY_DOTS
    if series.style == "crosses":
        ax.scatter(x, y, 26, marker="x", linewidths=1.3, label=label, **(style | {"zorder": 7}))
        return
    size, alpha = (26, 0.8) if series.strong else (7, 0.25 if many else 0.6)
    how: dict[str, Any] = {"alpha": alpha, "linewidths": 0, "rasterized": many}
    ax.scatter(x[inside], y[inside], size, label=label, **how, **style)
    turns = (beyond / 45.0).round().astype(int) % 8
    for turn in np.unique(
        turns[~inside]
    ):  # eight directions; the first corner of a marker with three corners points up
        chosen = ~inside & (turns == turn)
        ax.scatter(
            x[chosen], y[chosen], size + 14, marker=(3, 0, -45.0 * turn), **(how | style | {"rasterized": False})
        )
    _write_labels(ax, series.labels, x, y, colour)


def _write_labels(ax: Axes, labels: Sequence[str], x: np.ndarray, y: np.ndarray, colour: str) -> None:
    """Write labels beside the first dots, except those that would cover another; to the left in the right half."""
    low, high = (np.array(limits) for limits in zip(ax.get_xlim(), ax.get_ylim(), strict=True))
    kept: list[np.ndarray] = []
    for text, point in zip(labels, np.column_stack([x, y]), strict=False):
        place = (point - low) / np.where(high != low, high - low, 1.0)
        if any((np.abs(place - other) < _ROOM_OF_LABEL).all() for other in kept):
            continue
        kept.append(place)
        side: dict[str, Any] = {
            "xytext": (-5, 5) if place[0] > 0.5 else (5, 5),
            "ha": "right" if place[0] > 0.5 else "left",
        }
        style: dict[str, Any] = {"fontsize": 8, "color": colour, "zorder": 6, "path_effects": halo()}
        ax.annotate(column_label(text), tuple(point), textcoords="offset points", **side, **style)


def draw_contours(ax: Axes, contours: Contours, colour: str = BLUE, shades: Sequence[str] = ()) -> None:
    """Fill the regions above each level, and write the labels on their lines."""
    x, y, height = contours.x, contours.y, contours.height
    ax.contourf(x, y, height, levels=[*contours.levels, np.inf], colors=shades or fills(len(contours.levels)))
    style: dict[str, Any] = {"colors": colour, "linewidths": 0.9, "linestyles": "solid", "zorder": 4}
    lines = ax.contour(x, y, height, levels=contours.levels, **style)
    low, high = np.array([x[0], y[0]]), np.array([x[-1], y[-1]])
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    places = label_places(lines, low, high)
    if places:
        written = dict(zip(contours.levels, contours.labels, strict=True))
        for text in ax.clabel(lines, fmt=written, fontsize=8, zorder=6, manual=places):
            text.set_path_effects(halo())


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


def quietly(evaluate: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Evaluate at rows without column names; suppress the warning, because the user may have fitted a data frame."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return evaluate(rows)


def percent(share: float) -> str:
    """Format a share in per cent with all its digits: 0.995 is not 100 %."""
    return f"{100 * share:.6g}%"


def new_figure(width: float, height: float) -> Figure:
    """Create a figure without pyplot: no window opens, and no display is needed."""
    return require("matplotlib.figure", "plot", "Plotting").Figure(figsize=(width, height), layout="constrained")


def given_or_new(ax: Axes | None, height: float) -> Axes:
    """Return the axes to draw on."""
    return new_figure(6.4, height).subplots() if ax is None else ax


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
    """Return label points on long contours, far from other labels and the edge; matplotlib would label every line."""
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


def check_figure_target(path: str | os.PathLike[str]) -> None:
    """Check before the work whether :func:`save_figure` can write `path`.

    Parameters
    ----------
    path : path-like
        The file.

    Raises
    ------
    InputError
        If the suffix is none of .png, .svg, .pdf or the file cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    check_suffix(path, FIGURE_SUFFIXES)
    check_target(path)
    require("matplotlib", "plot", "Plotting")


def save_figure(figure: Figure | Axes, path: str | os.PathLike[str]) -> None:
    """Write a figure to a .png, .svg or .pdf file, completely or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure or matplotlib.axes.Axes
        The figure, or axes of it.
    path : path-like
        The file; the suffix decides the format.

    Raises
    ------
    InputError
        If the suffix is none of these or the file cannot be written.

    Warns
    -----
    DataWarning
        If the font lacks letters of the names in the picture.
    """
    suffix = check_suffix(path, FIGURE_SUFFIXES)
    whole: Any = getattr(figure, "figure", figure)
    with atomic_write(path) as file, _one_warning_for_letters():
        whole.savefig(file, format=suffix.removeprefix("."), dpi=200)


@contextmanager
def _one_warning_for_letters() -> Iterator[None]:
    """Repeat the warnings of the block, with those for letters that the font lacks combined into one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message="Glyph .* missing from")
        yield
    others = [warning for warning in caught if "missing from" not in str(warning.message)]
    for warning in others:
        warnings.warn(warning.message, stacklevel=caller_level())
    if len(others) < len(caught):
        said = "some letters of the picture are missing from its font and drawn as boxes: set matplotlib's font.family."
        warn_user(said)
