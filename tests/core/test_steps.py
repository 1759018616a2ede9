"""Steps in which numbers are recorded."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.core import steps
from isopleth.core.steps import recorded_step


@pytest.mark.parametrize("wrong", [(), (0, 1, 2), (-3, -2, -1), (0, 500, 999)])
def test_numbers_of_other_steps_count_wherever_they_stand(wrong, monkeypatch):
    values = np.arange(1.0, 1001.0) / 100.0
    values[list(wrong)] += 1e-5 / 3.0
    share = (1000 - len(wrong)) / 1000
    for size in (7, 2**13):
        monkeypatch.setattr(steps, "_AT_ONCE", size)
        assert recorded_step(values, share=share) == 0.01
        assert recorded_step(values) == (0.0 if wrong else 0.01)


def test_no_numbers_are_multiples_of_any_step():
    assert recorded_step(np.empty(0)) == max(steps.USUAL_STEPS)
