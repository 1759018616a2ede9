"""Standard deviations of a fitted difference."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from isopleth.difference.statistics import deviation_factor


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_the_factor_is_a_root_of_the_noise_of_any_size(scale):
    root = np.random.default_rng(0).normal(size=(4, 3))  # of rank 3: one eigenvalue is rounding
    at = SimpleNamespace(
        counts=np.array([9.0, 7.0]), noise=scale * root @ root.T, spectrum=SimpleNamespace(solve=lambda F, alpha: F)
    )
    factor = deviation_factor(at, 0.1)
    assert factor.shape == (4, 3)
    np.testing.assert_allclose(factor @ factor.T, at.noise, rtol=1e-9)
    assert deviation_factor(SimpleNamespace(counts=np.array([9.0, 1.0])), 0.1) is None
