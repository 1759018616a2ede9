"""The drift monitor: its contract, its arithmetic, its memory, what it refuses."""

from __future__ import annotations

from copy import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

import isopleth
from isopleth import DataWarning, DriftMonitor, InputError
from isopleth.tasks import AnytimeDriftMonitor
from isopleth.tasks.drift import calibration as drift_calibration


@pytest.fixture(autouse=True)
def short_simulations(monkeypatch):
    """Thresholds are tested elsewhere."""
    monkeypatch.setattr(drift_calibration, "FEWEST", 50)
    monkeypatch.setattr(drift_calibration, "SIMULATED_ROWS", 1e4)


def monitor(rows=300, dim=3, seed=0, **parameters):
    """A monitor of its own, of one fit for all tests with these parameters."""
    return copy(_kept(rows, dim, seed, **parameters))


def _fitted(rows, dim, seed, **parameters):
    rng = np.random.default_rng(seed)
    parameters = {"window": 20, "expected_run_length": 2000, "random_state": 0} | parameters
    return DriftMonitor(**parameters).fit(rng.normal(size=(rows, dim)) * np.arange(1, dim + 1))


_kept = cache(_fitted)


def stream(rows=400, dim=3, seed=1):
    """No change in the first half, a shift in the second."""
    X = np.random.default_rng(seed).normal(size=(rows, dim)) * np.arange(1, dim + 1)
    X[rows // 2 :, 0] += 2.0
    return X


def dense_statistic(fitted, window):
    """h' M h with a dense inverse, from rows."""
    features, alpha = fitted._windows.features, fitted.alpha
    z, centers = features.frame.enter(fitted._windows.residuals.beside(window)), features.functions.centers
    psi = np.exp(-0.5 * ((z[:, None] - centers) ** 2).sum(-1)).mean(axis=0)
    H = np.exp(-0.25 * ((centers[:, None] - centers) ** 2).sum(-1))
    inverse = np.linalg.inv(H + alpha * np.eye(len(H)))
    h = psi - fitted_mean(fitted, centers)
    return h @ (2 * inverse - inverse @ H @ inverse) @ h


def fitted_mean(fitted, centers):
    """Mean of the kernels over the rows of the reference that are no centres."""
    X = np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 2.0, 3.0]
    z = fitted._windows.features.frame.enter(fitted._windows.residuals.beside(X, left_out=True))
    squares = ((z[:, None] - centers) ** 2).sum(-1)
    others = squares.min(axis=1) > 1e-20
    assert (~others).sum() == len(centers) == 75
    return np.exp(-0.5 * squares[others]).mean(axis=0)


def test_statistic_is_the_dual_form_of_each_window():
    fitted, X = monitor(expected_run_length=5000), stream()
    found = fitted.update(X[:200])
    assert not found
    assert np.isnan(found.statistic[:19]).all()
    expected = [dense_statistic(fitted, X[i - 19 : i + 1]) for i in range(19, 200, 7)]
    np.testing.assert_allclose(found.statistic[19::7], expected, rtol=1e-4)  # directions below LOST are left out


def test_change_is_found_and_the_window_starts_again():
    fitted, X = monitor(), stream()
    found = fitted.update(X)
    assert 200 < found.rows[0] < 225
    for row in found:
        assert np.isnan(found.statistic[row + 1 : row + 20]).all()
        assert np.isfinite(found.statistic[row + 20 : row + 21]).all()
    assert fitted.state_.n_rows == 400
    assert fitted.state_.alarms == len(found) > 3
    table = found.table()
    np.testing.assert_array_equal(table["first_row"], found.rows - 19)
    assert (table["statistic"] > fitted.threshold_).all()
    assert repr(found).startswith(f"DriftAlarms({len(found)} alarms in rows 0 to 399: {found.rows[0]}, ")


