"""A series that grows: values that are appended and say nothing new do not move what was found."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import ChangePointDetector


def _series(kind: str, seed: int) -> np.ndarray:
    noise, after = np.random.default_rng([seed, 9]).normal(size=420), np.arange(420) >= 200
    if kind == "level":
        return noise + 2.0 * after
    if kind == "scatter":
        return noise * np.where(after, 2.5, 1.0)
    return np.sin(2.0 * np.pi * (np.arange(420) - 200) / np.where(after, 14.0, 20.0)) + 0.3 * noise


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("level", 1),
        pytest.param("scatter", 0, marks=pytest.mark.slow),
        ("frequency", 2),
        pytest.param("frequency", 3, marks=pytest.mark.slow),
    ],
)
def test_the_last_change_stays_where_it_was_when_a_twentieth_is_appended(kind, seed):
    series = _series(kind, seed)
    before, after = (ChangePointDetector(random_state=0).fit(series[:length]) for length in (400, 420))
    assert len(before.change_points_) == len(after.change_points_) == 1
    assert abs(int(after.change_points_[-1]) - int(before.change_points_[-1])) <= 1
    assert before.kinds_.tolist() == after.kinds_.tolist()
