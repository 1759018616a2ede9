"""Candidates that share the distances of their rows have the log densities of fits one by one."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.core.budget import Budget
from isopleth.density.solver import MixtureSolver, RootSolver, Solver
from isopleth.kernels import KERNELS, Workspace

rng = np.random.default_rng(0)
ROWS, WEIGHTS = rng.normal(size=(60, 3)), rng.integers(1, 4, size=60).astype(float)
# The last rows are so far that kernels underflow there.
OTHERS = np.concatenate([rng.normal(size=(20, 3)), [[60.0, 0.0, 0.0], [0.0, 300.0, 5.0]]])
FACTORS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", [RootSolver, MixtureSolver])
def test_log_densities_are_those_of_separate_fits(name, kind):
    kernel = KERNELS[name].bind(3)
    if kernel.by_columns or not (kernel.square_integrable if kind is RootSolver else kernel.integrable):
        pytest.skip("the kernel has no such density")
    solver = kind(Budget(n_jobs=1))
    together = list(solver.log_densities(kernel, ROWS, WEIGHTS, OTHERS, FACTORS, Workspace()))
    alone = list(Solver.log_densities(solver, kernel, ROWS, WEIGHTS, OTHERS, FACTORS, Workspace()))
    near = slice(None) if kernel.nonnegative else slice(20)  # far rows of kernels that change sign are noise
    for logs, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(logs[near], expected[near], rtol=1e-9, atol=1e-9)


def test_what_does_not_fit_in_memory_is_fitted_one_by_one():
    kernel, limit = KERNELS["gaussian"].bind(3), 8.0 * 60 * 60 * 2
    few = list(RootSolver(Budget(limit, 1)).log_densities(kernel, ROWS, WEIGHTS, OTHERS, FACTORS, Workspace()))
    np.testing.assert_allclose(
        few, list(RootSolver(Budget(n_jobs=1)).log_densities(kernel, ROWS, WEIGHTS, OTHERS, FACTORS, Workspace()))
    )


@pytest.mark.parametrize("name", KERNELS)
def test_values_at_half_the_scale_follow_from_those_at_the_scale(name):
    kernel, s = KERNELS[name].bind(3), np.linspace(0.0, 30.0, 50)
    found = kernel.at_half_the_scale(np.asarray(kernel(s)).copy())
    assert (found is None) == (name != "gaussian")
    if found is not None:
        np.testing.assert_allclose(found, kernel(4.0 * s), rtol=1e-13)
