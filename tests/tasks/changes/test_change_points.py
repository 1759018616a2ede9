"""The detector: what it finds, how often it is wrong, what it refuses, and the curve of windows against a slow form."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import isopleth
from isopleth import ChangePointDetector, InputError
from isopleth.core.budget import Budget
from isopleth.tasks import sliding_lsdd
from isopleth.tasks.changes.curve import distances_of_windows, drawn_centers, subsequences
from isopleth.tasks.changes.description_length import surcharge


def detected(series, **extra):
    return ChangePointDetector(random_state=0, **extra).fit(series)


def test_subsequences_stack_the_columns_of_consecutive_steps():
    y = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(subsequences(y, 2)[1], [2.0, 3.0, 4.0, 5.0])
    assert subsequences(y, 2).shape == (4, 4)


def test_the_curve_is_the_corrected_dual_estimate_of_each_pair_of_windows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2))
    centers = rows[::4]
    scores = distances_of_windows(rows, 7, centers, 1.3, Budget(1e9))
    psi = np.exp(-((rows[:, None] - centers[None]) ** 2).sum(axis=2) / (2 * 1.3**2))
    gram = np.exp(-((centers[:, None] - centers[None]) ** 2).sum(axis=2) / (4 * 1.3**2))
    inverse = np.linalg.inv(gram + 0.1 * np.eye(len(centers)))
    dual = 2 * inverse - inverse @ gram @ inverse
    assert len(scores) == 40 - 14 + 1
    for t in (0, 11, 26):
        first, second = psi[t : t + 7], psi[t + 7 : t + 14]
        h = first.mean(axis=0) - second.mean(axis=0)
        noise = sum(np.trace(dual @ np.cov(part.T)) / 7 for part in (first, second))
        assert scores[t] == pytest.approx(h @ dual @ h - noise, abs=1e-10)


def test_the_curve_does_not_depend_on_the_memory_limit():
    rows = np.random.default_rng(1).normal(size=(300, 2))
    centers = drawn_centers(rows, 20, np.random.default_rng(0))
    whole, parts = (distances_of_windows(rows, 20, centers, 1.0, Budget(limit)) for limit in (1e9, 64 * 20 * 37))
    np.testing.assert_allclose(parts, whole, atol=1e-12)


def test_the_curve_is_around_zero_without_and_peaks_at_a_change():
    y = np.random.default_rng(2).normal(size=400)
    curve = sliding_lsdd(y, random_state=0)
    assert np.isnan(curve[:50]).all()
    assert np.isfinite(curve[52:348]).all()
    y[200:] += 3.0
    changed = sliding_lsdd(np.column_stack([y, np.ones(400)]), random_state=0)  # a constant column is left out
    assert abs(int(np.nanargmax(changed)) - 200) <= 5
    assert np.nanmax(changed) > 20 * np.abs(np.nanmean(curve))
    np.testing.assert_allclose(sliding_lsdd(-37.5 * y + 1e4, random_state=0), changed, atol=1e-8)
    assert np.nanmax(np.abs(sliding_lsdd(np.ones(40)))) == 0.0


@pytest.mark.parametrize(
    ("series", "extra", "message"),
    [
        (np.arange(50.0), {"window": 30}, "series has 50 rows, fewer than the 64"),
        ([1.0, np.nan] * 20, {}, "finite numbers"),
        (np.arange(30.0), {"window": 1}, "window = 1"),
        (np.arange(30.0), {"subsequence": 0}, "subsequence = 0"),
        (np.arange(30.0), {"centers": None}, "centers = None"),
    ],
)
def test_the_curve_refuses_what_it_cannot_use(series, extra, message):
    with pytest.raises(InputError, match=message):
        sliding_lsdd(series, **extra)


@pytest.mark.parametrize(
    ("kind", "series"),
    [
        ("level", lambda r: np.concatenate([r.normal(size=90), r.normal(2.5, size=90)])),
        ("slope", lambda r: np.abs(np.arange(180) - 90.0) + r.normal(size=180)),
        ("scatter", lambda r: np.concatenate([r.normal(size=90), r.normal(0.0, 4.0, size=90)])),
    ],
)
def test_each_kind_of_change_is_found_and_named(kind, series):
    found = detected(series(np.random.default_rng(4)))
    assert found.kinds_.tolist() == [kind]
    assert abs(found.change_points_[0] - 90) <= 5


def test_a_change_of_shape_alone_is_found():
    rng = np.random.default_rng(5)
    coin = rng.choice([-1.0, 1.0], 200) + 0.1 * rng.normal(size=200)
    found = detected(np.concatenate([rng.normal(size=200), coin]))
    assert len(found.change_points_) >= 1
    assert np.abs(found.change_points_ - 200).min() <= 25


def test_correlated_noise_a_trend_and_a_season_are_no_changes():
    rng = np.random.default_rng(6)
    noise = np.zeros(240)
    for t in range(1, 240):
        noise[t] = 0.6 * noise[t - 1] + rng.normal()
    season = 4.0 * np.sin(2 * np.pi * np.arange(240) / 12)
    assert len(detected(noise).change_points_) == 0
    assert len(detected(0.1 * np.arange(240) + season + noise).change_points_) == 0


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_the_rate_of_false_alarms(phi):
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=170)
        for t in range(1, 170):
            noise[t] += phi * noise[t - 1]
        alarms += len(detected(noise[50:]).change_points_) > 0
    assert alarms <= 20  # of 200 at 0.05, more has a probability below 0.004


def test_truth_values_and_coarse_numbers_keep_a_clear_change():
    """Equal values in a row are no calm where most values are equal."""
    found = {"truth": 0, "coarse": 0, "none": 0}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values = np.concatenate([rng.normal(size=60), rng.normal(3.0, 1.0, size=60)])
        for name, series in (("truth", values > 1.0), ("coarse", np.trunc(values)), ("none", rng.random(120) < 0.2)):
            places = detected(series.astype(float)).change_points_
            found[name] += len(places) if name == "none" else bool(len(places) == 1 and abs(places[0] - 60) <= 5)
    assert found["truth"] >= 2
    assert found["coarse"] >= 2
    assert found["none"] == 0


def test_a_constant_series_and_a_constant_stretch_work():
    flat = detected(np.full(40, 3.0))
    assert len(flat.change_points_) == 0
    rng = np.random.default_rng(1)
    half_flat = detected(np.concatenate([np.zeros(60), rng.normal(size=60)]))
    assert half_flat.kinds_.tolist() == ["scatter"]
    assert abs(half_flat.change_points_[0] - 60) <= 2
    assert detected(np.repeat([0.0, 1.0], 40)).change_points_.tolist() == [40]
    with_constant = np.column_stack([np.ones(80), np.repeat([0.0, 4.0], 40) + rng.normal(size=80)])
    assert detected(with_constant).change_points_.tolist() == [40]


@pytest.fixture(scope="module")
def step():
    """A step of three deviations at 30, and the detector fitted to it."""
    series = np.repeat([0.0, 3.0], 30) + np.random.default_rng(11).normal(size=60)
    return series, detected(series)


def test_neither_units_nor_types_of_the_series_matter(step):
    series, found = step
    assert found.change_points_.tolist() == [30]
    for other in (series * 1e-200, series * 1e200, -37.5 * series + 1e4):
        assert detected(other).change_points_.tolist() == [30]
    assert ChangePointDetector(random_state=0).fit_predict(series.astype(np.float32)[:, None]).tolist() == [30]
    np.testing.assert_array_equal(detected(series.tolist()).p_values_, found.p_values_)


@pytest.mark.parametrize(
    "cycle", [np.arange(10.0), np.sin(2 * np.pi * np.arange(50) / 50)], ids=["saw tooth", "whole sine"]
)
def test_a_cycle_that_repeats_exactly_is_no_change_and_does_not_hide_one_beside_it(cycle):
    repeated = np.tile(cycle, 200 // len(cycle))
    assert len(detected(repeated).change_points_) == 0
    beside = np.repeat([0.0, 4.0], 100) + np.random.default_rng(14).normal(size=200)
    assert detected(np.column_stack([repeated, beside])).change_points_.tolist() == [100]


@pytest.mark.filterwarnings("error")
def test_one_value_that_dwarfs_all_others_hides_no_change():
    rng = np.random.default_rng(15)
    series = np.concatenate([rng.normal(size=60), rng.normal(4.0, size=60)])
    series[20] = 1e300
    assert np.abs(detected(series).change_points_ - 60).tolist() == [0]


def test_rates_that_the_runs_are_too_few_for_cost_more():
    gains = np.sort(np.random.default_rng(7).exponential(size=199))
    rare, rarer = (surcharge(gains, rate) for rate in (1e-6, 1e-9))
    assert rarer - rare == pytest.approx(2.0 * np.log(1e3))
    assert surcharge(gains, 0.9) < surcharge(gains, 0.05) < rare


def test_a_reference_without_change_sets_the_level():
    rng = np.random.default_rng(10)
    series, calm = rng.normal(size=100), rng.normal(size=200)
    series[60:] += 3.0
    found = ChangePointDetector(random_state=0).fit(series, reference=calm)
    assert found.change_points_.tolist() == [60]


@pytest.mark.parametrize(
    ("series", "extra", "message"),
    [
        (np.arange(5.0), {}, "series has 5 rows; expected at least 6"),
        ([1.0, np.nan, np.nan] * 10, {}, "series has 20 missing values of 30 in column 0"),
        ([1.0, np.inf, 2.0] * 10, {}, "series contains inf in column 0"),
        (np.arange(30.0), {"false_alarm_rate": 0.0}, "false_alarm_rate = 0.0"),
        (np.arange(30.0), {"memory_limit": -1.0}, "memory_limit = -1.0"),
        (np.arange(30.0), {"memory_limit": None}, "memory_limit = None"),
        (None, {}, "series is of type NoneType; expected a table"),
        (np.zeros((9, 2, 2)), {}, r"series has shape \(9, 2, 2\); expected rows and columns"),
        ("series.csv", {}, r"series is 'series\.csv'.*read it with isopleth\.read_table"),
        ([[1.0, 2.0], [3.0]], {}, "series has rows of different lengths"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(series, extra, message):
    with pytest.raises(InputError, match=message):
        detected(series, **extra)


@pytest.mark.parametrize("calm", [np.arange(3.0), np.ones(30), np.r_[np.arange(30.0), np.nan]])
def test_a_reference_that_is_too_short_constant_or_has_gaps_is_refused(calm):
    with pytest.raises(InputError, match="reference"):
        ChangePointDetector(random_state=0).fit(np.arange(60.0) % 7, reference=calm)


def test_a_fit_can_be_saved(step, tmp_path):
    _, detector = step
    assert clone(detector).get_params() == detector.get_params()
    isopleth.save(detector, tmp_path / "changes.isopleth")
    loaded = isopleth.load(tmp_path / "changes.isopleth")
    assert repr(loaded.result_) == repr(detector.result_) == "ChangePoints(30 (level))"
    np.testing.assert_array_equal(loaded.p_values_, detector.p_values_)


def test_the_table_has_the_means_beside_each_change(step):
    series, found = step
    table = found.result_.table()
    assert table["before"][0] == pytest.approx(series[:30].mean())
    assert table["after"][0] == pytest.approx(series[30:].mean())
    assert set(detected(np.column_stack([series, series])).result_.table()) >= {"before_0", "after_1"}


def test_changes_carry_p_values_columns_and_labels_of_segments():
    rng = np.random.default_rng(16)
    series = rng.normal(size=(200, 3))
    series[120:, 1] += 3.0
    found = detected(series)
    assert found.change_points_.tolist() == [120]
    assert found.columns_ == [(1,)]
    assert 0.0 <= found.p_values_[0] <= 0.05
    np.testing.assert_array_equal(found.segments_, np.repeat([0, 1], [120, 80]))
    assert set(found.result_.table()) >= {"pvalue", "columns"}
    assert detected(pd.Series(series[:, 1], name="heat")).result_.table()["columns"].tolist() == ["heat"]


def test_a_change_of_relation_is_found_and_named():
    rng = np.random.default_rng(17)
    series = rng.normal(size=(600, 2))
    series[300:, 1] = 0.8 * series[300:, 0] + 0.6 * series[300:, 1]
    found = detected(series)
    assert np.abs(found.change_points_ - 300).min() <= 25
    nearest = int(np.abs(found.change_points_ - 300).argmin())
    assert found.kinds_[nearest] == "relation"
    assert found.columns_[nearest] == (0, 1)


def test_a_change_of_frequency_is_found():
    rng = np.random.default_rng(18)
    steps = 2 * np.pi / np.repeat([20.0, 14.0], 200)
    found = detected(np.sin(np.cumsum(steps)) + 0.3 * rng.normal(size=400))
    assert np.abs(found.change_points_ - 200).min() <= 20


def test_gaps_are_no_changes_and_hide_none():
    rng = np.random.default_rng(19)
    calm, series = rng.normal(size=300), np.concatenate([rng.normal(size=150), rng.normal(3.0, size=150)])
    for values in (calm, series):
        values[40:80] = np.nan
        values[rng.random(300) < 0.05] = np.nan
    assert len(detected(calm).change_points_) == 0
    found = detected(series)
    assert np.abs(found.change_points_ - 150).tolist() <= [3]
    assert np.isnan(found.result_.series).sum() == np.isnan(series).sum()
    assert np.isfinite(found.result_.table()["before"]).all()


@pytest.mark.slow
def test_a_long_series_is_quick():
    rng = np.random.default_rng(12)
    series = rng.normal(size=(100_000, 3))
    series[40_000:] += 1.0
    start = time.perf_counter()
    found = detected(series)
    assert time.perf_counter() - start < 60.0
    assert np.abs(found.change_points_ - 40_000).min() <= 5


@pytest.mark.parametrize(("slope", "bend"), [(1.0 / 7.0, 0.0), (-0.5, 2.0)])
def test_lines_without_noise_change_where_they_bend(slope, bend):
    """What a line leaves are rounding errors, which are no cycles, and whose windows have no shapes."""
    t = np.arange(500.0)
    detector = ChangePointDetector(random_state=0).fit(1.0 + slope * t + bend * np.maximum(t - 250.0, 0.0))
    assert detector.kinds_.tolist() == (["slope"] if bend else [])
    assert np.abs(detector.change_points_ - 250).max(initial=0) <= 1


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-9])
@pytest.mark.parametrize("levels", [[0.0, 1.0], [0.0, 1.0, 0.0]])
def test_steps_without_noise_are_changes_of_level(levels, noise):
    series = np.repeat(levels, 300 // len(levels))
    series = series + noise * np.random.default_rng(0).normal(size=300)
    found = ChangePointDetector(random_state=0).fit(series)
    assert found.change_points_.tolist() == [300 // len(levels) * i for i in range(1, len(levels))]
    assert set(found.result_.kinds) == {"level"}
