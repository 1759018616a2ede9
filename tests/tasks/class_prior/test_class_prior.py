"""ClassPriorEstimator: right shares, honest intervals, and one sentence for what cannot be answered."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from isopleth import ClassPriorEstimator, DataWarning, InputError
from isopleth.tasks import ClassPriors

CORNERS = 2.0 * np.eye(3)


def draw(labels, seed=0, corners=CORNERS):
    """Normal rows about the corner of their class."""
    return np.random.default_rng(seed).normal(size=(len(labels), corners.shape[1])) + corners[labels]


Y = np.repeat([0, 1], 20)
X = draw(Y)
NEW = draw(np.repeat([0, 1], [10, 40]), seed=1)


def fitted(x=X, y=Y, **parameters):
    return ClassPriorEstimator(random_state=0, **parameters).fit(x, y)


class TestShares:
    @pytest.mark.parametrize("true", [(0.9, 0.1), (0.0, 1.0), (0.5, 0.2, 0.3), (0.7, 0.3, 0.0)])
    def test_many_rows_give_the_true_shares(self, true):
        y = np.repeat(np.arange(len(true)), 300)
        labels = np.repeat(np.arange(len(true)), np.rint(2000 * np.array(true)).astype(int))
        priors = fitted(draw(y, corners=CORNERS[:, :2]), y).estimate(draw(labels, seed=1, corners=CORNERS[:, :2]))
        np.testing.assert_allclose(priors.priors, true, atol=0.06)
        assert (priors.lower <= priors.priors).all()
        assert (priors.priors <= priors.upper).all()

    def test_units_origins_signs_and_the_order_of_columns_do_not_matter(self):
        def moved(rows):
            return (rows * [1.0, -1e6, 1e-3] + [5.0, 0.0, 1.0])[:, [2, 0, 1]]

        np.testing.assert_allclose(
            fitted(moved(X)).estimate(moved(NEW)).priors, fitted().estimate(NEW).priors, atol=1e-6
        )

    def test_the_order_of_labelled_rows_and_rounding_do_not_matter(self):
        rng = np.random.default_rng(4)
        x, y = np.vstack([X, X[:6]]), np.append(Y, 1 - Y[:6])  # equal rows of both classes
        expected = fitted(x, y, centers=12).estimate(NEW).priors
        order = rng.permutation(len(x))
        np.testing.assert_allclose(fitted(x[order], y[order], centers=12).estimate(NEW).priors, expected, atol=1e-9)
        rounded = x * (1.0 + 1e-12 * rng.normal(size=x.shape))
        np.testing.assert_allclose(fitted(rounded, y, centers=12).estimate(NEW).priors, expected, atol=1e-6)

    def test_the_order_of_unlabelled_rows_and_copies_of_all_of_them_do_not_matter(self):
        estimator = fitted()
        expected = estimator.estimate(NEW)
        np.testing.assert_allclose(estimator.estimate(NEW[::-1]).priors, expected.priors, atol=1e-12)
        twice = estimator.estimate(np.vstack([NEW, NEW]))
        np.testing.assert_allclose(twice.priors, expected.priors, atol=0.02)
        assert np.ptp([twice.lower, twice.upper], axis=0)[0] < np.ptp([expected.lower, expected.upper], axis=0)[0]

    def test_equal_classes_leave_all_shares_possible(self):
        rng = np.random.default_rng(0)
        priors = fitted(rng.normal(size=(40, 3))).estimate(rng.normal(size=(50, 3)))
        assert (priors.upper - priors.lower > 0.8).all()
        assert abs(priors.priors[0] - 0.5) < 0.3

    @pytest.mark.parametrize(
        ("classes", "gap", "runs"),
        [(3, 1.0, 25), *(pytest.param(*case, 80, marks=pytest.mark.slow) for case in [(2, 0.7), (2, 2.0), (3, 1.0)])],
    )
    def test_intervals_hold_the_share_as_often_as_they_say(self, classes, gap, runs):
        held = 0
        shares = np.array([0.15, 0.85, 0.0] if classes == 2 else [0.2, 0.7, 0.1])[:classes]
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            y, labels = np.repeat(np.arange(classes), 20), rng.choice(classes, 50, p=shares)
            corners = gap * CORNERS / 2.0
            priors = fitted(draw(y, 2 * seed, corners), y).estimate(draw(labels, 2 * seed + 1, corners))
            held += priors.lower[0] <= shares[0] <= priors.upper[0]
        assert held / runs >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / runs)

    def test_a_higher_level_is_a_wider_interval(self):
        estimator = fitted()
        narrow, wide = estimator.estimate(NEW, confidence_level=0.5), estimator.estimate(NEW, confidence_level=0.99)
        assert wide.lower[0] < narrow.lower[0] < narrow.upper[0] < wide.upper[0]


class TestInput:
    def test_the_shares_of_one_row(self):
        priors = fitted().estimate(NEW[:1])
        assert priors.priors.sum() == pytest.approx(1.0)
        assert priors.upper[0] - priors.lower[0] > 0.5

    def test_hundreds_of_columns(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(40, 300)) + 0.3 * Y[:, None]
        new = rng.normal(size=(50, 300)) + 0.3 * (np.arange(50) < 40)[:, None]
        assert fitted(x).estimate(new).priors[1] == pytest.approx(0.8, abs=0.15)

    def test_classes_of_very_different_sizes(self):
        y, labels = np.repeat([0, 1], [1500, 15]), np.repeat([0, 1], [95, 5])
        priors = fitted(draw(y), y, centers=200).estimate(draw(labels, 1))
        assert priors.lower[1] <= 0.05 <= priors.upper[1]
        assert priors.priors[1] < 0.2

    def test_a_class_of_two_rows_beside_hundreds(self):
        y, found, held = np.repeat([0, 1], [300, 2]), [], 0
        for seed in range(20):
            priors = fitted(draw(y, 2 * seed), y, centers=100).estimate(draw(np.repeat([0, 1], [50, 50]), 2 * seed + 1))
            found.append(priors.priors[1])
            held += priors.lower[1] <= 0.5 <= priors.upper[1]
        assert 0.35 < np.mean(found) < 0.65
        assert held >= 16

    def test_rows_that_stand_in_both_classes_leave_all_shares_possible(self):
        with pytest.warns(DataWarning, match="no mixture"):
            priors = fitted(np.vstack([X[:20], X[:20]])).estimate(NEW)
        assert [priors.lower.tolist(), priors.upper.tolist()] == [[0.0, 0.0], [1.0, 1.0]]

    @pytest.mark.parametrize("size", [1e-300, 1e160, 1e300])
    def test_numbers_of_any_size(self, size):
        np.testing.assert_allclose(
            fitted(X * size).estimate(NEW * size).priors, fitted().estimate(NEW).priors, atol=1e-6
        )

    def test_columns_without_a_scale_are_named(self):
        with pytest.raises(InputError, match="column 0 is of a size that leaves no length scale; rescale it"):
            fitted(np.array([[0.0]] * 39 + [[5e-324]]))

    def test_few_unlabelled_and_many_labelled_rows(self):
        y = np.repeat([0, 1], 500)
        assert fitted(draw(y), y, centers=100).estimate(NEW[-10:]).priors[1] > 0.6

    def test_discrete_and_repeated_rows(self):
        x = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
        priors = fitted(x).estimate(np.repeat(x[[0, -1]], [30, 10], axis=0))
        np.testing.assert_allclose(priors.priors, [0.75, 0.25], atol=1e-6)
        rng = np.random.default_rng(0)
        counts = rng.poisson(1.0 + 2.0 * np.repeat([0, 1], 50)[:, None], size=(100, 4)).astype(float)
        assert fitted(counts, np.repeat([0, 1], 50)).estimate(rng.poisson(3.0, size=(80, 4))).priors[1] > 0.85

    def test_constant_columns_are_named_and_dropped(self):
        wide = np.column_stack([X, np.ones(40)])
        with pytest.warns(DataWarning, match="constant columns are dropped: column 3"):
            estimator = fitted(wide)
        found = estimator.estimate(np.column_stack([NEW, np.full(50, 7.0)]))
        np.testing.assert_allclose(found.priors, fitted().estimate(NEW).priors, atol=1e-12)

    def test_labels_may_be_words_or_truth_values(self):
        words = fitted(y=np.where(Y == 1, "ill", "healthy")).estimate(NEW)
        assert words.to_dict()["classes"] == ["healthy", "ill"]
        np.testing.assert_allclose(words.priors, fitted().estimate(NEW).priors)
        assert fitted(y=Y == 1).estimate(NEW).to_dict()["classes"] == [False, True]
        assert fitted(y=pd.Categorical(np.where(Y == 1, "ill", "healthy"))).classes_.tolist() == ["healthy", "ill"]

    def test_rows_of_a_class_that_was_not_labelled_are_noticed(self):
        with pytest.warns(DataWarning, match="no mixture of the labelled classes: a class may be missing"):
            found = fitted().estimate(NEW - 12.0)
        (said,) = found.warnings
        assert said.startswith("These rows are no mixture of the labelled classes")
        assert found.to_dict()["warnings"] == [said]
        assert found.to_dict()["summary"][0] == found.text().splitlines()[0] == said
        assert replace(found, by="region").warnings == found.warnings
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for seed in range(10):
                fitted().estimate(draw(np.repeat([0, 1], [10, 40]), seed=seed))

    @pytest.mark.parametrize(
        ("y", "sentence"),
        [
            (np.zeros(40), "y has one class only, 0.0; expected rows of at least two classes."),
            (np.arange(40) == 0, "y has the class True in one row only; a class needs at least two"),
            (Y[1:], r"y has shape \(39,\); expected one class a row, \(40,\)."),
            (np.where(Y == 1, np.nan, 0.0), "y has no class in row 20; pass rows without one to estimate."),
            (np.array(["a"] * 20 + [None] * 20, dtype=object), "y has no class in row 20"),
            (["a"] * 20 + ["b"] * 19 + [np.nan], "y has no class in row 39"),
            (np.array([0] * 20 + [1] * 18 + [np.nan] * 2, dtype=object), "y has no class in row 38"),
            (pd.Series(["a"] * 39 + [None], dtype="string"), "y has no class in row 39"),
            (np.array(["2020-01-01"] * 30 + ["NaT"] * 10, dtype="M8[D]"), "y has no class in row 30"),
            (np.ma.array(Y, mask=Y == 1), "y has no class in row 20"),
            ([1] * 20 + ["a"] * 20, "y mixes words and numbers; expected one class a row, all of one kind."),
            (None, "requires y to be passed"),
        ],
    )
    def test_labels_that_cannot_be_used(self, y, sentence):
        with pytest.raises(InputError, match=sentence):
            ClassPriorEstimator().fit(X, y)

    def test_two_rows_are_refused_by_their_classes(self):
        with pytest.raises(InputError, match="y has the class 0 in one row only; a class needs at least two"):
            ClassPriorEstimator().fit(X[:2], [0, 1])

    def test_other_columns(self):
        with pytest.raises(ValueError, match="X has 2 features, but ClassPriorEstimator is expecting 3"):
            fitted().estimate(NEW[:, :2])

    def test_unlabelled_rows_that_are_not_finite(self):
        with pytest.raises(InputError, match="X contains inf in column 1 \\(1 row\\)"):
            fitted().estimate([[0.0, np.inf, 0.0]])

    def test_all_rows_equal(self):
        with pytest.raises(InputError, match="all rows of X are equal"):
            fitted(np.ones((40, 3)))

    def test_a_fit_that_fails_leaves_nothing(self):
        estimator = fitted()
        with pytest.raises(InputError):
            estimator.fit(X, np.zeros(40))
        with pytest.raises(ValueError, match="not fitted"):
            estimator.estimate(NEW)


@pytest.fixture(scope="module")
def estimator():
    rng, labels = np.random.default_rng(0), np.repeat(["a", "b"], [600, 300])
    return fitted(rng.normal(size=(900, 2)) + 1.5 * (labels == "b")[:, None], labels)


class TestPredict:
    """Normal classes of known densities: probabilities against Bayes' theorem, and what shares change."""

    @pytest.mark.parametrize("share", [None, 0.05])
    def test_probabilities_are_those_of_bayes(self, estimator, share):
        rng = np.random.default_rng(1)
        of_b = rng.random(1000) < (1 / 3 if share is None else share)
        new = rng.normal(size=(1000, 2)) + 1.5 * of_b[:, None]
        priors = None if share is None else replace(estimator.estimate(new), priors=np.array([1.0 - share, share]))
        odds = 1.5 * (new - 0.75).sum(axis=1) + np.log(0.5 if share is None else share / (1.0 - share))
        found, truth = estimator.predict_proba(new, priors), 1.0 / (1.0 + np.exp(-odds))
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert abs(found[:, 1] - truth).mean() < 0.05
        agree = estimator.predict(new, priors) == np.where(odds > 0.0, "b", "a")
        assert agree.mean() > 0.95

    def test_a_row_is_judged_by_itself(self, estimator):
        new = np.random.default_rng(2).normal(size=(20, 2))
        np.testing.assert_allclose(estimator.predict_proba(new)[7:8], estimator.predict_proba(new[7:8]))

    def test_priors_of_other_classes_are_refused(self, estimator):
        with pytest.raises(InputError, match="priors is no estimate of the shares"):
            estimator.predict(NEW[:, :2], [0.5, 0.5])


