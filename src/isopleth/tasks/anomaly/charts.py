"""What is drawn of anomalies: the rows in two columns among the isopleths of the others, all scores, and the reasons of a row."""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from isopleth.errors import InputError
from isopleth.results.charts import Chart, Contours, Series
from isopleth.results.text import cell_text, counted
from isopleth.results.views import deviations_of, dots, extreme_columns, robust_range, some

if TYPE_CHECKING:
    from isopleth.tasks.anomaly.explanation import Explanation
    from isopleth.tasks.anomaly.result import Anomalies

_MOST_DOTS, _MOST_FLAGGED = 2000, 800
# Values in the text of a dot, and dots that carry their rank.
_VALUES, _MOST_NUMBERED = 5, 20
# So many rows are marked where none is flagged.
_LEAST_LIKELY = 10
# Rows that the density of the isopleths is fitted to, places along each side of its grid, and the masses of the regions.
_MOST_FITTED, _GRID, _MASSES = 500, 60, (0.5, 0.8, 0.95, 0.99)
_MARGIN = 0.06
# Interquartile ranges below the first quartile at which the frame of the scores ends: one wild score must not flatten the others.
_WILD = 20.0
_MOST_BARS = 12


def charts(found: Anomalies) -> list[Chart]:
    """Return the rows in the columns in which the flagged ones deviate most, if there are numbers, and all scores."""
    rows = rows_chart(found)
    return [scores_chart(found)] if rows is None else [rows, scores_chart(found)]


def rows_chart(found: Anomalies) -> Chart | None:
    """Return the rows in the two columns in which the flagged ones deviate most; None without a complete column that varies."""
    names, numbers = found.numbers
    complete = ~np.isnan(numbers).any(axis=0)
    names, numbers = [name for name, kept in zip(names, complete, strict=True) if kept], numbers[:, complete]
    flagged = found.order[found.flagged[found.order]]
    marked = flagged if len(flagged) else found.order[:_LEAST_LIKELY]
    chosen = np.sort(extreme_columns(numbers, marked)[:2]) if numbers.shape[1] else np.empty(0, dtype=int)
    if not len(chosen):
        return None
    points, axes = numbers[:, chosen], [names[j] for j in chosen]
    low, high = robust_range(points)
    others = np.setdiff1d(np.arange(len(found)), marked)
    contours, curve = _density(points[others] if len(flagged) else points, points, low, high)
    series = curve + _dots(found, points, low, high, others, marked)
    outside = int(((points < low) | (points > high)).any(axis=1).sum())
    about = f"The columns in which {'flagged' if len(flagged) else 'the least likely'} rows deviate most"
    about += ", and the regions that hold 50, 80, 95 and 99 % of a density of the others." * (contours is not None)
    about += "." * (contours is None)
    about += f" Triangles: {counted(outside, 'row')} beyond the frame." * bool(outside)
    where = " and ".join(axes)
    title = f"{counted(len(flagged), 'flagged row')} in {where}" if len(flagged) else f"No row is flagged in {where}"
    times = "".join(axis for axis, name in zip("xy", axes, strict=False) if name in found.times)
    y_label = axes[1] if len(axes) == 2 else "density"
    return Chart(title, axes[0], y_label, series, about, times=times, contours=contours)


