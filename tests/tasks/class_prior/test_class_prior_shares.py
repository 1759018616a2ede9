"""The mixture of the classes that fits the unlabelled rows."""

from __future__ import annotations

import numpy as np
import pytest
from labelled_rows import labelled
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import norm, t

from isopleth import InputError
from isopleth.core.budget import Budget
from isopleth.tasks.class_prior.shares import (
    Calibrator,
    ClassMoments,
    Shares,
    _relative,
    check_class_count,
    mixture,
    sum_zero_basis,
    two_shares,
)
from isopleth.tasks.classifier import Fits, FoldMoments, SpanFeatures, stratified_folds

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

    @pytest.mark.parametrize("population", [False, True])
    def test_the_interval_is_what_a_test_of_each_share_does_not_reject(self, population):
        rng = np.random.default_rng(0)
        odds = rng.normal(size=40) + np.repeat([-1.0, 1.0], 20)
        held_out = np.stack([1.0 / (1.0 + np.exp(odds)), 1.0 / (1.0 + np.exp(-odds))], axis=1)
        found = Shares.of(held_out, np.repeat([0, 1], 20), held_out[10:35, None] + 0.02 * np.array([[1, -1], [-1, 1]]))
        low, high = found.intervals(0.9, population=population)[1]
        means = found.moments.means[:, 0]
        # Half a row more in each class, of either class: a quarter of the squared distance between them.
        variances = found.moments.covariances[:, 0, 0] + 0.5 / 20.5 * 0.5 * (means[1] - means[0]) ** 2
        for share, kept in ((low - 0.002, False), (low + 0.002, True), (high - 0.002, True), (high + 0.002, False)):
            p = np.array([1.0 - share, share])
            parts = (p**2 / 20.0 + p / 25.0) * variances
            classes = p[0] * p[1] * (means[1] - means[0]) ** 2 / 25.0
            shared = (p[0] - p[1]) ** 2 / 20.0 / 2.0 * found.unstable[0, 0]
            noise = parts.sum() + population * classes + shared
            degrees = parts.sum() ** 2 / np.sum(parts**2 / 19.0)
            distance = abs((found.target - p @ found.moments.means)[0]) / np.sqrt(noise)
            assert (distance < t.ppf(0.95, degrees)) == kept

    @pytest.mark.parametrize("share", [(0.2, 0.8), (0.5, 0.5), (0.0, 1.0)])
    def test_the_stated_noise_is_the_spread_over_labelled_samples(self, share):
        deviates, share = [], np.array(share)
        for seed in range(60):
            rng = np.random.default_rng(seed)
            z, labels = labelled((20, 20), 5, 1.5, seed)
            hidden = (np.arange(500) < 500.0 * share[1]).astype(int)
            new, folds = rng.normal(size=(500, 5)) + 1.5 * np.eye(2, 5)[hidden], stratified_folds(labels, seed)
            features = SpanFeatures.of(z, Budget(LIMIT, 1))
            fits = Fits.of(features, FoldMoments.of(features, z, labels, folds), 0.1)
            scores = fits.held_out(z, folds)[:, :-1]
            calibrator = Calibrator.of(scores, labels)
            found = Shares.of(calibrator(scores), labels, calibrator(fits(new)[..., :-1]))
            error = (found.target - share @ found.moments.means)[0]
            stated = found._noise(share, population=False)[0, 0]
            independent = found.moments.noise(share, 500, drawn=False)[0, 0]
            deviates.append([error / np.sqrt(stated), error / np.sqrt(independent)])
        spread = np.sqrt(np.mean(np.square(deviates), axis=0))
        assert 0.8 < spread[0] < 1.2
        if share[1] == 1.0:
            assert spread[1] > spread[0] + 0.1  # were the labelled rows judged by fits to other rows than one another

    @pytest.mark.parametrize("counts", [(8, 8), (6, 12), (5, 7, 9)])
    def test_rows_that_score_one_another_add_the_noise_of_a_sum_over_all_pairs(self, counts):
        """Scores s_k(i) = sum over other rows j of e_ij (1[y_j = k] - 1/K) / n_k, with symmetric noise e of variance 1."""
        rng, classes = np.random.default_rng(1), len(counts)
        sizes, labels = np.array(counts), np.repeat(np.arange(classes), counts)
        priors = rng.dirichlet(np.ones(classes))
        adds = (np.eye(classes) - 1.0 / classes)[labels] / sizes[labels][:, None]
        weights = (priors / sizes)[labels]
        sums = []
        for _ in range(6000):
            noise = np.triu(rng.normal(size=(len(labels), len(labels))), 1)
            sums.append(weights @ ((noise + noise.T) @ adds))
        total = np.trace(np.cov(np.array(sums).T))
        one_score = np.square(adds).sum()  # of a row, over samples of labelled rows, traced over the scores
        basis = sum_zero_basis(classes)
        moments = ClassMoments(basis, np.zeros((classes, classes - 1, classes - 1)), np.eye(classes - 1), sizes * 1.0)
        unstable = one_score / (classes - 1.0) * np.eye(classes - 1)
        found = Shares(priors, moments, np.zeros(classes - 1), 10**12, unstable)
        found.__dict__["_cautious"] = moments
        shared = np.trace(found._noise(priors, population=False))
        # Of the pairs of a row with itself, which the formula counts, there are none here.
        own = np.sum(np.square(weights)[:, None] * np.square(adds)) * 2.0
        independent = np.sum(priors**2 / sizes) * one_score
        assert independent + shared - own == pytest.approx(total, rel=0.06)

    def test_scores_of_the_wrong_sign_leave_all_shares_possible(self):
        held_out = np.array([[0.4, 0.6], [0.6, 0.4]])[np.repeat([0, 1], 20)]
        found = Shares.of(held_out, np.repeat([0, 1], 20), held_out[:5, None])
        assert found.intervals(0.95, population=False).tolist() == [[0.0, 1.0], [0.0, 1.0]]

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
        shared = np.sum((near - 1.0 / 3.0) ** 2) / 30.0 / 2.0
        for population in (False, True):
            noise = found.moments.with_unseen_rows().noise(near, 50, drawn=population) + shared * found.unstable
            np.testing.assert_allclose(found.covariance(population=population), step @ noise @ step.T, rtol=1e-9)

    def test_intervals_for_a_population_are_wider(self):
        rng = np.random.default_rng(0)
        for classes in (2, 3):
            labels = np.repeat(np.arange(classes), 30)
            held_out = softmax(rng.normal(size=(len(labels), classes)) + 3.0 * np.eye(classes)[labels], axis=1)
            found = Shares.of(held_out, labels, held_out[10:40, None])
            rows, population = (np.diff(found.intervals(0.9, population=each)) for each in (False, True))
            assert (population > rows).all()

    def test_too_many_classes_are_refused(self):
        check_class_count(10, Budget(LIMIT))
        with pytest.raises(
            InputError, match="y has 1000 classes, whose covariances need 30,518 MiB, more than memory_limit"
        ):
            check_class_count(1000, Budget(LIMIT))