class TestReweight:
    def test_the_weights_bring_the_classes_to_their_shares(self):
        estimator = fitted(X[:30], Y[:30])  # 20 and 10 rows
        priors = estimator.estimate(NEW)
        weight = np.where(Y[:30] == 1, priors.priors[1] / (1 / 3), priors.priors[0] / (2 / 3))
        expected = RidgeClassifier().fit(X[:30], Y[:30], sample_weight=weight)
        np.testing.assert_allclose(estimator.reweight(RidgeClassifier(), priors).coef_, expected.coef_)

    def test_the_last_step_of_a_pipeline_is_weighted_and_the_given_one_stays(self):
        estimator = fitted(y=np.where(Y == 1, "ill", "healthy"))
        given = make_pipeline(StandardScaler(), RidgeClassifier())
        weighted = estimator.reweight(given, estimator.estimate(NEW))
        assert set(weighted.predict(NEW)) <= {"ill", "healthy"}
        assert not hasattr(given[-1], "coef_")

    def test_a_classifier_without_weights_is_refused(self):
        estimator = fitted()
        with pytest.raises(
            InputError, match="KNeighborsClassifier is no classifier that takes sample_weight; pass one"
        ):
            estimator.reweight(KNeighborsClassifier(), estimator.estimate(NEW))
        with pytest.raises(InputError, match="Ridge is no classifier"):
            estimator.reweight(Ridge(), estimator.estimate(NEW))

    def test_a_class_that_is_not_there_keeps_some_weight(self):
        estimator = fitted()
        none = replace(estimator.estimate(NEW), priors=np.array([0.0, 1.0]))
        few = replace(none, priors=np.array([1e-3, 1.0]))
        weighted = estimator.reweight(SVC(), none)  # refuses a class without weight
        np.testing.assert_array_equal(weighted.dual_coef_, estimator.reweight(SVC(), few).dual_coef_)

    def test_priors_of_other_classes_are_refused(self):
        estimator = fitted()
        for priors in (replace(estimator.estimate(NEW), classes=np.array([0, 2])), [0.5, 0.5]):
            with pytest.raises(
                InputError, match="priors is no estimate of the shares of the classes that y had at fit"
            ):
                estimator.reweight(RidgeClassifier(), priors)


