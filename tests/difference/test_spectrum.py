"""One decomposition for every ridge."""

from __future__ import annotations

import numpy as np

from isopleth.difference.gaussian_system import PenalizedSpectrum


def test_dual_weights_of_any_ridge():
    spectrum = PenalizedSpectrum.of(np.diag([1.0, 3.0]))
    np.testing.assert_allclose(spectrum.dual_weights(0.5), [2.0 / 1.5**2, 4.0 / 3.5**2])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(spectrum.dual_weights(1e300), 2e-300)
