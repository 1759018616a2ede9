"""Newton's method where others break."""

import numpy as np

from isopleth.solvers import newton


def test_newton_starts_anywhere_on_the_branch(far_cluster):
    for distance in np.linspace(3, 12, 10):
        op, w = far_cluster(distance)
        solution = newton(op, w, 1e-10)
        assert solution.converged(1e-10)
        again = newton(op, w, 1e-10, start=solution)
        assert again.n_iter == solution.n_iter  # nothing is left to do
