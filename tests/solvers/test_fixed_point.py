"""The fixed point: its rate."""

import numpy as np
import pytest

from isopleth.kernels import Gaussian, Laplacian
from isopleth.solvers import fixed_point, newton


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_fixed_point_and_newton_reach_one_optimum(problem, kernel):
    op, w = problem(kernel, spread=2.0)
    a, b = fixed_point(op, w, 1e-11).coefficients, newton(op, w, 1e-11).coefficients
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_the_fixed_point_needs_few_products(problem):
    op, w = problem(Gaussian(), n=1000, dim=10, spread=0.7)
    assert fixed_point(op, w, 1e-8).n_iter <= 16  # log(1e8)/log(5.8) and a few to begin with; the plain map needs 27
    assert fixed_point(op, w, 1e-11).n_iter <= 18  # log(1e11)/log(5.8) and a few
