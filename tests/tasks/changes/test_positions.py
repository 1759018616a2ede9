"""Intervals for the positions of changes: against a slow form, properties, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from isopleth import ChangePointDetector
from isopleth.tasks.changes.positions import by_windows, positions_of
from isopleth.tasks.changes.preparation import spikes


def interval(values, place, coverage=0.9, line=False):
    values = np.asarray(values).reshape(len(values), -1)
    columns = [tuple(range(values.shape[1]))]
    return positions_of(values, np.array([place]), columns, np.array([line]), np.array([False]), coverage)[1][
        0
    ].tolist()


def slow_interval(y, place, coverage):
    """Independent values: the side of each step is integrated over its mean and variance, one position after the other."""
    y = (y - y.mean()) / y.std()
    skipped = 8
    steps = np.arange(skipped + 27, len(y) - skipped - 27 + 1)
    logs = []
    for t in steps:
        log = 0.0
        for side in (y[skipped:t], y[t:], y[:t], y[t:-skipped]):
            free = (len(side) - 1) / 2
            log += gammaln(free) - 0.5 * np.log(len(side)) - free * np.log(((side - side.mean()) ** 2).sum() / 2)
        logs.append(log / 2)
    below = np.cumsum(np.exp(logs - np.max(logs)))
    below /= below[-1]
    low, high = (int(steps[np.argmax(below >= share)]) for share in ((1 - coverage) / 2, (1 + coverage) / 2))
    return [min(low, place), max(high, place)]


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_is_that_of_the_slow_form(seed):
    y = np.random.default_rng(seed).normal(size=200) + 1.2 * (np.arange(200) >= 90)
    assert interval(y, 92) == slow_interval(y, 92, 0.9)


def test_the_interval_does_not_depend_on_units_and_turns_with_the_series():
    y = np.random.default_rng(1).normal(size=300) * np.where(np.arange(300) < 140, 1.0, 2.5)
    low, high = interval(y, 141)
    assert interval(7.0 - 1e6 * y, 141) == [low, high]
    assert interval(y, 141, 0.99)[0] <= low < high <= interval(y, 141, 0.99)[1]
    # The change at step 141 of the reversed series is at step 300 - 141. Quantiles of a discrete distribution may move by a step.
    back = interval(y[::-1], 300 - 141)
    assert [300 - back[1], 300 - back[0]] == pytest.approx([low, high], abs=1)


def test_a_short_segment_has_the_widest_interval_and_a_clear_change_a_short_one():
    y = np.random.default_rng(2).normal(size=100) + 30.0 * (np.arange(100) >= 50)
    assert interval(y, 50) == [50, 50]
    assert interval(y[48:], 2) == [1, 51]


def test_constant_stretches_have_intervals():
    y = np.repeat([0.0, 1.0], [60, 60])
    low, high = interval(y, 60)
    assert low <= 60 <= high


@pytest.mark.parametrize(
    "change",
    [
        lambda r, late: r.normal(size=300) + late,
        lambda r, late: r.normal(size=300) * (1.0 + late),
        lambda r, late: np.column_stack(
            [a := r.normal(size=300), np.where(late, a + 0.5 * r.normal(size=300), r.normal(size=300))]
        ),
    ],
)
def test_the_posterior_holds_the_position(change):
    """Of 100 intervals of 90 %, from places within 3 steps of the true one; fewer than 80 have a probability of .002."""
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        values = change(rng, np.arange(300) >= 150)
        low, high = interval(values, 150 + int(rng.integers(-3, 4)))
        held += low <= 150 <= high
    assert held >= 80


def test_the_detector_has_intervals_in_its_result():
    rng = np.random.default_rng(0)
    series = np.concatenate([rng.normal(size=100), rng.normal(2.0, size=80), rng.normal(2.0, 4.0, size=120)])
    found = ChangePointDetector(random_state=0).fit(series)
    assert found.intervals_.shape == (2, 2)
    assert (found.intervals_[:, 0] <= [100, 180]).all()
    assert (found.intervals_[:, 1] >= [100, 180]).all()
    table = found.result_.table()
    assert list(table["earliest"]) == found.intervals_[:, 0].tolist()
    assert list(table["latest"]) == found.intervals_[:, 1].tolist()
    assert ChangePointDetector(random_state=0).fit(np.zeros(60)).intervals_.shape == (0, 2)


def test_a_rough_place_of_a_change_of_scatter_moves_to_the_most_probable_step():
    near = []
    for seed in range(8):
        values = np.random.default_rng(seed).normal(size=(300, 1)) * np.repeat([1.0, 3.0], 150)[:, None]
        arguments = values, np.array([168]), [(0,)], np.array([False])
        same, _ = positions_of(*arguments, np.array([False]), 0.9)
        moved, intervals = positions_of(*arguments, np.array([True]), 0.9)
        assert same.tolist() == [168]
        assert intervals[0, 0] <= moved[0] <= intervals[0, 1]
        near.append(abs(int(moved[0]) - 150))
    assert np.median(near) <= 3
    assert max(near) < 18


@pytest.mark.parametrize("kind", ["gap", "spike"])
def test_gaps_widen_intervals_and_spikes_do_not(kind):
    """Of 200 intervals of 90 %, for a gap of 70 steps over the change, or a spike of 60 deviations elsewhere."""
    held, widths = 0, []
    for seed in range(200):
        rng = np.random.default_rng([seed, 3])
        late = np.arange(300) >= 150
        y, known = rng.normal(size=300) + (2.0 if kind == "gap" else 1.0) * late, np.ones((300, 1), dtype=bool)
        place = 150 + int(rng.integers(-3, 4))
        if kind == "gap":
            start = 150 - int(rng.integers(0, 71))
            known[start : start + 70] = False
            y[start : start + 70] = 1.0 + rng.normal(size=70)
            place = start + 35
        else:
            y[rng.choice([30, 60, 250, 270])] += 60.0
            known = ~spikes(y)[:, None]
            assert 299 - 3 <= known.sum() < 300
        low, high = positions_of(y[:, None], [place], [(0,)], np.array([False]), np.array([False]), 0.9, known)[1][0]
        held += low <= 150 <= high
        widths.append(high - low)
    # An interval that ends in the gap holds all of it, so that most hold the change.
    assert 164 <= held <= (200 if kind == "gap" else 198)
    assert 70 <= np.mean(widths) <= 85 if kind == "gap" else np.mean(widths) < 20


def turning(seed, length, place, period):
    """A sine that becomes a square wave, with noise."""
    rng = np.random.default_rng(seed)
    wave = np.sin(2.0 * np.pi * (np.arange(length) / period + rng.random()))
    return np.where(np.arange(length) < place, wave, 0.8 * np.sign(wave))[:, None] + 0.1 * rng.normal(size=(length, 1))


def test_a_change_between_cycles_moves_to_where_short_windows_turn():
    chosen = np.array([True])
    for seed in range(5):
        series = turning(seed, 600, 310, 20.0)
        moved = by_windows(series, np.array([285]), chosen, 20.0)
        assert abs(moved[0] - 310) <= 6
        # Backwards it is the same change, and a factor and a constant do not matter.
        assert by_windows(series[::-1], np.array([600 - 285]), chosen, 20.0)[0] == 600 - moved[0]
        assert by_windows(-3.0 * series + 7.0, np.array([285]), chosen, 20.0)[0] == moved[0]
        assert by_windows(series, np.array([285]), ~chosen, 20.0)[0] == 285


def test_cycles_of_many_steps_are_compared_in_some_and_few_cycles_not_at_all():
    series = turning(0, 20_000, 9_700, 1_000.0)
    assert abs(by_windows(series, np.array([9_200]), np.array([True]), 1_000.0)[0] - 9_700) <= 300
    assert by_windows(series[7_000:], np.array([2_200]), np.array([True]), 1_000.0)[0] == 2_200


@pytest.mark.parametrize("known", [0, 3, 12])
def test_an_interval_reaches_its_neighbours_where_few_values_are_known(known):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(300, 1)) + 3.0 * (np.arange(300) >= 150)[:, None]
    there = np.zeros((300, 1), dtype=bool)
    there[rng.choice(np.arange(60, 240), known, replace=False)] = True
    there[:30] = there[270:] = True  # beyond the neighbouring changes
    places = np.array([30, 150, 270])
    lines = rough = np.zeros(3, dtype=bool)
    moved, intervals = positions_of(values, places, [(0,)] * 3, lines, rough, 0.9, there)
    assert moved.tolist() == places.tolist()
    assert intervals[1].tolist() == [31, 269]
