"""Conjugate gradients against direct algebra."""

import numpy as np

from isopleth.solvers import conjugate_gradients


def test_conjugate_gradients_against_a_direct_solve():
    rng = np.random.default_rng(4)
    a = rng.normal(size=(40, 40))
    a = a @ a.T + np.eye(40)
    b = rng.normal(size=40)
    x, n_iter = conjugate_gradients(lambda v: a @ v, b, tol=1e-12, max_iter=400)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-8, atol=1e-10)
    assert conjugate_gradients(lambda v: a @ v, b, tol=1e-12, max_iter=3)[1] == 3
    assert n_iter > 3


def test_a_split_system_needs_the_product_with_the_rest_alone():
    rng = np.random.default_rng(5)
    easy = rng.uniform(1.0, 100.0, size=40)
    rest = rng.normal(size=(40, 40)) / 4
    rest, b = rest @ rest.T, rng.normal(size=40)

    def by(product, **kind):
        return conjugate_gradients(product, b, tol=1e-12, max_iter=400, preconditioner=lambda r: r / easy, **kind)

    whole, many = by(lambda v: easy * v + rest @ v)
    split, few = by(lambda v: rest @ v, split=True)
    assert abs(many - few) <= 1
    np.testing.assert_allclose(split, whole, rtol=1e-9, atol=1e-12)
