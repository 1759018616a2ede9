"""Incidents of a series: a level that is left for a short while and comes back, which is one thing and not two changes."""

from __future__ import annotations

import numpy as np

# Largest length of an incident, as a share of the series and of the shorter part beside it, and largest difference of the levels
# around it as a share of its height.
_OF_SERIES, _OF_NEIGHBOUR, _COMES_BACK = 0.1, 0.5, 0.25


def with_incidents(
    values: np.ndarray, places: np.ndarray, kinds: np.ndarray, columns: list[tuple[int, ...]]
) -> np.ndarray:
    """Return the kinds of the changes, "incident" for both ends of an incident in `values`, from which seasons are subtracted."""
    bounds = np.concatenate([[0], places, [len(values)]]).astype(int)
    kinds = kinds.copy()
    for i in range(len(places) - 1):
        if kinds[i] == kinds[i + 1] == "level" and set(columns[i]) & set(columns[i + 1]):
            before, own, after = np.diff(bounds[i : i + 4])
            short = own <= min(_OF_SERIES * len(values), _OF_NEIGHBOUR * min(before, after))
            if short and _comes_back(values[bounds[i] : bounds[i + 3]], before, own, columns[i]):
                kinds[i : i + 2] = "incident"
    return kinds


def _comes_back(values: np.ndarray, before: int, own: int, columns: tuple[int, ...]) -> bool:
    """Tell whether the level after an incident is that before it, in all columns of the incident."""
    rows = values[:, list(columns)]
    first, during, last = (
        np.median(part, axis=0) for part in (rows[:before], rows[before : before + own], rows[before + own :])
    )
    heights = np.abs(during - 0.5 * (first + last))
    return bool((np.abs(last - first) <= _COMES_BACK * heights).all() and (heights > 0.0).all())
