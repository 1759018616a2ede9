"""The detector in PyOD's conventions."""

import numpy as np
import pytest
from sklearn.base import clone

from isopleth import AnomalyDetector
from isopleth.adapters import PyODAdapter


def test_pyod_s_conventions():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[:6] += 12.0
    adapter = PyODAdapter(AnomalyDetector(contamination=0.02, random_state=0)).fit(X)
    assert (adapter.labels_[:6] == 1).all()
    assert set(np.unique(adapter.labels_)) == {0, 1}
    np.testing.assert_array_equal(adapter.labels_, (adapter.decision_scores_ > adapter.threshold_).astype(int))
    np.testing.assert_array_equal(adapter.decision_scores_, -adapter.detector_.training_scores_)
    assert adapter.labels_.mean() == pytest.approx(0.02, abs=0.005)
    np.testing.assert_array_equal(adapter.predict(X), (adapter.decision_function(X) > adapter.threshold_).astype(int))
    assert adapter.decision_function([[99.0, 0, 0]])[0] > adapter.threshold_
    assert len(PyODAdapter().fit(X).decision_scores_) == 300
    assert clone(adapter).detector.contamination == 0.02
