"""Descriptions of a series by segments, shocks or a smooth curve, and how much a change shortens them by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

import numpy as np
from scipy.interpolate import BSpline
from scipy.signal import fftconvolve
from scipy.special import gammaln

from isopleth.core.p_values import simulated_pvalue
from isopleth.core.progress import unheard
from isopleth.tasks.changes.long_series import segment_of_means
from isopleth.tasks.changes.preparation import log_of_growth, step_of_repeats, without_wild_values
from isopleth.tasks.changes.segments import (
    STABLE,
    Noise,
    Segmentation,
    SegmentationSearch,
    SegmentCosts,
    fitted_noises,
    rounding_variance,
)

# Least length of a segment of equal scatter.
SHORTEST_SCATTER = 8
# Largest order of the autoregressive noise.
MOST_LAGS = 2
# Largest ratio of two scatters; otherwise a stretch without movement would have all the weight.
_MOST_EVEN = 100.0
# Scatter, as the square of the mean root, of errors of rounding and of their differences, over the step: .22 and .28.
_OF_ROUNDING = 0.25
# Range of the roots of innovations below which they count as equal.
_ALIKE = 1e-9
# Fewest steps for which shocks instead of changes are considered.
_LEAST_FOR_SHOCKS = 30


@dataclass(frozen=True, eq=False)
class Description:
    """Description of a series by segments."""

    location: Segmentation  # segments of equal level or slope
    # segments of equal scatter, from the roots of the absolute innovations; None if these are all equal
    scatter: Segmentation | None
    # (n,): one over the relative standard deviation of the innovations that the search for `location` used
    precision: np.ndarray
    prepared: np.ndarray  # (n, d): series after its preparation
    cost: float  # cost of location and scatter
    floors: np.ndarray  # (d,): variances of the rounding errors of `prepared`
    shocks: bool = False  # whether heavy-tailed shocks describe the series more cheaply than changes of location

    @property
    def innovations(self) -> np.ndarray:
        """Return the prediction errors, each divided by the scatter of its segment."""
        return self.location.innovations


def roots(innovations: np.ndarray) -> np.ndarray:
    """Return roots of absolute values. Their level measures scatter, and large innovations do not dominate it."""
    return np.sqrt(np.abs(innovations))


def varying_roots(innovations: np.ndarray) -> np.ndarray:
    """Return the roots of absolute values of the columns whose roots differ."""
    sizes = roots(innovations)
    return sizes[:, np.ptp(sizes, axis=0) > _ALIKE]


def scatter_drifts(innovations: np.ndarray, bounds: np.ndarray) -> bool:
    """Tell whether a line describes the scatter better than steps at the inner `bounds`, by BIC without a cost for their places.

    As in the scans, steps and a drift count the same: with the cost of a place, half of the clear steps would be drifts.
    """
    sizes = varying_roots(innovations)
    n = len(sizes)
    time = np.linspace(-1.0, 1.0, n)
    around = sizes - sizes.mean(axis=0)
    line = np.sum(around**2, axis=0) - (time @ around) ** 2 / (time @ time)
    lengths = np.diff(bounds)[:, None]
    means = np.add.reduceat(sizes, bounds[:-1]) / lengths
    steps = np.sum(sizes**2, axis=0) - np.sum(lengths * means**2, axis=0)
    fewer = (len(bounds) - 3) * sizes.shape[1]
    return bool(n * np.sum(np.log(line / np.maximum(steps, 1e-300))) < fewer * np.log(n))


def _scatter(innovations: np.ndarray, surcharge: float) -> Segmentation | None:
    """Find segments of equal scatter; None if the innovations are all equal or too few."""
    sizes = varying_roots(innovations)
    if not sizes.size or len(sizes) < 2 * SHORTEST_SCATTER:
        return None
    return segment_of_means(sizes, degrees=(0,), most_lags=1, shortest=SHORTEST_SCATTER, surcharge=surcharge)


def _precision(innovations: np.ndarray, bounds: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, int]:
    """Return one over the scatter at each step, and the number of steps in segments with movement.

    `steps` are those in which the columns are recorded: equal values in a row are no calm, if such steps are coarse.
    """
    lengths = np.diff(bounds)
    scatter = (np.add.reduceat(roots(innovations).mean(axis=1), bounds[:-1]) / lengths) ** 2
    scatter = beyond_rounding(scatter, steps)
    moving = int(lengths[scatter > scatter.max() / _MOST_EVEN].sum())
    return relative_precision(np.repeat(scatter, lengths)), moving


def beyond_rounding(scatter: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return scatter, at least that of the errors of rounding to the steps in which columns are recorded."""
    return np.maximum(scatter, _OF_ROUNDING * roots(steps).mean() ** 2)


