"""Sums of a pass are kept when it is time to, and at its end."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.io.checkpoint import KeptPass


class Written:
    """Journal that counts what it is given."""

    def __init__(self):
        self.rows = []

    def append(self, key, state):
        (rows,) = (value for value in state.values() if value.ndim == 0)
        self.rows.append(int(rows))


@pytest.mark.parametrize(("seconds", "kept"), [(1e9, [3]), (0.0, [1, 2, 3])])
def test_sums_are_kept_when_it_is_time_to_and_at_the_end(seconds, kept):
    journal = Written()
    one = KeptPass(journal, "pass 1", seconds)
    for rows in (1, 2, 3):
        one.keep(np.ones(2), rows, whole=rows == 3)
    assert journal.rows == kept
