"""The linear system of the samples: all solvers give one answer."""

import numpy as np
import pytest

from few_cases import pairs
from isopleth import InputError
from isopleth.kernels import KERNELS
from isopleth.score import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov
from isopleth.score import system as module
from isopleth.score.spaces import SPACES
from isopleth.score.system import Accuracy, SampleSystem, choose_solver, multipliers_of_path, solve, solve_truncated

ACCURACY = Accuracy(1e-11, 3000)
REGULARIZERS = [
    Tikhonov(0.01),
    Tikhonov(0.01, truncated=False),
    LandweberIteration(steps=20),
    NuIteration(steps=10),
    NuIteration(0.01, nu=2.0),
    SpectralCutoff(threshold=0.05),
]


def build(space="curl_free", n=40, dim=3, kernel="imq", base=True, seed=0, whole=False):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, dim))
    made = SPACES[space](KERNELS[kernel].bind(dim))
    return SampleSystem(made, z, rng.dirichlet(np.ones(n)), -z if base else None, whole=whole)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("shape", [(40, 3), (12, 20), (2, 5)])
def test_the_matrix_is_the_product_in_the_span_of_the_rows(space, shape):
    s = build(space, *shape)
    assert s.dim == min(shape[1], shape[0] - 1) or shape[0] > shape[1]
    got = s.space.unstack(s.matrix() @ s.space.stack(s.rhs), s.dim)
    np.testing.assert_allclose(got, s.product(s.rhs), atol=1e-13)
    assert s.size == len(s.matrix())


@pytest.mark.parametrize(
    ("shape", "space", "dense"), pairs([(40, 3), (12, 20), (2, 5), (3, 3)], SPACES, [0, 10**6]), ids=str
)
def test_the_largest_eigenvalue_is_that_of_all_columns(monkeypatch, space, shape, dense):
    monkeypatch.setattr(module, "DENSE", dense)
    s, whole = build(space, *shape), build(space, *shape, whole=True)
    assert whole.dim == shape[1]
    want = np.linalg.eigvalsh(whole.matrix())[-1]
    assert s.largest == pytest.approx(want, rel=1e-12)
    assert whole.largest == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(("regularizer", "space", "shape"), pairs(REGULARIZERS, SPACES, [(40, 3), (12, 20)]), ids=str)
def test_all_solvers_give_one_answer(regularizer, space, shape):
    s = build(space, *shape, kernel="matern52")
    want = solve(s, regularizer, "eigen", ACCURACY)
    used = 0
    for solver in ("auto", "direct", "cg", "lanczos", "iterate"):
        try:
            got = solve(s, regularizer, solver, ACCURACY)
        except InputError:
            continue
        used += 1
        scale = np.abs(want.at_samples).max()
        np.testing.assert_allclose(got.at_samples, want.at_samples, atol=1e-8 * scale, err_msg=solver)
        assert got.factor == pytest.approx(want.factor, rel=1e-10)
        multipliers = got.multipliers
        if multipliers is None:
            multipliers = solve_truncated(s, regularizer, solver, ACCURACY).multipliers
        np.testing.assert_allclose(
            s.product(multipliers), s.product(want.multipliers), atol=1e-5 * np.abs(s.product(want.multipliers)).max()
        )
    assert used >= 2


@pytest.mark.parametrize("dense", [0, 10**6])
def test_a_path_is_its_members(monkeypatch, dense):
    monkeypatch.setattr(module, "DENSE", dense)
    s = build(n=60, kernel="matern52")
    for one in (Tikhonov(), Tikhonov(truncated=False), NuIteration(steps=1), SpectralCutoff(threshold=1.0)):
        regularizers = [one.at(alpha) for alpha in (0.3, 0.1, 0.03)]
        assert [type(r) for r in regularizers] == [type(one)] * 3
        got, factors = multipliers_of_path(s, regularizers, ACCURACY, dense > 0)
        for r, multipliers, factor in zip(regularizers, got, factors, strict=True):
            want = solve(s, r, "eigen", ACCURACY)
            np.testing.assert_allclose(factor * s.rhs + s.product(multipliers), want.at_samples, atol=1e-6)
            np.testing.assert_allclose(s.product(multipliers), s.product(want.multipliers), atol=1e-6)
            assert factor == want.factor


def test_what_auto_takes(monkeypatch):
    s = build()
    assert [choose_solver(s, r) for r in REGULARIZERS] == ["direct"] * 2 + ["eigen"] * 4
    monkeypatch.setattr(module, "DENSE", 0)
    assert [choose_solver(s, r) for r in REGULARIZERS] == ["cg"] * 2 + ["iterate"] * 3 + ["lanczos"]
    assert choose_solver(s, SpectralCutoff(count=3)) == "eigen"


def test_solvers_that_do_not_fit_say_so():
    s = build()
    for solver in ("direct", "cg"):
        with pytest.raises(InputError, match=f"solver = '{solver}' solves Tikhonov systems"):
            solve(s, NuIteration(steps=3), solver, ACCURACY)
    with pytest.raises(InputError, match="'iterate' takes the steps of an iteration"):
        solve(s, Tikhonov(), "iterate", ACCURACY)
    with pytest.raises(InputError, match="does not see all eigenvalues"):
        solve(s, SpectralCutoff(energy=0.9), "lanczos", ACCURACY)


def test_the_splitting_saves_steps_in_many_columns():
    s = build(n=120, dim=32, base=False)
    with_it = solve(s, Tikhonov(1e-4), "cg", ACCURACY)
    s.splitting = lambda alpha: None
    without = solve(s, Tikhonov(1e-4), "cg", ACCURACY)
    assert with_it.n_iter < without.n_iter
    np.testing.assert_allclose(with_it.at_samples, without.at_samples, atol=1e-8 * np.abs(without.at_samples).max())
    assert build(n=120, dim=8).splitting(1e-4) is None
