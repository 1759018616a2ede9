"""Steps of changes, with intervals from posteriors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from isopleth.tasks.changes.embedding import lag_windows
from isopleth.tasks.changes.neighbours import stretch_around

# Lags that are compared, and most other columns that explain a column at the same step.
_LAGS, _MOST_OTHERS = (0, 1, 2, 4, 8), 5
# Steps beside a change that are used at most: farther steps change the estimates of the coefficients little.
_REACH = 1000
# Rows for each coefficient and side, so that a side is not fitted by chance.
_ROWS_A_COEFFICIENT = 3
# Least residual sum of squares of a standardised column for each row; a constant stretch has none.
_LEAST_SQUARE = 1e-12


def positions_of(
    values: np.ndarray,
    places: np.ndarray,
    columns: Sequence[Sequence[int]],
    lines: np.ndarray,
    rough: np.ndarray,
    coverage: float,
    known: np.ndarray | None = None,
    cycle: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Move changes that were found in blocks, `rough`, to their most probable steps, and return intervals for all.

    Each side is a Gaussian autoregression with its own coefficients and variance. With flat priors the posterior is

    .. math:: p(t) \propto \prod_i |X_i^\top X_i|^{-1/2}\, \Gamma(\nu_i / 2)\, (R_i / 2)^{-\nu_i / 2}, \qquad \nu_i = n_i - k,

    with rows :math:`X_i` and residual sum of squares :math:`R_i` of a side; that of the reversed series is averaged in. Rows with
    unknown values are left out, so an interval that ends in a gap holds all of it. Places are first steps after changes.
    """
    steps = np.array(places, dtype=int)
    reach = _REACH if cycle is None else int(_WITHIN * cycle)  # windows are no farther from the places that scans find
    out = np.empty((len(places), 2), dtype=int)
    for i in range(len(places)):
        place, (before, after) = int(steps[i]), stretch_around(steps, columns, i, len(values))
        start, end = max(before, place - _REACH), min(after, place + _REACH)
        rows = values[start:end, list(columns[i])]
        if known is not None:
            rows = np.where(known[start:end, list(columns[i])], rows, np.nan)
        best, *ends = _interval(rows, place - start, bool(lines[i]), reach * bool(rough[i]), coverage)
        steps[i], out[i] = start + best, start + np.array(_beyond_gaps(rows, *ends))
    return steps, out


# Cycles on either side of a change within which it is placed, and cycles in a window: the shorter ones place a change more
# precisely, noise hides less of the shape of the longer ones. Nearest windows whose distances are averaged, and most windows on
# either side among which these are. Steps of a cycle beyond which only some steps are compared.
_WITHIN, _OF_CYCLE = 1.5, (0.25, 0.5)
_NEAREST, _MOST_WINDOWS = 3, 2000
_FINEST = 400
# Nats by which windows must prefer another place to the one found, a factor of 20.
_PREFERRED = 3.0


def by_windows(values: np.ndarray, places: np.ndarray, chosen: np.ndarray, cycle: float | None) -> np.ndarray:
    """Move the `chosen` changes between cycles to where short windows stop to look like those before.

    They are nearer to some window on their own side of a change than to any on the other, and the logarithms of these ratios are
    summed. Changes stay where no place is clearly better: noise hides the shape of short windows.
    """
    if cycle is None:
        return places
    every = 1 + int(cycle / _FINEST)
    rows = values[::every] / np.maximum(values.std(axis=0), 1e-300)
    bounds = np.concatenate([[0], np.round(places / every), [len(rows)]]).astype(int)
    out = places.copy()
    for i in np.flatnonzero(chosen):
        start, place, end = bounds[i : i + 3]
        moved = _turn(rows[start:end], int(place - start), cycle / every)
        if moved is not None:
            bounds[i + 1] = start + moved
            out[i] = bounds[i + 1] * every
    return out


