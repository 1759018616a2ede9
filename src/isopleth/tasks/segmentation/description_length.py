"""Description of a series by segments of level and slope, then of scatter, or by an autoregression with heavy-tailed shocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from isopleth.tasks.segmentation.costs import rounding_variance
from isopleth.tasks.segmentation.preparation import log_of_growth, without_wild_values
from isopleth.tasks.segmentation.segments import Segmentation, segment

# Least length of a segment of equal scatter.
SHORTEST_SCATTER = 8
# Largest order of the autoregressive noise.
MOST_LAGS = 2
# Largest ratio of two scatters; otherwise a stretch without movement would have all the weight.
_MOST_EVEN = 100.0
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
    shocks: bool = False  # whether heavy-tailed shocks describe the series more cheaply than changes of location

    @property
    def scatter_changes(self) -> np.ndarray:
        """First steps of segments whose scatter differs from the one before."""
        return np.empty(0, dtype=np.intp) if self.scatter is None else self.scatter.changes

    @property
    def innovations(self) -> np.ndarray:
        """Return the prediction errors, each divided by the scatter of its segment."""
        return self.location.innovations


def roots(innovations: np.ndarray) -> np.ndarray:
    """Return roots of absolute values. Their level measures scatter, and large innovations do not dominate it."""
    return np.sqrt(np.abs(innovations))


def _scatter(innovations: np.ndarray, surcharge: float) -> Segmentation | None:
    """Find segments of equal scatter; None if the innovations are all equal or too few."""
    sizes = roots(innovations)
    varying = np.ptp(sizes, axis=0) > _ALIKE
    if not varying.any() or len(sizes) < 2 * SHORTEST_SCATTER:
        return None
    return segment(sizes[:, varying], degrees=(0,), most_lags=1, shortest=SHORTEST_SCATTER, surcharge=surcharge)


def _precision(innovations: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, int]:
    """Return one over the scatter at each step, and the number of steps in segments with movement."""
    lengths = np.diff(bounds)
    scatter = (np.add.reduceat(roots(innovations).mean(axis=1), bounds[:-1]) / lengths) ** 2
    least = scatter.max() / _MOST_EVEN
    precision = np.repeat(1.0 / np.maximum(scatter, least), lengths)
    return precision / np.exp(np.mean(np.log(precision))), int(lengths[scatter > least].sum())


def in_stages(values: np.ndarray, surcharges: tuple[float, float] = (0.0, 0.0)) -> Description:
    """Find segments of location, then of scatter, and repeat with its weights; scatter of differences is a second start."""
    n = len(values)
    steps = np.diff(values, axis=0, prepend=values[:1])
    scatter = _scatter(steps / np.maximum(steps.std(axis=0), 1e-300), surcharges[1])
    if scatter is None or not len(scatter.changes):
        return _from_precision(values, np.ones(n), n, surcharges)
    precision, moving = _precision(steps, scatter.bounds)
    aware = _from_precision(values, precision, moving, surcharges)
    if moving < n:  # without weights, a stretch without movement makes the noise of the rest look too small
        return aware
    return min(aware, _from_precision(values, np.ones(n), n, surcharges), key=lambda one: one.cost)


def _from_precision(
    values: np.ndarray, precision: np.ndarray, moving: int, surcharges: tuple[float, float]
) -> Description:
    """Find location and scatter in turn."""
    n = len(values)
    location = segment(values, most_lags=MOST_LAGS, precision=precision, surcharge=surcharges[0], moving=moving)
    scatter = _scatter(location.innovations / precision[:, None], surcharges[1])
    if scatter is not None and len(scatter.changes):
        precision, moving = _precision(location.innovations / precision[:, None], scatter.bounds)
        location = segment(values, most_lags=MOST_LAGS, precision=precision, surcharge=surcharges[0], moving=moving)
        scatter = _scatter(location.innovations / precision[:, None], surcharges[1])
    # Each change of scatter has a place and a coefficient.
    cost = location.cost + 3.0 * np.log(n) * (0 if scatter is None else len(scatter.changes))
    return Description(location, scatter, precision, values, float(cost))


def logs_of_growth(values: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Replace columns whose steps grow with their size by their logarithms; return other values of the columns, if given."""
    out = values.copy() if of is None else of.copy()
    for j, column in enumerate(values.T):
        logs = log_of_growth(column, None if of is None else of[:, j])
        if logs is not None:
            out[:, j] = logs
    return out


