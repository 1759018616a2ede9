"""LSDD by sums: of rows as they come and of rows in parts, against fits to all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isopleth import LSDD, DataWarning, InputError, load, save
from isopleth.core.budget import Budget
from isopleth.core.parts import ArrayParts
from isopleth.core.rows import RunningFolds
from isopleth.core.scales import ScaledColumns
from isopleth.difference.lsdd import fit_parts
from isopleth.difference.statistics import DifferenceStatistics, Moments

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(90, 2)) + [0.8, 0.0], RNG.normal(size=(70, 2))
CENTERS = RNG.normal(size=(12, 2))
NEW = RNG.normal(size=(30, 2))
GIVEN = {"centers": CENTERS, "length_scale": 0.9, "alpha": 0.3, "random_state": 0, "n_jobs": 1}
GRID = {**GIVEN, "length_scale": [[0.5], [0.9], [1.6]], "alpha": [0.1, 1.0], "cv": 3}
KINDS = ("linear", "quadratic", "combined", "corrected")


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10 * np.abs(want).max())


def labels(rows, folds):
    """The folds that the first rows of a stream go to."""
    return RunningFolds(folds, int(np.random.RandomState(0).randint(2**31))).deal(rows)


@pytest.mark.parametrize("penalty", ["l2", "rkhs"])
def test_rows_in_any_order_and_batches_are_one_fit(penalty):
    whole = LSDD(**GIVEN, penalty=penalty).fit(X, Y)
    rng = np.random.default_rng(0)
    for batches in (1, 7, 60):
        running = LSDD(**GIVEN, penalty=penalty).partial_fit(X[:20], Y[:10])
        for part in np.array_split(rng.permutation(np.arange(20, 90)), batches):
            running.partial_fit(X[part])
        for part in np.array_split(rng.permutation(np.arange(10, 70)), batches):
            running.partial_fit(Y=Y[part])
        close(running.dual_coef_, whole.dual_coef_)
        close(running.difference(NEW), whole.difference(NEW))
        np.testing.assert_allclose(running.difference_std(NEW), whole.difference_std(NEW), rtol=1e-7)
        np.testing.assert_array_equal(running.predict(NEW, (0.3, 0.7)), whole.predict(NEW, (0.3, 0.7)))
        for kind in KINDS:
            assert running.squared_l2(kind) == pytest.approx(whole.squared_l2(kind), rel=1e-9)


def test_searches_are_those_of_the_same_folds():
    """One call and many give the same folds, which do not depend on where batches end."""
    whole = LSDD(**{**GRID, "cv": (labels(X, 3), labels(Y, 3))}).fit(X, Y)
    for running in (
        LSDD(**GRID).partial_fit(X, Y),
        LSDD(**GRID).partial_fit(X[:31], Y[:17]).partial_fit(X[31:], Y[17:40]).partial_fit(Y=Y[40:]),
    ):
        np.testing.assert_allclose(running.search_path_.fold_losses, whole.search_path_.fold_losses, rtol=1e-9)
        np.testing.assert_array_equal(running.search_path_.nested_index, whole.search_path_.nested_index)
        assert running.alpha_ == whole.alpha_
        assert running.squared_l2_ == pytest.approx(whole.squared_l2_, rel=1e-9)
        close(running.dual_coef_, whole.dual_coef_)
    at_once = LSDD(**GRID).partial_fit(X, Y).squared_l2_interval()
    assert at_once == pytest.approx(whole.squared_l2_interval(), rel=1e-8)


def test_drawn_centers_leave_out_themselves():
    """Cross-fitted means are without a centre's own row, as in a fit to all rows with these folds."""
    drawn = {**GRID, "centers": 25, "length_scale": 0.9, "alpha": 0.3}
    whole = LSDD(**{**drawn, "cv": (labels(X, 3), labels(Y, 3))}).fit(X, Y)
    running = LSDD(**drawn).partial_fit(X, Y)
    np.testing.assert_array_equal(running.centers_, whole.centers_)
    assert running.squared_l2_ == pytest.approx(whole.squared_l2_, rel=1e-9)
    given = LSDD(**{**drawn, "centers": whole.centers_}).partial_fit(X, Y)
    assert given.squared_l2_ != pytest.approx(whole.squared_l2_, rel=1e-3)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_sums_merge_in_any_order(sizes, ahead, seed):
    rng = np.random.default_rng(seed)
    frame = ScaledColumns(np.ones(2, dtype=bool), np.zeros(2), np.ones(2))
    rows, w = rng.normal(size=(sum(sizes), 2)), rng.integers(0, 4, size=sum(sizes)).astype(float)
    w[0] = 1.0
    edges = np.cumsum([0, *sizes])

    def empty():
        return DifferenceStatistics.empty(frame, CENTERS, np.array([[0.9, 0.9], [3.0, 3.0]]), budget=Budget(n_jobs=1))

    whole = empty().accumulate(0, rows, w).accumulate(1, Y)
    merged = empty().accumulate(1, Y[ahead:])
    for place in rng.permutation(len(sizes)):
        part = slice(edges[place], edges[place + 1])
        merged.merge(empty().accumulate(0, rows[part], w[part]))
    merged.accumulate(1, Y[:ahead])
    np.testing.assert_array_equal(merged.n_rows, whole.n_rows)
    for scale in range(2):
        close(merged.solve(0.2, scale), whole.solve(0.2, scale))
        for got, want in zip(merged.at(scale).moments, whole.at(scale).moments, strict=True):
            np.testing.assert_allclose(got.scatter, want.scatter, rtol=1e-9, atol=1e-11)


