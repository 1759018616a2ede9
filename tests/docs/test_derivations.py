"""Claims of the pages on mathematics that no test of a single part covers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from isopleth import KDE, SOSREP
from isopleth.frames import Compose, SinhArcsinh, Whiten
from isopleth.kernels import SDO, Gaussian, Sobolev


def scaled(K, w):
    """Positive alpha with alpha (K alpha) = w, by a general optimiser on log alpha."""
    found = minimize(
        lambda x: 0.5 * np.exp(x) @ K @ np.exp(x) - w @ x,
        np.zeros(len(w)),
        jac=lambda x: np.exp(x) * (K @ np.exp(x)) - w,
        tol=1e-12,
    )
    return np.exp(found.x)


def branches(K, w):
    """SOSREP's objective at the best root of each choice of signs, the first sign being positive."""
    values = {}
    for signs in itertools.product([1], *[[1, -1]] * (len(w) - 1)):
        sigma = np.array(signs)
        alpha = sigma * scaled(sigma[:, None] * K * sigma, w)
        values[signs] = -w @ np.log((K @ alpha) ** 2) + alpha @ K @ alpha
    return values


@pytest.mark.parametrize("seed", range(3))
def test_equal_signs_are_best_for_kernels_without_negative_values(seed):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(5, 2)), rng.dirichlet(np.ones(5))
    values = branches(Gaussian(dim=2)(((x[:, None] - x) ** 2).sum(axis=2)), w)
    assert min(values, key=values.get) == (1, 1, 1, 1, 1)


def test_opposite_signs_can_be_better_for_sdo():
    x = np.array([0.0, 0.1, 4.0, 4.1])
    values = branches(SDO(dim=1, order=3)((x[:, None] - x) ** 2), np.full(4, 0.25))
    assert values[1, 1, -1, -1] == pytest.approx(1.606, abs=1e-3)
    assert values[1, 1, 1, 1] == pytest.approx(1.791, abs=1e-3)


def test_the_jacobian_of_the_fixed_point_lies_between_0_and_one_half():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(30, 2)), rng.dirichlet(np.ones(30))
    K = Gaussian(dim=2)(((x[:, None] - x) ** 2).sum(axis=2))
    alpha = scaled(K, w)

    def step(log_alpha):
        return 0.5 * (np.log(w) + log_alpha - np.log(K @ np.exp(log_alpha)))

    h = 1e-6
    moves = h * np.eye(30)
    jacobian = np.stack([(step(np.log(alpha) + e) - step(np.log(alpha) - e)) / (2 * h) for e in moves], axis=1)
    eigenvalues = np.linalg.eigvals(jacobian)
    assert np.abs(eigenvalues.imag).max() < 1e-6
    assert eigenvalues.real.min() > -1e-6
    assert eigenvalues.real.max() < 0.5 + 1e-6


def test_the_accelerated_rate():
    """The worst factor of damping and momentum over eigenvalues from 0 to 1/2, by the iteration matrix of two steps."""
    rho = 3 - 2 * np.sqrt(2)
    beta = rho**2
    omega = 2 * (1 + beta) / 1.5
    worst = max(
        np.abs(np.linalg.eigvals([[1 - omega * (1 - j) + beta, -beta], [1, 0]])).max() for j in np.linspace(0, 0.5, 101)
    )
    assert worst == pytest.approx(rho, abs=1e-6)


def test_two_clusters():
    """Densities of SOSREP are as gamma_1^2 : gamma_2^2 whatever lies between, those of KDE are not."""
    n, first, second, beta = 400, 0.9, 0.3, 0.5
    gamma = np.repeat([first, second], n)
    K = np.outer(gamma, gamma)
    K[:n, n:] *= beta
    K[n:, :n] *= beta
    np.fill_diagonal(K, 1.0)
    alpha, w = np.ones(2 * n), 0.5 / n
    for _ in range(60):
        alpha = np.sqrt(w * alpha / (K @ alpha))
    f = w / alpha
    assert (f[0] / f[-1]) ** 2 == pytest.approx(first**2 / second**2, rel=0.05)
    kde = K.mean(axis=1)
    expected = first * (first + beta * second) / (second * (second + beta * first))
    assert kde[0] / kde[-1] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_partial_fractions_of_the_sdo_spectrum(m):
    w = np.exp(1j * np.pi * (2 * np.arange(m) + 1 - m) / (2 * m))
    assert w.real.min() > 0
    T = np.linspace(0, 5, 11)[:, None]
    np.testing.assert_allclose(np.sum(w**2 / m / (T + w**2), axis=1), 1 / (1 + T[:, 0] ** m), atol=1e-14)


