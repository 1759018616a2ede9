"""Pictures of anomalies: where they lie between the isopleths, and how their scores stand out."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.density import SOSREP
from isopleth.errors import InputError, require
from isopleth.io.atomic import atomic_write, check_target
from isopleth.io.deviations import robust_z
from isopleth.io.writing import check_suffix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")

_MASSES = (0.99, 0.95, 0.80, 0.50)
# Okabe and Ito's colours are told apart by readers with any kind of colour vision, and in grey.
_BLUE, _VERMILLION, _GREY, _BLACK = "#0072B2", "#D55E00", "#7A7A7A", "#000000"
_FILLS = ("#EAF3FA", "#D3E6F3", "#B4D4EA", "#8FBEDD")
_MOST_DOTS = 5000
_MOST_FITTED = 2000
_MOST_NUMBERED = 20
_LEAST_LIKELY = 10
"""So many rows are ringed, in black, where none is flagged."""

_GRID = 120
_FARTHEST = 15.0
"""Robust standard deviations from the median at which the frame ends: one wild value must not shrink all others."""
_WILD = 20.0
"""Interquartile ranges below the first quartile at which the frame of the scores ends, for the same reason."""


@dataclass(frozen=True, eq=False)
class _View:
    """The part of the table that the left panel shows."""

    points: np.ndarray
    names: list[str]
    low: np.ndarray
    high: np.ndarray

    @property
    def outside(self) -> int:
        return int(np.any((self.points < self.low) | (self.points > self.high), axis=1).sum())

    def clipped(self, rows: np.ndarray) -> np.ndarray:
        return np.clip(self.points[rows], self.low, self.high)


def check_figure_target(path: str | os.PathLike[str]) -> None:
    """Find out before the work whether :func:`save_figure` will be able to write `path`.

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


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : path-like
        The file; the suffix decides the format.

    Raises
    ------
    InputError
        If the suffix is none of these or the file cannot be written.
    """
    suffix = check_suffix(path, FIGURE_SUFFIXES)
    with atomic_write(path) as file:
        figure.savefig(file, format=suffix.removeprefix("."), dpi=200)


def plot_anomalies(
    values: np.ndarray, names: list[str], scores: np.ndarray, p_values: np.ndarray, labels: np.ndarray
) -> Figure:
    """Draw the anomalies of a table.

    The left panel shows the two columns in which the flagged rows deviate most from the rest, with the regions that
    hold 50, 80, 95 and 99 % of a density fitted to these columns of the other rows; flagged rows are ringed and
    numbered from the least likely on. The right panel shows all scores, sorted. Where nothing is flagged, the ten least
    likely rows stand in for flagged ones, in black.

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
    figure = require("matplotlib.figure", "plot", "Plotting").Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    order = np.argsort(scores, kind="stable")
    flagged, plain = order[labels[order] < 0], order[labels[order] >= 0]
    ringed = flagged if len(flagged) else order[:_LEAST_LIKELY]
    view = _view(values, names, ringed)
    draw = _draw_curve if view.points.shape[1] == 1 else _draw_isopleths
    draw(left, view, *_density(view.points, plain))
    _draw_rows(left, view, ringed, _VERMILLION if len(flagged) else _BLACK)
    _draw_scores(right, scores[order], p_values[order], labels[order] < 0)
    return figure


def _view(values: np.ndarray, names: list[str], extreme: np.ndarray) -> _View:
    """The at most two varying columns in which the `extreme` rows deviate most, in the order of the table."""
    varying = np.flatnonzero(np.ptp(values, axis=0) > 0)
    if not len(varying):
        raise InputError("every column is constant: there is no density to draw.")
    # The logarithm keeps one row with one wild cell from choosing for all the others.
    deviation = np.log1p(np.abs(robust_z(values[extreme], values)[:, varying])).mean(axis=0)
    chosen = varying[np.sort(np.argsort(-deviation, kind="stable")[:2])]
    points = values[:, chosen]
    low, high = _frame(points)
    return _View(points, [names[j] for j in chosen], low, high)


