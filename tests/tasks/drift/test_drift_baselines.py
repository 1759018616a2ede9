"""The baselines that the drift monitor is compared with, window by window."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from scipy.stats import ks_2samp

study = pytest.importorskip("experiments.drift", reason="the studies are not beside an installed package")


def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 2)), rng.normal(0.5, size=(study.WINDOW + 9, 2))


def test_mmd_of_each_window():
    reference, stream = rows()

    def kernel(a, b):
        return np.exp(-0.5 * cdist(a, b, "sqeuclidean") / np.median(pdist(reference)) ** 2).mean()

    windows = [stream[i : i + study.WINDOW] for i in range(10)]
    expected = [kernel(w, w) - 2.0 * kernel(w, reference) for w in windows]
    np.testing.assert_allclose(study.mmd_path(reference, stream), expected, rtol=1e-9)


def test_ks_of_each_window():
    reference, stream = rows()
    expected = [
        max(ks_2samp(stream[i : i + study.WINDOW, j], reference[:, j]).statistic for j in range(2)) for i in range(10)
    ]
    # A step of the reference between two rows of the window counts for the other statistic only where a row stands.
    np.testing.assert_allclose(study.ks_path(reference, stream), expected, atol=1.0 / 40)


def test_threshold_has_the_run_length():
    rng = np.random.default_rng(0)
    paths = rng.normal(size=(400, 3000))
    threshold = study.threshold_of(paths)
    rate = (paths > threshold).mean()
    assert 1.0 / rate + study.WINDOW == pytest.approx(study.RUN_LENGTH, rel=0.1)
