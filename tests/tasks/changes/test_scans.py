"""Mean embeddings of windows against sums one by one, the scan's level, and bridges over gaps against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.core.budget import Budget
from isopleth.operators.features import GaussianFeatures
from isopleth.tasks.changes.autocorrelation import period_of
from isopleth.tasks.changes.embedding import (
    Blocks,
    _filled,
    _Functions,
    _weights,
    blocks_of,
    embedded,
    lag_windows,
    moments,
    over_blocks,
)
from isopleth.tasks.changes.legs import cycles as of_cycles
from isopleth.tasks.changes.legs.leg import Candidate, one_a_gap
from isopleth.tasks.changes.legs.location import seen_in_cycles
from isopleth.tasks.changes.naming import kind_of_location, kind_of_shape
from isopleth.tasks.changes.preparation import _autoregression, _bridge, filled_gaps
from isopleth.tasks.changes.scan import (
    ContrastScan,
    _components,
    _pvalue,
    _scanned,
    _whitened,
    _whitening,
)


def test_windows_of_each_column_have_standard_units():
    values = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 5.0]
    windows = lag_windows(values, 10, True).reshape(51, 2, 10)
    np.testing.assert_allclose(windows.mean(axis=2), 0.0, atol=1e-12)
    spread = values[7:17].std(axis=0)
    np.testing.assert_allclose(windows[7].std(axis=1), spread / (spread + 0.1))


def test_sums_of_functions_are_those_of_a_loop_over_windows():
    rng = np.random.default_rng(1)
    values, lag = rng.normal(size=(700, 1)), 4
    count = 700 - lag + 1
    places = np.array([30, 350, 640])
    landmarks = np.concatenate([lag_windows(values[p : p + lag], lag, False) for p in places])
    edges = np.array([0.0, 10.25, 255.5, 256.0, 300.75, count])
    functions = _Functions(values, lag, False, places, GaussianFeatures(landmarks, 1.5))
    sums = np.diff(functions.until(edges, Budget(1.0)), axis=0)
    weights = _weights(edges, places, lag, count)
    windows = lag_windows(values, lag, False)
    for column, place in enumerate(places):
        for number, scale in enumerate(1.5 / np.sqrt(2.0) ** np.arange(3)):
            total, weight = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
            for t in range(count):
                if abs(t - place) < lag:
                    continue
                share = np.diff(np.clip(edges, t, t + 1))
                total += share * np.exp(-np.sum((windows[t] - windows[place]) ** 2) / (2.0 * scale**2))
                weight += share
            np.testing.assert_allclose(sums[:, number, column], total, atol=1e-9)
            np.testing.assert_allclose(weights[:, column], weight, atol=1e-9)


def test_means_of_too_few_windows_are_those_of_the_same_part_beyond_a_chunk():
    means = np.arange(24.0)[:, None]  # two parts of twelve blocks
    enough = np.ones((24, 1), dtype=bool)
    enough[[0, 1, 10, 22]] = False
    expected = means[:, 0].copy()
    expected[[0, 1, 10, 22]] = [10.0 + 2.0, 11.0, 20.0, 12.0]  # blocks 6, 5, 10 and 6: five away, if these are known
    np.testing.assert_allclose(_filled(means, enough, 2)[:, 0], expected)
    assert not _filled(means, np.zeros((24, 1), dtype=bool), 2).any()


def test_blocks_at_the_ends_of_a_season_are_no_more_alike_than_others():
    """Windows that do not count there were filled with those of the next blocks, so that first blocks seemed to have changed."""
    season, blocks = np.random.default_rng(0).normal(0.0, 2.0, 12), blocks_of(468, 12.0, 12, 1000)
    ends, inside = 0.0, 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = np.resize(season, 468) + rng.normal(0.0, 0.3, 468)
        parts = embedded((values / values.std())[:, None], [12], blocks, rng, normal=True)
        white = _whitened(_components(over_blocks(parts, blocks.parts))[0][None])[0]
        four = np.array([np.sum((white - white.mean(axis=0))[i : i + 4].sum(axis=0) ** 2) for i in range(36)])
        ends, inside = ends + four[[0, -1]].mean(), inside + four[6:-6].mean()
    assert ends < 1.5 * inside


def test_only_blocks_that_are_neighbours_in_the_series_count_for_the_scatter_of_shuffled_ones():
    rows = np.random.default_rng(5).normal(size=(1, 12, 2))
    order = np.array([[4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11]])
    white = _whitening(rows[:, order[0]], np.diff(order) == 1)[0]
    steps = np.concatenate([np.diff(rows[0, start : start + 4], axis=0) for start in (0, 4, 8)])
    covariance = steps.T @ steps / (2 * len(steps))
    covariance += 0.1 * np.trace(covariance) / 2 * np.eye(2)
    np.testing.assert_allclose(white @ covariance @ white.T, np.eye(2), atol=1e-9)


def test_blocks_are_as_many_as_asked_for():
    assert blocks_of(400, 20.0, 40, 1000) == Blocks(10.0, 40, 8)
    assert blocks_of(10_000, 12.5, 40, 1000) == Blocks(12.5, 800, 8)
    assert blocks_of(100_000, 12.5, 40, 1000).length == 100.0


@pytest.mark.parametrize("period", [12.0, 17.3])
def test_the_period_is_the_shortest_one(period):
    t = np.arange(1000)
    cycle = np.sin(2 * np.pi * t / period) + 0.7 * np.sin(4 * np.pi * t / period + 1.0)
    found, height, sureness = period_of((cycle + 0.2 * np.random.default_rng(2).normal(size=1000))[:, None])
    assert found == pytest.approx(period, abs=0.3)
    assert height > 0.8
    assert sureness > 10.0


def test_a_ripple_on_a_slow_cycle_is_not_its_period():
    t = np.arange(3000)
    for seed in range(3):
        noise = 0.1 * np.random.default_rng(seed).normal(size=3000)
        values = np.sin(2 * np.pi * t / 150.0) + 0.3 * np.sin(2 * np.pi * t / 3.5) + noise
        assert period_of(values[:, None])[0] == pytest.approx(150.0, abs=5.0)


def test_a_pair_of_spikes_is_no_sure_period():
    spikes = np.zeros(2000)
    spikes[[500, 550, 1200]] = 5.0, 5.0, -4.0
    period, height, sureness = period_of(spikes[:, None])
    assert period == pytest.approx(50.0, abs=0.5)
    assert height > 0.2
    assert sureness < 1.5


def test_the_largest_contrast_is_that_of_a_loop():
    rows = np.random.default_rng(3).normal(size=(2, 30, 3))
    places, values = _scanned(rows, 4)
    for own, place, value in zip(rows, places, values, strict=True):
        each = {j: j * (30 - j) / 30 * np.sum((own[:j].mean(axis=0) - own[j:].mean(axis=0)) ** 2) for j in range(4, 27)}
        assert max(each, key=each.get) == place
        assert max(each.values()) == pytest.approx(value)


def test_a_rotation_of_the_components_changes_no_contrast():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1, 40, 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    np.testing.assert_allclose(_scanned(_whitened(rows @ turn), 4)[1], _scanned(_whitened(rows), 4)[1])


def test_the_scan_of_independent_blocks_holds_its_level_and_finds_a_change():
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        alarms += len(ContrastScan(rng.normal(size=(60, 5)), Blocks(1.0, 60, 1), rng).changes(0.1)) > 0
    assert alarms <= 14  # a binomial law at 0.1 is above that with a probability below 0.001
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 5))
    rows[24:] += 2.0
    (found,) = ContrastScan(rows, Blocks(7.0, 60, 1), rng).changes(0.05)
    assert abs(found.step - 168) <= 7
    assert found.pvalue < 0.02


def test_a_change_beside_a_known_one_has_to_be_found_in_the_segment_between_known_ones():
    rows = np.random.default_rng(0).normal(size=(90, 3)) + 3.0 * (np.arange(90)[:, None] >= 30)

    def found(rows, known):
        scan = ContrastScan(rows, Blocks(10.0, 90, 1), np.random.default_rng(1))
        return [one.step for one in scan.changes(0.02, None if known is None else np.array(known, dtype=int))]

    assert found(rows, None) == found(rows, []) == [300]
    assert found(rows, [280]) == found(rows, [320]) == []
    later = rows + 3.0 * (np.arange(90)[:, None] >= 60)
    assert found(later, [290]) == [600]


def test_p_values_are_shares_and_fall_on_beyond_them():
    null = np.exp(np.random.default_rng(6).gumbel(size=199))
    middle = float(np.sort(null)[99])
    assert _pvalue(middle, null) == 0.505
    far = [_pvalue(float(null.max()) * factor, null) for factor in (1.0, 3.0, 10.0)]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.005


def test_a_bridge_has_the_mean_and_variance_of_the_conditional_law():
    phi, spread, length, left, right = 0.8, 0.5, 4, 1.0, -2.0
    lags = np.abs(np.subtract.outer(np.arange(length + 2), np.arange(length + 2)))
    covariance = spread**2 / (1 - phi**2) * phi**lags
    inside, ends = slice(1, -1), [0, length + 1]
    gain = covariance[inside][:, ends] @ np.linalg.inv(covariance[np.ix_(ends, ends)])
    variance = np.diag(covariance[inside, inside] - gain @ covariance[ends, inside])
    rng = np.random.default_rng(7)
    drawn = np.array([_bridge(length, left, right, phi, spread, rng) for _ in range(20_000)])
    np.testing.assert_allclose(drawn.mean(axis=0), gain @ [left, right], atol=0.02)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.05)


def test_filled_gaps_keep_what_is_known():
    column = np.arange(50.0)
    column[[0, 20, 21, 49]] = np.nan
    filled = filled_gaps(column, np.random.default_rng(8))
    known = ~np.isnan(column)
    np.testing.assert_array_equal(filled[known], column[known])
    assert np.isfinite(filled).all()


def test_kinds_of_location():
    rng = np.random.default_rng(9)
    t = np.arange(100.0)[:, None]
    noise = rng.normal(size=(200, 2))
    left, right = noise[:100], noise[100:].copy()
    right[:, 1] += 4.0
    assert kind_of_location(left, right, False) == ("level", (1,))
    assert kind_of_location(left + t, right + t, True)[0] == "level"
    assert kind_of_location(noise[:100, :1] + t, noise[100:, :1] + 100.0 - t, True) == ("slope", (0,))


def test_kinds_of_shape():
    rng = np.random.default_rng(10)
    left, right = rng.normal(size=(400, 2)), rng.normal(size=(400, 2))
    assert kind_of_shape(left, right, None)[0] == "shape"
    assert kind_of_shape(left, right * [1.0, 2.0], None) == ("scatter", (1,))
    tied = np.column_stack([right[:, 0], 0.9 * right[:, 0] + 0.4 * right[:, 1]])
    assert kind_of_shape(left, tied, None) == ("relation", (0, 1))
    t = np.arange(400.0)[:, None]
    assert kind_of_shape(np.sin(t * 0.3), np.sin(t * 0.5), 20.0) == ("frequency", (0,))


def test_moments_are_means_over_parts():
    values = np.random.default_rng(11).normal(size=(40, 2))
    blocks = Blocks(10.0, 4, 2)
    product = values[:, 0] * values[:, 1]
    rows = np.column_stack([np.sqrt(np.abs(values)), np.sign(product) * np.sqrt(np.abs(product))])
    means = rows.reshape(8, 5, 3).mean(axis=1)
    found = moments(values, blocks)
    np.testing.assert_allclose(found / found[0, 0], means / means[0, 0])


def test_segments_of_different_periods_differ_in_frequency_in_their_columns():
    rng = np.random.default_rng(12)
    t = np.arange(200.0)
    left, right = (
        np.column_stack([np.sin(2 * np.pi * t / period), rng.normal(size=200)]) + 0.3 * rng.normal(size=(200, 2))
        for period in (20.0, 14.0)
    )
    assert kind_of_shape(left, right, 41.5) == ("frequency", (0,))
    assert kind_of_shape(left, left[::-1], 41.5)[0] == "shape"


def turned(seed, cycles):
    """A wave of 50 steps that changes its shape after half of the cycles, which are of varying length."""
    rng = np.random.default_rng(seed)
    phase = np.cumsum(rng.normal(1.0, 0.02, 50 * cycles)) / 50.0
    late = np.arange(len(phase)) >= len(phase) // 2
    wave = np.sin(2 * np.pi * phase) + np.where(late, 0.7, -0.4) * np.sin(4 * np.pi * phase + 1.0)
    return wave + 0.2 * rng.normal(size=len(phase))


def test_a_change_of_shape_is_found_in_few_cycles_as_a_change_of_no_level():
    near = 0
    for seed in range(2):
        detector = ChangePointDetector(random_state=0).fit(turned(seed, 20))
        near += len(detector.change_points_) == 1 and abs(detector.change_points_[0] - 500) <= 25
        assert not {"level", "slope"} & set(detector.kinds_)
    assert near == 2


@pytest.mark.parametrize("origin", [0.0, 1000.0])
def test_levels_in_cycles_are_those_that_means_over_cycles_show(origin):
    cycle, steps = 37.5, np.arange(900)
    values = origin + (np.sin(2 * np.pi * steps / cycle) + 0.1 * np.random.default_rng(0).normal(size=900))[:, None]
    changes = [Candidate(step, 0.01, "location") for step in (200, 450, 700)]
    assert seen_in_cycles(changes, values, cycle) == []
    kept = seen_in_cycles(changes, values + (steps >= 450)[:, None], cycle)
    assert [one.step for one in kept] == [450]
    assert seen_in_cycles(changes[:1], values[:400] + (steps[:400] >= 200)[:, None], cycle) == []  # ten cycles
    alike = np.random.default_rng(1).permuted(np.tile([1.0, 2.0, 3.0, 6.0], (225, 1)), axis=1).reshape(-1, 1)
    assert seen_in_cycles(changes, origin + alike, 4.0) == []


def test_of_changes_at_one_gap_the_surest_is_kept():
    known = np.ones(100, dtype=bool)
    known[12:19] = known[62:69] = False
    pvalues = {10: 0.02, 20: 0.001, 40: 0.03, 60: 0.004, 70: 0.01}
    changes = [Candidate(step, pvalue, "location") for step, pvalue in pvalues.items()]
    assert [one.step for one in one_a_gap(changes[::-1], known)] == [20, 40, 60]
    assert one_a_gap(changes, np.ones(100, dtype=bool)) == changes


@pytest.mark.parametrize(("cycles", "block"), [(44, 30.0), (30, 10.0)])
def test_blocks_are_whole_cycles_where_these_are_many_and_not_their_similar_parts(cycles, block, monkeypatch):
    t = np.arange(30 * cycles)
    waves = np.sin(2 * np.pi * t / 10.0) * (1.0 + 0.4 * np.sin(2 * np.pi * t / 30.0))
    series = waves + 0.2 * np.random.default_rng(13).normal(size=len(t))
    seen = []
    monkeypatch.setattr(
        of_cycles, "_parts", lambda steps, cycle: seen.append(cycle) or blocks_of(steps, cycle, 40, 1000)
    )
    assert ChangePointDetector(random_state=0).fit(series).periods_.tolist() == [30.0]
    assert seen == [pytest.approx(block, abs=0.1)]


def test_a_weak_change_beside_a_strong_one_does_not_make_it_a_drift():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(100, 3)) + 3.0 * (np.arange(100)[:, None] >= 50)
    scan = ContrastScan(means, Blocks(1.0, 100, 1), rng)

    def ahead(start, place, end):
        return 100.0 - (end - start) if place == 50 else 1.0

    assert scan._abrupt([44, 50, 58], ahead) == {50}


def test_windows_of_whole_cycles_are_no_longer_than_these(monkeypatch):
    values, used = np.tile([0.0, 1.0, 3.0, 2.0, 0.0, -2.0, -1.0], 30)[:, None], []
    values = values + np.random.default_rng(0).normal(size=values.shape)
    embedded = of_cycles.embedded

    def recorded(rows, lags, blocks, *args, **options):
        used.extend((lag, blocks.length) for lag in lags)
        return embedded(rows, lags, blocks, *args, **options)

    monkeypatch.setattr(of_cycles, "embedded", recorded)
    assert ChangePointDetector(period=None, random_state=0).fit(values).n_features_in_ == 1
    # Blocks of whole cycles, whose period is estimated.
    assert any(lag == 7 and abs(length - 7.0) < 0.02 for lag, length in used)
    assert all(lag <= np.ceil(length) for lag, length in used)


def test_a_step_has_to_be_larger_than_what_wanders_beside_it():
    """Stretches are compared, so that a weak step that stays is kept, and a slow wander of the same size is not."""
    rng = np.random.default_rng(0)
    blocks = np.arange(400)
    steady = rng.normal(size=(400, 3)) + 0.8 * (blocks[:, None] >= 200)
    wander = rng.normal(size=(400, 3)) + 1.5 * np.sin(2.0 * np.pi * blocks / 170.0)[:, None]
    scans = [ContrastScan(means, Blocks(1.0, 400, 1), rng) for means in (steady, wander)]
    assert scans[0]._beside_wander([200]) == {200}
    assert scans[1]._beside_wander([128, 212]) == set()
    # Of two places the one that explains less goes first.
    both = np.where(blocks[:, None] < 200, steady, steady + 4.0)
    assert ContrastScan(both, Blocks(1.0, 400, 1), rng)._beside_wander([100, 200]) == {200}


def test_stretches_of_another_frequency_that_come_back_are_told():
    """A B A B A: no single place parts what differs."""

    def told(seed):
        phase, parts = 0.0, []
        for steps, period in [(600, 25), (250, 12), (600, 25), (250, 12), (600, 25)]:
            parts.append(np.sin(phase + 2.0 * np.pi * np.arange(steps) / period))
            phase += 2.0 * np.pi * steps / period
        series = np.concatenate(parts) + 0.1 * np.random.default_rng(seed).normal(size=2300)
        found = ChangePointDetector(random_state=0).fit(series).change_points_
        return all(np.abs(found - place).min(initial=2300) <= 30 for place in (600, 850, 1450, 1700))

    assert any(map(told, range(2)))


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.6, 0.9])
def test_an_autoregression_is_known_beside_changes_of_level(phi):
    noise = np.random.default_rng(0).normal(0.0, 2.0, size=20_000)
    series = lfilter([1.0], [1.0, -phi], noise)
    for levels in (series, series + 50.0 * (np.arange(20_000) // 5000 % 2)):
        np.testing.assert_allclose(_autoregression(levels), (phi, 2.0), atol=0.06)
