"""The SDO kernel against reference values, closed forms, direct quadrature, its published constants and its limits."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import kve

from isopleth.kernels import SDO, Laplacian

PAIRS = [(1, 1), (1, 2), (1, 7), (2, 2), (2, 3), (2, 9), (3, 2), (3, 3), (5, 4), (8, 5), (16, 10), (31, 16)]


def log_k0(d: int, m: int) -> float:
    """Logarithm of k_1(0), from the kernel: the spectral density at 0 is 1/(k_1(0) (2 pi)^d)."""
    return -float(SDO(d, m).log_spectral_density(np.zeros((1, d)))[0]) - d * math.log(2 * math.pi)


@pytest.mark.data
def test_reference_values(shared):
    for case in json.loads((shared / "reference" / "sdo_profile.json").read_text()).values():
        r, kernel = np.array(case["r"]), SDO(case["d"], case["m"])
        np.testing.assert_allclose(kernel(r * r), case["ratio"], rtol=0, atol=1e-11)
        np.testing.assert_allclose(2 * r * kernel.derivative(r * r, 1), case["dratio"], rtol=0, atol=1e-11)
        assert log_k0(case["d"], case["m"]) == pytest.approx(case["log_k0"], rel=1e-12)


@pytest.mark.parametrize(("d", "m"), [*PAIRS, (200, 102)])
def test_published_constants(d, m):
    low = quad(lambda t: t ** (d - 1) / (1 + t ** (2 * m)), 0, 1, epsabs=0, epsrel=1e-12)[0]
    high = quad(lambda t: t ** (2 * m - d - 1) / (1 + t ** (2 * m)), 0, 1, epsabs=0, epsrel=1e-12)[0]  # in 1/t
    sphere = math.log(2) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d) - d * math.log(2 * math.pi)
    assert log_k0(d, m) == pytest.approx(sphere + math.log(low + high), rel=1e-11)
    assert low + high == pytest.approx(0.5 * math.pi / m / math.sin(0.5 * math.pi * d / m), rel=1e-11)
    kernel, s = SDO(d, m), d * np.geomspace(1e-3, 9.0, 60)
    convolved = kernel.self_convolution()
    want = (1 - 0.5 * d / m) * kernel(s) - s / m * kernel.derivative(s, 1)
    np.testing.assert_allclose(convolved(s), want / (1 - 0.5 * d / m), rtol=0, atol=1e-10)
    assert convolved.log_constant == pytest.approx(math.log1p(-0.5 * d / m) - log_k0(d, m), abs=1e-11)
    if 2 * m > d + 4:
        ratio = math.sin(0.5 * math.pi * d / m) / math.sin(0.5 * math.pi * (d + 4) / m)
        assert kernel.second_at_zero() == pytest.approx(ratio / (4 * d * (d + 2)), rel=1e-10)
    else:
        assert kernel.second_at_zero() == math.inf


def closed_form(d: int, m: int, order: int, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A derivative in s as a sum over the roots of -1, and the size of its largest rounding error; near 0 terms cancel."""
    half = 0.5 * d + order
    angles = 0.5 * math.pi * np.arange(1 - m, m, 2)[:, None] / m
    roots, nu = np.exp(1j * angles), half - 1.0
    log_size = order * math.log(math.pi) - half * math.log(2 * math.pi) - log_k0(d, m) - math.log(m) - nu * np.log(r)
    terms = np.exp(log_size - roots * r + 1j * angles * (nu + 2)) * kve(nu, roots * r)
    return (-1.0) ** order * terms.real.sum(axis=0), 2e-14 * np.abs(terms).sum(axis=0)


@pytest.mark.parametrize(("d", "m"), PAIRS)
@pytest.mark.parametrize("order", [0, 1, 4])
def test_is_its_closed_form_where_that_is_accurate(d, m, order):
    r = math.sqrt(d) * np.geomspace(0.05, 12.0, 400)
    want, error = closed_form(d, m, order, r)
    s, power = r * r, order // 2
    size = (0.5 / d) ** order * (2.0 * d) ** power
    seen = error * s**power < 1e-11 * size
    assert seen.sum() > 100
    found = SDO(d, m).derivative(s[seen], order)
    np.testing.assert_allclose(found, want[seen] * s[seen] ** power, rtol=2e-11, atol=2e-11 * size)


def test_one_dimension_first_order_is_the_laplacian_kernel():
    s = np.geomspace(1e-10, 900.0, 3000)
    for order in range(5):
        expected = Laplacian(dim=1).derivative(s, order)
        np.testing.assert_allclose(SDO(1, 1).derivative(s, order), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(SDO(1, 1).laplacian(s), Laplacian(dim=1).laplacian(s), rtol=1e-11, atol=1e-11)
    assert SDO(1, 1).laplacian(0.0) == Laplacian(dim=1).laplacian(0.0) == 1.0


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
    assert third == pytest.approx(float(SDO(2, 3).derivative(1e-6, 3)), rel=1e-3)


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
