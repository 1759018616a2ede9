"""The ridge of a Nystrom form by rows held out: against fits and losses that look at the rows."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

from isopleth import InputError, NystromKEF
from isopleth.core.budget import Budget
from isopleth.core.rows import held_out_parts
from isopleth.kernels import IMQ
from isopleth.score import Tikhonov, ridge_selection
from isopleth.score.field import GaussianBase, KernelTerm
from isopleth.score.ridge_selection import choose_ridge, parts_within_memory
from isopleth.score.spaces import SPACES
from isopleth.score.statistics import NystromStatistics

scale_nystrom = partial(NystromKEF, frame="scale", base=None)


def rows(n=300, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3.0 * rng.integers(0, 2, size=(n, 1))


def statistics(space, z, w, landmarks, base):
    return NystromStatistics(space, landmarks, base).accumulate(z, w)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("with_base", [False, True])
def test_losses_are_those_of_rows_held_out(name, with_base):
    z, w = rows(), np.random.default_rng(1).uniform(0.5, 2.0, 300)
    space, landmarks = SPACES[name](IMQ(dim=2)), z[:12]
    base = GaussianBase.fit(z, w) if with_base else None
    held = held_out_parts(300, 3)
    path = choose_ridge([statistics(space, z[part], w[part], landmarks, base) for part in held])
    for a in (0, 4, 7):
        want = 0.0
        for part in held:
            c = statistics(space, z[~part], w[~part], landmarks, base).solve(Tikhonov(float(path.alphas[a])))
            term = KernelTerm(space, landmarks, c)
            value = term.value(z[part])
            loss = term.divergence(z[part]) + 0.5 * np.sum(value**2, axis=1)
            if base is not None:
                loss += np.sum(value * base.value(z[part]), axis=1)
            want += w[part] @ loss
        assert path.losses[a] == pytest.approx(want / w.sum(), rel=1e-6, abs=1e-9)


def test_the_choice_is_near_the_smallest_loss_and_falls_with_the_number_of_rows():
    found = []
    for n in (200, 5000):
        path = scale_nystrom(landmarks=40, random_state=0).fit(rows(n)).search_path_
        assert path.losses[path.best_index] <= path.losses.min() + 0.5 * path.errors[path.best_index]
        assert (path.alphas >= 0.3 / n).all()
        found.append(path.regularizer.alpha)
    assert found[1] < found[0]


@pytest.mark.parametrize("space", SPACES)
def test_the_choice_beats_a_fixed_ridge_where_there_are_many_rows(space):
    X = np.random.default_rng(2).normal(size=(4000, 3))
    chosen = scale_nystrom(space=space, landmarks=60, random_state=0).fit(X)
    fixed = scale_nystrom(space=space, regularizer=Tikhonov(), landmarks=60, random_state=0).fit(X)
    errors = [np.mean((model.grad_log_density_ + X) ** 2) for model in (chosen, fixed)]
    assert errors[0] < 0.6 * errors[1]
    assert str(chosen.search_path_).count("<- chosen") == 1
    same = scale_nystrom(space=space, regularizer=chosen.regularizer_, landmarks=60, random_state=0).fit(X)
    np.testing.assert_allclose(same.grad_log_density_, chosen.grad_log_density_, rtol=1e-6, atol=1e-8)
    assert not hasattr(same, "search_path_")


def test_few_rows_take_the_ridge_that_there_was():
    model = scale_nystrom(landmarks=3, random_state=0).fit(rows(9))
    assert model.regularizer_ == Tikhonov()
    assert not hasattr(model, "search_path_")


def test_memory_makes_fewer_parts_and_then_refuses():
    z = rows(50, 2)
    each = 8 * (20 * 2) ** 2
    for limit, parts in ((1e6, 5), (8 * each, 3), (7 * each, 2)):
        assert len(parts_within_memory(SPACES["curl_free"](IMQ(dim=2), budget=Budget(limit)), z[:20])) == parts
    space = SPACES["curl_free"](IMQ(dim=2), budget=Budget(6.5 * each))
    with pytest.raises(InputError, match=r"folds of 20 landmarks .* give a regularizer, use 19 landmarks at most"):
        parts_within_memory(space, z[:20])
    assert len(parts_within_memory(space, z[:19])) == 2  # as the message says


@pytest.mark.slow
@pytest.mark.parametrize("memory_limit", [2**30, 2**25])
def test_the_default_has_unknowns_for_a_few_seconds_in_any_number_of_columns(memory_limit):
    X = rows(400, 50)
    model = scale_nystrom(memory_limit=memory_limit, random_state=0, n_jobs=1)
    tracemalloc.start()
    model.fit(X)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken <= memory_limit + X.nbytes
    assert len(model.centers_) * 50 <= 1500
    assert np.isfinite(model.grad_log_density_).all()
    if memory_limit == 2**30:
        assert len(model.centers_) == 30
        assert len(scale_nystrom(random_state=0).fit(X[:, :2]).centers_) == 300
        assert len(scale_nystrom(space="diagonal", random_state=0).fit(X).centers_) == 300


@pytest.mark.parametrize(("columns", "limit", "landmarks"), [(2, 2**30, 40), (10, 2**30, 15), (10, 2**20, 9)])
def test_the_default_is_bounded_by_the_unknowns_and_by_memory(monkeypatch, columns, limit, landmarks):
    monkeypatch.setattr(ridge_selection, "MOST_LANDMARKS", 40)
    monkeypatch.setattr(ridge_selection, "MOST_UNKNOWNS", 150)
    X = rows(200, columns)
    model = scale_nystrom(memory_limit=limit, random_state=0, n_jobs=1)
    tracemalloc.start()
    model.fit(X)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken <= limit + 8 * X.nbytes
    assert len(model.centers_) == landmarks
    assert len(scale_nystrom(space="diagonal", random_state=0).fit(X).centers_) == 40


def test_the_default_of_a_stream_is_that_of_a_fit(monkeypatch):
    monkeypatch.setattr(ridge_selection, "MOST_UNKNOWNS", 200)
    X = rows(200, 50)
    assert (
        scale_nystrom(random_state=0).partial_fit(X).centers_.shape
        == scale_nystrom(random_state=0).fit(X).centers_.shape
    )
