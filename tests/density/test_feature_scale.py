"""The smallest length scale at which features tell rows from noise."""

import math

import numpy as np
import pytest

from isopleth import SOSREP, RandomFeatureSOSREP
from isopleth.core.scales import scott
from isopleth.density.feature_sosrep import log_root_squared, resolved_scale, scott_or_resolved


@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0])
def test_the_root_solves_its_equation(ratio):
    y = np.linspace(-14.0 * max(ratio, 1.0), 14.0 * max(ratio, 1.0), 40_001)
    p = np.exp(-0.5 * (y / ratio) ** 2) / (ratio * math.sqrt(2.0 * math.pi))

    def f(x):
        return np.exp([0.5 * log_root_squared(ratio, 1, (t / ratio) ** 2) for t in x])

    at = np.array([0.0, 0.5, 2.0]) * ratio
    sums = [np.trapezoid(np.exp(-0.5 * (x - y) ** 2) * p / f(y), y) for x in at]
    np.testing.assert_allclose(sums, f(at), rtol=1e-10)


def test_the_root_is_that_of_many_rows():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    model = SOSREP(length_scale=1.0, frame="scale").fit(X)
    at = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    got = model.score_samples(at) + model.log_normalizer_
    np.testing.assert_allclose(got, [log_root_squared(1.0, 2, r) for r in (0.0, 1.0, 2.0)], atol=0.1)


@pytest.mark.parametrize("d", [2, 5, 10])
def test_one_row_in_a_hundred_is_lost(d):
    X = np.random.default_rng(0).normal(size=(4000, d)) * np.logspace(-3, 3, d)
    model = RandomFeatureSOSREP(n_frequencies=100, random_state=0).fit(X)
    np.testing.assert_allclose(model.length_scale_, resolved_scale(d, 200) * X.std(axis=0))
    assert 0.002 < model.share_below_noise_ < 0.03


def test_many_features_take_scotts_rule():
    X = np.random.default_rng(0).normal(size=(500, 2))
    np.testing.assert_array_equal(scott_or_resolved(X, np.ones(500), 10**6), scott(X, np.ones(500)))
    assert resolved_scale(2, 100) > resolved_scale(2, 1000) > resolved_scale(2, 10_000)
    assert np.isfinite([resolved_scale(d, size) for d in (1, 50, 2000) for size in (2, 10**6)]).all()
