"""Plot anomalies: their place among the isopleths, and the scores of all rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.density import SOSREP
from isopleth.errors import InputError
from isopleth.plotting.density import Isopleths, draw_isopleths
from isopleth.plotting.style import (
    BLACK,
    DAY,
    GREY,
    MASSES,
    VERMILLION,
    beyond_frame,
    column_label,
    halo,
    new_figure,
    write_dates,
    write_note,
)
from isopleth.plotting.view import View, draw_arrows, draw_dots, extreme_columns, robust_range, some

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_FITTED = 2000
_MOST_RINGED = 5000
_MOST_NUMBERED = 20
# So many rows are ringed, in black, where none is flagged.
_LEAST_LIKELY = 10

_LONGEST_NAME = 24
# Shares of the frame that the number of a row takes.
_ROOM_OF_NUMBER = (0.045, 0.035)
_MARGIN = 0.06
# Interquartile ranges below the first quartile at which the frame of the scores ends: one wild score must not flatten
# all others.
_WILD = 20.0


def plot_anomalies(
    values: np.ndarray,
    names: list[str],
    scores: np.ndarray,
    p_values: np.ndarray,
    labels: np.ndarray,
    known: np.ndarray | None = None,
    *,
    times: Sequence[str] = (),
) -> Figure:
    """Draw the anomalies of a table.

    The left panel shows the two columns in which the flagged rows deviate most from the rest, with the regions that
    hold 50, 80, 95 and 99 % of a density fitted to these columns of the other rows. Flagged rows have a ring and
    a number, 1 for the least likely row. Rows beyond the frame are triangles at its edge; beside flagged ones stands their true
    value. The right panel shows all scores, sorted. If no row is flagged, the ten least likely rows are marked instead, in black.
    Known anomalies have a cross in both panels, and the title of the right one says how many of them are flagged.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        The table.
    names : list of str
        One a column.
    scores : ndarray of shape (n,)
        Higher is more normal.
    p_values : ndarray of shape (n,)
        p-values of the rows.
    labels : ndarray of shape (n,)
        -1 for flagged rows, 1 for all others.
    known : ndarray of shape (n,), bool, optional
        Rows that are known to be anomalies; they are marked with crosses, and the title says how many of them are flagged.
    times : sequence of str, optional
        Names of the columns that hold times, in seconds since 1970.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no window opens, and no display is needed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If every column is constant, so that there is no density to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.plotting import plot_anomalies
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> p = np.random.default_rng(1).uniform(size=50)
    >>> figure = plot_anomalies(X, ["a", "b"], p, p, np.where(p < 0.05, -1, 1))
    >>> len(figure.axes)
    2
    """
    figure = new_figure(11, 5)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    order = np.argsort(scores, kind="stable")
    flagged, plain = order[labels[order] < 0], order[labels[order] >= 0]
    ringed = flagged if len(flagged) else order[:_LEAST_LIKELY]
    view = _view(values, names, ringed, times)
    margin = _MARGIN * (view.high - view.low)
    draw_isopleths(left, _isopleths(view.points, plain), view.names, view.low - margin, view.high + margin)
    for axis, name in zip((left.xaxis, left.yaxis), view.names, strict=False):
        if name in view.times:
            write_dates(axis)
    columns = " and ".join(column_label(name, _LONGEST_NAME) for name in view.names)
    count = f"{len(flagged):,} of {len(scores):,} rows flagged" if len(flagged) else "No row is flagged"
    left.set_title(f"{count}: {columns}", loc="left", fontsize=11)
    _draw_rows(left, view, ringed, VERMILLION if len(flagged) else BLACK)
    _draw_scores(right, scores[order], p_values[order], labels[order] < 0)
    if known is not None:
        _mark_known(left, right, view, scores, labels, np.asarray(known, dtype=bool))
    return figure


def _view(values: np.ndarray, names: list[str], extreme: np.ndarray, times: Sequence[str]) -> View:
    """Return the varying columns, two at most, in which the `extreme` rows deviate most, in the order of the table."""
    chosen = np.sort(extreme_columns(values, extreme)[:2])
    if not len(chosen):
        raise InputError(
            "every column is constant in these rows, so there is no density to draw; draw rows that differ."
        )
    shown = [names[j] for j in chosen]
    points = values[:, chosen] / np.where(np.isin(shown, list(times)), DAY, 1.0)
    return View(points, shown, *robust_range(points), times=frozenset(times))


def _isopleths(points: np.ndarray, plain: np.ndarray) -> Isopleths:
    """Draw the isopleths of a density of the rows that are not flagged."""
    # If so many rows are flagged that the others have no density, the density of all rows is drawn.
    rows = points[plain] if len(plain) > 1 and np.ptp(points[plain], axis=0).all() else points
    with warnings.catch_warnings():
        # Warnings about the whole table were given when the detector was fitted; those about two of its columns do not matter.
        warnings.simplefilter("ignore")
        return Isopleths.of(SOSREP(frame="scale").fit(some(rows, _MOST_FITTED)), MASSES)


def _draw_rows(axes: Axes, view: View, ringed: np.ndarray, color: str) -> None:
    notes = draw_dots(axes, view, np.delete(np.arange(len(view.points)), ringed))
    shown = ringed[:_MOST_RINGED]
    beyond = view.beyond(shown)
    x, y = view.placed(shown)
    axes.scatter(x[~beyond], y[~beyond], 9, color=color, linewidths=0, zorder=4, clip_on=False)
    axes.scatter(x, y, 70, facecolors="none", edgecolors=color, linewidths=1.2, zorder=5, clip_on=False)
    draw_arrows(axes, view, shown[beyond], color, 34)
    style: dict[str, Any] = {"fontsize": 8, "color": color, "zorder": 6, "path_effects": halo()}
    for k in _apart(np.column_stack([x, y])[:_MOST_NUMBERED] / np.resize(view.high - view.low, 2)):
        # Text of dots in the right half is to their left, so that it stays in the frame.
        right = x[k] > 0.5 * (view.low[0] + view.high[0])
        text = f"{k + 1}: {view.true_values(shown[k])}" if beyond[k] else str(k + 1)
        side: dict[str, Any] = {
            "xytext": (-7, 6) if beyond[k] and right else (5, 5),
            "ha": "right" if beyond[k] and right else "left",
        }
        axes.annotate(text, (x[k], y[k]), textcoords="offset points", **side, **style)
    notes += [f"ringed: the {len(ringed)} least likely rows, not flagged"] * (color == BLACK)
    write_note(axes, notes + beyond_frame(view.outside), over_dots=len(view.names) == 1)


def _apart(points: np.ndarray) -> list[int]:
    """Return the points whose numbers do not cover those of earlier ones; the frame has sides of length 1."""
    kept: list[int] = []
    for k, point in enumerate(points):
        if not (np.abs(points[kept] - point) < _ROOM_OF_NUMBER).all(axis=1).any():
            kept.append(k)
    return kept


def _mark_known(left: Axes, right: Axes, view: View, scores: np.ndarray, labels: np.ndarray, known: np.ndarray) -> None:
    """Draw a cross on known anomalies and say how many are flagged."""
    rows, count = np.flatnonzero(known), int(known.sum())
    style: dict[str, Any] = {"marker": "x", "color": BLACK, "linewidths": 1.3, "zorder": 7, "clip_on": False}
    left.scatter(*view.placed(rows), 26, label=f"known anomaly ({count:,})", **style)
    rank = np.empty(len(scores), dtype=int)
    rank[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    lowest = right.get_ylim()[0]
    right.scatter(rank[rows], np.maximum(scores[rows], lowest), 26, label=f"known anomaly ({count:,})", **style)
    right.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.05))
    flagged = int((labels[rows] < 0).sum())
    right.set_title(f"{flagged} of {count} known anomalies are flagged", loc="left", fontsize=11)


def _draw_lowest(axes: Axes, ranks: np.ndarray, lowest: float, scores: np.ndarray) -> None:
    """Draw triangles for scores below the frame, and write the true ones of the first."""
    axes.scatter(ranks, np.full(len(ranks), lowest), 16, marker="v", color=VERMILLION, linewidths=0, zorder=5)
    for rank, score in zip(ranks[:1], scores[:1], strict=True):
        axes.annotate(
            f"{score:,.4g}", (rank, lowest), xytext=(8, -3), textcoords="offset points", fontsize=8, color=VERMILLION
        )


def _draw_scores(axes: Axes, scores: np.ndarray, p_values: np.ndarray, flagged: np.ndarray) -> None:
    """Draw the scores in increasing order, with the largest p-value that is flagged."""
    n = len(scores)
    rank = np.arange(1, n + 1)
    quarter, three_quarters = np.percentile(scores, [25, 75])
    lowest = quarter - _WILD * (three_quarters - quarter)
    below, true_scores = np.flatnonzero(scores < lowest), scores
    scores = np.maximum(scores, lowest)
    # Of many ranks, only these can be distinguished on a logarithmic axis.
    visible = np.unique(np.geomspace(1, n, _MOST_FITTED).astype(int)) - 1
    plain, ringed = visible[~flagged[visible]], visible[flagged[visible]]
    axes.plot(rank[plain], scores[plain], ".", color=GREY, markersize=4, label=f"not flagged ({n - flagged.sum():,})")
    title = "Scores of all rows: no row is flagged"
    if flagged.any():
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": VERMILLION, "label": f"flagged ({flagged.sum():,})"}
        axes.scatter(rank[ringed], scores[ringed], 36, **ring)
        _draw_lowest(axes, rank[below], lowest, true_scores[below])
        axes.axvline(rank[flagged].max() + 0.5, color=VERMILLION, linewidth=0.9, linestyle="--")
        title = f"Scores of all rows: flagged up to p = {p_values[flagged].max():.3g}"
    axes.set(xscale="log", xlabel="rank, the least likely row first", ylabel="score (higher is more normal)")
    axes.set_title(title, loc="left", fontsize=11)
    # Scores rise: there are no dots in this corner, but a note.
    axes.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.05))
    write_note(axes, beyond_frame(len(below)))