@pytest.mark.parametrize("dim", [1, 3, 20])
def test_how_rows_are_cut_changes_no_bit(dim):
    fitted, X = monitor(dim=dim), stream(dim=dim)
    start = fitted.state_
    whole = fitted.update(X).statistic
    for cuts in (range(1, 400), [1, 2, 3, 50, 61, 200, 399], np.arange(7, 400, 7)):
        fitted.state_ = start
        parts = [fitted.update(part).statistic for part in np.split(X, cuts)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_saved_monitor_continues_with_the_same_bits(tmp_path):
    fitted, X = monitor(), stream()
    whole = monitor().update(X)
    first = fitted.update(X[:231])
    kept = fitted.state_
    isopleth.save(fitted, tmp_path / "monitor")
    again = isopleth.load(tmp_path / "monitor")
    second = again.update(X[231:])
    np.testing.assert_array_equal(np.concatenate([first.statistic, second.statistic]), whole.statistic)
    assert [*first, *second] == list(whole)
    fitted.update(stream(seed=5))
    fitted.state_ = kept
    np.testing.assert_array_equal(fitted.update(X[231:]).statistic, second.statistic)


def test_memory_is_that_of_two_windows():
    fitted = monitor()
    sizes = set()
    for seed in range(3):
        fitted.update(stream(1000, seed=seed))
        sizes.add(fitted.state_.block.nbytes + fitted.state_.suffix.nbytes + fitted.state_.prefix.nbytes)
    assert sizes == {8 * 41 * len(fitted._windows.mean)}


def test_units_signs_and_the_order_of_columns_make_no_difference():
    X, reference = stream(), np.random.default_rng(0).normal(size=(300, 3))
    scale, shift, order = np.array([-(2.0**20), 2.0**-9, 1.0]), np.array([4.0, -8.0, 0.5]), [2, 0, 1]
    plain = DriftMonitor(20, 300, random_state=0).fit(reference)
    other = DriftMonitor(20, 300, random_state=0).fit((reference * scale + shift)[:, order])
    assert other.threshold_ == pytest.approx(plain.threshold_, rel=1e-4)
    found = other.update((X * scale + shift)[:, order])
    np.testing.assert_allclose(found.statistic[19:100], plain.update(X).statistic[19:100], rtol=1e-8)


def test_a_new_reference_continues_the_count_of_rows():
    fitted, X = monitor(), stream(dim=3)
    assert fitted.update(X)
    before = fitted.state_
    assert fitted.update_reference(X[200:]) is fitted
    assert (fitted.state_.n_rows, fitted.state_.alarms, fitted.state_.since) == (400, before.alarms, 0)
    found = fitted.update(stream(seed=2)[200:])
    assert found.first_row == 400
    assert not found
    fresh = DriftMonitor(20, 2000, random_state=0).fit(X[200:])
    assert fresh.threshold_ == fitted.threshold_
    with pytest.raises(InputError, match="fewer than the window"):
        fitted.update_reference(X[:5])
    assert fitted.threshold_ == fresh.threshold_


def test_a_constant_stretch_is_a_change_and_no_error():
    fitted = monitor()
    found = fitted.update(np.zeros((60, 3)))
    assert np.isfinite(found.statistic[19])
    assert found
    far = fitted.update(np.full((30, 3), 1e300))
    assert far
    assert not np.isinf(far.statistic).any()


def test_heavy_tails_do_not_blur_the_rest():
    rng = np.random.default_rng(0)
    reference = rng.standard_t(1, size=(500, 1))
    fitted = DriftMonitor(50, 500, random_state=0).fit(reference)
    assert fitted.length_scale_[0] < 3.0 < reference.std()
    assert fitted.update(rng.standard_t(1, size=(100, 1)) + 3.0)


def test_constant_columns_are_left_out():
    X = stream()
    X[:, 1] = 7.0
    with pytest.warns(DataWarning, match="column 1"):
        fitted = DriftMonitor(20, 300, random_state=0).fit(X[:200])
    assert np.isnan(fitted.length_scale_[1])
    other = X[200:].copy()
    other[:, 1] = 9.0
    start = fitted.state_
    first = fitted.update(X[200:]).statistic
    fitted.state_ = start
    np.testing.assert_array_equal(fitted.update(other).statistic, first)


@pytest.mark.parametrize(
    ("parameters", "rows", "words"),
    [
        ({"window": 50}, 49, "49 rows, fewer than the window of 50"),
        ({"window": 50, "expected_run_length": 99}, 300, "less than twice the window"),
        ({"length_scale": [1.0, 2.0]}, 300, "one for each of 3 columns"),
        ({"length_scale": [1.0, 2.0, np.inf]}, 300, "positive, finite"),
        ({"window": 1}, 300, "window"),
        ({"alpha": 0.0}, 300, "alpha"),
        ({"expected_run_length": 1e8}, 300, "more than can be simulated"),
        ({"length_scale": 1e-9}, 300, "look the same"),
        ({"length_scale": 1e9}, 300, "look the same"),
        ({"window": 2}, 2, "look the same"),
    ],
)
def test_refusals(parameters, rows, words):
    with pytest.raises(ValueError, match=words):
        _fitted(rows, 3, 0, **parameters)


def test_rows_that_cannot_be_used_are_not_taken_in():
    fitted, X = monitor(), stream()
    X[30, 1] = np.inf
    with pytest.raises(InputError, match=r"inf in column 1 \(1 row\)"):
        fitted.update(X)
    assert fitted.state_.n_rows == 0
    with pytest.raises(InputError, match="inf"):
        DriftMonitor().fit(X)


def test_states_of_others_are_refused():
    fitted, X = monitor(), stream()
    kept = fitted.state_
    for other in (monitor(seed=1), monitor(window=30), monitor(random_state=1), None):
        fitted.state_ = other and other.state_
        with pytest.raises(InputError, match="not of this monitor"):
            fitted.update(X)
    fitted.state_ = kept
    fitted.update_reference(X[:200])
    fitted.state_ = kept
    with pytest.raises(InputError, match="not of this monitor"):
        fitted.update(X)


def test_refused_rows_leave_the_place_in_the_stream():
    fitted, X = monitor(), stream()
    whole = monitor().update(X).statistic
    fitted.update(X[:90])
    bad = X[90:].copy()
    bad[55, 2] = -np.inf
    with pytest.raises(InputError, match="inf"):
        fitted.update(bad)
    np.testing.assert_array_equal(fitted.update(X[90:]).statistic, whole[90:])


@pytest.mark.parametrize("monitor_of", [DriftMonitor, AnytimeDriftMonitor])
def test_a_batch_without_rows_is_refused(monitor_of):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    fitted = monitor_of(window=20, random_state=0).fit(frame)
    for batch in (frame[:0], frame[:0].to_numpy(), []):
        with pytest.raises(InputError, match="no rows; expected one or more rows of the stream"):
            fitted.update(batch)
    assert fitted.state_.n_rows == 0


def test_a_reference_that_hardly_varies():
    rare = np.zeros((200, 1))
    rare[::40] = 1.0
    fitted = DriftMonitor(20, 200, random_state=0).fit(rare)
    assert fitted.threshold_ > 0.0
    assert not fitted.update(np.zeros((60, 1)))
    assert fitted.update(np.ones((20, 1)))
    with pytest.warns(DataWarning, match="no threshold has a mean run length of 20 rows"):
        DriftMonitor(2, 20, random_state=0).fit([[0.0], [1.0], [3.0]])


@pytest.mark.parametrize("window", [5, 20])
def test_windows_too_short_for_any_alarm_give_a_warning(window, recwarn):
    fitted = monitor(rows=500, dim=1, window=window, expected_run_length=1000)
    warned = any("raise no alarm" in str(warning.message) for warning in recwarn)
    assert warned == (window == 5)
    assert bool(fitted.update(np.full((window, 1), 1e6))) == (not warned)


def test_no_ridge_is_too_large():
    assert monitor(alpha=1e300).update(stream()[200:])


def test_plot():
    pytest.importorskip("matplotlib")
    fitted = monitor()
    ax = fitted.update(stream()).plot()
    line = ax.lines[0]
    assert len(line.get_xdata()) == 400
    assert ax.lines[1].get_ydata()[0] == fitted.threshold_
    assert len(ax.collections[0].get_offsets()) == fitted.state_.alarms


def test_an_alarm_names_the_columns_that_moved():
    fitted, X = monitor(), stream()
    found = fitted.update(X)
    assert len(found.columns) == len(found)
    row = found.rows[0]
    window, reference = X[row - 19 : row + 1], np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 2.0, 3.0]
    changes = found.changes()
    assert changes["column"][0] == "column 0"
    assert changes["moved"][0]
    order = [int(name[-1]) for name in changes["column"]]
    largest = np.array([ks_2samp(reference[:, j], window[:, j]).statistic for j in order])
    chance = np.pi**2 / 12.0 * (1 / 300 + 1 / 20)
    np.testing.assert_allclose(changes["share"], np.sqrt(np.maximum(largest**2 - chance, 0.0)))
    np.testing.assert_allclose(changes["median_before"], np.median(reference, axis=0)[order])
    np.testing.assert_allclose(changes["median_after"], np.median(window, axis=0)[order])
    with pytest.raises(InputError, match="alarm = 99"):
        found.changes(99)


