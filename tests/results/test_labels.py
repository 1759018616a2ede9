"""Labels of isopleths: on their lines, apart from each other, none on islands."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.results.figures import label_places

figure = pytest.importorskip("matplotlib.figure")

LOW, HIGH = np.array([-3.0, -30.0]), np.array([3.0, 30.0])


def height(x, y):
    """A hill in the middle, and an island in a corner."""
    return -np.hypot(x, y / 10) + 3 * np.exp(-100 * ((x - 2.6) ** 2 + (y / 10 - 2.6) ** 2))


def places(levels):
    x, y = np.meshgrid(*np.linspace(LOW, HIGH, 200, axis=-1))
    return np.array(label_places(figure.Figure().subplots().contour(x, y, height(x, y), levels=levels), LOW, HIGH))


def test_one_label_a_level_on_its_line():
    found = places([-2.0, -1.5, -1.0])
    np.testing.assert_allclose(height(*found.T), [-2.0, -1.5, -1.0], atol=0.01)
    assert (found < 2.3).any(axis=1).all()


def test_labels_keep_apart_and_off_the_edge():
    found = places([-2.8, -2.7, -2.6])
    share = (found - LOW) / (HIGH - LOW)
    assert np.linalg.norm(share[:, None] - share, axis=-1)[np.triu_indices(3, 1)].min() > 0.3
    assert np.minimum(share, 1 - share).min() > 0.05


def test_no_label_without_a_line_or_room():
    assert len(places([-0.05])) == 0
