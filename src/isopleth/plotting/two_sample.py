"""Plot how two samples differ: by column, and at their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.errors import InputError
from isopleth.plotting.style import BLUE, GREY, VERMILLION, beyond_frame, column_label, new_figure, write_note
from isopleth.plotting.view import robust_range, some

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Rows, fitted excess of their own sample, colour and label of each sample.
_Samples = list[tuple[np.ndarray, np.ndarray, str, str]]

_MOST_BARS = 10
_LEAST_PLACES = 4
_MOST_DOTS = 3000
_BINS = 24
_LONGEST_NAME = 24
_MOST_WORDS, _LONGEST_WORD = 12, 14
_MARGIN = 0.04
_LEVEL = 0.05
# Of the largest excess of a sample at its rows: those where it is at least this are drawn strong.
_STANDING_OUT = 0.5


def plot_two_samples(result: Any, names: Any = None, labels: Any = ("X", "Y")) -> Figure:
    """Draw how two samples differ.

    The left panel shows for each column how clearly it differs on its own, with p-values adjusted for the number of columns.
    The right panel shows the rows of both samples in the two columns that differ most clearly. Rows are drawn in a strong
    colour where the fitted excess of their own sample is at least half of its largest value. A single column is drawn as two
    histograms.

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
    >>> len(plot_two_samples(two_sample_test(X, Y, n_permutations=99, random_state=0)).axes)
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
    figure = new_figure(11.0, 4.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    _draw_columns(left, result, names, varying)
    shown = np.sort(varying[:2])
    if len(shown) == 1:
        _draw_histograms(right, samples, int(shown[0]), names)
    else:
        _draw_rows(right, samples, shown, names)
        _write_words(right.yaxis, result, int(shown[1]))
    _write_words(right.xaxis, result, int(shown[0]))
    right.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0.0, 1.0))
    return figure


def _draw_columns(axes: Axes, result: Any, names: list[str], varying: np.ndarray) -> None:
    witness, shown = result.witness, varying[:_MOST_BARS]
    score, p = witness.statistics[shown], witness.pvalues[shown]
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
    axes.set_title(f"All columns together: p = {result.pvalue:.3g}", loc="left")


def _samples(result: Any, labels: Any) -> _Samples:
    X, Y = result.problem.shown
    first, second = (column_label(str(label), _LONGEST_NAME) for label in labels)
    return [
        (X, result.witness.x, BLUE, f"{first} ({_rows(X)})"),
        (Y, -result.witness.y, VERMILLION, f"{second} ({_rows(Y)})"),
    ]


def _write_words(axis: Any, result: Any, column: int) -> None:
    """Write words at the ticks of a column of words, and times at those of a column of times."""
    table = result.problem.table
    if table is None:
        return
    encoding = table.encoding
    if encoding.cells[column].kind == "categorical":
        words = [*encoding.levels(column), "other words", "missing"]
        shown = [j for j in range(len(words)) if axis.get_view_interval()[0] <= j <= axis.get_view_interval()[1]]
        shown = shown[:: max(1, -(-len(shown) // _MOST_WORDS))]
        axis.set_ticks(shown, [column_label(words[j], _LONGEST_WORD) for j in shown], fontsize=8)
    elif encoding.cells[column].kind == "time":
        days = encoding.columns.columns[column]
        ticks = axis.get_ticklocs()[1:-1:2]
        moments = np.rint(ticks + days.origin).astype("datetime64[s]").astype("datetime64[D]")
        axis.set_ticks(ticks, [str(moment) for moment in moments], fontsize=8)


def _rows(rows: np.ndarray) -> str:
    return "1 row" if len(rows) == 1 else f"{len(rows):,} rows"


def _draw_histograms(axes: Axes, samples: _Samples, column: int, names: list[str]) -> None:
    low, high = robust_range(np.concatenate([rows[:, [column]] for rows, *_ in samples]))
    edges = np.linspace(low[0], high[0], _BINS + 1)
    outside = 0
    for rows, _, color, label in samples:
        values = rows[:, column]
        counts = np.histogram(values, edges)[0] / len(values) / np.diff(edges)
        outside += int(((values < low[0]) | (values > high[0])).sum())
        axes.stairs(counts, edges, color=color, label=label, linewidth=1.4)
        axes.stairs(counts, edges, color=color, fill=True, alpha=0.12)
    axes.set(xlabel=column_label(names[column]), ylabel="density", ylim=(0.0, 1.2 * axes.get_ylim()[1]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Both samples", loc="left")
    write_note(axes, [f"{outside:,} beyond the frame, not drawn"] * bool(outside))


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
        ylim=(low[1] - margin[1], high[1] + 4.0 * margin[1]),
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Strong: where the sample has more rows than the other", loc="left", fontsize=10)
    write_note(axes, beyond_frame(outside))
