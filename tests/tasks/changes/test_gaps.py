"""Gaps of a series are filled so that no change is told because of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.preparation import _autoregression


@pytest.mark.parametrize("gaps", [[(200, 220)], [(50, 70), (250, 290)], [(1, 20), (280, 300)]])
def test_a_gap_beside_a_step_is_no_level(gaps):
    """Gaps are filled with the noise of the values near by, and not with that of the whole series with its step."""
    series = np.random.default_rng(0).normal(size=300) + 10.0 * (np.arange(300) >= 100)
    for start, end in gaps:
        series[start:end] = np.nan
    assert ChangePointDetector(random_state=0).fit(series).change_points_.tolist() == [100]


def test_the_noise_that_fills_gaps_is_that_without_the_steps():
    rng = np.random.default_rng(0)
    for phi in (0.0, 0.6, 0.95):
        noise = lfilter([1.0], [1.0, -phi], rng.normal(size=20_000))
        stepped = noise + 30.0 * (np.arange(len(noise)) // 2000)
        for series in (noise, stepped):
            found, spread = _autoregression(series)
            assert found == pytest.approx(phi, abs=0.05)
            assert spread == pytest.approx(1.0, abs=0.05)
