"""Scores are sums of tail shares, and rank real rows."""

import numpy as np
from anomaly_tables import table
from sklearn.metrics import roc_auc_score

from isopleth import AnomalyDetector
from isopleth.core.budget import Budget
from isopleth.datasets import load_breast
from isopleth.tasks.anomaly.training_table import NEW


def test_scores_are_sums_of_log_tail_shares():
    X, Q = table(120), table(30, seed=4)
    detector = AnomalyDetector(n_estimators=10, random_state=0).fit(X)
    rule, z = detector._rule, detector._frame.enter(Q)
    new = np.full(30, NEW)
    limits = Budget(2.0**30, 1)
    evidence = [rule.committee.evidence(z, new, limits), rule.covariance.evidence(z, new, limits)]
    evidence.append(rule.columns.evidence(z, new, limits))
    by_hand = sum(tail.surprise(e) for tail, e in zip(rule.tails, evidence, strict=True))
    np.testing.assert_allclose(detector.score_samples(Q), -by_hand)
    assert (detector.training_scores_ <= 0).all()


def test_real_rows_rank_better_than_chance_by_far():
    breast = load_breast()
    detector = AnomalyDetector(random_state=0).fit(breast.data)
    assert roc_auc_score(breast.labels, -detector.training_scores_) > 0.95
