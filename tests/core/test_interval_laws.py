"""Laws of numbers of which some are known as intervals, against SciPy's, and what comparisons merge."""

import numpy as np
import pytest
from scipy.stats import CensoredData, norm, truncnorm

from isopleth.core.interval_cells import Coarsening, IntervalCells, coarsened, coarsened_as
from isopleth.core.interval_laws import (
    IntervalPoints,
    PowerNormal,
    log_mass,
    normal_moments,
    truncated_normal_quantile,
)

INF = np.inf


def limited(y, limit):
    """Ends of the cells of numbers of which those below a limit are hidden."""
    return np.where(y < limit, -INF, y), np.where(y < limit, limit, y)


def test_normal_laws_within_intervals_are_those_of_scipy():
    low, high = np.array([-INF, -1.0, 2.0, 8.0, -INF, 0.3]), np.array([-1.5, 0.5, INF, 9.0, 1.0, 0.300001])
    np.testing.assert_allclose(log_mass(low, high), np.log(norm.sf(low) - norm.sf(high)), rtol=1e-6)
    law = truncnorm(np.maximum(low, -40), np.minimum(high, 40))
    mean, variance = normal_moments(low, high)
    np.testing.assert_allclose(mean, law.mean(), rtol=1e-6)
    np.testing.assert_allclose(variance[:-1], law.var()[:-1], rtol=1e-5)
    for level in (0.1, 0.9):
        np.testing.assert_allclose(truncated_normal_quantile(np.full(6, level), low, high), law.ppf(level), rtol=1e-6)
    far = truncated_normal_quantile(np.array([0.1, 0.9]), np.array([50.0, -INF]), np.array([INF, -60.0]))
    np.testing.assert_allclose(far, [50.0 - np.log(0.9) / 50.0, -60.0 + np.log(0.9) / 60.0], rtol=1e-5)


@pytest.mark.parametrize("side", ["below", "above", "both"])
def test_the_law_of_a_column_is_the_likeliest_one(side):
    y = np.random.default_rng(0).normal(0.3, 2.0, 300)
    low, high = y.copy(), y.copy()
    if side != "above":
        low[y < -1.0], high[y < -1.0] = -INF, -1.0
    if side != "below":
        low[y > 2.5], high[y > 2.5] = 2.5, INF
    law = PowerNormal.fit(low, high, np.ones(300))
    a, b = law.judged(low, high, np.ones(300))
    mean, deviation = norm.fit(_censored(a, b))
    assert law.power == 1.0
    np.testing.assert_allclose([law.unit * law.mean, law.unit * law.deviation], [mean, deviation], rtol=1e-3)


def _censored(low, high):
    left, right = np.isinf(low), np.isinf(high)
    return CensoredData(uncensored=low[low == high], left=high[left], right=low[right & ~left])


def test_what_is_below_a_limit_goes_on_as_what_is_above():
    rng = np.random.default_rng(1)
    for y in (np.exp(rng.normal(size=900)), rng.gamma(2.0, size=900), rng.normal(5.0, 1.0, 900)):
        limit = np.quantile(y, 0.15)
        low, high = limited(y, limit)
        law = PowerNormal.fit(low, high, np.ones(900))
        found = law.means(low[y < limit], high[y < limit])
        assert abs(found.mean() / y[y < limit].mean() - 1.0) < 0.1
        assert ((found > 0.0) & (found < limit)).all()
        other = PowerNormal.fit(1000.0 * low, 1000.0 * high, np.ones(900))  # another unit
        np.testing.assert_allclose(
            other.means(1000.0 * low[:1], 1000.0 * high[:1]), 1000.0 * law.means(low[:1], high[:1]), rtol=1e-5
        )


def test_weights_are_repeated_rows_and_few_numbers_are_enough():
    y = np.random.default_rng(3).normal(5.0, 1.0, 40)
    low, high = limited(y, 4.2)
    twice = PowerNormal.fit(np.tile(low, 2), np.tile(high, 2), np.ones(80))
    once = PowerNormal.fit(low, high, np.full(40, 2.0))
    np.testing.assert_allclose([once.mean, once.deviation], [twice.mean, twice.deviation], rtol=1e-6)
    for numbers in ([], [3.0]):
        low, high = np.array([*numbers, -INF, -INF]), np.array([*numbers, 0.5, 1.0])
        found = PowerNormal.fit(low, high, np.ones(len(low))).means(low, high)
        assert ((found >= 0.0) & (found <= high)).all()


def test_cells_that_a_limit_hides_are_equal_in_all_rows():
    rows = np.array([[0.3], [np.nan], [np.nan], [0.7], [1.2], [np.nan], [9.0], [np.nan]])
    lower = np.array([np.nan, -INF, -INF, np.nan, np.nan, 8.0, np.nan, np.nan])[:, None]
    upper = np.array([np.nan, 0.5, 1.0, np.nan, np.nan, INF, np.nan, np.nan])[:, None]
    limits = IntervalCells(np.array([0]), lower, upper)
    found, stretches = coarsened(rows, limits)
    np.testing.assert_array_equal(found[:, 0], [1.0, 1.0, 1.0, 1.0, 1.2, 8.0, 8.0, np.nan])
    again, lost = coarsened_as(
        rows[:3], IntervalCells(np.array([0]), lower[:3], np.array([[np.nan], [0.5], [2.0]])), stretches
    )
    np.testing.assert_array_equal(again[:, 0], [1.0, 1.0, np.nan])
    assert lost[:, 0].tolist() == [False, False, True]
    assert Coarsening.of(np.array([0.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.5])).value.tolist() == [0.5, 2.0]


def test_intervals_of_rows_and_columns():
    limits = IntervalCells(np.array([1]), np.array([[np.nan], [-INF]]), np.array([[np.nan], [2.0]]))
    assert (len(limits), limits.rows.tolist()) == (1, [1])
    assert limits.take([1, 1]).upper.ravel().tolist() == [2.0, 2.0]
    assert limits.without(0, 2).columns.tolist() == [0]
    assert len(limits.without(1, 2)) == 0
    both = limits.below(IntervalCells(np.array([0]), np.array([[3.0]]), np.array([[INF]])))
    assert (both.columns.tolist(), len(both), both.of(0)[0].tolist()) == ([0, 1], 2, [2])
    points = IntervalPoints({})(np.array([[0.0, 1.0], [0.0, np.nan]]), limits)
    assert points[1, 1] == 2.0
