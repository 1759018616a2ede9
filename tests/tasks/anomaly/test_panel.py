"""Who judges which row: folds of rows, of copies and of common values."""

import numpy as np
from anomaly_tables import table

from isopleth import AnomalyDetector
from isopleth.tasks.anomaly.panel import folds_of_distinct


def test_repeated_rows_are_held_out_together():
    X = table(100)
    X = np.concatenate([X, np.repeat(X[:1] + 40.0, 8, axis=0)])
    detector = AnomalyDetector(random_state=0).fit(X)
    # Eight copies of an anomaly do not vouch for one another.
    assert set(np.argsort(detector.training_scores_)[:8]) == set(range(100, 108))
    assert np.ptp(detector.training_scores_[100:]) == 0.0


def test_common_values_are_dealt_over_the_folds_and_stay_ordinary():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(300, 2)).astype(float)
    X = np.concatenate([X, [[0.0, 4.0]], rng.normal(size=(20, 2))])
    fold = folds_of_distinct(np.array([1, 16, 17, 80]), seed=0)
    assert (fold[:2] >= 0).all()
    assert (fold[2:] == -1).all()
    detector = AnomalyDetector(random_state=0).fit(X)
    assert sum(map(len, detector._held_out)) == len(X)
    assert detector.training_scores_[:300].min() > detector.training_scores_[300]
    np.testing.assert_allclose(detector.score_samples(X), detector.training_scores_)
    assert (detector.p_values([[0.0, 0.0], [1.0, 1.0]]) > 0.2).all()
    shuffled = AnomalyDetector(random_state=0).fit(rng.permutation(X))
    np.testing.assert_array_equal(shuffled.p_values(X), detector.p_values(X))
    assert len(AnomalyDetector(random_state=0).fit(X[:300]).training_scores_) == 300  # nothing but common values
