"""Sentences on columns and pairs of columns that differ."""

import numpy as np
import pandas as pd
import pytest

from isopleth import DataWarning, two_sample_test

FAST = {"n_resamples": 99, "n_jobs": 1, "random_state": 0}


def said(first, second):
    return two_sample_test(first, second, **FAST).to_dict()["summary"]


def test_a_column_that_alone_separates_the_samples_is_said_first():
    rng = np.random.default_rng(0)
    first, second = (pd.DataFrame({"x": rng.normal(size=80), "ads": value}) for value in (np.nan, 0.0))
    second["ads"] = rng.normal(size=80)
    words = "ads alone separates the two samples (missing: 100 % -> 0 %); leave it out (--exclude) to see what else differs."
    assert said(first, second)[2] == words


def test_columns_that_moved_clearer_are_not_among_the_others():
    rng = np.random.default_rng(2)
    common = rng.normal(size=(300, 1))
    rows = common + 0.3 * rng.normal(size=(300, 4))
    rows[150:, 0] += 0.4
    rows[150:, 1] -= 0.3
    found = two_sample_test(rows[:150], rows[150:], **FAST).changes(1.0)
    without = dict(zip(found["column"], found["others_without"], strict=True))
    assert without["column 0"] == ""
    assert without["column 1"] == "column 0"


def test_groups_of_two_words_are_named_by_theirs_and_equal_medians_by_means():
    rng = np.random.default_rng(3)
    smoker = rng.choice(["no", "yes"], 400, p=[0.7, 0.3])
    visits = rng.binomial(2, np.where((smoker == "yes") & (np.arange(400) >= 200), 0.62, 0.4))
    frame = pd.DataFrame({"smoker": smoker, "visits": visits})
    words = [sentence for sentence in said(frame[:200], frame[200:]) if "in rows with" in sentence]
    assert len(words) == 1
    assert words[0].startswith("visits is higher in rows with smoker yes (mean ")


def test_times_that_follow_times_of_another_month_are_no_difference():
    rng = np.random.default_rng(0)

    def month(start):
        ordered = pd.Timestamp(start) + pd.to_timedelta(rng.uniform(0.0, 31.0, 200), unit="D")
        days = pd.to_timedelta(rng.uniform(1.0, 6.0, 200), unit="D")
        birth = pd.Timestamp("1980-01-01") + pd.to_timedelta(rng.uniform(0.0, 9000.0, 200), unit="D")
        return pd.DataFrame(
            {"ordered": ordered, "delivered": ordered + days, "birth": birth, "x": rng.normal(size=200)}
        )

    with pytest.warns(DataWarning, match="'ordered' .*, 'delivered' .*; to compare the time from one to the other"):
        found = two_sample_test(month("2025-03-01"), month("2025-04-01"), n_resamples=99, random_state=0)
    assert set(found.set_aside) == {"ordered", "delivered"}
    assert found.pvalue > 0.05
    # Without such a column beside it, times that are mostly later are compared.
    first, second = (month(start)[["delivered", "x"]] for start in ("2025-03-01", "2025-04-01"))
    assert not two_sample_test(first, second, n_resamples=19, random_state=0).set_aside
