"""New rows that are certain in bulk: the first sentence says that the table differs as a whole, and by which column."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from isopleth import AnomalyDetector, two_sample_test


def orders(year, rng, n=300):
    day = pd.Timestamp(f"{year}-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 360, n)), unit="D")
    return pd.DataFrame(
        {"day": day, "a": rng.normal(size=n), "b": rng.normal(size=n), "kind": rng.choice(list("xyz"), n)}
    )


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    reference, new = orders(2023, rng), orders(2024, rng, 120)
    reference.loc[70, "day"] = pd.Timestamp("2062-05-01")
    return reference, new


def judged(reference, new, **parameters):
    detector = AnomalyDetector(novelty=True, fast=True, random_state=0, **parameters)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return detector.fit(reference).anomalies(new), " ".join(str(one.message) for one in told)


def test_a_mistyped_year_does_not_hide_that_dates_decide(tables):
    found, warned = judged(*tables)
    assert found.certain.mean() > 0.5
    warning, first, second = found.to_dict()["summary"][:3]
    assert warning == "Column 'day': nearly all times are later than those of the fit."
    assert first.startswith(
        f"{found.certain.sum()} of 120 new rows are certain: the table differs from the reference as a whole"
    )
    assert second.startswith("Column 'day' alone decides")
    assert found.to_dict()["decided_by"] == "day"
    assert "'day': nearly all times are later than those of the fit" in warned


def test_without_the_dates_no_sentence_about_the_table(tables):
    found, warned = judged(*(table.drop(columns="day") for table in tables))
    assert found.certain.mean() < 0.1
    assert found.decided_by is None
    assert "are flagged" in found.to_dict()["summary"][0]
    assert "times" not in warned


def test_a_counter_that_goes_on_is_named_in_arrays_too():
    rng = np.random.default_rng(1)
    reference = np.column_stack([np.arange(200.0), rng.normal(size=(200, 2))])
    new = np.column_stack([5000.0 + np.arange(80), rng.normal(size=(80, 2))])
    found, _ = judged(reference, new)
    assert found.decided_by.name == found.names[0]
    assert "as a whole" in found.text()


def test_a_table_that_differs_in_many_columns_has_no_deciding_one():
    rng = np.random.default_rng(2)
    found, _ = judged(
        rng.normal(size=(200, 6)),
        rng.normal(size=(80, 6)) + 30.0 * rng.permuted(np.tile([1, 1, 1, 0, 0, 0], (80, 1)), axis=1),
    )
    assert found.decided_by is None
    assert "as a whole" in found.to_dict()["summary"][0]


@pytest.mark.parametrize("typos", [1, 4])
def test_two_samples_leave_out_dates_that_follow_each_other_but_for_typos(tables, typos):
    before, after = (table.drop(columns="kind").copy() for table in tables)
    before.loc[: typos - 1, "day"] = pd.Timestamp("2062-05-01")
    with pytest.warns(UserWarning, match="nearly all times of one table are later"):
        result = two_sample_test(before, after, n_resamples=99, random_state=0)
    assert "day" in result.set_aside
    assert result.pvalue > 0.05


def test_dates_that_overlap_by_a_tenth_are_compared():
    rng = np.random.default_rng(3)
    both = orders(2023, rng, 400).drop(columns="kind")
    before, after = both[:220], both[180:]
    assert "day" not in two_sample_test(before, after, n_resamples=99, random_state=0).set_aside


def test_ties_that_leave_fewer_rows_flagged_than_asked_for_are_said():
    rows = np.repeat([-1.0, 1.0], [13, 37])[:, None]
    found = AnomalyDetector(contamination=0.2, random_state=0).fit(rows).anomalies(rows)
    assert found.flagged.sum() == 0
    assert "which would be 10; 13 rows have one score there, so 0 of the fitted rows are flagged" in found.text()
    rows = np.random.default_rng(0).normal(size=(50, 1))
    found = AnomalyDetector(contamination=0.2, random_state=0).fit(rows).anomalies(rows)
    assert found.flagged.sum() == 10
    assert "which would be" not in found.text()
