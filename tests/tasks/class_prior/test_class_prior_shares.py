"""The mixture of the classes that fits the unlabelled rows."""

from __future__ import annotations

import numpy as np
import pytest
from labelled_rows import labelled
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import norm, t

from isopleth.errors import InputError
from isopleth.tasks.class_prior.scores import Features, Fits, FoldSums, stratified_folds
from isopleth.tasks.class_prior.shares import Shares, Squash, _relative, check_class_count, mixture, two_shares

LIMIT = 2.0**30


def test_scores_made_for_the_shares_have_the_least_variance_there():
    x, step = np.linspace(-10.0, 12.0, 20001, retstep=True)
    densities = np.stack([norm.pdf(x), norm.pdf(x, 1.5)], axis=1)
    truth = np.array([0.9, 0.1])
    mixed = densities @ truth
    probabilities = densities / densities.sum(axis=1, keepdims=True)

    def variance(made_for):
        score = _relative(probabilities, np.array([1.0 - made_for, made_for]))[:, 0]
        gap = step * score @ (densities[:, 1] - densities[:, 0])
        return (step * score**2 @ mixed - (step * score @ mixed) ** 2) / gap**2

    information = step * np.sum((densities[:, 1] - densities[:, 0]) ** 2 / mixed)
    assert variance(0.1) == pytest.approx(1.0 / information, rel=1e-6)
    assert min(variance(0.05), variance(0.2), variance(0.5)) > variance(0.1)


class TestMixture:
    @pytest.mark.parametrize("seed", range(5))
    def test_two_classes_have_the_closed_form(self, seed):
        rng = np.random.default_rng(seed)
        means, target, noise = rng.normal(size=(2, 1)), rng.normal(size=1), np.array([[rng.random() + 0.01]])
        np.testing.assert_allclose(two_shares(means, target, noise), mixture(means, target, noise), atol=1e-9)

    @pytest.mark.parametrize("shrink", [False, True])
    @pytest.mark.parametrize("seed", range(4))
    def test_several_are_the_minimum_on_the_simplex(self, seed, shrink):
        rng = np.random.default_rng(seed)
        means, target = rng.normal(size=(4, 3)), rng.normal(size=3)
        noise = np.cov(rng.normal(size=(3, 9))) / 3.0

        def loss(p):
            residual = target - p @ means
            return residual @ np.linalg.solve(noise, residual) + shrink * 20.0 * np.sum((p - 0.25) ** 2)

        total = {"type": "eq", "fun": lambda p: p.sum() - 1.0}
        best = minimize(loss, np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=total, options={"ftol": 1e-14})
        found = mixture(means, target, noise, shrink=shrink)
        assert found.sum() == pytest.approx(1.0)
        assert (found >= 0.0).all()
        assert loss(found) <= best.fun + 1e-9
        np.testing.assert_allclose(found, best.x, atol=1e-4)

    def test_shares_that_are_certain_are_not_drawn_to_equal_ones(self):
        held_out = np.eye(2)[np.repeat([0, 1], 20)]
        found = Shares.of(held_out, np.repeat([0, 1], 20), np.eye(2)[np.repeat([0, 1], [45, 5]), None])
        np.testing.assert_allclose(found.priors, [0.9, 0.1], atol=1e-9)

    def test_the_interval_is_what_a_test_of_each_share_does_not_reject(self):
        rng = np.random.default_rng(0)
        odds = rng.normal(size=40) + np.repeat([-1.0, 1.0], 20)
        held_out = np.stack([1.0 / (1.0 + np.exp(odds)), 1.0 / (1.0 + np.exp(-odds))], axis=1)
        found = Shares.of(held_out, np.repeat([0, 1], 20), held_out[10:35, None] + 0.02 * np.array([[1, -1], [-1, 1]]))
        low, high = found.intervals(0.9)[1]
        moments = found.moments
        for share, kept in ((low - 0.002, False), (low + 0.002, True), (high - 0.002, True), (high + 0.002, False)):
            p = np.array([1.0 - share, share])
            noise = moments.noise(p, 25, drawn=True)[0, 0] + p @ p / 20.0 * found.unstable[0, 0]
            parts = (p**2 / 20.0 + p / 25.0) * moments.covariances[:, 0, 0]
            degrees = parts.sum() ** 2 / np.sum(parts**2 / 19.0)
            distance = abs((found.target - p @ moments.means)[0]) / np.sqrt(noise)
            assert (distance < t.ppf(0.95, degrees)) == kept

    def test_the_stated_noise_is_the_spread_over_labelled_samples(self):
        deviates, share = [], np.array([0.2, 0.8])
        for seed in range(60):
            rng = np.random.default_rng(seed)
            z, labels = labelled((20, 20), 5, 1.5, seed)
            hidden = (np.arange(500) < 400).astype(int)
            new, folds = rng.normal(size=(500, 5)) + 1.5 * np.eye(2, 5)[hidden], stratified_folds(labels, seed)
            features = Features.of(z, LIMIT)
            fits = Fits.of(features, FoldSums.of(features, z, labels, folds), 0.1)
            scores = fits.held_out(z, folds)[:, :-1]
            squash = Squash.of(scores, labels)
            found = Shares.of(squash(scores), labels, squash(fits(new)[..., :-1]))
            error = (found.target - share @ found.moments.means)[0]
            deviates.append(
                [
                    error / np.sqrt(found._noise(share)[0, 0]),
                    error / np.sqrt(found.moments.noise(share, 500, drawn=True)[0, 0]),
                ]
            )
        spread = np.sqrt(np.mean(np.square(deviates), axis=0))
        assert 0.8 < spread[0] < 1.2
        assert spread[1] > spread[0] + 0.1  # were the labelled rows judged by fits to other rows than one another

    def test_scores_of_the_wrong_sign_leave_all_shares_possible(self):
        held_out = np.array([[0.4, 0.6], [0.6, 0.4]])[np.repeat([0, 1], 20)]
        found = Shares.of(held_out, np.repeat([0, 1], 20), held_out[:5, None])
        assert found.intervals(0.95).tolist() == [[0.0, 1.0], [0.0, 1.0]]

    def test_the_covariance_of_several_shares_is_that_of_the_linear_solution(self):
        rng = np.random.default_rng(0)
        labels = np.repeat([0, 1, 2], 30)
        held_out = softmax(rng.normal(size=(90, 3)) + 2.0 * np.eye(3)[labels], axis=1)
        found = Shares.of(held_out, labels, np.stack([held_out[:50], held_out[:50] ** 2], axis=1))
        assert np.linalg.eigvalsh(found.unstable)[0] > 0.0
        means = found.moments.positive_means
        system = np.vstack([means.T, np.ones(3)])  # shares that reach a mean, and have sum 1
        step = np.linalg.solve(system, np.eye(3)[:, :2])
        near = (found.priors * 50.0 + 1.0) / 53.0
        noise = found.moments.noise(near, 50, drawn=True) + near @ near / 30.0 * found.unstable
        np.testing.assert_allclose(found.covariance, step @ noise @ step.T, rtol=1e-9)

    def test_too_many_classes_are_refused(self):
        check_class_count(10, LIMIT)
        with pytest.raises(
            InputError, match="y has 1000 classes, whose covariances need 24 GB, more than memory_limit"
        ):
            check_class_count(1000, LIMIT)
