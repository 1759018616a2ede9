"""The algebra of segments, against dense covariances, brute force and quadrature."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.linalg import block_diag, toeplitz
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student_t

from isopleth.tasks.changes.description_length import FREEDOMS, cost_of_shocks, describe, tail_cost
from isopleth.tasks.changes.preparation import log_of_growth, step_of_repeats, without_wild_values
from isopleth.tasks.changes.segments import (
    Noise,
    SegmentationSearch,
    SegmentCosts,
    fitted_noises,
    rounding_variance,
    segment,
)

NOISES = [Noise(), Noise((0.6,)), Noise((0.7, -0.4)), Noise((-0.3, 0.5, 0.2))]


def costs_of(y: np.ndarray, noise: Noise, degree: int) -> SegmentCosts:
    return SegmentCosts(y[:, None], (noise,), degree, np.ones(len(y)))


def covariance(noise: Noise, n: int) -> np.ndarray:
    """Covariance of a stationary process with innovations of variance 1, from its impulse response."""
    response = np.zeros(4000)
    coefficients = -noise.predictors[-1][1:]
    response[0] = 1.0
    for t in range(1, len(response)):
        lags = min(t, noise.order)
        response[t] = coefficients[:lags] @ response[t - lags : t][::-1]
    return toeplitz([response[lag:] @ response[: len(response) - lag] for lag in range(n)])


@pytest.mark.parametrize("noise", NOISES)
def test_the_determinant_and_the_innovations_are_those_of_the_dense_covariance(noise):
    n = 9
    dense = covariance(noise, n)
    assert noise.log_det == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-9)
    x = np.random.default_rng(0).normal(size=n)
    left = noise.innovations(x, np.array([0, n]))
    np.testing.assert_allclose(left @ left, x @ np.linalg.solve(dense, x), rtol=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_a_series_has_the_innovations_it_was_made_of(noise):
    innovations = np.random.default_rng(1).normal(size=30)
    series = noise.series(innovations)
    np.testing.assert_allclose(noise.innovations(series, np.array([0, 30])), innovations, atol=1e-10)


@pytest.mark.parametrize("true", [Noise((0.8,)), Noise((0.6, -0.5))])
def test_the_noise_of_long_segments_is_found(true):
    rng = np.random.default_rng(2)
    parts = [true.series(rng.normal(size=3000)) + level for level in (0.0, 0.0)]
    constant, found = fitted_noises(np.stack([np.zeros(6000), np.concatenate(parts)]), np.array([0, 3000, 6000]), 3)
    assert constant.order == 0
    assert found.order >= true.order
    np.testing.assert_allclose(found.reflections[: true.order], true.reflections, atol=0.05)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("bounds", [(0, 12), (5, 17), (11, 30)])
def test_costs_are_those_of_dense_generalised_least_squares(noise, degree, bounds):
    rng = np.random.default_rng(3)
    y = np.cumsum(rng.normal(size=30))
    start, end = bounds
    costs = costs_of(y, noise, degree)
    (rss,), (cost,) = costs.parts(np.array([start]), np.array([end]))
    time = (np.arange(30) - 14.5) / 30
    design = np.column_stack([np.ones(30), time][: degree + 1])[start:end]
    weight = np.linalg.inv(covariance(noise, end - start))
    information = design.T @ weight @ design
    left = y[start:end] - design @ np.linalg.solve(information, design.T @ weight @ y[start:end])
    floor = costs.floors[0] * (end - start)
    assert rss[0] - floor == pytest.approx(left @ weight @ left, rel=1e-7)
    volume = np.ptp(y) if degree == 0 else np.ptp(y) ** 2 * 30 / (end - start)
    expected = np.linalg.slogdet(information / (2 * np.pi))[1] + 2 * np.log(volume) + noise.log_det
    assert cost[0] == pytest.approx(expected, rel=1e-7)
    whole = np.unique([0, start, end, 30])
    np.testing.assert_allclose(costs.residuals(whole)[0, start:end], left, atol=1e-8)


def test_the_cost_is_the_marginal_likelihood_under_uniform_coefficients():
    rng = np.random.default_rng(4)
    n, noise, variance = 14, Noise((0.4,)), 0.3
    time = (np.arange(n) - 6.5) / n
    y = 1.0 + 2.0 * time + np.sqrt(variance) * noise.series(rng.normal(size=n))
    law = multivariate_normal(np.zeros(n), variance * covariance(noise, n))
    extent = np.ptp(y)
    integral = dblquad(
        lambda slope, level: np.exp(law.logpdf(y - level - slope * time)) / extent**2, -3, 5, -8, 12, epsabs=1e-14
    )[0]
    costs = costs_of(y, noise, 1)
    search = SegmentationSearch(costs, 3)
    cost = search.of_segments(np.array([0]), np.array([n]), np.array([[variance]]))[0, 0]
    cost += n * np.log(2 * np.pi * variance) - n * costs.floors[0] / variance
    assert cost == pytest.approx(-2 * np.log(integral), rel=1e-6)


@pytest.mark.parametrize("degree", [0, 1])
def test_dynamic_programming_finds_what_trying_all_finds(degree):
    rng = np.random.default_rng(5)
    y = np.repeat([0.0, 4.0, 1.0], 5) + rng.normal(size=15)
    search = SegmentationSearch(costs_of(y, Noise((0.3,)), degree), 3)
    variance = np.array([[0.5], [3.0]])
    found = search.cheapest(np.arange(16), variance)
    for bounds, own in zip(found, variance, strict=True):

        def cost(inner, own=own):
            whole = np.array([0, *inner, 15])
            if np.diff(whole).min() < 3:
                return np.inf
            return search.of_segments(whole[:-1], whole[1:], own[None])[0].sum() + len(inner) * search.per_change

        everything = [inner for count in range(5) for inner in combinations(range(1, 15), count)]
        assert tuple(bounds[1:-1]) == min(everything, key=cost)


def test_the_gain_of_one_change_is_that_of_the_totals():
    y = np.random.default_rng(6).normal(size=40)
    search = SegmentationSearch(costs_of(y, Noise(), 0), 4, surcharge=1.5)
    totals = [search.total(np.array([0, place, 40])) for place in range(4, 37)]
    assert search.gain_of_one_change() == pytest.approx(search.total(np.array([0, 40])) - min(totals), rel=1e-9)


def test_the_totals_without_each_change_are_those_of_shorter_segmentations():
    y = np.random.default_rng(6).normal(size=40)
    search = SegmentationSearch(costs_of(y, Noise((0.2,)), 1), 4, surcharge=1.5)
    for inner in ([9], [9, 21], [9, 21, 30]):
        bounds = np.array([0, *inner, 40])
        expected = [search.total(np.delete(bounds, j)) for j in range(1, len(bounds) - 1)]
        total, totals = search.totals_without_each(bounds)
        np.testing.assert_allclose(totals, expected, rtol=1e-12)
        assert total == pytest.approx(search.total(bounds), rel=1e-12)


def test_weights_are_as_good_as_a_scaled_column_for_constants_without_correlation():
    """A weight of 2 at a step counts as two independent copies of half the information each: four times the square."""
    y = np.array([1.0, 4.0, 2.0, 8.0, 5.0, 7.0])
    weights = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0])
    costs = SegmentCosts(y[:, None], (Noise(),), 0, weights)
    ((level,), _), (rss,), _ = costs.fit(np.array([0]), np.array([6]))
    mean = np.average(y, weights=weights**2)
    assert level[0] == pytest.approx(mean)
    assert rss[0] == pytest.approx(np.sum(weights**2 * (y - mean) ** 2))


@pytest.mark.parametrize("degree", [0, 1])
def test_columns_together_cost_bit_for_bit_what_each_costs_alone(degree):
    rng = np.random.default_rng(16)
    noises = tuple(NOISES[c % 3] for c in range(17))
    values, weights = rng.normal(size=(60, 17)) * 10.0 ** rng.integers(-6, 6, 17), 0.5 + rng.random(60)
    bounds = np.array([0, 11, 30, 60])
    together = SegmentCosts(values, noises, degree, weights)
    search = SegmentationSearch(together, 8)
    variances = 0.1 + rng.random((3, 17))
    costs, totals = np.zeros((3, 3)), search.total(bounds)
    total = 2.0 * search.per_change + sum(noise.order for noise in noises) * np.log(60)
    for c, noise in enumerate(noises):
        alone = SegmentCosts(values[:, c : c + 1], (noise,), degree, weights)
        np.testing.assert_array_equal(together.residuals(bounds)[c], alone.residuals(bounds)[0])
        costs += SegmentationSearch(alone, 8).of_segments(bounds[:-1], bounds[1:], variances[:, c : c + 1])
        (rss,), (cost,) = alone.parts(bounds[:-1], bounds[1:])
        freedom = 60 - 3 * alone.coefficients
        total += freedom * (np.log(rss.sum() / freedom) + 1.0) + cost.sum()
    np.testing.assert_array_equal(search.of_segments(bounds[:-1], bounds[1:], variances), costs)
    assert totals == total


def test_one_number_serves_as_the_start_or_the_end_of_all_segments():
    y = np.random.default_rng(17).normal(size=(40, 3))
    costs = SegmentCosts(y, (Noise((0.4,)),) * 3, 1, np.ones(40))
    ends = np.array([9, 20, 31])
    for one, all_of_them in [
        (costs.parts(np.array([2]), ends), costs.parts(np.full(3, 2), ends)),
        (costs.parts(ends, np.array([40])), costs.parts(ends, np.full(3, 40))),
    ]:
        np.testing.assert_array_equal(one, all_of_them)


def test_rounding_is_a_twelfth_of_the_square_of_the_smallest_step():
    columns = np.array([[0.0, 0.5, 3.0, 0.5], [1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_allclose(rounding_variance(columns), [0.25 / 12 + 1e-8 * columns[0].var(), 0.0], rtol=1e-15)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_segments_do_not_depend_on_unit_and_origin(scale):
    rng = np.random.default_rng(7)
    y = (np.repeat([0.0, 3.0], 40) + rng.normal(size=80))[:, None]
    assert segment(y * scale).bounds.tolist() == segment(y).bounds.tolist()
    assert segment(y + 100.0).bounds.tolist() == segment(y).bounds.tolist()
    np.testing.assert_allclose(segment(y * scale).cost, segment(y).cost + 160 * np.log(scale), rtol=1e-6)


def test_columns_are_exchangeable_and_a_change_in_any_counts():
    rng = np.random.default_rng(8)
    y = rng.normal(size=(120, 3))
    y[70:, 1] += 3.0
    assert segment(y).changes.tolist() == segment(y[:, ::-1]).changes.tolist()
    assert abs(segment(y).changes[0] - 70) <= 1


def test_growth_in_proportion_is_told_from_a_line():
    rng = np.random.default_rng(11)
    t = np.arange(100)
    grown = np.exp(0.03 * t + 0.05 * rng.normal(size=100))
    np.testing.assert_array_equal(log_of_growth(grown), np.log(grown))
    assert log_of_growth(10.0 + 0.3 * t + rng.normal(size=100)) is None
    assert log_of_growth(rng.normal(size=100)) is None


def test_counts_that_grow_in_proportion_are_raised_by_their_smallest_value():
    rng = np.random.default_rng(14)
    counts = np.round(np.exp(np.linspace(-2.0, 6.0, 200) + 0.5 * rng.normal(size=200)))
    assert counts.min() == 0.0
    np.testing.assert_allclose(log_of_growth(counts / 500.0), np.log((counts + 1.0) / 500.0))
    np.testing.assert_allclose(log_of_growth(counts, np.array([-1.0, 3.0])), np.log([1.0, 4.0]))
    assert log_of_growth(rng.poisson(3.0, 200).astype(float)) is None
    assert log_of_growth(np.zeros(50)) is None


def test_single_wild_values_go_and_steps_stay():
    rng = np.random.default_rng(12)
    y = np.repeat([0.0, 5.0], 30) + 0.5 * rng.normal(size=60)
    wild = y.copy()
    wild[[10, 40]] = 50.0, -50.0
    cleaned = without_wild_values(wild)
    assert np.abs(cleaned[[10, 40]] - [0.0, 5.0]).max() < 4.0
    np.testing.assert_allclose(np.mean(cleaned[30:]) - np.mean(cleaned[:30]), 5.0, atol=0.5)
    np.testing.assert_array_equal(without_wild_values(np.repeat([0.0, 5.0], 30)), np.repeat([0.0, 5.0], 30))


@pytest.mark.parametrize("law", [student_t(3), student_t(5), norm])
def test_the_gain_of_tails_is_that_of_the_most_likely_student_law(law):
    x = law.rvs(size=400, random_state=0)
    x /= np.sqrt(np.mean(x**2))

    def cost(freedom):
        found = minimize_scalar(
            lambda log_scale: -2.0 * student_t.logpdf(x, freedom, scale=np.exp(log_scale)).sum(), (-1.0, 0.0)
        )
        return found.fun + np.log(400)

    gain = min(0.0, min(map(cost, FREEDOMS)) - 400 * (1.0 + np.log(2.0 * np.pi)))
    assert tail_cost(x**2) == pytest.approx(gain, abs=0.02 * abs(gain))
    assert (gain < 0.0) == (law is not norm)


def test_the_cost_of_shocks_at_many_degrees_of_freedom_is_near_the_normal_one():
    """Student's law with 10 degrees of freedom is the closest here; the normal cost is not beaten by much on normal noise."""
    y = np.random.default_rng(13).normal(size=400)
    normal = 400 * (np.log(2 * np.pi * y.var()) + 1.0)
    assert normal - 5.0 < cost_of_shocks(y, range(3), 0.0) < normal + 40.0
    assert tail_cost(y**2) > -10.0
    heavy = np.random.default_rng(14).standard_t(2, size=400)
    assert tail_cost(heavy**2) < -100.0


