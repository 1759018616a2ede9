"""Plot the columns that make a row unlikely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.plotting.style import BLUE, column_label, given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS = 10
_LONGEST_NAME = 32
# Share of the width that a letter beside a bar takes, at most.
_LETTER = 0.019


def plot_explanation(explanation: Any, row: int = 0, ax: Axes | None = None) -> Axes:
    """Draw the columns that make a row unlikely.

    A bar is the rise of the score of the row if the value of that column alone is replaced by the value that gives the highest
    score. The two values are printed beside the bar. At most ten columns are drawn, those with the largest rise.

    Parameters
    ----------
    explanation : Explanation
        Result of :meth:`AnomalyDetector.explain`.
    row : int, default=0
        Number of the row among those explained; negative numbers count from the end.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. None makes a figure without pyplot, so that no window opens and no display is needed.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; their figure is ``ax.figure``, which :func:`save_figure` writes to a file.

    Raises
    ------
    InputError
        If there is no such row.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> from isopleth.plotting import plot_explanation
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[7, 1] = 9.0
    >>> detector = AnomalyDetector(n_estimators=20, random_state=0).fit(X)
    >>> ax = plot_explanation(detector.explain(X[[7]]))
    >>> ax.get_yticklabels()[0].get_text()
    'column 1'
    """
    columns = len(explanation.names)
    row = explanation.position(row)
    ax = given_or_new(ax, 6.4, 1.6 + 0.32 * min(columns, _MOST_BARS))
    rise = np.asarray(explanation.rise)[row]
    chosen = np.argsort(-rise, kind="stable")[:_MOST_BARS]
    chosen = chosen[rise[chosen] > 0.0]
    _draw_bars(ax, explanation, row, chosen)
    # Short lines: side by side, such pictures are narrow.
    some = f"\n({len(chosen)} of {columns} columns)" if len(chosen) < columns else ""
    ax.set_xlabel(f"rise of the score{some}")
    ax.set_title(f"Row {row}, score {explanation.scores[row]:.4g}\nvalue → best value", loc="left", fontsize=10)
    return ax


def _cell(value: Any) -> str:
    """Return a number with four digits, or a word."""
    if value is None or value != value:
        return "missing"
    return f"{value:.4g}" if isinstance(value, (int, float)) else column_label(str(value), _LONGEST_NAME)


def _draw_bars(axes: Axes, explanation: Any, row: int, chosen: np.ndarray) -> None:
    places = np.arange(len(chosen))
    bars = axes.barh(places, explanation.rise[row][chosen], height=0.7, color=BLUE)
    moves = [f"{_cell(explanation.values[row][j])} → {_cell(explanation.best[row][j])}" for j in chosen]
    axes.bar_label(bars, moves, padding=4, fontsize=8)
    axes.set_yticks(places, [column_label(explanation.names[j], _LONGEST_NAME) for j in chosen])
    axes.xaxis.set_major_formatter("{x:g}")  # a common power of ten would stand where the label is
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    if len(chosen):
        width = max(0.3, 1.0 - _LETTER * (2 + max(map(len, moves))))
        axes.set_xlim(0.0, explanation.rise[row][chosen[0]] / width)
    else:
        axes.text(
            0.5, 0.5, "no column alone makes the row less unlikely", transform=axes.transAxes, ha="center", va="center"
        )
        axes.set_xlim(0.0, 1.0)
