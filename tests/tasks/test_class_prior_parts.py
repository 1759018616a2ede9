"""The parts of the class prior: held-out scores, bounded scores, moments and the mixture that fits them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import multivariate_normal, norm, t

from isopleth.errors import InputError
from isopleth.tasks.class_prior.moments import (
    ClassMoments,
    Shares,
    Squash,
    _mean_if_positive,
    _relative,
    check_class_count,
    mixture,
    strangeness,
    sum_zero_basis,
    two_shares,
)
from isopleth.tasks.class_prior.scores import Features, Fits, drawn_evenly, stratified_folds

LIMIT = 2.0**30


def labelled(sizes, dim=3, gap=1.0, seed=0):
    """Normal classes along their own columns."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(labels), dim)) + gap * np.eye(len(sizes), dim)[labels], labels


class TestScores:
    def test_held_out_scores_are_those_of_kernel_ridge_regression_without_the_fold(self):
        z, labels = labelled((20, 20))
        folds, alpha = stratified_folds(labels, 0), 0.05
        fits = Fits.of(Features.of(z, LIMIT), z, labels, folds, alpha)
        found, new = fits.held_out(z, folds), fits(z)
        gram = np.exp(-cdist(z, z, "cityblock") / 6.0)
        for fold in range(10):
            out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            inner, across = gram[np.ix_(rest, rest)], gram[np.ix_(out, rest)]
            n = len(rest)
            centre = np.eye(n) - 1.0 / n
            centred = centre @ inner @ centre
            system = centred + alpha * np.trace(centred) * np.eye(n)
            dual = np.linalg.solve(system, 2.0 * (labels[rest] == 1) - 1.0)
            expected = (across - inner.mean(axis=0)) @ centre @ dual
            np.testing.assert_allclose(found[out, 1], expected, atol=1e-7)
            np.testing.assert_allclose(found[out, 2], across.mean(axis=1), atol=1e-7)
            np.testing.assert_allclose(new[out, fold], found[out], atol=1e-12)
        np.testing.assert_allclose(found[:, 0], -found[:, 1], atol=1e-12)

    def test_little_memory_gives_the_same(self):
        z, labels = labelled((40, 25, 30))
        folds = stratified_folds(labels, 0)
        many, few = (Fits.of(Features.of(z[:30], limit), z, labels, folds, 0.03) for limit in (LIMIT, 8.0 * 16 * 900))
        np.testing.assert_allclose(many.held_out(z, folds), few.held_out(z, folds), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(many(z), few(z), rtol=1e-9, atol=1e-12)

    def test_too_little_memory_is_refused(self):
        with pytest.raises(InputError, match=r"40 centers need .* more than memory_limit; use fewer centers"):
            Features.of(labelled((20, 20))[0], 1000.0)

    def test_coordinates_have_the_kernel_as_inner_product(self):
        z, _ = labelled((6, 6))
        phi = Features.of(z, LIMIT)(z)
        np.testing.assert_allclose(phi @ phi.T, np.exp(-cdist(z, z, "cityblock") / 6.0), atol=1e-8)

    @pytest.mark.parametrize(("sizes", "folds"), [((40, 25), 10), ((40, 7), 7), ((2, 90), 2)])
    def test_folds_hold_an_even_part_of_every_class(self, sizes, folds):
        labels = np.repeat([0, 1], sizes)
        held = stratified_folds(labels, 3)
        for k, size in enumerate(sizes):
            counts = np.bincount(held[labels == k], minlength=folds)
            assert len(counts) == folds
            assert set(counts.tolist()) <= {size // folds, -(-size // folds)}

    def test_centers_are_drawn_from_all_classes_alike(self):
        labels = np.repeat([0, 1, 2], [100, 8, 30])
        drawn = drawn_evenly(labels, 48, 0)
        assert np.bincount(labels[drawn]).tolist() == [20, 8, 20]
        assert len(set(drawn.tolist())) == 48
        assert drawn_evenly(labels, 500, 0).tolist() == list(range(138))


class TestSquash:
    def test_probabilities_are_those_of_normal_classes(self):
        rng = np.random.default_rng(0)
        basis, labels = sum_zero_basis(3), np.repeat(np.arange(3), 4000)
        scores = (rng.normal(size=(12000, 2)) @ [[1.0, 0.3], [0.0, 0.8]] + 2.0 * basis[labels]) @ basis.T
        moments = ClassMoments.of(scores @ basis, labels)
        densities = np.stack(
            [multivariate_normal(mean, moments.within).pdf(scores[:50] @ basis) for mean in moments.positive_means], 1
        )
        found = Squash.of(scores, labels)(scores[:50])
        np.testing.assert_allclose(found, densities / densities.sum(axis=1, keepdims=True), rtol=1e-8, atol=1e-12)

    def test_scores_of_the_wrong_sign_are_not_turned_round(self):
        scores = np.repeat([[0.1, -0.1], [-0.1, 0.1]], 20, axis=0) + np.random.default_rng(1).normal(size=(40, 1)) * [
            1,
            -1,
        ]
        wrong = np.repeat([1, 0], 20)
        assert Squash.of(scores, wrong).slopes[1, 1] > 0.0


class TestMoments:
    def test_positive_gap_is_the_mean_of_a_normal_variable_that_is_positive(self):
        values = np.random.default_rng(2).normal(size=(30, 1))
        labels = np.repeat([0, 1], 15)
        moments = ClassMoments.of(values, labels)
        basis = sum_zero_basis(2)[:, 0]
        gap = float(basis @ moments.means[:, 0])
        error = float(np.sqrt(np.square(basis) @ moments.covariances[:, 0, 0] / 15.0))
        mass = quad(lambda g: norm.pdf(g, gap, error), 0.0, np.inf)[0]
        expected = quad(lambda g: g * norm.pdf(g, gap, error), 0.0, np.inf)[0] / mass
        assert float(basis @ moments.positive_means[:, 0]) == pytest.approx(expected, rel=1e-6)
        assert moments.positive_means.mean() == pytest.approx(moments.means.mean())

    def test_a_gap_that_is_surely_of_the_wrong_sign_becomes_tiny_and_stays_positive(self):
        distances = np.array([-1e200, -1e9, -1e5, -1e4, -9999.0, -3.0])
        found = _mean_if_positive(distances)
        np.testing.assert_allclose(found[:5], -1.0 / distances[:5], rtol=1e-6)
        expected = quad(lambda x: x * norm.pdf(x, -3.0), 0.0, np.inf)[0] / norm.sf(3.0)
        assert found[5] == pytest.approx(expected, rel=1e-7)

    def test_degrees_of_freedom_are_those_of_the_variance_estimate(self):
        rng = np.random.default_rng(0)
        sizes, rows, priors, deviations = np.array([4, 25]), 40, np.array([0.4, 0.6]), np.array([1.5, 1.0])
        variances = deviations**2 * rng.chisquare(sizes - 1.0, (40000, 2)) / (sizes - 1.0)
        noise = variances @ (priors**2 / sizes + priors / rows)
        truth = ClassMoments(np.zeros((2, 1)), np.square(deviations)[:, None, None], np.eye(1), sizes.astype(float))
        found = truth.degrees(priors, rows, np.ones(1))
        assert found == pytest.approx(2.0 * noise.mean() ** 2 / noise.var(), rel=0.05)  # as of a chi-square variable

    def test_clear_means_stay_as_they_are(self):
        basis, labels = sum_zero_basis(3), np.repeat(np.arange(3), 50)
        values = basis[labels] + 0.01 * np.random.default_rng(0).normal(size=(150, 2))
        moments = ClassMoments.of(values, labels)
        np.testing.assert_allclose(moments.positive_means, moments.means, atol=0.01)

    def test_noise_is_the_variance_over_repeated_samples(self):
        rng = np.random.default_rng(0)
        sizes, rows, priors = (30, 60), 40, np.array([0.7, 0.3])
        means, deviations = np.array([-1.0, 1.0]), np.array([0.5, 1.5])
        truth = ClassMoments(means[:, None], np.square(deviations)[:, None, None], np.eye(1), np.array(sizes, float))
        for drawn in (False, True):
            found = []
            for _ in range(4000):
                a = [rng.normal(m, s, n).mean() for m, s, n in zip(means, deviations, sizes, strict=True)]
                k = (rng.random(rows) < 0.3).astype(int) if drawn else np.repeat([0, 1], [28, 12])
                found.append(rng.normal(means[k], deviations[k]).mean() - priors @ a)
            assert truth.noise(priors, rows, drawn=drawn)[0, 0] == pytest.approx(np.var(found), rel=0.1)


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
            fits = Fits.of(Features.of(z, LIMIT), z, labels, folds, 0.1)
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


def test_strangeness_counts_standard_deviations():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    held_out = rng.normal(size=100) + labels
    priors = np.array([0.5, 0.5])
    near = [strangeness(held_out, labels, rng.normal(size=30) + (np.arange(30) < 15), priors) for _ in range(50)]
    assert 0.3 < np.mean(near) < 1.3  # of a normal variable: 0.8
    assert strangeness(held_out, labels, rng.normal(size=30) + 5.0, priors) > 8.0
