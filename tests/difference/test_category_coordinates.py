"""Coordinates of categories of a difference."""

from __future__ import annotations

import numpy as np

from isopleth.difference.gaussian_system import CategoryCoordinates


def test_sums_over_categories_in_closed_form():
    """Against sums of products of the kernels of all categories."""
    m, unit, scale = 4, 1.3, 0.9
    categories = CategoryCoordinates((slice(1, 5),), (m,), (np.sqrt(2.0) * unit,), 5)
    log_volume, stretch = categories.measured(np.array([2.0, *[scale] * 4]))
    points = unit * np.eye(4) / scale
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    kernel = np.exp(-0.5 * squares)
    volume = np.exp(log_volume) / (np.sqrt(np.pi) * 2.0)
    found = volume * np.exp(-0.25 * ((points[:, None] - points) ** 2 * stretch[1:] ** 2).sum(axis=2))
    np.testing.assert_allclose(found, kernel @ kernel, rtol=1e-12)
    assert stretch[0] == 1.0
