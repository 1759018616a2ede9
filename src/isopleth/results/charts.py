"""Charts of a result, as data that a page and a picture draw.

Functions compute what a chart shows of many rows: columns, frames, bins, curves with fewer points, outlines of regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from isopleth.core.p_values import LEVEL
from isopleth.results.text import counted
from isopleth.tables.time_text import length_text, seconds_of, time_text

Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Series:
    """Points, a curve or bars of a chart.

    Parameters
    ----------
    name : str
        Name in the legend; empty for none.
    x, y : sequence of float
        Places of the points. For bars, `y` has the lengths and `x` is empty. NaN breaks a curve.
    style : str
        "dots", "crosses", "line", "steps" (a curve that jumps), "bars", "pairs" (bars of several series side by side) or
        "ranges" (bars from `low` to `y`).
    colour : str
        "blue", "vermillion", "grey" or "text".
    notes : sequence of str
        Text for each point, which a page shows when the mouse or the keys reach it.
    labels : sequence of str
        Short text written at the first points.
    low : sequence of float
        Lower ends of ranges.
    strong : bool
        Large dots or a thick curve.
    beyond : sequence of int
        For dots that are drawn at the edge of the frame: the angle of the arrow to the true place in degrees, clockwise, 0
        pointing up; -1 for dots at their place.
    dashed : bool
        Whether a curve is dashed.
    """

    name: str
    x: Numbers
    y: Numbers
    style: Literal["dots", "crosses", "line", "steps", "bars", "pairs", "ranges"] = "dots"
    colour: str = "blue"
    notes: Sequence[str] = ()
    low: Numbers = ()
    strong: bool = False
    beyond: Numbers = ()
    dashed: bool = False
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Contours:
    """Regions above levels of a function of the two axes, drawn below the series.

    Parameters
    ----------
    x, y : ndarray of shape (k,) and (m,)
        Grid.
    height : ndarray of shape (m, k)
        The function on the grid.
    levels : list of float
        Rising levels.
    labels : list of str
        Text of each level.
    """

    x: np.ndarray
    y: np.ndarray
    height: np.ndarray
    levels: list[float]
    labels: list[str]


@dataclass(frozen=True)
class Chart:
    """Picture of a result.

    Parameters
    ----------
    title : str
        The finding that the picture shows.
    x_label, y_label : str
        Labels of the axes.
    series : list of Series
        What is drawn, the first below the others.
    about : str
        A sentence on how to read the picture.
    log_x : bool
        Whether the x axis is logarithmic.
    names : list of str
        Names of the bars, from top to bottom; empty for pictures without bars.
    lines : list of tuple
        Vertical lines: place and text.
    bands : list of tuple of two float
        Vertical bands: where they begin and end.
    times : str
        Axes whose numbers are seconds since 1970 and are shown as dates and times: "", "x", "y" or "xy".
    contours : Contours, optional
        Regions below the series.
    wide : bool
        Whether the chart takes the whole width, above others with the same x axis.
    """

    title: str
    x_label: str
    y_label: str
    series: list[Series]
    about: str = ""
    log_x: bool = False
    names: list[str] = field(default_factory=list)
    lines: list[tuple[float, str]] = field(default_factory=list)
    times: str = ""
    contours: Contours | None = None
    bands: list[tuple[float, float]] = field(default_factory=list)
    wide: bool = False


# Robust standard deviations from the median at which the frame ends: one wild value must not shrink all others.
_FARTHEST = 15.0
# Rows that medians for the choice of columns are computed from.
_MOST_OF_SCALE = 50_000
# Points of a curve, bins of a histogram and words of a column in a chart.
_MOST_POINTS, _BINS, _MOST_WORDS = 2000, 30, 20

# The median distance from the median, times this, is the standard deviation of a normal distribution.
_TO_STANDARD_DEVIATIONS = 1.4826


def robust_z(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return deviations from medians of `table` in robust standard deviations, in plain ones if half a column is one value."""
    middle = np.median(table, axis=0)
    spread = _TO_STANDARD_DEVIATIONS * np.median(np.abs(table - middle), axis=0)
    farthest = np.abs(table - middle).max(axis=0)
    # Squares of giant deviations would overflow.
    plain = farthest * np.std((table - middle) / np.where(farthest > 0, farthest, 1.0), axis=0)
    spread = np.where(spread > 0, spread, plain)
    return np.where(spread > 0, rows - middle, 0.0) / np.where(spread > 0, spread, 1.0)


