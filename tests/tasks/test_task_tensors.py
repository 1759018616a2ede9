"""Tasks take tensors and answer with tensors; what is found is what NumPy's arrays give."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import (
    AnomalyDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DriftMonitor,
    InputError,
    two_sample_test,
)
from isopleth.tasks import ChangePoints, DriftAlarms, DriftState

torch = pytest.importorskip("torch")

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
RNG = np.random.default_rng(0)
ROWS, NEW = RNG.normal(size=(120, 3)), RNG.normal(size=(20, 3))
LABELS = np.repeat([3, 5], 60)
LABELLED = ROWS + LABELS[:, None]
SERIES = np.concatenate([RNG.normal(size=(60, 1)), RNG.normal(4.0, size=(60, 1))])


def small_detector(**parameters):
    return AnomalyDetector(n_estimators=10, random_state=0, **parameters)


def small_monitor():
    return DriftMonitor(window=10, expected_run_length=100, random_state=0)


FITS = {
    "anomalies": lambda send: small_detector().fit(send(ROWS)),
    "priors": lambda send: ClassPriorEstimator(random_state=0).fit(send(LABELLED), send(LABELS)),
    "changes": lambda send: ChangePointDetector(random_state=0).fit(send(SERIES)),
}


@pytest.fixture(scope="module", params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(scope="module")
def send(device):
    return lambda array: torch.as_tensor(array, device=device)


@pytest.fixture(scope="module")
def plain():
    """Models of NumPy's arrays."""
    return {name: fit(np.array) for name, fit in FITS.items()}


@pytest.fixture(scope="module")
def fitted(send):
    """Models of tensors."""
    return {name: fit(send) for name, fit in FITS.items()}


def test_reports_hold_numpy(plain, fitted, send):
    explanation, expected = fitted["anomalies"].explain(send(NEW)), plain["anomalies"].explain(NEW)
    np.testing.assert_array_equal(explanation.excess, expected.excess, strict=True)
    priors, expected = fitted["priors"].estimate(send(LABELLED[:40])), plain["priors"].estimate(LABELLED[:40])
    assert str(priors) == str(expected)
    np.testing.assert_array_equal(priors.classes, [3, 5], strict=True)
    changes = fitted["changes"].result_
    assert isinstance(changes, ChangePoints)
    assert repr(changes) == repr(plain["changes"].result_)
    assert isinstance(changes.change_points, np.ndarray)
    assert fitted["changes"].kinds_.tolist() == ["level"]  # words are no tensor


def test_a_classifier_is_reweighted_for_labels_that_were_tensors(plain, fitted):
    from sklearn.linear_model import RidgeClassifier

    priors = plain["priors"].estimate(LABELLED)
    new = NEW + 4.0
    weighted = [models["priors"].reweight(RidgeClassifier(), priors).predict(new) for models in (plain, fitted)]
    np.testing.assert_array_equal(*weighted, strict=True)


def test_words_label_rows_that_are_tensors(send):
    words = np.where(LABELS == 3, "three", "five")
    estimator = ClassPriorEstimator(random_state=0).fit(send(LABELLED), words)
    assert estimator.classes_.tolist() == ["five", "three"]
    assert isinstance(estimator.centers_, torch.Tensor)


def test_a_stream_of_tensors_is_the_stream_of_arrays(send):
    one, other = small_monitor().fit(ROWS), small_monitor().fit(send(ROWS))
    stream = np.concatenate([NEW, NEW + 3.0])
    for part in (slice(0, 7), slice(7, 40)):
        expected, alarms = one.update(stream[part]), other.update(send(stream[part]))
        assert isinstance(alarms, DriftAlarms)
        np.testing.assert_array_equal(alarms.statistic, expected.statistic, strict=True)
        assert list(alarms) == list(expected)
    assert isinstance(other.state_, DriftState)
    np.testing.assert_array_equal(other.state_.block, one.state_.block, strict=True)
    other.update(stream[:3])  # and of both kinds in turn


def test_a_new_reference_brings_its_backend(send):
    monitor = small_monitor().fit(ROWS)
    monitor.update_reference(send(ROWS + 1.0))
    assert isinstance(monitor.run_lengths_, torch.Tensor)
    monitor.update_reference(ROWS)
    assert isinstance(monitor.run_lengths_, np.ndarray)


def test_two_samples_of_tensors(send):
    results = [two_sample_test(take(ROWS), take(NEW), n_resamples=99, random_state=0) for take in (np.array, send)]
    assert results[0].pvalue == results[1].pvalue
    assert results[0].statistic == results[1].statistic
    np.testing.assert_array_equal(results[1].length_scale, results[0].length_scale, strict=True)
    np.testing.assert_array_equal(results[1].witness.x, results[0].witness.x, strict=True)


def test_change_points_of_one_column_and_a_reference(send):
    detectors = [ChangePointDetector(random_state=0) for _ in range(2)]
    expected = detectors[0].fit_predict(SERIES[:, 0], reference=SERIES[:50])
    found = detectors[1].fit_predict(send(SERIES[:, 0]), reference=send(SERIES[:50]))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.cpu().numpy(), expected, strict=True)


@pytest.mark.parametrize("name", ["Y", "reference"])
def test_a_wanted_gradient_is_refused(name, send):
    bad = send(ROWS).requires_grad_()
    fits = {
        "Y": lambda: two_sample_test(send(ROWS), bad),
        "reference": lambda: ChangePointDetector().fit(send(ROWS), reference=bad),
    }
    with pytest.raises(InputError, match=rf"^{name} requires a gradient.*{name}\.detach\(\)"):
        fits[name]()


def test_a_question_that_wants_a_gradient_is_refused(plain, send):
    with pytest.raises(InputError, match="X requires a gradient"):
        plain["anomalies"].score_samples(send(NEW).requires_grad_())
