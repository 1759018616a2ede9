"""What is drawn of changes: the series, the changes with their intervals, and the means between them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.results.charts import Chart, Series, thinned
from isopleth.tables.clock_times import time_words

if TYPE_CHECKING:
    from isopleth.tasks.change_points.detector import ChangePoints

_MOST_CURVES = 6
# Descriptions of the kinds of changes.
MEANINGS = {
    "level": "level",
    "slope": "slope",
    "scatter": "scatter",
    "shape": "shape or dependence",
    "frequency": "frequency",
    "relation": "relation of columns",
}


def charts(found: ChangePoints) -> list[Chart]:
    """Return each column of the series with its changes, their intervals and the means between them."""
    dim = found.series.shape[1]
    names = found.names or (["value"] if dim == 1 else [f"column {j}" for j in range(dim)])
    noun, where = next(iter(found.where.items()), ("step", np.arange(len(found.series))))
    axis, moments, dates = found.axis()
    when = np.full(len(moments), "")
    if found.times is not None:
        when = np.array([f" ({time_words(t)})" for t in found.times])
    borders = [_border(moments, place) for place in found.change_points]
    lines = [
        (border, f"{noun} {where[place]}{when[place]}, {kind}")
        for place, kind, border in zip(found.change_points, found.kinds, borders, strict=True)
    ]
    # A change between two rows that a gap separates may be anywhere in the gap.
    half = 0.5 * float(np.median(np.diff(moments)))
    intervals = np.empty((0, 2), dtype=int) if found.intervals is None else found.intervals
    bands = [(float(moments[max(a - 1, 0)]) + half, float(moments[b]) - half) for a, b in intervals]
    title = f"{len(found)} change{'' if len(found) == 1 else 's'}" if len(found) else "no change"
    out = []
    for j in range(min(dim, _MOST_CURVES)):
        steps, values = thinned(found.series[:, j])
        notes = [f"{noun} {where[s]}{when[s]}: {v:.6g}" for s, v in zip(steps, values, strict=True)]
        curve = Series(names[j], moments[steps], values, "line", "blue", notes)
        series = [curve, *_means(found, j, moments, borders)]
        about = "Vertical bands: 90 % intervals of the changes." * bool(bands)
        about += f" {_MOST_CURVES} of {dim} columns are shown." * (j == 0 and dim > _MOST_CURVES)
        how: dict[str, Any] = {"lines": lines, "bands": bands, "times": "x" * dates, "wide": True}
        out.append(Chart(f"{names[j]}: {title}", axis, names[j], series, about.strip(), **how))
    return out


def _border(moments: np.ndarray, place: int) -> float:
    """Return the middle between a step and the one before it."""
    return float(0.5 * (moments[place] + moments[max(place - 1, 0)]))


def _means(found: ChangePoints, column: int, moments: np.ndarray, borders: list[float]) -> list[Series]:
    """Return the mean of each segment, unless slopes, frequencies or relations changed, which it does not describe."""
    if not len(found) or not set(found.kinds) <= {"level", "scatter", "shape"}:
        return []
    bounds = [0, *found.change_points.tolist(), len(found.series)]
    ends = [moments[0], *borders, moments[-1]]
    x, y = [], []
    for (a, b), (start, stop) in zip(pairwise(bounds), pairwise(ends), strict=True):
        part = found.series[a:b, column]
        mean = np.nanmean(part) if not np.isnan(part).all() else np.nan
        x += [start, stop, stop]
        y += [mean, mean, np.nan]
    return [Series("mean of the segment", x, y, "line", "text", strong=True)]
