"""Held-out losses by which the ridge of a classifier is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.tasks.class_prior.shares import clearly_less, held_out_losses


def test_a_ridge_is_chosen_by_paired_losses_that_weigh_classes_alike():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    labels = np.array([0, 0, 0, 1, 1])
    losses = held_out_losses(probabilities, labels)
    by_class = [-np.log([0.9, 0.8, 0.5]).mean(), -np.log([1.0, 1e-12]).mean()]
    assert losses.mean() == pytest.approx(np.mean(by_class))
    assert clearly_less(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.5]))
    assert not clearly_less(np.array([0.0, 9.0]), np.array([1.0, 8.5]))
