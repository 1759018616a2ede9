"""The scaling problem: what its solution minimises, and where solvers start."""

import numpy as np
import pytest
from scipy.optimize import minimize

from isopleth.kernels import SDO, Gaussian, Laplacian
from isopleth.solvers import auto
from isopleth.solvers.scaling import equal_start, objective, positive_start


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), SDO()], ids=repr)
def test_the_solution_minimises_the_objective_of_the_paper(problem, kernel):
    op, w = problem(kernel, n=12, dim=2)
    k = op.dense()

    def paper(log_f):
        f = np.exp(log_f)
        alpha = np.linalg.solve(k, f)
        return -np.sum(w * np.log(f**2)) + f @ alpha, -2 * w + 2 * f * alpha

    solution = auto(op, w, 1e-12)
    best = minimize(paper, np.log(k @ np.full(12, 1 / 12)), jac=True, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(np.exp(best.x), k @ solution.coefficients, rtol=1e-6)
    np.testing.assert_allclose(2.0 * objective(solution.coefficients, solution.values, w), best.fun, rtol=1e-9)


def test_starts_have_unit_norm_and_the_second_is_positive_for_every_kernel(problem, far_cluster):
    op, w = problem(Gaussian())
    assert positive_start(op, w).coefficients @ positive_start(op, w).values == pytest.approx(1.0)
    failures = 0
    for distance in np.linspace(3, 12, 10):
        op, w = far_cluster(distance)
        failures += not np.isfinite(equal_start(op, w).residual)
        start = positive_start(op, w)
        assert np.all(start.values > 0)
        assert start.coefficients @ start.values == pytest.approx(1.0)
        np.testing.assert_allclose(op.matvec(start.coefficients), start.values)
    assert failures > 0
