"""The run length asked for is the one that comes, over references and streams."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from scipy.stats import chi2

from isopleth import DriftMonitor, InputError
from isopleth.core.dependence import Dependence
from isopleth.tasks.drift import calibration as drift_calibration
from isopleth.tasks.drift.calibration import Reference, RowBlocks, _quantile, _Rows, calibrate, in_stretches

ASKED = 200


def run_lengths(draw, references, streams, rows=300, window=20):
    """Run lengths of new streams and new references, as shares of the expected one."""
    found = []
    for i in range(references):
        rng = np.random.default_rng(i)
        monitor = DriftMonitor(window, ASKED, random_state=i, n_jobs=1).fit(draw(rng, rows))
        start = monitor.state_
        for _ in range(streams):
            monitor.state_ = start
            alarms = monitor.update(draw(rng, 5 * ASKED))
            while not alarms:
                alarms = monitor.update(draw(rng, 5 * ASKED))
            found.append((alarms.rows[0] + 1) / ASKED)
    return np.array(found)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda rng, n: rng.normal(size=(n, 2)), id="normal"),
        pytest.param(lambda rng, n: rng.poisson(1.0, size=(n, 3)).astype(float), id="counts"),
    ],
)
@pytest.mark.slow
def test_mean_run_length(draw, monkeypatch):
    monkeypatch.setattr(drift_calibration, "FEWEST", 200)
    monkeypatch.setattr(drift_calibration, "MOST", 200)
    found = run_lengths(draw, references=30, streams=10)
    assert found.mean() == pytest.approx(1.0, abs=0.15)
    # No law of run lengths makes alarms every other time at once and never otherwise.
    assert 0.4 < np.median(found) < 0.8


def autoregression(coefficient):
    def draw(rng, rows):
        noise = rng.normal(size=(rows + 100, 2)) * np.sqrt(1.0 - coefficient**2)
        return lfilter([1.0], [1.0, -coefficient], noise, axis=0)[100:]

    return draw


def season(rng, rows):
    """A day of 24 rows."""
    hours = np.arange(rows)
    return np.sin(2.0 * np.pi * hours / 24.0)[:, None] * [1.5, 0.7] + rng.normal(size=(rows, 2))


def dependence(draw, rows, seed=0):
    values = draw(np.random.default_rng(seed), rows)
    places = np.sort(np.random.default_rng(seed).permutation(rows)[rows // 10 :])
    return Dependence.of(values[places] - values[places].mean(axis=0), places)


def test_independent_rows_are_taken_as_independent():
    assert all(dependence(lambda rng, n: rng.normal(size=(n, 2)), 300, k) == Dependence() for k in range(200))


def test_dependence_and_seasons_are_found():
    found = [dependence(autoregression(0.8), 1000, k) for k in range(20)]
    assert np.median([each.rows for each in found]) == pytest.approx(9.0, rel=0.25)  # (1 + a) / (1 - a)
    assert sum(each.period > 0 for each in found) <= 2
    assert all(dependence(season, 600, k).period == 24 for k in range(10))


def test_the_period_of_a_season_is_not_a_multiple_of_it():
    """A weak season beside noise with memory: autocorrelations of single multiples are higher by chance."""

    def weak(rng, rows):
        return season(rng, rows) + autoregression(0.8)(rng, rows)

    def square(rng, rows):
        return np.where(np.arange(rows) % 24 < 10, 2.0, 0.0)[:, None] + autoregression(0.8)(rng, rows)

    assert all(
        dependence(draw, rows, k).period == 24 for draw in (weak, square) for rows in (600, 1000) for k in range(20)
    )


def test_streams_of_stretches_keep_the_order_and_the_season():
    places = np.delete(np.arange(240), np.arange(100, 110))
    blocks = RowBlocks.of_stretches(places, 60, 24, 1.0)
    rows = _Rows(Reference.of(np.arange(230.0)[:, None], blocks), 7)
    drawn = places[rows.draw(500, 7, np.random.default_rng(0))]
    steps = np.diff(drawn, axis=0)
    assert ((steps - 1) % 24 == 0).all()
    assert 0.8 < (steps == 1).mean() < 1.0
    shares = blocks.shares(2000, np.random.default_rng(1))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares.mean(axis=0), 1.0 / 230.0, rtol=0.3)


def test_windows_of_streams_vary_more_than_those_of_blocks_by_what_is_told():
    """Simulated from the law itself: the variance of means of 20 rows, over that of windows of blocks of centred references."""
    draw, window, block, rows = autoregression(0.8), 20, 110, 750
    rng, squares, among = np.random.default_rng(0), [], []
    for _ in range(40):
        X = draw(rng, rows)[:, :1]
        sums = np.cumsum(np.vstack([np.zeros((1, 1)), X]), axis=0)
        squares.append((((sums[window:] - sums[:-window]) / window) ** 2).mean())
        blocks = RowBlocks.of_stretches(np.arange(rows), block, 0, 1.0)
        drawn = _Rows(Reference.of(X - X.mean(), blocks), 20).draw(50 * window, 20, rng)
        values = (X - X.mean())[drawn, 0].reshape(50, window, 20)
        among.append((values.mean(axis=1) ** 2).mean())
    correlations = tuple(0.8 ** np.arange(1, 60) - 9.0 / rows)
    told = Dependence(9.0, 59, 0, correlations).lost(window, block, rows)
    assert 1.04 < told < 1.2
    assert told == pytest.approx(np.mean(squares) / np.mean(among), rel=0.04)
    assert Dependence(9.0, 59, 24, correlations).lost(window, block, rows) == 1.0


def test_dependent_rows_have_a_larger_threshold_and_need_a_longer_reference():
    X = autoregression(0.8)(np.random.default_rng(0), 1000)
    dependent = DriftMonitor(20, 200, random_state=0, n_jobs=1).fit(X)
    shuffled = DriftMonitor(20, 200, random_state=0, n_jobs=1).fit(np.random.default_rng(1).permutation(X))
    assert shuffled.dependence_ == 1.0
    assert dependent.dependence_ > 3.0
    assert dependent.threshold_ > 2.0 * shuffled.threshold_
    assert "depend on each other" in dependent.update(X[:5]).to_dict()["summary"][0]
    with pytest.raises(InputError, match=r"rows are too few to calibrate windows of 50 rows; give \d+ rows or more"):
        DriftMonitor(50, 200, random_state=0, n_jobs=1).fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [autoregression(0.5), autoregression(0.8), season], ids=["half", "most", "season"])
def test_mean_run_lengths_of_dependent_rows(draw, monkeypatch):
    monkeypatch.setitem(globals(), "ASKED", 480)  # whole days at a time
    assert 1.0 / 1.5 < run_lengths(draw, references=60, streams=6, rows=1000).mean() < 2.0


def words(count):
    def draw(rng, rows):
        return pd.DataFrame({"word": np.char.add("w", rng.integers(0, count, rows).astype(str))})

    return draw


@pytest.mark.filterwarnings("ignore:words that were not")
def test_mean_run_length_with_many_words(monkeypatch):
    """Words chosen from the rows that calibrate look rarer in new rows: the mean was 0.13."""
    monkeypatch.setattr(drift_calibration, "FEWEST", 100)
    monkeypatch.setattr(drift_calibration, "MOST", 100)
    assert 0.5 < run_lengths(words(200), references=12, streams=3).mean() < 2.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:words that were not")
@pytest.mark.parametrize("rows", [400, 1000, 2000])
@pytest.mark.parametrize("count", [3, 30, 300, 1000])
def test_mean_run_lengths_with_words(count, rows):
    found = run_lengths(words(count), references=150, streams=4, rows=rows)
    assert 1.0 / 1.3 < found.mean() < 1.3


def test_a_threshold_from_the_reference_alone_would_give_too_many_alarms():
    """Without simulated references there are too many alarms at this size."""
    values = np.random.default_rng(0).normal(size=(40, 1))
    values -= values.mean()
    threshold, lengths = calibrate(values, 20, 400.0, np.random.default_rng(0))
    assert lengths.mean() == pytest.approx(400.0, rel=0.02)
    many = np.repeat(values, 50, axis=0)
    unaware, _ = calibrate(many, 20, 400.0, np.random.default_rng(0))
    assert threshold > 1.03 * unaware


def test_thresholds_grow_with_the_run_length_and_follow_the_units():
    values = np.random.default_rng(0).normal(size=(200, 3)) * [3.0, 2.0, 1.0]
    values -= values.mean(axis=0)
    found = [calibrate(values, 20, length, np.random.default_rng(0))[0] for length in (100.0, 400.0, 1600.0)]
    assert found == sorted(found)
    doubled, _ = calibrate(2.0 * values, 20, 400.0, np.random.default_rng(0))
    assert doubled == pytest.approx(4.0 * found[1], rel=1e-6)


def test_quantiles_of_quadratic_forms():
    equal = np.diag(np.full(3, 2.0))[None]
    assert _quantile(equal, np.full((1, 2), 2.0), 0.01)[0] == pytest.approx(2.0 * chi2.isf(0.01, 5))
    variances = np.array([3.0, 1.0, 0.5, 0.2])
    draws = np.random.default_rng(0).normal(size=(200_000, 4)) ** 2 @ variances
    found = _quantile(np.diag(variances[:2])[None], variances[None, 2:], 0.005)[0]
    assert found == pytest.approx(np.quantile(draws, 0.995), rel=0.03)


def test_references_drawn_again_have_the_moments_of_means():
    values = np.random.default_rng(0).normal(size=(100, 20)) * np.linspace(3.0, 0.1, 20)
    values -= values.mean(axis=0)
    reference = Reference.of(values)
    means, scale = reference.drawn_again(4000, 0.01, np.random.default_rng(1))
    expected = reference.values.var(axis=0) / 100
    np.testing.assert_allclose(means.var(axis=0), expected, rtol=0.12)
    assert np.abs(means.mean(axis=0)).max() < 4.0 * np.sqrt(expected.max() / 4000)
    assert np.median(scale) == pytest.approx(1.0, abs=0.05)
    assert 0.02 < scale.std() < 0.3


@pytest.mark.parametrize(("n", "count"), [(100, 23), (57, 50), (40, 10)])
def test_rows_are_drawn_in_ten_stretches(n, count):
    found = in_stretches(n, count, np.random.default_rng(0))
    assert len(np.unique(found)) == len(found) == count
    assert 0 <= found.min() <= found.max() < n
    assert (np.diff(found) > 1).sum() <= 9