class TestResult:
    def test_text_and_table(self):
        priors = fitted().estimate(NEW)
        assert repr(priors).startswith("ClassPriors(0: 0.")
        assert repr(priors).endswith("95% intervals)")
        assert repr(replace(priors, confidence_level=0.999)).endswith("99.9% intervals)")
        assert str(priors).count("\n") == 1
        table = priors.table()
        assert list(table.columns) == ["class", "prior", "lower", "upper"]
        assert table["prior"].sum() == pytest.approx(1.0)
        np.testing.assert_allclose(priors.covariance.sum(axis=0), 0.0, atol=1e-12)

    def test_plot(self):
        pytest.importorskip("matplotlib")
        priors = fitted(y=np.where(Y == 1, "ill $", "healthy")).estimate(NEW)
        ax = priors.plot()
        order = np.argsort(-priors.priors)
        names = np.array(["healthy", r"ill \$"])[order].tolist()
        assert [label.get_text() for label in ax.get_yticklabels()] == names
        assert ax.get_title(loc="left") == f"{names[0]} is the most frequent class: {priors.priors.max():.1%}"
        np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 0], priors.priors[order])
        assert priors.plot(ax=ax) is ax


def absent_class(run, centers, shares, labelled=60, unlabelled=300):
    rng = np.random.default_rng([run, 17])
    y = np.repeat(np.arange(len(centers)), labelled)
    hidden = np.repeat(np.arange(len(centers)), np.round(np.array(shares) * unlabelled).astype(int))
    x, new = (rng.normal(size=(len(each), 2)) + np.array(centers)[each] for each in (y, hidden))
    return ClassPriorEstimator(random_state=run).fit(x, y).estimate(new)


