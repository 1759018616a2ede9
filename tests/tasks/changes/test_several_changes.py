"""Several changes at once: their places, their contrasts, and states that come back."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.embedding import Blocks
from isopleth.tasks.changes.scan import ContrastScan
from isopleth.tasks.changes.several_changes import best_places, contrasts_at, without_means


def test_the_places_of_each_number_of_changes_are_the_best_of_all():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(18, 2)) + 50.0
    rows[5:9] += 2.0

    def left(places):
        return float(np.sum(without_means(rows, list(places)) ** 2))

    def possible(count):
        for places in combinations(range(3, 16), count):
            if min(end - start for start, end in pairwise([0, *places, 18])) >= 3:
                yield places

    found = list(best_places(rows, 3, 4))
    assert [len(places) for places in found] == [4, 3, 2, 1]
    for places in found:
        assert left(places) == pytest.approx(min(left(some) for some in possible(len(places))))
    assert [len(places) for places in best_places(rows, 3, 9)] == [5, 4, 3, 2, 1]
    assert list(best_places(rows[:5], 3, 9)) == []


def test_the_contrast_of_one_change_is_what_it_explains():
    rows = np.random.default_rng(1).normal(size=(30, 3))
    (contrast,) = contrasts_at(rows, [12])
    assert contrast == pytest.approx(np.sum(without_means(rows, []) ** 2) - np.sum(without_means(rows, [12]) ** 2))
    assert contrasts_at(rows, [12, 20])[0] == pytest.approx(contrasts_at(rows[:20], [12])[0])


def test_states_of_blocks_that_come_back_are_found_at_once():
    """A B A C B: shuffles mix the states, so that no one part of these blocks differs from the rest beyond chance."""
    states = 2.0 * np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, -1.0, 0.0], [0.0, 1.0, 1.0, -1.0]])
    right = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(50, 4)) + np.repeat(states[[0, 1, 0, 2, 1]], 10, axis=0)
        found = [one.step for one in ContrastScan(rows, Blocks(1.0, 50, 1), rng).changes(0.025)]
        right += len(found) == 4 and np.abs(np.array(found) - [10, 20, 30, 40]).max() <= 1
    assert right >= 6


def test_several_changes_hold_the_level_where_there_are_none():
    """Blocks that remember a little, as those of windows do."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(71, 5))
        rows = rows[1:] + 0.3 * rows[:-1]
        alarms += len(ContrastScan(rows, Blocks(1.0, 70, 1), rng).changes(0.1)) > 0
    assert alarms <= 14  # a binomial law at 0.1 is above that with a probability below 0.001


def test_several_steps_are_compared_with_the_memory_of_the_whole_segment():
    """Between neighbouring places a slow memory is often too short to be seen."""
    each, together = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        memory = lfilter([1.0], [1.0, -0.95], rng.normal(size=260))[100:] * np.sqrt(1.0 - 0.95**2)
        rows = rng.normal(size=(160, 3)) + 0.6 * memory[:, None] * [1.0, 0.0, 0.0]
        # Blocks are not joined here, so that the comparison with memory decides alone.
        scan = ContrastScan(rows, Blocks(5.0, 160, 1), rng, 100.0, remembers=True)
        for places in best_places(rows, 7, 4):
            bounds = [0, *places, 160]
            if len(places) > 1 and all(scan._is_step(*bounds[i : i + 3]) for i in range(len(places))):
                each, together = each + 1, together + scan._are_steps(bounds)
    assert each >= 8
    assert together <= 2
    comes_back = np.random.default_rng(30).normal(size=(160, 3)) + 1.5 * np.repeat([0.0, 1.0, 0.0, 1.0], 40)[:, None]
    assert ContrastScan(comes_back, Blocks(5.0, 160, 1), rng, 100.0, remembers=True)._are_steps([0, 40, 80, 120, 160])


def test_waves_of_one_period_whose_harmonics_come_back_are_found():
    waves = 2.0 * np.pi * np.arange(288) / 24.0
    parts = [np.sin(waves) + [0.0, 0.8, -0.8][state] * np.cos(2.0 * waves) for state in (0, 1, 0, 2, 1)]
    series = np.concatenate(parts) + 0.2 * np.random.default_rng(1).normal(size=5 * 288)
    detector = ChangePointDetector(random_state=0).fit(series)
    assert len(detector.change_points_) == 4
    assert np.abs(detector.change_points_ - 288 * np.arange(1, 5)).max() <= 20
    assert detector.states_.tolist() == [0, 1, 0, 2, 1]
