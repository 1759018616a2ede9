"""Cheap rules for a length scale, and standard deviations of columns of which some are constant."""

import numpy as np
import pytest

from isopleth.core.scales import centre_and_scale, median


@pytest.mark.parametrize("n", [2, 3, 4, 9, 40])
def test_equal_weights_take_the_middle_distance_of_the_weighted_rule(n):
    rows = np.random.default_rng(n).normal(size=(n, 3))
    distances = np.sort([np.linalg.norm(a - b) for i, a in enumerate(rows) for b in rows[:i]])
    middle = distances[(len(distances) + 1) // 2 - 1]
    np.testing.assert_allclose(median(rows, np.full(n, 7.0)), middle, rtol=1e-12)
    lighter = np.concatenate([[7.0 - 1e-13], np.full(n - 1, 7.0)])  # weights that differ take the other way
    np.testing.assert_allclose(median(rows, lighter), middle, rtol=1e-12)


def test_a_column_that_varies_by_rounding_only_is_standardised_to_0():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[:, 1], rows[:, 2] = 0.1, 0.3 + 1e-16 * np.arange(20)
    share = np.arange(1.0, 21.0) / 210.0
    centre, scale = centre_and_scale(rows, share)
    assert not ((rows - centre) / scale)[:, 1:].any()
    np.testing.assert_allclose(
        [centre[0], scale[0] ** 2], [share @ rows[:, 0], np.cov(rows[:, 0], aweights=share, ddof=0)]
    )