def test_scatter_keeps_its_digits_where_functions_hardly_vary():
    """At a length scale of 1e4 the functions are 1 but for 1e-8, and the scatter is of the size 1e-16."""
    frame = ScaledColumns(np.ones(2, dtype=bool), np.zeros(2), np.ones(2))
    sums = DifferenceStatistics.empty(frame, CENTERS, np.array([[1e4, 1e4]]))
    for part in np.array_split(X, 9):
        sums.accumulate(0, part)
    found = sums.accumulate(1, Y).at(0).moments[0].scatter
    psi = np.expm1(-((X[:, None] - CENTERS) ** 2).sum(axis=2) / 2e8)
    want = (psi - psi.mean(axis=0)).T @ (psi - psi.mean(axis=0))
    np.testing.assert_allclose(found, want, atol=1e-7 * want.max())


def test_a_sample_without_rows_adds_nothing():
    empty = Moments(0.0, np.zeros(2), np.zeros((2, 2)))
    assert (empty + empty).count == 0.0
    one = Moments(2.0, np.array([1.0, 3.0]), np.eye(2))
    assert empty + one is one
    assert one + empty is one


def test_merging_leaves_the_others_as_they_are():
    frame = ScaledColumns.centred(X, np.ones(2, dtype=bool))
    one, other = (DifferenceStatistics.empty(frame, CENTERS, np.ones((1, 2))) for _ in range(2))
    other.accumulate(0, X).accumulate(1, Y)
    before = other.solve(0.1)
    one.merge(other).accumulate(0, X[:9]).merge(other).accumulate(1, Y[:9])
    np.testing.assert_array_equal(other.solve(0.1), before)
    for moments in other.at(0).moments:
        assert moments.count in (len(X), len(Y))


def test_weights_are_repetition_and_small_ones_are_shares():
    counts = np.random.default_rng(1).integers(1, 4, size=90)
    weighted = LSDD(**GIVEN).partial_fit(X[:40], Y, counts[:40]).partial_fit(X[40:], sample_weight_x=counts[40:])
    repeated = LSDD(**GIVEN).partial_fit(np.repeat(X, counts, axis=0), Y)
    close(weighted.dual_coef_, repeated.dual_coef_)
    np.testing.assert_allclose(weighted.difference_std(NEW), repeated.difference_std(NEW), rtol=1e-7)
    shares = LSDD(**GIVEN).partial_fit(X, Y, np.full(90, 1 / 90), np.full(70, 1e-3))
    plain = LSDD(**GIVEN).partial_fit(X, Y)
    close(shares.dual_coef_, plain.dual_coef_)
    np.testing.assert_allclose(shares.difference_std(NEW), plain.difference_std(NEW), rtol=1e-7)


@pytest.mark.parametrize("parameters", [GIVEN, {**GRID, "centers": 20}])
def test_a_saved_model_continues(tmp_path, parameters):
    running = LSDD(**parameters).partial_fit(X[:50], Y[:50])
    save(running, tmp_path / "model.isopleth")
    again = load(tmp_path / "model.isopleth")
    for model in (running, again):
        model.partial_fit(X[50:], Y[50:])
    np.testing.assert_array_equal(again.dual_coef_, running.dual_coef_)
    assert again.squared_l2_ == running.squared_l2_
    assert again.squared_l2_interval() == running.squared_l2_interval()


def test_float32_rows_are_summed_in_double_precision():
    rows, others = X.astype(np.float32), Y.astype(np.float32)
    running = LSDD(**GIVEN).partial_fit(rows[:30], others).partial_fit(rows[30:])
    close(running.dual_coef_, LSDD(**GIVEN).fit(rows.astype(float), others.astype(float)).dual_coef_)


