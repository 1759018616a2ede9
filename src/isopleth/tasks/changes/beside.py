"""Numbers before and after a change: levels, or the deviations, slopes, periods or correlations that changed."""

from __future__ import annotations

import numpy as np

from isopleth.tasks.changes.autocorrelation import cycle_of

# A part is a line if it rises or falls by this many deviations of what is left of it: less is in the error of a mean.
_RISES = 3.0
# Fewest known values from which a deviation, a slope or a correlation is computed, and a period.
_FEW, _LEAST_FOR_PERIODS = 3, 8


def numbers_beside(kind: str, part: np.ndarray, columns: tuple[int, ...], *, first: bool) -> np.ndarray:
    """Return the number of each column of a part that its kind of change is about; NaN where it is unknown.

    The standard deviation for a change of scatter, the rise a step for one of slope, the period for one of frequency, the
    correlation for one of the relation of two columns, the mean for all others, but for changes of level of a part that is a
    line: these are steps from one line to another, and it has its value at the `first` step of the part or at the last.
    """
    if kind == "relation":
        out = np.full(part.shape[1], np.nan)
        if len(columns) == 2:
            out[list(columns)] = _correlation(part[:, columns[0]], part[:, columns[1]])
        return out
    if kind in ("level", "incident"):
        return np.array([line_at_ends(column)[0 if first else 1] for column in part.T])
    statistic = {"scatter": _deviation, "slope": _slope, "frequency": _period}.get(kind, _mean)
    return np.array([statistic(column) for column in part.T])


def line_at_ends(column: np.ndarray) -> tuple[float, float]:
    """Return the values at the first and last step of a part that rises or falls, else its mean."""
    mean, (slope, rest) = _mean(column), _line(column)
    steps = np.flatnonzero(~np.isnan(column))
    rise = slope * (len(column) - 1.0)
    if len(rest) <= _FEW or abs(rise) <= _RISES * float(np.sqrt(rest @ rest / (len(rest) - 2))):
        return mean, mean
    first = mean - slope * float(steps.mean())
    return first, first + rise


def means(part: np.ndarray) -> np.ndarray:
    """Return the means of the known values of columns, NaN where there are none."""
    return np.array([_mean(column) for column in part.T])


def height_of_incident(values: np.ndarray, start: int, end: int, columns: tuple[int, ...]) -> float:
    """Return how far the column that moves most is from the known stretches of the same length on either side."""
    length = end - start
    around = np.concatenate([values[max(start - length, 0) : start], values[end : end + length]])
    heights = (means(values[start:end]) - means(around))[list(columns)]
    return float(heights[np.nanargmax(np.abs(heights))]) if np.isfinite(heights).any() else float("nan")


def _mean(column: np.ndarray) -> float:
    known = column[~np.isnan(column)]
    return float(known.mean()) if len(known) else float("nan")


def _line(column: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the slope of the least-squares line of the known values, and what it leaves."""
    steps = np.flatnonzero(~np.isnan(column))
    if len(steps) < _FEW:
        return float("nan"), np.empty(0)
    time, rest = steps - steps.mean(), column[steps] - column[steps].mean()
    slope = float(time @ rest / (time @ time))
    return slope, rest - slope * time


def _slope(column: np.ndarray) -> float:
    return _line(column)[0]


def _deviation(column: np.ndarray) -> float:
    """Return the standard deviation about a line: a trend is no scatter."""
    rest = _line(column)[1]
    return float(np.sqrt(rest @ rest / (len(rest) - 2))) if len(rest) > 2 else float("nan")


def _period(column: np.ndarray) -> float:
    """Return the period in steps; NaN if there is none."""
    known = np.flatnonzero(~np.isnan(column))
    if len(known) < _LEAST_FOR_PERIODS:
        return float("nan")
    found = cycle_of(np.interp(np.arange(len(column)), known, column[known])[:, None])
    return float("nan") if found is None else float(found)


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    known = ~np.isnan(first) & ~np.isnan(second)
    if known.sum() < _FEW or min(np.ptp(first[known]), np.ptp(second[known])) <= 0.0:
        return float("nan")
    return float(np.corrcoef(first[known], second[known])[0, 1])
