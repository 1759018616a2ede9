"""KLIEP: its optimum, its constraint, its bound, its refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import isopleth
from isopleth import InputError
from isopleth.difference import KLIEP
from isopleth.difference.kliep import mixture_weights


def samples(n=80, dim=2, shift=1.0):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, dim)) + shift, rng.normal(size=(n + 20, dim))


def test_weights_are_those_of_a_general_solver():
    functions = np.random.default_rng(0).exponential(size=(30, 6)) ** 2
    weights, _, residual = mixture_weights(functions, 1e-9, 100_000)
    assert residual <= 1e-9

    def loss(v):
        w = np.exp(v - v.max())
        return -np.log(functions @ (w / w.sum())).mean()

    other = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).fun
    assert -np.log(functions @ weights).mean() == pytest.approx(other, abs=1e-8)
    assert weights.sum() == pytest.approx(1.0)


def test_what_is_left_is_bounded():
    functions = np.random.default_rng(1).exponential(size=(50, 20)) ** 3
    best = np.log(functions @ mixture_weights(functions, 1e-8, 10**6)[0]).mean()
    for steps in (1, 5, 50, 500):
        weights, n_iter, residual = mixture_weights(functions, 1e-12, steps)
        assert n_iter == steps
        assert 0 <= best - np.log(functions @ weights).mean() <= residual


def test_mean_ratio_is_one_over_the_second_sample():
    x, y = samples()
    fitted = clone(KLIEP(random_state=0)).fit(x, y)
    assert fitted.ratio(y).mean() == pytest.approx(1.0)
    assert fitted.divergence_ == pytest.approx(np.log(fitted.ratio(x)).mean())
    assert (fitted.dual_coef_ >= 0).all()
    assert fitted.residual_ <= fitted.tol


def test_divergence_is_about_that_of_the_densities():
    rng = np.random.default_rng(0)
    x, y = 0.7 * rng.normal(size=(500, 1)), rng.normal(size=(500, 1))
    assert KLIEP(random_state=0).fit(x, y).divergence_ == pytest.approx(0.1017, abs=0.05)
    assert KLIEP(random_state=0).fit(x, x[::-1] + 1e-9).divergence_ == pytest.approx(0.0, abs=0.01)


def test_results_follow_the_units():
    x, y = samples()
    scale, shift = np.array([1024.0, 0.25]), np.array([3.0, -5.0])
    plain, other = KLIEP(random_state=0).fit(x, y), KLIEP(random_state=0).fit(x * scale + shift, y * scale + shift)
    assert other.divergence_ == pytest.approx(plain.divergence_, rel=1e-6)
    np.testing.assert_allclose(other.length_scale_, plain.length_scale_ * scale, rtol=1e-12)


def test_saved_and_loaded(tmp_path):
    x, y = samples()
    fitted = KLIEP(random_state=0).fit(x, y)
    isopleth.save(fitted, tmp_path / "ratio")
    np.testing.assert_array_equal(isopleth.load(tmp_path / "ratio").ratio(x), fitted.ratio(x))


def test_far_rows_are_refused_or_smoothed_over():
    x, y = samples()
    with pytest.raises(InputError, match="too far from all rows of Y"):
        KLIEP(length_scale=0.01).fit(x + 1000.0, y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        KLIEP(max_iter=1, random_state=0).fit(x, y)
    with pytest.raises(InputError, match="NaN"):
        KLIEP().fit(x, np.full((5, 2), np.nan))
    assert np.isfinite(KLIEP(random_state=0).fit(x, y).ratio([[1e300, 0.0]])).all()
