"""Running sums of the windows of a monitor."""

from __future__ import annotations

import numpy as np

from isopleth.tasks import DriftState
from isopleth.tasks.drift.window_sums import advance


def test_sums_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(103, 2)) * 10.0 ** rng.integers(-3, 9, size=(103, 1))
    state, sums = DriftState.empty(7, 2), []
    while state.n_rows < 103:
        step = min(state.rows_left, int(rng.integers(1, 8)), 103 - state.n_rows)
        state, found = advance(state, values[state.n_rows : state.n_rows + step])
        sums.append(found)
    sums = np.concatenate(sums)
    assert np.isnan(sums[:6]).all()
    expected = np.array([values[i - 6 : i + 1].sum(axis=0) for i in range(6, 103)])
    # A giant row that has left the window leaves nothing behind.
    np.testing.assert_allclose(sums[6:], expected, rtol=1e-12, atol=1e-9)
