"""States of segments: those that are alike have one, and neighbours never."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import ChangePointDetector
from isopleth.tasks.changes.search import Changes, _told
from isopleth.tasks.changes.states import _accuracy, states_of

ORDER = np.array([0, 1, 0, 2, 1])
LENGTHS = np.array([300, 260, 420, 350, 280])


def made(kind, seed):
    """Return a series of three states, of which two come back."""
    rng = np.random.default_rng(seed)
    parts = []
    for state, length in zip(ORDER, LENGTHS, strict=True):
        steps, noise = np.arange(length), rng.normal(size=(length, 2))
        parts.append(
            {
                "period": np.sin(2.0 * np.pi * steps / [25, 12, 17][state])[:, None] + 0.2 * noise[:, :1],
                "level": 1.5 * state + noise[:, :1],
                "scatter": [1.0, 2.5, 0.4][state] * noise[:, :1],
                "relation": noise
                @ np.linalg.cholesky([[1.0, [0.0, 0.8, -0.8][state]], [[0.0, 0.8, -0.8][state], 1.0]]).T,
            }[kind]
        )
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", ["period", "level", "scatter", "relation"])
def test_states_that_come_back_have_the_same_label(kind):
    places = np.cumsum(LENGTHS)[:-1]
    right = 0
    for seed in range(3):
        cycle = 25.0 if kind == "period" else None
        right += states_of(made(kind, seed), places, cycle, np.random.default_rng(0)).tolist() == ORDER.tolist()
    assert right >= 2


def test_neighbours_and_short_segments_have_states_of_their_own():
    noise = np.random.default_rng(0).normal(size=(600, 1))
    rng = np.random.default_rng(1)
    assert states_of(noise, np.array([], dtype=int), None, rng).tolist() == [0]
    assert states_of(noise, np.array([300]), None, rng).tolist() == [0, 1]
    assert states_of(noise, np.array([200, 400]), None, rng).tolist() == [0, 1, 0]
    assert states_of(noise, np.array([200, 203, 400]), None, rng)[1] == 1
    rows = rng.normal(size=(60, 8))
    assert _accuracy(rows[:40], rows[40:] + 2.0) == pytest.approx(1.0)
    assert 0.2 < _accuracy(rows[:40], rows[40:]) < 0.7
    assert _accuracy(rows[:3], rows[3:]) == 1.0


def test_segments_that_differ_by_a_change_between_them_are_no_one_state():
    noise = np.random.default_rng(0).normal(size=(900, 1))
    places, rng = np.array([300, 600]), np.random.default_rng(1)

    def states(*numbers):
        return states_of(noise, places, None, rng, [(0, np.array(numbers)[:, None])]).tolist()

    assert states(0.0, 5.0, 2.0) == [0, 1, 0]
    assert states(0.0, 5.0, 3.0) == [0, 1, 2]
    assert states_of(noise, places, None, rng, [(1, np.array([[0.0], [1.0], [9.0]]))]).tolist() == [0, 1, 2]
    # A season hides a step from the kernels.
    hours = np.arange(14 * 96)
    day = 10.0 * np.exp(-0.5 * ((hours % 96 - 56) / 16.0) ** 2)
    series = day + np.random.default_rng(3).normal(size=len(hours)) + 2.0 * (hours >= 700)
    series[300:308] += 20.0
    detector = ChangePointDetector(random_state=0).fit(series)
    assert detector.kinds_.tolist() == ["incident", "incident", "level"]
    assert detector.states_.tolist() == [0, 1, 0, 2]


def test_the_scatter_of_states_is_that_of_what_was_compared():
    """Cycles of other sizes come back, while the innovations between them differ by chance: these say nothing of the states."""
    rng, steps = np.random.default_rng(5), np.array([200, 400])
    waves = np.repeat([1.0, 2.0, 1.0], 200) * np.sin(np.arange(600) * 2.0 * np.pi / 20.0)
    sources = {"location": waves, "scatter": rng.normal(size=600), "shape": waves + 0.1 * rng.normal(size=600)}
    sources = {name: column[:, None] for name, column in sources.items()}
    found = Changes(steps, np.array(["scatter"] * 2), np.zeros(2), [(0,)] * 2, steps[:, None], np.arange(3))
    told = _told(found, sources, {200: "shape", 400: "shape"}, 20.0)
    assert [number for number, _ in told] == [0, 1]
    for _, numbers in told:
        assert numbers[1, 0] == pytest.approx(np.sqrt(2.0) * numbers[0, 0], rel=0.02)
    assert states_of(sources["shape"], steps, 20.0, rng, told).tolist() == [0, 1, 0]
    by_innovations = _told(found, sources, {200: "scatter", 400: "scatter"}, 20.0)
    assert states_of(sources["shape"], steps, 20.0, rng, by_innovations).tolist() == [0, 1, 2]


def test_the_detector_tells_states_in_words_table_and_picture():
    series = np.random.default_rng(0).normal(size=600) + 4.0 * ((np.arange(600) // 200) % 2)
    detector = ChangePointDetector(random_state=0).fit(series)
    result = detector.result_
    assert detector.states_.tolist() == [0, 1, 0]
    assert list(result.table()["state"]) == [1, 0]
    assert "State 0 comes back: of the 3 parts between changes, 1 and 3 are alike." in result.text()
    names = [one.name for one in result._charts()[0].series]
    assert names == ["value", "level, state 0", "level, state 1"]
    assert ChangePointDetector(random_state=0).fit(np.ones(50)).states_.tolist() == [0]
