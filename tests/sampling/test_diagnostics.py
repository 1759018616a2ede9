"""R-hat and effective sample sizes against ArviZ, an independent slow form, and chains whose answer is known."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from isopleth import InputError
from isopleth.sampling import effective_sample_size, r_hat, tail_effective_sample_size
from isopleth.sampling.chains import _correlation_time


def autoregressive(chains, draws, phi, seed=0):
    x = np.random.default_rng(seed).normal(size=(chains, draws))
    x[:, 0] /= math.sqrt(1 - phi**2)
    for t in range(1, draws):
        x[:, t] += phi * x[:, t - 1]
    return x


def cases():
    rng = np.random.default_rng(1)
    for k in range(60):
        chains, draws = int(rng.integers(1, 9)), int(rng.integers(4, 200))
        x = autoregressive(chains, draws, float(rng.choice([-0.9, -0.5, 0.0, 0.5, 0.95])), seed=k)
        if k % 5 == 0:
            x = np.round(x)  # ties
        if k % 7 == 0:
            x += np.arange(chains)[:, None]  # chains that disagree
        yield x


def test_all_three_equal_arviz():
    arviz = pytest.importorskip("arviz")
    for x in cases():
        if len(x) > 1:
            # arviz orders the two draws about the median by rounding errors.
            np.testing.assert_allclose(r_hat(x), float(arviz.rhat(x)), rtol=1e-2)
        np.testing.assert_allclose(effective_sample_size(x), float(arviz.ess(x, method="bulk")), rtol=1e-9)
        np.testing.assert_allclose(tail_effective_sample_size(x), float(arviz.ess(x, method="tail")), rtol=1e-9)


def slow_r_hat(x):
    half, inverse = x.shape[1] // 2, NormalDist().inv_cdf
    chains = [c[:half] for c in x] + [c[-half:] for c in x]
    median = np.median(np.concatenate(chains))

    def one(values):
        pooled = sorted(v for c in values for v in c)
        first = {}
        for place, v in enumerate(pooled):
            first.setdefault(v, []).append(place + 1)
        z = [[inverse((sum(first[v]) / len(first[v]) - 3 / 8) / (len(pooled) + 1 / 4)) for v in c] for c in values]
        means = [sum(c) / len(c) for c in z]
        within = sum(sum((v - m) ** 2 for v in c) / (len(c) - 1) for c, m in zip(z, means, strict=True)) / len(z)
        grand = sum(means) / len(means)
        between = sum((m - grand) ** 2 for m in means) / (len(means) - 1)
        return math.sqrt(((half - 1) / half * within + between) / within)

    # The two draws about the median are equally far from it.
    return max(one(chains), one([np.round(np.abs(c - median), 12) for c in chains]))


def test_r_hat_equals_a_slow_form():
    for x in cases():
        np.testing.assert_allclose(r_hat(x), slow_r_hat(x), rtol=1e-10)


@pytest.mark.parametrize("phi", [-0.4, 0.0, 0.6, 0.9])
def test_the_effective_sample_size_of_an_autoregression_is_known(phi):
    """The variance of the mean of an AR(1) series is (1 + phi)/(1 - phi) times that of independent draws."""
    sizes = [effective_sample_size(autoregressive(4, 5000, phi, seed)) for seed in range(8)]
    assert np.mean(sizes) == pytest.approx(20_000 * (1 - phi) / (1 + phi), rel=0.08)


def test_r_hat_is_the_same_in_other_units():
    for x in cases():
        assert r_hat(1.1 * x + 0.3) == pytest.approx(r_hat(x), rel=1e-10)


def test_r_hat_sees_chains_that_differ_in_place_or_in_spread():
    x = np.random.default_rng(0).normal(size=(4, 500))
    assert r_hat(x) < 1.01
    assert r_hat(x + [[0], [0], [0], [2]]) > 1.2
    assert r_hat(x * [[1], [1], [1], [4]]) > 1.1  # by folding
    trend = x + np.linspace(0, 3, 500)  # by splitting
    assert r_hat(trend) > 1.2


def test_monotone_maps_change_nothing_and_columns_are_independent():
    x = autoregressive(4, 300, 0.5)
    both = np.stack([x, np.exp(x)], axis=2)
    for function in (effective_sample_size, tail_effective_sample_size):
        a, b = function(both)
        assert a == pytest.approx(b, rel=1e-12)
        assert a == function(x)
    assert r_hat(both)[0] == r_hat(x)


def test_constant_and_infinite_draws_have_no_r_hat():
    assert np.isnan(r_hat(np.ones((2, 10))))
    assert effective_sample_size(np.ones((2, 10))) == 20
    broken = np.random.default_rng(0).normal(size=(2, 10))
    broken[0, 3] = np.inf
    assert np.isnan([r_hat(broken), effective_sample_size(broken), tail_effective_sample_size(broken)]).all()


@pytest.mark.parametrize("shape", [(10,), (4, 3), (2, 2, 5), (2, 5, 2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(InputError, match="draws has shape"):
        r_hat(np.zeros(shape))


@pytest.mark.parametrize("phi", [-0.9, -0.4, 0.3, 0.6, 0.9])
def test_the_correlation_time_of_given_correlations_is_their_sum(phi):
    """1 + 2 (phi + phi^2 + ...), of which nothing positive is left out."""
    assert _correlation_time(phi ** np.arange(1000.0)) == pytest.approx((1 + phi) / (1 - phi), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_sum_of_correlations_ends_where_pairs_stop_being_positive_and_pairs_do_not_rise(seed):
    rng = np.random.default_rng(seed)
    correlations = np.append(1.0, np.exp(-0.2 * np.arange(1, 40)) + 0.3 * rng.normal(size=39))
    pairs = correlations.reshape(-1, 2).sum(axis=1)
    end = int(np.flatnonzero(np.append(pairs[:-1] <= 0.0, True))[0])
    lower = [min(pairs[: k + 1]) for k in range(end)]
    even = correlations[2 * end]
    assert _correlation_time(correlations) == pytest.approx(
        -1.0 + 2.0 * sum(lower) + max(even, 0.0) * (end < 19) + even * (end == 19)
    )
