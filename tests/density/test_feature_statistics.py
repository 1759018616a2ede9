"""Sums over rows that Newton's method in random features needs, and the method."""

import numpy as np
import pytest
from scipy.optimize import minimize

from isopleth.core.budget import Budget
from isopleth.density.feature_statistics import FeatureStatistics, continued_log, newton
from isopleth.kernels import KERNELS
from isopleth.operators.features import RandomFeatures


def rows(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def draw(size, kernel="gaussian", d=2, **options):
    return RandomFeatures.draw(KERNELS[kernel].bind(d), size // 2, np.random.default_rng(1), **options)


def sums(features, w, z, weights=None):
    return FeatureStatistics(features, w).accumulate(z, np.ones(len(z)) if weights is None else weights)


def test_the_continued_logarithm_is_smooth_rising_and_concave():
    f, noise, h = np.linspace(-1.0, 2.0, 3001), 0.3, 1e-5
    value, slope, curvature = continued_log(f, noise)
    above = f > noise
    np.testing.assert_allclose(value[above], np.log(f[above]))
    np.testing.assert_allclose(
        slope, (continued_log(f + h, noise)[0] - continued_log(f - h, noise)[0]) / (2 * h), rtol=1e-6
    )
    kink = np.abs(f - noise) < 2 * h
    numeric = (continued_log(f + h, noise)[1] - continued_log(f - h, noise)[1]) / (2 * h)
    np.testing.assert_allclose(-curvature[~kink], numeric[~kink], rtol=1e-6)
    assert (slope > 0).all()
    assert (curvature > 0).all()
    for here, there in zip(
        continued_log(np.array([noise]), noise), continued_log(np.array([noise + 1e-12]), noise), strict=True
    ):
        np.testing.assert_allclose(here, there, rtol=1e-9)  # value, slope and curvature meet


@pytest.mark.parametrize("scale", [1.0, 0.05])  # all rows known, and some of them not
def test_gradient_and_curvature_by_differences(scale):
    features = draw(12)
    z, v = rows(50), np.random.default_rng(3).uniform(size=50)
    w = scale * features(z).mean(axis=0) / 0.4
    here, h = sums(features, w, z, v), 1e-6
    assert (here.share_below > 0) == (scale < 1.0)
    up = [sums(features, w + h * e, z, v) for e in np.eye(12)]
    down = [sums(features, w - h * e, z, v) for e in np.eye(12)]
    numeric = np.array([(a.objective - b.objective) / (2 * h) for a, b in zip(up, down, strict=True)])
    np.testing.assert_allclose(here.gradient, numeric, atol=1e-6)
    hessian = np.array([(a.gradient - b.gradient) / (2 * h) for a, b in zip(up, down, strict=True)])
    np.testing.assert_allclose(hessian @ here.solve(), -here.gradient, atol=1e-5)


def test_chunks_merge_to_one_pass():
    features, z, v = draw(30), rows(700), np.random.default_rng(3).uniform(size=700)
    w = rows(30, 1, 4)[:, 0] / 10
    whole = sums(features, w, z, v)
    first = sums(features, w, z[:100], v[:100]).accumulate(z[100:350], v[100:350])
    second = sums(features, w, z[350:], v[350:])
    merged = second.merge(first)
    for what in ("objective", "residual", "share_below"):
        assert getattr(merged, what) == pytest.approx(getattr(whole, what), rel=1e-12), what
    np.testing.assert_allclose(merged.gradient, whole.gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(merged.solve(), whole.solve(), rtol=1e-10, atol=1e-12)
    assert first.objective == pytest.approx(sums(features, w, z[:350], v[:350]).objective)  # left as it was


def test_the_share_below_the_noise_counts_weights():
    features = draw(8)
    z = rows(200)
    w = rows(8, 1, 4)[:, 0]
    f = features(z) @ w
    found = sums(features, w, z, np.r_[np.ones(150), np.zeros(50)])
    assert found.share_below == pytest.approx(np.mean(f[:150] <= features.noise))


@pytest.mark.parametrize("spread", [0.5, 3.0])  # all rows known, and some not
def test_newton_finds_the_minimum(spread):
    features, z = draw(16), spread * rows(200)
    solution = newton(lambda w: sums(features, w, z), np.zeros(16), tol=1e-10)
    assert solution.residual <= 1e-10
    assert (solution.share_below > 0) == (spread > 1)

    def objective(w):
        return 0.5 * w @ w - np.mean(continued_log(features(z) @ w, features.noise)[0])

    other = minimize(objective, np.zeros(16), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(solution.coefficients, other.x, atol=1e-4)
    assert objective(solution.coefficients) <= other.fun + 1e-12
    slope = continued_log(features(z) @ solution.coefficients, features.noise)[1]
    np.testing.assert_allclose(features(z).T @ slope / 200, solution.coefficients, atol=1e-9)
    if spread < 1:
        assert np.linalg.norm(solution.coefficients) == pytest.approx(1.0)  # as of every fit of SOSREP


def test_newton_starts_anywhere():
    features, z = draw(16), rows(200)
    wanted = newton(lambda w: sums(features, w, z), np.zeros(16), tol=1e-10).coefficients
    for seed in range(3):
        start = 30.0 * rows(16, 1, seed)[:, 0]
        assert np.allclose(newton(lambda w: sums(features, w, z), start, tol=1e-10).coefficients, wanted, atol=1e-8)


def test_passes_are_limited_and_rounding_ends_them():
    features, z = draw(16), rows(200)
    few = newton(lambda w: sums(features, w, z), np.zeros(16), max_iter=3)
    assert few.n_iter == 3
    assert few.residual > 1e-6
    out = newton(lambda w: sums(features, w, z), np.zeros(16), tol=1e-300)
    assert out.n_iter < 50
    assert out.residual < 1e-12


def test_many_threads_take_no_more_memory_than_the_limit():
    features = draw(100, budget=Budget(10 * 8 * 100**2, 64))  # ten matrices
    here = FeatureStatistics(features, np.zeros(100))
    assert here._workers == 1
    rows_at_once = max(part.stop - part.start for part in features.blocks(10**5, here._free))
    assert rows_at_once == 16
    z = rows(200)
    np.testing.assert_allclose(
        here.accumulate(z, np.ones(200)).solve(), sums(draw(100, budget=Budget(n_jobs=1)), np.zeros(100), z).solve()
    )
