"""Place the labels of isopleths."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

# Of the longest line of a level, others as long as this are labelled too; islands around single rows are not.
_LABELLED = 0.5
# Of the sides of the frame: a shorter line has no room for a label.
_SHORTEST = 0.15


def label_places(lines: Any, low: np.ndarray, high: np.ndarray) -> list[tuple[float, float]]:
    """Return label points on long lines of a contour set, far from other levels, other labels and the edge.

    matplotlib itself would label every line, at its flattest place, over others and half outside the frame.
    """
    levels = [
        [(part - low) / (high - low) for part in path.to_polygons(closed_only=False)] for path in lines.get_paths()
    ]
    placed = np.empty((0, 2))
    for k, parts in enumerate(levels):
        taken = [part for other in levels[:k] + levels[k + 1 :] for part in other]
        for part in _long_ones(parts):
            edge = np.minimum(part, 1.0 - part).min(axis=1)
            room = np.minimum(edge, _distance(part, np.concatenate([placed, *taken])))
            placed = np.vstack([placed, part[np.argmax(room)]])
    return [tuple(place) for place in low + placed * (high - low)]


def _long_ones(parts: list[np.ndarray]) -> list[np.ndarray]:
    lengths = [np.linalg.norm(np.diff(part, axis=0), axis=1).sum() for part in parts]
    least = max(_SHORTEST, _LABELLED * max(lengths, default=0.0))
    return [part for part, length in zip(parts, lengths, strict=True) if length >= least]


def _distance(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the distance of each point from the nearest of the others; infinite if there are none."""
    return cKDTree(others).query(points)[0] if len(others) else np.full(len(points), np.inf)
