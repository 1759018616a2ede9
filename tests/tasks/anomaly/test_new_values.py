"""Unseen values and numbers outside the range of a clean reference, against counts among the other rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from isopleth import AnomalyDetector
from isopleth.tasks.anomaly.new_values import NewValues
from isopleth.tasks.anomaly.training_table import NEW, TrainingTable


def by_hand(others, row, numeric):
    """Evidence of a row among other rows, from the definition."""
    outside, unseen = 0.0, [0.0]
    for j, x in enumerate(row):
        known = others[~np.isnan(others[:, j]), j]
        if np.isnan(x):
            continue
        values, counts = np.unique(known, return_counts=True)
        if j < numeric and not known.min() <= x <= known.max():
            outside += np.log(len(known) + 1)
        elif x not in values:
            unseen.append(np.log((len(known) + 1) / ((counts == 1).sum() + 1)))
    return outside + max(unseen)


def rows_of(n=60, seed=0):
    """Counts, codes, measured numbers and words, with gaps and repeated rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.poisson(2.0, n), 10.0 * rng.integers(1, 4, n), rng.normal(size=n), rng.geometric(0.4, n) - 1.0]
    )
    X[rng.random(n) < 0.1, 0] = np.nan
    return np.concatenate([X, X[:7]])


def test_training_rows_by_counting_the_others():
    X = rows_of()
    table = TrainingTable.of(X, 3)
    found = NewValues.of(table).evidence(table.rows, table.known)[table.place]
    want = [by_hand(np.delete(X, i, axis=0), X[i], 3) for i in range(len(X))]
    np.testing.assert_allclose(found, want)
    assert 0 < np.count_nonzero(found) < len(X)


def test_new_rows():
    X = rows_of()
    table = TrainingTable.of(X, 3)
    rule = NewValues.of(table)
    new = np.array([[2.0, 17.0, 0.1, 0.0], [40.0, 20.0, 9.0, 0.0], [np.nan, 25.0, 0.0, 30.0]])
    np.testing.assert_allclose(rule.evidence(new, np.full(3, NEW)), [by_hand(X, row, 3) for row in new])


def test_rows_of_a_group_do_not_hold_values_for_one_another():
    X = np.column_stack([np.repeat([1.0, 2.0, 2.0, 3.0], 5), np.arange(20.0)])
    groups = np.repeat([0, 1, 2, 3], 5)
    table = TrainingTable.of(X, 2, groups)
    found = NewValues.of(table).evidence(table.rows, table.known)[table.place]
    # Three other groups hold a value of the first column, 19 other rows one of the second, all beyond those of the first group.
    np.testing.assert_allclose(found[:5], np.log(4.0) + np.log(20.0))
    assert (found[5:15] == 0.0).all()


def test_new_rows_are_judged_without_one_row_as_training_rows_are():
    X = rows_of()
    table = TrainingTable.of(X, 3)
    new = np.array([[2.0, 17.0, 0.1, 0.0], [X[4, 0], X[4, 1], X[4, 2], 0.0]])
    found = NewValues.of(table, int(table.place[4])).evidence(new, np.full(2, NEW))
    np.testing.assert_allclose(found, [by_hand(np.delete(X, 4, axis=0), row, 3) for row in new])


def test_units_and_rounding_do_not_matter():
    X = rows_of()
    table = TrainingTable.of(X, 3)
    new = np.array([[2.0, 20.0, 0.1, 1.0], [2.0, 30.0, X[5, 2], 1.0]])
    here = NewValues.of(table).evidence(new, np.full(2, NEW))
    np.testing.assert_array_equal(NewValues.of(table).evidence(new * (1.0 + 1e-13), np.full(2, NEW)), here)
    unit = np.array([1e6, 1e-9, 7.0, 1.0])
    scaled = NewValues.of(TrainingTable.of(X * unit, 3)).evidence(new * unit, np.full(2, NEW))
    np.testing.assert_allclose(scaled, here)


def test_measured_numbers_within_their_range_are_never_new():
    X = np.random.default_rng(0).normal(size=(200, 3))
    new = np.random.default_rng(1).uniform(-1, 1, size=(50, 3))
    found = NewValues.of(TrainingTable.of(X)).evidence(new, np.full(50, NEW))
    np.testing.assert_array_equal(found, 0.0)


@pytest.mark.parametrize("words", [False, True])
def test_a_code_between_two_others_is_found(words):
    rng = np.random.default_rng(0)
    reference, new = ({"code": rng.choice([12, 14, 16, 18, 20], n), "size": rng.normal(size=n)} for n in (300, 200))
    new["code"][:20] = 17
    frames = [pd.DataFrame(table) for table in (reference, new)]
    if words:
        frames = [frame.assign(code="c" + frame["code"].astype(str)) for frame in frames]
    scores = AnomalyDetector(novelty=True, random_state=0).fit(frames[0]).score_samples(frames[1])
    assert roc_auc_score(np.arange(200) < 20, -scores) > 0.99


def test_many_counts_do_not_make_every_row_unlikely():
    """Nearly every ordinary row has a count that no other row has: rows with a far one must still come first."""
    rng = np.random.default_rng(0)
    rows, new = (rng.negative_binomial(1, 0.02, size=(n, 40)).astype(float) for n in (400, 200))
    table = TrainingTable.of(rows)
    assert (NewValues.of(table).evidence(table.rows, table.known) > 0.0).mean() > 0.5
    detector = AnomalyDetector(novelty=True, random_state=0).fit(rows)
    assert (detector.p_values(new) <= 0.1).mean() == pytest.approx(0.1, abs=0.06)