@pytest.mark.parametrize(("d", "m"), [(1, 3), (2, 4), (5, 5)])
def test_derivatives_of_sdo_are_kernels_of_more_dimensions(d, m):
    s = np.linspace(0.1, 20, 30)
    at_zero = [SDO(n, m).log_spectral_density(np.zeros((1, n)))[0] for n in (d, d + 2)]  # 1/(k_1(0) (2 pi)^n)
    ratio = np.exp(at_zero[0] - at_zero[1]) / (2 * np.pi) ** 2
    np.testing.assert_allclose(
        SDO(dim=d, order=m).derivative(s, 1), -np.pi * ratio * SDO(dim=d + 2, order=m)(s), rtol=0, atol=1e-11
    )


def test_probes_of_three_values_lose_a_third_of_the_trace():
    A = np.random.default_rng(0).normal(size=(4, 4))
    probes = np.array(list(itertools.product([-1, 0, 1], repeat=4)))
    assert np.einsum("ni,ij,nj->n", probes, A, probes).mean() == pytest.approx(2 / 3 * np.trace(A))


@pytest.mark.parametrize("estimator", [SOSREP, KDE])
def test_the_hyvarinen_loss_is_the_fisher_divergence_up_to_a_constant(estimator):
    """Rows of a standard normal density have E|grad log q|^2 / 2 = 1/2, by quadrature in one dimension."""
    rows = np.random.default_rng(0).normal(size=(200, 1))
    density = estimator(length_scale=0.5, frame="scale").fit(rows)
    x = np.linspace(-7, 7, 4001)[:, None]
    q = np.exp(-0.5 * x[:, 0] ** 2) / np.sqrt(2 * np.pi)
    unit = density.unit_[0]
    score = density.grad_log_density(x)[:, 0]
    divergence = 0.5 * np.trapezoid(q * (-x[:, 0] - score) ** 2, x[:, 0])
    losses = np.array([density.hyvarinen_loss(row[None]) for row in x[::8]]) / unit**2
    loss = np.trapezoid(q[::8] * losses, x[::8, 0])
    assert loss == pytest.approx(divergence - 0.5, abs=1e-4)


def test_binomial_coefficients_make_a_matern_kernel():
    s = np.linspace(0, 30, 40)
    u = np.sqrt(s)
    np.testing.assert_allclose(Sobolev([3.0, 3.0, 1.0], dim=1)(s), (1 + u + u**2 / 3) * np.exp(-u), atol=1e-11)


def test_sobolev_norm_of_a_frame_in_the_coordinates_of_the_rows():
    """The integral of f_z^2 + a |grad f_z|^2 in z, by quadrature in x, for a curved map of two columns and a whitened one."""
    x = np.random.default_rng(0).standard_t(4, size=(200, 2)) @ [[1.0, 0.8], [0.0, 0.5]]
    fitted = Compose(SinhArcsinh(), Whiten()).fit(x, np.ones(200))
    t = np.linspace(-9, 9, 721)
    z = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    a, m = 0.3, np.array([0.5, -0.2])
    f_z = np.exp(-0.5 * ((z - m) ** 2).sum(axis=1))
    expected = (f_z**2 * (1 + a * ((z - m) ** 2).sum(axis=1))).sum() * (t[1] - t[0]) ** 2

    def root(rows):
        inner = np.exp(-0.5 * ((fitted.forward(rows) - m) ** 2).sum(axis=1))
        return inner * np.exp(0.5 * fitted.log_volume(rows))

    rows, volume = fitted.inverse(z), np.exp(-fitted.log_volume(fitted.inverse(z)))  # dx = volume dz
    h = 1e-5
    gradient = np.stack([(root(rows + h * e) - root(rows - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    inner = gradient - 0.5 * root(rows)[:, None] * fitted.grad_log_volume(rows)
    jacobian = np.stack([fitted.pushforward(rows, np.tile(e, (len(rows), 1))) for e in np.eye(2)], axis=2)
    per_z = np.linalg.solve(np.swapaxes(jacobian, 1, 2), inner[:, :, None])[:, :, 0]
    found = ((root(rows) ** 2 + a * (per_z**2).sum(axis=1)) * volume).sum() * (t[1] - t[0]) ** 2
    assert found == pytest.approx(expected, rel=1e-4)


def test_divergence_of_a_score_that_is_pulled_back():
    x = np.random.default_rng(0).standard_t(4, size=(100, 2)) @ [[1.0, 0.8], [0.0, 0.5]]
    fitted = Compose(Whiten(), SinhArcsinh(), Whiten()).fit(x, np.ones(100))
    M = np.array([[-1.0, 0.3], [0.3, -0.7]])  # a normal score in z

    def score(rows):
        return fitted.pullback(rows, fitted.forward(rows) @ M) + fitted.grad_log_volume(rows)

    h = 1e-5
    expected = sum((score(x + h * e) - score(x - h * e))[:, j] / (2 * h) for j, e in enumerate(np.eye(2)))
    jacobian = np.stack([fitted.pushforward(x, np.tile(e, (100, 1))) for e in np.eye(2)], axis=2)
    found = np.einsum("nji,jk,nki->n", jacobian, M, jacobian) + fitted.laplacian_log_volume(x)
    found += ((fitted.forward(x) @ M) * fitted.laplacian(x)).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
