"""Limits on the number of anomalies in lists of new rows."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom

from isopleth import AnomalyDetector, load, save
from isopleth.tasks.anomaly.certificate import (
    DRAWS,
    Certificate,
    _simulated_counts,
    _upper_tail,
    levels_of,
    simultaneous_bounds,
)


def test_counts_have_the_beta_binomial_law():
    levels = np.array([1, 3, 10, 40])
    counts = _simulated_counts(40, levels, 25)
    assert (np.diff(counts, axis=1) >= 0).all()
    for i, found in zip(levels, counts.T, strict=True):
        law = betabinom(25, i, 41 - i)
        np.testing.assert_allclose(_upper_tail(40, i, 25), law.sf(np.arange(26) - 1), atol=1e-12)
        assert abs(found.mean() - law.mean()) < 4 * law.std() / np.sqrt(DRAWS)


def test_bounds_of_many_new_rows_need_little_memory():
    tracemalloc.start()
    bounds = simultaneous_bounds(2000, 300_000, 0.95)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # the tails of all levels would be 77 MB
    mean = levels_of(2000) / 2001 * 300_000
    assert (mean < bounds).all()
    assert (bounds[1:] < 6 * mean[1:]).all()


@pytest.mark.parametrize("ties", [False, True])
def test_all_limits_hold_together(ties):
    """Exchangeable scores: the share of tables with any false limit is at most 5 %, and planted anomalies are counted."""
    false, found = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        calibration, new = rng.normal(size=80), rng.normal(size=160)
        new[:20] += 6.0
        if ties:
            calibration, new = calibration.round(), new.round()
        order = np.argsort(-new, kind="stable")
        limits = Certificate.of(calibration, new).at_least(order)
        assert (np.diff(limits) >= 0).all()
        false.append((limits > np.cumsum(order < 20)).any())
        found.append(limits[-1])
    assert np.mean(false) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(found) > 6


def test_no_new_row_is_beyond_the_calibration_rows():
    assert not Certificate.of(np.arange(50.0), np.zeros(7)).at_least(np.arange(7)).any()
    assert Certificate.of(np.zeros(50), np.ones(1)).at_least(np.arange(1)) <= 1


def table(n, rng, gaps=False):
    X = np.c_[rng.normal(size=(n, 2)), rng.integers(3, size=n)]
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("gaps", [False, True])
def test_the_result_of_new_rows_has_limits(gaps, tmp_path):
    rng = np.random.default_rng(0)
    X, new = table(300, rng, gaps), table(60, rng, gaps)
    new[:12] += 30.0
    detector = AnomalyDetector(novelty=True, random_state=0).fit(X)
    found = detector.anomalies(new)
    order = found.order
    assert found.at_least[11] >= 7
    assert (found.at_least <= np.cumsum(order < 12)).all()
    facts = found.to_dict()
    assert facts["certified_anomalies"] == found.at_least[facts["certified_rows"] - 1]
    assert any(f"At least {facts['certified_anomalies']} of the first" in sentence for sentence in facts["summary"])
    np.testing.assert_array_equal(found.table()["at_least"], found.at_least)
    save(detector, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").anomalies(new).at_least, found.at_least)


def test_where_there_are_no_limits():
    rng = np.random.default_rng(0)
    X, new = table(200, rng), table(20, rng)
    detector = AnomalyDetector(novelty=True).fit(X)
    assert detector.anomalies(X).at_least is None  # the rows of the fit
    assert AnomalyDetector(n_estimators=10).fit(X).anomalies(new).at_least is None
    assert AnomalyDetector(novelty=True).fit(X, groups=np.arange(200) // 11).anomalies(new).at_least is None
    assert AnomalyDetector(novelty=True).fit(X[:15]).anomalies(new).at_least is None


def test_of_each_group_one_row_calibrates():
    """With the rows of a group all equal, the limits are those of a reference of one row a group, up to the draw of halves."""
    rng = np.random.default_rng(0)
    X, labels, new = rng.normal(size=(80, 2)), np.repeat(np.arange(80), 5), rng.normal(size=(60, 2))
    new[:30] += 9.0
    detector = AnomalyDetector(novelty=True, fast=True, random_state=0).fit(X[labels], groups=labels)
    assert len(detector._split.calibration) == 40
    limit, alone = (d.anomalies(new).at_least[-1] for d in (detector, type(detector)(**detector.get_params()).fit(X)))
    assert 20 < limit <= 30
    assert abs(limit - alone) < 5


def test_a_limit_of_zero_is_explained_beside_certain_rows():
    rng = np.random.default_rng(0)
    found = AnomalyDetector(novelty=True, fast=True).fit(rng.normal(size=(99, 2))).anomalies([[9.0, 9.0], [0.1, 0.2]])
    assert found.certain.sum() == 1
    assert not found.at_least.any()
    assert "1 row is an anomaly" in found.text()
    assert "is a stricter promise, and is 0 here" in found.text()


def test_new_rows_state_their_least_p_value_and_why_more_rows_are_certain_than_flagged():
    rng = np.random.default_rng(2)
    reference, new = rng.normal(size=(99, 2)), np.vstack([rng.normal(size=(10, 2)), rng.normal(9.0, 1.0, size=(30, 2))])
    found = AnomalyDetector(novelty=True, fast=True, random_state=0).fit(reference).anomalies(new)
    assert found.resolution == found.p_values.min() == 0.01
    assert "not flagged: among" not in found.text()
    fewer = replace(found, labels=np.where(np.arange(40) < 35, found.labels, 1))
    assert "5 of them are not flagged: among so many, less unlikely rows count, too." in fewer.text()


def test_numbers_that_no_reference_row_has_count_in_limits():
    rng = np.random.default_rng(2)
    reference, new = (np.column_stack([rng.normal(size=(n, 2)), np.full(n, 3.0)]) for n in (200, 60))
    new[:10, 2] = 4.0
    reference[1:, 1] = new[:, 1] = np.nan  # one half of the reference has no value there
    found = AnomalyDetector(novelty=True, fast=True, random_state=0).fit(reference).anomalies(new)
    assert len(set(found.order[:10]) & set(range(10))) >= 8
    assert 5 <= found.at_least[-1] <= 10
