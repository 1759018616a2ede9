"""The adapter as a detector of PyOD: every method of PyOD's base class, the inputs of its own tests, and its tools."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyod")

from pyod.models.base import BaseDetector
from pyod.models.iforest import IForest
from pyod.models.lscp import LSCP
from pyod.utils.data import evaluate_print, generate_data
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from isopleth import AnomalyDetector, load, save
from isopleth.adapters import PyODAdapter

SEEDED = AnomalyDetector(n_estimators=25, random_state=0)


@pytest.fixture(scope="module")
def data():
    return generate_data(n_train=200, n_test=100, contamination=0.1, random_state=42)


@pytest.fixture(scope="module")
def fitted(data):
    return PyODAdapter(detector=SEEDED).fit(data[0])


def test_it_is_a_detector_of_pyod_with_its_attributes(fitted, data):
    train, test, _, truth = data
    assert isinstance(fitted, BaseDetector)
    assert type(fitted.decision_scores_) is type(fitted.labels_) is np.ndarray
    assert fitted.decision_scores_.shape == fitted.labels_.shape == (len(train),)
    np.testing.assert_array_equal(fitted.labels_, fitted.decision_scores_ > fitted.threshold_)
    assert fitted.labels_.sum() == 20
    np.testing.assert_array_equal(fitted.labels_ == 1, fitted.detector_.training_labels_ == -1)
    np.testing.assert_array_equal(fitted.decision_function(train), fitted.decision_scores_)
    assert roc_auc_score(truth, fitted.decision_function(test)) > 0.95


def test_labels_probabilities_and_confidence(fitted, data):
    _, test, _, truth = data
    labels, confidence = fitted.predict(test, return_confidence=True)
    np.testing.assert_array_equal(labels, fitted.decision_function(test) > fitted.threshold_)
    np.testing.assert_array_equal(confidence, fitted.predict_confidence(test))
    for method in ("linear", "unify"):
        both, again = fitted.predict_proba(test, method=method, return_confidence=True)
        np.testing.assert_array_equal(again, confidence)
        np.testing.assert_allclose(both.sum(axis=1), 1.0)
        assert both.shape == (len(test), 2)
        assert roc_auc_score(truth, both[:, 1]) > 0.9
    for values in (both, confidence):
        assert values.min() >= 0.0
        assert values.max() <= 1.0
    with pytest.raises(ValueError, match="probability conversion"):
        fitted.predict_proba(test, method="other")


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_rejection_ranks_and_old_names(fitted, data, capsys):
    train, test, _, truth = data
    labels, (expected, rate, cost) = fitted.predict_with_rejection(test, return_stats=True)
    assert set(labels) <= {0, 1, -2}
    assert 0.0 <= expected <= 1.0
    assert rate >= 0.0
    assert cost >= 0.0
    ranks, scores = fitted._predict_rank(test, normalized=True), fitted.decision_function(test)
    assert (np.diff(ranks[np.argsort(scores)]) >= 0.0).all()
    again = clone(fitted)
    np.testing.assert_array_equal(again.fit_predict(train), fitted.labels_)
    for name in ("roc_auc_score", "prc_n_score"):
        assert 0.8 < again.fit_predict_score(test, truth, scoring=name) <= 1.0
    with pytest.raises(NotImplementedError):
        again.fit_predict_score(test, truth, scoring="other")
    evaluate_print("isopleth", truth, scores)
    assert "isopleth ROC:" in capsys.readouterr().out


def test_contamination_and_detector_are_parameters():
    adapter = clone(PyODAdapter(0.2, AnomalyDetector(contamination=0.01, random_state=1)))
    assert (adapter.contamination, adapter.detector.random_state) == (0.2, 1)
    adapter.set_params(detector__random_state=3, contamination=0.05)
    assert adapter.fit(np.random.default_rng(0).normal(size=(100, 2))).labels_.sum() == 5
    assert adapter.detector.contamination == 0.01  # the fit changes a copy
    assert "detector=" in repr(adapter)
    for share in (0, 0.51, -0.5):
        with pytest.raises(ValueError, match="contamination"):
            PyODAdapter(share)


def test_it_is_combined_with_other_detectors(data):
    train, test, _, truth = data
    ensemble = LSCP([PyODAdapter(detector=SEEDED), IForest(random_state=0)], n_bins=2, random_state=0).fit(train)
    assert roc_auc_score(truth, ensemble.decision_function(test)) > 0.95


def test_a_table_with_words_and_gaps(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"w": rng.choice(list("abc"), 120), "x": rng.normal(size=120)})
    table.loc[3, "x"], table.loc[5, "w"] = 30.0, None
    adapter = PyODAdapter(0.01, SEEDED).fit(table)
    assert np.flatnonzero(adapter.labels_).tolist() == [3, 5] or adapter.labels_[3] == 1
    assert adapter.predict_proba(table).shape == (120, 2)
    save(adapter, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(table), adapter.decision_function(table))


class Thresholder:
    """A thresholder as PyThresh has them: labels by a rule of its own."""

    def fit(self, scores):
        self.thresh_ = float(np.sort(scores)[-3])
        self.labels_ = self.predict(scores)
        return self

    def predict(self, scores):
        return (scores >= self.thresh_).astype(int)


def test_a_thresholder_in_the_place_of_a_share(data):
    adapter = PyODAdapter(Thresholder(), SEEDED).fit(data[0])
    assert adapter.labels_.sum() == adapter.predict(data[0]).sum() == 3