@pytest.mark.parametrize("lags", [0, 1])
def test_the_cost_of_shocks_is_the_maximised_likelihood_with_log_n_for_each_parameter(lags):
    """The likelihood of Student's distribution is maximised by a general optimiser over coefficients and scale."""
    rng = np.random.default_rng(17)
    y = Noise((0.7,) * lags).series(rng.standard_t(2, size=120)) + 0.02 * np.arange(120)
    costs = []
    for degree, order, freedom in product((0, 1), range(lags + 1), FREEDOMS):
        past = [y[order - i : len(y) - i] for i in range(1, order + 1)]
        time = [np.linspace(-1.0, 1.0, len(y) - order)] * degree
        design = np.column_stack([np.ones(len(y) - order), *time, *past])

        def minus_twice(parameters, design=design, order=order, freedom=freedom):
            left = y[order:] - design @ parameters[1:]
            return -2.0 * student_t.logpdf(left, freedom, scale=np.exp(parameters[0])).sum()

        start = np.concatenate([[0.0], np.linalg.lstsq(design, y[order:], rcond=None)[0]])
        found = minimize(minus_twice, start, method="Nelder-Mead", options={"maxiter": 20_000, "fatol": 1e-6})
        first = order * (np.log(2.0 * np.pi * y.var()) + 1.0)
        costs.append(found.fun + first + (design.shape[1] + 2) * np.log(len(y)))
    assert cost_of_shocks(y, range(lags + 1), 0.0) == pytest.approx(min(costs), abs=0.02)


