"""Smooth curves and long memory as alternatives to changes of level and slope, by regressions with fractional noise."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.interpolate import BSpline
from scipy.signal import fftconvolve

from isopleth.tasks.segmentation.costs import STABLE, rounding_variance

# Degrees of freedom of the cubic splines that are compared.
_FREEDOMS = range(4, 11)
_CUBIC = 3
# Means of blocks are compared in longer series: a spline of few degrees of freedom and a change of level are the same in these.
_MOST_ROWS = 5000
# Times that coefficients and autocorrelation are fitted in turn.
_ROUNDS = 3
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
    """Yield the designs of steps, hinges and lines that change at `places`."""
    at = np.arange(len(time))[:, None]
    steps = (at >= places).astype(np.float64)
    hinges = np.maximum(at - places, 0.0) / len(time)
    level, line = np.ones((len(time), 1)), time[:, None]
    yield np.column_stack([level, steps])
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
    both = _differenced(np.column_stack([design, rows]), order)
    design, rows = both[:, : design.shape[1]], both[:, design.shape[1] :]
    for column, floor in zip(rows.T, floors, strict=True):
        phi = 0.0
        for _ in range(_ROUNDS):
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
