"""Segments of a long series: sought in means of neighbouring steps, then placed among all steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isopleth.tasks.changes.segments import (
    Noise,
    Segmentation,
    SegmentationSearch,
    SegmentCosts,
    fitted_noises,
    rounding_variance,
    segment,
    shortest_segment,
    standardised,
)

# Fewest means that are compared. A search compares 200 places at first, so that means of a series lose nothing there.
_MEANS = 10_000
# Largest order of the noise between single steps. An autoregression of means spans as many steps as its order times their size.
_MOST_LAGS = 8
# Times that places and noise are fitted in turn.
_ROUNDS = 2


def segment_of_means(values: np.ndarray, **options: Any) -> Segmentation:
    """Find the cheapest segments as :func:`segment`, in a long series those of means, moved to their best steps.

    Slow wander beside noise of single steps is no autoregression of few lags: its segments would be levels and lines that
    follow the wander. In means of some steps it is one, and the search takes a fraction of the time.
    """
    size = len(values) // _MEANS
    if size < 2:
        return segment(values, **options)
    count = len(values) // size
    edges = np.arange(count + 1) * len(values) // count
    # To move changes takes most of the time, and the second and third of segmentations of the same noise are hardly ever cheaper.
    found = segment(_means(values, edges), **_of_means(options, edges, size), few=1)
    return min(_placed(values, edges[found.bounds], found, size, **options), key=lambda one: one.cost)


def shortest_at_the_end(n: int, most_lags: int, degree: int) -> int:
    """Return the fewest steps of the last segment of a series of `n` steps."""
    size = max(n // _MEANS, 1)
    return size * shortest_segment(n // size, most_lags, degree)


def _means(rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the means of rows between edges."""
    lengths = np.diff(edges).reshape(-1, *[1] * (rows.ndim - 1))
    return np.asarray(np.add.reduceat(rows, edges[:-1]) / lengths)


def _of_means(options: dict[str, Any], edges: np.ndarray, size: int) -> dict[str, Any]:
    """Return the options of a search among means: lengths are in these, and a mean is as precise as the mean variance allows."""
    out = dict(options)
    if "shortest" in out:
        out["shortest"] = -(-out["shortest"] // size)
    if out.get("moving") is not None:
        out["moving"] = max(1, out["moving"] // size)
    if out.get("precision") is not None:
        out["precision"] = _means(out["precision"] ** -2.0, edges) ** -0.5
    if out.get("floors") is not None:
        out["floors"] = out["floors"] / size
    return out


def _placed(
    values: np.ndarray,
    bounds: np.ndarray,
    found: Segmentation,
    size: int,
    most_lags: int = 2,
    shortest: int = 0,
    precision: np.ndarray | None = None,
    surcharge: float = 0.0,
    moving: int | None = None,
    floors: np.ndarray | None = None,
    **_: Any,
) -> Iterator[Segmentation]:
    """Yield segmentations of all steps by the segments of means, at their best steps within two means."""
    z, weights = standardised(values), np.ones(len(values)) if precision is None else precision
    lags = min(_MOST_LAGS, most_lags * size)
    floors = rounding_variance(z.T) if floors is None else floors / values.var(axis=0)
    noises = (Noise(),) * z.shape[1]
    for number in range(_ROUNDS + 1):
        costs = SegmentCosts(z, noises, found.degree, weights, floors=floors)
        if number:
            search = SegmentationSearch(costs, max(shortest, lags + found.degree + 3), surcharge, moving)
            bounds, cost = search.near(bounds, 2 * size)
            yield search.segmentation(bounds, cost, values, weights)
        # A walk remembers as long as it lasts; with a shorter memory, its innovations would drift as it wanders.
        noises = fitted_noises(costs.residuals(bounds) * weights, bounds, lags, 1.0 - 1.0 / len(values))
