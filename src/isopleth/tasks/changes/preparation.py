"""Columns prepared for segmentation: gaps are filled, and growth and single outliers are removed."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import median_filter

from isopleth.tasks.changes.segments import filtered

# Longest cycle that a column without noise may repeat, in steps, and the fewest times.
_LONGEST_CYCLE, _CYCLES = 400, 4
_WILD_VALUES = 3.5  # robust standard deviations at which values are clipped
TO_SIGMA = 1.4826  # standard deviation over the median absolute deviation, for normal values
_GROWN = 1.5  # least ratio of the extremes of a column that may grow in proportion
_ROUNDING = 1e-9
# Ranges of the other values at which extreme values are clipped: larger ones would leave no digits for the others.
_ABSURD = 1e9


def repeats_exactly(column: np.ndarray) -> bool:
    """Tell whether a column is constant or repeats one cycle up to rounding, so that it has no noise."""
    low, high = column.min(), column.max()
    if low == high:
        return True
    z = column / max(abs(low), abs(high))
    most = _ROUNDING * float(np.ptp(z))
    start = z[:_CYCLES]
    return any(
        np.abs(z[period : period + _CYCLES] - start).max() <= most and np.abs(z[period:] - z[:-period]).max() <= most
        for period in range(2, min(len(z) // _CYCLES, _LONGEST_CYCLE) + 1)
    )


def rests(column: np.ndarray) -> bool:
    """Tell whether most values of a column equal the one before, as of a share that is mostly 0 or 1."""
    return 2 * int(np.count_nonzero(np.diff(column) == 0.0)) > len(column) - 1


def without_absurd_values(values: np.ndarray) -> np.ndarray:
    """Clip values that are a billion times larger than the range of the others, and rescale such columns."""
    out = []
    for column in values.T:
        clipped = without_wild_values(column)
        size = float(np.ptp(clipped))
        if 0.0 < size < float(np.ptp(column)) / _ABSURD:
            column = np.clip(column, clipped.min() - _ABSURD * size, clipped.max() + _ABSURD * size)
            column = column / np.abs(column).max()
        out.append(column)
    return np.column_stack(out)


def log_of_growth(column: np.ndarray, of: np.ndarray | None = None) -> np.ndarray | None:
    """Return the logarithm of a column, or of other values `of` it, if its steps are then more equal in size."""
    low = float(column.min())
    least = raised_by(column)
    raised = column + least
    if low < 0.0 or not np.isfinite(least) or raised.max() < _GROWN * raised.min():
        return None
    logs = np.log(raised)
    n = len(column) - 1

    def minus_twice_likelihood(values: np.ndarray) -> float:
        steps = np.diff(values)
        with np.errstate(divide="ignore"):
            return float(2.0 * n * np.log(np.mean(np.abs(steps - np.median(steps)))))

    if minus_twice_likelihood(logs) + 2.0 * logs[1:].sum() + np.log(n) >= minus_twice_likelihood(column):
        return None
    return logs if of is None else np.log(np.maximum(of, low) + least)


def raised_by(column: np.ndarray) -> float:
    """Return what is added before the logarithm: the smallest positive value if the column begins at 0."""
    return float(column.min(initial=np.inf, where=column > 0.0)) if column.min() == 0.0 else 0.0


def without_wild_values(column: np.ndarray) -> np.ndarray:
    """Clip single outliers, or two in a row, to a distance from the median of the five values around each."""
    padded = np.pad(column, 2, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    off = column - middle
    moving = np.abs(off[off != 0.0])
    if 2 * len(moving) <= len(column):  # most values equal their median: there is no scatter to compare outliers with
        return column
    most = _WILD_VALUES * TO_SIGMA * np.median(moving)
    return np.asarray(middle + np.clip(off, -most, most))


# Share of the values that are whole numbers of steps apart if a column is recorded in steps, and how far from these they may be.
_IN_STEPS, _OFF = 0.9, 1e-6


def step_of_repeats(column: np.ndarray) -> float:
    """Return the step in which most values are recorded, from those that occur more than once; 0 if there is none."""
    ordered = np.sort(column)
    most = _ROUNDING * (ordered[-1] - ordered[0])
    again = ordered[1:][np.diff(ordered) <= most]
    apart = np.diff(again)
    if not (apart > most).any():
        return 0.0
    step = float(apart[apart > most].min())
    off = (column - again[0]) / step
    return step if np.mean(np.abs(off - np.round(off)) <= _OFF) >= _IN_STEPS else 0.0


# Robust standard deviations of the values near by at which a single value is a spike, and how many values are near by.
_SPIKE, _NEIGHBOURS = 10.0, 51


def spikes(column: np.ndarray) -> np.ndarray:
    """Return a mask of values, one or two in a row, that are far from the median of the five values around each."""
    padded = np.pad(column, 2, mode="edge")
    off = np.abs(column - np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1))
    near = median_filter(off, _NEIGHBOURS, mode="reflect")
    return np.asarray((near > 0.0) & (off > _SPIKE * TO_SIGMA * near))


# Most and fewest values on each side of a gap from which its level is computed: a side with fewer has the level of the other.
_NEAR, _FEW = 20, 5
# Largest absolute autocorrelation of the values that fill a gap.
_MOST = 0.9999


def filled_gaps(column: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fill gaps with draws that look neither calmer nor wilder than the rest.

    An autoregression around a line between medians is drawn given both ends: a gap in a random walk becomes a random walk.
    """
    missing = np.isnan(column)
    if not missing.any() or missing.all():
        return column
    out = column.copy()
    known = np.flatnonzero(~missing)
    phi, spread = _autoregression(column)
    for start, end in _runs(missing):
        place = int(np.searchsorted(known, start))
        before, after = column[known[max(0, place - _NEAR) : place]], column[known[place : place + _NEAR]]
        enough = min(_FEW, max(len(before), len(after)))
        levels = [float(np.median(some)) for some in (before, after) if len(some) >= enough]
        line = np.linspace(levels[0], levels[-1], end - start + 2)
        left = float(before[-1]) - line[0] if len(before) else None
        right = float(after[0]) - line[-1] if len(after) else None
        out[start:end] = line[1:-1] + _bridge(end - start, left, right, phi, spread, rng)
    return out