@pytest.mark.parametrize("seed", [0, 1])
def test_rounding_counts_in_shocks_as_in_segments(seed):
    """A leak beside a walk in coarse steps: shocks whose variance lacked that of rounding seemed to be cheaper than a slope."""
    walk = 0.15 * np.cumsum(np.random.default_rng(seed).normal(size=4000))
    memory = np.round(2000.0 + walk + 0.05 * np.maximum(np.arange(4000) - 2500, 0), 1)
    found = describe(memory[:, None])
    assert not found.shocks
    assert len(found.location.changes) == 1
    assert abs(found.location.changes[0] - 2500) < 100


def test_shocks_that_fade_are_no_changes_and_lasting_ones_are():
    rng = np.random.default_rng(15)
    shocks = (rng.random(300) < 0.05) * rng.uniform(5.0, 20.0, 300) + 0.3 * rng.normal(size=300)
    fading = Noise((0.85,)).series(shocks)[:, None]
    assert len(segment(fading).changes) > 0
    assert len(describe(fading).location.changes) == 0
    steps = (np.repeat([0.0, 6.0, 1.0], 100) + rng.normal(size=300))[:, None]
    assert len(describe(steps).location.changes) == 2


def test_a_few_shocks_that_fade_slowly_are_no_changes_and_jumps_of_a_walk_are():
    """Few shocks hardly make tails heavy; with places of their own they are cheaper than segments that begin anew."""
    places = [60, 112, 150]
    for seed in range(4):
        noise = np.random.default_rng(seed).normal(size=190)
        noise[places] += [18.0, 16.0, 20.0]
        fading = describe(Noise((0.93,)).series(noise)[:, None])
        assert fading.shocks
        assert not len(fading.location.changes)
        noise[places] = 0.0
        jump = describe((np.cumsum(noise) - 60.0 * (np.arange(190) >= 112))[:, None])
        assert jump.location.changes.tolist() == [112]


