"""The Matern kernels against their definition by Bessel functions, and their convolutions against quadrature."""

import itertools
import math
import pickle

import array_api_strict
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma, kv

from isopleth.kernels import KERNELS, Gaussian, Laplacian, Matern

ORDERS = [1.5, 2.5, 3.5]
ALL = [Laplacian(), *(Matern(nu=nu) for nu in ORDERS)]


def bessel_form(nu, s):
    z = np.sqrt(2 * nu * s)
    return 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z)


@pytest.mark.parametrize("nu", ORDERS)
def test_is_the_definition(nu):
    s = np.geomspace(1e-6, 200.0, 300)
    np.testing.assert_allclose(Matern(nu=nu)(s), bessel_form(nu, s), rtol=1e-12)


@pytest.mark.parametrize("nu", ORDERS)
def test_derivatives_are_those_of_the_definition(nu):
    # d/ds [z^nu K_nu] = -nu z^(nu-1) K_(nu-1), and so on downwards: K of negative order is that of the positive one
    s = np.geomspace(1e-4, 100.0, 200)
    z = np.sqrt(2 * nu * s)
    for order in range(1, 5):
        low = nu - order
        want = 2 ** (1 - nu) / gamma(nu) * (-nu) ** order * z**low * kv(low, z)
        np.testing.assert_allclose(Matern(nu=nu).derivative(s, order), s ** (order // 2) * want, rtol=1e-11)


@pytest.mark.parametrize(
    ("kernel", "limits"),
    [
        (Laplacian(), (1, -math.inf, math.inf, -math.inf, math.inf)),
        (Matern(nu=1.5), (1, -1.5, 0, -math.inf, math.inf)),
        (Matern(nu=2.5), (1, -5 / 6, 0, 0, 0)),
        (Matern(nu=3.5), (1, -0.7, 0, 0, 0)),
    ],
    ids=repr,
)
def test_limits_at_zero(kernel, limits):
    assert [kernel.derivative(0.0, order) for order in range(5)] == pytest.approx(limits, rel=1e-14)


@pytest.mark.parametrize("kernel", ALL, ids=repr)
@pytest.mark.parametrize("r", [0.0, 0.4, 3.0])
def test_self_convolution_in_one_dimension(kernel, r):
    convolved = kernel.bind(1).self_convolution()
    edges = (-40.0, 0.0, r, 40.0 + r)
    want = sum(
        quad(lambda z: kernel(z * z) * kernel((z - r) ** 2), a, b, epsabs=1e-13, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    )
    assert math.exp(convolved.log_constant) * convolved(r * r) == pytest.approx(want, abs=2e-11)


@pytest.mark.parametrize("kernel", ALL, ids=repr)
@pytest.mark.parametrize("dim", [2, 3])
def test_self_convolution_in_more_dimensions(kernel, dim):
    # Around the two centres, in the coordinates in which they are foci: the integrand is smooth there.
    k, r, reach = kernel.bind(dim), 1.7, 40.0
    t, weight = np.polynomial.legendre.leggauss(200)
    top = np.arccosh(2 * reach / r)
    mu, nu = (top * (t + 1) / 2)[:, None], (np.pi * (t + 1) / 2)[None, :]
    a, b = r / 2 * (np.cosh(mu) + np.cos(nu)), r / 2 * (np.cosh(mu) - np.cos(nu))
    turns = 2.0 if dim == 2 else np.pi * r * np.sinh(mu) * np.sin(nu)
    integrand = turns * (r / 2) ** 2 * (np.cosh(mu) ** 2 - np.cos(nu) ** 2) * k(a * a) * k(b * b)
    want = top / 2 * np.pi / 2 * weight @ integrand @ weight
    convolved = k.self_convolution()
    assert math.exp(convolved.log_constant) * convolved(r * r) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_self_convolution_in_every_library_and_in_pickles(kernel):
    convolved = kernel.bind(300).self_convolution()
    s = np.geomspace(1.0, 1e5, 50)
    value = convolved(s)
    assert np.isfinite(convolved.log_constant)
    np.testing.assert_allclose(np.asarray(convolved(array_api_strict.asarray(s))), value, atol=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(convolved))(s), value)


def test_order_by_order_nearer_to_the_gaussian():
    s = np.linspace(0.0, 20.0, 200)
    away = [np.max(np.abs(kernel(s) - Gaussian()(s))) for kernel in ALL]
    assert away == sorted(away, reverse=True)
    assert away[-1] < 0.07


def test_orders_there_are():
    assert [KERNELS[f"matern{n}2"] for n in (3, 5, 7)] == [Matern(nu=nu) for nu in ORDERS]
    assert Matern(nu=np.float64(2.5)) == Matern(nu=2.5)
    assert hash(Matern(nu=np.float64(2.5))) == hash(Matern(nu=2.5))


@pytest.mark.parametrize(
    ("nu", "words"),
    [(0.5, r"Laplacian\(\)"), (math.inf, r"Gaussian\(\)"), (2, "1.5, 2.5 and 3.5"), ("1.5", "1.5, 2.5"), (True, "1.5")],
)
def test_orders_there_are_not(nu, words):
    with pytest.raises(ValueError, match=words):
        Matern(nu=nu)
