"""Scores of tensors: NumPy's numbers, in the library and on the device of the rows."""

from functools import partial

import array_api_strict
import numpy as np
import pytest
from sklearn.base import clone

from isopleth import InputError, KernelScore, NystromKEF
from isopleth.core.arrays import NUMPY, Backend, to_numpy
from isopleth.core.budget import Budget
from isopleth.kernels import IMQ
from isopleth.score import (
    KEF,
    LandweberIteration,
    NuIteration,
    SpectralCutoff,
    Stein,
    Tikhonov,
    kernel_score,
    landmark_sums,
    selection,
    system,
)
from isopleth.score.spaces import SPACES, Splitting
from isopleth.score.system import Accuracy, solve

# The frame of the papers, in which length scales have the units of the columns.
scale_score = partial(KernelScore, frame="scale")
scale_nystrom = partial(NystromKEF, frame="scale", base=None)

torch = pytest.importorskip("torch")


def data(n=40, dim=3):
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 4, size=n).astype(float)
    weights[0] = 0.0
    return rng.normal(size=(n, dim)), weights, rng.normal(size=(6, dim))


@pytest.fixture
def never_quick(monkeypatch):
    """Systems as small as those of tests are solved where the rows are."""
    monkeypatch.setattr(system, "QUICK", 0)


