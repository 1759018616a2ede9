"""Pools of laws by EM, and their calibration."""

import numpy as np
from scipy.special import betainc
from scipy.stats import beta, norm

from isopleth.conditional.pools import beta_transform, log_beta_density, pool_weights


def test_em_finds_the_weights_of_a_mixture_and_weights_of_rows_are_repetitions():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(4000) < 0.3, rng.normal(-2.0, 1.0, 4000), rng.normal(2.0, 1.0, 4000))
    P = np.stack([norm.pdf(y, -2.0), norm.pdf(y, 2.0)], axis=1)
    np.testing.assert_allclose(pool_weights(P, np.ones(4000)), [0.3, 0.7], atol=0.03)
    counts = rng.integers(1, 4, 50)
    np.testing.assert_allclose(
        pool_weights(P[:50], counts), pool_weights(np.repeat(P[:50], counts, axis=0), np.ones(counts.sum()))
    )


def test_the_beta_distribution_undoes_what_it_did():
    rng = np.random.default_rng(1)
    F = beta(2.0, 1.5).rvs(3000, random_state=rng)  # values of a pool that is too wide and moved
    a, b = beta_transform(F - 1e-3 * np.minimum(F, 1 - F), F + 1e-3 * np.minimum(F, 1 - F), np.ones(3000))
    np.testing.assert_allclose([a, b], [2.0, 1.5], rtol=0.1)
    x = np.linspace(0.05, 0.95, 7)
    slope = (betainc(a, b, x + 1e-6) - betainc(a, b, x - 1e-6)) / 2e-6
    np.testing.assert_allclose(np.exp(log_beta_density(x, a, b)), slope, rtol=1e-6)
