"""Kernels of Sobolev norms against Matern, closed forms, Fourier integrals and their limits."""

from __future__ import annotations

import itertools
import math
import pickle
import time

import array_api_strict
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import j0, k0
from scipy.stats import kstest

from isopleth import SOSREP, InputError
from isopleth.kernels import SDO, Kernel, Sobolev
from isopleth.kernels.matern import matern_function
from isopleth.kernels.sobolev import product_table

MATERN_PAIRS = [(1, 1), (1, 3), (1, 9), (2, 2), (2, 3), (2, 7), (3, 2), (3, 5), (6, 4), (8, 9), (21, 12), (30, 17)]
# two scales, gaps, orders that hardly suffice, large and tiny
MIXED = {
    1: [(0.7,), (0.0, 0.3), (2.0, 0.0, 0.1), (1e6, 3.0), (1e-4, 1e-3, 1e-5)],
    2: [(0.5, 0.2), (0.0, 0.0, 0.4, 1.0), (30.0, 1e-3)],
    3: [(0.0, 2.0), (1.0, 0.1, 0.01), (5.0, 0.0, 0.0, 1e-4)],
}
MIXED_CASES = [(d, coefficients) for d, many in MIXED.items() for coefficients in many]


def thinned(cases, step=4):
    """Return all cases, of which every fourth is run by default and the others are slow."""
    return [case if i % step == 0 else pytest.param(*case, marks=pytest.mark.slow) for i, case in enumerate(cases)]


def single(m: int) -> tuple[float, ...]:
    return (0.0,) * (m - 1) + (1.0,)


def binomial(m: int) -> list[int]:
    return [math.comb(m, order) for order in range(1, m + 1)]


def polynomial(coefficients, t):
    return 1.0 + sum(a * t ** (2 * order) for order, a in enumerate(coefficients, 1))


