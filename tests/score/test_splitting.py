"""Conjugate gradients on a split system: the residual is the true one, whatever single precision makes of it."""

import array_api_strict
import numpy as np
import pytest

from isopleth.kernels import KERNELS
from isopleth.score.spaces import CurlFree, Splitting
from isopleth.score.system import SampleSystem


def build(n=300, dim=18, scale=0.3, kernel="imq"):
    rng = np.random.default_rng(1)
    return SampleSystem(
        CurlFree(KERNELS[kernel].bind(dim)), scale * rng.normal(size=(n, dim)), rng.dirichlet(np.ones(n))
    )


def solved(system, alpha, tol, max_iter=3000):
    def product(v):
        return system.product(v) + alpha * v

    y, n_iter = system.splitting(alpha).solve(product, system.rhs, tol, max_iter)
    return y, n_iter, np.linalg.norm(system.rhs - product(y)) / np.linalg.norm(system.rhs)


@pytest.mark.parametrize("kernel", ["imq", "gaussian", "matern52"])
@pytest.mark.parametrize("n", [100, 300])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
def test_the_true_residual_is_reached(kernel, n, tol):
    s = build(n, kernel=kernel)
    y, n_iter, residual = solved(s, 1e-3, tol)
    assert residual <= 1.01 * tol
    assert n_iter > 0
    if tol == 1e-10 and n == 100:  # a dense solution of 300 rows takes seconds, and the residual is enough
        matrix = s.matrix(copies=2) + 1e-3 * np.eye(s.size)
        want = s.space.unstack(np.linalg.solve(matrix, s.space.stack(s.rhs)), s.dim)
        np.testing.assert_allclose(y, want, atol=1e-7 * np.abs(want).max())


def test_single_precision_takes_few_steps_more_and_stops_at_the_limit():
    s = build(400, 30)
    double = s.splitting(1e-3)._steps()(s.rhs, 1e-8, 3000)[1]
    _, n_iter, _ = solved(s, 1e-3, 1e-8)
    assert double <= n_iter <= 1.4 * double
    assert solved(s, 1e-3, 1e-12, max_iter=5)[1] == 5


@pytest.mark.slow
def test_what_single_precision_cannot_do_double_precision_does():
    s = build(scale=0.05, kernel="gaussian")  # all slopes near 1: S is singular in single precision
    _, _, residual = solved(s, 1e-9, 1e-5)
    assert residual <= 1e-5
    flat = np.ones((300, 300))
    assert Splitting(flat, flat, np.zeros((300, 18)), np.ones((300, 1)), 1e-20)._steps() is None


def test_it_runs_on_a_strict_array_api_library():
    s = build(40, 18)
    strict = SampleSystem(s.space, *(array_api_strict.asarray(a) for a in (s._points, (s.root**2)[:, 0])))
    y, _ = strict.splitting(0.01).solve(lambda v: strict.product(v) + 0.01 * v, strict.rhs, 1e-10, 200)
    np.testing.assert_allclose(np.asarray(y), solved(s, 0.01, 1e-10)[0], atol=1e-8)


def test_a_right_hand_side_of_zeros_has_a_solution_of_zeros():
    s = build()
    y, n_iter = s.splitting(0.1).solve(lambda v: v, np.zeros((300, 18)), 1e-8, 10)
    assert n_iter == 0
    assert not y.any()
