"""Series that rest at a bound, as shares of successes at 1, and series that are turned upside down."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isopleth import ChangePointDetector
from isopleth.tasks.changes.bounds import Bounds


def failures(seed, share=0.008, incident=(2500, 2515), height=0.3, count=4000, requests=70):
    """Shares of requests that fail in steps of five minutes, more by day: most are 0."""
    rng = np.random.default_rng(seed)
    phase = 2.0 * np.pi * np.arange(count) / 288.0
    asked = 1 + rng.poisson(requests * (1.0 - 0.6 * np.cos(phase)))
    chance = np.full(count, share)
    chance[slice(*incident)] = height
    return np.round(rng.binomial(asked, chance) / asked, 4)


def found(series, **how):
    return ChangePointDetector(random_state=0).fit(series, **how).result_


@pytest.mark.parametrize("turned", [lambda x: x, lambda x: 1.0 - x, lambda x: 100.0 - 100.0 * x, lambda x: -x])
def test_an_incident_in_a_share_that_rests_at_0_or_at_1_is_found_to_the_row(turned):
    """Most steps are equal, and their robust deviation is 0: no incident was sought."""
    result = found(turned(failures(61)))
    assert result.incidents.tolist() == [[2500, 2515]]
    assert result.count == 1


def test_no_incident_is_found_in_a_share_without_one():
    for seed in range(3):
        assert found(1.0 - failures(seed, height=0.008, count=2500)).count == 0


def test_incidents_of_series_that_rest_are_rarely_chance():
    """Rain, sparse counts that come in bursts, and levels that come and go."""
    rng = np.random.default_rng(63)
    false = 0
    for _ in range(3):
        wet = np.cumsum(rng.random(1500) < 0.15) % 3 == 0
        false += len(found(np.where(wet & (rng.random(1500) < 0.8), rng.gamma(0.8, 5.0, 1500), 0.0).round(1)).incidents)
        bursts = np.exp(1.2 * np.repeat(rng.normal(size=300), 5) - 2.5)
        false += len(found(rng.poisson(bursts).astype(float)).incidents)
    assert false == 0


@pytest.mark.parametrize("kind", ["step", "scatter", "season", "incident", "share"])
def test_a_series_and_its_mirror_image_have_the_same_changes(kind):
    rng = np.random.default_rng(64)
    n = 400 if kind != "share" else 2000
    series = rng.normal(size=n)
    series[240:] += {"step": 1.5}.get(kind, 0.0)
    series[240:] *= {"scatter": 3.0}.get(kind, 1.0)
    series[240:246] += {"incident": 12.0}.get(kind, 0.0)
    if kind == "season":
        series += 3.0 * np.abs(np.sin(np.pi * np.arange(n) / 24.0)) + 2.0 * (np.arange(n) >= 200)
    if kind == "share":
        series = failures(64, 0.03, (1000, 2000), 0.08, n)
    plain, mirrored = found(series), found(5.0 - series)
    assert len(plain) > 0
    assert plain.change_points.tolist() == mirrored.change_points.tolist()
    assert plain.kinds.tolist() == mirrored.kinds.tolist()


def test_what_is_told_of_a_mirrored_share_is_in_its_own_units():
    success = 1.0 - failures(65)
    times = pd.date_range("2026-01-05", periods=len(success), freq="5min")
    row = found(success, times=times).to_dict()["table"][0]
    assert -0.35 < row["height"] < -0.2
    assert 0.98 < row["before"] < 1.0
    assert 0.98 < row["after"] < 1.0


def test_bounds_are_extremes_that_are_most_frequent():
    rng = np.random.default_rng(66)
    columns = [rng.normal(size=50), np.minimum(rng.normal(size=50), 0.5), np.maximum(rng.normal(size=50), 0.25)]
    columns += [np.zeros(50), np.full(50, np.nan), rng.integers(-1, 2, 50) * (rng.random(50) < 0.3)]
    values = np.column_stack(columns)
    values[:5] = np.nan
    bounds = Bounds.of(values)
    assert bounds.places.tolist() == [0.0, 0.5, 0.25, 0.0, 0.0, 0.0]
    assert bounds.signs.tolist() == [1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(bounds.values(bounds.distances(values)), values)
    assert np.nanmin(bounds.distances(values)[:, 1]) == 0.0