def relative_precision(scatter: np.ndarray) -> np.ndarray:
    """Return one over the scatter, within a ratio, with a geometric mean of 1."""
    precision = 1.0 / np.maximum(scatter, scatter.max() / _MOST_EVEN)
    return np.asarray(precision / np.exp(np.mean(np.log(precision))))


def in_stages(
    values: np.ndarray, surcharges: tuple[float, float] = (0.0, 0.0), floors: np.ndarray | None = None
) -> Description:
    """Find segments of location, then of scatter, and repeat with its weights; scatter of differences is a second start."""
    n = len(values)
    recorded = np.array([step_of_repeats(column) for column in values.T])
    floors = rounding_variance(values.T) if floors is None else floors
    of = partial(_from_precision, values, recorded, floors, surcharges)
    unweighted = partial(of, np.ones(n), n)
    if recorded.any():  # most differences of values in coarse steps may be 0
        return unweighted()
    steps = np.diff(values, axis=0, prepend=values[:1])
    scatter = _scatter(steps / np.maximum(steps.std(axis=0), 1e-300), surcharges[1])
    if scatter is None or not len(scatter.changes):
        return unweighted()
    precision, moving = _precision(steps, scatter.bounds, recorded)
    aware = of(precision, moving)
    if moving < n:  # without weights, a stretch without movement makes the noise of the rest look too small
        return aware
    return min(aware, unweighted(), key=lambda one: one.cost)


def _from_precision(
    values: np.ndarray,
    recorded: np.ndarray,
    floors: np.ndarray,
    surcharges: tuple[float, float],
    precision: np.ndarray,
    moving: int,
) -> Description:
    """Find location and scatter in turn."""
    n, plain = len(values), None
    of_location = partial(segment_of_means, values, most_lags=MOST_LAGS, surcharge=surcharges[0], floors=floors)
    location = of_location(precision=precision, moving=moving)
    scatter = _scatter(location.innovations / precision[:, None], surcharges[1])
    if scatter is not None and len(scatter.changes):
        if recorded.any():
            even = _scatter(location.innovations / precision[:, None], np.inf)
            plain = Description(location, even, precision, values, location.cost, floors)
        spreads = np.ptp(values, axis=0) / location.extents
        precision, moving = _precision(location.innovations / precision[:, None], scatter.bounds, recorded / spreads)
        location = of_location(precision=precision, moving=moving)
        scatter = _scatter(location.innovations / precision[:, None], surcharges[1])
    # Each change of scatter has a place and a coefficient.
    cost = location.cost + 3.0 * np.log(n) * (0 if scatter is None else len(scatter.changes))
    found = Description(location, scatter, precision, values, float(cost), floors)
    # Roots of values in coarse steps change their level where that saves nothing.
    return found if plain is None else min(found, plain, key=lambda one: one.cost)


