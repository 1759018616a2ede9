"""Krylov spaces against eigendecompositions."""

import array_api_strict
import numpy as np
import pytest

from isopleth.solvers import Spectrum, conjugate_gradients, lanczos, largest_eigenvalue


def matrix(n=60, seed=0):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return (basis * np.geomspace(1e-6, 1.0, n)) @ basis.T, rng.normal(size=(n // 2, 2))


def product(A, shape):
    return lambda v: (A @ v.reshape(-1)).reshape(shape)


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_functions_of_a_matrix(alpha):
    A, b = matrix()
    found = lanczos(
        product(A, b.shape), b, 1000, lambda k: k.residuals(lambda s: 1 / (s + alpha), lambda s: 0 * s)[0] <= 1e-12
    )
    want = Spectrum.of(A).apply(lambda s: 1 / (s + alpha), b.reshape(-1, 1)).reshape(b.shape)
    np.testing.assert_allclose(found.apply(lambda s: 1 / (s + alpha)), want, rtol=0, atol=1e-10 * np.abs(want).max())
    basis = found.vectors.reshape(len(found.vectors), -1)
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-13)
    assert found.ritz_values[-1] == pytest.approx(1.0, rel=1e-10)


def test_the_residual_is_that_of_the_systems_it_speaks_of():
    A, b = matrix()
    alpha = 1e-3
    for steps in (5, 10, 20):
        found = lanczos(product(A, b.shape), b, steps, lambda k: False)
        y = found.apply(lambda s: 1 / (s + alpha)).reshape(-1)
        first = np.linalg.norm(A @ y + alpha * y - b.reshape(-1)) / np.linalg.norm(b)
        c = found.apply(lambda s: 1 / (s * (s + alpha))).reshape(-1)
        second = np.linalg.norm(A @ c - y) / np.linalg.norm(y)
        estimates = found.residuals(lambda s: 1 / (s + alpha), lambda s: 1 / (s * (s + alpha)))
        np.testing.assert_allclose(estimates, [first, second], rtol=1e-6)


def test_it_ends_where_the_right_hand_side_is_used_up():
    A = np.diag([1.0, 2.0, 3.0, 4.0])
    b = np.array([1.0, 0.0, 1.0, 0.0])
    found = lanczos(lambda v: A @ v, b, 100, lambda k: False)
    assert len(found.diagonal) == 2
    np.testing.assert_allclose(found.apply(lambda s: 1 / s), [1.0, 0.0, 1 / 3, 0.0])


def test_largest_eigenvalue():
    A, b = matrix()
    assert largest_eigenvalue(product(A, b.shape), b) == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(largest_eigenvalue(lambda v: 0.0 * v, b), 0.0, atol=1e-300)


def test_on_a_strict_array_api_library():
    A, b = matrix(20)
    strict = array_api_strict.asarray(A)
    xp = array_api_strict

    def times(v):
        return xp.reshape(strict @ xp.reshape(v, (-1,)), (10, 2))

    found = lanczos(times, xp.asarray(b), 20, lambda k: False)
    want = lanczos(product(A, b.shape), b, 20, lambda k: False)
    np.testing.assert_allclose(np.asarray(found.apply(np.sqrt)), want.apply(np.sqrt), atol=1e-10)


def test_a_preconditioner_changes_the_steps_and_not_the_solution():
    A, b = matrix()
    A = A + np.diag(np.geomspace(1.0, 1e4, 60))
    d = np.diag(A)
    plain, many = conjugate_gradients(lambda v: A @ v, b.reshape(-1), tol=1e-12, max_iter=500)
    ready, few = conjugate_gradients(
        lambda v: A @ v, b.reshape(-1), tol=1e-12, max_iter=500, preconditioner=lambda r: r / d
    )
    assert few < many
    np.testing.assert_allclose(plain, ready, rtol=1e-8, atol=1e-12)
