"""Weights of the candidates of a stack."""

from __future__ import annotations

import numpy as np

from isopleth.density.candidates import _with_kernels, mixture_weights


def test_weights_of_a_mixture_maximise_the_log_density() -> None:
    rng = np.random.default_rng(0)
    logs = np.log(rng.uniform(size=(200, 3)) + [0.0, 0.3, 0.1])
    found = mixture_weights(logs, np.ones(200))
    best = np.log(np.exp(logs) @ found).mean()
    for other in rng.dirichlet(np.ones(3), size=300):
        assert np.log(np.exp(logs) @ other).mean() < best + 1e-3


def test_one_row_does_not_choose_a_candidate() -> None:
    logs = np.array([[0.0, -50.0]])
    np.testing.assert_allclose(mixture_weights(logs, np.ones(1)), [0.75, 0.25], atol=2e-3)
    np.testing.assert_allclose(mixture_weights(np.repeat(logs, 99, axis=0), np.ones(99)), [0.995, 0.005], atol=2e-3)


def test_kernels_keep_a_share_that_is_continuous() -> None:
    means, kernels = np.array([-1.0, -3.0, -2.0]), np.array([False, True, True])
    np.testing.assert_allclose(_with_kernels(np.array([1.0, 0.0, 0.0]), means, kernels), [0.998, 0.0, 0.002])
    np.testing.assert_allclose(
        _with_kernels(np.array([1.0 - 1e-9, 1e-9, 0.0]), means, kernels), [0.998, 0.0, 0.002], atol=2e-9
    )
    np.testing.assert_array_equal(_with_kernels(np.array([0.9, 0.1, 0.0]), means, kernels), [0.9, 0.1, 0.0])
