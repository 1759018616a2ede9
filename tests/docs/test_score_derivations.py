"""Claims of the page on the mathematics of scores that no test of a single part covers."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.kernels import IMQ, Gaussian, Matern
from isopleth.score import KEF, LandweberIteration, NuIteration, Tikhonov
from isopleth.score.spaces import SPACES, CurlFree, Diagonal


@pytest.mark.parametrize("space", [Diagonal, CurlFree])
def test_integration_by_parts(space):
    """L s = -zeta for a correlated normal density, by a trapezoid rule, which is exact to rounding here."""
    axis = np.linspace(-9, 9, 91)
    y = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    precision = np.linalg.inv([[1.0, 0.4], [0.4, 0.7]])
    p = np.exp(-0.5 * np.einsum("ni,ij,nj->n", y, precision, y))
    p /= p.sum()
    where = np.array([[0.3, -0.2], [1.5, 0.4], [-2.0, 1.0]])
    of_gaussian = space(Gaussian(dim=2))
    image = of_gaussian.operator(where, y).matvec(p[:, None] * -(y @ precision))
    np.testing.assert_allclose(image, -of_gaussian.zeta(where, y, p), atol=1e-10)


@pytest.mark.parametrize("kernel", [IMQ(dim=4), Matern(nu=3.5, dim=4)])
def test_products_are_three_matrix_products(kernel):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    S = ((X[:, None] - X) ** 2).sum(axis=2)
    apart = S + np.eye(9)  # u is 0 on the diagonal, whatever stands before it
    first, second = kernel.derivative(S, 1), kernel.derivative(apart, 2) / apart
    P = X @ C.T - np.sum(X * C, axis=1)
    Q = -4 * second * P
    product = Q.sum(axis=1)[:, None] * X - Q @ X - 2 * first @ C
    np.testing.assert_allclose(product, CurlFree(kernel).operator(X).matvec(C), atol=1e-12)


def test_products_of_two_curl_free_blocks():
    rng = np.random.default_rng(1)
    x, z, other = rng.normal(size=(3, 5))
    kernel = IMQ(dim=5)

    def parts(v):
        s = v @ v
        return s, -2 * kernel.derivative(np.array([s]), 1)[0], -4 * kernel.derivative(np.array([s]), 2)[0] / s

    u, v, delta = z - x, other - x, other - z
    (s, a, b), (t, c, e) = parts(u), parts(v)
    r, p, p_, r_ = b * s / 2, a + b * s / 2, c + e * t / 2, e * t / 2
    gap = 0.5 * (delta @ delta) * b * e
    formula = (p * e + b * p_ - gap) * np.outer(u, u) + (p * e + b * r_ - gap) * np.outer(u, delta)
    formula += a * e * (np.outer(delta, u) + np.outer(delta, delta)) + a * c * np.eye(5)
    blocks = (a * np.eye(5) + b * np.outer(u, u)) @ (c * np.eye(5) + e * np.outer(v, v))
    np.testing.assert_allclose(formula, blocks, atol=1e-13)
    assert r == pytest.approx(p - a)


@pytest.mark.parametrize("space", ["diagonal", "curl_free"])
def test_eigenfunctions_of_norm_one(space):
    """Lemma 3.2: the field of an eigenvector over sqrt(M sigma)."""
    rows = np.random.default_rng(2).normal(size=(12, 2))
    gram = SPACES[space](IMQ(dim=2)).gram(rows)
    sigma, vectors = np.linalg.eigh(gram / 12)
    coefficients = vectors[:, -1] / np.sqrt(12 * sigma[-1])
    assert coefficients @ gram @ coefficients == pytest.approx(1.0)


def test_the_sign_in_landwebers_iteration():
    """Values at the samples tend to -A^-1 h with a plus; with the printed minus they do not."""
    rng = np.random.default_rng(3)
    A = np.diag([1.0, 0.5, 0.2])
    h, eta, wanted = rng.normal(size=3), 0.9, []
    for sign in (1, -1):
        c = np.zeros(3)
        for t in range(400):
            c = c - eta * A @ c + sign * t * eta**2 * h
        wanted.append(np.abs(-400 * eta * h + A @ c + np.linalg.solve(A, h)).max())
    assert wanted[0] < 1e-8
    assert wanted[1] > 100


def test_the_full_form_explodes_away_from_the_rows_only():
    rows = np.random.default_rng(4).normal(size=(20, 2))
    alphas = (1e-6, 1e-8)
    models = [KEF(kernel="matern52", alpha=a, truncated=False, length_scale=1.0).fit(rows) for a in alphas]
    first, second = (a * m.grad_log_density([[2.0, -1.0]]) for a, m in zip(alphas, models, strict=True))
    np.testing.assert_allclose(first, second, rtol=0.01)  # what does not vanish with alpha once multiplied by it
    assert np.abs(first).max() > 1e-4
    assert all(np.abs(a * m.grad_log_density_).max() < 1e-3 for a, m in zip(alphas, models, strict=True))


@pytest.mark.parametrize(
    ("regularizer", "r", "saturates"),
    [
        (Tikhonov(), 1.0, False),
        (Tikhonov(), 2.0, True),
        (NuIteration(alpha=1.0, nu=1.5), 1.5, False),
        (NuIteration(alpha=1.0, nu=1.5), 2.5, True),
        (LandweberIteration(alpha=1.0), 2.0, False),
    ],
    ids=str,
)
def test_qualification(regularizer, r, saturates):
    """The largest residual times sigma^r decreases with alpha like alpha^r."""
    sigma = np.linspace(0, 1, 4001) ** 2
    alphas = np.array([4e-4, 1e-4])
    worst = [np.abs((1 - sigma * f.filter(sigma, 1.0)) * sigma**r).max() for f in map(regularizer.at, alphas)]
    order = np.log(worst[0] / worst[1]) / np.log(4)
    if saturates:
        assert order < r - 0.5
    else:
        assert order == pytest.approx(r, abs=0.1)
