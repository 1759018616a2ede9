"""A series that grows: values that are appended and say nothing new do not move what was found."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import ChangePointDetector


@pytest.mark.parametrize(("kind", "seed"), [("level", 1), ("scatter", 0)])
def test_the_last_change_stays_where_it_was_when_a_twentieth_is_appended(kind, seed):
    series = np.random.default_rng([seed, 9]).normal(size=420)
    series = series + 2.0 * (np.arange(420) >= 200) if kind == "level" else series * np.repeat([1.0, 2.5], [200, 220])
    before, after = (ChangePointDetector(random_state=0).fit(series[:length]) for length in (400, 420))
    assert len(before.change_points_) == len(after.change_points_) == 1
    assert abs(int(after.change_points_[-1]) - int(before.change_points_[-1])) <= 1
    assert before.kinds_.tolist() == after.kinds_.tolist()
