"""Dependence of rows on each other along a column of times, which permutations of single rows do not allow for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from isopleth.core.laws import normal_scores
from isopleth.tables.checks import CheckedRows

# Blocks of consecutive rows of a sample, and the fewest rows of one.
_BLOCKS, _FEWEST = 20, 5
# Seconds of a week and of a day, and how many of them a sample has at least for blocks of whole ones.
_SEASONS, _CYCLES = (604800.0, 86400.0), 10
# Share of the time of a sample that the middle one of the groups lasts, from which groups are no stretches of time.
_LASTING = 0.5
# Chance to warn of independent rows.
_LEVEL = 1e-3


class SerialDependence(NamedTuple):
    """Column that depends most on its own past, and how many independent rows say as much as all rows of both samples."""

    time: str
    column: str
    rows: int
    effective: int


def dependence_in_time(
    x: CheckedRows, y: CheckedRows, groups: tuple[np.ndarray, np.ndarray] | None = None
) -> SerialDependence | None:
    """Return how far rows depend on others in the order of their times; None where none shows or groups allow for it.

    The variance of the means of consecutive blocks, over that of independent rows, says by what factor there are fewer rows.
    Days and weeks are no dependence where a sample has ten of them; a trend within a sample is one. Groups that are stretches of
    time allow for it. Those that last as long as a sample do not: all meters have the weather of a day.
    """
    if x.columns is None:
        return None
    numbers = x.columns.measured
    times = [
        j for j, column in enumerate(numbers) if column.kind == "time" and not column.clock
    ]  # hours of a day come back
    values = [j for j, column in enumerate(numbers) if column.kind != "time"]
    samples = [sample for sample in (x.rows, y.rows) if len(sample) >= _BLOCKS * _FEWEST]
    if not times or not values or not samples:
        return None
    place = times[0]
    both = (x.rows[:, place], y.rows[:, place])
    if groups is not None and not all(_last(when, group) for when, group in zip(both, groups, strict=True)):
        return None
    factors, freedom = map(
        np.array, zip(*[_inflations(rows[:, place], rows[:, values]) for rows in samples], strict=True)
    )
    weights = freedom / np.maximum(freedom.sum(axis=0), 1.0)
    # Over its bar of independent rows, since columns with gaps have fewer blocks.
    total = freedom.sum(axis=0)
    bar = chi2.isf(_LEVEL / len(values), np.maximum(total, 1.0)) / np.maximum(total, 1.0)
    found = (weights * factors).sum(axis=0)
    most = int(np.argmax(found / bar))
    if found[most] <= bar[most]:
        return None
    rows = len(x.rows) + len(y.rows)
    return SerialDependence(
        str(numbers[place].name), str(numbers[values[most]].name), rows, max(2, round(rows / found[most]))
    )


def _last(times: np.ndarray, group: np.ndarray) -> bool:
    """Tell whether groups last about as long as the sample does, and are no stretches of its time."""
    known = ~np.isnan(times)
    order = np.argsort(group[known], kind="stable")
    when, which = times[known][order], group[known][order]
    starts = np.flatnonzero(np.diff(which, prepend=-1))
    if len(starts) < 2:
        return False
    lengths = np.maximum.reduceat(when, starts) - np.minimum.reduceat(when, starts)
    return bool(np.median(lengths) >= _LASTING * np.ptp(when))


def _inflations(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each column, the variance of the means of blocks over that of as many independent rows, and its freedom."""
    out, freedom = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for j, column in enumerate(values.T):
        known = ~(np.isnan(times) | np.isnan(column))
        if known.sum() < _BLOCKS * _FEWEST:
            continue
        scores = normal_scores(column[known][None])[0]
        spread = float(scores.var())
        block = _blocks(times[known])
        sizes = np.bincount(block)
        if spread > 0.0 and len(sizes) > 1:
            means = np.bincount(block, scores) / sizes
            freedom[j] = len(sizes) - 1
            out[j] = float(sizes @ (means - scores.mean()) ** 2) / freedom[j] / spread
    return out, freedom


def _blocks(times: np.ndarray) -> np.ndarray:
    """Return the number of the block of each time: of whole weeks or days where there are enough, so that seasons add nothing."""
    since = times - times.min()
    span = float(since.max())
    width = span / _BLOCKS
    unit = next((unit for unit in _SEASONS if span >= _CYCLES * unit), None)
    if unit is not None:
        width = unit * np.ceil(width / unit)
    return np.asarray(np.unique(since // width, return_inverse=True)[1].ravel() if width else np.zeros(len(times), int))
