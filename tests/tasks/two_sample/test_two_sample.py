"""The two-sample test: exactness, invariance, and the ways in which samples are odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binomtest, ks_2samp, norm

from isopleth import DataWarning, InputError, two_sample_test
from isopleth.operators.features import GaussianFeatures
from isopleth.tables.kinds import Column
from isopleth.tasks.classifier import Fits, stratified_folds
from isopleth.tasks.column_changes import ColumnSummary, share_that_differs
from isopleth.tasks.two_sample.given_others import contrasts
from isopleth.tasks.two_sample.permutation import RobustScaling, Units, column_contrasts
from isopleth.tasks.two_sample.separation import held_out_answers

FEW = {"n_resamples": 99, "random_state": 0, "n_jobs": 1}


def normal(n, d, seed=0, **law):
    return np.random.default_rng(seed).normal(size=(n, d), **law)


@pytest.fixture(scope="module")
def result():
    Y = normal(60, 3, 1)
    Y[:, 2] += 1.5
    return two_sample_test(normal(80, 3), Y, **FEW)


def test_a_clear_difference_has_the_smallest_pvalue_and_its_column(result):
    assert result.pvalue == 0.01
    assert result.witness.columns() == ["column 2"]
    assert repr(result) == f"TwoSampleResult(statistic={result.statistic:.4g}, pvalue=0.01)"
    assert result.sizes == (80, 60)
    assert result.n_resamples == 99


def test_the_result_is_frozen(result):
    with pytest.raises(AttributeError):
        result.pvalue = 0.5


def test_level_over_runs():
    """Whole numbers alpha (1 + B) give the level itself; a share this far off has a chance of 1e-3."""
    draws = np.random.default_rng(3)
    found = [
        two_sample_test(*draws.normal(size=(2, 8, 2)), n_resamples=19, centers=10, n_jobs=1, random_state=run).pvalue
        for run in range(100)
    ]
    assert binomtest(int(np.sum(np.array(found) <= 0.1 + 1e-12)), 100, 0.1).pvalue > 1e-3
    assert abs(np.mean(found) - 0.525) < 4 * 0.29 / 100**0.5


def test_level_of_ties_and_of_uneven_samples():
    draws = np.random.default_rng(4)
    found = [
        two_sample_test(
            draws.integers(0, 2, (4, 2)), draws.integers(0, 2, (20, 2)), n_resamples=19, n_jobs=1, random_state=run
        ).pvalue
        for run in range(100)
    ]
    assert binomtest(int(np.sum(np.array(found) <= 0.1 + 1e-12)), 100, 0.1, "greater").pvalue > 1e-3


def test_the_order_of_rows_and_of_samples_makes_no_difference(result):
    X, Y = result.problem.given
    again = two_sample_test(Y[::-1], np.random.default_rng(5).permutation(X), **FEW)
    assert again.statistic == pytest.approx(result.statistic, rel=1e-9)
    assert again.pvalue == result.pvalue
    np.testing.assert_allclose(again.witness.p_values, result.witness.p_values)


def test_units_of_columns_make_no_difference(result):
    X, Y = result.problem.given
    scale, shift = np.array([1e-3, 1e4, 7.0]), np.array([100.0, -2e5, 3.0])
    again = two_sample_test(X * scale + shift, Y * scale + shift, **FEW)
    assert again.statistic == pytest.approx(result.statistic, rel=1e-6)
    np.testing.assert_allclose(again.length_scale, result.length_scale * scale, rtol=1e-9)


def test_the_witness_is_the_difference_that_lsdd_fits(result):
    """The same system, solved densely over all rows."""
    problem = result.problem
    basis, alpha = problem.kernels[result.best]
    assert isinstance(basis.functions, GaussianFeatures)
    scale = basis.functions.length_scale
    rows = [problem.enter(rows) / scale for rows in problem.given]
    centers = basis.functions.centers / scale

    def kernel(z, half):
        return np.exp(-half * ((z[:, None] - centers[None]) ** 2).sum(axis=-1))

    h = kernel(rows[0], 0.5).mean(axis=0) - kernel(rows[1], 0.5).mean(axis=0)
    theta = np.linalg.solve(kernel(centers, 0.25) + alpha * np.eye(len(centers)), h)
    np.testing.assert_allclose(result.witness.x, kernel(rows[0], 0.5) @ theta, atol=1e-4)
    np.testing.assert_allclose(result.witness.y, kernel(rows[1], 0.5) @ theta, atol=1e-4)
    assert result.witness.x.mean() > result.witness.y.mean()


def test_the_table_of_columns_begins_with_the_clearest(result):
    table = result.table()
    assert table["column"][0] == "column 2"
    assert set(table) >= {"share", "median_before", "median_after", "pvalue", "statistic"}
    assert (np.diff(table["pvalue"]) >= 0).all()
    with pytest.raises(InputError, match="significance_level"):
        result.witness.columns(2.0)


def test_the_interval_is_that_of_lsdd_and_holds_the_distance():
    X, Y = normal(150, 1), normal(150, 1, 2) + 1.0
    found = two_sample_test(X, Y, **FEW)
    low, high = found.confidence_interval()
    assert 0.0 < low < (1.0 - np.exp(-0.25)) / np.pi**0.5 < high
    narrow = found.confidence_interval(confidence_level=0.5)
    assert low < narrow.low < narrow.high < high
    with pytest.raises(InputError, match="confidence_level"):
        found.confidence_interval(95)


@pytest.mark.parametrize(("n", "m", "least"), [(2, 2, 2 / 6), (3, 3, 2 / 20), (2, 3, 1 / 10), (3, 4, 1 / 35)])
def test_samples_too_small_for_any_evidence_give_a_warning(n, m, least, recwarn):
    """Even samples that lie far apart have no p-value below the share of the assignments that are as extreme."""
    found = two_sample_test(np.arange(n)[:, None] / 9.0, 50.0 + np.arange(m)[:, None] / 7.0, random_state=0, n_jobs=1)
    assert found.pvalue == pytest.approx(least, abs=4.0 * (least / 1000) ** 0.5)
    messages = [str(w.message) for w in recwarn if issubclass(w.category, DataWarning)]
    expected = (
        f"no p-value can be much below {least:.2g} and no difference can be shown at level 0.05; more rows are needed"
    )
    assert [expected in message for message in messages] == [True] * (least > 0.05)


def test_too_few_permutations_give_a_warning():
    with pytest.warns(
        DataWarning, match=r"n_resamples = 18 allows no p-value below 0\.053; at level 0\.05 at least 19"
    ):
        two_sample_test(normal(9, 1), normal(9, 1, 1), n_resamples=18, random_state=0, n_jobs=1)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 40), (2, 3)])
def test_the_smallest_samples_can_be_tested(n, m):
    found = two_sample_test(normal(n, 2), normal(m, 2, 1), **FEW)
    assert 0.0 < found.pvalue <= 1.0
    assert np.isfinite(found.witness.x).all()
    with pytest.raises(InputError, match="three rows"):
        found.confidence_interval()


def test_identical_samples_have_pvalue_1():
    X = normal(50, 2)
    assert two_sample_test(X, X, **FEW).pvalue == 1.0
    assert two_sample_test([[1.0]], [[1.0], [1.0]], **FEW).pvalue == 1.0
    assert two_sample_test([[1.0]], [[1.0]], **FEW).witness.columns() == []


def test_discrete_rows():
    draws = np.random.default_rng(0)
    found = two_sample_test(draws.binomial(3, 0.3, (200, 2)), draws.binomial(3, 0.6, (150, 2)), **FEW)
    assert found.pvalue == 0.01
    assert found.problem.labels.members.shape[1] <= 16


def test_hundreds_of_columns():
    Y = normal(30, 300, 1)
    Y[:, 0] += 3.0
    found = two_sample_test(normal(30, 300), Y, **FEW)
    assert found.witness.columns() == ["column 0"]


def test_samples_a_hundredfold_apart():
    found = two_sample_test(normal(30, 2), normal(3000, 2, 1) + 1.0, **FEW)
    assert found.pvalue == 0.01
    assert found.group == 1


def test_groups_of_rows_are_permuted_where_there_are_many():
    found = two_sample_test(normal(4000, 1), normal(4000, 1, 1), centers=20, **FEW)
    assert found.group == 2
    assert found.pvalue > 0.05
    assert two_sample_test(normal(4000, 1), normal(4000, 1, 1) + 0.15, centers=20, **FEW).pvalue == 0.01


@pytest.mark.parametrize(("n", "m"), [(10, 10), (3000, 3001), (100_000, 100_003), (450, 10**6), (3, 10**6)])
def test_units_are_of_one_sample_each_and_of_equal_size(n, m):
    units = Units.of(n, m, np.random.default_rng(0))
    split = units.sizes[0] * units.group
    assert len(units.rows) == sum(units.sizes) * units.group == len(np.unique(units.rows))
    assert (units.rows[:split] < n).all()
    assert (units.rows[split:] >= n).all()
    assert sum(units.sizes) <= 250_000
    assert units.sizes[0] >= min(n, 200)
    assert n - split < max(1, n / 199)


def test_constant_columns_have_no_effect():
    X, Y = np.c_[normal(40, 1), np.ones(40)], np.c_[normal(40, 1, 1) + 2.0, np.ones(40)]
    found = two_sample_test(X, Y, **FEW)
    assert found.pvalue == 0.01
    assert np.isnan(found.length_scale).tolist() == [False, True]
    assert found.witness.p_values.tolist() == [0.01, 1.0]


def test_a_single_varying_column_is_judged_by_the_joint_test():
    found = two_sample_test(normal(40, 1), normal(30, 1, 1) + 0.4, **FEW)
    assert found.witness.p_values[0] == found.pvalue


def test_names_of_columns_come_along():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(normal(40, 2), columns=["age", "income"])
    Y = X + [0.0, 9.0]
    assert two_sample_test(X, Y, **FEW).witness.columns() == ["income"]
    with pytest.raises(
        InputError, match="Y lacks 'income' and X lacks 'height'; give the columns the same names, or leave"
    ):
        two_sample_test(X, Y.rename(columns={"income": "height"}), **FEW)
    with pytest.raises(InputError, match="X lacks 'Income'; perhaps 'income' was renamed to 'Income'; give"):
        two_sample_test(X, Y.rename(columns={"income": "Income"}), **FEW)
    assert repr(two_sample_test(X, Y[["income", "age"]], **FEW)) == repr(two_sample_test(X, Y, **FEW))
    with pytest.raises(InputError, match="X lacks '2'"):
        two_sample_test(X.set_axis([0, 1], axis=1), Y.set_axis([0, 2], axis=1), **FEW)
    Y.loc[3, "income"] = np.inf
    with pytest.raises(InputError, match=r"Y contains inf in 'income' \(1 row\)"):
        two_sample_test(X, Y, **FEW)


def test_one_extreme_value_hides_nothing(result):
    X, Y = (rows.copy() for rows in result.problem.given)
    X[0, 2] = 1e12
    assert two_sample_test(X, Y, **FEW).statistic > 0.8 * result.statistic


@pytest.mark.parametrize("code", [-999.0, -999999.0, 1e12])
def test_codes_for_what_is_missing_hide_nothing(code):
    """A tenth of the rows or more has such a value, in both samples alike."""
    draws = np.random.default_rng(6)
    X, Y = draws.normal(size=(2, 150, 5))
    Y[:, 0] += 1.0
    X[draws.random(X.shape) < 0.05], Y[draws.random(Y.shape) < 0.05] = code, code
    found = two_sample_test(X, Y, **FEW)
    assert found.pvalue == 0.01
    assert found.witness.columns() == ["column 0"]


def test_far_values_that_differ_are_found():
    draws = np.random.default_rng(7)
    X, Y = draws.normal(size=(2, 150, 1))
    X[:30], Y[:30] = 1e6, 1e9
    assert two_sample_test(X, Y, **FEW).pvalue == 0.01


def test_extreme_values_among_zeros_hide_nothing():
    draws = np.random.default_rng(8)
    X, Y = np.where(draws.random((2, 80, 3)) < 0.7, 0.0, draws.normal(size=(2, 80, 3)) + [[[0.0]], [[2.0]]])
    X[0], Y[0] = 1e140, -1e140
    assert two_sample_test(X, Y, **FEW).pvalue == 0.01


def test_a_column_is_judged_as_it_is_alone():
    """Nothing of other columns enters, not even which rows are equal, but the draw of the permutations."""
    draws = np.random.default_rng(9)
    X, Y = draws.standard_t(1, (40, 1)).round(), draws.standard_t(1, (40, 1)).round()
    many = FEW | {"n_resamples": 1999}
    scores = [
        two_sample_test(np.c_[X, other[:40]], np.c_[Y, other[40:]], **many).problem.column_scores()[0, 0]
        for other in (np.repeat([[0.0], [1.0]], 40, axis=0), draws.normal(size=(80, 1)))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.15)


@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning")
def test_names_of_one_sample_only_are_no_cause_for_a_warning():
    pandas = pytest.importorskip("pandas")
    X, Y = normal(20, 2), pandas.DataFrame(normal(20, 2, 1), columns=["a", "b"])
    assert two_sample_test(X, Y, **FEW).pvalue == two_sample_test(Y, X, **FEW).pvalue


def test_an_interval_of_repeated_rows_comes_with_a_warning():
    draws = np.random.default_rng(0)
    found = two_sample_test(draws.binomial(1, 0.3, (50, 1)), draws.binomial(1, 0.6, (50, 1)), **FEW)
    with pytest.warns(DataWarning, match="no densities"):
        found.confidence_interval()


def test_many_permutations_are_refused_where_memory_is_short():
    with pytest.raises(InputError, match=r"n_resamples = 10000000: .* need .* MiB"):
        two_sample_test(normal(50, 1), normal(50, 1, 1), n_resamples=10**7)


def test_extreme_numbers():
    X = np.random.default_rng(0).standard_cauchy((100, 2))
    X[50:] += 2.0
    X *= 1e20
    X[0] = 1e140, 1.7e308
    assert two_sample_test(X[:50], X[50:], **FEW).pvalue == 0.01
    with pytest.raises(InputError, match="column 1 is of a size"):
        two_sample_test(normal(9, 2) * [1.0, 1e-200], normal(9, 2, 1) * [1.0, 1e-200], **FEW)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_resamples": 0}, "n_resamples = 0"),
        ({"n_resamples": 9.5}, "n_resamples"),
        ({"centers": True}, "centers"),
        ({"memory_limit": -1}, "memory_limit"),
        ({"memory_limit": 1000}, "memory_limit"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters(changed, message):
    with pytest.raises(InputError, match=message):
        two_sample_test(normal(9, 2), normal(9, 2, 1), **FEW | changed)


def test_wrong_samples():
    with pytest.raises(ValueError, match="features"):
        two_sample_test(normal(9, 2), normal(9, 3), **FEW)
    with pytest.raises(InputError, match="X contains inf"):
        two_sample_test([[np.inf]], [[1.0]], **FEW)


def test_the_interval_uses_some_rows_of_many(monkeypatch):
    monkeypatch.setattr("isopleth.tasks.two_sample.result._ROWS_OF_INTERVAL", 30)
    assert len(two_sample_test(normal(50, 1), normal(40, 1, 1), **FEW)._difference.centers_) == 60


def test_scales_and_centres_do_not_depend_on_labels(result):
    X, Y = result.problem.given
    both = np.concatenate([X, Y])[np.random.default_rng(1).permutation(140)]
    other = two_sample_test(both[:80], both[80:], **FEW).problem
    for one, same in zip(result.problem.bases, other.bases, strict=True):
        np.testing.assert_array_equal(one.functions.centers, same.functions.centers)
        assert one.functions.length_scale == same.functions.length_scale


def test_one_column_of_a_hundred_is_found_and_named():
    X, Y = normal(100, 100), normal(100, 100, 1)
    Y[:, 7] += 1.0
    found = two_sample_test(X, Y, **FEW | {"n_resamples": 499})
    assert found.pvalue <= 0.02
    assert found.witness.columns() == ["column 7"]
    assert found.kernel_scores["mean and spread of a column"] == pytest.approx(found.statistic, abs=1e-3)
    assert found.statistic == max(found.kernel_scores.values())


def test_pairs_whose_relation_differs_are_named_unless_a_column_differs_by_itself():
    X, Y = normal(150, 4), normal(150, 4, 1)
    Y[:, 3] = 0.7 * Y[:, 1] + 0.51**0.5 * Y[:, 3]
    found = two_sample_test(X, Y, **FEW)
    assert found.pvalue <= 0.05
    assert (found.witness.columns(), found.witness.relations()) == ([], [("column 1", "column 3")])
    said = "The relation of column 1 and column 3 differs: rank correlation "
    assert said in " ".join(found.to_dict()["summary"])
    moved = two_sample_test(X, Y + [0.0, 2.0, 0.0, 0.0], **FEW)
    assert (moved.witness.columns(), moved.witness.relations()) == (["column 1"], [])


def test_asymmetry_alone_is_found():
    draws = np.random.default_rng(3)
    assert two_sample_test(normal(400, 1), (draws.gamma(3.0, 1.0, (400, 1)) - 3.0) / 3.0**0.5, **FEW).pvalue <= 0.05


def test_columns_of_which_most_cells_are_equal_count_by_the_size_of_the_others():
    rows = np.where(np.arange(40) < 2, 3.0, 0.0)[:, None]
    assert RobustScaling.of(rows, np.zeros(1, dtype=bool)).scale == pytest.approx(rows.std() / 0.1**0.5)
    half = np.where(np.arange(40) < 20, 3.0, 0.0)[:, None]
    assert RobustScaling.of(half, np.zeros(1, dtype=bool)).scale == pytest.approx(half.std())


def test_the_accuracy_of_telling_apart_holds_the_best_one_possible():
    found = two_sample_test(normal(400, 2), normal(500, 2, 1) + [1.0, 0.0], **FEW).separation()
    best = norm.cdf(0.5)
    assert found.low < best < found.high
    assert found.low < found.accuracy < found.high
    assert found.share == pytest.approx(2.0 * found.accuracy - 1.0)
    assert 0.0 < found.share_low < 2.0 * best - 1.0 < found.share_high
    assert "guessing has 50 %), so about " in str(found)
    assert str(replace(found, low=0.4)).endswith("so single rows do not tell the samples apart")


def test_equal_samples_are_not_separated():
    found = two_sample_test(normal(150, 3), normal(100, 3, 1), **FEW)
    assert found.separation().low < 0.5 < found.separation().high
    assert found.separation().share_low == 0.0
    assert found.separation(0.5).high < found.separation().high
    assert two_sample_test(np.ones((6, 1)), np.ones((7, 1)), **FEW).separation().accuracy == 0.5
    with pytest.raises(InputError, match="Y has 4"):
        two_sample_test(normal(9, 1), normal(4, 1, 1), **FEW).separation()
    with pytest.raises(InputError, match="confidence_level"):
        found.separation(95)


def test_held_out_rows_are_classified_by_kernel_ridge_regression_without_their_fold():
    """In the dual form, with a ridge of 0.2 times half the standard error of a difference of means of unit variance."""
    problem = two_sample_test(normal(100, 2), normal(100, 2, 1) + [0.3, 0.0], **FEW).problem
    right, labels, _ = held_out_answers(problem)
    z = problem.enter(np.vstack([problem.complete[k][problem.drawn(k, 100, 4)] for k in problem.samples.order]))
    folds, gram = stratified_folds(labels, problem.seed), np.exp(-cdist(z, z, "cityblock") / 4.0)
    alpha, expected = 0.2 * np.sqrt(2.0 / 100.0) / 2.0, np.empty(200)
    for fold in range(10):
        out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        inner, centre = gram[np.ix_(rest, rest)], np.eye(len(rest)) - 1.0 / len(rest)
        centred = centre @ inner @ centre
        system = centred + alpha * np.trace(centred) * np.eye(len(rest))
        dual = np.linalg.solve(system, 2.0 * (labels[rest] == 1) - 1.0)
        expected[out] = (gram[np.ix_(out, rest)] - inner.mean(axis=0)) @ centre @ dual
    np.testing.assert_array_equal(right, (expected > 0.0) == (labels == 1))


def test_the_interval_of_separated_samples_adds_a_right_and_a_wrong_row_to_each():
    found = two_sample_test(normal(12, 1), normal(30, 1, 1) + 100.0, **FEW).separation()
    shares, counts = np.array([13.0 / 14.0, 31.0 / 32.0]), np.array([12.0, 30.0])
    middle = shares.mean()
    error = 0.5 * np.sqrt((1.0 + 4.0 * middle * (1.0 - middle)) * np.sum(shares * (1.0 - shares) / counts))
    assert (found.accuracy, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(middle - norm.ppf(0.975) * error, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "shift"), [(100, 100, 0.0), (100, 100, 1.0), (40, 300, 2.0)])
def test_the_interval_of_the_accuracy_covers_that_of_its_classifier(n, m, shift, monkeypatch):
    """Against the accuracy of the ten fits on 4,000 fresh rows of each sample."""
    fitted = []
    original = Fits.of.__func__
    monkeypatch.setattr(Fits, "of", classmethod(lambda cls, *rest: fitted.append(original(cls, *rest)) or fitted[-1]))
    held = []
    for run in range(200):
        draws = np.random.default_rng([run, n])
        X, Y, new_x, new_y = (draws.normal(size=(size, 2)) for size in (n, m, 4000, 4000))
        Y[:, 0] += shift
        new_y[:, 0] += shift
        found = two_sample_test(X, Y, n_resamples=9, centers=20, n_jobs=1, random_state=run)
        answer = found.separation()
        of_x, of_y = (fitted[-1](found.problem.enter(rows)) for rows in (new_x, new_y))
        x, y = np.argsort(found.problem.samples.order)  # the classifier's own order of the samples
        true = 0.5 * ((of_x[..., x] > of_x[..., y]).mean() + (of_y[..., y] > of_y[..., x]).mean())
        held.append(answer.low <= true <= answer.high)
    assert np.mean(held) >= 0.91


def test_separation_does_not_depend_on_the_order_of_rows_samples_and_columns():
    X, Y = normal(60, 3), normal(90, 3, 1) + [0.7, 0.0, 0.0]
    rng = np.random.default_rng(0)
    found = two_sample_test(X, Y, **FEW)
    for x, y in ((rng.permutation(X), rng.permutation(Y)), (Y, X), (X[:, [2, 0, 1]], Y[:, [2, 0, 1]])):
        again = two_sample_test(x, y, **FEW)
        assert again.pvalue == found.pvalue
        assert again.separation().accuracy == pytest.approx(found.separation().accuracy, abs=1e-12)
    groups = (np.arange(60) // 3, 20 + np.arange(90) // 3)
    order = rng.permutation(60)
    one = two_sample_test(X, Y, groups=groups, **FEW).separation()
    other = two_sample_test(X[order], Y, groups=(groups[0][order], groups[1]), **FEW).separation()
    assert one.accuracy == pytest.approx(other.accuracy, abs=1e-12)


def test_shares_of_equal_columns_are_near_zero():
    """The sum of absolute differences of 200 words is 0.5 in samples of 200 rows of the same law."""
    rng, shares = np.random.default_rng(0), []
    columns = (Column("word", "categorical", tuple(map(str, range(200)))), Column("number", "numeric"))

    def summaries(rows):
        return [ColumnSummary.of(column, cells) for column, cells in zip(columns, rows.T, strict=True)]

    for _ in range(10):
        tables = [np.column_stack([rng.integers(0, 200, 200), rng.normal(size=200)]) for _ in range(2)]
        before, after = map(summaries, tables)
        shares.append([share_that_differs(one, two, compared=True) for one, two in zip(before, after, strict=True)])
    means = np.mean(shares, axis=0)
    assert (means[:, 0] < 0.04).all()
    assert (means[:, 1] < 0.01).all()
    # Two tables without a common word, and numbers that lie apart.
    tables = [np.column_stack([np.arange(200) % 4 + 4 * k, rng.normal(size=200) + 9.0 * k]) for k in range(2)]
    before, after = map(summaries, tables)
    for one, two in zip(before, after, strict=True):
        share = share_that_differs(one, two, compared=True)
        assert share.low > 0.78
        assert share[::2] == pytest.approx((1.0, 1.0), abs=0.01)
    blank = ColumnSummary.of(columns[1], np.full(200, np.nan))
    assert share_that_differs(blank, blank, compared=True).value == 0.0


def test_changes_of_columns_begin_with_the_surest():
    X = normal(200, 3)
    Y = normal(300, 3, 1) * [1.0, 4.0, 1.0] + [0.0, 0.0, 3.0]
    changes = two_sample_test(X, Y, **FEW).changes()
    assert changes["column"] == ["column 2", "column 1"]
    share = [ks_2samp(X[:, j], Y[:, j]).statistic for j in (2, 1)]
    np.testing.assert_allclose(changes["share"], np.sqrt(np.square(share) - np.pi**2 / 12.0 * (1 / 200 + 1 / 300)))
    np.testing.assert_allclose(changes["median_before"], np.median(X[:, [2, 1]], axis=0))
    np.testing.assert_allclose(changes["spread_after"], np.subtract(*np.percentile(Y[:, [2, 1]], [75, 25], axis=0)))
    everything = two_sample_test(X, Y, **FEW).changes(1)
    assert sorted(everything["column"]) == ["column 0", "column 1", "column 2"]
    with pytest.raises(InputError, match="significance_level = 2"):
        two_sample_test(X, Y, **FEW).changes(2)


def test_intervals_of_shares_hold_the_true_share():
    """For numbers and for words, frequent and rare, that are equal or not."""
    column = Column("word", "categorical", tuple(map(str, range(400))))
    number, rng = Column("number", "numeric"), np.random.default_rng(0)
    held = np.zeros(4)
    for _ in range(60):
        tables = [
            (number, rng.normal(size=120), rng.normal(0.5, size=80), 2.0 * norm.cdf(0.25) - 1.0),
            (number, rng.normal(size=120), rng.normal(size=80), 0.0),
            (column, rng.integers(0, 400, 300), rng.integers(0, 400, 300), 0.0),
            (column, rng.integers(0, 4, 120), np.minimum(rng.integers(0, 4, 90), 2), 0.25),
        ]
        for k, (kind, x, y, share) in enumerate(tables):
            one, two = (ColumnSummary.of(kind, each.astype(float)) for each in (x, y))
            found = share_that_differs(one, two, compared=True)
            assert found.low <= found.value <= found.high
            held[k] += found.low <= share <= found.high
    assert (held >= 54).all()


def test_a_difference_finer_than_any_kernel_is_found_in_its_column():
    """Settings that are all higher by a ten-thousandth of their steps differ by themselves."""
    rng = np.random.default_rng(0)
    X, Y = (np.column_stack([rng.integers(1, 6, 300) / 2.0, rng.normal(size=300)]) for _ in range(2))
    Y[:, 0] += 1e-4
    assert two_sample_test(X, Y, **FEW).witness.columns() == ["column 0"]
    assert two_sample_test(X[:, :1], Y[:, :1], **FEW).pvalue == 0.01


def test_a_column_that_moves_given_the_others_is_found_and_named():
    """By a quarter of its spread, which is what the other five columns leave open."""
    covariance = np.full((6, 6), 0.95) + 0.05 * np.eye(6)
    X, Y = (normal(100, 6, seed) @ np.linalg.cholesky(covariance).T for seed in (0, 1))
    Y[:, 2] += 0.25
    result = two_sample_test(X, Y, **FEW)
    assert result.pvalue == 0.01
    assert result.witness.columns() == []
    changes = result.changes()
    assert changes["column"] == ["column 2"]
    assert 0.5 < changes["shift_given_others"][0] < 1.5
    words = "column 2 is not shown to differ by itself, but among rows alike in the other columns it is higher by"
    assert words in " ".join(result.to_dict()["summary"]).lower()
    turned = two_sample_test(Y[:, ::-1], X[:, ::-1], **FEW)
    assert turned.pvalue == result.pvalue
    assert turned.changes()["given_others"][0].startswith("lower")


def wells(seed, rare):
    """Return two tables of columns that go together, of which mercury alone moved; `rare` makes the last one of rare rows."""
    rng = np.random.default_rng([seed, 7])
    depth, e = rng.normal(size=160), rng.normal(size=(160, 4))
    rows = np.column_stack([depth, 0.3 * e[:, 0] - 0.95 * depth, 0.6 * depth + 0.8 * e[:, 1], e[:, 2], e[:, 3]])
    rows[80:, 2] += 1.5
    rows[:, 4] = rare(rows[:, 4], rng.random(160) < 0.05)
    return rows[:80], rows[80:]


@pytest.mark.parametrize("rare", [lambda last, few: np.where(few, np.nan, last), lambda last, few: few * 1.0])
def test_a_shift_of_another_column_is_no_change_of_rare_gaps_or_values(rare):
    """The square of the residual of one of two values holds what the other columns are, and is no spread of its own."""
    small = np.zeros(2)
    for seed in range(6):
        result = two_sample_test(*wells(seed, rare), n_resamples=39, centers=5, random_state=0, n_jobs=1)
        problem = result.problem
        found = problem.residuals(problem.unit_rows)
        both = contrasts(problem, found), column_contrasts(found, problem.units, problem.labels)
        small += [(each[:, -1] >= each[0, -1]).mean() <= 0.05 for each in both]
        assert problem.of_two_values.tolist() == [False] * (found.shape[1] - 1) + [True]
    assert small[0] <= 1
    assert small[1] >= 4


def test_gaps_that_change_given_the_others_are_told_in_words():
    rng = np.random.default_rng(0)
    X, Y = (rng.normal(size=(300, 2)) for _ in range(2))
    for rows, from_where in ((X, 0.0), (Y, 0.4)):
        rows[rows[:, 0] > from_where, 1] = np.nan
    result = two_sample_test(X, Y, **FEW)
    changes = result.changes()
    assert changes["given_others"][changes["column"].index("column 1")] == "missing less often"


def contradictions(result):
    """Return what does not go together in the sentences, the changes and the titles of an answer."""
    words, shown = result.to_dict()["summary"], result.pvalue <= 0.05
    text, titles = " ".join(words), " ".join(chart.title for chart in result.content().charts)
    alone, given = (
        result.witness.columns(),
        [n for n, t in zip(result.names, result.witness.given_others.texts, strict=True) if t],
    )
    wrong = {
        "a difference is named where none is shown": not shown and bool(alone or given or result.changes()["column"]),
        "relations are named where none is shown": not shown and bool(result.witness.relations()),
        "words of a difference": not shown
        and any(f" {word} " in text for word in ("differ", "differs", "higher", "lower", "at least")),
        "no difference is shown where one is": shown and ("No difference between" in text or "either" in text),
        "how columns go together without a pair": "relation" in text and not result.witness.relations(),
        "a column differs by itself and does not": any(f"No difference of {name} by itself" in text for name in alone),
        "a share of rows differs, and rows cannot be told": "do not tell" in text and "of one sample (" in text,
        "titles": (not shown and " 0 of " not in f" {titles}" and "No difference" not in titles)
        or (shown and "No difference" in titles),
    }
    return [what for what, found in wrong.items() if found]


def test_no_two_sentences_of_an_answer_contradict_each_other():
    """In 60 pairs: equal, a little and clearly apart, in one column, in all, in how they go together, and given the others."""
    found = {"shown": 0, "alone": 0, "given": 0}
    for run in range(60):
        rng = np.random.default_rng([run, 11])
        X, Y = rng.normal(size=(40, 2)), rng.normal(size=(50, 2))
        change, size = run % 5, (0.0, 0.4, 0.8, 1.5)[run // 5 % 4]
        if change == 1:
            Y[:, 0] += size
        if change == 2:
            Y *= 1.0 + size
        if change == 3:
            Y[:, 1] += 2.0 * size * Y[:, 0]
        if change == 4:
            X[:, 1], Y[:, 1] = X[:, 0] + 0.2 * X[:, 1], Y[:, 0] + 0.2 * (Y[:, 1] + 2.0 * size)
        result = two_sample_test(X, Y, n_resamples=39, centers=15, random_state=run, n_jobs=1)
        assert contradictions(result) == [], result.to_dict()["summary"]
        found["shown"] += result.pvalue <= 0.05
        found["alone"] += bool(result.witness.columns())
        found["given"] += any(result.witness.given_others.texts) and not result.witness.columns()
    assert found["shown"] > found["alone"] > 6
    assert found["given"] > 3


def test_values_that_share_their_first_digits_are_compared_or_told():
    rng = np.random.default_rng(0)
    X, Y = 10**13 + rng.integers(0, 9, (40, 1)), 10**13 + 20 + rng.integers(0, 9, (40, 1))
    assert two_sample_test(X, Y, **FEW).pvalue == two_sample_test(X - 10**13, Y - 10**13, **FEW).pvalue == 0.01
    X, Y = (1e13 + shift + rng.normal(size=(40, 1)) for shift in (0.0, 5.0))
    with pytest.warns(DataWarning, match="column 0 share their first eleven digits"):
        assert two_sample_test(X, Y, **FEW).pvalue == 1.0
    assert two_sample_test(X - 1e13, Y - 1e13, **FEW).pvalue == 0.01


def test_shares_are_judged_against_a_tolerance():
    X, Y = normal(4000, 3), normal(3000, 3, 1) + [0.0, 0.08, 0.6]
    result = two_sample_test(X, Y, tolerance=0.1, **FEW)
    assert list(result.against_tolerance().values()) == ["less", "less", "more"]
    few = two_sample_test(X[:60], Y[:60], tolerance=0.1, **FEW)
    assert few.against_tolerance()["column 1"] == "open"
    assert result.to_dict()["summary"][-2:] == [
        "Columns shown to differ in more than 10 % of their values: column 2.",
        "Columns shown to differ in 10 % of their values at most: column 0 and column 1.",
    ]
    with pytest.raises(InputError, match="tolerance"):
        two_sample_test(X, Y, tolerance=1.5, **FEW)
    with pytest.raises(InputError, match="no tolerance"):
        two_sample_test(X[:60], Y[:60], **FEW).against_tolerance()


def test_numbers_whose_quartiles_stay_are_told_by_their_mean():
    rng = np.random.default_rng(0)
    before, after = (np.column_stack([rng.random(300) < p, rng.normal(size=300)]) * 1.0 for p in (0.05, 0.2))
    found = two_sample_test(before, after, n_resamples=99).changes()
    assert found["column"] == ["column 0"]
    assert found["description"] == [f"mean: {before[:, 0].mean():.4g} -> {after[:, 0].mean():.4g}"]