def size(d: int, order: int) -> float:
    """Size of a product of a kernel of unit scale."""
    return (0.5 / d) ** order * (2.0 * d) ** (order // 2)


def radial_integral(d: int, r: float, spectrum) -> float:
    """Fourier transform in d = 1, 2, 3 dimensions of a radial spectrum of t = 2 pi |z|, by QUADPACK."""
    options = {"epsabs": 1e-12, "limlst": 500, "limit": 500}
    if d == 1:
        return quad(spectrum, 0, np.inf, weight="cos", wvar=r, **options)[0] / np.pi
    if d == 3:
        return quad(lambda t: t * spectrum(t), 0, np.inf, weight="sin", wvar=r, **options)[0] / (2 * np.pi**2 * r)
    edges = np.r_[0.0, (np.arange(400) + 0.75) * np.pi / r]
    parts = [
        quad(lambda t: t * j0(r * t) * spectrum(t), a, b, epsabs=1e-15, epsrel=1e-12, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    ]
    return (math.fsum(parts) - 0.5 * parts[-1]) / (2 * np.pi)  # the rest alternates


def mass(d: int, spectrum) -> float:
    sphere = 2 * math.pi ** (0.5 * d) / math.gamma(0.5 * d) / (2 * math.pi) ** d
    total = quad(
        lambda u: math.exp(d * u) * spectrum(math.exp(u)), -50, 50, points=[-5, 0, 5], epsabs=0, epsrel=1e-12, limit=500
    )[0]
    return sphere * total


@pytest.mark.parametrize(("d", "m"), thinned(MATERN_PAIRS))
def test_binomial_coefficients_are_matern(d, m):
    kernel, s = Sobolev(binomial(m), dim=d), np.geomspace(1e-12, 3e3, 1500)
    r, nu, factor = np.sqrt(s), m - 0.5 * d, 1.0
    np.testing.assert_allclose(kernel(s), matern_function(r, nu), rtol=0, atol=2e-12)
    for order in range(1, 5):
        if nu - order < 0.5:
            break
        factor *= -0.25 / (nu - order)
        expected = factor * s ** (order // 2) * matern_function(r, nu - order)
        peak = np.max(np.abs(expected))
        np.testing.assert_allclose(kernel.derivative(s, order), expected, rtol=0, atol=1e-11 * peak)
    np.testing.assert_allclose(kernel.self_convolution()(s), matern_function(r, 2 * m - 0.5 * d), rtol=0, atol=2e-12)


@pytest.mark.parametrize(("d", "coefficients"), thinned(MIXED_CASES))
def test_is_its_fourier_integral(d, coefficients):
    kernel = Sobolev(coefficients, dim=d)

    def spectrum(t):
        return 1.0 / polynomial(coefficients, t)

    unit = coefficients[-1] ** (0.5 / len(coefficients))
    for r in (0.6 * unit, 3.0 * unit):
        expected = radial_integral(d, r / unit, lambda t: spectrum(t / unit)) / unit**d / mass(d, spectrum)
        assert kernel(r * r) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize(
    "coefficients", [(1.0, 1e-8), (3.0, 0.5), pytest.param((1e7, 1.0), marks=pytest.mark.slow), (2.5, 1.0)]
)
def test_two_orders_in_one_dimension_are_two_exponentials(coefficients):
    a, b = coefficients
    small = 2.0 / (a + math.sqrt(a * a - 4.0 * b))  # the zeros of P are -small and -1/(b small)
    rates = np.sqrt([small, 1.0 / (b * small)])
    s = np.geomspace(1e-24, 1e4, 3000) * a
    waves = np.exp(-np.multiply.outer(np.sqrt(s), rates))
    expected = (waves / rates) @ [1.0, -1.0] / (1.0 / rates[0] - 1.0 / rates[1])
    kernel = Sobolev(coefficients, dim=1)
    np.testing.assert_allclose(kernel(s), expected, rtol=0, atol=2e-12)
    slope = -0.5 * waves @ [1.0, -1.0] / np.sqrt(s) / (1.0 / rates[0] - 1.0 / rates[1])
    seen = np.sqrt(s) * rates[1] > 1e-3  # nearer to 0 the difference loses its digits
    np.testing.assert_allclose(kernel.derivative(s[seen], 1), slope[seen], rtol=1e-9, atol=1e-11 / a)
    assert kernel.derivative(0.0, 1) == pytest.approx(-0.5 * rates[0] * rates[1], rel=1e-11)
    assert kernel.laplacian(0.0) == pytest.approx(-rates[0] * rates[1], rel=1e-11)


@pytest.mark.parametrize("coefficients", [(30.0, 1e-3), (3.0, 0.5), (1.0, 1e-8)])
def test_two_orders_in_two_dimensions_are_two_bessel_functions(coefficients):
    a, b = coefficients
    small = 2.0 / (a + math.sqrt(a * a - 4.0 * b))
    rates = np.sqrt([small, 1.0 / (b * small)])
    s = a * np.geomspace(1e-20, 1e3, 2000)
    expected = k0(np.multiply.outer(np.sqrt(s), rates)) @ [1.0, -1.0] / math.log(rates[1] / rates[0])
    np.testing.assert_allclose(Sobolev(coefficients, dim=2)(s), expected, rtol=0, atol=5e-12)


def test_one_order_in_one_dimension_is_the_laplacian_kernel():
    kernel, s = Sobolev([4.0], dim=1), np.geomspace(1e-10, 900.0, 500)
    np.testing.assert_allclose(kernel(s), np.exp(-0.5 * np.sqrt(s)), rtol=0, atol=2e-12)
    np.testing.assert_allclose(kernel.laplacian(s), 0.25 * np.exp(-0.5 * np.sqrt(s)), rtol=0, atol=2e-12)
    assert kernel.laplacian(0.0) == 0.25


@pytest.mark.parametrize(
    ("d", "coefficients"),
    thinned(
        [
            *MIXED_CASES,
            (7, (1.0, 0.0, 0.3, 0.02)),
            (40, single(22)[:-3] + (1, 2, 1)),
            (2, single(9)),
            (199, single(100)),
        ]
    ),
)
def test_every_product_is_a_derivative(d, coefficients):
    kernel = Sobolev(coefficients, dim=d)
    unit = kernel.self_convolution().log_constant  # the volume of the kernel
    s = d * math.exp(2 * unit / d) * np.geomspace(1e-3, 2.0, 50)
    h = 0.003 * s
    for order in range(1, 5):

        def below(s, order=order):
            return kernel.derivative(s, order - 1) / s ** ((order - 1) // 2)

        slope = (8 * (below(s + h) - below(s - h)) - below(s + 2 * h) + below(s - 2 * h)) / (12 * h)
        expected, value = slope * s ** (order // 2), kernel.derivative(s, order)
        # per point: rounding of the differences, which are divided by h, beside the error h^4 of the formula
        allowed = 1e-5 * (np.abs(expected) + np.max(np.abs(expected * s)) / s)
        assert (np.abs(value - expected) < allowed).all()
    expected = 2 * (d * kernel.derivative(s, 1) + 2 * kernel.derivative(s, 2))
    peak = np.max(np.abs(expected))
    np.testing.assert_allclose(kernel.laplacian(s), expected, rtol=1e-9, atol=1e-9 * peak)


@pytest.mark.parametrize("c", [1e-12, *(pytest.param(c, marks=pytest.mark.slow) for c in (1e-3, 7.0)), 1e12])
def test_units_of_the_coefficients(c):
    d, coefficients = 3, (0.4, 0.3, 0.2, 0.1)
    kernel = Sobolev(coefficients, dim=d)
    wide = Sobolev([a * c ** (2 * order) for order, a in enumerate(coefficients, 1)], dim=d)
    s = np.geomspace(1e-8, 1e3, 400)
    for order in range(5):
        derivatives = order - order // 2
        expected = kernel.derivative(s, order)
        value = wide.derivative(c * c * s, order) * c ** (2 * derivatives)
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(wide.laplacian(c * c * s) * c * c, kernel.laplacian(s), rtol=1e-10, atol=1e-11)
    volumes = wide.self_convolution().log_constant - kernel.self_convolution().log_constant
    assert volumes == pytest.approx(d * math.log(c), abs=1e-10)


@pytest.mark.parametrize(
    ("d", "coefficients", "limits"),
    [
        (1, (1.0,), (1, -math.inf, math.inf, -math.inf, math.inf)),
        (3, (1.0, 2.0), (1, -math.inf, math.inf, -math.inf, math.inf)),
        (2, (1.0, 2.0), (1, -math.inf, None, -math.inf, math.inf)),
        (1, (1.0, 2.0), (1, None, 0, -math.inf, math.inf)),
        (2, (0.3, 1.0, 2.0), (1, None, 0, None, None)),
        (8, (1.0, 0, 0, 0, 0, 0, 3.0), (1, None, 0, 0, 0)),
    ],
)
def test_limits_at_zero(d, coefficients, limits):
    kernel = Sobolev(coefficients, dim=d)
    for order, limit in enumerate(limits):
        value, near = kernel.derivative(0.0, order), kernel.derivative(1e-18, order)
        assert np.isfinite(near)
        if limit is not None:
            assert value == limit
        if np.isfinite(value):
            assert near == pytest.approx(value, abs=1e-7)
        else:
            assert np.sign(near) == np.sign(value)


@pytest.mark.parametrize(("d", "coefficients"), [case for case in MIXED_CASES if case[0] < 4][::2])
def test_self_convolution_has_the_squared_spectrum(d, coefficients):
    convolved = Sobolev(coefficients, dim=d).self_convolution()

    def squared(t):
        return polynomial(coefficients, t) ** -2.0

    first = mass(d, lambda t: 1.0 / polynomial(coefficients, t))
    assert convolved(0.0) == 1.0
    assert convolved.log_constant == pytest.approx(math.log(mass(d, squared) / first**2), abs=1e-9)
    unit = coefficients[-1] ** (0.5 / len(coefficients))
    expected = radial_integral(d, 2.0, lambda t: squared(t / unit)) / unit**d / mass(d, squared)
    assert convolved((2.0 * unit) ** 2) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize(
    ("d", "coefficients"),
    thinned([(2, (1.0, 1e-4)), (1, (1.0,)), (3, (2.0, 0.1, 0.4)), (9, binomial(6)), (100, binomial(51))]),
)
def test_frequencies_have_the_law_of_the_spectrum(d, coefficients):
    kernel = Sobolev(coefficients, dim=d)
    omega = kernel.sample_frequencies(20_000, np.random.default_rng(1))
    assert omega.shape == (20_000, d)
    log_t = np.linspace(-30.0, 40.0, 200_001)
    present = [order for order, a in enumerate(coefficients, 1) if a]
    terms = [math.log(coefficients[order - 1]) + 2 * order * log_t for order in present]
    log_density = d * log_t - np.logaddexp.reduce([np.zeros_like(log_t), *terms])  # of log t
    below = np.cumsum(np.exp(log_density - log_density.max()))
    radius = np.linalg.norm(omega, axis=1)
    assert kstest(np.log(radius), lambda q: np.interp(q, log_t, below / below[-1])).pvalue > 0.01
    x = np.random.default_rng(2).normal(size=(20, d))
    x *= (np.linspace(0.05, 3.0, 20) / np.linalg.norm(x, axis=1))[:, None]
    waves = np.cos(omega @ x.T)
    bound = 4.5 * waves.std(axis=0) / math.sqrt(len(omega)) + 1e-12
    assert (np.abs(waves.mean(axis=0) - kernel(np.sum(x**2, axis=1))) < bound).all()
    np.testing.assert_array_equal(omega[:5], kernel.sample_frequencies(20_000, np.random.default_rng(1))[:5])
    assert kernel.sample_frequencies(0, np.random.default_rng(1)).shape == (0, d)


@pytest.mark.parametrize(
    ("d", "coefficients"), [(1, (0.7,)), (3, (1.0, 0.1, 0.01)), (30, single(16)), (200, single(102))]
)
def test_float32_and_the_strict_namespace(d, coefficients):
    kernel, s = Sobolev(coefficients, dim=d), d * np.r_[0.0, np.geomspace(1e-30, 1e30, 999)]
    forms = [lambda a, order=order: kernel.derivative(a, order) for order in range(5)]
    for form in [*forms, kernel.laplacian, kernel.self_convolution()]:
        wide, strict = form(s), form(array_api_strict.asarray(s))
        np.testing.assert_allclose(np.asarray(strict), wide, rtol=1e-11, atol=1e-11)
        narrow = form(s.astype(np.float32))
        assert narrow.dtype == np.float32
        assert not np.isnan(narrow).any()
        finite = np.isfinite(wide) & (np.abs(wide) < 1e38)
        assert np.max(np.abs(narrow[finite] - wide[finite]) / (1 + np.abs(wide[finite]))) < 2e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "coefficients"), [(1, (0.5, 0.1)), (30, binomial(16)), (100, single(51)), (100, binomial(51))]
)
@pytest.mark.parametrize("order", [0, 4])
def test_tables_are_made_in_two_seconds(d, coefficients, order):
    start = time.thread_time()  # of this thread: other work on the machine does not count
    table = product_table.__wrapped__(d, tuple(map(float, coefficients)), order)
    assert time.thread_time() - start < 2.0
    assert table.cells.nbytes < 4e6


def test_coefficients_are_named_first_and_kept_as_numbers():
    kernel = Sobolev(np.array([0.0, 1.0, 0.0]))
    assert kernel == Sobolev(coefficients=(0, 1)) == Sobolev([0.0, 1.0, 0.0, 0.0])
    assert hash(kernel) == hash(Sobolev((0.0, 1.0)))
    assert repr(kernel.bind(3)) == "Sobolev(dim=3, coefficients=(0.0, 1.0))"
    assert isinstance(kernel, Kernel)
    assert not kernel.nonnegative
    again = pickle.loads(pickle.dumps((kernel.bind(2), kernel.bind(2).self_convolution())))
    assert again[0] == kernel.bind(2)
    assert again[1](0.7) == kernel.bind(2).self_convolution()(0.7)


@pytest.mark.parametrize(
    "coefficients", [(), (0.0, 0.0), (-1.0, 1.0), (math.nan, 1.0), (math.inf,), ("1",), "12", 3.0, (True,), None]
)
def test_coefficients_that_are_none(coefficients):
    with pytest.raises(InputError, match="finite numbers that are at least 0"):
        Sobolev(coefficients)


def test_orders_that_do_not_suffice_name_the_least():
    with pytest.raises(InputError, match="order 2 or above for 2 columns, and the highest here is of order 1"):
        Sobolev((1.0, 0.0)).bind(2)
    with pytest.raises(InputError, match="order 3 or above for 5 columns"):
        SOSREP(kernel=Sobolev((1.0, 1.0)), frame="scale").fit(np.random.default_rng(0).normal(size=(20, 5)))


@pytest.mark.parametrize("coefficients", [(1e-300, 1e300), (1e200, 1e-200), (1e-90,)])
def test_sizes_beyond_double_precision_name_the_way_out(coefficients):
    with pytest.raises(InputError, match="divide a_l by c"):
        Sobolev(coefficients, dim=1)(0.3)


def test_is_no_density():
    with pytest.raises(InputError, match="can be negative"):
        Sobolev((1.0, 1.0), dim=2).log_integral()


@pytest.mark.parametrize(("dim", "m"), [(2, 3), (4, 4), (6, 5)])
def test_the_second_derivative_at_zero_is_infinite_at_smoothness_two(dim, m):
    """There phi'' has the limit log(1/s); one order more has a finite one."""
    for kernel in (Sobolev(single(m), dim=dim), Sobolev([1.0] * m, dim=dim), SDO(dim, m)):
        assert kernel.smoothness == 2.0
        assert kernel.second_at_zero() == math.inf
    for kernel in (Sobolev(single(m + 1), dim=dim), SDO(dim, m + 1)):
        assert 0.0 < kernel.second_at_zero() < math.inf
