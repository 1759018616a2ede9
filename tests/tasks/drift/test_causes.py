"""Models of the causes that pages name."""

from __future__ import annotations

import numpy as np

from isopleth.tasks.drift.causes import autoregression, least_in_run


def test_an_autoregression_is_found_and_runs_are_of_one_sign():
    noise = np.random.default_rng(0).normal(size=3000)
    z = noise.copy()
    for i in range(1, len(z)):
        z[i] += 0.6 * z[i - 1]
    np.testing.assert_allclose(autoregression(z / z.std())[:1], [0.6], atol=0.06)
    assert len(autoregression(noise)) == 0
    np.testing.assert_allclose(least_in_run(np.array([1.0, 2.0, 3.0, -4.0, -5.0, -6.0]), 3)[[2, 5]], [1.0, 4.0])
