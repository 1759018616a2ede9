"""Cheap rules for a length scale."""

import numpy as np
import pytest

from isopleth.core.scales import median


@pytest.mark.parametrize("n", [2, 3, 4, 9, 40])
def test_equal_weights_take_the_middle_distance_of_the_weighted_rule(n):
    rows = np.random.default_rng(n).normal(size=(n, 3))
    distances = np.sort([np.linalg.norm(a - b) for i, a in enumerate(rows) for b in rows[:i]])
    middle = distances[(len(distances) + 1) // 2 - 1]
    np.testing.assert_allclose(median(rows, np.full(n, 7.0)), middle, rtol=1e-12)
    lighter = np.concatenate([[7.0 - 1e-13], np.full(n - 1, 7.0)])  # weights that differ take the other way
    np.testing.assert_allclose(median(rows, lighter), middle, rtol=1e-12)
