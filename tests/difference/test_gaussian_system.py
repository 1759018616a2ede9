"""One decomposition for every ridge, and numbers over volumes that overflow."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.difference.gaussian_system import PenalizedSpectrum, over_volume, quotient, smallest


def test_dual_weights_of_any_ridge():
    spectrum = PenalizedSpectrum.of(np.diag([1.0, 3.0]))
    np.testing.assert_allclose(spectrum.dual_weights(0.5), [2.0 / 1.5**2, 4.0 / 3.5**2])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(spectrum.dual_weights(1e300), 2e-300)


def test_quotients_by_volumes_that_overflow():
    np.testing.assert_allclose(over_volume(np.array([-2.0, 0.0, 3.0]), 1.0), np.array([-2.0, 0.0, 3.0]) / np.e)
    assert over_volume(1e-200, -900.0) == pytest.approx(np.exp(900.0 - 200 * np.log(10)))
    assert over_volume(-1.0, -900.0) == -np.inf
    assert smallest(np.array([[1.0, -1e-3], [-1.0, 2.0]]), np.array([-2000.0, 0.0])) == (0, 1)
    assert smallest(np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([0.0, 2000.0])) == (1, 0)


@pytest.mark.parametrize(
    ("relative", "log_volume", "said"),
    [
        (-0.25, 0.0, "-0.25"),
        (0.0, 5.0, "0"),
        (-3.0, 800.0 * np.log(10.0), "-3.0000e-800"),
        (20.0, -1000.0, "3.9401e+435"),
    ],
)
def test_quotients_in_digits(relative, log_volume, said):
    assert quotient(relative, log_volume) == said