TRIANGLE = 3.0 * np.stack([np.cos(np.arange(3) * 2.0 * np.pi / 3.0), np.sin(np.arange(3) * 2.0 * np.pi / 3.0)], axis=1)
LINE = 3.0 * np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize(("centers", "bound"), [(TRIANGLE, 0.015), (LINE, 0.045)])
def test_a_class_that_is_absent_does_not_disturb_the_others(centers, bound):
    """Scores of the absent class are large and noisy; with its noise in the others the errors were five times these."""
    shares = np.array([0.5, 0.5, 0.0])
    found = [absent_class(run, centers, shares) for run in range(10)]
    assert np.sqrt(np.mean([(each.priors - shares) ** 2 for each in found])) < bound
    held = [(each.lower <= shares + 1e-12) & (shares <= each.upper + 1e-12) for each in found]
    assert np.mean(held) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("centers", [TRIANGLE, 0.5 * TRIANGLE, LINE])
def test_intervals_hold_the_shares_where_a_class_is_absent(centers):
    shares = np.array([0.5, 0.5, 0.0])
    found = [absent_class(run, centers, shares) for run in range(150)]
    held = np.mean([(each.lower <= shares + 1e-12) & (shares <= each.upper + 1e-12) for each in found], axis=0)
    assert (held >= 0.9).all()


