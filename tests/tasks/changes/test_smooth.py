"""Smooth curves are no changes of level or slope; steps and kinks are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.description_length import scatter_drifts, smooth_curve

TIME = np.linspace(0.0, 1.0, 400)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize(
    ("signal", "places", "smooth"),
    [
        (6.0 * (1.0 - np.exp(-TIME / 0.2)), [80], True),
        (6.0 / (1.0 + np.exp(-(TIME - 0.5) / 0.12)), [160, 250], True),
        (4.0 * np.sin(2.0 * np.pi * 0.8 * TIME), [125, 250], True),
        (2.0 * (TIME > 0.5), [200], False),
        (20.0 * np.abs(TIME - 0.5), [200], False),
        (6.0 * (TIME > 0.3) - 4.0 * (TIME > 0.6), [120, 240], False),
    ],
)
def test_a_spline_is_taken_where_it_is_cheaper_than_changes(correlation, signal, places, smooth):
    right = 0
    for seed in range(2):
        noise = np.random.default_rng(seed).normal(size=500) * np.sqrt(1.0 - correlation**2)
        series = (signal + lfilter([1.0], [1.0, -correlation], noise)[100:])[:, None]
        curve = smooth_curve(series, np.ones(400), np.array(places))
        right += (curve is not None) == smooth
        assert curve is None or np.sqrt(np.mean((curve[:, 0] - signal) ** 2)) < 0.8
    assert right == 2  # of ten seeds each, all are right


def test_a_level_that_goes_and_returns_twice_is_no_curve():
    right, places = 0, np.array([60, 120, 180, 240])
    for seed in range(12):
        series = np.random.default_rng(seed).normal(size=(300, 1)) + 1.5 * (np.arange(300) // 60 % 2)[:, None]
        right += smooth_curve(series, np.ones(300), places) is None
    assert right >= 7  # of five levels 4


def test_noise_of_long_memory_is_taken_where_it_is_cheaper_than_a_step():
    lags = np.arange(1.0, 3_000.0)
    weights = np.concatenate([[1.0], np.cumprod((lags - 0.7) / lags)])  # of (1 - L)^-.3
    right = 0
    for seed in range(4):
        noise = np.random.default_rng(seed).normal(size=4_000)
        wandering = np.convolve(noise, weights)[2_000:4_000]
        place = int(np.abs(np.cumsum(wandering - wandering.mean())).argmax()) + 1
        right += smooth_curve(wandering[:, None], np.ones(2_000), np.array([place])) is not None
        step = noise[:2_000] + 0.7 * (np.arange(2_000) >= 900)
        right += smooth_curve(step[:, None], np.ones(2_000), np.array([900])) is None
    assert right >= 7


def test_a_long_series_is_compared_in_means_and_its_curve_has_all_steps():
    time = np.linspace(0.0, 1.0, 20_001)
    noise = np.random.default_rng(0).normal(size=len(time))
    curve = smooth_curve((3.0 * time**2 + noise)[:, None], np.ones(len(time)), np.array([9_000, 15_000]))
    assert np.abs(curve[:, 0] - 3.0 * time**2).max() < 0.15
    assert smooth_curve(((time > 0.5) + noise)[:, None], np.ones(len(time)), np.array([10_001])) is None


def test_the_detector_tells_no_change_in_a_saturating_curve_and_tells_a_step():
    rng = np.random.default_rng(1)
    curve = 6.0 * (1.0 - np.exp(-np.arange(300) / 60.0)) + rng.normal(size=300)
    assert len(ChangePointDetector(random_state=0).fit(curve).change_points_) == 0
    step = 6.0 * (np.arange(300) >= 100) + rng.normal(size=300)
    assert ChangePointDetector(random_state=0).fit(step).change_points_.tolist() == [100]


def test_scatter_that_grows_along_a_line_is_told_from_a_step():
    bounds, drifts, steps = np.array([0, 200, 400]), 0, 0
    for run in range(20):
        noise = np.random.default_rng(run).normal(size=(400, 1))
        drifts += scatter_drifts(noise * (1.0 + 3.0 * TIME[:, None]), bounds)
        steps += not scatter_drifts(noise * np.where(TIME[:, None] < 0.5, 1.0, 3.0), bounds)
    assert (drifts, steps) == (pytest.approx(20, abs=4), pytest.approx(20, abs=2))