def _density(
    rows: np.ndarray, points: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[Contours | None, list[Series]]:
    """Return the isopleths of a density of two columns of `rows`, or its curve for one column."""
    from isopleth.density.sosrep import SOSREP  # here, since detectors need no density until they draw

    # If so many rows are flagged that the others have no density, the density of all rows is drawn.
    fitted = rows if len(rows) > 1 and np.ptp(rows, axis=0).all() else points
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about two columns of a table that was warned of at fit
        try:
            density = SOSREP(frame="scale").fit(some(fitted, _MOST_FITTED))
            levels = density.level_set(_MASSES)
        except InputError:  # a column whose frame is one value has no density
            return None, []
        margin = _MARGIN * (high - low)
        sides = np.linspace(low - margin, high + margin, _GRID if len(low) == 2 else 4 * _GRID, axis=-1)
        if len(low) == 1:
            return None, [Series("density", sides[0], np.exp(density.score_samples(sides[0][:, None])), "line", "blue")]
        grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        height = density.score_samples(grid).reshape(_GRID, _GRID)
    labels = {float(level): f"{mass:.0%}" for level, mass in zip(levels, _MASSES, strict=True) if np.isfinite(level)}
    kept = sorted(level for level in labels if level < height.max())
    if not kept:
        return None, []
    floor = np.maximum(height, kept[0] - 50.0)  # no line can be interpolated between a number and minus infinity
    return Contours(sides[0], sides[1], floor, kept, [labels[level] for level in kept]), []


def _dots(
    found: Anomalies, points: np.ndarray, low: np.ndarray, high: np.ndarray, others: np.ndarray, marked: np.ndarray
) -> list[Series]:
    flagged = bool(found.flagged.any())
    plain, strong = some(others, _MOST_DOTS), marked[:_MOST_FLAGGED]
    grey = f"not flagged ({len(plain):,} of {len(others):,} shown)"
    name = f"flagged ({len(marked):,})" if flagged else f"the {len(marked)} least likely, not flagged"
    ranks = [str(rank + 1) for rank in range(min(len(strong), _MOST_NUMBERED))]
    more: dict[str, Any] = {"notes": _row_notes(found, strong), "strong": True, "labels": ranks}
    series = [
        dots(grey, points[plain], low, high, notes=_row_notes(found, plain)),
        dots(name, points[strong], low, high, "vermillion" if flagged else "text", **more),
    ]
    if found.known is not None:
        rows = np.flatnonzero(found.known)
        drawn = dots("", points[rows], low, high)
        series.append(Series(f"known anomaly ({len(rows):,})", drawn.x, drawn.y, "crosses", "text"))
    return series


def scores_chart(found: Anomalies) -> Chart:
    """Return the scores of all rows in order, those of flagged rows in another colour."""
    n, order = len(found), found.order
    ranks = np.unique(np.geomspace(1, n, 600).round().astype(int)) - 1
    scores, flagged = found.scores[order], found.flagged[order]
    quarter, three = np.percentile(scores, [25, 75])
    lowest = quarter - _WILD * (three - quarter)
    series = []
    for name, colour, mask in (("not flagged", "grey", ~flagged), ("flagged", "vermillion", flagged)):
        chosen = ranks[mask[ranks]]
        if len(chosen):
            drawn, beyond = np.maximum(scores[chosen], lowest), np.where(scores[chosen] < lowest, 180, -1)
            more: dict[str, Any] = {"notes": _row_notes(found, order[chosen]), "strong": colour != "grey"}
            series.append(
                Series(f"{name} ({int(mask.sum()):,})", chosen + 1, drawn, "dots", colour, beyond=beyond, **more)
            )
    title = "No row is flagged"
    if flagged.any():
        title = f"Rows are flagged up to p = {found.p_values[order][flagged].max():.3g}"
    if found.known is not None:
        rank = np.argsort(order, kind="stable")[found.known]
        caught = int(found.flagged[found.known].sum())
        title = f"{caught} of {len(rank)} known anomalies are flagged"
        series.append(Series("known anomaly", rank + 1, np.maximum(scores[rank], lowest), "crosses", "text"))
    x_label = "rank, the least likely row first"
    return Chart(title, x_label, "score", series, "Scores of all rows in order; higher is more normal.", log_x=True)


def _row_notes(found: Anomalies, rows: np.ndarray) -> list[str]:
    where = [", ".join(f"{name} {column[i]}" for name, column in found.where.items()) for i in rows]
    marks = ["certain" if found.certain[i] else "flagged" if found.flagged[i] else "not flagged" for i in rows]
    return [
        f"{place} ({mark}): score {found.scores[i]:.4g}, p {found.pvalue_text(i)}\n{values}"
        for place, mark, i, values in zip(where, marks, rows, values_text(found, rows), strict=True)
    ]


def values_text(found: Anomalies, rows: np.ndarray, most: int = _VALUES) -> list[str]:
    """Return the most extreme values of rows as text."""
    return [
        "  ".join(f"{found.names[j]}={cell_text(found.values[i, j])}" for j in np.argsort(-z, kind="stable")[:most])
        for i, z in zip(rows, _deviations(found.values, rows), strict=True)
    ]


def _deviations(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return how extreme the cells of some rows are: in robust deviations; for words, the deviation of a normal law as rare."""
    out = np.zeros((len(rows), values.shape[1]))
    for j, column in enumerate(values.T):
        numbers = column if column.dtype != object else _numbers(column)
        if numbers is None:
            words, place, counts = np.unique([str(cell) for cell in column], return_inverse=True, return_counts=True)
            share = counts[place.ravel()][rows] / len(column)
            out[:, j] = ndtri(1.0 - 0.5 * share) if len(words) > 1 else 0.0
        else:
            known = numbers[np.isfinite(numbers)]
            if len(known):
                out[:, j] = np.nan_to_num(np.abs(deviations_of(numbers[rows, None], known[:, None])[:, 0]))
    return out


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """Return a column of objects as numbers; None if it holds words."""
    kinds = {type(cell) for cell in column if cell is not None}
    if not kinds or any(issubclass(kind, str) for kind in kinds):
        return None
    if any(issubclass(kind, datetime) for kind in kinds):
        return np.array([np.nan if cell is None else cell.timestamp() for cell in column])
    return np.array([np.nan if cell is None else cell for cell in column], dtype=np.float64)


def reasons_chart(explanation: Explanation, row: int) -> Chart:
    """Return the rise of the score of one row by each column that explains it."""
    rise = np.asarray(explanation.rise)[row]
    chosen = np.argsort(-rise, kind="stable")[:_MOST_BARS]
    chosen = chosen[rise[chosen] > 0.0]
    pairs = [(explanation.values[row][j], explanation.best[row][j]) for j in chosen]
    moves = [" → ".join(cell_text(cell) or "missing" for cell in pair) for pair in pairs]
    series = [Series("", [], rise[chosen], "bars", "blue", moves, labels=moves)]
    names = [explanation.names[j] for j in chosen]
    about = "Value → best value." if len(chosen) else "No column alone makes the row less unlikely."
    title = f"Row {row}, score {explanation.scores[row]:.4g}"
    return Chart(title, "rise of the score", "", series, about, names=names)
