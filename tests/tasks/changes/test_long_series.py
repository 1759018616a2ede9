"""Long series are searched in means: what wanders slowly beside noise of single steps is no chain of levels and lines."""

import numpy as np
import pytest

from isopleth.tasks.changes import long_series
from isopleth.tasks.changes.long_series import segment_of_means
from isopleth.tasks.changes.seasons_beside import SeasonSearch
from isopleth.tasks.changes.segments import segment


@pytest.fixture
def few_means(monkeypatch):
    monkeypatch.setattr(long_series, "_MEANS", 250)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_slope_beside_a_walk_in_noise_is_the_only_change(few_means, seed):
    rng = np.random.default_rng(seed)
    walk = 0.15 * np.cumsum(rng.normal(size=2500)) + 0.5 * rng.normal(size=2500)
    series = (walk + 0.1 * np.maximum(np.arange(2500) - 1500, 0))[:, None]
    found = segment_of_means(series)
    assert len(found.changes) == 1
    assert abs(found.changes[0] - 1500) < 75
    assert len(segment(series).changes) > 1  # step by step, levels and lines follow the walk


def test_a_level_is_found_at_its_step_and_series_of_fewer_means_are_searched_step_by_step(few_means):
    rng = np.random.default_rng(0)
    series = rng.normal(size=(4003, 2)) + 3.0 * (np.arange(4003)[:, None] >= 1234)
    found = segment_of_means(series)
    assert found.changes.tolist() == [1234]
    assert found.innovations.shape == (4003, 2)
    short = series[:900]
    assert segment_of_means(short).cost == segment(short).cost


def test_a_recorded_walk_with_a_slope_has_no_week():
    """Without its steps of recording a series seemed to cost less once a season was subtracted, whichever it was."""
    rng = np.random.default_rng(0)
    n = 3 * 7 * 24
    memory = 2000.0 + 0.15 * np.cumsum(rng.normal(size=n)) + 0.05 * np.maximum(np.arange(n) - 300, 0)
    cells = np.round(memory, 1)[:, None]
    search = SeasonSearch(cells, 3600.0 * np.arange(n), rng)
    week = 0.3 * np.sin(2.0 * np.pi * np.arange(n) / 168.0)[:, None]
    (fit,) = search.fitted([[]], week)
    (plain,) = search.fitted([[]], np.zeros_like(cells))
    assert plain.cost < fit.cost
