"""p-values of new rows where training rows belong together."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from isopleth import AnomalyDetector, DataWarning, InputError, load, save
from isopleth.core.p_values import conformal_p_values
from isopleth.tasks.anomaly.reference_rule import NO_FOLD, ReferenceRule
from isopleth.tasks.anomaly.training_table import TrainingTable


def patients(groups, rows, rng, spread=0.2):
    """Rows that differ little within a group."""
    centres = rng.normal(size=(groups, 1, 2))
    return (centres + spread * rng.normal(size=(groups, rows, 2))).reshape(-1, 2)


def test_p_values_count_groups():
    rng = np.random.default_rng(0)
    training, new, groups = (
        rng.normal(size=30),
        rng.normal(size=9),
        np.r_[np.zeros(20), np.ones(7), 2, 2, 2].astype(int),
    )
    by_hand = [(1 + sum((training[groups == g] >= x).mean() for g in range(3))) / 4 for x in new]
    np.testing.assert_allclose(conformal_p_values(training, new, groups), by_hand)
    np.testing.assert_allclose(conformal_p_values(training, new, np.arange(30)), conformal_p_values(training, new))


def test_training_rows_are_judged_without_their_group():
    X = patients(12, 5, np.random.default_rng(0))
    groups = np.repeat(np.arange(12), 5)
    detector = AnomalyDetector(novelty=True).fit(X, groups=groups)
    rule = detector._rule
    rows = detector._frame.enter(X)
    known = detector._index.find(rows)
    found = rule.evidence(rows, known, detector._budget)
    assert rule.centers.fold.max() == 11  # a fold for each group
    for g in range(12):
        own = groups == g
        fold = rule.centers.fold == rule.fold[known[own][0]]
        without = [rule.centers.space(fold, ranked) for ranked in (None, rule.centers.ranked)]
        # Nothing of a row that is judged is in the coordinates: they are those of a fit to the other groups.
        alone, _ = ReferenceRule.fit(TrainingTable.of(rows[~own]), 0, False, detector._budget)
        whole = [alone.centers.space(alone.centers.fold == NO_FOLD, ranked) for ranked in (None, alone.centers.ranked)]
        for space, other, of_all in zip(without, whole, rule.spaces, strict=True):
            np.testing.assert_allclose(space.enter(rows), other.enter(rows))
            same = replace(other, width=of_all.width)
            places = [0] if of_all.scores is None else [1, 2]
            np.testing.assert_allclose(found[own][:, places], same.evidence(rows[own]))
    np.testing.assert_allclose(detector.score_samples(X), detector.training_scores_)
    np.testing.assert_array_equal(detector.predict(X), detector.training_labels_)


def test_the_level_holds_for_rows_of_new_groups():
    """Without groups three times as many ordinary rows have a p-value up to 0.1."""
    with_groups, without = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, new = patients(20, 5, rng), patients(60, 1, rng)
        detector = AnomalyDetector(novelty=True, fast=True)
        with_groups.append((detector.fit(X, groups=np.repeat(np.arange(20), 5)).p_values(new) <= 0.1).mean())
        without.append((detector.fit(X).p_values(new) <= 0.1).mean())
    error = np.std(with_groups, ddof=1) / np.sqrt(12)
    assert 0.02 <= np.mean(with_groups) <= 0.1 + 3 * error
    assert np.mean(without) > 0.2


def test_groups_of_one_row_change_nothing():
    X = np.random.default_rng(0).normal(size=(80, 3))
    new = np.random.default_rng(1).normal(size=(20, 3))
    detector = AnomalyDetector(novelty=True, random_state=0)
    one, plain = clone(detector).fit(X, groups=np.arange(80)), detector.fit(X)
    np.testing.assert_allclose(one.training_scores_, plain.training_scores_, rtol=1e-12)
    np.testing.assert_allclose(one.p_values(new), plain.p_values(new))


def test_labels_may_be_words_and_models_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(patients(10, 4, rng), columns=["a", "b"]).assign(word=rng.choice(["u", "v"], size=40))
    names = np.repeat([f"patient {i}" for i in range(10)], 4)
    detector = AnomalyDetector(novelty=True).fit(X, groups=pd.Series(names))
    save(detector, tmp_path / "m.isopleth")
    np.testing.assert_array_equal(load(tmp_path / "m.isopleth").p_values(X), detector.p_values(X))
    assert detector.p_values(X.assign(a=50.0)).max() == pytest.approx(1 / 11)
    assert np.isfinite(detector.explain(X[:3]).excess).all()
    with pytest.warns(DataWarning, match="10 groups of training rows"):
        detector.select(X, fdr=0.05)


def test_equal_rows_of_two_groups():
    X = np.repeat(np.arange(6.0), 4)[:, None]
    detector = AnomalyDetector(novelty=True).fit(X, groups=np.tile([0, 0, 1, 1], 6))
    assert np.isfinite(detector.training_scores_).all()
    np.testing.assert_allclose(detector.score_samples(X), detector.training_scores_)


def test_wrong_groups():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(InputError, match="one label only"):
        AnomalyDetector(novelty=True).fit(X, groups=np.zeros(10))
    with pytest.raises(InputError, match="novelty=True only"):
        AnomalyDetector().fit(X, groups=np.arange(10))
