"""Fits of product kernels to rows with gaps, against slow forms of the objective and against held-out rows."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from isopleth.density.column_fit import (
    GapProblem,
    fill_from_neighbours,
    fit_mixture,
    fit_root,
    kkt_residual,
    multiplicative_step,
    solve_gaps,
)
from isopleth.errors import InputError
from isopleth.kernels.product import GAUSSIAN_FACTOR, LAPLACIAN_FACTOR, ColumnKernel
from isopleth.operators import Operator

FACTORS = pytest.mark.parametrize("factor", [GAUSSIAN_FACTOR, LAPLACIAN_FACTOR], ids=["gaussian", "laplacian"])
BUDGET = {"memory_limit": 2.0**28, "n_jobs": 1}


def table(rng, n, missing=0.3, length_scale=0.6):
    """Two clusters in two numbers and two categories that go with them."""
    cluster = rng.integers(2, size=n)
    numbers = (rng.normal(size=(n, 2)) + 3.0 * cluster[:, None]) / length_scale
    words = np.column_stack([(cluster + (rng.uniform(size=n) < 0.2)) % 2, rng.integers(3, size=n)])
    Z = np.column_stack([numbers, words]).astype(float)
    Z[rng.uniform(size=Z.shape) < missing] = np.nan
    return Z[~np.isnan(Z).all(axis=1)]


def kernel(factor):
    return ColumnKernel(4, factor, (0.1, 0.3), (3, 4))


def slow_kernel(k, x, y, columns):
    total = 0.0
    for j in columns:
        if j < k.n_numeric:
            total += 0.5 * (x[j] - y[j]) ** 2 if k.factor is GAUSSIAN_FACTOR else abs(x[j] - y[j])
        elif x[j] != y[j]:
            total -= math.log(k.rho[j - k.n_numeric])
    return math.exp(-total)


def slow_overlap(k, x, y, columns):
    """Relative overlaps, from the formulas of single columns."""
    total = 1.0
    for j in columns:
        if j < k.n_numeric:
            u = abs(x[j] - y[j])
            total *= math.exp(-u * u / 4) if k.factor is GAUSSIAN_FACTOR else (1 + u) * math.exp(-u)
        elif x[j] != y[j]:
            r, m = k.rho[j - k.n_numeric], k.sizes[j - k.n_numeric]
            total *= (2 * r + (m - 2) * r * r) / (1 + (m - 1) * r * r)
    return total


def slow_objective(k, centers, Z, w, alpha):
    """The objective pair by pair, with M_i scaled as it comes."""
    every = range(Z.shape[1])
    value, gaps = 0.0, 0.0
    for row, weight in zip(Z, w, strict=True):
        seen = [j for j in every if not np.isnan(row[j])]
        missing = [j for j in every if np.isnan(row[j])]
        a = np.array([slow_kernel(k, row, c, seen) for c in centers]) * alpha
        G = np.array([[slow_overlap(k, c, e, missing) for c in centers] for e in centers])
        value -= weight * math.log(a @ G @ a)
        gaps += weight * len(missing) / Z.shape[1]
    K = np.array([[slow_kernel(k, c, e, every) for c in centers] for e in centers])
    S = np.array([[slow_overlap(k, c, e, every) for c in centers] for e in centers])
    return value + gaps * math.log(alpha @ S @ alpha) + alpha @ K @ alpha


def small(factor, n=18):
    rng = np.random.default_rng(0)
    Z = table(rng, n)
    centers = table(rng, 6, missing=0.0)
    w = rng.dirichlet(np.ones(len(Z)))
    return kernel(factor), centers, Z, w, rng.uniform(0.1, 0.5, size=len(centers))


@FACTORS
def test_the_objective_and_its_derivatives(factor):
    k, centers, Z, w, alpha = small(factor)
    problem = GapProblem(k, centers, Z, w, **BUDGET)
    other = alpha * np.linspace(0.5, 2.0, len(alpha))
    change = problem.sides(other)[0] - problem.sides(alpha)[0]
    expected = slow_objective(k, centers, Z, w, other) - slow_objective(k, centers, Z, w, alpha)
    assert change == pytest.approx(expected, rel=1e-10)
    step = 1e-6
    _, N, D = problem.sides(alpha)
    for j in range(len(alpha)):
        e = step * np.eye(len(alpha))[j]
        rise = problem.sides(alpha + e)[0] - problem.sides(alpha - e)[0]
        assert 2 * (D - N)[j] == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-8)
        up, down = ((s[2] - s[1]) for s in (problem.sides(alpha + e), problem.sides(alpha - e)))
        np.testing.assert_allclose(problem.hessian(alpha)[j], (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


@FACTORS
def test_multiplicative_steps_never_increase_the_objective(factor):
    k, centers, Z, w, alpha = small(factor, n=40)
    problem = GapProblem(k, centers, Z, w, **BUDGET)
    last = math.inf
    for _ in range(200):
        value, N, D = problem.sides(alpha)
        assert value <= last + 1e-12
        last, alpha = value, multiplicative_step(alpha, N, D)
    assert kkt_residual(alpha, *problem.sides(alpha)[1:]) < 0.1


@FACTORS
def test_the_optimality_conditions_hold(factor):
    rng = np.random.default_rng(1)
    Z = table(rng, 150, missing=0.3)
    fit = fit_root(kernel(factor), Z, np.ones(len(Z)), memory_limit=2.0**28)
    assert fit.residual < 1e-6
    assert (np.diff(fit.objective) <= 1e-12).all()
    assert fit.objective[0] - fit.objective[-1] > 1e-4
    # and no other point nearby is better, by the slow form of the whole
    problem = GapProblem(kernel(factor), fit.density.centers, Z, np.full(len(Z), 1 / len(Z)), **BUDGET)
    best = problem.sides(fit.density.coefficients)[0]
    for seed in range(5):
        factor_ = np.exp(1e-2 * np.random.default_rng(seed).normal(size=len(fit.density.coefficients)))
        assert problem.sides(fit.density.coefficients * factor_)[0] > best


@FACTORS
def test_without_gaps_it_is_the_scaling_problem(factor):
    rng = np.random.default_rng(2)
    Z = table(rng, 150, missing=0.0)
    k, w = kernel(factor), np.full(150, 1 / 150)
    fit = fit_root(k, Z, w)
    alpha, c = fit.density.coefficients, fit.density.centers
    np.testing.assert_allclose(alpha * Operator(k, c).matvec(alpha), 1 / 150, rtol=1e-7)
    general, residual, _ = solve_gaps(GapProblem(k, c, c, w, **BUDGET), np.full(150, 0.05), tol=1e-8)
    assert residual < 1e-8
    np.testing.assert_allclose(general, alpha, rtol=1e-5)


@FACTORS
def test_repeated_rows_are_weights(factor):
    rng = np.random.default_rng(3)
    Z = table(rng, 90, missing=0.2)
    w = rng.integers(1, 4, size=len(Z))
    fits = [fit_root(kernel(factor), rows, v) for rows, v in ((Z, w), (np.repeat(Z, w, axis=0), np.ones(w.sum())))]
    rows = table(rng, 30)
    np.testing.assert_allclose(*(fit.density.log_density(rows) for fit in fits), rtol=1e-10)
    mixtures = [
        fit_mixture(kernel(factor), rows, v) for rows, v in ((Z, w), (np.repeat(Z, w, axis=0), np.ones(w.sum())))
    ]
    np.testing.assert_allclose(*(fit.density.log_density(rows) for fit in mixtures), rtol=1e-10)


def test_matrices_that_are_made_again_give_the_same_sums():
    rng = np.random.default_rng(4)
    Z = table(rng, 120, missing=0.2)
    centers, w = table(rng, 40, missing=0.0), np.full(len(Z), 1 / len(Z))
    problems = [GapProblem(kernel(LAPLACIAN_FACTOR), centers, Z, w, limit, 1) for limit in (2.0**28, 2e4)]
    assert len(problems[0].kept) > len(problems[1].kept)
    sides = [problem.sides(rng_alpha) for problem in problems for rng_alpha in [np.linspace(0.1, 1.0, 40)]]
    for one, other in zip(*sides, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_fit_takes_the_memory_that_it_may():
    rng = np.random.default_rng(4)
    Z = table(rng, 700, missing=0.1)
    limit = 2**23
    tracemalloc.start()
    fit = fit_root(kernel(LAPLACIAN_FACTOR), Z, np.ones(700), tol=1e-4, memory_limit=limit, n_jobs=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(fit.density.centers) <= 362  # the root of 2^23/64
    assert peak < 1.2 * limit


def mixture_of_two(rng, n):
    return rng.normal(size=(n, 2)) + 2.0 * np.sign(rng.uniform(-1, 1, size=(n, 1)))


def test_rows_with_gaps_help_and_empty_rows_do_nothing():
    """Held-out log density of a two-dimensional mixture, with half observed rows and without them, mean of four draws."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        k = ColumnKernel(2, GAUSSIAN_FACTOR)
        complete, half, new = (mixture_of_two(rng, n) / 0.6 for n in (60, 120, 2000))
        half[np.arange(120), rng.integers(2, size=120)] = np.nan
        rows = np.concatenate([complete, half, np.full((50, 2), np.nan)])
        with_gaps = fit_root(k, rows, np.ones(len(rows)), tol=1e-6)
        dropped = fit_root(k, complete, np.ones(60))
        assert with_gaps.residual < 1e-4
        empty = fit_root(k, np.concatenate([complete, np.full((50, 2), np.nan)]), np.ones(110))
        np.testing.assert_allclose(empty.density.log_density(new), dropped.density.log_density(new), rtol=1e-9)
        gains.append(np.mean(with_gaps.density.log_density(new) - dropped.density.log_density(new)))
    assert np.mean(gains) > 0.03


