"""Scaling solvers: optimality, one optimum, hard starts."""

import array_api_strict
import numpy as np
import pytest
from scipy.optimize import minimize

from isopleth.kernels import KERNELS, SDO, Gaussian, Laplacian
from isopleth.operators import Operator
from isopleth.solvers import SCALING_SOLVERS, auto, conjugate_gradients, fixed_point, newton


def problem(kernel, n=300, dim=3, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.2, 1.0, size=n)
    return Operator(kernel, spread * rng.normal(size=(n, dim))).store(), w / w.sum()


@pytest.mark.parametrize("solver", SCALING_SOLVERS.values(), ids=SCALING_SOLVERS)
@pytest.mark.parametrize("kernel", [k() for k in KERNELS.values()], ids=KERNELS)
@pytest.mark.parametrize("spread", [0.3, 1.0, 5.0])
def test_every_solver_meets_the_optimality_conditions(solver, kernel, spread):
    op, w = problem(kernel, spread=spread)
    solution = solver(op, w, 1e-8)
    f = op.matvec(solution.coefficients)
    if solver is fixed_point and not kernel.nonnegative and not solution.converged(1e-8):
        # It may break there, and has to say so.
        true = np.max(np.abs(solution.coefficients * f / w - 1))
        assert np.isinf(solution.residual) or solution.residual == pytest.approx(true)
        return
    assert solution.converged(1e-8)
    assert np.all(f > 0)
    assert np.max(np.abs(solution.coefficients * f / w - 1)) <= 1.001e-8
    np.testing.assert_allclose(solution.coefficients @ f, 1.0, rtol=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), SDO()], ids=repr)
def test_the_solution_minimises_the_objective_of_the_paper(kernel):
    op, w = problem(kernel, n=12, dim=2)
    k = op.dense()

    def objective(log_f):
        f = np.exp(log_f)
        alpha = np.linalg.solve(k, f)
        return -np.sum(w * np.log(f**2)) + f @ alpha, -2 * w + 2 * f * alpha

    alpha = auto(op, w, 1e-12).coefficients
    best = minimize(objective, np.log(k @ np.full(12, 1 / 12)), jac=True, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(np.exp(best.x), k @ alpha, rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_fixed_point_and_newton_reach_one_optimum(kernel):
    op, w = problem(kernel, spread=2.0)
    a, b = fixed_point(op, w, 1e-11).coefficients, newton(op, w, 1e-11).coefficients
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_the_fixed_point_needs_few_products():
    op, w = problem(Gaussian(), n=1000, dim=10, spread=0.7)
    assert fixed_point(op, w, 1e-8).n_iter <= 16  # log(1e8)/log(5.8) and a few to begin with; the plain map needs 27


def far_cluster(distance):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=(200, 2)) * 0.3, [[distance, 0.0]]])
    return Operator(SDO(order=3), x).store(), np.full(201, 1 / 201)


def test_negative_kernels_with_one_far_row_are_solved_where_the_fixed_point_breaks():
    broken = 0
    for distance in np.linspace(3, 12, 10):
        op, w = far_cluster(distance)
        broken += not np.isfinite(fixed_point(op, w, 1e-8).residual)
        solution = auto(op, w, 1e-8)
        assert solution.converged(1e-8)
        assert np.all(solution.values > 0)
    assert broken > 0  # else this test tests nothing


def test_streamed_and_stored_solve_alike():
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(500, 4)), np.full(500, 1 / 500)
    a = auto(Operator(SDO(), x).store(), w).coefficients
    b = auto(Operator(SDO(), x, memory_limit=1e6), w).coefficients
    np.testing.assert_allclose(a, b, rtol=1e-7)


def test_what_cannot_be_reached_is_told_by_the_residual():
    op, w = problem(Gaussian())
    solution = fixed_point(op, w, 1e-30)
    assert not solution.converged(1e-30)
    assert solution.residual < 1e-13


@pytest.mark.parametrize("kernel", [Gaussian(), SDO()], ids=repr)
def test_solvers_run_on_a_strict_array_api_library(kernel):
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(60, 2)), np.full(60, 1 / 60)
    strict = auto(Operator(kernel, array_api_strict.asarray(x)).store(), array_api_strict.asarray(w))
    np.testing.assert_allclose(np.asarray(strict.coefficients), auto(Operator(kernel, x), w).coefficients, rtol=1e-7)


def test_conjugate_gradients_against_a_direct_solve():
    rng = np.random.default_rng(4)
    a = rng.normal(size=(40, 40))
    a = a @ a.T + np.eye(40)
    b = rng.normal(size=40)
    x, n_iter = conjugate_gradients(lambda v: a @ v, b, tol=1e-12, max_iter=400)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-8, atol=1e-10)
    assert conjugate_gradients(lambda v: a @ v, b, tol=1e-12, max_iter=3)[1] == 3
    assert n_iter > 3
