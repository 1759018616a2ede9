"""The detectors under the checks of river, on made streams, since river's own have to be downloaded."""

import numpy as np
import pytest

from isopleth import InputError

pytest.importorskip("river")

from river import anomaly, checks, drift, linear_model, metrics

from isopleth.adapters import RiverAnomalyDetector, RiverDriftDetector

SMALL = {"window_size": 40, "n_estimators": 10, "seed": 0}


def stream(rows, every=20):
    """Return rows as dicts, and whether each is one of the anomalies, which come at equal distances."""
    rng = np.random.default_rng(1)
    for i in range(rows):
        odd = i % every == every - 1
        yield {f"v{j}": float(value) for j, value in enumerate(rng.normal(size=5) + 4.0 * odd)}, odd


def river_checks():
    """Yield river's checks of an estimator, with our streams in place of a data set of the network."""
    patch = pytest.MonkeyPatch()
    patch.setattr(checks, "_yield_datasets", lambda model, scale=1: iter([list(stream(100 * scale))]))
    try:
        yield from checks.yield_checks(RiverAnomalyDetector(**SMALL))
    finally:
        patch.undo()


@pytest.mark.parametrize("check", list(river_checks()), ids=lambda check: check.__name__)
def test_checks_of_river(check):
    check(RiverAnomalyDetector(**SMALL))


def test_scores_are_p_values_and_pass_a_threshold_filter():
    detector, scores = RiverAnomalyDetector(window_size=200, n_estimators=25, seed=0), []
    for row, _ in stream(800, every=10**9):
        scores.append(detector.score_one(row))
        detector.learn_one(row)
    assert scores[:200] == [0.0] * 200
    assert 0.4 < np.mean(scores[200:]) < 0.6
    assert 0.02 < np.mean(np.array(scores[200:]) > 0.95) < 0.1
    assert anomaly.ThresholdFilter(detector, threshold=0.99).classify(detector.score_one(dict.fromkeys(row, 9.0)))


def test_words_gaps_and_features_that_come_and_go():
    rng, detector = np.random.default_rng(0), RiverAnomalyDetector(window_size=60, n_estimators=25, seed=0)
    rows = [{"size": rng.normal(), "colour": str(rng.choice(["red", "green"])), "flag": True} for _ in range(60)]
    for row in rows:
        detector.learn_one(row if rng.random() < 0.8 else {"size": row["size"], "colour": None})
    ordinary = np.mean([detector.score_one(row) for row in rows])
    assert detector.score_one({"size": 20.0, "colour": "red", "flag": True}) > ordinary + 0.3
    assert 0.0 <= detector.score_one({"colour": "red", "new": 3.0}) <= 1.0
    assert detector.score_one({"new": 3.0}) == 0.0


def drifts(detector, values):
    """Return the rows at which drift is detected."""
    found = []
    for i, value in enumerate(values):
        detector.update(value)
        if detector.drift_detected:
            found.append(i)
    return found


def test_drift_is_detected_and_the_rows_after_it_are_the_new_reference():
    delays, alarms = [], 0
    for seed in range(5):
        values = np.random.default_rng(seed).normal(size=600) + 3.0 * (np.arange(600) >= 350)
        detector = RiverDriftDetector(reference_size=250, window=20, expected_run_length=1000, seed=0)
        found = drifts(detector, values.tolist())
        delays += [place - 350 for place in found if 350 <= place < 370][:1]
        alarms += len(found)
    assert len(delays) >= 3  # false alarms before the change have a probability of .1
    assert max(delays) < 18
    assert alarms <= 8  # against the old reference, every window after the change would raise one: 12 in each series
    assert detector.clone()._monitor is None


def test_a_reference_that_cannot_be_used_is_extended_and_then_refused():
    detector = RiverDriftDetector(reference_size=30, window=20, expected_run_length=200, seed=0)
    assert drifts(detector, [2.0] * 239) == []  # rows that are all the same say nothing of windows
    with pytest.raises(InputError, match="equal"):
        detector.update(2.0)


def test_rows_of_several_features_can_drift_and_must_be_whole():
    rng = np.random.default_rng(3)
    rows = [{"a": rng.normal(), "b": rng.normal(4.0 * (i >= 400))} for i in range(450)]
    detector = RiverDriftDetector(reference_size=250, window=20, expected_run_length=2000, seed=0)
    assert len(drifts(detector, rows)) == 1
    detector = RiverDriftDetector(reference_size=250, window=20, expected_run_length=2000, seed=0)
    drifts(detector, rows[:260])
    with pytest.raises(InputError, match="no feature 'b'"):
        detector.update({"a": 0.0})


def test_a_retraining_classifier_of_river_takes_it():
    rng = np.random.default_rng(0)
    model = drift.DriftRetrainingClassifier(
        model=linear_model.LogisticRegression(),
        drift_detector=RiverDriftDetector(reference_size=250, window=25, expected_run_length=2000, seed=0),
        train_in_background=False,  # this needs no warnings before an alarm
    )
    accuracy = metrics.Accuracy()
    for i in range(1200):
        x = {"a": rng.normal()}
        y = (x["a"] > 0) != (i >= 600)
        if i > 900:
            accuracy.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert accuracy.get() > 0.9
