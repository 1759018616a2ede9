"""NystromKEF by sums: of rows as they come and of rows in parts, against fits to all of them."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isopleth import DataWarning, InputError, NystromKEF, load, save
from isopleth.core.budget import Budget
from isopleth.core.parts import ArrayParts
from isopleth.core.rows import RunningFolds
from isopleth.kernels import IMQ
from isopleth.score import Tikhonov
from isopleth.score.nystrom import fit_parts
from isopleth.score.ridge_selection import NystromFolds, choose_ridge
from isopleth.score.spaces import SPACES
from isopleth.score.statistics import NystromStatistics, pooled_system

scale_nystrom = partial(NystromKEF, frame="scale", base=None)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(240, 2)) + 3.0 * RNG.integers(0, 2, size=(240, 1))
NEW = RNG.normal(size=(30, 2))
GIVEN = {"landmarks": X[:15], "length_scale": 1.5, "regularizer": Tikhonov(alpha=1e-2), "random_state": 0}
CHOSEN = {**GIVEN, "regularizer": None}


def close(got, want, tolerance=1e-10):
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("space", list(SPACES))
def test_rows_in_any_order_and_batches_are_one_fit(space):
    whole = scale_nystrom(**GIVEN, space=space).fit(X)
    rng = np.random.default_rng(0)
    for batches in (1, 7, 60):
        running = scale_nystrom(**GIVEN, space=space).partial_fit(X[:30])
        for part in np.array_split(rng.permutation(np.arange(30, 240)), batches):
            running.partial_fit(X[part])
        close(running.grad_log_density(NEW), whole.grad_log_density(NEW))
        np.testing.assert_allclose(running.centers_, whole.centers_, rtol=1e-12)


def test_the_first_call_resolves_what_a_fit_to_it_would():
    """Landmarks, length scale, base and unit; one call is the fit."""
    free = {"landmarks": 15, "base": "gaussian", "random_state": 0, "regularizer": Tikhonov(alpha=1e-2)}
    whole, running = scale_nystrom(**free).fit(X[:100]), scale_nystrom(**free).partial_fit(X[:100])
    np.testing.assert_array_equal(running.centers_, whole.centers_)
    np.testing.assert_array_equal(running.length_scale_, whole.length_scale_)
    np.testing.assert_array_equal(running.unit_, whole.unit_)
    close(running.grad_log_density(X[:100]), whole.grad_log_density_)
    close(running.log_density(NEW), whole.log_density(NEW))
    assert running.hyvarinen_loss(NEW) == pytest.approx(whole.hyvarinen_loss(NEW), rel=1e-9)
    running.partial_fit(X[100:])
    np.testing.assert_array_equal(running.length_scale_, whole.length_scale_)


def test_ridges_are_chosen_by_the_folds_of_the_stream():
    running = scale_nystrom(**CHOSEN).partial_fit(X[:50])
    for part in np.array_split(X[50:], 9):
        running.partial_fit(part)
    z = running._frame.forward(X)
    fold = RunningFolds(5, 0).deal(z)
    parts = [NystromStatistics(running._space, running._centers).accumulate(z[fold == k]) for k in range(5)]
    path = choose_ridge(parts)
    np.testing.assert_allclose(running.search_path_.losses, path.losses, rtol=1e-9)
    assert running.regularizer_ == path.regularizer
    whole = scale_nystrom(**{**GIVEN, "regularizer": path.regularizer}).fit(X)
    close(running.grad_log_density(NEW), whole.grad_log_density(NEW), 1e-9)


def test_too_few_rows_to_choose_by_have_the_default():
    running = scale_nystrom(**CHOSEN).partial_fit(X[:9])
    assert running.regularizer_ == Tikhonov()
    assert not hasattr(running, "search_path_")
    assert running.partial_fit(X[9:]).regularizer_ == running.search_path_.regularizer


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.booleans(), st.integers(0, 2**32 - 1))
def test_sums_merge_in_any_order(sizes, choosing, seed):
    rng = np.random.default_rng(seed)
    rows, w = rng.normal(size=(sum(sizes), 2)), rng.integers(0, 4, size=sum(sizes)).astype(float)
    w[0] = 1.0
    space, edges = SPACES["curl_free"](IMQ(dim=2), budget=Budget(n_jobs=1)), np.cumsum([0, *sizes])

    def empty():
        return NystromFolds.empty(space, NEW[:6], regularizer=None if choosing else Tikhonov())

    whole, merged = NystromStatistics(space, NEW[:6]).accumulate(rows, w), empty()
    for place in rng.permutation(len(sizes)):
        part = slice(edges[place], edges[place + 1])
        merged.merge(empty().accumulate(rows[part], w[part]))
    got, want = pooled_system(merged.parts), whole.system()
    close(got.squares, want.squares)
    close(got.rhs, want.rhs)
    assert merged.folds.seen == np.count_nonzero(w)


def test_sums_in_other_parts_are_not_merged():
    space = SPACES["diagonal"](IMQ(dim=2))
    chosen = NystromFolds.empty(space, NEW[:6]).accumulate(X)
    before = chosen.parts[0].total_weight
    with pytest.raises(InputError, match="in 1 parts cannot be merged with those in 5"):
        chosen.merge(NystromFolds.empty(space, NEW[:6], regularizer=Tikhonov()).accumulate(X))
    assert chosen.parts[0].total_weight == before


def test_pooling_leaves_the_parts_alone():
    running = NystromFolds.empty(SPACES["diagonal"](IMQ(dim=2)), X[:9]).accumulate(X)
    first, second = pooled_system(running.parts), pooled_system(running.parts)
    np.testing.assert_array_equal(first.squares, second.squares)
    reduced = running.parts[0].merge(running.parts[1]).merge(running.parts[2]).merge(running.parts[3])
    close(reduced.merge(running.parts[4]).system().squares, first.squares)


def test_weights_are_repetition():
    counts = np.random.default_rng(1).integers(0, 4, size=240)
    weighted = scale_nystrom(**GIVEN).partial_fit(X[:90], sample_weight=counts[:90])
    weighted.partial_fit(X[90:], sample_weight=1.0 * counts[90:])
    repeated = scale_nystrom(**GIVEN).partial_fit(np.repeat(X, counts, axis=0))
    close(weighted.grad_log_density(NEW), repeated.grad_log_density(NEW))


@pytest.mark.parametrize("parameters", [GIVEN, CHOSEN, {"landmarks": 20, "base": "gaussian", "random_state": 0}])
def test_goes_on_where_it_was_saved(tmp_path, parameters):
    running = scale_nystrom(**parameters).partial_fit(X[:100])
    save(running, tmp_path / "model.isopleth")
    again = load(tmp_path / "model.isopleth")
    for model in (running, again):
        model.partial_fit(X[100:])
    np.testing.assert_array_equal(again.grad_log_density(NEW), running.grad_log_density(NEW))
    assert again.regularizer_ == running.regularizer_


def test_float32_rows_are_summed_in_double_precision():
    rows = X.astype(np.float32)
    running = scale_nystrom(**GIVEN).partial_fit(rows[:100]).partial_fit(rows[100:])
    close(running.grad_log_density(NEW), scale_nystrom(**GIVEN).fit(rows.astype(float)).grad_log_density(NEW))


def test_what_is_refused_leaves_the_sums_as_they_were():
    running = scale_nystrom(**GIVEN).partial_fit(X[:100])
    bad = X[100:].copy()
    bad[3, 1] = np.inf
    for rows in (bad, X[:, :1]):
        with pytest.raises(ValueError, match=r"inf|features"):
            running.partial_fit(rows)
    with pytest.raises(InputError, match="negative"):
        running.partial_fit(X[:2], sample_weight=[1.0, -1.0])
    close(running.partial_fit(X[100:]).grad_log_density(NEW), scale_nystrom(**GIVEN).fit(X).grad_log_density(NEW))


@pytest.mark.parametrize(
    ("parameters", "rows", "message"),
    [
        (GIVEN, X[:1], "only 1 sample; expected at least 2"),
        (GIVEN, np.ones((5, 2)), "1 distinct row"),
        (GIVEN, X * [1.0, 0.0], "constant columns"),
        ({**GIVEN, "memory_limit": 10_000}, X, "memory_limit"),
        ({**GIVEN, "regularizer": Tikhonov(truncated=False)}, X, "truncated=True"),
    ],
)
def test_refusals_of_the_first_call(parameters, rows, message):
    model = scale_nystrom(**parameters)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(rows)
    with pytest.raises(ValueError, match="not fitted"):
        model.grad_log_density(NEW)


def test_fits_and_streams_begin_anew():
    running = scale_nystrom(**CHOSEN).partial_fit(X)
    whole = running.fit(X[:100])
    close(whole.grad_log_density(NEW), scale_nystrom(**CHOSEN).fit(X[:100]).grad_log_density(NEW))
    with pytest.warns(DataWarning, match="starts again"):
        whole.partial_fit(X[100:])
    assert not hasattr(whole, "weights_")
    assert not hasattr(whole, "grad_log_density_")
    close(whole.grad_log_density(NEW), scale_nystrom(**CHOSEN).partial_fit(X[100:]).grad_log_density(NEW))


@pytest.mark.parametrize("space", list(SPACES))
@pytest.mark.parametrize("part_rows", [1, 37, 1000])
def test_parts_are_the_fit_to_all_rows(space, part_rows):
    free = {"landmarks": 15, "base": "gaussian", "regularizer": Tikhonov(alpha=1e-2), "random_state": 0}
    whole = scale_nystrom(**free, space=space).fit(X)
    model = fit_parts(scale_nystrom(**free, space=space), ArrayParts(X, part_rows=part_rows))
    np.testing.assert_array_equal(model.centers_, whole.centers_)
    close(model.grad_log_density(NEW), whole.grad_log_density(NEW))
    assert not hasattr(model, "grad_log_density_")


def test_parts_choose_a_ridge_and_count_weights():
    one = fit_parts(scale_nystrom(**CHOSEN), ArrayParts(X, names=["a", "b"]))
    assert list(one.feature_names_in_) == ["a", "b"]
    running = scale_nystrom(**CHOSEN).partial_fit(X)
    assert one.regularizer_ == running.regularizer_
    several = fit_parts(scale_nystrom(**CHOSEN), ArrayParts(X, part_rows=11))
    assert 0.05 < several.regularizer_.alpha / one.regularizer_.alpha < 20.0
    counts = np.random.default_rng(1).integers(0, 4, size=240)
    weighted = fit_parts(scale_nystrom(**GIVEN), ArrayParts(X, 1.0 * counts, part_rows=50))
    close(weighted.grad_log_density(NEW), scale_nystrom(**GIVEN).fit(X, sample_weight=counts).grad_log_density(NEW))


def test_parts_without_rows():
    with pytest.raises(InputError, match="X has no rows of positive weight"):
        fit_parts(scale_nystrom(**GIVEN), ArrayParts(X, np.zeros(240)))


def test_the_warning_of_different_columns_points_at_the_call():
    rows = X * [1.0, 50.0]
    for fit in (
        lambda model: model.fit(rows),
        lambda model: model.partial_fit(rows),
        lambda model: fit_parts(model, ArrayParts(rows)),
    ):
        with pytest.warns(DataWarning, match="times as far as") as caught:
            fit(scale_nystrom(landmarks=10, random_state=0))
        assert caught[0].filename == __file__


def test_two_sums_to_be_merged_share_the_memory_limit():
    z, limit = np.random.default_rng(0).normal(size=(20_000, 4)), 8e6
    empty = partial(NystromFolds.empty, SPACES["curl_free"](IMQ(dim=4), Budget(limit, 1)), z[:60], merged=True)
    empty().accumulate(z[:100])  # allocates what is kept for good
    tracemalloc.start()
    one, other = empty().accumulate(z[:100]), empty().accumulate(z)
    one.merge(other)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit + 2 * z.nbytes
