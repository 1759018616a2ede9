"""A weak change of level against what chance saves, and a step against an autoregression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import null_space, toeplitz
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes import description_length as chance
from isopleth.tasks.changes import local_scatter
from isopleth.tasks.changes.description_length import describe
from isopleth.tasks.changes.embedding import Blocks
from isopleth.tasks.changes.local_scatter import beside_local_scatter
from isopleth.tasks.changes.scan import _MEMORIES, ContrastScan, _costs_of_memory
from isopleth.tasks.changes.segments import Noise, SegmentationSearch, SegmentCosts


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(8), marks=pytest.mark.slow)])
def test_a_small_step_is_found_and_a_line_is_not_taken_for_one(seeds):
    """A line describes the step nearly as well."""
    steps = lines = 0
    for seed in seeds:
        noise = np.random.default_rng(seed).normal(size=300)
        places = ChangePointDetector(random_state=0).fit_predict(noise + np.repeat([0.0, 1.1], 150))
        steps += len(places) == 1 and abs(places[0] - 150) <= 20
        lines += len(ChangePointDetector(random_state=0).fit_predict(noise + np.linspace(0.0, 2.0, 300))) > 0
    assert steps >= 0.75 * len(seeds)
    assert lines <= 0.25 * len(seeds)


def test_the_margin_is_that_of_every_place_by_enumeration():
    rng = np.random.default_rng(3)
    series = rng.normal(size=(40, 1)) + np.repeat([0.0, 3.0], 20)[:, None]
    weights, extents, n = np.ones(40), np.array([np.ptp(series)]), 40
    literal_without, literal_with = [], []
    for degree in (0, 1):
        search = SegmentationSearch(SegmentCosts(series, (Noise(),), degree, weights, extents), degree + 5)
        literal_without.append(search.total(np.array([0, n])))
        literal_with.append(min(search.total(np.array([0, p, n])) for p in range(degree + 5, n - degree - 4)))
        assert search.best_change()[1] == pytest.approx(literal_with[-1], rel=1e-12)
        assert search.total(search.best_change()[0]) == pytest.approx(literal_with[-1], rel=1e-12)
    # The noise that is fitted may only make both descriptions shorter, and the line is the shortest without a change.
    margin = chance._margin(series, weights, extents)
    assert 0.0 < margin <= min(literal_without) - min(literal_with) + 1e-9


def test_margins_by_chance_are_negative_and_larger_for_a_walk():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 1))
    calm = describe(noise, (np.inf, np.inf))
    walk = describe(np.cumsum(noise, axis=0), (np.inf, np.inf))
    of_noise, of_walk = (chance.null_margins(one, 200, np.random.default_rng(1)) for one in (calm, walk))
    assert len(of_noise) == chance.RUNS
    assert (np.diff(of_noise) >= 0.0).all()
    assert np.quantile(of_noise, 0.95) < 0.0 < np.quantile(of_walk, 0.98)


def test_margins_by_chance_of_a_line_are_those_of_such_lines():
    def rising(seed):
        noise = np.random.default_rng(seed).normal(size=(200, 1))
        return describe(noise + np.linspace(-4.0, 4.0, 200)[:, None], (np.inf, np.inf))

    by_chance = chance.null_margins(rising(1), 200, np.random.default_rng(1))
    drawn = [chance.margin_of(rising(seed)) for seed in range(100, 115)]
    assert np.median(by_chance) == pytest.approx(np.median(drawn), abs=3.0)  # about -13 both; -2 for far steeper lines


@pytest.mark.slow
def test_simulations_end_early_only_where_the_verdict_is_clear(monkeypatch):
    """The answers are those of all simulations; a series without a change is left after a few of them."""
    counted, whole = [], chance.null_margins

    def counting(*arguments):
        found = whole(*arguments)
        counted.append(len(found))
        return found

    def never_early(calm, length, rng, tick, own, most):
        return whole(calm, length, rng, tick)

    for seed, step in enumerate([0.0, 0.0, 0.7, 1.0]):
        series = np.random.default_rng(seed).normal(size=150) + np.repeat([0.0, step], 75)
        fits = []
        for way in (counting, never_early):
            monkeypatch.setattr("isopleth.tasks.changes.legs.location.null_margins", way)
            fits.append(ChangePointDetector(random_state=0).fit(series))
        np.testing.assert_array_equal(fits[0].change_points_, fits[1].change_points_)
        np.testing.assert_array_equal(fits[0].p_values_, fits[1].p_values_)
    assert counted[:2] == [0, 0]


def test_the_bias_of_an_autocorrelation_is_corrected():
    rng = np.random.default_rng(0)
    series = lfilter([1.0], [1.0, -0.8], rng.normal(size=(400, 140)), axis=1)[:, 100:]
    rest = series - series.mean(axis=1, keepdims=True)
    estimates = np.sum(rest[:, 1:] * rest[:, :-1], axis=1) / np.sum(rest[:, :-1] ** 2, axis=1)
    corrected = [chance._without_bias(Noise((float(a),)), 40, 0).reflections[0] for a in estimates]
    assert abs(np.mean(corrected) - 0.8) < 0.5 * abs(np.mean(estimates) - 0.8)
    assert chance._without_bias(Noise(), 40, 1) == Noise()


def test_blocks_that_are_alike_over_some_time_have_no_step(monkeypatch):
    # Without the comparison with what wanders beside a step, which scans of cycles make in place of that with an autoregression.
    monkeypatch.setattr("isopleth.tasks.changes.scan._MANY_BLOCKS", 1000)
    alarms, steps = {True: 0, False: 0}, {True: 0, False: 0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        alike = lfilter([1.0], [1.0, -0.8], rng.normal(size=160))[40:, None] + 0.7 * rng.normal(size=(120, 1))
        step = rng.normal(size=(120, 1)) + np.repeat([0.0, 1.5], 60)[:, None]
        blocks = Blocks(5.0, 120, 1)
        for remembers in (True, False):
            # Blocks are not joined here, so that the comparison with an autoregression decides alone.
            scans = [ContrastScan(rows, blocks, np.random.default_rng(1), 100.0, remembers) for rows in (alike, step)]
            alarms[remembers] += len(scans[0].changes(0.05)) > 0
            steps[remembers] += any(abs(one.step - 300) <= 30 for one in scans[1].changes(0.05))
    assert alarms[False] >= 3
    assert alarms[True] <= alarms[False] // 3
    assert steps[True] == steps[False] == 6


def test_a_burst_of_scatter_is_no_level_and_a_short_level_is_one(monkeypatch):
    rng = np.random.default_rng(3)
    template = describe(rng.normal(size=(400, 1)))
    places = replace(template.location, bounds=np.array([0, 200, 206, 400]))
    level, burst = rng.normal(size=(2, 20, 400, 1))
    level[:, 200:206] += 8.0
    burst[:, 194:212] *= 6.0
    burst[:, 200:206] = np.abs(burst[:, 200:206]) + 3.0

    def kept(series):
        return sum(
            len(beside_local_scatter(replace(template, prepared=one, location=places), 5.0)) == 2 for one in series
        )

    assert kept(level) == 20
    assert kept(burst) <= 4
    monkeypatch.setattr(local_scatter, "_local_precision", lambda steps, changes, recorded: np.ones(len(steps)))
    assert kept(burst) >= 16  # with the same weight for all steps


@pytest.mark.parametrize("places", [[50], [30, 80]])
@pytest.mark.parametrize(("phi", "share", "size"), [(0.0, 0.0, 0.0), (0.9, 0.8, 0.0), (0.6, 0.3, 2.0), (0.0, 0.0, 1.0)])
def test_memory_and_steps_cost_what_dense_covariances_give(phi, share, size, places):
    """Cosine coefficients are an approximation: whole likelihoods of the same memories are within a few nats."""
    n, rng = 120, np.random.default_rng(0)
    memory = lfilter([1.0], [1.0, -phi], rng.normal(size=n + 100))[100:] * np.sqrt(1.0 - phi**2)
    steps = (np.arange(n)[:, None] >= places).astype(float)
    line = np.sqrt(1.0 - share) * memory + np.sqrt(share) * rng.normal(size=n) + size * steps[:, 0]
    turns = steps @ (-1.0) ** np.arange(len(places))[:, None]
    contrasts = null_space(np.ones((1, n))).T
    costs = []
    for one, noise in _MEMORIES:
        covariance = (1.0 - noise) * toeplitz(one ** np.arange(n)) + noise * np.eye(n)
        root = np.linalg.cholesky(contrasts @ covariance @ contrasts.T)
        fixed = 2.0 * np.log(np.diag(root)).sum() + np.log(n) * np.count_nonzero([one, noise])
        white, own = np.linalg.solve(root, contrasts @ line), []
        for design in (steps[:, :0], steps, turns):
            jumps = np.linalg.solve(root, contrasts @ design)
            left = white - jumps @ np.linalg.lstsq(jumps, white, rcond=None)[0]
            own.append((n - 1) * np.log(left @ left) + fixed + np.log(n) * design.shape[1])
        costs.append(own)
    expected, of_places = np.min(costs, axis=0), 2.0 * len(places) * np.log(n)
    alone, with_steps = _costs_of_memory(line, np.array(places))
    assert alone - with_steps == pytest.approx(expected[0] - expected[1:].min() - of_places, abs=2.0)
