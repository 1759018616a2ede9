"""Large samples: the test uses rows that are drawn by what they hold, and says so."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from isopleth import two_sample_test
from isopleth.core.arrays import Backend
from isopleth.tables.checks import CheckedRows
from isopleth.tasks.two_sample import permutation, testing
from isopleth.tasks.two_sample.drawn_rows import DrawnRows


@pytest.fixture
def few(monkeypatch):
    """Let a test use at most 300 rows."""
    monkeypatch.setattr(testing, "MOST_ROWS", 300)


def frames(n=500, m=700, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)

    def made(rows, moved):
        word = rng.choice(["red", "green", "blue"], rows)
        x = rng.normal(size=rows)
        x[rng.random(rows) < 0.05] = np.nan
        return pd.DataFrame({"x": x, "y": rng.normal(size=rows) + moved, "word": word})

    return made(n, 0.0), made(m, shift)


def test_the_order_of_rows_and_columns_has_no_effect_on_which_rows_are_used(few):
    one, two = frames(shift=0.4)
    found = two_sample_test(one, two, n_resamples=99, random_state=0)
    mixed = one.sample(frac=1.0, random_state=1)[["word", "y", "x"]], two.sample(frac=1.0, random_state=2)
    other = two_sample_test(*mixed, n_resamples=99, random_state=0)
    assert other.statistic == pytest.approx(found.statistic, abs=1e-9)
    assert other.pvalue == found.pvalue
    assert found.problem.sizes == (150, 150)


@pytest.mark.parametrize("compared", [True, False])
def test_the_order_of_rows_has_no_effect_on_groups_of_rows_that_are_permuted(monkeypatch, compared):
    monkeypatch.setattr(permutation, "_GROUPS", 100)
    monkeypatch.setattr(permutation, "_LEAST_GROUPS", 20)
    one, two = frames(shift=0.4)
    how = {"n_resamples": 99, "random_state": 0, "compare_missing": compared}
    found = two_sample_test(one, two, **how)
    other = two_sample_test(one.sample(frac=1.0, random_state=1), two.sample(frac=1.0, random_state=2), **how)
    assert found.group > 1
    assert other.statistic == pytest.approx(found.statistic, abs=1e-9)


def test_sentences_say_what_is_used_and_figures_of_columns_are_of_all_rows(few):
    one, two = frames(shift=1.0)
    found = two_sample_test(one, two, n_resamples=99, random_state=0)
    assert "The test uses 150 of 500 and 150 of 700 rows, drawn at random" in found.text()
    changes = found.changes(1.0)
    assert changes["median_before"][changes["column"].index("y")] == np.median(one["y"])
    assert found.sizes == (500, 700)
    assert [len(found.witness.x), len(found.witness.y)] == [500, 700]
    rows = found.telling_rows()
    tables = {"X": one, "Y": two}
    for sample, row, value in zip(rows["sample"], rows["row"], rows["y"], strict=True):
        assert tables[sample]["y"].iloc[row] == value
        fitted = found.witness.x if sample == "X" else -found.witness.y
        assert fitted[row] == pytest.approx(rows["difference"][rows["row"].index(row)])


def test_rows_in_both_samples_are_counted_over_all_rows(few):
    one, two = frames()
    found = two_sample_test(one, pd.concat([two, one.iloc[:400]]), n_resamples=19, random_state=0)
    assert found.shared_rows == (400, 400)
    assert "400 of 500 rows of the first sample are also in the second" in found.text()


@pytest.mark.filterwarnings("ignore:n_resamples")
def test_pvalues_stay_exact_where_rows_repeat(few):
    rng = np.random.default_rng(0)
    values = [
        two_sample_test(*rng.integers(0, 6, size=(2, 400, 1)), n_resamples=9, centers=10, random_state=seed).pvalue
        for seed in range(60)
    ]
    assert np.mean(np.array(values) <= 0.1) <= 0.1 + 3.0 * np.sqrt(0.09 / 60)
    assert kstest(values, "uniform", alternative="greater").pvalue > 0.001


def checked(rows):
    return CheckedRows(rows, np.ones(len(rows)), Backend.of(rows))


def test_of_groups_as_many_rows_are_drawn_of_each():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 20), np.repeat(np.arange(20, 40), np.arange(1, 21))
    x, y = (checked(rng.normal(size=(len(each), 2))) for each in groups)
    drawn = DrawnRows.of(x, y, groups, 0, 300)
    first, second = (np.unique(each, return_counts=True)[1] for each in drawn.groups)
    longest = first[0]
    assert (first == longest).all()
    assert (second == np.minimum(np.arange(1, 21), longest)).all()
    assert 250 < first.sum() + second.sum() <= 300


@pytest.mark.parametrize(("n", "m", "used"), [(400, 20, (280, 20)), (20, 400, (20, 280)), (200, 200, (150, 150))])
def test_all_rows_of_a_small_sample_are_used(n, m, used):
    rng = np.random.default_rng(0)
    drawn = DrawnRows.of(checked(rng.normal(size=(n, 2))), checked(rng.normal(size=(m, 2))), None, 0, 300)
    assert (len(drawn.x.rows), len(drawn.y.rows)) == used


def test_samples_that_change_places_have_the_same_rows():
    rng = np.random.default_rng(0)
    x, y = (checked(rng.normal(size=(400, 2))) for _ in range(2))
    one, two = DrawnRows.of(x, y, None, 0, 300), DrawnRows.of(y, x, None, 0, 300)
    np.testing.assert_array_equal(one.x.rows, two.y.rows)
    np.testing.assert_array_equal(one.y.rows, two.x.rows)
