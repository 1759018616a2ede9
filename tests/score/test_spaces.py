"""Spaces: matrices, derivatives by differences, refusals."""

from dataclasses import replace

import numpy as np
import pytest

from isopleth import InputError
from isopleth.kernels import IMQ, KERNELS, SDO, Gaussian, Laplacian, Matern, Sobolev
from isopleth.score.spaces import SPACES, CurlFree, Diagonal


def serves(space, kernel):
    return hasattr(kernel, "order") or kernel.bind(3).smoothness >= SPACES[space].least_smoothness


PAIRS = [(space, name) for space in SPACES for name, kernel in KERNELS.items() if serves(space, kernel)]


def make(space, name, dim):
    """Bind the kernel; a family with an order gets one that is smooth enough."""
    kernel = KERNELS[name].bind(dim)
    return SPACES[space](replace(kernel, order=dim // 2 + 3) if hasattr(kernel, "order") else kernel)


def points(n=25, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)), rng.normal(size=(7, dim)), rng.normal(size=(n, dim)), rng.dirichlet(np.ones(n))


def jacobian(function, x, step=1e-5):
    """Central differences, of shape (rows, outputs, dim)."""
    dim = x.shape[1]
    return np.stack([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(dim)], axis=-1)


@pytest.mark.parametrize(("space", "name"), PAIRS)
@pytest.mark.parametrize("dim", [1, 3])
def test_the_matrix_multiplies_as_the_operator_does(space, name, dim):
    s = make(space, name, dim)
    z, x, c, _ = points(dim=dim)
    for y in (z, x):
        got = s.unstack(s.gram(y, z) @ s.stack(c), dim)
        np.testing.assert_allclose(got, s.operator(y, z).matvec(c), rtol=0, atol=1e-10)
    gram = s.gram(z)
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-9  # positive semi-definite
    np.testing.assert_array_equal(s.unstack(s.stack(c), dim), c)


@pytest.mark.parametrize(("space", "name"), PAIRS)
def test_zeta_is_the_divergence_in_the_first_argument_at_the_samples(space, name):
    s = make(space, name, 3)
    z, x, _, w = points()
    want = np.zeros_like(x)
    for m, e in ((m, e) for m in range(len(z)) for e in range(3)):

        def row(a, e=e):  # row e of K(a, x)
            return s.operator(x, a).matvec(np.eye(3)[e : e + 1])

        step = 1e-5 * np.eye(3)[e]
        want += w[m] * (row(z[m : m + 1] + step) - row(z[m : m + 1] - step)) / 2e-5
    np.testing.assert_allclose(s.zeta(x, z, w), want, atol=1e-7)


@pytest.mark.parametrize(("space", "name"), PAIRS)
def test_divergences_and_energies_by_differences(space, name):
    s = make(space, name, 3)
    z, x, c, w = points()
    fields = [
        (lambda q: s.operator(q, z).matvec(c), lambda q: s.divergence(q, z, c), lambda q: s.energy(q, z, c)),
        (lambda q: s.zeta(q, z, w), lambda q: s.zeta_divergence(q, z, w), lambda q: s.zeta_energy(q, z, w)),
    ]
    for value, divergence, energy in fields:
        slope = jacobian(value, x)
        np.testing.assert_allclose(divergence(x), np.trace(slope, axis1=1, axis2=2), atol=2e-6, rtol=1e-6)
        if space == "curl_free":
            np.testing.assert_allclose(slope, slope.transpose(0, 2, 1), atol=2e-6)  # no curl
            np.testing.assert_allclose(jacobian(energy, x), value(x), atol=1e-7)
        else:
            with pytest.raises(InputError, match="space='curl_free'"):
                energy(x)


@pytest.mark.parametrize(("space", "name"), PAIRS)
def test_the_divergence_of_zeta_at_the_samples_is_its_limit(space, name):
    s = make(space, name, 3)
    z, _, _, w = points()
    # A kernel from a table has no more digits of phi'' closer to 0.
    step, tol = (1e-4, 1e-2) if hasattr(s.kernel, "order") else (1e-7, 1e-4)
    np.testing.assert_allclose(s.zeta_divergence(z, z, w), s.zeta_divergence(z + step, z, w), rtol=tol, atol=tol)


@pytest.mark.parametrize(
    ("space", "kernel", "dim", "words"),
    [
        (Diagonal, Laplacian(), 2, r"Laplacian\(dim=2\) is too rough for diagonal scores; use Matern\(nu=1.5\)"),
        (CurlFree, Matern(nu=1.5), 2, r"too rough for curl-free scores; use Matern\(nu=2.5\), 'imq' or 'gaussian'"),
        (Diagonal, SDO(order=2), 3, r"use SDO\(order=3\), "),
        (CurlFree, SDO(), 3, r"use SDO\(order=4\), "),
        (CurlFree, Sobolev([1.0, 1.0]), 2, "a Sobolev kernel with a coefficient of order 3, "),
    ],
)
def test_a_kernel_too_rough_is_refused_by_name_of_one_that_works(space, kernel, dim, words):
    with pytest.raises(InputError, match=words):
        space(kernel.bind(dim))


@pytest.mark.parametrize(
    ("space", "kernel"),
    [(Diagonal, Matern(nu=1.5)), (CurlFree, Matern(nu=2.5)), (Diagonal, SDO(order=3)), (CurlFree, SDO(order=4))],
)
def test_what_the_refusal_names_does_work(space, kernel):
    z, x, _, w = points()
    assert np.isfinite(space(kernel.bind(3)).zeta(np.vstack([z, x]), z, w)).all()


def test_fewer_columns_than_the_kernel_has_dimensions():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(10, 4)))[0]
    z, c, w = rng.normal(size=(12, 4)), rng.normal(size=(12, 4)), rng.dirichlet(np.ones(12))
    for kernel in (IMQ(dim=10), Gaussian(dim=10)):
        s = CurlFree(kernel)
        np.testing.assert_allclose(s.zeta(z, z, w) @ basis.T, s.zeta(z @ basis.T, z @ basis.T, w), atol=1e-12)
        np.testing.assert_allclose(
            s.gram(z) @ s.stack(c), s.stack(s.operator(z @ basis.T).matvec(c @ basis.T) @ basis), atol=1e-12
        )


@pytest.mark.parametrize(
    "kernel", [SDO(order=4, dim=3), SDO(order=5, dim=2), Sobolev([0.3, 0.0, 2.0, 0.7], dim=1)], ids=repr
)
def test_phi_second_at_zero_is_the_limit(kernel):
    s = np.geomspace(1e-4, 1e-2, 3)
    slope = (kernel.derivative(s, 1) - kernel.derivative(0.0, 1)) / s
    power = min(kernel.smoothness - 2.0, 1.0)  # how phi'' leaves its limit, and so does the mean slope
    ratio = 10.0**power
    assert (slope[0] - (slope[1] - slope[0]) / (ratio - 1.0)) == pytest.approx(kernel.second_at_zero(), rel=1e-3)
    assert SDO(order=3, dim=2).second_at_zero() == np.inf
    assert Sobolev([1.0, 1.0], dim=1).second_at_zero() == np.inf
