"""Description of a series by segments of level and slope, then of scatter, or by an autoregression with heavy-tailed shocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from isopleth.tasks.segmentation.costs import rounding_variance
from isopleth.tasks.segmentation.preparation import grows_in_proportion, season, without_wild_values
from isopleth.tasks.segmentation.segments import Segmentation, segment

# Steps in which a scatter can be told from another.
SHORTEST_SCATTER = 8
MOST_LAGS = 2
# A scatter no smaller than this part of the largest: a stretch that stands still must not decide about all others.
_MOST_EVEN = 100.0
_ALIKE = 1e-9
_LEAST_FOR_SEASON = 16
_LEAST_FOR_SHOCKS = 30


@dataclass(frozen=True, eq=False)
class Description:
    """A series told by segments.

    Parameters
    ----------
    location : Segmentation
        Of levels and slopes.
    scatter : Segmentation or None
        Of the roots of the absolute innovations; None where these are all alike.
    precision : array of shape (n,)
        One over the relative standard deviation of the innovations that the location was segmented with.
    prepared : array of shape (n, d)
        What was segmented.
    price : float
        Of location and scatter.
    shocks : bool
        Whether shocks tell the series cheaper than changes of location.
    """

    location: Segmentation
    scatter: Segmentation | None
    precision: np.ndarray
    prepared: np.ndarray
    price: float
    shocks: bool = False

    @property
    def scatter_changes(self) -> np.ndarray:
        """First steps of another scatter."""
        return np.empty(0, dtype=np.intp) if self.scatter is None else self.scatter.changes

    @property
    def innovations(self) -> np.ndarray:
        """Return the prediction errors, each divided by the scatter of its segment."""
        return self.location.innovations


def roots(innovations: np.ndarray) -> np.ndarray:
    """Roots of absolute values: levels of these are scatters, and wild innovations do not dominate them."""
    return np.sqrt(np.abs(innovations))


def _scatter(innovations: np.ndarray, surcharge: float) -> Segmentation | None:
    """Segments of alike scatter; None where there is nothing to tell apart."""
    sizes = roots(innovations)
    varying = np.ptp(sizes, axis=0) > _ALIKE
    if not varying.any() or len(sizes) < 2 * SHORTEST_SCATTER:
        return None
    return segment(sizes[:, varying], degrees=(0,), most_lags=1, shortest=SHORTEST_SCATTER, surcharge=surcharge)


def _precision(innovations: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, int]:
    """One over the scatter of the segment of each step, and how many steps do not stand still."""
    lengths = np.diff(bounds)
    scatter = (np.add.reduceat(roots(innovations).mean(axis=1), bounds[:-1]) / lengths) ** 2
    least = scatter.max() / _MOST_EVEN
    precision = np.repeat(1.0 / np.maximum(scatter, least), lengths)
    return precision / np.exp(np.mean(np.log(precision))), int(lengths[scatter > least].sum())


def in_stages(values: np.ndarray, surcharges: tuple[float, float] = (0.0, 0.0)) -> Description:
    """Levels first, and again where their innovations turn out to change in scatter; the scatter of the differences is
    another start, which levels that were mistaken do not mislead."""
    n = len(values)
    steps = np.diff(values, axis=0, prepend=values[:1])
    scatter = _scatter(steps / np.maximum(steps.std(axis=0), 1e-300), surcharges[1])
    if scatter is None or not len(scatter.changes):
        return _from_precision(values, np.ones(n), n, surcharges)
    precision, moving = _precision(steps, scatter.bounds)
    aware = _from_precision(values, precision, moving, surcharges)
    if moving < n:  # a stretch that stands still would make the whole look less noisy than the rest is
        return aware
    return min(aware, _from_precision(values, np.ones(n), n, surcharges), key=lambda one: one.price)


def _from_precision(
    values: np.ndarray, precision: np.ndarray, moving: int, surcharges: tuple[float, float]
) -> Description:
    """Location and scatter in turn."""
    n = len(values)
    location = segment(values, most_lags=MOST_LAGS, precision=precision, surcharge=surcharges[0], moving=moving)
    scatter = _scatter(location.innovations / precision[:, None], surcharges[1])
    if scatter is not None and len(scatter.changes):
        precision, moving = _precision(location.innovations / precision[:, None], scatter.bounds)
        location = segment(values, most_lags=MOST_LAGS, precision=precision, surcharge=surcharges[0], moving=moving)
        scatter = _scatter(location.innovations / precision[:, None], surcharges[1])
    # A place and a coefficient for each.
    price = location.price + 3.0 * np.log(n) * (0 if scatter is None else len(scatter.changes))
    return Description(location, scatter, precision, values, float(price))


def logs_of_growth(values: np.ndarray) -> np.ndarray:
    """Replace columns whose steps grow with their size by their logarithms."""
    return np.column_stack([np.log(c) if grows_in_proportion(c) else c for c in values.T])


def describe(values: np.ndarray, surcharges: tuple[float, float] = (0.0, 0.0)) -> Description:
    """The cheaper of the descriptions with and without a season; a single segment where shocks tell the series cheaper.

    Parameters
    ----------
    values : array of shape (n, d)
        No column constant.
    surcharges : tuple of float
        What a change of location, and one of scatter, costs on top of its description.
    """
    n = len(values)
    taken = logs_of_growth(values)
    best = in_stages(_cleaned(taken), surcharges)
    seasons = [season(column) if n >= _LEAST_FOR_SEASON else (np.zeros(n), 1) for column in taken.T]
    periods = [period for _, period in seasons if period > 1]
    if periods:
        rest = _cleaned(taken - np.column_stack([part for part, _ in seasons]))
        if (np.ptp(rest, axis=0) > 0.0).all():
            other = in_stages(rest, surcharges)
            if other.price + sum(period + 1 for period in periods) * np.log(n) < best.price:
                best = other
    if not len(best.location.changes) or n < _LEAST_FOR_SHOCKS or not _shocks_are_cheaper(best):
        return best
    return replace(in_stages(best.prepared, (np.inf, 0.0)), shocks=True)


def unbroken(values: np.ndarray) -> Description:
    """A series told without a change."""
    return describe(values, (np.inf, np.inf))


def _cleaned(values: np.ndarray) -> np.ndarray:
    cleaned = np.column_stack([without_wild_values(column) for column in values.T])
    return np.where(np.ptp(cleaned, axis=0) > 0.0, cleaned, values)


def _shocks_are_cheaper(found: Description) -> bool:
    """Whether one autoregression with heavy tails tells the series cheaper than the segments do, with tails as heavy."""
    n, dim = found.prepared.shape
    segments = found.location.price + n * dim * np.log(2.0 * np.pi)
    segments += sum(tail_gain(column) for column in found.location.innovations.T)
    return bool(sum(price_of_shocks(column, MOST_LAGS) for column in found.prepared.T) < segments)


FREEDOMS = (1.5, 2.0, 3.0, 5.0, 10.0)
_STEPS = 15
_SETTLED = 1e-4


def _minus_twice_likelihood(innovations: np.ndarray, freedom: float, variance: float) -> float:
    constant = gammaln(0.5 * (freedom + 1.0)) - gammaln(0.5 * freedom) - 0.5 * np.log(freedom * np.pi * variance)
    tails = np.log1p(innovations**2 / (freedom * variance)).sum()
    return float((freedom + 1.0) * tails - 2.0 * len(innovations) * constant)


def tail_gain(innovations: np.ndarray) -> float:
    """By how much Student's law makes innovations of mean square 1 cheaper than the normal one, at most 0."""
    n = len(innovations)
    normal = n * (1.0 + np.log(2.0 * np.pi))
    prices = [0.0]
    for freedom in FREEDOMS:
        variance = 1.0
        for _ in range(_STEPS):
            weight = (freedom + 1.0) / (freedom + innovations**2 / variance)
            variance = max(float(np.mean(weight * innovations**2)), 1e-8)
        prices.append(_minus_twice_likelihood(innovations, freedom, variance) + np.log(n) - normal)
    return min(prices)


def price_of_shocks(column: np.ndarray, most_lags: int) -> float:
    """Price of a whole column as one autoregression, around a constant or a line, whose innovations are of Student's law.

    By reweighted least squares given the first values, which have the spread of the column.
    """
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
    for _ in range(_STEPS):
        weighted, before = design * weight[:, None], variance
        coefficients = np.linalg.lstsq(weighted.T @ design, weighted.T @ values, rcond=None)[0]
        left = values - design @ coefficients
        variance = max(float(np.mean(weight * left**2)), floor)
        if abs(variance - before) < _SETTLED * variance:
            break
        weight = (freedom + 1.0) / (freedom + left**2 / variance)
    first = order * (np.log(2.0 * np.pi * column.var()) + 1.0)
    return _minus_twice_likelihood(left, freedom, variance) + first + (design.shape[1] + 2) * np.log(len(column))
