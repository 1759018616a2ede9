"""ClassPriorEstimator on tables with words, truth values, times and missing cells."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import ClassPriorEstimator, DataWarning

pandas = pytest.importorskip("pandas")


def patients(ill, seed=0, gap=0.2):
    """Rows whose class shows in a word, in a truth value, and in how often a cell is missing."""
    rng = np.random.default_rng(seed)
    n = len(ill)
    table = pandas.DataFrame(
        {
            "colour": np.where(rng.random(n) < np.where(ill, 0.7, 0.1), "red", rng.choice(["blue", "green"], n)),
            "fever": rng.random(n) < np.where(ill, 0.8, 0.1),
            "test": np.where(rng.random(n) < np.where(ill, gap, 0.6), np.nan, rng.normal(size=n)),
            "day": pandas.Timestamp("2024-01-01") + pandas.to_timedelta(rng.integers(0, 100, n), unit="D"),
        }
    )
    return table, np.where(ill, "ill", "healthy")


LABELLED = np.arange(400) < 200


def test_shares_of_classes_that_differ_in_words_and_gaps():
    X, y = patients(LABELLED)
    for share in (0.1, 0.7):
        new, _ = patients(np.arange(1000) < 1000 * share, 1)
        for compared in (True, False):
            priors = ClassPriorEstimator(compare_missing=compared, random_state=0).fit(X, y).estimate(new)
            assert priors.priors[1] == pytest.approx(share, abs=0.06)
            assert priors.lower[1] < share < priors.upper[1]


def test_gaps_tell_classes_apart_if_they_are_compared():
    X, y = patients(LABELLED, gap=0.1)
    new, _ = patients(np.arange(500) < 100, 1, gap=0.1)
    widths = {}
    for compared in (True, False):
        priors = (
            ClassPriorEstimator(compare_missing=compared, random_state=0).fit(X[["test"]], y).estimate(new[["test"]])
        )
        widths[compared] = priors.upper[1] - priors.lower[1]
    assert widths[True] < 0.5 * widths[False]


def test_new_words_and_new_gaps():
    X, y = patients(LABELLED)
    estimator = ClassPriorEstimator(random_state=0).fit(X, y)
    new, _ = patients(np.arange(300) < 100, 1)
    strange = new.assign(colour=["purple", *new["colour"][1:]])
    with pytest.warns(DataWarning, match=r"'colour' \(1\)"):
        found = estimator.estimate(strange)
    np.testing.assert_allclose(found.priors, estimator.estimate(new).priors, atol=0.02)
    lacking = new.assign(day=new["day"].where(np.arange(300) > 3))
    with pytest.warns(DataWarning, match="missing in 'day', in which no labelled row lacks one"):
        estimator.estimate(lacking)


def test_named_categories_of_arrays():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    # Codes whose order means nothing.
    codes = np.where(y == 0, rng.choice([0, 2, 4], 400), rng.choice([1, 3, 5], 400))[:, None]
    new = np.where(np.arange(500) < 400, rng.choice([0, 2, 4], 500), rng.choice([1, 3, 5], 500))[:, None]
    priors = ClassPriorEstimator(categorical=[0], random_state=0).fit(codes, y).estimate(new)
    assert priors.priors[0] == pytest.approx(0.8, abs=0.02)
