"""Stretches of equal values in a column that otherwise moves: a sensor that froze, or values that were carried forward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.tasks.changes.stretches import beyond_next

# Most stretches of a column: more are its nature.
_MOST = 5
# Share of neighbouring values above which equal ones are the nature of a column, as they are of codes and coarse rounding.
_OFTEN = 0.5
# Largest share of a column that is taken as gaps: where it stands still for longer, that is a change.
_MOST_OF_COLUMN = 0.25


@dataclass(frozen=True)
class Stretch:
    """Steps at which a column has one value, from `start` to the one before `end`."""

    start: int
    end: int
    column: int


def standing_still(values: np.ndarray, columns: np.ndarray, rate: float) -> list[Stretch]:
    """Return the stretches of equal values in `columns`, NaN where one is missing, that are longer than runs elsewhere get.

    A run at the least or largest value of its column is none: counts are zero for long, and other values are cut off at a limit.
    """
    own = rate / values.shape[1]
    found = [Stretch(*ends, j) for j in columns.tolist() for ends in _stretches(values[:, j], own)]
    return sorted(found, key=lambda one: (one.start, one.column))


def as_gaps(values: np.ndarray, stretches: list[Stretch]) -> np.ndarray:
    """Return values with NaN at the stretches of each column, unless they are too much of it."""
    still = np.zeros(values.shape, dtype=bool)
    for one in stretches:
        still[one.start : one.end, one.column] = True
    return np.where(still & (still.mean(axis=0) <= _MOST_OF_COLUMN), np.nan, values)


def _stretches(column: np.ndarray, rate: float) -> list[tuple[int, int]]:
    """Return first steps and ends of the stretches of a column; steps without a value do not end one."""
    steps = np.flatnonzero(~np.isnan(column))
    if not len(steps):
        return []
    column = column[steps]
    starts = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    lengths, values = np.diff(np.append(starts, len(column))), column[starts]
    inside = np.flatnonzero((values > column.min()) & (values < column.max()))
    order = inside[np.argsort(-lengths[inside], kind="stable")]
    count = _beyond_others(lengths[order], rate)
    if not count or len(order) - count <= (1.0 - _OFTEN) * lengths[order[count:]].sum():
        return []
    longest = order[:count]
    # Two long stretches at one value are a setting to which the column returns, and two of one length a part of its pattern.
    kept = [k for k in longest.tolist() if all(np.sum(one[longest] == one[k]) == 1 for one in (values, lengths))]
    return [(int(steps[starts[k]]), int(steps[starts[k] + lengths[k] - 1]) + 1) for k in kept]


def _beyond_others(lengths: np.ndarray, rate: float) -> int:
    """Return how many of the lengths, in descending order, are beyond those that others get by chance; 0 if too many are."""
    most = _MOST + 1
    apart = [most * beyond_next(length, lengths[i + 1 :], i, least=1.0) for i, length in enumerate(lengths[:most])]
    count = max((i + 1 for i, pvalue in enumerate(apart) if pvalue <= rate), default=0)
    return count if count <= _MOST else 0
