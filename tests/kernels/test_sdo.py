"""The SDO kernel against reference values, quadrature, finite differences and its limits."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import time

import array_api_strict
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, j0

from isopleth.kernels import SDO, Laplacian, Workspace
from isopleth.kernels.matern import matern_function
from isopleth.kernels.sdo import SDOProfile, SDOSeries, convolution_table, laplacian_table, log_k0, product_table
from isopleth.kernels.spectral_quadrature import SpectralQuadrature

PAIRS = [(1, 1), (1, 2), (1, 7), (2, 2), (2, 3), (2, 9), (3, 2), (3, 3), (5, 4), (8, 5), (16, 10), (31, 16), (64, 70)]
HIGH = [
    (99, 50),
    (100, 51),
    (100, 52),
    (150, 300),
    (199, 100),
    (200, 101),
    (200, 102),
    (200, 200),
    (200, 400),
    (300, 160),
]


def thinned(cases, step=3):
    """Return all cases, of which every third is run by default and the others are slow."""
    return [case if i % step == 0 else pytest.param(*case, marks=pytest.mark.slow) for i, case in enumerate(cases)]


@pytest.fixture(scope="module")
def reference(shared):
    return json.loads((shared / "reference" / "sdo_profile.json").read_text()).values()


@pytest.mark.data
def test_reference_values(reference):
    for case in reference:
        r, kernel = np.array(case["r"]), SDO(case["d"], case["m"])
        np.testing.assert_allclose(kernel(r * r), case["ratio"], rtol=0, atol=1e-11)
        np.testing.assert_allclose(2 * r * kernel.derivative(r * r, 1), case["dratio"], rtol=0, atol=1e-11)
        assert log_k0(case["d"], case["m"]) == pytest.approx(case["log_k0"], rel=1e-12)


def radial_integral(d: int, r: float, spectrum) -> float:
    """Fourier transform in d = 1, 2, 3 dimensions of a radial spectrum of t = 2 pi |z|, by QUADPACK."""
    if d == 1:
        return quad(spectrum, 0, np.inf, weight="cos", wvar=r, epsabs=1e-11, limlst=500, limit=500)[0] / np.pi
    if d == 3:
        part = quad(lambda t: t * spectrum(t), 0, np.inf, weight="sin", wvar=r, epsabs=1e-11, limlst=500, limit=500)[0]
        return part / (2 * np.pi**2 * r)
    zeros = (np.arange(400) + 0.75) * np.pi / r
    edges = np.r_[0.0, zeros]
    parts = [quad(lambda t: t * j0(r * t) * spectrum(t), a, b, epsabs=1e-15)[0] for a, b in itertools.pairwise(edges)]
    return math.fsum(parts) / (2 * np.pi)


@pytest.mark.parametrize(("d", "m"), [(1, 1), (1, 2), (1, 4), (2, 3), (2, 5), (3, 2), (3, 3), (3, 6)])
def test_is_its_fourier_integral(d, m):
    k0 = math.exp(log_k0(d, m))
    for r in (0.4, 1.7, 6.0):
        expected = radial_integral(d, r, lambda t: 1 / (1 + t ** (2 * m))) / k0
        assert SDO(d, m)(r * r) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("d", "m"), [(1, 1), (2, 3), (3, 2), (3, 3), (8, 6), (25, 14)])
def test_mass_of_the_spectrum(d, m):
    low = quad(lambda t: t ** (d - 1) / (1 + t ** (2 * m)), 0, 1, epsabs=0, epsrel=1e-12)[0]
    high = quad(lambda t: t ** (2 * m - d - 1) / (1 + t ** (2 * m)), 0, 1, epsabs=0, epsrel=1e-12)[0]  # in 1/t
    sphere = math.log(2) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)
    assert log_k0(d, m) == pytest.approx(sphere - d * math.log(2 * math.pi) + math.log(low + high), rel=1e-11)


def test_one_dimension_first_order_is_the_laplacian_kernel():
    s = np.geomspace(1e-10, 900.0, 3000)
    for order in range(5):
        expected = Laplacian(dim=1).derivative(s, order)
        np.testing.assert_allclose(SDO(1, 1).derivative(s, order), expected, rtol=1e-11, atol=1e-11)
    assert SDO(1, 1).laplacian(0.0) == Laplacian(dim=1).laplacian(0.0) == 1.0


@pytest.mark.parametrize(("d", "m"), thinned(PAIRS + HIGH, 2))
def test_every_product_is_a_derivative(d, m):
    s = d * np.geomspace(1e-3, 8.0, 60)
    kernel, h = SDO(d, m), 0.004 * s / (1 + 0.2 * np.sqrt(s))
    for order in range(1, 5):

        def below(s, order=order):
            return kernel.derivative(s, order - 1) / s ** ((order - 1) // 2)

        # five points: the error is of order h^4, so that h can be large against the rounding of the table
        slope = (8 * (below(s + h) - below(s - h)) - below(s + 2 * h) + below(s - 2 * h)) / (12 * h)
        expected = slope * s ** (order // 2)
        size = np.abs(expected) + (0.5 / d) ** order * (2 * d) ** (order // 2)
        assert np.max(np.abs(kernel.derivative(s, order) - expected) / size) < 3e-6


@pytest.mark.parametrize(("d", "m"), thinned(PAIRS + HIGH, 2))
@pytest.mark.parametrize("order", range(5))
def test_tables_are_the_profile_everywhere(d, m, order):
    table, profile = product_table(d, m, order), SDOProfile(d, m, order)
    rng = np.random.default_rng(0)
    s = np.r_[np.ldexp(1 + rng.random(1500), rng.integers(table.lowest, table.highest, 1500)), 6 * d * rng.random(1500)]
    value, error = profile.estimate(s)
    expected, size = s ** (order // 2) * value, profile.scale * (2 * d) ** (order // 2)
    assert np.max(s ** (order // 2) * error / (size + np.abs(expected))) < 1e-11
    assert np.max(np.abs(table(s.copy(), Workspace()) - expected) / (size + np.abs(expected))) < 1e-11


@pytest.mark.parametrize(("d", "m"), thinned(PAIRS + HIGH, 2))
@pytest.mark.parametrize("order", range(5))
def test_ways_of_evaluation_agree_within_their_errors(d, m, order):
    profile = SDOProfile(d, m, order)
    r = np.sqrt(d) * np.geomspace(1e-2, 10 * np.sqrt(d), 400)
    ways = [profile._series(r), profile._bessel(r)]
    if profile._quadrature is not None:
        ways.append(profile._quadrature(r))
    for i, a in enumerate(ways):
        for b in ways[:i]:
            both = np.isfinite(a.error) & np.isfinite(b.error)
            allowed = 30 * (a.error[both] + b.error[both])
            assert (np.abs(a.value[both] - b.value[both]) <= allowed + 1e-300).all()


@pytest.mark.parametrize(
    ("d", "m", "limits"),
    [
        (1, 1, (1, -math.inf, math.inf, -math.inf, math.inf)),
        (3, 2, (1, -math.inf, math.inf, -math.inf, math.inf)),
        (2, 2, (1, -math.inf, 1 / (2 * math.pi), -math.inf, math.inf)),
        (1, 2, (1, -0.5, 0, -math.inf, math.inf)),
        (8, 7, (1, None, 0, 0, 0)),
        (199, 100, (1, -math.inf, math.inf, -math.inf, math.inf)),
    ],
)
def test_limits_at_zero(d, m, limits):
    for order, limit in enumerate(limits):
        value = SDO(d, m).derivative(0.0, order)
        near = SDO(d, m).derivative(1e-20, order)
        assert np.isfinite(near)
        if limit is not None:
            assert value == pytest.approx(limit, rel=1e-9)
        if np.isfinite(value):
            assert near == pytest.approx(value, abs=1e-7)
        else:
            assert np.sign(near) == np.sign(value)


def test_limit_of_the_fourth_product_where_it_is_a_constant():
    # d = 2, m = 3: phi has a term c s^2 log s, so that s phi''' and s^2 phi'''' tend to 2 c and -2 c
    third, fourth = (float(SDO(2, 3).derivative(0.0, order)) for order in (3, 4))
    assert third == pytest.approx(-fourth, rel=1e-9)
    assert third == pytest.approx(1e-6 * SDOProfile(2, 3, 3)(np.array([1e-6]))[0], rel=1e-3)


@pytest.mark.parametrize(("d", "m"), thinned(PAIRS[1:] + HIGH, 2))
def test_laplacian(d, m):
    kernel, s = SDO(d, m), d * np.geomspace(1e-6, 5.0, 200)
    expected = 2 * (d * kernel.derivative(s, 1) + 2 * kernel.derivative(s, 2))
    np.testing.assert_allclose(kernel.laplacian(s), expected, rtol=1e-10, atol=1e-10)
    at_zero = kernel.laplacian(0.0)
    assert at_zero == (2 * d * kernel.derivative(0.0, 1) if kernel.smoothness > 1 else -math.inf)


@pytest.mark.parametrize(("d", "m"), [(1, 1), (1, 2), (1, 4)])
def test_self_convolution_in_one_dimension(d, m):
    kernel, convolved = SDO(d, m), SDO(d, m).self_convolution()
    assert convolved(0.0) == 1.0
    z = np.linspace(-60.0, 60.0, 120 * 400 + 1)
    for r in (0.0, 0.5, 3.0):
        product = kernel(z * z) * kernel((z - r) ** 2)
        expected = np.sum(product) / 400
        assert math.exp(convolved.log_constant) * convolved(r * r) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("d", "m"), [(1, 2), (2, 2), (2, 3), (3, 2), (3, 4)])
def test_self_convolution_has_the_squared_spectrum(d, m):
    convolved, k0 = SDO(d, m).self_convolution(), math.exp(log_k0(d, m))
    for r in (0.6, 2.5):
        expected = radial_integral(d, r, lambda t: (1 + t ** (2 * m)) ** -2.0) / k0**2
        assert math.exp(convolved.log_constant) * convolved(r * r) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("d", "m"), [*PAIRS, (200, 102)])
def test_float32(d, m):
    s = (d * np.r_[0.0, np.geomspace(1e-30, 1e30, 2000)]).astype(np.float32)
    for order in range(5):
        wide = SDO(d, m).derivative(s.astype(np.float64), order)
        strict = SDO(d, m).derivative(array_api_strict.asarray(s), order)
        for value in (SDO(d, m).derivative(s, order), np.asarray(strict)):
            assert value.dtype == np.float32
            assert not np.isnan(value).any()
            finite = np.isfinite(wide) & (np.abs(wide) < 1e38)
            assert np.max(np.abs(value[finite] - wide[finite]) / (1 + np.abs(wide[finite]))) < 2e-6


def test_strict_namespace():
    s = np.r_[0.0, np.geomspace(1e-30, 1e7, 999)].reshape(20, 50)
    kernel = SDO(5, 4)
    forms = [lambda a, order=order: kernel.derivative(a, order) for order in range(5)]
    for form in [*forms, kernel.laplacian, kernel.self_convolution()]:
        value = form(array_api_strict.asarray(s))
        assert value.shape == s.shape
        np.testing.assert_allclose(np.asarray(value), form(s), rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 31, 101, 199, 200])
def test_tables_are_made_in_two_seconds(d):
    for m in (d // 2 + 1, d // 2 + 2, d, 2 * d):
        if 2 * m <= d:
            continue
        makers = [lambda order=order, m=m: product_table.__wrapped__(d, m, order) for order in range(5)]
        makers.append(lambda m=m: convolution_table.__wrapped__(d, m))
        if m > 1:
            makers.append(lambda m=m: laplacian_table.__wrapped__(d, m))
        for make in makers:
            start = time.perf_counter()
            make()
            assert time.perf_counter() - start < 2.0


def test_order_defaults_to_a_twice_smoother_kernel():
    kernel = SDO().bind(6)
    assert repr(kernel) == "SDO(dim=6, order=None)"
    assert kernel.bound_order == 5
    assert kernel.smoothness == 2.0
    assert kernel(3.0) == SDO(6, 5)(3.0)
    assert SDO(order=np.int64(5)).bind(6) == SDO(6, 5)


@pytest.mark.parametrize(
    ("arguments", "smallest"),
    [((None, 0), 1), ((None, 1.5), 1), ((3, 1), 2), ((4, 2), 3), ((199, 99), 100), ((2, True), 2), ((2, "3"), 2)],
)
def test_orders_that_do_not_work_name_the_smallest_that_does(arguments, smallest):
    with pytest.raises(ValueError, match=rf"at least {smallest}\b"):
        SDO(*arguments)


def test_order_is_checked_when_bound():
    with pytest.raises(ValueError, match="at least 6 for 10 columns"):
        SDO(order=4).bind(10)


def test_kernels_and_convolutions_pickle():
    kernel = SDO(4)
    before = kernel(1.3), kernel.self_convolution()(1.3)
    again = pickle.loads(pickle.dumps((kernel, kernel.self_convolution())))
    assert again[0] == kernel
    assert (again[0](1.3), again[1](1.3)) == before


def test_series_knows_its_reach():
    out = SDOSeries(3, 2, 0)(np.array([0.1, 100.0]))
    assert np.isfinite(out.error).tolist() == [True, False]


@pytest.mark.parametrize(("d", "p"), [(60, 33), (61, 32), (200, 102)])
def test_quadrature_of_another_spectrum(d, p):
    # the Sobolev norm with denominator (1 + t^2)^p has the Matern kernel of order p - d/2
    nu, r = p - 0.5 * d, np.linspace(4.0, 60.0, 500)
    for order, expected in ((0, matern_function(r, nu)), (1, -matern_function(r, nu - 1) / (4 * (nu - 1)))):
        quadrature = SpectralQuadrature(
            d, order, lambda u: -p * np.logaddexp(0.0, 2 * u), betaln(0.5 * d, nu) - math.log(2), 0.01, 4.0, 60.0
        )
        np.testing.assert_allclose(quadrature(r).value, expected, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("d", range(1, 201))
def test_every_dimension_has_an_exact_table_in_under_two_seconds(d):
    for m in {d // 2 + 1, d // 2 + 2, 2 * d}:
        product_table.cache_clear()
        start = time.perf_counter()
        table = product_table(d, m, 0)
        assert time.perf_counter() - start < 2.0
        s = np.geomspace(1e-8, 2.0 ** (table.highest - 1), 300)
        np.testing.assert_allclose(table(s.copy(), Workspace()), SDOProfile(d, m, 0)(s), rtol=0, atol=1e-11)