def describe(values: np.ndarray, surcharges: tuple[float, float] = (0.0, 0.0)) -> Description:
    """Describe a series by changes or by shocks, whichever is cheaper."""
    return or_shocks(in_stages(_cleaned(logs_of_growth(values)), surcharges))


def or_shocks(found: Description) -> Description:
    """Return a description without changes of location if heavy-tailed shocks are cheaper than these."""
    if not len(found.location.changes) or len(found.prepared) < _LEAST_FOR_SHOCKS or not _shocks_are_cheaper(found):
        return found
    return replace(in_stages(found.prepared, (np.inf, 0.0)), shocks=True)


def unbroken(values: np.ndarray) -> Description:
    """Describe a series without changes."""
    return describe(values, (np.inf, np.inf))


def _cleaned(values: np.ndarray) -> np.ndarray:
    cleaned = np.column_stack([without_wild_values(column) for column in values.T])
    return np.where(np.ptp(cleaned, axis=0) > 0.0, cleaned, values)


def _shocks_are_cheaper(found: Description) -> bool:
    """Tell whether one autoregression with heavy-tailed shocks is cheaper than segments with innovations of such tails."""
    n, dim = found.prepared.shape
    segments = found.location.cost + n * dim * np.log(2.0 * np.pi)
    segments += sum(tail_gain(column) for column in found.location.innovations.T)
    return bool(sum(cost_of_shocks(column, MOST_LAGS) for column in found.prepared.T) < segments)


# Degrees of freedom of Student's distribution that are compared.
FREEDOMS = (1.5, 2.0, 3.0, 5.0, 10.0)
# Most steps of reweighted least squares, and the relative change of the variance at which they end.
_REWEIGHTED, _CONVERGED = 15, 1e-4


def _minus_twice_likelihood(innovations: np.ndarray, freedom: float, variance: float) -> float:
    constant = gammaln(0.5 * (freedom + 1.0)) - gammaln(0.5 * freedom) - 0.5 * np.log(freedom * np.pi * variance)
    tails = np.log1p(innovations**2 / (freedom * variance)).sum()
    return float((freedom + 1.0) * tails - 2.0 * len(innovations) * constant)


def tail_gain(innovations: np.ndarray) -> float:
    """Return the change of cost, at most 0, if innovations of mean square 1 follow Student's distribution, not the normal one."""
    n = len(innovations)
    normal = n * (1.0 + np.log(2.0 * np.pi))
    costs = [0.0]
    for freedom in FREEDOMS:
        variance = 1.0
        for _ in range(_REWEIGHTED):
            weight = (freedom + 1.0) / (freedom + innovations**2 / variance)
            variance = max(float(np.mean(weight * innovations**2)), 1e-8)
        costs.append(_minus_twice_likelihood(innovations, freedom, variance) + np.log(n) - normal)
    return min(costs)


def cost_of_shocks(column: np.ndarray, most_lags: int) -> float:
    """Return the cost of a column as one autoregression with Student's innovations, by reweighted least squares."""
    floor = float(rounding_variance(column))
    return min(
        _of_order(column, degree, order, freedom, floor)
        for degree in (0, 1)
        for order in range(most_lags + 1)
        for freedom in FREEDOMS
    )


def _of_order(column: np.ndarray, degree: int, order: int, freedom: float, floor: float) -> float:
    n = len(column) - order
    terms = [np.ones(n), *[np.linspace(-1.0, 1.0, n)] * degree, *(column[order - i : -i] for i in range(1, order + 1))]
    design, values = np.column_stack(terms), column[order:]
    weight, variance = np.ones(n), np.inf
    for _ in range(_REWEIGHTED):
        weighted, before = design * weight[:, None], variance
        coefficients = np.linalg.lstsq(weighted.T @ design, weighted.T @ values, rcond=None)[0]
        left = values - design @ coefficients
        variance = max(float(np.mean(weight * left**2)), floor)
        if abs(variance - before) < _CONVERGED * variance:
            break
        weight = (freedom + 1.0) / (freedom + left**2 / variance)
    first = order * (np.log(2.0 * np.pi * column.var()) + 1.0)
    return _minus_twice_likelihood(left, freedom, variance) + first + (design.shape[1] + 2) * np.log(len(column))
