"""The frame of the data."""

import numpy as np
import pytest

from isopleth.core.scales import ScaledColumns


@pytest.mark.parametrize("n", [1, 2, 3, 10, 63, 64, 1001])
def test_the_centre_is_the_median_to_the_bit(n):
    rng = np.random.default_rng(n)
    X = np.round(rng.normal(size=(n, 6)), 1) * 10.0 ** rng.integers(-200, 200, size=6)
    keep = np.array([True, False, True, True, False, True])
    shift = ScaledColumns.centred(X, keep).shift
    np.testing.assert_array_equal(shift, np.median(X[:, keep], axis=0))
    assert shift.base is None  # a view would keep all rows


def test_the_centre_of_numbers_at_the_end_of_double_precision():
    X = np.array([[1.5e308], [1.7e308], [1.1e308], [1.6e308]])
    np.testing.assert_allclose(ScaledColumns.centred(X, np.array([True])).shift, 1.55e308)
