"""The fixed point: its rate."""

from isopleth.kernels import Gaussian
from isopleth.solvers import fixed_point


def test_the_fixed_point_needs_few_products(problem):
    op, w = problem(Gaussian(), n=1000, dim=10, spread=0.7)
    assert fixed_point(op, w, 1e-8).n_iter <= 16  # log(1e8)/log(5.8) and a few to begin with; the plain map needs 27
    assert fixed_point(op, w, 1e-11).n_iter <= 18  # log(1e11)/log(5.8) and a few
