"""Contract of all kernels: derivatives, limits, positive definiteness, binding. The template of a kernel is one of them."""

import pickle
from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
from scipy.special import gammaln

from isopleth import InputError
from isopleth.kernels import KERNELS, Gaussian, get_kernel
from isopleth.operators import LOG_GRADIENT, Operator
from kernels.lean import LeanKernel
from templates.kernel import KernelTemplate

ALL = {**KERNELS, "template": KernelTemplate(), "lean": LeanKernel()}
CASES = [(name, dim) for name in ALL for dim in (1, 2, 7)]
S = np.geomspace(0.05, 60, 40)


@pytest.mark.parametrize(("name", "dim"), CASES)
def test_each_derivative_product_is_the_derivative_of_the_one_before(name, dim):
    k = ALL[name].bind(dim)
    h = 1e-5 * S
    for order in range(1, 5):
        power, lower = order // 2, (order - 1) // 2
        slope = (
            k.derivative(S + h, order - 1) * (S + h) ** -lower - k.derivative(S - h, order - 1) * (S - h) ** -lower
        ) / (2 * h)
        got = k.derivative(S, order)
        scale = np.max(np.abs(got))
        np.testing.assert_allclose(got, S**power * slope, rtol=1e-5, atol=2e-6 * scale)


@pytest.mark.parametrize(("name", "dim"), CASES)
def test_laplacian_is_that_of_the_kernel(name, dim):
    k = ALL[name].bind(dim)
    x = np.random.default_rng(0).normal(size=(30, dim)) + 0.5
    h = 1e-3
    total = -2.0 * dim * k(np.sum(x**2, axis=1))
    for e in np.eye(dim):
        total += k(np.sum((x + h * e) ** 2, axis=1)) + k(np.sum((x - h * e) ** 2, axis=1))
    got = k.laplacian(np.sum(x**2, axis=1))
    np.testing.assert_allclose(got, total / h**2, rtol=1e-3, atol=1e-3 * np.max(np.abs(got)))


@pytest.mark.parametrize(("name", "dim"), CASES)
def test_limits_at_zero_and_far_away(name, dim):
    k = ALL[name].bind(dim)
    assert k(0.0) == pytest.approx(1.0, abs=1e-12)
    assert not np.isnan([k.derivative(0.0, order) for order in range(5)]).any()
    assert np.isfinite(k.derivative(0.0, 1)) == (k.smoothness > 1)
    # Two infinities cancel in one dimension: e^-|x| is 1 - |x| + x^2/2 near 0.
    assert np.isfinite(k.laplacian(0.0)) == (k.smoothness > 1 or (dim == 1 and k.smoothness == 0.5))
    assert abs(k(1e12)) < 1e-5
    assert abs(k(1e24)) <= 1e-3 * abs(k(1e12))
    if k.square_integrable:  # r^dim phi^2 tends to 0
        assert 1e24 ** (0.5 * dim) * k(1e24) ** 2 < 1e-6
    far = np.array([0.0, 1e-300, 1e-30, 1e30, 1e300, np.inf])
    assert np.isfinite(k(far)).all()
    for order in range(1, 5):
        np.testing.assert_array_equal(k.derivative(far, order)[-2:], 0.0)
    np.testing.assert_array_equal(k.laplacian(far)[-2:], 0.0)
    with np.errstate(over="ignore"):
        single = far.astype(np.float32)
    for order in range(5):
        assert not np.isnan(k.derivative(single, order)).any()


@pytest.mark.parametrize(("name", "dim"), CASES)
def test_positive_definite_and_nonnegative_where_it_says_so(name, dim):
    k = ALL[name].bind(dim)
    x = np.random.default_rng(1).normal(size=(120, dim)) * 2
    gram = k(((x[:, None] - x) ** 2).sum(axis=2))
    assert np.linalg.eigvalsh(gram).min() > -1e-10
    if k.nonnegative:
        assert (gram >= 0).all()
        s = np.array([1e-8, 0.3, 2.0, 1e3])
        np.testing.assert_allclose(k.log(s[:3]), np.log(k(s[:3])), rtol=1e-12, atol=1e-15)
        assert np.isfinite(k.log(s)).all()
        slope = Operator(k, np.sqrt(s[:3])[:, None] * np.eye(dim)[0], np.zeros((1, dim)), block=LOG_GRADIENT)
        state = slope.matvec(np.zeros(1))
        want = 2 * np.sqrt(s[:3]) * k.derivative(s[:3], 1) / k(s[:3])
        np.testing.assert_allclose(state[:, 2] / state[:, 1], want, rtol=1e-10)
    else:
        with pytest.raises(ValueError, match="negative"):
            k.log(0.5)