def test_the_columns_of_an_alarm_do_not_depend_on_how_rows_are_cut():
    fitted, X = monitor(), stream()
    start = fitted.state_
    whole = fitted.update(X).columns
    fitted.state_ = start
    parts = [fitted.update(part) for part in np.split(X, [1, 2, 3, 50, 61, 200, 201, 399])]
    again = [changes for part in parts for changes in part.columns]
    assert len(again) == len(whole) > 1
    for one, two in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one["share"], two["share"])


def test_a_least_effect_raises_the_threshold_by_a_share_of_the_largest_distance():
    plain, strict = monitor(), monitor(min_effect=0.3)
    far = np.full((20, 3), 1e6)
    largest = plain.update(far).statistic
    norm = np.linalg.norm(plain._windows.mean)
    assert np.nanmax(largest) == pytest.approx(norm**2)
    assert np.sqrt(strict.threshold_) == pytest.approx(np.sqrt(plain.threshold_) + 0.3 * norm)
    rng = np.random.default_rng(3)
    small, large = (rng.normal(size=(4000, 3)) * [1.0, 2.0, 3.0] + [shift, 0.0, 0.0] for shift in (0.7, 3.0))
    assert len(monitor().update(small)) > 10
    assert len(monitor(min_effect=0.3).update(small)) <= 4  # the run length asked for is half of these rows
    assert len(monitor(min_effect=0.3).update(large)) > 10


