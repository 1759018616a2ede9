"""Densities of the spectra that frequencies are drawn from."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from isopleth import InputError
from isopleth.kernels import IMQ, KERNELS, SDO, Kernel, RationalQuadratic, Sobolev
from kernels.lean import LeanKernel
from templates.kernel import KernelTemplate

ALL = [*KERNELS.values(), KernelTemplate(), LeanKernel()]
CASES = [kernel for kernel in ALL if kernel.bind(2).has_spectrum]
CASES += [RationalQuadratic(shape=2.3), SDO(order=4), Sobolev([0.5, 0.0, 2.0, 1e3])]


def along(kernel, r):
    """The log density at distance r from 0 along a diagonal, which all directions share."""
    return kernel.log_spectral_density(np.full((1, kernel.dim), r / math.sqrt(kernel.dim)))[0]


def radial_integral(kernel, power):
    """Integral of q^power over all wave vectors, in ln r."""
    d = kernel.dim
    sphere = 2.0 * math.pi ** (0.5 * d) / math.gamma(0.5 * d)
    u = np.linspace(-60.0, 60.0, 40_001)
    q = kernel.log_spectral_density(np.exp(u)[:, None] * np.full((1, d), 1.0 / math.sqrt(d)))
    return sphere * np.trapezoid(np.exp(power * q + d * u), u)


@pytest.mark.parametrize("kernel", CASES, ids=repr)
@pytest.mark.parametrize("dim", [1, 6])
def test_it_is_a_density_and_its_square_is_that_of_the_kernel(kernel, dim):
    kernel = kernel.bind(dim)
    assert radial_integral(kernel, 1) == pytest.approx(1.0, rel=1e-6)
    if kernel.square_integrable:  # Parseval
        square = dim * math.log(2.0 * math.pi) + math.log(radial_integral(kernel, 2))
        assert square == pytest.approx(kernel.self_convolution().log_constant, abs=1e-7)


@pytest.mark.parametrize("kernel", CASES, ids=repr)
def test_the_kernel_is_its_cosine_transform(kernel):
    kernel = kernel.bind(1)
    for x in (0.3, 1.0, 2.5):
        got = 2.0 * quad(lambda r: math.exp(along(kernel, r)), 1e-12, np.inf, weight="cos", wvar=x, limlst=200)[0]
        assert got == pytest.approx(kernel(x * x), abs=2e-6)


@pytest.mark.parametrize("kernel", CASES, ids=repr)
def test_draws_have_its_mean(kernel):
    """The mean of q over draws is the integral of q^2, however heavy the tails of the draws."""
    kernel = kernel.bind(3) if kernel.bind(3).square_integrable else kernel.bind(1)
    q = np.exp(kernel.log_spectral_density(kernel.sample_frequencies(40_000, np.random.default_rng(0))))
    assert abs(q.mean() - radial_integral(kernel, 2)) < 4.5 * q.std() / 200.0


@pytest.mark.parametrize("kernel", CASES, ids=repr)
def test_it_is_finite_where_its_powers_overflow(kernel):
    assert np.isfinite(along(kernel.bind(2), 1e100))
    assert along(kernel.bind(2), 0.0) > along(kernel.bind(2), 1.0)


@pytest.mark.parametrize("dim", [1, 2, 9, 500])
def test_that_of_imq_is_a_mixture_of_normal_ones(dim):
    g = np.exp(np.linspace(-40.0, 6.0, 40_001))  # (1 + s)^(-1/2) is the mean of exp(-g^2 s/2)
    for r in (1e-3, 1.0, 3.0 * math.sqrt(dim)):
        logs = -0.5 * (r / g) ** 2 - dim * np.log(g) - 0.5 * g**2 + np.log(g)
        mean = logs.max() + math.log(np.trapezoid(np.exp(logs - logs.max()), np.log(g)))
        want = mean + math.log(2.0) - 0.5 * (dim + 1) * math.log(2.0 * math.pi)
        assert along(IMQ(dim=dim), r) == pytest.approx(want, abs=1e-10)


def test_a_kernel_without_one_says_so():
    class Flat(Kernel):
        smoothness = 1.0

    with pytest.raises(InputError, match="does not define log_spectral_density: define it"):
        Flat(dim=2).log_spectral_density(np.zeros((1, 2)))
