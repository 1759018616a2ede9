"""A sensor that stands still is named, and makes no changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.standing_still import Stretch, as_gaps, standing_still

ONE = np.arange(1)


def _sensor(seed, length=600, memory=0.9, step=0.1):
    """Readings that wander about 20, rounded to steps."""
    noise = np.random.default_rng(seed).normal(size=length + 100)
    wander = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], noise)[100:]
    return np.round((20.0 + wander) / step) * step


def _found(column, rate=0.01):
    return [(one.start, one.end) for one in standing_still(np.asarray(column, dtype=float)[:, None], ONE, rate)]


@pytest.mark.parametrize(("start", "length"), [(0, 30), (200, 20), (560, 40)])
def test_a_sensor_that_stands_still_is_found_wherever_it_does(start, length):
    found = 0
    for seed in range(20):
        column = _sensor(seed)
        column[start : start + length] = 20.4
        stretches = _found(column)
        found += len(stretches) == 1 and np.abs(np.subtract(stretches[0], [start, start + length])).max() <= 1
    assert found >= 19


def test_two_stretches_do_not_hide_one_another_and_two_at_one_value_are_a_setting():
    column = _sensor(1)
    column[100:140], column[300:350] = 20.4, 19.3
    assert _found(column) == [(100, 140), (300, 350)]
    column[300:350] = 20.4
    assert _found(column) == []


def test_missing_cells_do_not_end_a_stretch():
    column = _sensor(12)
    column[200:240] = 20.4
    whole = _found(column)
    column[[215, 216, 231, 400]] = np.nan
    assert _found(column) == whole
    assert len(whole) == 1


def test_stretches_of_one_length_are_a_part_of_the_pattern():
    column = np.random.default_rng(11).normal(size=1200)
    for place, value in ((213, -0.31), (373, -0.29), (613, 0.12), (933, 0.4)):
        column[place : place + 7] = value
    assert _found(column) == []


def test_runs_that_are_usual_in_a_column_are_no_standing_still():
    rng = np.random.default_rng(3)
    hour = np.arange(960) % 96
    light = np.where((hour < 30) | (hour > 70), 0.0, 50.0 + rng.normal(size=960))
    assert _found(light) == []  # zeros at night
    assert _found(np.minimum(_sensor(3), 20.5)) == []  # readings at a limit
    false = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        columns = (
            rng.poisson(0.5, 600),
            rng.poisson(1.0 + np.sin(np.arange(600) / 15.0)),
            _sensor(seed, step=1.0),
            _sensor(seed, memory=0.99, step=0.2),
            np.repeat(rng.normal(size=120), 5),
            rng.integers(0, 4, 600),
            np.round(np.cumsum(rng.normal(size=600))),
        )
        false += sum(bool(_found(column)) for column in columns)
    assert false <= 3  # of 280
    column = _sensor(4)
    for start in range(50, 550, 80):  # a habit
        column[start : start + 20] = 19.0 + start / 500.0
    assert _found(column) == []


def test_stretches_are_gaps_unless_they_are_much_of_a_column():
    values = np.column_stack([_sensor(5), _sensor(6)])
    gaps = as_gaps(values, [Stretch(100, 150, 0), Stretch(200, 360, 1)])
    assert np.flatnonzero(np.isnan(gaps[:, 0])).tolist() == list(range(100, 150))
    np.testing.assert_array_equal(gaps[:, 1], values[:, 1])


def test_a_sensor_that_stands_still_is_said_in_text_and_json_and_is_no_change():
    times = pd.date_range("2025-03-03", periods=1200, freq="5min")
    temp = _sensor(7, 1200)
    temp[500:700] = temp[499]
    frame = pd.DataFrame({"time": times, "temp": temp, "load": np.random.default_rng(8).normal(size=1200)})
    result = ChangePointDetector(random_state=0).fit(frame).result_
    assert len(result) == 0
    assert result.still == ((499, 699, 0),)
    value = f"{temp[499]:.6g}"
    assert f"temp stands still at {value} from 2025-03-04 17:35:00 to 2025-03-05 10:15:00 (201 steps)." in result.text()
    (told,) = result.to_dict()["standing_still"]
    assert told == {"column": "temp", "value": pytest.approx(temp[499]), "first": 499, "last": 699, "steps": 201}


def test_steps_without_rows_do_not_move_the_places_of_a_stretch():
    column = _sensor(9, 800)
    column[600:660] = 20.4
    kept = np.setdiff1d(np.arange(800), np.arange(100, 130))
    times = pd.date_range("2025-03-03", periods=800, freq="h")[kept]
    result = ChangePointDetector(random_state=0).fit(column[kept], times=times).result_
    assert result.still == ((570, 629, 0),)
    assert "The series stands still at 20.4 from 2025-03-28 to 2025-03-30 11:00:00 (60 steps)." in result.text()


def test_a_running_total_that_rises_evenly_does_not_stand_still():
    steps = np.random.default_rng(10).poisson(50.0, 400)
    steps[100:160] = 50
    assert ChangePointDetector(random_state=0).fit(np.cumsum(steps).astype(float)).result_.still == ()