def _turn(rows: np.ndarray, place: int, cycle: float) -> int | None:
    """Return the place that the windows of a stretch with no other change clearly prefer, or None."""
    reach = int(_WITHIN * cycle)
    ahead = np.zeros(2 * reach + 1)
    for share in _OF_CYCLE:
        size = max(4, round(share * cycle))
        count = min(place - reach - size + 1, len(rows) - size + 1 - place - reach, _MOST_WINDOWS)
        if count < 2.0 * cycle:
            return None
        low = place - reach - size + 1 - count
        windows = lag_windows(rows[low : place + reach + count + size - 1], size, True)
        nearest = [_distances(windows[count:-count], some) for some in (windows[:count], windows[-count:])]
        sums = np.concatenate([[0.0], np.cumsum(np.log(nearest[1]) - np.log(nearest[0]))])
        # Windows that end before a place, and those that begin at it or later.
        ahead += sums[: len(ahead)] + sums[size - 1 :]
    best = int(np.argmax(ahead))
    # A ratio of distances to the power of the steps of a window is that of the likelihoods of normal noise, and as many windows
    # hold each step. Two lengths are averaged, and a window that changes sides counts twice.
    nats = 0.25 * (ahead[best] - ahead[reach])
    return place - reach + best if nats > _PREFERRED else None


