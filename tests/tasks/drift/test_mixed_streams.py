"""Drift monitors on tables with words, truth values, times and missing cells, and with groups of rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import clone

import isopleth
from isopleth import DataWarning, DriftMonitor, InputError
from isopleth.tasks import AnytimeDriftMonitor
from isopleth.tasks.drift import calibration
from people import people

pandas = pytest.importorskip("pandas")


MONITORS = [
    DriftMonitor(window=40, expected_run_length=2000, random_state=0),
    AnytimeDriftMonitor(window=20, random_state=0),
]


@pytest.fixture(scope="module")
def fitted_once():
    """Fitted monitors: a fit simulates for half a second."""
    return {type(monitor): clone(monitor).fit(people(600)) for monitor in MONITORS}


@pytest.fixture(params=MONITORS, ids=lambda monitor: type(monitor).__name__)
def fitted(request, fitted_once):
    return copy.deepcopy(fitted_once[type(request.param)])


@pytest.mark.parametrize(
    ("changed", "column", "described"),
    [
        ({"red": 0.68}, "colour", "share of 'red': 2"),
        ({"gap": 0.7}, "age", "missing: 3.83 % -> "),
    ],
)
def test_changes_are_found_and_described(fitted, changed, column, described):
    assert len(fitted.update(people(200, 1))) == 0
    alarms = fitted.update(people(400, 2, **changed))
    assert len(alarms) >= 1
    found = alarms.changes()
    assert found["column"][0] == column
    assert found["moved"][0] or isinstance(fitted, AnytimeDriftMonitor)  # its alarm may come before a window has filled
    assert described in found["description"][0]


def test_rows_cut_in_any_way_and_saved_monitors_give_the_same_bits(fitted, tmp_path):
    stream = pandas.concat([people(150, 1), people(150, 2, red=0.6, gap=0.5)], ignore_index=True)
    start = fitted.state_
    whole = fitted.update(stream)
    fitted.state_ = start
    isopleth.save(fitted, tmp_path / "monitor")
    again = isopleth.load(tmp_path / "monitor")
    parts = [again.update(stream[start : start + 37]) for start in range(0, 300, 37)]
    np.testing.assert_array_equal(np.concatenate([part.statistic for part in parts]), whole.statistic)
    (one,) = [part.changes() for part in parts if part][:1]
    assert one["description"] == whole.changes()["description"]


def test_new_words_alone_raise_an_alarm(fitted):
    stream = people(400, 1)
    stream["colour"] = np.where(np.arange(400) % 2 == 0, "purple", stream["colour"])
    with pytest.warns(DataWarning):
        found = fitted.update(stream).changes()
    assert found["column"][0] == "colour"
    assert "share of other words: 0 %" in found["description"][0]


def test_gaps_may_count_for_nothing():
    for monitor in (
        DriftMonitor(window=40, expected_run_length=4_000, compare_missing=False, random_state=0),
        AnytimeDriftMonitor(compare_missing=False, random_state=0),
    ):
        monitor.fit(people(600))
        assert len(monitor.update(people(400, 1, gap=0.3))) == 0
        assert len(monitor.update(people(200, 2, red=0.65))) >= 1


@pytest.mark.parametrize("monitor", MONITORS, ids=lambda monitor: type(monitor).__name__)
def test_a_gap_in_a_column_without_gaps_is_an_alarming_row(monitor):
    rng = np.random.default_rng(0)
    monitor = type(monitor)(**monitor.get_params()).fit(rng.normal(size=(600, 3)))
    new = rng.normal(size=(300, 3))
    new[100:, 1] = np.nan
    alarms = monitor.update(new)
    assert 100 < next(iter(alarms)) < 250
    assert alarms.changes()["column"][0] == "column 1"
    assert "missing: 0 % -> " in alarms.changes()["description"][0]


def test_a_new_reference_decides_kinds_anew():
    monitor = DriftMonitor(window=40, expected_run_length=500, random_state=0).fit(people(300))
    monitor.update(people(60, 1))
    new = people(300, 2)
    new["colour"] = new["colour"].replace("red", "purple")
    new["more"] = 1.0
    with pytest.warns(DataWarning, match="'colour'"):
        monitor.update_reference(new)
    assert monitor.state_.n_rows == 60
    assert monitor.has_reference(new)
    assert not monitor.has_reference(people(300, 2, gap=0.1))
    assert len(monitor.update(new[:100])) == 0
    assert "purple" in monitor._windows.encoding.kinds[1].levels


def test_named_categories_of_arrays():
    rng = np.random.default_rng(0)
    reference, new = rng.integers(0, 5, (600, 1)), rng.integers(0, 5, (200, 1))
    monitor = DriftMonitor(window=40, expected_run_length=2000, categorical=[0], random_state=0).fit(reference)
    alarms = monitor.update(np.where(new == 2, 1, new))
    assert alarms.changes()["column"] == ["column 0"]
    assert "share of '1': 16.8 % -> " in alarms.changes()["description"][0]


def days(rng, count, length=10):
    """Rows of days, which share a level."""
    return np.repeat(rng.normal(size=(count, 1)), length, axis=0) + 0.5 * rng.normal(size=(count * length, 1))


def run_length(monitor, rng, longest=4000):
    alarms = monitor.update(days(rng, longest // 10))
    return next(iter(alarms), longest)


@pytest.mark.slow
def test_groups_keep_the_run_length_of_rows_that_depend_on_each_other(monkeypatch):
    monkeypatch.setattr(calibration, "FEWEST", 200)
    monkeypatch.setattr(calibration, "MOST", 200)
    with pytest.raises(InputError, match="depend on each other"):
        DriftMonitor(window=40, expected_run_length=400, random_state=0).fit(days(np.random.default_rng(0), 100))
    lengths = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        monitor = DriftMonitor(window=40, expected_run_length=400, random_state=seed)
        monitor.fit(days(rng, 100), groups=np.repeat(np.arange(100), 10))
        start = monitor.state_
        for _ in range(6):
            monitor.state_ = start
            lengths.append(run_length(monitor, rng))
    assert 270 < np.mean(lengths) < 600  # a factor of 1.5


def test_centres_are_rows_of_groups_that_are_set_aside_whole():
    rng = np.random.default_rng(0)
    for count, sizes in ((100, np.full(40, 10)), (5, np.full(40, 10)), (100, rng.integers(1, 40, 13))):
        groups = np.repeat(rng.permutation(len(sizes)), sizes)
        chosen, others = calibration.of_some_groups(groups, count, rng)
        aside = np.setdiff1d(groups, groups[others])
        assert set(groups[chosen]) <= set(aside)
        assert len(others) == np.isin(groups, aside, invert=True).sum()
        assert len(aside) == min(count, len(sizes) // 4)
        assert len(chosen) == len(set(chosen)) == min(count, np.isin(groups, aside).sum())


def test_simulated_streams_are_whole_groups():
    values = np.arange(12.0)[:, None]
    groups = np.repeat([4, 7, 9], [2, 6, 4])
    reference = calibration.Reference.of(values, calibration.RowBlocks.of_groups(groups))
    rows = calibration._Rows(reference, 5)
    drawn = np.concatenate([rows.draw(7, 5, np.random.default_rng(k)) for k in range(40)])
    for stream in drawn.T:
        steps = np.flatnonzero(np.diff(stream) != 1)
        assert set(stream[steps]) <= {1, 7, 11}
        assert set(stream[steps + 1]) <= {0, 2, 8}


def test_too_few_groups():
    groups = np.zeros(300)
    with pytest.raises(InputError, match="1 group; the threshold of a window of 20 rows needs 10 or more"):
        DriftMonitor(window=20, expected_run_length=100).fit(
            np.random.default_rng(0).normal(size=(300, 1)), groups=groups
        )


@pytest.mark.parametrize("compared", [True, False])
def test_false_alarms_with_words_and_gaps(compared):
    alarms = 0
    for run in range(25):
        rng = np.random.default_rng([run, 3])
        rows = np.c_[rng.integers(0, 6, 360).astype(float), rng.normal(size=360)]
        rows[rng.random(rows.shape) < 0.2] = np.nan
        monitor = AnytimeDriftMonitor(0.2, categorical=[0], compare_missing=compared, random_state=run).fit(rows[:60])
        alarms += len(monitor.update(rows[60:]))
    assert binomtest(alarms, 25, 0.2, "greater").pvalue > 1e-3


def logged(rows, start, seed, move=0.0):
    rng = np.random.default_rng(seed)
    when = pandas.date_range(start, periods=rows, freq="min")
    return pandas.DataFrame({"when": when, "place": rng.choice(["a", "b"], rows), "x": rng.normal(move, size=rows)})


@pytest.mark.parametrize("monitor", MONITORS)
def test_times_are_left_out_whatever_the_order_of_the_reference(monitor):
    """Shuffled times raised an alarm in every window: those of a stream are all later."""
    reference, later, moved = (
        logged(300, "2024-01-01", 0),
        logged(60, "2024-03-01", 1),
        logged(60, "2024-03-02", 2, 3.0),
    )
    for rows in (reference, reference.sample(frac=1.0, random_state=0)):
        fitted = clone(monitor)
        with pytest.warns(DataWarning, match="left out: 'when'"):
            fitted.fit(rows)
        assert not fitted.update(later)
        alarms = fitted.update(moved)
        assert alarms
        assert set(alarms.changes()["column"]) == {"place", "x"}


def test_a_column_that_counts_rows_is_named_where_rows_seem_to_depend():
    reference = logged(300, "2024-01-01", 0)[["place", "x"]].assign(stamp=1.7e9 + 61.5 * np.arange(300))
    with pytest.raises(InputError, match="leave out 'stamp', which only rises or falls; or give"):
        DriftMonitor(20, 400, random_state=0).fit(reference)