@FACTORS
def test_tables_with_hardly_any_complete_row(factor):
    """More than half of the cells gone: what the columns have to do with each other is still found, mean of six tables."""
    gains = []
    for seed in range(5, 11):
        rng = np.random.default_rng(seed)
        Z, new = table(rng, 150, missing=0.6), table(rng, 500, missing=0.0)
        fit = fit_root(kernel(factor), Z, np.ones(len(Z)), tol=1e-5)
        assert fit.residual < 1e-3
        marginals = sum(fit.density.marginal([j]).log_density(new[:, [j]]) for j in range(4))
        gains.append(np.mean(fit.density.log_density(new) - marginals))
    assert np.mean(gains) > 0.05


def test_the_mixture_solves_its_equation():
    rng = np.random.default_rng(6)
    Z = table(rng, 300, missing=0.1)
    k = kernel(LAPLACIAN_FACTOR)
    fit = fit_mixture(k, Z, np.ones(len(Z)))
    assert (np.diff(fit.objective) <= 1e-12).all()
    alpha, centers = fit.density.coefficients, fit.density.centers
    assert not np.isnan(centers).any()
    expected = np.zeros(len(alpha))
    for row in Z:
        seen = np.flatnonzero(~np.isnan(row))
        if len(seen) == 4:
            expected[(centers == row).all(axis=1)] += 1.0
        else:
            a = alpha * [slow_kernel(k, row, c, seen) for c in centers]
            expected += a / a.sum()
    np.testing.assert_allclose(alpha, expected / len(Z), rtol=1e-6)