def test_the_cost_of_shocks_at_places_does_not_depend_on_the_unit():
    y = np.random.default_rng(18).normal(size=120)
    y[[40, 80]] += 12.0
    places = np.array([40, 80])
    own, thousand = cost_of_shocks(y, [0], 0.0, places), cost_of_shocks(1000.0 * y, [0], 0.0, places)
    assert thousand - own == pytest.approx(2.0 * 120 * np.log(1000.0))
    rest = np.delete(y, places)
    assert own - cost_of_shocks(rest, [0], 0.0) == pytest.approx(
        4.0 * np.log(np.ptp(y)) + 2.0 * np.log(120 / 118), abs=0.5
    )


def test_the_step_in_which_values_are_recorded_is_found():
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    coarse = np.round(4.0 * values) / 4.0
    assert step_of_repeats(coarse) == pytest.approx(0.25)
    assert step_of_repeats(3.0 + 0.1 * (values > 0.0)) == pytest.approx(0.1)
    coarse[::20] += rng.normal(size=10)  # values that fill gaps
    assert step_of_repeats(coarse + 1e-13 * rng.normal(size=200)) == pytest.approx(0.25)
    for none in (values, np.where(np.arange(200) < 150, 0.5, values), np.zeros(200)):
        assert step_of_repeats(none) == 0.0
    stuck = np.concatenate([np.zeros(50), values[:100], np.full(50, 0.7)])
    assert step_of_repeats(stuck) == 0.0


