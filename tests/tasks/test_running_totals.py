"""Running totals: changes of their increments are told, and the total is said to be one."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import ChangePointDetector
from isopleth.tasks.running_totals import increments, is_running_total


def rises(seed, factor):
    rng = np.random.default_rng(seed)
    return rng.poisson(20.0 * np.where(np.arange(400) >= 250, factor, 1.0)).astype(float)


@pytest.mark.parametrize("reset", [False, True])
def test_a_rate_that_doubles_is_one_change_of_the_increments_of_a_total(reset):
    total = np.cumsum(rises(0, 2.0))
    if reset:
        total[120:] -= total[119]
    result = ChangePointDetector(random_state=0).fit(total).result_
    assert result.kinds.tolist() == ["level"]
    assert abs(int(result.change_points[0]) - 250) <= 1
    assert "The series is a running total: changes of its increments were sought." in result.text()
    (before,), (after,) = (result.table()[side] for side in ("before", "after"))
    assert (before, after) == (pytest.approx(20.0, abs=1.0), pytest.approx(40.0, abs=1.0))


def test_a_total_that_grows_evenly_has_no_change_with_a_reference_or_without():
    total = np.cumsum(rises(1, 1.0))
    for reference in (None, total[:100]):
        assert len(ChangePointDetector(random_state=0).fit(total, reference=reference).change_points_) == 0


def test_what_is_no_total_is_judged_as_it_is():
    rng = np.random.default_rng(2)
    steps = np.arange(300.0)
    assert is_running_total(np.cumsum(rng.exponential(size=300)))
    assert not is_running_total(rng.normal(size=300))
    assert not is_running_total(steps)  # a line up to rounding
    assert not is_running_total(np.repeat([0.0, 1.0, 5.0], 100))
    assert not is_running_total(10.0 * steps + rng.uniform(size=300))  # a line measured with errors
    assert not is_running_total(-np.cumsum(rng.exponential(size=300))[::-1])
    falls = np.cumsum(rng.exponential(size=300))
    falls[150:] -= 2.0
    assert not is_running_total(falls)


def test_increments_at_resets_and_gaps_are_unknown():
    total = np.array([5.0, 7.0, np.nan, 9.0, 1.0, 4.0, 4.0])
    np.testing.assert_array_equal(increments(total), [np.nan, 2.0, np.nan, np.nan, np.nan, 3.0, 0.0])