def test_rows_are_filled_from_what_is_near():
    rng = np.random.default_rng(7)
    donors = table(rng, 300, missing=0.0)
    Z = donors[:40].copy()
    Z[:, 0] = np.nan
    filled = fill_from_neighbours(kernel(GAUSSIAN_FACTOR), Z, donors, np.ones(300), rng)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[:, 1:], Z[:, 1:])
    assert np.corrcoef(filled[:, 0], donors[:40, 0])[0, 1] > 0.3


def test_rows_without_any_cell_are_refused():
    with pytest.raises(InputError, match="observed cell"):
        fit_root(ColumnKernel(2), np.full((3, 2), np.nan), np.ones(3))
    with pytest.raises(InputError, match="column 1 has no observed cell"):
        fit_mixture(ColumnKernel(2), np.array([[1.0, np.nan], [2.0, np.nan]]), np.ones(2))


def test_flat_objectives_end_the_passes():
    """Smooth kernels on crowded rows: the residual comes down slowly where the objective does not change any more."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 2)) / np.array([2.0, 2.0])
    rows[::5, 1] = np.nan
    k = ColumnKernel(2, GAUSSIAN_FACTOR)
    fit = fit_root(k, rows, np.ones(100), tol=1e-8)
    assert fit.residual <= 1e-6 or fit.objective[-21] - fit.objective[-1] < 1e-9
    assert fit.n_iter <= 1000
    further = fit_root(k, rows, np.ones(100), tol=1e-11)
    assert fit.objective[-1] - further.objective[-1] < 1e-7