@pytest.mark.parametrize("degree", [0, 1])
def test_parts_beside_consecutive_places_are_those_of_the_segments(degree):
    y = np.random.default_rng(4).normal(size=(60, 3))
    costs = SegmentCosts(y, (Noise(), Noise((0.6,)), Noise((0.7, -0.4))), degree, np.ones(60))
    places = np.arange(20, 41)
    start, end = np.concatenate([np.full(21, 3), places]), np.concatenate([places, np.full(21, 55)])
    for beside, gathered in zip(costs.parts_beside(3, range(20, 41), 55), costs.parts(start, end), strict=True):
        np.testing.assert_array_equal(beside, gathered)


def test_each_change_of_a_long_series_is_at_its_best_place_between_its_neighbours():
    rng = np.random.default_rng(5)
    n, true = 6000, np.array([611, 650, 2500, 4313])
    y = np.repeat([0.0, 2.0, 1.0, -1.0, 0.0], np.diff([0, *true, n])) + rng.normal(size=n)
    search = SegmentationSearch(costs_of(y, Noise(), 0), 3)
    bounds, cost = search.best(200)
    assert len(bounds) == len(true) + 2
    assert np.abs(bounds[1:-1] - true).max() <= 8
    for j in range(1, len(bounds) - 1):
        for step in (-40, -7, -2, -1, 1, 2, 7):
            moved = bounds.copy()
            moved[j] += step
            if (np.diff(moved) >= 3).all():
                assert search.total(moved) >= cost
    for j in range(1, len(bounds) - 1):
        assert search.total(np.delete(bounds, j)) > cost