def test_the_ridge_is_small_where_a_rule_over_several_columns_parts_the_classes():
    """The sign of a product of two columns, which the additive part of the kernel does not see, and a shift, which it does."""
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0], size=(200, 6))
    y = rows[:, 0] * rows[:, 1] > 0
    largest = 2.5 * (1.0 / np.bincount(y)).sum()
    assert ClassPriorEstimator(random_state=0).fit(rows, y).alpha_ < 0.11 * largest
    y = np.repeat([0, 1], 30)
    plain = ClassPriorEstimator(random_state=0).fit(rng.normal(size=(60, 4)) + y[:, None], y)
    assert plain.alpha_ == pytest.approx(10.0 / 60.0)


def test_says_that_rows_without_a_difference_tell_nothing():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 10)
    alike = ClassPriorEstimator(random_state=0).fit(rng.normal(size=(20, 2)), y).estimate(rng.normal(size=(30, 2)))
    apart = ClassPriorEstimator(random_state=0).fit(rng.normal(size=(20, 2)) + 5.0 * y[:, None], y)
    assert "next to nothing" in str(alike)
    assert "next to nothing" not in str(
        apart.estimate(rng.normal(size=(40, 2)) + 5.0 * np.repeat([[0.0], [1.0]], 20, axis=0))
    )


