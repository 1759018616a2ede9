"""Bounded scores, and what labelled rows say of their means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import multivariate_normal, norm

from isopleth.tasks.class_prior.shares import (
    Calibrator,
    ClassMoments,
    _mean_if_positive,
    _modelled_means,
    calibration,
    strangeness,
    sum_zero_basis,
)


class TestSquash:
    def test_probabilities_are_those_of_normal_classes(self):
        rng = np.random.default_rng(0)
        basis, labels = sum_zero_basis(3), np.repeat(np.arange(3), 4000)
        scores = (rng.normal(size=(12000, 2)) @ [[1.0, 0.3], [0.0, 0.8]] + 2.0 * basis[labels]) @ basis.T
        moments = ClassMoments.of(scores @ basis, labels)
        densities = np.stack(
            [multivariate_normal(mean, moments.within).pdf(scores[:50] @ basis) for mean in moments.positive_means], 1
        )
        found = Calibrator.of_normal(scores, labels)(scores[:50])
        np.testing.assert_allclose(found, densities / densities.sum(axis=1, keepdims=True), rtol=1e-8, atol=1e-12)

    def test_scores_of_the_wrong_sign_are_not_turned_round(self):
        noise = np.random.default_rng(1).normal(size=(40, 1)) * [1, -1]
        scores = np.repeat([[0.1, -0.1], [-0.1, 0.1]], 20, axis=0) + noise
        wrong = np.repeat([1, 0], 20)
        assert Calibrator.of(scores, wrong).slopes[1, 1] > 0.0


class TestCalibration:
    @pytest.fixture
    def sample(self):
        rng = np.random.default_rng(3)
        labels = np.repeat([0, 1, 2], [10, 20, 40])
        return rng.normal(size=(70, 3)) + 1.5 * np.eye(3)[labels] + [0.0, 0.7, 0.0], labels

    def test_it_has_the_least_loss(self, sample):
        odds, labels = sample
        counts = np.array([10.0, 20.0, 40.0])

        def loss(values):
            total = 0.0
            for row, label in zip(odds, labels, strict=True):
                log_share = log_softmax(values[0] * row + values[1:])
                own, other = (counts[label] + 1.0 / 3.0) / (counts[label] + 1.0), 1.0 / 3.0 / (counts[label] + 1.0)
                target = np.where(np.arange(3) == label, own, other)
                total -= target @ log_share / counts[label] / 3.0
            return total

        factor, added = calibration(odds, labels)
        expected = minimize(loss, [1.0, 0.0, 0.0, 0.0], tol=1e-10).x
        assert loss(np.append(factor, added)) <= loss(expected) + 1e-12
        assert factor == pytest.approx(expected[0], abs=1e-5)
        np.testing.assert_allclose(added, expected[1:] - expected[1:].mean(), atol=1e-5)

    def test_at_equal_shares_the_mean_probabilities_are_equal(self, sample):
        odds, labels = sample
        factor, added = calibration(odds, labels)
        found = softmax(factor * odds + added, axis=1)
        means = np.mean([found[labels == k].mean(axis=0) for k in range(3)], axis=0)
        sizes = np.array([10.0, 20.0, 40.0])
        unsure = 1.0 / (sizes + 1.0)
        np.testing.assert_allclose(means, ((1.0 - unsure) + unsure.mean()) / 3.0, atol=1e-6)

    def test_probabilities_do_not_depend_on_the_unit_of_the_odds(self, sample):
        odds, labels = sample
        factor, added = calibration(odds, labels)
        again, same = calibration(200.0 * odds + np.arange(70.0)[:, None], labels)
        assert 200.0 * again == pytest.approx(factor, rel=1e-5)
        np.testing.assert_allclose(same, added, atol=1e-5)

    def test_it_permutes_with_rows_and_classes(self, sample):
        odds, labels = sample
        rows, classes = np.random.default_rng(0).permutation(70), np.array([2, 0, 1])
        factor, added = calibration(odds, labels)
        again, permuted = calibration(odds[rows][:, classes], np.argsort(classes)[labels[rows]])
        assert again == pytest.approx(factor)
        np.testing.assert_allclose(permuted, added[classes], atol=1e-9)

    def test_classes_without_a_mistake_get_bounded_odds(self):
        labels = np.repeat([0, 1], 30)
        odds = 1e3 * np.eye(2)[labels]
        factor, added = calibration(odds, labels)
        # As if half a row of 31 were of the other class.
        np.testing.assert_allclose(factor * 1e3, np.log(30.5 / 0.5), rtol=1e-5)
        np.testing.assert_allclose(added, 0.0, atol=1e-9)

    def test_odds_of_the_wrong_sign_are_flattened_and_not_turned_round(self):
        labels = np.repeat([0, 1], 30)
        factor, _ = calibration(-2.0 * np.eye(2)[labels], labels)
        assert 0.0 < factor < 0.01


class TestMoments:
    def test_half_a_row_of_any_class_is_added_to_the_covariances(self):
        rng = np.random.default_rng(0)
        labels = np.repeat([0, 1, 2], [10, 20, 30])
        moments = ClassMoments.of(rng.normal(size=(60, 2)) + 3.0 * sum_zero_basis(3)[labels], labels)
        found = moments.with_unseen_rows()
        for k in range(3):
            away = moments.means - moments.means[k]
            added = 0.5 / (moments.counts[k] + 0.5) * away.T @ away / 3.0
            np.testing.assert_allclose(found.covariances[k], moments.covariances[k] + added)
        np.testing.assert_array_equal(found.means, moments.means)

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

    def test_modelled_means_count_as_five_rows_and_are_those_of_right_probabilities(self):
        rng = np.random.default_rng(8)
        labels = np.repeat([0, 1], [200_000, 100_000])  # shares that differ: the classes weigh the same
        x = rng.normal(size=len(labels)) + 1.5 * labels
        right = 1.0 / (1.0 + np.exp(-1.5 * (x - 0.75)))
        probabilities, scores = np.stack([1.0 - right, right], axis=1), np.tanh(x)[:, None]
        modelled = _modelled_means(scores, probabilities, labels)
        own = np.array([[scores[labels == k].mean()] for k in (0, 1)])
        np.testing.assert_allclose(modelled, own, atol=0.01)
        some = np.r_[:8, 200_000:200_020]
        moments = ClassMoments.of(scores[some], labels[some])
        means, steady = moments.with_modelled(modelled)
        np.testing.assert_allclose(means[0], (8.0 * moments.positive_means[0] + 5.0 * modelled[0]) / 13.0)
        shares = np.array([1.0, 0.0])
        of_labelled = [each.noise(shares, 10**12, drawn=False) for each in (steady, moments)]
        np.testing.assert_allclose(of_labelled[0], of_labelled[1] * (8.0 / 13.0) ** 2, rtol=1e-6)

    def test_modelled_means_of_classes_that_do_not_overlap_are_those_of_their_rows(self):
        labels = np.repeat([0, 1], 6)
        doubt = 0.5 / 7.0  # what calibration makes of rows that are all on the right side
        probabilities = np.where(labels[:, None] == [0, 1], 1.0 - doubt, doubt)
        scores = np.random.default_rng(9).normal(size=(12, 1))
        np.testing.assert_allclose(
            _modelled_means(scores, probabilities, labels), scores.reshape(2, 6, 1).mean(axis=1), atol=1e-15
        )

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


def test_strangeness_counts_standard_deviations():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    held_out = rng.normal(size=100) + labels
    priors = np.array([0.5, 0.5])
    near = [strangeness(held_out, labels, rng.normal(size=30) + (np.arange(30) < 15), priors) for _ in range(50)]
    assert 0.3 < np.mean(near) < 1.3  # of a normal variable: 0.8
    assert strangeness(held_out, labels, rng.normal(size=30) + 5.0, priors) > 8.0


def test_strangeness_has_the_standard_deviation_of_few_labelled_rows_and_of_shares_that_differ():
    rng = np.random.default_rng(5)
    priors, counts, centers = np.array([0.2, 0.8]), np.array([40, 40]), np.array([3.0, 0.0])
    labels = np.repeat([0, 1], counts)
    found = []
    for _ in range(1000):
        drawn = (rng.random(400) < priors[1]).astype(int)
        held_out, new = rng.normal(size=80) + centers[labels], rng.normal(size=400) + centers[drawn]
        found.append(strangeness(held_out, labels, new, priors))
    assert np.mean(np.square(found)) == pytest.approx(1.0, abs=0.12)
