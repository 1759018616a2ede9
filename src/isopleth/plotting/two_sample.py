"""Plot how two samples differ: by column, and at their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.errors import InputError
from isopleth.plotting.style import BLUE, DAY, GREY, VERMILLION, column_label, new_figure, write_dates, write_note
from isopleth.plotting.view import bin_edges, robust_range, some
from isopleth.tables.clock_times import length_text, seconds_of, time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Rows, fitted excess of their own sample, colour and label of each sample.
_Samples = list[tuple[np.ndarray, np.ndarray, str, str]]

_MOST_BARS = 10
_MOST_HISTOGRAMS = 3
_MOST_WORDS = 8
_MOST_COLUMNS = 4
_LEAST_PLACES = 4
_MOST_DOTS = 3000
_BINS = 24
_LONGEST_NAME = 24
_MARGIN = 0.04
_LEVEL = 0.05
# Of the largest excess of a sample at its rows: those where it is at least this are drawn strong.
_STANDING_OUT = 0.5


def plot_two_samples(result: Any, names: Any = None, labels: Any = ("X", "Y")) -> Figure:
    """Draw how two samples differ.

    The left panel shows for each column how clearly it differs on its own, with p-values adjusted for the number of columns.
    On the right are histograms of both samples in the columns that differ most clearly, three at most. If no column differs by
    itself, the rows of both samples are drawn in the two columns with the smallest p-values, in a strong colour where the fitted
    excess of their own sample is at least half of its largest value.

    Parameters
    ----------
    result : TwoSampleResult
        Answer of :func:`~isopleth.two_sample_test`.
    names : sequence of str, optional
        Names of the columns; by default those of the result.
    labels : sequence of two str, default=("X", "Y")
        Names of the samples.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no window opens, and no display is needed.

    Raises
    ------
    InputError
        If all rows of both samples are equal, or there is not one name a column.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import two_sample_test
    >>> from isopleth.plotting import plot_two_samples
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 50, 2))
    >>> len(plot_two_samples(two_sample_test(X, Y, n_resamples=99, random_state=0)).axes)
    2
    """
    order = result.witness.order
    varying = order[np.isfinite(result.witness.statistics[order])]
    if not len(varying):
        raise InputError("all rows of both samples are equal, so there is nothing to draw.")
    names = list(result.names if names is None else names)
    if len(names) != len(result.names):
        raise InputError(f"names has {len(names)} entries; expected one a column, {len(result.names)}.")
    samples = _samples(result, labels)
    clear = varying[result.witness.p_values[varying] <= _LEVEL][:_MOST_HISTOGRAMS]
    plain = result.problem.table is None
    alone = clear if len(clear) or (plain and len(varying) > 1) else varying[:1]
    figure = new_figure(11.0, 4.8 if len(alone) < 3 else 6.0)
    grid = figure.add_gridspec(max(1, len(alone)), 2, width_ratios=(1.0, 1.25))
    _draw_columns(figure.add_subplot(grid[:, 0]), result, names, varying)
    for k, column in enumerate(alone):
        axes = figure.add_subplot(grid[k, 1])
        draw = _Panel(result.known_cells(int(column)), [label for *_, label in samples], names[column])
        draw(axes, float(result.witness.p_values[column]))
    if not len(alone):
        axes = figure.add_subplot(grid[0, 1])
        _draw_rows(axes, samples, np.sort(varying[:2]), names)
    handles, texts = axes.get_legend_handles_labels()
    figure.legend(handles, texts, frameon=False, fontsize=9, loc="outside upper right", ncols=2)
    return figure


def plot_made_rows(made: Any) -> Figure:
    """Draw the columns of made rows that differ most from those of their table, four at most.

    Parameters
    ----------
    made : MadeRows
        New rows and their table.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no window opens, and no display is needed.

    Raises
    ------
    InputError
        If the table is not at hand, or has no known cells.
    MissingExtraError
        If matplotlib is not installed.
    """
    chosen = sorted(made.distance, key=lambda name: -made.distance[name])[:_MOST_COLUMNS]
    if not chosen:
        raise InputError("the table of these rows is not at hand, so there is nothing to compare them with.")
    figure = new_figure(9.0, 0.6 + 2.2 * ((len(chosen) + 1) // 2))
    panels = figure.subplots((len(chosen) + 1) // 2, 2, squeeze=False).ravel()
    for axes, name in zip(panels, chosen, strict=False):
        said = _Panel(made.known_cells(name), ["table", "made rows"], name).draw(axes)
        axes.set_title(f"{column_label(name, _LONGEST_NAME)}: {said}", loc="left", fontsize=10)
    for axes in panels[len(chosen) :]:
        axes.set_axis_off()
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside upper right", ncols=2)
    return figure


def _draw_columns(axes: Axes, result: Any, names: list[str], varying: np.ndarray) -> None:
    witness, shown = result.witness, varying[:_MOST_BARS]
    score, p = witness.statistics[shown], witness.p_values[shown]
    places = np.arange(len(shown))
    clear = p <= _LEVEL
    axes.barh(places, np.maximum(score, 0.0), height=0.7, color=np.where(clear, BLUE, GREY).tolist())
    for place, value, share in zip(places, np.maximum(score, 0.0), p, strict=True):
        axes.annotate(
            f"p = {share:.3g}", (value, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
        )
    axes.set_yticks(places, [column_label(names[j], _LONGEST_NAME) for j in shown])
    axes.set_ylim(max(len(shown), _LEAST_PLACES) - 0.5, -0.5)
    axes.set_xlim(0.0, 1.3 * max(float(score.max()), 1.0))
    some_of = f" ({len(shown)} of {len(result.names)} columns)" if len(shown) < len(result.names) else ""
    axes.set_xlabel(f"score of the column alone{some_of}")
    axes.spines[["top", "right"]].set_visible(False)
    verdict = "The samples differ" if result.pvalue <= _LEVEL else "No difference is shown"
    axes.set_title(f"{verdict}: p = {result.pvalue:.3g}", loc="left")


def _samples(result: Any, labels: Any) -> _Samples:
    X, Y = result.problem.shown
    first, second = (column_label(str(label), _LONGEST_NAME) for label in labels)
    return [
        (X, result.witness.x, BLUE, f"{first} ({_rows(X)})"),
        (Y, -result.witness.y, VERMILLION, f"{second} ({_rows(Y)})"),
    ]


def _rows(rows: np.ndarray) -> str:
    return "1 row" if len(rows) == 1 else f"{len(rows):,} rows"


@dataclass(frozen=True)
class _Panel:
    """Known cells of a column in both samples, the names of these and of the column."""

    cells: tuple[np.ndarray, np.ndarray]
    labels: list[str]
    name: str

    def __call__(self, axes: Axes, p: float) -> None:
        """Draw both samples: numbers as histograms, words as shares."""
        empty = not all(len(cells) for cells in self.cells)
        said = "cells are known in one sample only" if empty else self.draw(axes)
        said = said if p <= _LEVEL or empty else "no difference shown"
        axes.set_title(f"{column_label(self.name, _LONGEST_NAME)}: {said}, p = {p:.3g}", loc="left", fontsize=10)

    def draw(self, axes: Axes) -> str:
        """Draw both samples, and return what differs most."""
        axes.spines[["top", "right"]].set_visible(False)
        words = any(cells.dtype == object for cells in self.cells)
        return (self._shares if words else self._histograms)(axes)

    def _histograms(self, axes: Axes) -> str:
        times = self.cells[0].dtype.kind == "M"
        cells = tuple(seconds_of(values) / DAY for values in self.cells) if times else self.cells
        low, high = robust_range(np.concatenate(cells)[:, None])
        edges = bin_edges(np.concatenate(cells), _BINS, low[0], high[0])
        outside = 0
        for values, color, label in zip(cells, (BLUE, VERMILLION), self.labels, strict=True):
            counts = np.histogram(values, edges)[0] / len(values) / np.diff(edges)
            outside += int(((values < low[0]) | (values > high[0])).sum())
            axes.stairs(counts, edges, color=color, label=label, linewidth=1.4)
            axes.stairs(counts, edges, color=color, fill=True, alpha=0.12)
        axes.set(xlabel=column_label(self.name), ylabel="density", ylim=(0.0, 1.05 * axes.get_ylim()[1]))
        write_note(axes, [f"{outside:,} beyond the frame, not drawn"] * bool(outside))
        (a, b, c), (d, e, f) = (np.percentile(values, [25, 50, 75]) for values in cells)
        middle = abs(e - b) >= abs((f - d) - (c - a))
        if times:
            write_dates(axes.xaxis)
            said = (
                [time_text(round(DAY * x)) for x in (b, e)]
                if middle
                else [length_text(DAY * x) for x in (c - a, f - d)]
            )
        else:
            said = [f"{x:.4g}" for x in ((b, e) if middle else (c - a, f - d))]
        return f"{'median' if middle else 'spread'} {said[0]} → {said[1]}"

    def _shares(self, axes: Axes) -> str:
        words, counts = np.unique(np.concatenate(self.cells).astype(str), return_counts=True)
        shown = words[np.argsort(-counts, kind="stable")[:_MOST_WORDS]]
        shares = [np.array([(cells.astype(str) == word).mean() for word in shown]) for cells in self.cells]
        places = np.arange(len(shown))
        for share, shift, color, label in zip(shares, (-0.2, 0.2), (BLUE, VERMILLION), self.labels, strict=True):
            axes.barh(places + shift, share, height=0.36, color=color, alpha=0.8, label=label)
        axes.set_yticks(places, [column_label(str(word), _LONGEST_NAME) for word in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set(xlabel=f"share of the rows ({column_label(self.name)})")
        most = int(np.argmax(np.abs(shares[1] - shares[0])))
        return f"{column_label(str(shown[most]), _LONGEST_NAME)} {shares[0][most]:.1%} → {shares[1][most]:.1%}"


def _draw_rows(axes: Axes, samples: _Samples, columns: np.ndarray, names: list[str]) -> None:
    low, high = robust_range(np.concatenate([rows[:, columns] for rows, *_ in samples]))
    outside = 0
    for rows, values, color, label in samples:
        chosen = some(np.arange(len(rows)), _MOST_DOTS)
        points = rows[chosen][:, columns]
        outside += int(((points < low) | (points > high)).any(axis=1).sum())
        points = np.clip(points, low, high)
        strong = values[chosen] >= max(_STANDING_OUT * float(values.max()), np.finfo(float).tiny)
        style: dict[str, Any] = {"color": color, "linewidths": 0, "rasterized": len(chosen) > 1000}
        axes.scatter(points[~strong, 0], points[~strong, 1], 9, alpha=0.25, **style)
        axes.scatter(points[strong, 0], points[strong, 1], 16, alpha=0.9, label=label, zorder=3, **style)
    margin = _MARGIN * (high - low)
    axes.set(
        xlabel=column_label(names[columns[0]]),
        ylabel=column_label(names[columns[1]]),
        xlim=(low[0] - margin[0], high[0] + margin[0]),
        ylim=(low[1] - margin[1], high[1] + margin[1]),
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("No column differs by itself. Strong: more rows than the other sample", loc="left", fontsize=10)
    write_note(axes, [f"{outside:,} beyond the frame, drawn at its edge"] * bool(outside))
