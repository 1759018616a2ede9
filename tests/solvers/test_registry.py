"""All scaling solvers: optimality conditions, one optimum, float32, streaming, a strict array-API library."""

import array_api_strict
import numpy as np
import pytest

from few_cases import pairs
from isopleth.core.budget import Budget
from isopleth.kernels import KERNELS, SDO, Gaussian, Laplacian, get_kernel
from isopleth.operators import Operator
from isopleth.solvers import SCALING_SOLVERS, auto, fixed_point, natural_gradient, newton, standard_gradient

# These may stop at a product that is not positive, which only kernels with negative values have.
BRANCH_LEAVERS = (fixed_point, natural_gradient)

every_solver = pytest.mark.parametrize("solver", SCALING_SOLVERS.values(), ids=SCALING_SOLVERS)


def excused(solver, kernel, spread):
    """Need not arrive: some at kernels with negative values, the standard gradient at smooth kernels and near rows."""
    if solver is standard_gradient:
        return kernel.smoothness > 0.5 or spread < 1.0
    return solver in BRANCH_LEAVERS and not kernel.nonnegative


@pytest.mark.parametrize(("name", "kernel", "spread"), pairs(SCALING_SOLVERS, KERNELS, [0.3, 5.0]))
def test_every_solver_meets_the_optimality_conditions(problem, name, kernel, spread):
    solver = SCALING_SOLVERS[name]
    op, w = problem(get_kernel(kernel), spread=spread)
    solution = solver(op, w, 1e-8)
    f = op.matvec(solution.coefficients)
    true = np.max(np.abs(solution.coefficients * f / w - 1)) if np.all(f > 0) else np.inf
    if not solution.converged(1e-8):
        assert excused(solver, op.kernel, spread)
        assert solution.residual == pytest.approx(true)  # it has to say how far it came
        return
    assert true <= 1.001e-8
    np.testing.assert_allclose(solution.coefficients @ f, 1.0, rtol=1e-8)


@every_solver
@pytest.mark.parametrize("kernel", [Laplacian(), SDO(order=2)], ids=repr)
def test_all_solvers_reach_the_optimum_of_newton(problem, solver, kernel):
    op, w = problem(kernel, spread=2.0)
    solution = solver(op, w, 1e-11)
    assert solution.converged(1e-11)
    np.testing.assert_allclose(solution.coefficients, newton(op, w, 1e-13).coefficients, rtol=1e-10)


@every_solver
def test_a_weight_is_worth_as_many_rows(solver):
    rng = np.random.default_rng(5)
    x = 3.0 * rng.normal(size=(40, 2))
    copies = rng.integers(1, 4, size=40)
    merged = solver(Operator(Laplacian(), x), copies / copies.sum(), 1e-10)
    apart = solver(Operator(Laplacian(), np.repeat(x, copies, axis=0)), np.full(copies.sum(), 1 / copies.sum()), 1e-10)
    assert merged.converged(1e-10)
    assert apart.converged(1e-10)
    np.testing.assert_allclose(np.repeat(merged.values, copies), apart.values, rtol=1e-9)


@every_solver
def test_single_precision_ends_with_a_finite_answer(problem, solver):
    _, w = problem(Laplacian())
    x = 2.0 * np.random.default_rng(0).normal(size=(300, 3))
    single = solver(Operator(Laplacian(), x.astype(np.float32)).store(), w.astype(np.float32), 1e-4)
    assert single.coefficients.dtype == np.float32
    assert single.converged(1e-4)
    double = newton(Operator(Laplacian(), x).store(), w.astype(np.float32).astype(float), 1e-10)
    np.testing.assert_allclose(single.coefficients, double.coefficients, rtol=3e-4)


@every_solver
def test_streamed_and_stored_solve_alike(solver):
    rng = np.random.default_rng(2)
    x, w = 2.0 * rng.normal(size=(400, 4)), np.full(400, 1 / 400)
    streamed = Operator(Laplacian(), x, budget=Budget(5e5))
    assert not streamed.store().stored
    a, b = solver(Operator(Laplacian(), x).store(), w, 1e-9), solver(streamed, w, 1e-9)
    np.testing.assert_allclose(a.coefficients, b.coefficients, rtol=1e-7)


@every_solver
def test_what_cannot_be_reached_is_told_by_the_residual(problem, solver):
    op, w = problem(Laplacian(), spread=5.0)
    solution = solver(op, w, 1e-30)
    assert not solution.converged(1e-30)
    assert solution.residual < 1e-12


@every_solver
def test_solvers_run_on_a_strict_array_api_library(solver):
    kernel = Laplacian() if solver is standard_gradient else SDO()  # which needs hundreds of steps for smooth kernels
    rng = np.random.default_rng(3)
    x, w = 4.0 * rng.normal(size=(40, 2)), np.full(40, 1 / 40)
    strict = solver(Operator(kernel, array_api_strict.asarray(x)).store(), array_api_strict.asarray(w), 1e-8)
    np.testing.assert_allclose(
        np.asarray(strict.coefficients), solver(Operator(kernel, x), w, 1e-8).coefficients, rtol=1e-7
    )


def test_negative_kernels_with_one_far_row_are_solved_where_the_fixed_point_breaks(far_cluster):
    broken = 0
    for distance in np.linspace(3, 12, 10):
        op, w = far_cluster(distance)
        broken += not np.isfinite(fixed_point(op, w, 1e-8).residual)
        solution = auto(op, w, 1e-8)
        assert solution.converged(1e-8)
        assert np.all(solution.values > 0)
    assert broken > 0  # else this test tests nothing


def test_the_fixed_point_serves_kernels_without_negative_values(problem):
    op, w = problem(Gaussian())
    np.testing.assert_array_equal(auto(op, w).coefficients, fixed_point(op, w).coefficients)
