"""The drift monitor whose alarms are valid at any time: its guarantee, its contract, what it finds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.utils.estimator_checks import parametrize_with_checks

from isopleth import InputError
from isopleth.core.errors import DataWarning
from isopleth.tasks import AnytimeDriftMonitor
from isopleth.tasks.drift import anytime


def fitted(rows=300, dim=2, seed=0, **parameters):
    rng = np.random.default_rng([seed, 0])
    return AnytimeDriftMonitor(**{"random_state": seed} | parameters).fit(rng.normal(size=(rows, dim)))


def alarm_share(runs, rows, alpha, draw):
    alarms = 0
    for run in range(runs):
        rng = np.random.default_rng([run, 1])
        monitor = AnytimeDriftMonitor(alpha, random_state=run).fit(draw(rng, 60))
        alarms += len(monitor.update(draw(rng, rows)))
    return alarms


@parametrize_with_checks([AnytimeDriftMonitor()])
def test_scikit_learn_contract(estimator, check, monkeypatch):
    monkeypatch.setattr(anytime, "_FEWEST", 2)
    check(estimator)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda rng, n: rng.normal(size=(n, 2)), marks=pytest.mark.slow),
        lambda rng, n: rng.standard_cauchy((n, 1)),
        pytest.param(lambda rng, n: rng.integers(0, 3, (n, 2)).astype(float), marks=pytest.mark.slow),
    ],
)
def test_false_alarms_over_short_streams(draw):
    assert binomtest(alarm_share(40, 300, 0.2, draw), 40, 0.2, "greater").pvalue > 1e-3


@pytest.mark.slow
def test_false_alarms_over_long_streams():
    """A bound for ever: streams of sixty references' length, at a level that many alarms would exceed."""
    alarms = alarm_share(150, 4000, 0.2, lambda rng, n: rng.normal(size=(n, 1)))
    assert binomtest(alarms, 150, 0.2, "greater").pvalue > 1e-3


def words(rng, rows, count, zipf):
    shares = 1.0 / np.arange(1.0, count + 1.0) ** zipf
    return pd.DataFrame({"word": np.char.add("w", rng.choice(count, rows, p=shares / shares.sum()).astype(str))})


def alarms_with_words(streams, rows, alpha, count, zipf, reference=400):
    alarms = 0
    for run in range(streams):
        rng = np.random.default_rng([run, count])
        monitor = AnytimeDriftMonitor(alpha, random_state=run).fit(words(rng, reference, count, zipf))
        alarms += len(monitor.update(words(rng, rows, count, zipf)))
    return alarms


@pytest.mark.filterwarnings("ignore:words that were not")
def test_false_alarms_with_many_words():
    """Words chosen from the rows that are compared later are more frequent there than in the stream: 10 alarms of 10."""
    assert alarms_with_words(10, 600, 0.01, count=300, zipf=0.0) <= 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:words that were not")
@pytest.mark.parametrize("zipf", [0.0, 1.0])
@pytest.mark.parametrize("count", [3, 30, 300, 1000])
def test_false_alarms_of_long_streams_of_words(count, zipf):
    assert alarms_with_words(400, 3000, 0.05, count, zipf, reference=1000) <= 30


def test_the_capital_is_a_fair_game():
    """The mean over streams is 1 after any number of rows, to the accuracy of the draws."""
    capital = []
    for run in range(80):
        monitor = fitted(rows=40, seed=run, dim=1)
        monitor.update(np.random.default_rng([run, 2]).normal(size=(4, 1)))
        capital.append(np.exp(monitor.state_.log_capital[0]))
    assert abs(np.mean(capital) - 1.0) < 4.0 * np.std(capital) / len(capital) ** 0.5


def test_ranks_are_those_of_sorting():
    """The gain of the first row against its definition, from ranks among the rows that are compared."""
    rng = np.random.default_rng(5)
    X, new = rng.integers(0, 9, (80, 1)).astype(float), np.array([[7.0]])
    monitor = AnytimeDriftMonitor(random_state=0).fit(X)
    compared = X[np.random.default_rng(monitor._seed).permutation(80)[20:], 0]
    edges = monitor._edges[0]
    place = np.searchsorted(edges, 7.0)
    bins = np.searchsorted(edges, compared)
    tie = np.random.default_rng([monitor._seed, 0]).random(2)[0]
    rank = ((bins > place).sum() + tie * ((bins == place).sum() + 1)) / 61
    stakes = [1.0 + s * (2 * rank - 1) for s in (-1, -0.5, 0.5, 1)]
    stakes += [1.0 + s * (2 * abs(2 * rank - 1) - 1) for s in (-1, -0.5, 0.5, 1)]
    monitor.update(new)
    assert np.exp(monitor.state_.log_capital[0]) == pytest.approx(np.mean([1.0, *stakes]))


@pytest.mark.parametrize(
    ("change", "named"), [(lambda X: X + [0.0, 1.5], "column 1"), (lambda X: X * [3.0, 1.0], "column 0")]
)
def test_changes_are_found_and_named(change, named):
    monitor, rng = fitted(), np.random.default_rng(3)
    assert not monitor.update(rng.normal(size=(300, 2)))
    found = monitor.update(change(rng.normal(size=(150, 2))))
    assert len(found) == 1
    assert 310 < found.rows[0] < 420
    assert found.changes()["column"][0] == named
    assert np.isnan(found.statistic[found.rows[0] - 300 + 1 :]).all()
    assert not monitor.update(rng.normal(5.0, size=(100, 2)))
    assert monitor.state_.n_rows == 550


@pytest.mark.parametrize("correlation", [0.97, 0.7])
def test_a_change_of_dependence_is_found(correlation):
    """Missed in 900 rows with scores of single columns and one mean of kernels only; now found in 40 to 150."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        monitor = AnytimeDriftMonitor(random_state=0).fit(rng.normal(size=(500, 2)))
        after = rng.multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]], 600)
        assert len(monitor.update(after)) == 1


def test_units_of_the_columns_change_nothing():
    rng = np.random.default_rng(5)
    reference, stream, units = (
        rng.normal(size=(200, 3)),
        rng.normal(0.3, 1.0, size=(300, 3)),
        [1024.0, 1.0, 1.0 / 512.0],
    )
    plain = AnytimeDriftMonitor(random_state=0).fit(reference).update(stream)
    scaled = AnytimeDriftMonitor(random_state=0).fit(reference * units).update(stream * units)
    np.testing.assert_array_equal(plain.statistic, scaled.statistic)


def test_names_of_columns_and_refusals():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    monitor = AnytimeDriftMonitor(random_state=0).fit(frame)
    assert monitor.update(frame + [0.0, 3.0]).changes()["column"][0] == "b"
    with pytest.raises(InputError, match="20 or more"):
        AnytimeDriftMonitor().fit(rng.normal(size=(9, 2)))
    with pytest.raises(ValueError, match="false_alarm_probability"):
        AnytimeDriftMonitor(1.5).fit(frame)
    other = fitted(seed=1)
    other.state_ = monitor.state_
    with pytest.raises(InputError, match="state_ is not of this monitor"):
        other.update(rng.normal(size=(3, 2)))


def test_a_running_total_in_the_reference_is_warned_of():
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"a": rng.normal(size=200), "total": np.cumsum(rng.poisson(20.0, 200))})
    with pytest.warns(DataWarning, match="'total' is a running total, .* give its increments to watch them"):
        AnytimeDriftMonitor(random_state=0).fit(table)
