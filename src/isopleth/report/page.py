"""Content of a page: sentences, tables and pictures as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Numbers = Sequence[float] | np.ndarray

# Points of a curve in a picture.
_MOST_POINTS = 2000


@dataclass(frozen=True)
class Series:
    """Points, a curve or bars of a picture.

    Parameters
    ----------
    name : str
        Name in the legend; empty for none.
    x, y : sequence of float
        Places of the points. For bars, `y` has the lengths and `x` is empty. NaN breaks a curve.
    style : str
        "dots", "line", "steps" (a curve that jumps), "bars", "pairs" (bars of several series side by side) or "ranges" (bars from
        `low` to `y`).
    colour : str
        "blue", "vermillion", "grey" or "text".
    notes : sequence of str
        Text for each point, which is shown when the mouse is over it. The keys reach these points, too.
    low : sequence of float
        Lower ends of ranges.
    strong : bool
        Large dots or a thick curve.
    beyond : sequence of int
        For dots that are drawn at the edge of the frame: the angle of the arrow to the true place in degrees, 0 pointing up; -1
        for dots at their place.
    dashed : bool
        Whether a curve is dashed.
    """

    name: str
    x: Numbers
    y: Numbers
    style: Literal["dots", "line", "steps", "bars", "pairs", "ranges"] = "dots"
    colour: str = "blue"
    notes: Sequence[str] = ()
    low: Numbers = ()
    strong: bool = False
    beyond: Numbers = ()
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Picture of a page.

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
    times : str
        Axes whose numbers are seconds since 1970 and are shown as dates and times: "", "x", "y" or "xy".
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


@dataclass(frozen=True)
class PageTable:
    """Table of a page, whose rows the reader can sort.

    Parameters
    ----------
    title : str
        Heading.
    columns : dict of str to sequence
        Columns of one length.
    total : int
        Number of rows of the whole table, of which these may be the first.
    about : str
        A sentence on what the columns mean.
    computed : frozenset of str
        Columns of computed numbers, which are shown with four digits.
    """

    title: str
    columns: dict[str, Any]
    total: int
    about: str = ""
    computed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Page:
    """Content of a page.

    Parameters
    ----------
    title : str
        Heading.
    summary : list of str
        The finding in plain sentences.
    tables : list of PageTable
        Tables, the first one before the pictures.
    charts : list of Chart
        Pictures.
    used : dict of str to str
        Columns and how they were used.
    notes : list of str
        What the numbers mean.
    """

    title: str
    summary: list[str]
    tables: list[PageTable]
    charts: list[Chart] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def thinned(values: np.ndarray, most: int = _MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and values of a curve; of a long one the smallest and the largest value of each of many parts.

    Parts that hold NaN keep one, so that the curve breaks there.
    """
    n = len(values)
    if n <= most:
        return np.arange(n), values
    kept = []
    for part in np.array_split(np.arange(n), most // 3):
        inside = values[part]
        missing = np.isnan(inside)
        if missing.any():
            kept.append(part[np.argmax(missing)])
        if not missing.all():
            kept += [part[np.nanargmin(inside)], part[np.nanargmax(inside)]]
    steps = np.unique(kept)
    return steps, values[steps]