def columns_by_deviation(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the columns that vary, those first in which the rows with the numbers `rows` deviate most from the others."""
    varying = np.flatnonzero(np.ptp(values, axis=0) > 0)
    if not len(varying):
        return varying
    # The logarithm keeps one row with one wild cell from choosing for all the others.
    deviation = np.log1p(np.abs(deviations_of(values[rows], values)[:, varying])).mean(axis=0)
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


def thinned(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and values of a curve; of a long one the extremes of many parts, and NaN where it breaks."""
    n = len(values)
    if n <= _MOST_POINTS:
        return np.arange(n), values
    kept = []
    for part in np.array_split(np.arange(n), _MOST_POINTS // 3):
        inside = values[part]
        missing = np.isnan(inside)
        if missing.any():
            kept.append(part[np.argmax(missing)])
        if not missing.all():
            kept += [part[np.nanargmin(inside)], part[np.nanargmax(inside)]]
    steps = np.unique(kept)
    return steps, values[steps]


def histogram(name: str, cells: tuple[np.ndarray, np.ndarray], labels: tuple[str, str], p: float) -> Chart:
    """Return the shares of the values of a column in bins, in both samples."""
    times = cells[0].dtype.kind == "M"
    one, two = map(seconds_of, cells) if times else cells
    text = time_text if times else "{:.6g}".format
    low, high = robust_range(np.concatenate([one, two])[:, None])
    edges = bin_edges(np.concatenate([one, two]), _BINS, low[0], high[0])
    series, outside = [], 0
    for label, values, colour in ((labels[0], one, "blue"), (labels[1], two, "vermillion")):
        counts = np.histogram(values, edges)[0] / len(values)
        outside += int(((values < low[0]) | (values > high[0])).sum())
        notes = [
            f"{label}: {share:.1%} between {text(a)} and {text(b)}"
            for share, a, b in zip(counts, edges, edges[1:], strict=False)
        ]
        median = f"{label}: median {text(round(np.median(values)) if times else np.median(values))}"
        # The outline begins and ends on the axis.
        outline = np.concatenate([edges[:1], edges]), np.concatenate([[0.0], counts, [0.0]])
        series.append(Series(median, *outline, "steps", colour, ["", *notes, ""]))
    about = f"{counted(outside, 'value')} beyond the frame left out." if outside else ""
    title = _move(name, one, two, p, times)
    return Chart(title, name, "share of the rows", series, about, times="x" * times)


def word_shares(name: str, cells: tuple[np.ndarray, np.ndarray], labels: tuple[str, str], p: float) -> Chart:
    """Return the shares of the most frequent words of a column in both samples."""
    words, counts = np.unique(np.concatenate(cells).astype(str), return_counts=True)
    shown = words[np.argsort(-counts, kind="stable")[:_MOST_WORDS]]
    one, two = (np.array([(values.astype(str) == word).mean() for word in shown]) for values in cells)
    notes = [
        f"{word}: {a:.1%} in {labels[0]}, {b:.1%} in {labels[1]}" for word, a, b in zip(shown, one, two, strict=True)
    ]
    series = [
        Series(labels[0], [], one, "pairs", "blue", notes),
        Series(labels[1], [], two, "pairs", "vermillion", notes),
    ]
    most = int(np.argmax(np.abs(two - one)))
    said = f"{shown[most]} from {one[most]:.1%} to {two[most]:.1%}" if p <= LEVEL else "no difference shown"
    some_of = f"The {len(shown)} most frequent of {len(words)} words." if len(shown) < len(words) else ""
    return Chart(
        f"{name}: {said} (p = {p:.3g})", "share of the rows", "", series, some_of, names=[str(w) for w in shown]
    )


def _move(name: Any, one: np.ndarray, two: np.ndarray, p: float, times: bool) -> str:
    """Return what happened to a column, for a title."""
    (a, b, c), (d, e, f) = (np.percentile(values, [25, 50, 75]) for values in (one, two))
    end = f" (p = {p:.3g})"
    if p > LEVEL:
        return f"{name}: no difference shown{end}"
    if abs(e - b) >= abs((f - d) - (c - a)):
        before, after = (time_text(round(x)) if times else f"{x:.4g}" for x in (b, e))
        return f"{name}: median from {before} to {after}{end}"
    before, after = (length_text(x) if times else f"{x:.4g}" for x in (c - a, f - d))
    return f"{name}: spread from {before} to {after}{end}"


def compared(name: str, cells: tuple[np.ndarray, np.ndarray], labels: tuple[str, str], p: float = 0.0) -> Chart | None:
    """Return a column in two samples: a histogram of numbers and times, shares of words; None where there is nothing to draw."""
    if not all(map(len, cells)):
        return None
    if any(values.dtype == object for values in cells):
        return word_shares(name, cells, labels, p)
    return histogram(name, cells, labels, p) if np.ptp(np.concatenate(cells)) > 0 else None


def dots(name: str, points: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str = "grey", **more: Any) -> Series:
    """Return points of one or two columns as dots; those outside the frame are arrows at its edge."""
    drawn = np.clip(points, low, high)
    # Direction of the true place, in units of the frame; angles run clockwise from the top.
    away = (points - drawn) / np.where(high > low, high - low, 1.0)
    up = away[:, 1] if points.shape[1] == 2 else np.zeros(len(points))
    angles = np.degrees(np.arctan2(away[:, 0], up)).round() % 360
    beyond = np.where(np.any(away != 0.0, axis=1), angles, -1)
    y = drawn[:, 1] if points.shape[1] == 2 else np.zeros(len(points))
    return Series(name, drawn[:, 0], y, "dots", colour, beyond=beyond, **more)


def outlines(contours: Contours) -> list[Series]:
    """Return the lines of contours as curves, for pages: each triangle of the grid that a level crosses has a segment."""
    points = np.stack(np.meshgrid(contours.x, contours.y), axis=-1)
    corners = [np.s_[:-1, :-1], np.s_[:-1, 1:], np.s_[1:, :-1], np.s_[1:, 1:]]
    place = np.stack([points[part].reshape(-1, 2) for part in corners], axis=1)
    height = np.stack([contours.height[part].ravel() for part in corners], axis=1)
    place, height = (np.concatenate([each[:, [0, 1, 2]], each[:, [1, 3, 2]]]) for each in (place, height))
    found = []
    for level, label in zip(contours.levels, contours.labels, strict=True):
        above = height >= level
        crossed = np.flatnonzero(above.any(axis=1) & ~above.all(axis=1))
        ends = np.full((len(crossed), 3, 2), np.nan)
        done = np.zeros(len(crossed), dtype=int)
        for a, b in ((0, 1), (1, 2), (2, 0)):
            cut = np.flatnonzero(above[crossed, a] != above[crossed, b])
            one, other = height[crossed[cut], a], height[crossed[cut], b]
            share = ((level - one) / (other - one))[:, None]
            ends[cut, done[cut]] = place[crossed[cut], a] * (1.0 - share) + place[crossed[cut], b] * share
            done[cut] += 1
        x, y = ends.reshape(-1, 2).T
        found.append(Series(label, x, y, "line", "blue"))
    return found
