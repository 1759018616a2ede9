"""The part of a season that changes."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.tasks.changes.changed_season import changed_part


def test_the_part_of_a_season_that_changes_is_that_of_the_largest_difference():
    rng = np.random.default_rng(9)
    column = np.resize(np.arange(12.0), 240) + 0.3 * rng.normal(size=240)
    assert changed_part(column[:120], column[120:], 12) is None
    changed = column.copy()
    changed[120:] += 2.0 * np.isin(np.arange(120) % 12, [11, 0, 1])
    first, last, size = changed_part(changed[:120], changed[120:], 12)
    assert (first, last, size) == (11, 1, pytest.approx(2.0, abs=0.3))
    assert changed_part(column[:120], column[120:] + 5.0, 12) is None  # all of it
    assert changed_part(changed[:120], changed[120:140], 12) is None  # too short