def test_names_the_classes_of_which_the_rows_tell_nothing():
    ends = np.array([[0.0, 1.0], [0.1, 0.3], [0.0, 0.95]])
    found = ClassPriors(np.array(["F", "I", "M"]), np.array([0.4, 0.2, 0.4]), *ends.T, np.eye(3), 0.95, 300)
    assert found.to_dict()["summary"][0].startswith(
        "These rows say next to nothing about the shares of F and M: label more"
    )


def test_times_that_are_all_later_are_named():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    X = pd.DataFrame(
        {"x": rng.normal(size=80) + 2.0 * (y == "b"), "when": pd.date_range("2024-01-01", periods=80, freq="h")}
    )
    estimator = ClassPriorEstimator(random_state=0).fit(X, y)
    with pytest.warns(DataWarning, match="'when': nearly all times are later than those of the fit"):
        estimator.estimate(X.assign(when=X["when"] + pd.Timedelta(days=30)))


class TestGroups:
    ROWS = draw(np.tile([0, 1, 1, 1], 30), seed=3)
    REGION = np.repeat(["north", "south"], 60)

    def test_groups_have_the_shares_of_their_rows_by_themselves(self):
        found = fitted().estimate(self.ROWS, by=self.REGION)
        whole = fitted().estimate(self.ROWS)
        np.testing.assert_array_equal(found.priors, whole.priors)
        assert list(found.groups) == ["north", "south"]
        alone = fitted().estimate(self.ROWS[60:])
        for name in ("priors", "lower", "upper"):
            np.testing.assert_array_equal(getattr(found.groups["south"], name), getattr(alone, name))
        order = np.random.default_rng(0).permutation(120)
        again = fitted().estimate(self.ROWS[order], by=self.REGION[order])
        np.testing.assert_allclose(again.groups["north"].lower, found.groups["north"].lower, rtol=1e-9)

    def test_a_column_of_a_frame_names_the_groups(self):
        frame = pd.DataFrame(self.ROWS, columns=list("abc")).assign(region=self.REGION)
        model = fitted(pd.DataFrame(X, columns=list("abc")))
        found = model.estimate(frame, by="region")
        assert found.by == "region"
        table = found.table()
        assert table["group"].tolist() == ["north", "north", "south", "south"]
        np.testing.assert_array_equal(table["prior"][2:], found.groups["south"].priors)
        assert "Of the 2 groups of region, " in found.content().summary[1]
        assert "; their intervals overlap" in found.content().summary[1]
        assert len(found.content().charts) == 2
        assert "north: 0: " in str(found)

    def test_groups_that_cannot_be_used(self):
        frame = pd.DataFrame(self.ROWS, columns=list("abc")).assign(region=self.REGION)
        model = fitted(pd.DataFrame(X, columns=list("abc")))
        with pytest.raises(InputError, match="by = 'a': classes are told apart by this column"):
            model.estimate(frame, by="a")
        with pytest.raises(InputError, match="by = 'town': X has no such column"):
            model.estimate(frame, by="town")
        with pytest.raises(InputError, match="by = 'region': X is an array without names"):
            fitted().estimate(self.ROWS, by="region")
        with pytest.raises(InputError, match="by has 3 entries; expected one a row, 120"):
            fitted().estimate(self.ROWS, by=["a", "b", "b"])
        with pytest.raises(InputError, match="by has no group in row 2"):
            model.estimate(frame.assign(region=["a", "b", None] * 40), by="region")

    def test_a_group_that_is_no_mixture_is_named(self):
        with pytest.warns(DataWarning, match="these rows of the group 'south' are no mixture"):
            fitted().estimate(np.vstack([self.ROWS[:60], self.ROWS[:40] + 30.0]), by=["north"] * 60 + ["south"] * 40)
