"""Shocks instead of changes: innovations of Student's law, by which a process may jump as often as it likes."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from isopleth.tasks.segmentation.costs import rounding_variance

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
