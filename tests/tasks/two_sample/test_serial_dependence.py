"""Warnings of rows that depend on each other in time."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pytest

from isopleth import two_sample_test
from isopleth.core.errors import DataWarning

FAST = {"n_resamples": 19, "n_jobs": 1, "random_state": 0, "keep_times": True}


def hours(rng, n, memory, season=0.0):
    noise, load = rng.normal(size=n), np.zeros(n)
    for i in range(n):
        load[i] = memory * load[i - 1] + np.sqrt(1.0 - memory**2) * noise[i]
    times = pd.date_range("2024-01-01", periods=n, freq="h")
    return pd.DataFrame({"load": load + season * np.sin(np.arange(n) * np.pi / 12.0), "time": times})


def test_rows_with_memory_are_warned_of_with_their_effective_number():
    rng = np.random.default_rng(0)
    first, second = hours(rng, 480, 0.8), hours(rng, 480, 0.8)
    with pytest.warns(
        DataWarning, match=r"alike, most in 'load': 960 rows say as much of its mean as about \d+ "
    ) as caught:
        two_sample_test(first, second, **FAST)
    text = str(next(each.message for each in caught if "alike" in str(each.message)))
    assert 40 < int(text.partition("about ")[2].partition(" ")[0]) < 240  # 107 by theory
    order = rng.permutation(480)
    with pytest.warns(DataWarning) as again:
        two_sample_test(first.iloc[order], second, **FAST)
    assert text in [str(each.message) for each in again]


@pytest.mark.parametrize("season", [0.0, 2.0])
def test_independent_rows_and_seasons_of_a_day_are_not_warned_of(season):
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        two_sample_test(hours(rng, 480, 0.0, season), hours(rng, 480, 0.0, season), **FAST)


def test_groups_are_not_warned_of():
    rng = np.random.default_rng(2)
    days = np.arange(240) // 24
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        two_sample_test(hours(rng, 240, 0.8), hours(rng, 240, 0.8), groups=(days, 100 + days), **FAST)


def meters(rng, memory):
    """Forty meters, a row a day for sixty days, which share the weather of a day."""
    days, count = 60, 40
    noise, weather = rng.normal(size=days), np.zeros(days)
    for i in range(days):
        weather[i] = memory * weather[i - 1] + np.sqrt(1.0 - memory**2) * noise[i]
    load = weather[:, None] * (memory > 0.0) + rng.normal(size=count) + rng.normal(size=(days, count))
    times = np.repeat(pd.date_range("2024-01-01", periods=days), count)
    return pd.DataFrame({"load": load.ravel(), "time": times}), np.tile(np.arange(count), days)


def test_groups_that_last_as_long_as_the_samples_are_warned_of_and_the_answer_does_not_call_its_p_value_exact():
    rng = np.random.default_rng(3)
    (first, one), (second, other) = meters(rng, 0.8), meters(rng, 0.8)
    with pytest.warns(DataWarning, match="groups that last as long as the samples do not mend it"):
        found = two_sample_test(first, second, groups=(one, 40 + other), **FAST)
    assert "groups and is too small, since rows that follow each other in 'time' are alike" in found.text()
    with pytest.warns(DataWarning, match="so p-values are too small"):
        assert "rows and is too small" in two_sample_test(first, second, **FAST).text()


def test_groups_of_rows_that_do_not_depend_on_their_time_are_not_warned_of():
    rng = np.random.default_rng(4)
    (first, one), (second, other) = meters(rng, 0.0), meters(rng, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        found = two_sample_test(first, second, groups=(one, 40 + other), **FAST)
    assert "groups and is exact for independent groups" in found.text()


def test_times_of_day_are_no_order_of_rows():
    rng = np.random.default_rng(5)
    hour = rng.integers(0, 24, (2, 300))
    tables = [
        pd.DataFrame(
            {
                "at": [dt.time(int(h), int(m)) for h, m in zip(row, rng.integers(0, 60, 300), strict=True)],
                "temp": 5.0 * np.sin(row / 3.8) + rng.normal(size=300),
            }
        )
        for row in hour
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        two_sample_test(*tables, **FAST)