def _frame(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = np.median(points, axis=0)
    z = robust_z(points, points)
    # From the definition z = (x - middle)/spread, at the row that is farthest out.
    farthest = np.argmax(np.abs(z), axis=0)
    columns = np.arange(points.shape[1])
    spread = (points[farthest, columns] - middle) / z[farthest, columns]
    low = np.maximum(points.min(axis=0), middle - _FARTHEST * spread)
    high = np.minimum(points.max(axis=0), middle + _FARTHEST * spread)
    return low, high


def _density(points: np.ndarray, plain: np.ndarray) -> tuple[Any, np.ndarray]:
    """A density of the rows not flagged, and the log densities of its isopleths, rising."""
    # So many may be flagged that the others have no density; then all rows have one.
    rows = points[plain] if len(plain) > 1 and np.ptp(points[plain], axis=0).all() else points
    with warnings.catch_warnings():
        # The picture is a sketch of two columns; what the density of the whole table had to say has been said.
        warnings.simplefilter("ignore")
        density = SOSREP().fit(_some(rows, _MOST_FITTED))
        return density, np.asarray(density.level_set(_MASSES))


def _some(rows: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the rows, the same ones each time."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]


def _draw_isopleths(axes: Axes, view: _View, density: Any, levels: np.ndarray) -> None:
    margin = 0.06 * (view.high - view.low)
    x, y = np.linspace(view.low - margin, view.high + margin, _GRID, axis=-1)
    height = density.score_samples(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)).reshape(_GRID, _GRID)
    rising, first = np.unique(levels, return_index=True)  # rows that repeat much can give two masses one level
    masses = [f"{_MASSES[k]:.0%}" for k in first]
    axes.contourf(x, y, height, levels=[*rising, np.inf], colors=_FILLS[-len(rising) :])
    lines = axes.contour(x, y, height, levels=rising, colors=_BLUE, linewidths=0.9, linestyles="solid", zorder=4)
    texts = axes.clabel(lines, fmt=dict(zip(rising, masses, strict=True)), fontsize=8, zorder=6)
    for text in texts:
        text.set_path_effects(_halo())
    axes.set(xlabel=view.names[0], ylabel=view.names[1], xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    axes.set_title("Rows between the isopleths", loc="left")


def _draw_curve(axes: Axes, view: _View, density: Any, levels: np.ndarray) -> None:
    margin = 0.06 * (view.high[0] - view.low[0])
    x = np.linspace(view.low[0] - margin, view.high[0] + margin, 4 * _GRID)
    log_density = density.score_samples(x[:, None])
    for mass, level, fill in zip(_MASSES, levels, _FILLS, strict=True):
        inside = log_density >= level
        axes.fill_between(x, np.exp(log_density), where=inside, color=fill, linewidth=0, label=f"{mass:.0%}")
    axes.plot(x, np.exp(log_density), color=_BLUE, linewidth=1.2)
    axes.legend(title="region holding", frameon=False, fontsize=8, title_fontsize=8)
    axes.set(xlabel=view.names[0], ylabel="density", xlim=(x[0], x[-1]))
    axes.set_title("Rows under the density", loc="left")


def _draw_rows(axes: Axes, view: _View, ringed: np.ndarray, color: str) -> None:
    others = np.delete(np.arange(len(view.points)), ringed)
    shown = _some(others, _MOST_DOTS)
    axes.scatter(
        *_placed(view, shown),
        7,
        color=_GREY,
        alpha=0.6 if len(shown) < 1000 else 0.25,
        linewidths=0,
        zorder=3,
        rasterized=len(shown) > 1000,
        clip_on=False,
    )
    x, y = _placed(view, ringed[:_MOST_DOTS])
    axes.scatter(x, y, 9, color=color, linewidths=0, zorder=4, clip_on=False)
    axes.scatter(x, y, 70, facecolors="none", edgecolors=color, linewidths=1.2, zorder=5, clip_on=False)
    for k in range(min(len(x), _MOST_NUMBERED)):
        axes.annotate(
            str(k + 1),
            (x[k], y[k]),
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=8,
            color=color,
            zorder=6,
            path_effects=_halo(),
        )
    left_out, rows = len(others) - len(shown), len(view.points)
    notes = [f"{rows - left_out:,} of {rows:,} rows shown"] * bool(left_out)
    notes += [f"ringed: the {len(ringed)} least likely rows, not flagged"] * (color == _BLACK)
    _write_note(axes, notes, view.outside)


def _placed(view: _View, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the rows are drawn; those of a single column stand on the axis."""
    points = view.clipped(rows)
    return points[:, 0], points[:, 1] if points.shape[1] == 2 else np.zeros(len(points))


def _write_note(axes: Axes, notes: list[str], outside: int) -> None:
    edge = [f"{outside:,} beyond the frame, drawn at its edge"] * bool(outside)
    style: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 8, "zorder": 6, "path_effects": _halo()}
    axes.text(0.99, 0.01, "\n".join(notes + edge), transform=axes.transAxes, **style)


def _halo() -> list[Any]:
    """White round letters, which keeps them legible among dots."""
    return [require("matplotlib.patheffects", "plot", "Plotting").withStroke(linewidth=2.5, foreground="white")]


def _draw_scores(axes: Axes, scores: np.ndarray, p_values: np.ndarray, flagged: np.ndarray) -> None:
    """Scores in rising order, with the p-value at which flagging ends."""
    n = len(scores)
    rank = np.arange(1, n + 1)
    quarter, three_quarters = np.percentile(scores, [25, 75])
    lowest = quarter - _WILD * (three_quarters - quarter)
    outside, scores = int((scores < lowest).sum()), np.maximum(scores, lowest)
    # On a logarithmic axis, of many ranks only these can be told apart.
    visible = np.unique(np.geomspace(1, n, _MOST_FITTED).astype(int)) - 1
    plain, ringed = visible[~flagged[visible]], visible[flagged[visible]]
    axes.plot(rank[plain], scores[plain], ".", color=_GREY, markersize=4, label=f"not flagged ({n - flagged.sum():,})")
    title = "Scores, sorted: no row is flagged"
    if flagged.any():
        axes.scatter(
            rank[ringed],
            scores[ringed],
            36,
            facecolors="none",
            edgecolors=_VERMILLION,
            label=f"flagged ({flagged.sum():,})",
        )
        axes.axvline(rank[flagged].max() + 0.5, color=_VERMILLION, linewidth=0.9, linestyle="--")
        title = f"Scores, sorted: flagged up to p = {p_values[flagged].max():.3g}"
    axes.set(xscale="log", xlabel="rank, the least likely row first", ylabel="score (higher is more normal)")
    axes.set_title(title, loc="left")
    axes.legend(frameon=False, fontsize=8, loc="center right")
    _write_note(axes, [], outside)
