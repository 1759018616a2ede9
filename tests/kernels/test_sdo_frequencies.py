"""The SDO kernel in many dimensions, against its integral over frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isopleth.kernels import SDO
from isopleth.kernels.sobolev_spectrum import bessel_ratio


@pytest.mark.parametrize(("d", "m"), [(31, 16), (64, 70), (200, 400), (300, 160)])
@pytest.mark.parametrize("order", [1, 4])
def test_is_its_integral_over_frequencies_in_many_dimensions(d, m, order):
    """There waves decrease so fast in frequency that the trapezoid rule in ln t needs no ray."""
    half, step = 0.5 * d + order, 0.02 / d
    u = np.arange(-60.0 / d, 60.0 / max(2.0 * (m - half), 0.5 * (half - 0.5) / 4), step)
    log_weight = 2 * half * u - np.logaddexp(0.0, 2 * m * u)
    log_mass = math.log(0.5 * math.pi / m / math.sin(0.5 * math.pi * d / m))
    front = math.prod(-0.25 / (0.5 * d + i) for i in range(order))
    weights = front * step * np.exp(log_weight - log_mass)
    for r in math.sqrt(d) * np.array([1.5, 2.5, 4.0]):
        want = weights @ bessel_ratio(half, r * np.exp(u)) * (r * r) ** (order // 2)
        size = (0.5 / d) ** order * (2.0 * d) ** (order // 2)
        assert float(SDO(d, m).derivative(r * r, order)) == pytest.approx(want, abs=1e-11 * size)