def test_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    x, y = pandas.DataFrame(X, columns=["a", "b"]), pandas.DataFrame(Y, columns=["a", "b"])
    running = LSDD(**GIVEN).partial_fit(x[:40], y).partial_fit(x[40:])
    assert list(running.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="another order"):
        running.partial_fit(x[["b", "a"]])


def test_what_is_refused_leaves_the_sums_as_they_were():
    running = LSDD(**GIVEN).partial_fit(X[:50], Y)
    bad = X[50:].copy()
    bad[3, 1] = np.nan
    before = running.dual_coef_.copy()
    for x, y in ((X[50:], bad), (bad, None), (X[:, :1], None), (None, Y[:, [0, 1, 1]])):
        with pytest.raises(ValueError, match=r"NaN|features"):
            running.partial_fit(x, y)
    with pytest.raises(InputError, match="sample_weight_y is negative"):
        running.partial_fit(X[50:], Y[:2], None, [1.0, -1.0])
    np.testing.assert_array_equal(running.dual_coef_, before)
    close(running.partial_fit(X[50:]).dual_coef_, LSDD(**GIVEN).fit(X, Y).dual_coef_)


@pytest.mark.parametrize(
    ("parameters", "samples", "message"),
    [
        (GIVEN, (X, None), "Y is missing; the first call of partial_fit needs both samples"),
        (GIVEN, (None, Y), "X is missing; the first call"),
        ({**GIVEN, "cv": (np.zeros(90), np.zeros(70))}, (X, Y), "cv: expected a number of folds"),
        (GRID, (X, Y[:2]), "Y has 2 rows so far, too few for cross-validation in 3 folds"),
        ({**GIVEN, "memory_limit": 10_000}, (X, Y), "raise memory_limit"),
        ({**GRID, "memory_limit": 15_000}, (X, Y), "sums for 12 centers at 4 length scales"),
        ({**GIVEN, "alpha": 0.0, "centers": np.zeros((2, 2))}, (X, Y), "singular to working precision"),
    ],
)
def test_refusals_of_the_first_call(parameters, samples, message):
    model = LSDD(**parameters)
    with pytest.raises(InputError, match=message):
        model.partial_fit(*samples)
    assert not hasattr(model, "dual_coef_")
    model.set_params(**GIVEN, cv=5, memory_limit=1e9).partial_fit(X, Y)
    close(model.dual_coef_, LSDD(**GIVEN).fit(X, Y).dual_coef_)


def test_constant_columns_are_dropped_with_a_warning_where_the_call_is():
    wide = [np.column_stack([rows, np.full(len(rows), 7.0)]) for rows in (X, Y)]
    parameters = {**GIVEN, "centers": 20}
    plain = LSDD(**parameters).partial_fit(X, Y)
    for fit in (
        lambda model: model.partial_fit(*wide),
        lambda model: model.fit(*wide),
        lambda model: fit_parts(model, *map(ArrayParts, wide)),
    ):
        with pytest.warns(DataWarning, match="constant columns are dropped: column 2") as caught:
            model = fit(LSDD(**parameters))
        assert caught[0].filename == __file__
        close(model.dual_coef_, plain.dual_coef_)


def test_later_calls_need_a_sample():
    with pytest.raises(InputError, match="X and Y are missing"):
        LSDD(**GIVEN).partial_fit(X, Y).partial_fit()


def test_single_rows_have_no_error_until_there_are_more():
    running = LSDD(**GIVEN).partial_fit(X[:1], Y[:1])
    assert np.isnan(running.squared_l2_)
    with pytest.raises(InputError, match="at least two rows"):
        running.difference_std(NEW)
    with pytest.raises(InputError, match="at least two rows"):
        running.squared_l2_interval()
    running.partial_fit(X[1:], Y[1:])
    assert np.isfinite(running.squared_l2_interval()).all()


def test_regions_and_fits_after_fits():
    running = LSDD(**GIVEN).partial_fit(X, Y)
    with pytest.raises(InputError, match="given to fit, since sums keep none"):
        running.level_set(0.5)
    whole = running.fit(X[:50], Y)
    assert len(whole.level_set(0.5)) == 2
    with pytest.warns(DataWarning, match="starts again"):
        whole.partial_fit(X[50:], Y)
    close(whole.dual_coef_, LSDD(**GIVEN).fit(X[50:], Y).dual_coef_)