@pytest.mark.parametrize("name", [name for name, kernel in ALL.items() if kernel.nonnegative])
def test_logarithms_where_phi_underflows_and_squares_overflow(name):
    k = ALL[name].bind(2)
    s = np.array([1e7, 1e30, 1e200, 1.7e308])
    log = k.log(s)
    assert np.isfinite(log).all()
    x = np.sqrt(s)[:, None] * [1.0, 0.0]
    state = Operator(k, x, np.zeros((1, 2)), block=LOG_GRADIENT).matvec(np.zeros(1))
    np.testing.assert_allclose(state[:, 0], log, rtol=1e-15)
    # d log phi / d log r is twice d log phi / d log s
    step = (k.log(s * (1 + 1e-6)) - k.log(s * (1 - 1e-6))) / 1e-6
    np.testing.assert_allclose(state[:, 2] / state[:, 1] * x[:, 0], step, rtol=1e-6)
    assert k.log(np.inf) == -np.inf


@pytest.mark.parametrize("name", ALL)
def test_self_convolution_is_one_at_zero_and_has_the_constant_of_the_integral(name):
    for dim in (1, 2, 3, 5, 40):
        k = ALL[name].bind(dim)
        if not k.square_integrable:
            with pytest.raises(InputError, match="square"):
                k.self_convolution()
            continue
        c = k.self_convolution()
        assert c(0.0) == pytest.approx(1.0, abs=1e-10)
        # log of the integral of k^2 = area of the sphere * integral of r^(d-1) phi^2, with the peak of the integrand
        # taken out
        # In ln r, for tails that decrease as a power of r.
        log_r = np.linspace(-40.0, 40.0, 200_001)
        with np.errstate(divide="ignore"):
            log_f = dim * log_r + 2 * np.log(np.abs(k(np.exp(2 * log_r))))
        log_area = np.log(2) + dim / 2 * np.log(np.pi) - gammaln(dim / 2)
        top = log_f.max()
        want = log_area + top + np.log(np.trapezoid(np.exp(log_f - top), log_r))
        # In 40 dimensions r^39 phi^2 still has mass where the table of a kernel has ended.
        assert c.log_constant == pytest.approx(want, abs=1e-6 if dim < 40 else 1e-4)


@pytest.mark.parametrize("name", ALL)
def test_frozen_values_that_bind_pickle_and_compare(name):
    free = ALL[name]
    bound = free.bind(3)
    assert bound == replace(free, dim=3) == pickle.loads(pickle.dumps(bound)) == bound.bind(3)
    assert hash(bound) == hash(free.bind(3))
    with pytest.raises(ValueError, match="bound to 3 columns"):
        bound.bind(4)
    assert repr(replace(free, dim=np.int64(3))) == repr(bound)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="dim"):
            replace(free, dim=bad)
    with pytest.raises(ValueError, match="order"):
        bound.derivative(1.0, 5)


@pytest.mark.parametrize("name", ALL)
def test_shapes_types_and_libraries(name):
    k = ALL[name].bind(2)
    s = np.arange(6.0).reshape(2, 3)
    kept = s.copy()
    for order in range(5):
        out = k.derivative(s, order)
        assert out.shape == (2, 3)
        strict = k.derivative(array_api_strict.asarray(s), order)
        np.testing.assert_allclose(np.asarray(strict), out, rtol=1e-12)
        single = k.derivative(s[1].astype(np.float32), order)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, out[1], rtol=2e-4, atol=1e-6)
    np.testing.assert_array_equal(s, kept)
    np.testing.assert_array_equal(k(np.arange(6).reshape(2, 3)), k(s))
    assert np.ndim(k(2)) == 0
    assert k([1.0, 2.0]).shape == (2,)


def test_names():
    assert get_kernel("gaussian") == Gaussian()
    assert get_kernel(Gaussian(dim=2)) == Gaussian(dim=2)
    for bad in ("rbf", None, 3):
        with pytest.raises(InputError, match=", ".join(map(repr, KERNELS))):
            get_kernel(bad)
    with pytest.raises(ValueError, match="not bound"):
        Gaussian().laplacian(1.0)
