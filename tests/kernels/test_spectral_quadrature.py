"""Quadrature of spectra against the Gaussian kernel, whose spectrum is Gaussian."""

import numpy as np
import pytest
from scipy.special import gammaln

from isopleth.kernels.spectral_quadrature import SpectralQuadrature


@pytest.mark.parametrize("dim", [30, 200])
@pytest.mark.parametrize("order", [0, 2])
def test_errors_are_small_and_of_the_size_of_their_estimates(dim, order):
    log_mass = (0.5 * dim - 1.0) * np.log(2.0) + gammaln(0.5 * dim)  # of t^(dim - 1) e^(-t^2/2)
    quadrature = SpectralQuadrature(dim, order, lambda u: -0.5 * np.exp(2.0 * u), log_mass, 0.05, 0.05, 2.0)
    r = np.geomspace(0.06, 1.6, 300)
    found = quadrature(r)
    want = (-0.5) ** order * np.exp(-0.5 * r * r)
    # The estimate goes by rounding of the largest term; a hundred times that is allowed for sums of many terms.
    assert (np.abs(found.value - want) <= 100.0 * found.error).all()
    assert (found.error <= 1e-13 * 0.5**order).all()
    assert np.isinf(quadrature(np.array([0.04, 2.1])).error).all()
