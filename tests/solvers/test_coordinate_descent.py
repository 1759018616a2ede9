"""Coordinate descent: descent, its blocks, its memory."""

import tracemalloc

import numpy as np
import pytest

from isopleth.core.budget import Budget
from isopleth.kernels import SDO, Gaussian, Laplacian
from isopleth.operators import Operator
from isopleth.solvers import coordinate_descent, newton
from isopleth.solvers.scaling import _positive_root


def dual(k, alpha, w):
    return 0.5 * alpha @ k @ alpha - np.sum(w * np.log(alpha))


@pytest.mark.parametrize("kernel", [Gaussian(), SDO(order=3)], ids=repr)
def test_every_sweep_lowers_the_objective(problem, kernel):
    op, w = problem(kernel, n=100, dim=2, spread=3.0)
    solutions = [coordinate_descent(op, w, 1e-30, max_iter=sweeps) for sweeps in range(8)]
    heights = [dual(op.dense(), solution.coefficients, w) for solution in solutions]
    assert np.all(np.diff(heights) < 0)


def test_blocks_of_rows_are_one_sweep_over_all_of_them(problem):
    op, w = problem(Laplacian(), n=1100, dim=2)  # two full blocks and a part of a third
    k, alpha = op.dense(), coordinate_descent(op, w, max_iter=0).coefficients.copy()
    for i in range(1100):
        c = k[i] @ alpha - alpha[i]
        alpha[i] = np.roots([1.0, c, -w[i]]).max()
    np.testing.assert_allclose(coordinate_descent(op, w, max_iter=1).coefficients, alpha, rtol=1e-9)


@pytest.mark.parametrize("c", [0.0, 1e-3, -1e-3, 1e9, -1e9])
def test_the_root_loses_no_digits(c):
    root = _positive_root(2.0, c, 1e-3)
    assert root > 0
    assert 2.0 * root**2 + c * root == pytest.approx(1e-3, rel=1e-6 if c < -1 else 1e-12, abs=1e3 if c < -1 else 0.0)


@pytest.mark.parametrize("c", [0.5, 2.0])
def test_the_root_loses_no_digits_where_the_kernel_is_almost_zero(c):
    assert _positive_root(1e-12, c, 1.0) == pytest.approx(1 / c - 1e-12 / c**3, rel=1e-15)  # Taylor series in k


def test_negative_kernels_with_one_far_row_are_solved_in_few_sweeps(far_cluster):
    for distance in np.linspace(3, 12, 10):
        op, w = far_cluster(distance)
        solution = coordinate_descent(op, w, 1e-8)
        assert solution.converged(1e-8)
        assert solution.n_iter <= 25
        np.testing.assert_allclose(solution.coefficients, newton(op, w, 1e-10).coefficients, rtol=1e-6)


@pytest.mark.parametrize("limit", [1e6, 4e6])
def test_a_streamed_sweep_stays_within_the_memory_limit(limit):
    n = 1500
    x, w = np.random.default_rng(0).normal(size=(n, 5)), np.full(n, 1 / n)
    op = Operator(Gaussian(), x, budget=Budget(limit, 2))
    run = lambda: coordinate_descent(op, w, max_iter=1)  # noqa: E731
    run()  # caches and thread pools are not what is measured
    tracemalloc.start()
    run()
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert top < limit + 20 * 8 * n  # and a few vectors
    assert n * n * 8 > 4e6
