"""Regression of numbers of which some are known as intervals: what it says beyond a limit, against the truth."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr

from isopleth.core.censored_regression import CensoredRegression

INF = np.inf


def limited(y, limit):
    """Ends of the cells of numbers of which those below a limit are hidden."""
    return np.where(y < limit, -INF, y), np.where(y < limit, limit, y)


def made(shape, n, seed):
    """Three columns, and a number that is a function of a line of two of them with noise."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 3))
    line = (A[:, 0] + 0.8 * A[:, 1]) / np.sqrt(1.64) + 0.25 * rng.normal(size=n)
    return A, {
        "linear": 10.0 + 2.0 * line,
        "logarithm": 3.0 * np.log(np.maximum(8.0 + 2.0 * line, 0.05)),
        "exponential": np.exp(0.8 * line),
        "square": (3.0 + line) ** 2,
        "flat": 10.0 + 2.0 * rng.normal(size=n),
    }[shape]


@pytest.mark.parametrize("shape", ["linear", "logarithm", "exponential", "square", "flat"])
def test_intervals_below_a_limit_hold_the_truth_whatever_the_scale_of_the_line(shape):
    held = []
    for seed in range(6):
        A, y = made(shape, 200, 40 + seed)
        limit = np.quantile(y, 0.25)
        some = y < limit
        low, high = limited(y, limit)
        found = CensoredRegression.fit(A, low, high, np.ones(200)).between(
            A[some], low[some], high[some], np.array([0.1, 0.9])
        )
        assert (found[:, 1] <= limit).all()
        held.append(((found[:, 0] <= y[some]) & (y[some] <= found[:, 1])).mean())
    assert 0.68 <= np.mean(held) <= 0.92


def test_the_line_of_the_numbers_as_they_are_is_the_likeliest_one():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(400, 2))
    y = 1.0 + A @ [1.5, -0.5] + rng.normal(size=400)
    low, high = limited(y, 0.0)
    low[:3], high[:3] = -INF, [0.5, 1.0, 2.0]
    law = CensoredRegression.fit(A, low, high, np.ones(400))
    line = next(line for line in law.lines if line.transform.parameter == 0.0)
    far = np.quantile(low[low == high], 0.95)
    low = np.where((low == high) & (low > far), far, low)
    high = np.where(low == far, INF, high)

    def loss(theta):
        mean, deviation = theta[0] + A @ theta[1:3], np.exp(theta[3])
        t, u = (low - mean) / deviation, (high - mean) / deviation
        known = low == high
        left = log_ndtr(np.where(np.isinf(low), u, -t))
        return -np.where(known, -0.5 * np.where(known, t, 0.0) ** 2 - theta[3], left).sum()

    best = minimize(loss, [0.0, 0.0, 0.0, 0.0], method="BFGS").x
    slopes = line.slopes / law.scale
    level = line.transform.centre + line.transform.unit * (line.intercept - law.centre @ slopes)
    np.testing.assert_allclose([level, *line.transform.unit * slopes], best[:3], atol=0.02)
    np.testing.assert_allclose(line.transform.unit * line.deviation, np.exp(best[3]), rtol=0.02)


def test_answers_follow_units_and_neither_order_nor_copies_nor_last_digits():
    A, y = made("logarithm", 120, 3)
    low, high = limited(y, np.quantile(y, 0.3))
    some, levels = low != high, np.array([0.1, 0.5, 0.9])

    def answers(A, low, high, weights, unit=1.0):
        law = CensoredRegression.fit(A, unit * low, unit * high, weights)
        return law.between(A[low != high], unit * low[low != high], unit * high[low != high], levels)

    once, order = answers(A, low, high, np.ones(120)), np.random.default_rng(0).permutation(120)
    assert once.shape == (some.sum(), 3)
    for unit in (1000.0, 1e160, 1e-160):
        np.testing.assert_allclose(answers(A, low, high, np.ones(120), unit), unit * once, rtol=1e-6)
    moved = answers(A[order], low[order], high[order], np.ones(120))
    np.testing.assert_allclose(np.sort(moved, axis=0), np.sort(once, axis=0), rtol=1e-6)
    np.testing.assert_allclose(answers(A + 1e-12, low, high, np.ones(120)), once, rtol=1e-6)


@pytest.mark.parametrize("numbers", [[], [3.0], [3.0, 3.0, 4.0]])
def test_few_known_numbers_are_enough(numbers):
    low, high = np.array([*numbers, -INF, -INF]), np.array([*numbers, 0.5, 1.0])
    A = np.random.default_rng(0).normal(size=(len(low), 2))
    found = CensoredRegression.fit(A, low, high, np.ones(len(low))).between(A, low, high, np.array([0.1, 0.9]))
    assert ((found >= 0.0) & (found <= high[:, None])).all()
