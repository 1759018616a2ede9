"""Held-out scores of the classes, and the folds and centres that they come from."""

from __future__ import annotations

import numpy as np
import pytest
from labelled_rows import labelled
from scipy.spatial.distance import cdist

from isopleth import InputError
from isopleth.core.budget import Budget
from isopleth.tasks.classifier import Fits, FoldMoments, SpanFeatures, balanced_subsample, stratified_folds

LIMIT = 2.0**30


class TestScores:
    def test_held_out_scores_are_those_of_kernel_ridge_regression_without_the_fold(self):
        z, labels = labelled((20, 20))
        folds, alpha = stratified_folds(labels, 0), 0.05
        features = SpanFeatures.of(z, Budget(LIMIT, 1))
        fits = Fits.of(features, FoldMoments.of(features, z, labels, folds), alpha)
        found, new = fits.held_out(z, folds), fits(z)
        assert new.shape == (40, 10, 3)  # a score of each row for each fit and class, and how typical it is
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
        both = [SpanFeatures.of(z[:30], Budget(limit, 1)) for limit in (LIMIT, 8.0 * 16 * 900)]
        many, few = (Fits.of(features, FoldMoments.of(features, z, labels, folds), 0.03) for features in both)
        np.testing.assert_allclose(many.held_out(z, folds), few.held_out(z, folds), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(many(z), few(z), rtol=1e-9, atol=1e-12)

    def test_too_little_memory_is_refused(self):
        with pytest.raises(InputError, match=r"40 centers need .* more than memory_limit; use fewer centers"):
            SpanFeatures.of(labelled((20, 20))[0], Budget(1000.0, 1))

    def test_coordinates_have_the_kernel_as_inner_product(self):
        z, _ = labelled((6, 6))
        phi = SpanFeatures.of(z, Budget(LIMIT, 1))(z)
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
        drawn = balanced_subsample(labels, 48, 0)
        assert np.bincount(labels[drawn]).tolist() == [20, 8, 20]
        assert len(set(drawn.tolist())) == 48
        assert balanced_subsample(labels, 500, 0).tolist() == list(range(138))