def _runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Return first and last step, the latter exclusive, of each run of true values."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _autoregression(column: np.ndarray) -> tuple[float, float]:
    r"""Return the lag-1 autocorrelation and the standard deviation of the innovations.

    Changes of level make a series look as if it wandered about its median. The mean squares :math:`V_1, V_2` of clipped
    differences hardly see them, and those of an autoregression have :math:`V_2 = (1 + \phi) V_1`; the smaller one is taken.
    """
    pairs = ~np.isnan(column[1:]) & ~np.isnan(column[:-1])
    center = np.nanmedian(column)
    first, second = column[:-1][pairs] - center, column[1:][pairs] - center
    power = float(first @ first + second @ second)
    about_median = 2.0 * float(first @ second) / power if power > 0.0 else 0.0
    squares = [_clipped_square(column[lag:] - column[:-lag]) for lag in (1, 2)]
    of_differences = squares[1] / squares[0] - 1.0 if squares[0] > 0.0 else 0.0
    phi = float(np.clip(min(about_median, of_differences), -_MOST, _MOST))
    return phi, float(np.sqrt(0.5 * squares[0] * (1.0 + phi)))


def _clipped_square(differences: np.ndarray) -> float:
    """Return the mean square of the known differences, each clipped at 3.5 robust standard deviations."""
    sizes = np.abs(differences[~np.isnan(differences)])
    if not len(sizes):
        return 0.0
    most = _WILD_VALUES * TO_SIGMA * float(np.median(sizes)) or np.inf
    return float(np.mean(np.minimum(sizes, most) ** 2))


def _bridge(
    length: int, left: float | None, right: float | None, phi: float, spread: float, rng: np.random.Generator
) -> np.ndarray:
    """Draw an autoregression between two values, None if free: a path, corrected by its expected error at the right end."""
    stationary = spread / np.sqrt(1.0 - phi**2)
    start = rng.normal() * stationary if left is None else left
    noise = np.concatenate([[start], spread * rng.normal(size=length + 1)])
    path = filtered([1.0], [1.0, -phi], noise)
    if right is None:
        return path[1:-1]
    steps = np.arange(1, length + 1)
    # Weight of the right end in the expectation of step i given both ends, by the covariances phi^|i - j|.
    if left is None:
        weight = phi ** (length + 1.0 - steps)
    elif abs(phi) < 1e-12:
        weight = np.zeros(length)
    else:
        squares = phi**2
        weight = phi ** (length + 1.0 - steps) * (1.0 - squares**steps) / (1.0 - squares ** (length + 1))
    return path[1:-1] + weight * (right - path[-1])
