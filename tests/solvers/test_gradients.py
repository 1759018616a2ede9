"""The papers' gradients: their steps, and what happens where they cannot arrive."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from isopleth import SOSREP
from isopleth.kernels import SDO, Gaussian, Laplacian
from isopleth.operators import Operator
from isopleth.solvers import natural_gradient, newton, standard_gradient
from isopleth.solvers.scaling import _best_length, equal_start, objective, positive_start


def test_the_natural_gradient_takes_the_steps_of_the_paper(problem):
    op, w = problem(Gaussian())
    k, alpha = op.dense(), equal_start(op, w).coefficients
    for _ in range(3):
        alpha = alpha - 0.25 * 2.0 * (alpha - w / (k @ alpha))
    found = natural_gradient(op, w, 1e-30, max_iter=3)
    assert found.n_iter == 4
    np.testing.assert_allclose(found.coefficients, alpha, rtol=1e-12)


def test_the_natural_gradient_halves_the_error(problem):
    op, w = problem(Laplacian())
    errors = [natural_gradient(op, w, 1e-30, max_iter=steps).residual for steps in range(15, 25)]
    np.testing.assert_allclose(np.divide(errors[1:], errors[:-1]), 0.5, atol=0.05)


def test_the_natural_gradient_stops_where_it_leaves_the_branch():
    """One far row in one dimension, at a distance where this kernel is negative."""
    x = np.append(0.3 * np.random.default_rng(1).normal(size=(100, 1)), [[11.0]], axis=0)
    op, w = Operator(SDO(order=4), x).store(), np.full(101, 1 / 101)
    start = positive_start(op, w)
    literal = start.coefficients - 0.5 * (start.coefficients - w / start.values)
    assert np.any(op.matvec(literal) < 0)  # else this test tests nothing
    solution = natural_gradient(op, w, 1e-8)
    assert solution.n_iter == start.n_iter + 1
    assert np.all(solution.values > 0)
    assert solution.residual == start.residual
    assert not solution.converged(1e-8)
    assert newton(op, w, 1e-8).converged(1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(), SDO()], ids=repr)
def test_the_standard_gradient_first_takes_the_best_step_against_the_gradient(problem, kernel):
    op, w = problem(kernel, n=30, dim=2, spread=2.0)
    k, start = op.dense(), equal_start(op, w)
    at = start.coefficients
    height = lambda alpha: objective(alpha, k @ alpha, w)  # noqa: E731
    steps = 1e-6 * np.eye(30)
    gradient = np.array([(height(at + h) - height(at - h)) / 2e-6 for h in steps])
    natural = at - w / start.values
    np.testing.assert_allclose(k @ natural, gradient, rtol=1e-5, atol=1e-8)
    length = _best_length(start, k @ natural, k @ (k @ natural), w)
    moved = at - standard_gradient(op, w, 1e-30, max_iter=1).coefficients
    np.testing.assert_allclose(moved / (k @ natural), np.max(moved / (k @ natural)), rtol=1e-6)
    assert np.log2(length / np.max(moved / (k @ natural))) == pytest.approx(
        np.round(np.log2(length / np.max(moved / (k @ natural))))
    )


def test_the_standard_gradient_warns_through_the_estimator_where_it_does_not_arrive():
    X = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.warns(ConvergenceWarning, match="residual"):
        model = SOSREP(kernel="gaussian", length_scale=1.0, solver="standard_gradient", frame="scale").fit(X)
    assert model.residual_ > model.tol


def test_the_standard_gradient_fits_a_well_conditioned_problem():
    X = 3.0 * np.random.default_rng(0).normal(size=(200, 3))
    model = SOSREP(kernel="laplacian", length_scale=1.0, solver="standard_gradient", frame="scale").fit(X)
    assert model.residual_ <= model.tol
    reference = SOSREP(kernel="laplacian", length_scale=1.0, frame="scale").fit(X)
    np.testing.assert_allclose(model.score_samples(X[:20]), reference.score_samples(X[:20]), rtol=1e-7)
