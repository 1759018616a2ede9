"""Plot series with their changes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.plotting.style import (
    BLACK,
    DAY,
    GREY,
    VERMILLION,
    column_label,
    new_figure,
    write_dates,
    write_note,
)
from isopleth.tables.clock_times import time_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PANELS = 6
_MOST_POINTS = 4000
# Places that the title names.
_MOST_NAMED = 4
_STYLES = {"level": "-", "slope": "-", "scatter": "--", "shape": ":", "frequency": "-.", "relation": "-."}
# Descriptions of the kinds of changes.
MEANINGS = {
    "level": "level",
    "slope": "slope",
    "scatter": "scatter",
    "shape": "shape or dependence",
    "frequency": "frequency",
    "relation": "relation of columns",
}


def plot_change_points(changes: Any, names: list[str] | None = None) -> Figure:
    """Draw a series with its changes.

    A vertical line marks each change, before the first step after it; its style shows what changed. A band shows its interval.
    The horizontal axis shows times if they are known, else lines of the file if the series is from one, else steps.
    If only levels, scatter or shape change, the mean of each segment is drawn. In a long series, each point of
    the curve is the extreme value of several steps.

    Parameters
    ----------
    changes : ChangePoints
        Result of :class:`~isopleth.ChangePointDetector`.
    names : list of str, optional
        One a column of the series.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no window opens, and no display is needed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import ChangePointDetector
    >>> from isopleth.plotting import plot_change_points
    >>> series = np.repeat([0.0, 3.0], 40) + np.random.default_rng(0).normal(size=80)
    >>> len(plot_change_points(ChangePointDetector(random_state=0).fit(series).result_).axes)
    1
    """
    dim = changes.series.shape[1]
    panels = min(dim, _MOST_PANELS)
    figure = new_figure(9.0, 1.6 * panels + 1.0)
    above = np.atleast_1d(figure.subplots(panels, 1, sharex=True))
    labels = [f"column {j}" for j in range(dim)] if names is None else names
    noun, places, dates = changes.axis()
    places = places / DAY if dates else places
    for j, axes in enumerate(above):
        _draw_series(axes, changes, j, places)
        axes.set_ylabel("value" if dim == 1 and names is None else column_label(labels[j], 30))
    if dim > panels:
        write_note(above[-1], [f"{panels} of {dim} columns shown"])
    above[-1].set_xlabel(noun)
    if dates:
        write_dates(above[-1].xaxis)
    for axes in above:
        _mark(axes, changes, places)
        axes.spines[["top", "right"]].set_visible(False)
    count = len(changes)
    shown = next(iter(changes.where.values()), np.arange(len(places))) if changes.times is None else changes.times
    named = ", ".join(time_words(shown[place]) for place in changes.places[:_MOST_NAMED]) + ", ..." * (
        count > _MOST_NAMED
    )
    found = (
        f"{count} change{'' if count == 1 else 's'}, at {named if noun == 'time' else f'{noun} {named}'}"
        if count
        else "No change"
    )
    above[0].set_title(found, loc="left", fontsize=10)
    if count:
        handles, shown = above[0].get_legend_handles_labels()
        figure.legend(handles, shown, loc="outside upper right", ncols=len(shown), frameon=False, fontsize=8)
    return figure


def borders(places: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Return where the lines of changes are drawn: in the middle between the first steps after them and the steps before."""
    return np.asarray(0.5 * (places[changes - 1] + places[changes]))


def _draw_series(axes: Axes, changes: Any, j: int, places: np.ndarray) -> None:
    column = changes.series[:, j]
    steps, values = _thinned(column)
    axes.plot(places[steps], values, color=GREY, linewidth=0.8, zorder=2)
    if not len(changes) or "slope" in changes.kinds:
        return
    bounds = [0, *map(int, changes.places), len(column)]
    means = [np.nanmean(column[a:b]) for a, b in pairwise(bounds)]
    edges = np.concatenate([places[:1], borders(places, changes.places), places[-1:]])
    axes.hlines(means, edges[:-1], edges[1:], color=BLACK, linewidth=1.2, zorder=3)


def _mark(axes: Axes, changes: Any, places: np.ndarray) -> None:
    lines = borders(places, changes.places)
    if changes.intervals is not None:
        for low, high in borders(places, changes.intervals):
            axes.axvspan(low, high, color=VERMILLION, alpha=0.15, linewidth=0.0, zorder=1)
    for kind in dict.fromkeys(changes.kinds):
        for place in lines[changes.kinds == kind]:
            axes.axvline(place, color=VERMILLION, linestyle=_STYLES[kind], linewidth=1.0, zorder=4)
        axes.plot([], [], color=VERMILLION, linestyle=_STYLES[kind], linewidth=1.0, label=MEANINGS[kind])


def _thinned(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and values; for long series, the smallest and largest value of each of many parts."""
    n = len(values)
    if n <= _MOST_POINTS:
        return np.arange(n), values
    parts = np.array_split(np.arange(n), _MOST_POINTS // 2)
    kept = []
    for part in parts:
        inside = values[part]
        if np.isnan(inside).any():
            kept += [part[0], part[-1]]
        else:
            kept += sorted([part[inside.argmin()], part[inside.argmax()]])
    steps = np.unique(kept)
    return steps, values[steps]