def test_levels_beside_a_short_one_are_no_lines():
    """A grid of places that is wider than a short level finds it with lines only; constants are compared at its places too."""
    shares = np.random.default_rng(5)
    load = 0.3 + np.exp(-0.5 * ((np.arange(10080) % 1440 / 60.0 - 14.0) / 4.0) ** 2)
    requests = shares.poisson(3000.0 * load)
    steps = np.arange(10080)
    share = 0.004 * np.where((steps >= 3500) & (steps < 3540), 12.0, 1.0) * np.where(steps >= 7740, 2.0, 1.0)
    found = describe((shares.binomial(requests, share) / requests)[:, None])
    assert found.location.degree == 0
    assert found.location.changes.tolist() == [3500, 3540, 7740]


def test_two_levels_that_take_turns_are_cheaper_than_five():
    places = np.array([60, 120, 180, 240])
    for seed in range(3):
        values = np.random.default_rng(seed).normal(size=(300, 1)) + 2.5 * (np.arange(300) // 60 % 2)[:, None]
        found, five = segment(values), segment(values, degrees=(0,))
        assert np.abs(found.changes - places).max() <= 8
        assert found.cost < five.cost - 8.0


def test_two_levels_cost_what_least_squares_of_one_indicator_cost():
    rng = np.random.default_rng(0)
    y, noise, bounds = rng.normal(size=60), Noise((0.5,)), np.array([0, 15, 33, 48, 60])
    costs = costs_of(y, noise, 0)
    dense = block_diag(*(covariance(noise, length) for length in np.diff(bounds)))
    second = np.repeat([0.0, 1.0, 0.0, 1.0], np.diff(bounds))
    design = np.column_stack([1.0 - second, second])
    precision = np.linalg.inv(dense)
    information = design.T @ precision @ design
    left = y - design @ np.linalg.solve(information, design.T @ precision @ y)
    rss, cost = costs.parts_of_two_levels(bounds)
    assert rss.sum() - 60 * costs.floors[0] == pytest.approx(left @ precision @ left)
    free = 2.0 * (2.0 * np.log(np.ptp(y)) - np.log(2.0 * np.pi))
    expected = np.linalg.slogdet(information)[1] + np.linalg.slogdet(dense)[1] + free
    assert cost.sum() == pytest.approx(expected)


def test_a_turn_that_is_none_is_left_out_of_two_levels():
    values = np.random.default_rng(1).normal(size=200) + 4.0 * (np.arange(200) // 50 % 2)
    search = SegmentationSearch(costs_of(values, Noise(), 0), 3)
    bounds, cost = search.of_two_levels()
    assert bounds.tolist() == [0, 50, 100, 150, 200]
    assert cost == search.total_of_two_levels(bounds) < search.total(bounds)
