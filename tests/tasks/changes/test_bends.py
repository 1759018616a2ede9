"""Changes of slope stand where one line bends: two lines have a best place on either side of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from isopleth.tasks.changes.bends import at_bends
from isopleth.tasks.changes.segments import Noise


@pytest.mark.parametrize(("memory", "near"), [(0.0, 1), (0.6, 3)])
def test_a_bend_is_found_near_its_place_and_stays_there_when_values_are_appended(memory, near):
    off, moved = [], []
    for seed in range(20):
        noise = lfilter([1.0], [1.0, -memory], np.random.default_rng(seed).normal(size=420))
        series = (noise + 0.08 * np.maximum(np.arange(420) - 200.0, 0.0))[:, None]
        places = [
            at_bends(series[:length], np.array([188]), np.array([True]), [(0,)], [Noise((memory,) if memory else ())])[
                0
            ]
            for length in (400, 420)
        ]
        off.append(abs(int(places[0]) - 200))
        moved.append(abs(int(places[1]) - int(places[0])))
    assert np.median(off) <= 4 * near
    assert np.mean(np.array(moved) <= near) >= 0.9


def test_a_change_with_a_jump_and_one_without_noise_stay():
    steps, rows = np.arange(200.0), np.random.default_rng(0).normal(size=(200, 1))
    jump = rows + (6.0 * (steps >= 120) + 0.1 * np.maximum(steps - 120.0, 0.0))[:, None]
    exact = np.maximum(steps - 120.0, 0.0)[:, None]
    for series in (jump, exact):
        assert at_bends(series, np.array([120]), np.array([True]), [(0,)], [Noise()]).tolist() == [120]
    assert at_bends(jump, np.array([120]), np.array([False]), [(0,)], [Noise()]).tolist() == [120]