def logs_of_growth(values: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Replace columns whose steps grow with their size by their logarithms; return other values of the columns, if given."""
    out = values.copy() if of is None else of.copy()
    for j, column in enumerate(values.T):
        logs = log_of_growth(column, None if of is None else of[:, j])
        if logs is not None:
            out[:, j] = logs
    return out


def describe(
    values: np.ndarray, surcharges: tuple[float, float] = (0.0, 0.0), floors: np.ndarray | None = None
) -> Description:
    """Describe a series by changes or by shocks, whichever is cheaper; `floors` are the variances of its rounding errors."""
    return or_shocks(segments_of(values, surcharges, floors))


def segments_of(
    values: np.ndarray, surcharges: tuple[float, float] = (0.0, 0.0), floors: np.ndarray | None = None
) -> Description:
    """Describe a series by segments, whose changes may be shocks."""
    return in_stages(cleaned(logs_of_growth(values)), surcharges, floors)


def or_shocks(found: Description) -> Description:
    """Return a description without changes of location if heavy-tailed shocks are cheaper than these."""
    if not len(found.location.changes) or len(found.prepared) < _LEAST_FOR_SHOCKS or not _shocks_are_cheaper(found):
        return found
    return replace(in_stages(found.prepared, (np.inf, 0.0), found.floors), shocks=True)


def unbroken(values: np.ndarray) -> Description:
    """Describe a series without changes."""
    return describe(values, (np.inf, np.inf))


def cleaned(values: np.ndarray) -> np.ndarray:
    """Return columns without single outliers, as they are if nothing else would vary."""
    calm = np.column_stack([without_wild_values(column) for column in values.T])
    return np.where(np.ptp(calm, axis=0) > 0.0, calm, values)


def _shocks_are_cheaper(found: Description) -> bool:
    """Tell whether one autoregression with heavy-tailed shocks is cheaper than segments with innovations of such tails.

    Shocks at changes, the largest steps first, may have places and sizes that cost what those of changes do. Otherwise a segment
    that begins anew would be a cheaper description of a shock that fades.
    """
    n, dim = found.prepared.shape
    segments = found.location.cost + n * dim * np.log(2.0 * np.pi)
    floors = found.floors * (found.location.extents / np.ptp(found.prepared, axis=0)) ** 2
    segments += sum(tail_cost(column**2 + floor) for column, floor in zip(found.innovations.T, floors, strict=True))
    orders = [{*range(MOST_LAGS + 1), noise.order} for noise in found.location.noises]
    steps = np.sum(np.diff(found.prepared / found.prepared.std(axis=0), axis=0) ** 2, axis=1)
    changes = found.location.changes[np.argsort(-steps[found.location.changes - 1], kind="stable")]
    least = np.inf
    for count in range(len(changes) + 1):
        costs = map(cost_of_shocks, found.prepared.T, orders, found.floors, repeat(changes[:count]))
        cost = sum(costs) + 2.0 * count * float(np.log(n))
        if cost >= least or cost < segments:
            return cost < segments
        least = cost
    return False


# Degrees of freedom of Student's distribution that are compared.
FREEDOMS = (1.5, 2.0, 3.0, 5.0, 10.0)
# Most steps of reweighted least squares, and the relative change of the variance at which they end.
_REWEIGHTED, _CONVERGED = 15, 1e-4


def _minus_twice_likelihood(squares: np.ndarray, freedom: float, variance: float) -> float:
    constant = gammaln(0.5 * (freedom + 1.0)) - gammaln(0.5 * freedom) - 0.5 * np.log(freedom * np.pi * variance)
    tails = np.log1p(squares / (freedom * variance)).sum()
    return float((freedom + 1.0) * tails - 2.0 * len(squares) * constant)


def tail_cost(squares: np.ndarray) -> float:
    """Return the change of cost, at most 0, if innovations with these squares follow Student's law, not the normal one."""
    n, squares = len(squares), squares / max(float(np.mean(squares)), 1e-300)
    normal = n * (1.0 + np.log(2.0 * np.pi))
    costs = [0.0]
    for freedom in FREEDOMS:
        variance = 1.0
        for _ in range(_REWEIGHTED):
            weight = (freedom + 1.0) / (freedom + squares / variance)
            variance = max(float(np.mean(weight * squares)), 1e-8)
        costs.append(_minus_twice_likelihood(squares, freedom, variance) + np.log(n) - normal)
    return min(costs)


_NO_PLACES = np.empty(0, dtype=int)


def cost_of_shocks(column: np.ndarray, orders: Iterable[int], floor: float, places: np.ndarray = _NO_PLACES) -> float:
    """Return the cost of a column as one autoregression with Student's innovations, by reweighted least squares.

    Innovations at `places` may have any size within the range of the column.
    """
    return min(_of_order(column, degree, order, floor, places) for degree in (0, 1) for order in sorted(orders))


def _of_order(column: np.ndarray, degree: int, order: int, floor: float, places: np.ndarray) -> float:
    """Return the description length of a column as a polynomial with autoregressive errors of this order.

    Each number of degrees of freedom begins with the weights of the one before, which are nearly its own. The likelihood has one
    peak along these numbers, so those beyond it are left out.
    """
    n = len(column) - order
    terms = [np.ones(n), *[np.linspace(-1.0, 1.0, n)] * degree, *(column[order - i : -i] for i in range(1, order + 1))]
    design, values = np.array(terms), column[order:]
    fixed = order * (np.log(2.0 * np.pi * column.var()) + 1.0) + (len(design) + 2) * np.log(len(column))
    fixed += 2.0 * len(places) * np.log(np.ptp(column))
    known = ~np.isin(np.arange(order, len(column)), places)
    design, values = design[:, known], values[known]
    weight, costs = np.ones(len(values)), []
    for freedom in FREEDOMS[::-1]:  # the first is nearly normal, with equal weights
        squares, variance, weight = _reweighted(design, values, freedom, weight, floor)
        costs.append(_minus_twice_likelihood(squares, freedom, variance))
        if costs[-1] > min(costs):
            break
    return min(costs) + float(fixed)


def _reweighted(
    design: np.ndarray, values: np.ndarray, freedom: float, weight: np.ndarray, floor: float
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return squared residuals, variance and weights of a regression with Student's errors; `design` has a row a coefficient.

    The variance of rounding is added to squares, as in the costs of segments: otherwise shocks would be cheaper by what it adds.
    The weights of the most likely variance have a mean of 1; to divide by their sum in the steps before leads there sooner (Kent,
    Tyler and Vardi, 1994).
    """
    variance = np.inf
    for _ in range(_REWEIGHTED):
        weighted, before = design * weight, variance
        left = values - np.linalg.lstsq(weighted @ design.T, weighted @ values, rcond=None)[0] @ design
        squares = left**2 + floor
        variance = float(weight @ squares) / float(weight.sum())
        if abs(variance - before) < _CONVERGED * variance:
            break
        weight = (freedom + 1.0) / (freedom + squares / variance)
    return squares, variance, weight


# Simulated series without a change.
RUNS = 199
# Fewest draws beyond a quantile, so that it does not depend on a single one.
_LEAST_EXCEEDING = 4
# Most steps of a simulated series. In longer series the cost of a change, 2 log n, grows faster than the best chance saving.
_LONGEST = 2000
# Times that noise and change are fitted in turn.
_ROUNDS = 3
# Twice the nats by which a simulated margin must exceed the observed one to count: the final search tries more noises.
_CLEARLY = 1.0


def null_gains(
    found: Segmentation,
    precision: np.ndarray,
    length: int,
    shortest: int,
    rng: np.random.Generator,
    tick: Callable[[int], None] = unheard,
) -> np.ndarray:
    """Simulate the saving of the best change in series without changes, of the noise that was found; sorted."""
    n = min(length, _LONGEST)
    places = np.linspace(0, len(precision) - 1, n).astype(int)
    gains = []
    for _ in range(RUNS):
        gains.append(_gain(found, precision[places], shortest, rng))
        tick(1)
    return np.sort(gains)


def null_margins(
    unchanged: Description,
    length: int,
    rng: np.random.Generator,
    tick: Callable[[int], None] = unheard,
    own: float = np.inf,
    most: float = RUNS,
) -> np.ndarray:
    """Simulate by how much the best description with one change is shorter than the best without; sorted.

    Innovations keep sizes and order, with random signs, so that a stretch of large ones stays; each series is described anew.
    Once more than `most` margins clearly exceed `own`, the observed one, its p-value is too large, and the result is empty.
    """
    n, location = min(length, _LONGEST), unchanged.location
    places = np.linspace(0, len(unchanged.precision) - 1, n).astype(int)
    precision, innovations = unchanged.precision[places], location.innovations[places]
    time = np.linspace(-1.0, 1.0, len(unchanged.prepared))
    rises = (
        location.degree
        * (time @ unchanged.prepared)
        / (time @ time)
        * location.extents
        / np.ptp(unchanged.prepared, axis=0)
    )
    line = np.linspace(-1.0, 1.0, n)[:, None] * rises
    noises = [_without_bias(noise, n, location.degree) for noise in location.noises]
    margins, larger = [], 0
    for done in range(RUNS):
        drawn = rng.choice([-1.0, 1.0], (n, 1)) * innovations / precision[:, None]
        made = [noise.series(column) for noise, column in zip(noises, drawn.T, strict=True)]
        margins.append(_margin(line + np.column_stack(made), precision, location.extents))
        larger += margins[-1] > own + _CLEARLY
        if larger > max(most, _LEAST_EXCEEDING):
            tick(RUNS - done)
            return np.empty(0)
        tick(1)
    return np.sort(margins)


def margin_of(found: Description) -> float:
    """Return by how much the best description with one change is shorter than the best without, as :func:`null_margins`."""
    scale = found.location.extents / np.ptp(found.prepared, axis=0)
    return _margin(found.prepared * scale, found.precision, found.location.extents)


def surcharge(gains: np.ndarray, rate: float, least: float = 0.0) -> float:
    """Return the saving exceeded in a share `rate` of series without changes, at least `least`; the tail is exp(-g/2)."""
    seen = max(rate, _LEAST_EXCEEDING / (RUNS + 1))
    place = int(np.ceil((RUNS + 1) * (1.0 - seen))) - 1
    return max(least, float(gains[place]) + 2.0 * float(np.log(seen / rate)))


def pvalue_of_gain(gain: float, gains: np.ndarray) -> float:
    """Return the share of series without changes in which the best change saves as much; the inverse of :func:`surcharge`."""
    seen = _LEAST_EXCEEDING / (RUNS + 1)
    place = int(np.ceil((RUNS + 1) * (1.0 - seen))) - 1
    tail = float(seen * np.exp(-0.5 * max(gain - float(gains[place]), 0.0)))
    return simulated_pvalue(gain, gains, _LEAST_EXCEEDING, tail)


def _gain(found: Segmentation, precision: np.ndarray, shortest: int, rng: np.random.Generator) -> float:
    """Return what the best change saves in one simulated series without a change."""
    n = len(precision)
    drawn = found.innovations[rng.integers(0, len(found.innovations), n)]
    made = zip(found.noises, drawn.T, strict=True)
    series = np.column_stack([noise.series(innovations / precision) for noise, innovations in made])
    if (np.ptp(series, axis=0) <= 0.0).any():
        return -float("inf")
    # The cost of coefficients depends on the range. It has to be the range of the observed series with its changes.
    white = SegmentCosts(series, (Noise(),) * series.shape[1], found.degree, precision, found.extents)
    whole = np.array([0, n])
    left = white.residuals(whole) * precision
    lags = max(MOST_LAGS, *(noise.order for noise in found.noises))
    fitted = fitted_noises(left, whole, min(lags, n // 10))
    least = max(shortest, lags + found.degree + 3)
    return SegmentationSearch(
        SegmentCosts(series, fitted, found.degree, precision, found.extents), least
    ).gain_of_one_change()


def _without_bias(noise: Noise, n: int, degree: int) -> Noise:
    r"""Correct the first autocorrelation by the bias of its estimate, which is about :math:`-(1 + 3a) / n` around a constant and
    :math:`-(2 + 4a) / n` around a line (Kendall 1954): a walk would be simulated as a process that returns to its mean.
    """
    if not noise.order:
        return noise
    first, *others = noise.reflections
    bias = (1.0 + degree + (3.0 + degree) * first) / n
    return Noise((min(first + max(bias, 0.0), STABLE), *others))


def _margin(series: np.ndarray, precision: np.ndarray, extents: np.ndarray) -> float:
    """Return by how much the best description with one change is shorter than the best without."""
    n = len(series)
    if (np.ptp(series, axis=0) <= 0.0).any():
        return -float("inf")
    lags, whole = min(MOST_LAGS, n // 10), np.array([0, n])
    without, with_one = [], []
    for degree in (0, 1):
        noises, bounds = (Noise(),) * series.shape[1], whole
        for _ in range(_ROUNDS):
            left = SegmentCosts(series, noises, degree, precision, extents).residuals(bounds) * precision
            noises = fitted_noises(left, bounds, lags)
            search = SegmentationSearch(SegmentCosts(series, noises, degree, precision, extents), lags + degree + 3)
            bounds, cost = search.best_change()
            without.append(search.total(whole))
            with_one.append(cost)
    return min(without) - min(with_one)


# Degrees of freedom of the cubic splines that are compared.
_FREEDOMS = range(4, 11)
_CUBIC = 3
# Means of blocks are compared in longer series: a spline of few degrees of freedom and a change of level are the same in these.
_MOST_ROWS = 5000
# Times that coefficients and autocorrelation are fitted in turn.
_FIT_ROUNDS = 3
# Orders of fractional differences that are tried; noise is stationary below .5.
_ORDERS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.49)


def smooth_curve(values: np.ndarray, precision: np.ndarray, places: np.ndarray) -> np.ndarray | None:
    """Return a curve without changes that describes each column more cheaply than changes at `places` do, or None.

    Splines of 4 to 10 degrees of freedom, and constants and lines with long memory, are compared by BIC with steps, lines and
    hinges at the places. `precision` is one over the relative standard deviation of the innovations at each step.
    """
    size = -(-len(values) // _MOST_ROWS)
    rows, weights = _block_means(values, size), _block_means(precision[:, None], size)
    time = np.linspace(-1.0, 1.0, len(rows))
    of_places = 2.0 * len(places) * float(np.log(len(rows)))  # as in the description of the series

    def best(design: np.ndarray, orders: tuple[float, ...] = _ORDERS) -> tuple[float, np.ndarray]:
        return min((_criterion(design, rows, weights, order) for order in orders), key=lambda one: one[0])

    of_changes = of_places + min(best(design)[0] for design in _of_changes(time, places / size))
    curves = [(*best(_polynomial(time, degree), _ORDERS[1:]), partial(_polynomial, number=degree)) for degree in (0, 1)]
    curves += [(*best(_spline(time, freedom)), partial(_spline, number=freedom)) for freedom in _FREEDOMS]
    cost, coefficients, curve = min(curves, key=lambda one: one[0])
    if cost >= of_changes:
        return None
    return np.asarray(curve(np.linspace(-1.0, 1.0, len(values))) @ coefficients)


def _block_means(rows: np.ndarray, size: int) -> np.ndarray:
    if size == 1:
        return rows
    starts = np.arange(0, len(rows), size)
    return np.asarray(np.add.reduceat(rows, starts) / np.diff(np.append(starts, len(rows)))[:, None])


def _of_changes(time: np.ndarray, places: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the designs of steps, hinges and lines that change at `places`, and of two levels that take turns."""
    at = np.arange(len(time))[:, None]
    steps = (at >= places).astype(np.float64)
    hinges = np.maximum(at - places, 0.0) / len(time)
    level, line = np.ones((len(time), 1)), time[:, None]
    yield np.column_stack([level, steps])
    if len(places) > 1:
        yield np.column_stack([level, steps.sum(axis=1) % 2.0])
    yield np.column_stack([level, line, hinges])
    yield np.column_stack([level, line, steps, hinges])


def _polynomial(time: np.ndarray, number: int) -> np.ndarray:
    return np.vander(time, number + 1, increasing=True)


def _spline(time: np.ndarray, number: int) -> np.ndarray:
    knots = np.concatenate([[-1.0] * _CUBIC, np.linspace(-1.0, 1.0, number - _CUBIC + 1), [1.0] * _CUBIC])
    return np.asarray(BSpline.design_matrix(time, knots, _CUBIC).toarray())


def _criterion(design: np.ndarray, rows: np.ndarray, weights: np.ndarray, order: float) -> tuple[float, np.ndarray]:
    """Return the Bayesian information criterion of a regression with fractional autoregressive errors, and its coefficients."""
    n = len(rows)
    total, coefficients = 0.0, []
    floors = rounding_variance(rows.T)
    design, rows = np.split(_differenced(np.column_stack([design, rows]), order), [design.shape[1]], axis=1)
    for column, floor in zip(rows.T, floors, strict=True):
        phi = 0.0
        for _ in range(_FIT_ROUNDS):
            first = np.sqrt(1.0 - phi**2)
            X, y = _whitened(design, phi, first) * weights, _whitened(column, phi, first) * weights[:, 0]
            found = np.linalg.lstsq(X, y, rcond=None)[0]
            cost = n * np.log(float(np.mean((y - X @ found) ** 2)) + floor) - 2.0 * np.log(first)
            left = column - design @ found
            phi = float(np.clip(left[1:] @ left[:-1] / max(float(left @ left), 1e-300), 0.0, STABLE))
        total += cost + (design.shape[1] + 1 + (order > 0.0)) * np.log(n)
        coefficients.append(found)
    return total, np.column_stack(coefficients)


def _differenced(rows: np.ndarray, order: float) -> np.ndarray:
    """Return fractional differences of columns that are 0 before they begin."""
    if not order:
        return rows
    lags = np.arange(1.0, len(rows))
    weights = np.concatenate([[1.0], np.cumprod((lags - 1.0 - order) / lags)])
    return np.asarray(fftconvolve(rows, weights[:, None], axes=0)[: len(rows)])


def _whitened(rows: np.ndarray, phi: float, first: float) -> np.ndarray:
    return np.concatenate([first * rows[:1], rows[1:] - phi * rows[:-1]])
