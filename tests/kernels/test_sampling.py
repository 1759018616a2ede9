"""Integrals, draws from kernels as densities, and draws from their spectra, for every kernel that has them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from isopleth import InputError
from isopleth.kernels import KERNELS, SDO, RationalQuadratic
from kernels.lean import LeanKernel
from templates.kernel import KernelTemplate

ALL = [*KERNELS.values(), KernelTemplate(), LeanKernel(), RationalQuadratic(shape=5.0)]
DENSITIES = [kernel.bind(dim) for kernel in ALL for dim in (1, 2, 6) if kernel.bind(dim).integrable]
OTHERS = [kernel.bind(dim) for kernel in ALL for dim in (1, 2) if not kernel.bind(dim).integrable]
FREQUENCIES = [*[kernel for kernel in ALL if kernel.bind(2).has_spectrum], SDO(order=4), SDO(order=9)]


def radial(kernel):
    """The density of distances from 0, up to a factor."""
    return lambda r: r ** (kernel.bound_dim - 1) * kernel(r * r)


@pytest.mark.parametrize("k", DENSITIES, ids=repr)
def test_integral_by_quadrature(k):
    dim = k.bound_dim
    sphere = math.log(2.0) + 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim)
    want = sphere + math.log(
        quad(lambda u: math.exp(u) * radial(k)(math.exp(u)), -40.0, 25.0, epsabs=0, epsrel=1e-11, limit=400)[0]
    )
    assert k.log_integral() == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("k", DENSITIES, ids=repr)
def test_draws_have_the_distances_and_directions_of_the_density(k):
    dim = k.bound_dim
    x = k.sample(20_000, np.random.default_rng(0))
    assert x.shape == (20_000, dim)
    u = np.linspace(-40.0, 25.0, 60_001)  # ln r, for tails that decrease as a power of r
    density = np.exp(u) * radial(k)(np.exp(u))
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    distance = np.linalg.norm(x, axis=1)
    assert kstest(distance, lambda q: np.interp(np.log(q), u, below / below[-1])).pvalue > 0.01
    direction = x / distance[:, None]
    np.testing.assert_allclose(direction.T @ direction / len(x), np.eye(dim) / dim, atol=0.02)
    np.testing.assert_allclose(direction.mean(axis=0), 0.0, atol=0.03)


@pytest.mark.parametrize("kernel", FREQUENCIES, ids=repr)
@pytest.mark.parametrize("dim", [1, 7])
def test_the_kernel_is_the_mean_cosine_of_its_frequencies(kernel, dim):
    k, rng = kernel.bind(dim), np.random.default_rng(dim)
    omega = k.sample_frequencies(60_000, rng)
    assert omega.shape == (60_000, dim)
    x = rng.normal(size=(25, dim))
    x *= (np.linspace(0.05, 3.0, 25) / np.linalg.norm(x, axis=1))[:, None]  # distances, in directions at random
    waves = np.cos(omega @ x.T)
    bound = 4.5 * waves.std(axis=0) / math.sqrt(len(omega)) + 1e-12
    assert (np.abs(waves.mean(axis=0) - k(np.sum(x**2, axis=1))) < bound).all()


@pytest.mark.parametrize(("dim", "order"), [(1, 1), (2, 2), (3, 5), (199, 100)])
def test_radii_of_sdo_frequencies_have_the_law_of_the_spectrum(dim, order):
    radius = np.linalg.norm(SDO(dim, order).sample_frequencies(20_000, np.random.default_rng(3)), axis=1)
    assert np.isfinite(radius).all()
    log_r = np.linspace(-30.0, 40.0, 200_001)
    log_density = dim * log_r - np.logaddexp(0.0, 2 * order * log_r)  # of log r
    below = np.cumsum(np.exp(log_density - log_density.max()))
    assert kstest(np.log(radius), lambda q: np.interp(q, log_r, below / below[-1])).pvalue > 0.01


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_draws_come_from_the_generator_alone(kernel):
    k = kernel.bind(2)
    for draw in [*([k.sample_frequencies] if k.has_spectrum else []), *([k.sample] if k.integrable else [])]:
        np.testing.assert_array_equal(draw(5, np.random.default_rng(7)), draw(5, np.random.default_rng(7)))
        assert draw(0, np.random.default_rng(7)).shape == (0, 2)


@pytest.mark.parametrize("kernel", OTHERS, ids=repr)
def test_kernels_that_are_no_densities_name_some_that_are(kernel):
    for ask in (kernel.log_integral, lambda: kernel.sample(1, np.random.default_rng(0))):
        with pytest.raises(InputError, match=r"(no density: use|define it, or use) .*'gaussian'.*'matern72'.*\.$"):
            ask()


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_a_kernel_without_a_dimension_says_so(kernel):
    with pytest.raises(ValueError, match="not bound"):
        kernel.sample_frequencies(3, np.random.default_rng(0))
