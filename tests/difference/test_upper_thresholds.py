"""Thresholds of level sets of a difference."""

from __future__ import annotations

import numpy as np

from isopleth.difference.fitted import upper_thresholds


def test_thresholds_by_counting():
    values = np.array([5.0, 4.0, 4.0, 3.0, 2.0, -1.0])
    contrast = np.array([0.3, 0.2, -0.1, 0.2, 0.2, -0.8])
    np.testing.assert_array_equal(
        upper_thresholds(values, contrast, np.array([0.3, 0.5, 0.7, 0.99])), [5.0, 4.0, 3.0, 2.0]
    )
    assert upper_thresholds(values, -contrast, np.array(0.5)) == np.inf