def arrays(model):
    """Public fitted arrays by their names."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(model, name) for name in names}
    return {name: a for name, a in found.items() if hasattr(a, "shape") and a.ndim}


def assert_same(got, want, rtol=1e-9):
    np.testing.assert_allclose(to_numpy(got), want, rtol=rtol, atol=rtol * np.abs(want).max())


def outcome(function, *args):
    """The answer, or what refused it."""
    try:
        return function(*args)
    except InputError as error:
        return str(error)


def test_a_normaliser_is_that_of_arrays(never_quick):
    X, _, _ = data()
    model = KEF(kernel="gaussian", truncated=False, base="gaussian", solver="direct")
    want, got = (model.fit(a).log_normalizer(200, random_state=0) for a in (X, torch.asarray(X)))
    assert got.log_value == pytest.approx(want.log_value, rel=1e-9)


def test_single_precision_and_parameters(never_quick):
    X, _, _ = data()
    T = torch.asarray(X, dtype=torch.float32)
    model = KEF().fit(T)
    assert model.grad_log_density_.dtype == torch.float64
    assert_same(model.grad_log_density_, KEF().fit(T.numpy()).grad_log_density_)
    assert clone(model).get_params() == KEF().get_params()


def test_landmarks_may_be_tensors(never_quick):
    X, _, _ = data()
    want = scale_nystrom(landmarks=X[:7]).fit(X).dual_coef_
    strict = array_api_strict.asarray(X, device=array_api_strict.Device("device1"))
    for rows in (torch.asarray(X), strict):
        assert_same(scale_nystrom(landmarks=rows[:7, :]).fit(rows).dual_coef_, want)
        np.testing.assert_array_equal(scale_nystrom(landmarks=rows[:7, :]).fit(X).dual_coef_, want)
    with pytest.raises(InputError, match="landmarks requires a gradient"):
        scale_nystrom(landmarks=torch.asarray(X[:7]).requires_grad_()).fit(X)


def test_a_stream_lives_where_its_last_rows_do():
    X, _, _ = data()
    T, model = torch.asarray(X), scale_nystrom(landmarks=7, random_state=0)
    for rows, kind in ((T[:20], torch.Tensor), (X[20:30], np.ndarray), (T[30:], torch.Tensor)):
        found = arrays(model.partial_fit(rows))
        assert {"length_scale_", "unit_", "centers_", "dual_coef_"} <= found.keys()
        assert {name for name, a in found.items() if not isinstance(a, kind)} == set()


@pytest.mark.parametrize(
    ("space", "shape", "on_host"),
    [
        ("curl_free", (64, 128), True),
        ("curl_free", (1000, 128), False),
        ("diagonal", (400, 128), True),
        ("diagonal", (1000, 2), False),
    ],
)
def test_what_is_quickly_solved(space, shape, on_host):
    backend = Backend.of(torch.zeros(1))
    found = system.solving_backend(SPACES[space](IMQ(dim=shape[1])), np.zeros(shape), backend)
    assert found == (NUMPY if on_host else backend)


def test_systems_that_are_quickly_solved_are_solved_on_the_host(monkeypatch):
    X, _, _ = data()
    solved = []

    class Spy(system.SampleSystem):
        def __init__(self, space, z, *args, **kwargs):
            solved.append(type(z))
            super().__init__(space, z, *args, **kwargs)

    for module in (kernel_score, selection):
        monkeypatch.setattr(module, "SampleSystem", Spy)
    for model in (KEF(), scale_score(cv=2)):
        np.testing.assert_array_equal(
            model.fit(torch.asarray(X)).grad_log_density_.numpy(), model.fit(X).grad_log_density_
        )
    assert set(solved) == {np.ndarray}
    monkeypatch.setattr(system, "QUICK", 0)
    solved.clear()
    scale_score(cv=2).fit(torch.asarray(X)).dual_coef_  # noqa: B018
    assert set(solved) == {torch.Tensor}


def test_single_precision_helps_tensors_too(never_quick):
    X = np.random.default_rng(0).normal(size=(260, 18))
    want, got = (KEF(alpha=1e-3, tol=1e-9).fit(a) for a in (X, torch.asarray(X)))
    assert got.n_iter_ <= 1.3 * want.n_iter_
    assert_same(got.grad_log_density_, want.grad_log_density_, rtol=1e-7)


def test_what_cannot_be_factorised_is_an_error_for_tensors_too(never_quick):
    X, _, _ = data(60, 2)
    model = Stein(kernel="gaussian", alpha=1e-30, length_scale=50.0, solver="direct")
    for a in (X, torch.asarray(X)):
        with pytest.raises(InputError, match=r"alpha = 1e-30 is lost in the rounding of .*float64"):
            model.fit(a)
    flat = torch.ones((300, 300), dtype=torch.float32)
    assert Splitting(flat, flat, torch.zeros((300, 18)), torch.ones((300, 1)), 1e-20)._steps() is None


REGULARIZERS = (Tikhonov(0.01), SpectralCutoff(energy=0.8), NuIteration(0.05), LandweberIteration(steps=6))


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("solver", ["direct", "eigen", "cg", "lanczos", "iterate"])
def test_solvers_run_on_a_strict_array_api_library(space, solver):
    X, _, _ = data(10, 4)
    share = np.full(len(X), 1.0 / len(X))
    kind = SPACES[space](IMQ(dim=4))
    want, got = (
        system.SampleSystem(kind, *(send(a) for a in (X, share))) for send in (np.asarray, array_api_strict.asarray)
    )
    for regularizer in REGULARIZERS:
        one = outcome(solve, want, regularizer, solver, Accuracy(1e-10, 500))
        other = outcome(solve, got, regularizer, solver, Accuracy(1e-10, 500))
        if isinstance(one, str):
            assert other == one
        else:
            np.testing.assert_allclose(np.asarray(got.fitted(other.at_samples)), want.fitted(one.at_samples), atol=1e-8)


@pytest.mark.parametrize("space", SPACES)
def test_sums_by_matrices_are_those_by_profiles(space, monkeypatch):
    rng = np.random.default_rng(0)
    z, x, w = rng.normal(size=(20, 3)), rng.normal(size=(50, 3)), rng.random(50)
    kind = SPACES[space](IMQ(dim=3))

    def sums(send):
        points, rows, weights = (send(a) for a in (z, x, w))
        out = landmark_sums.empty_squares(kind, points)
        landmark_sums.add_squares(kind, points, rows, weights, out, Budget(2**16))
        return to_numpy(landmark_sums.stacked(out))

    want = sums(np.asarray)
    assert landmark_sums.bytes_of_squares(kind, *z.shape) == want.nbytes
    np.testing.assert_allclose(sums(torch.asarray), want, rtol=1e-12, atol=1e-14)
    monkeypatch.setattr(landmark_sums, "host_view", lambda a: a)  # as on another device
    np.testing.assert_allclose(sums(torch.asarray), want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("model", [KernelScore(), NystromKEF(random_state=0), scale_score()], ids=repr)
def test_losses_of_tensors_in_every_frame_are_numpy_s(model):
    X, _, new = data()
    want = clone(model).fit(X).score(new)
    for send in (torch.asarray, array_api_strict.asarray):
        assert clone(model).fit(send(X)).score(send(new)) == pytest.approx(want, rel=1e-9)