@pytest.mark.parametrize("part_rows", [1, 13, 1000])
def test_parts_are_the_fit_to_all_rows(part_rows):
    model = fit_parts(LSDD(**GIVEN), *(ArrayParts(rows, part_rows=part_rows) for rows in (X, Y)))
    whole = LSDD(**GIVEN).fit(X, Y)
    close(model.dual_coef_, whole.dual_coef_)
    np.testing.assert_allclose(model.difference_std(NEW), whole.difference_std(NEW), rtol=1e-7)
    assert np.isfinite(model.squared_l2_interval()).all()


def test_parts_with_weights_and_names():
    counts = np.random.default_rng(1).integers(0, 4, size=90).astype(float)
    names = ["a", "b"]
    model = fit_parts(LSDD(**GIVEN), ArrayParts(X, counts, part_rows=20, names=names), ArrayParts(Y, names=names))
    assert list(model.feature_names_in_) == names
    close(model.dual_coef_, LSDD(**GIVEN).fit(np.repeat(X, counts.astype(int), axis=0), Y).dual_coef_)


@pytest.mark.parametrize("given", [{}, {"alpha": 1.0}, {"length_scale": 1.0}])
def test_parts_are_searched(given):
    """One part has the folds of one call; the grids are those of a fit, as long as all rows are looked at first."""
    free = {"centers": CENTERS, "cv": 3, "random_state": 0, **given}
    whole = LSDD(**{**free, "cv": (labels(X, 3), labels(Y, 3))}).fit(X, Y)
    model = fit_parts(LSDD(**free), ArrayParts(X), ArrayParts(Y))
    np.testing.assert_allclose(model.search_path_.length_scales, whole.search_path_.length_scales)
    np.testing.assert_allclose(model.search_path_.fold_losses, whole.search_path_.fold_losses, rtol=1e-8)
    close(model.dual_coef_, whole.dual_coef_)
    assert model.squared_l2_interval() == pytest.approx(whole.squared_l2_interval(), rel=1e-7)
    if given:
        return
    losses = []
    for seed in range(3):  # losses differ by a third or so from one division into folds to another
        several = fit_parts(
            LSDD(**{**free, "random_state": seed}), ArrayParts(X, part_rows=7), ArrayParts(Y, part_rows=1)
        )
        losses.append(several.search_path_.losses.min())
    assert 0.5 < np.mean(losses) / whole.search_path_.losses.min() < 2.0


def test_parts_are_sampled_with_seeds_of_all_31_bits(monkeypatch):
    seeds = []
    sample = ArrayParts.sample

    def recorded(self, count, seed):
        seeds.append(seed)
        return sample(self, count, seed)

    monkeypatch.setattr(ArrayParts, "sample", recorded)
    for random_state in range(20):
        fit_parts(LSDD(**{**GIVEN, "random_state": random_state}), ArrayParts(X), ArrayParts(Y))
    assert seeds[0::2] == seeds[1::2]
    assert len(set(seeds)) == 20
    assert 2**31 > max(seeds) > 1.6 * 2**30


def test_parts_of_other_columns_and_of_none():
    with pytest.raises(InputError, match="Y has the columns 'b', 'a'; expected those of X"):
        fit_parts(LSDD(**GIVEN), ArrayParts(X, names=["a", "b"]), ArrayParts(Y, names=["b", "a"]))
    with pytest.raises(InputError, match="Y has no rows of positive weight"):
        fit_parts(LSDD(**GIVEN), ArrayParts(X), ArrayParts(Y, np.zeros(70)))
    one = DifferenceStatistics.empty(ScaledColumns.centred(X, np.ones(2, dtype=bool)), CENTERS, np.ones((1, 2)))
    for other, what in (
        (DifferenceStatistics.empty(one.frame, CENTERS[:3], np.ones((1, 2))), "centers"),
        (DifferenceStatistics.empty(one.frame, CENTERS, np.ones((2, 2))), "length scales"),
        (
            DifferenceStatistics.empty(ScaledColumns.centred(Y, np.ones(2, dtype=bool)), CENTERS, np.ones((1, 2))),
            "shift",
        ),
        (DifferenceStatistics.empty(one.frame, CENTERS, np.ones((1, 2)), folds=1), "folds"),
        (
            DifferenceStatistics.empty(one.frame, CENTERS, np.ones((1, 2)), drawn=True),
            "folds or of other kinds of sums",
        ),
        (
            DifferenceStatistics.empty(one.frame, CENTERS, np.ones((1, 2)), moments=False),
            "folds or of other kinds of sums",
        ),
    ):
        with pytest.raises(InputError, match=f"statistics of other {what}"):
            one.merge(other)
    with pytest.raises(InputError, match="X has no rows of positive weight"):
        one.solve(0.1)
