"""The rule for the strength of categorical kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize_scalar

from isopleth.density.column_scales import frequency_rho, heat_rho


@pytest.mark.parametrize("squared", [True, False])
def test_it_draws_frequencies_as_far_as_it_says(squared):
    """The expected squared error of drawn frequencies, minimised numerically."""
    share, n = np.array([0.5, 0.3, 0.15, 0.05, 0.0]), 200
    codes = np.repeat(np.arange(5), (share * n).astype(int))[:, None]
    spread = n ** (-4 / 9) if squared else n**-0.5

    def error(rho):
        drawn = (rho + (1 - rho) * share) / (1 + 4 * rho)
        kept = (1 - rho) / (1 + 4 * rho)
        return np.sum((drawn - share) ** 2) + kept**2 * np.sum(share * (1 - share)) * spread

    best = minimize_scalar(error, bounds=(1e-6, 0.9), method="bounded", options={"xatol": 1e-10}).x
    assert frequency_rho(codes, np.ones(n), (5,), 5, squared)[0] == pytest.approx(best, rel=1e-5)


def test_weights_count_rows_and_gaps_are_left_out():
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(3, size=(50, 2)), rng.integers(1, 4, size=50)
    codes[:5, 0] = -1
    repeated = np.repeat(codes, weights, axis=0)
    one = frequency_rho(codes, weights, (4, 4), 6, True)
    np.testing.assert_allclose(one, frequency_rho(repeated, np.ones(len(repeated)), (4, 4), 6, True))
    assert one[0] != one[1]


def test_even_frequencies_stay_within_limits():
    codes = np.arange(40)[:, None] % 4
    assert frequency_rho(codes, np.ones(40), (4,), 1, False)[0] == 0.95
    lone = np.zeros((40, 1))
    assert frequency_rho(lone, np.ones(40), (2,), 1, False)[0] == 1e-4


@pytest.mark.parametrize("size", [2, 3, 7])
def test_factors_move_categories_as_the_heat_kernel_of_their_complete_graph(size):
    laplacian = size * np.eye(size) - 1.0

    def rho(time):
        kernel = expm(-time * laplacian)
        return kernel[0, 1] / kernel[0, 0]

    for factor in (0.5, 1.0, 1.7):
        found = heat_rho(np.array([rho(0.04)]), np.array([size]), factor)
        np.testing.assert_allclose(found, rho(0.04 * factor**2))
