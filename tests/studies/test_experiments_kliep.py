"""The baseline KLIEP: its optimum, the bound on what is left, and its estimate of a divergence."""

from __future__ import annotations

import numpy as np
import pytest
from experiments import kliep
from scipy.optimize import minimize


def test_weights_are_those_of_a_general_solver():
    functions = np.random.default_rng(0).exponential(size=(30, 6)) ** 2
    weights, _, residual = kliep.mixture_weights(functions, 1e-9, 100_000)
    assert residual <= 1e-9

    def loss(v):
        w = np.exp(v - v.max())
        return -np.log(functions @ (w / w.sum())).mean()

    other = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).fun
    assert -np.log(functions @ weights).mean() == pytest.approx(other, abs=1e-8)
    assert weights.sum() == pytest.approx(1.0)
    for steps in (1, 50):
        some, n_iter, residual = kliep.mixture_weights(functions, 1e-12, steps)
        assert n_iter == steps
        assert 0 <= -other - np.log(functions @ some).mean() <= residual


def test_the_divergence_is_about_that_of_the_densities():
    rng = np.random.default_rng(0)
    x, y = 0.7 * rng.normal(size=(500, 1)), rng.normal(size=(500, 1))
    assert kliep.divergence(x, y, 0) == pytest.approx(0.1017, abs=0.05)
    assert kliep.divergence(x, x[::-1] + 1e-9, 0) == pytest.approx(0.0, abs=0.03)
    assert kliep.divergence(1024.0 * x, 1024.0 * y, 0) == pytest.approx(kliep.divergence(x, y, 0), rel=1e-6)
