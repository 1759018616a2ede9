"""Scores with a kernel at every row stay within their memory limit, whatever path that leaves them."""

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from isopleth import KernelScore
from isopleth.core.budget import Budget
from isopleth.kernels import IMQ
from isopleth.operators import CURL_FREE, Operator, vector_blocks
from isopleth.score import KEF, SSGE, NuMethod, Stein, Tikhonov, selection
from isopleth.score.spaces import SPACES
from isopleth.score.system import LEAST_BASIS, MemoryPlan, SampleSystem

# The frame of the papers, in which length scales have the units of the columns.
scale_score = partial(KernelScore, frame="scale")


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 4.0 * rng.integers(0, 2, size=(n, 1))


def peak(fit, X):
    """Return the peak of memory in addition to the rows, in bytes."""
    tracemalloc.start()
    try:
        fit(X)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(autouse=True)
def imported():
    scale_score().fit(rows(30, 2))


@pytest.mark.parametrize(
    ("n", "d", "mebibytes", "jobs"), [pytest.param(1400, 10, 64, 2, marks=pytest.mark.slow), (400, 8, 6, 1)]
)
def test_a_choice_by_folds_stays_within_the_limit(n, d, mebibytes, jobs):
    X, limit = rows(n, d), mebibytes * 2**20
    model = scale_score(length_scale="median", base=None, memory_limit=limit, n_jobs=jobs)
    assert peak(model.fit, X) <= limit + X.nbytes


@pytest.mark.parametrize(
    "model",
    [
        KEF(alpha=0.1, truncated=False),
        KEF(alpha=0.1, solver="lanczos"),
        NuMethod(steps=5),
        NuMethod(alpha=0.1),
        SSGE(threshold=0.1),
        SSGE(threshold=0.1, space="curl_free"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("mebibytes", [pytest.param(24, marks=pytest.mark.slow), 44])
def test_given_strengths_stay_within_the_limit(model, mebibytes):
    X, limit = rows(1400, 6), mebibytes * 2**20
    model.set_params(memory_limit=limit, n_jobs=1, tol=1e-4)
    assert peak(model.fit, X) <= limit + X.nbytes


def test_a_splitting_that_does_not_fit_is_left_out():
    X = rows(1100, 20)
    limit = 2 * MemoryPlan.of(SPACES["curl_free"](IMQ(dim=20), budget=Budget(n_jobs=1)), *X.shape).pairs + 2**24
    model = KEF(alpha=0.1, truncated=False, memory_limit=limit, n_jobs=1)
    assert peak(model.fit, X) <= limit + X.nbytes


def test_a_plan_counts_every_vector_that_is_kept():
    space = SPACES["curl_free"](IMQ(dim=20), budget=Budget(2**28, 1))
    plan, more = (MemoryPlan.of(space, 1100, 20, beside=beside) for beside in (0, 3))
    assert plan.stores
    assert plan.fixed > plan.scratch
    assert more.fixed - plan.fixed == 3 * 8 * 1100 * 20
    assert plan.basis - more.basis == 3  # the stored arrays take the memory of as many Krylov vectors
    least = replace(plan, limit=plan.to_store)
    assert least.stores
    assert least.basis == LEAST_BASIS
    assert not replace(plan, limit=plan.to_store - 1).stores


def test_a_system_plans_for_no_vectors_beside_its_own():
    space, X = SPACES["curl_free"](IMQ(dim=3), budget=Budget(n_jobs=1)), rows(50, 3)
    assert SampleSystem(space, X, np.full(50, 1 / 50)).plan == MemoryPlan.of(space, 50, 3, beside=0)


def test_scores_of_new_rows_by_refits_stay_within_the_limit():
    model = Stein(out_of_sample="augmented", memory_limit=2**22, n_jobs=1).fit(rows(200, 2))
    new = rows(10_000, 2, seed=1)
    assert peak(model.grad_log_density, new) <= 2**22 + 10 * new.nbytes  # all rows at once would take 64 MiB


def test_a_stored_product_takes_its_rows_in_blocks(monkeypatch):
    x = rows(300, 7)
    operator = Operator(IMQ(), x, block=CURL_FREE).store()
    v = rows(300, 7, seed=1)
    whole = operator.matvec(v)
    for pairs in (1, 300 * 7, 300 * 299):
        monkeypatch.setattr(vector_blocks, "HOST_PAIRS", pairs)
        np.testing.assert_allclose(operator.matvec(v), whole, rtol=0, atol=1e-12 * np.abs(whole).max())
    monkeypatch.setattr(vector_blocks, "HOST_PAIRS", 3000)
    assert peak(operator.matvec, v) < x.shape[0] ** 2 * 8 / 2


def test_of_many_rows_only_as_many_are_held_out_as_tell_enough(monkeypatch):
    """Five fits to almost all of many rows would take five times the time, for a mean that is known well enough from one."""
    seen = []
    terms = selection.held_out_terms

    def counted(space, z, weights, part, *rest):
        seen.append((len(z), int(part.sum())))
        return terms(space, z, weights, part, *rest)

    monkeypatch.setattr(selection, "held_out_terms", counted)
    monkeypatch.setattr(selection, "HELD_OUT", 100)
    monkeypatch.setattr(selection, "COMPARED_ROWS", 60)
    path = scale_score(n_jobs=1).fit(rows(300, 2)).search_path_
    assert [size for size in seen if size[0] == 300] == [(300, 60)] * 2
    assert len([size for size in seen if size[0] == 60]) == 5 * 5
    assert np.isfinite(path.path_losses).all()
    seen.clear()
    given = Tikhonov(0.01, truncated=False)
    assert np.isfinite(scale_score(regularizer=given, n_jobs=1).fit(rows(100, 2)).search_path_.path_losses).all()
    assert [held for n, held in seen if n == 100] == [20] * 5