def test_alarms_name_the_columns_of_a_frame_after_a_new_reference_too():
    frame = pd.DataFrame(stream(), columns=["a", "b", "c"])
    fitted = DriftMonitor(window=20, expected_run_length=2000, random_state=0).fit(frame[:200])
    assert fitted.update(frame[200:]).changes()["column"][0] == "a"
    found = fitted.update_reference(frame[200:]).update(frame[:200])
    assert sorted(found.changes()["column"]) == ["a", "b", "c"]


def test_the_spread_is_that_of_the_bulk_and_takes_zeros_and_giant_numbers():
    X = np.random.default_rng(8).normal(size=(1001, 1)) * [1.0, 1e200, 0.0]
    X[0, 0] = 1e6
    deviations = drift_calibration.spread(X)
    assert deviations[0] == pytest.approx(np.subtract(*np.quantile(X[:, 0], (0.75, 0.25))) / 1.349)
    assert 0.9e200 < deviations[1] < 1.1e200
    assert deviations[2] == 0.0


def test_a_column_that_moves_given_the_others_raises_an_alarm_and_is_named():
    """By .3, which is 1.2 of what the other five columns leave open; without residuals no alarm came in 600 rows."""
    covariance = np.full((6, 6), 0.95) + 0.05 * np.eye(6)
    rng = np.random.default_rng(0)
    reference, later = (
        rng.multivariate_normal(np.zeros(6), covariance, 400),
        rng.multivariate_normal(np.zeros(6), covariance, 300),
    )
    later[150:, 2] += 0.3
    fitted = DriftMonitor(50, 1000, random_state=0).fit(reference)
    assert not fitted.update(later[:150])
    alarms = fitted.update(later[150:])
    assert 150 < next(iter(alarms)) < 210
    found = alarms.changes(1)  # its window is full of rows from after the change
    shift = dict(zip(found["column"], found["shift_given_others"], strict=True))
    assert 0.6 < shift.pop("column 2") < 1.8
    assert set(shift.values()) == {0.0}


def test_columns_of_a_frame_may_come_in_another_order():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("abc"))
    fitted = DriftMonitor(20, 300, random_state=0).fit(frame)
    start = fitted.state_
    first = fitted.update(frame).statistic
    fitted.state_ = start
    np.testing.assert_array_equal(fitted.update(frame[["c", "a", "b"]]).statistic, first)
    with pytest.raises(InputError, match="all rows of the reference are equal"):
        DriftMonitor(20, 300).fit(np.ones((50, 2)))


def test_the_advice_for_a_short_reference_can_be_followed():
    rng, rows = np.random.default_rng(0), np.arange(500)
    season = np.sin(rows / 12.0 * np.pi)[:, None] + 0.3 * rng.normal(size=(500, 2))
    with pytest.raises(
        InputError, match=r"give 1444 rows or more, a window of [0-9]+ rows or fewer, judge rows in their context, "
    ) as error:
        DriftMonitor(50, 2000, random_state=0).fit(season)
    window = int(str(error.value).split("a window of ")[1].split()[0])
    DriftMonitor(window, 200, random_state=0).fit(season)


def test_of_columns_that_depend_on_nothing_none_moves_given_the_others():
    fitted, X = monitor(), stream()
    changes = fitted.update(X).changes()
    moved = dict(zip(changes["column"], changes["shift_given_others"], strict=True))
    assert moved["column 0"] > 0.5
    assert moved["column 1"] == moved["column 2"] == 0.0