def _distances(windows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return root mean squares of the distances of each window to the nearest others."""
    squares = np.sum(windows**2, axis=1)[:, None] + np.sum(others**2, axis=1) - 2.0 * windows @ others.T
    return np.asarray(np.sqrt(np.maximum(np.partition(squares, _NEAREST, axis=1)[:, :_NEAREST].mean(axis=1), 1e-12)))


def _beyond_gaps(rows: np.ndarray, low: int, high: int) -> tuple[int, int]:
    """Widen an interval by the rows without any known value beside its ends."""
    unknown = np.isnan(rows).all(axis=1)
    while low > 1 and unknown[low - 1]:
        low -= 1
    while high < len(rows) - 1 and unknown[high]:
        high += 1
    return low, high


def _interval(rows: np.ndarray, place: int, line: bool, reach: int, coverage: float) -> tuple[int, int, int]:
    """Return the step, up to `reach` from the place, and the interval of the only change of a stretch; NaN is unknown."""
    if np.isnan(rows).all(axis=0).any():
        return place, 1, len(rows) - 1
    spread = np.nanstd(rows, axis=0)
    rows = (rows - np.nanmean(rows, axis=0)) / np.where(spread > 0.0, spread, 1.0)
    side = min(place, len(rows) - place)
    others = min(rows.shape[1] - 1, _MOST_OTHERS)

    def room(lags: int) -> bool:
        return lags + _ROWS_A_COEFFICIENT * (1 + line + lags + others) <= side  # so that the place is among the steps

    lags = [count for count in _LAGS if room(count)]
    if not lags:  # too short for a model: anywhere between the neighbouring changes
        return place, 1, len(rows) - 1
    least = max(lags) + _ROWS_A_COEFFICIENT * (1 + line + max(lags) + others)
    steps = np.arange(least, len(rows) - least + 1)
    logs = _log_posterior_both_ways(rows, place, steps, lags, line)
    if not np.isfinite(logs).any():
        return place, 1, len(rows) - 1
    low, high = steps[_middle_share(np.exp(logs - np.max(logs)), coverage)]
    if reach:
        place = int(steps[np.argmax(np.where(np.abs(steps - place) <= reach, logs, -np.inf))])
    return place, min(low, place), max(high, place)


def _middle_share(weights: np.ndarray, share: float) -> np.ndarray:
    """Return the numbers of the weights between which the middle `share` of their sum lies."""
    below = np.cumsum(weights) / weights.sum()
    tail = 0.5 * (1.0 - share)
    return np.minimum(np.searchsorted(below, [tail, 1.0 - tail]), len(weights) - 1)


def _log_posterior_both_ways(
    rows: np.ndarray, place: int, steps: np.ndarray, lags: list[int], line: bool
) -> np.ndarray:
    """Return the mean of the log posteriors of a series and of the reversed one.

    The first steps after a change follow from values before it, which neither side explains, and so the posterior is late; that
    of the reversed series is early by as much.
    """
    reversed_place, reversed_steps = len(rows) - place, len(rows) - steps
    return 0.5 * (
        _log_posterior(rows, place, steps, lags, line)
        + _log_posterior(rows[::-1], reversed_place, reversed_steps, lags, line)
    )


def _log_posterior(rows: np.ndarray, place: int, steps: np.ndarray, lags: list[int], line: bool) -> np.ndarray:
    """Return the logarithm of the posterior at each of `steps`, up to a constant, with the best number of lags."""
    skipped = max(lags)
    logs = np.zeros(len(steps))
    for j in range(rows.shape[1]):
        target = rows[skipped:, j]
        designs = [_design(rows, j, count, skipped, line) for count in lags]
        # The same rows for all numbers of lags, so that their criteria compare.
        used = ~np.isnan(np.column_stack([target, *designs])).any(axis=1)
        target = np.where(used, target, 0.0)
        designs = [np.where(used[:, None], design, 0.0) for design in designs]
        criteria = [_criterion(design, target, used, place - skipped) for design in designs]
        logs += _log_of_column(designs[int(np.argmin(criteria))], target, used, steps - skipped)
    return logs


def _design(rows: np.ndarray, j: int, lags: int, skipped: int, line: bool) -> np.ndarray:
    """Return the regressors of column j from row `skipped` on: constant, line, lags, and earlier columns at the same step."""
    n = len(rows)
    parts = [np.ones(n - skipped)]
    if line:
        parts.append(np.linspace(-1.0, 1.0, n)[skipped:])
    parts += [rows[skipped - lag : n - lag, j] for lag in range(1, lags + 1)]
    parts += list(rows[skipped:, max(0, j - _MOST_OTHERS) : j].T)
    return np.column_stack(parts)


def _criterion(design: np.ndarray, target: np.ndarray, used: np.ndarray, split: int) -> float:
    """Return the Bayesian information criterion of a regression with its own coefficients and variance on each side."""
    total = 0.0
    for side in (slice(None, split), slice(split, None)):
        X, y = design[side][used[side]], target[side][used[side]]
        if len(y) <= X.shape[1]:
            return np.inf
        residuals = y - X @ np.linalg.lstsq(X, y)[0]
        total += len(y) * np.log(max(np.mean(residuals**2), _LEAST_SQUARE)) + X.shape[1] * np.log(len(y))
    return total


def _log_of_column(design: np.ndarray, target: np.ndarray, used: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the logarithm of the posterior by one column; rows that are not used are 0."""
    gram = np.cumsum(design[:, :, None] * design[:, None, :], axis=0)
    product = np.cumsum(design * target[:, None], axis=0)
    square, count = np.cumsum(target**2), np.cumsum(used)
    left = gram[steps - 1], product[steps - 1], square[steps - 1], count[steps - 1]
    right = gram[-1] - left[0], product[-1] - left[1], square[-1] - left[2], count[-1] - left[3]
    return _log_marginal(*left) + _log_marginal(*right)


def _log_marginal(gram: np.ndarray, product: np.ndarray, square: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the logarithm of the probability of one side, with coefficients and variance integrated out."""
    k = gram.shape[1]
    count = np.maximum(count, 1)
    gram = gram + _LEAST_SQUARE * count[:, None, None] * np.eye(k)
    fitted = np.einsum("ni,ni->n", product, np.linalg.solve(gram, product[:, :, None])[:, :, 0])
    residual = np.maximum(square - fitted, _LEAST_SQUARE * count)
    free = np.maximum(0.5 * (count - k), 0.5)
    found = -0.5 * np.linalg.slogdet(gram)[1] + gammaln(free) - free * np.log(0.5 * residual)
    return np.asarray(np.where(count > k, found, -np.inf))
