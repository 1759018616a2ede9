"""What a page, a picture and a terminal show of a result, as data: sentences, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

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


@dataclass(frozen=True)
class ShownTable:
    """Table as people read it; a page lets them sort the rows.

    Parameters
    ----------
    title : str
        Heading.
    columns : dict of str to sequence
        Columns of one length.
    total : int, optional
        Number of rows of the whole table, of which these may be the first.
    about : str
        A sentence on what the columns mean.
    computed : frozenset of str
        Columns of computed numbers, which are shown with four digits.
    brief : list of str, optional
        Columns that a terminal shows; all by default.
    """

    title: str
    columns: dict[str, Any]
    total: int = 0
    about: str = ""
    computed: frozenset[str] = frozenset()
    brief: list[str] | None = None

    def __len__(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)


@dataclass(frozen=True)
class Content:
    """Everything that is shown of a result.

    Parameters
    ----------
    title : str
        Heading.
    summary : list of str
        The finding in plain sentences.
    tables : list of ShownTable
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
    tables: list[ShownTable]
    charts: list[Chart] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
