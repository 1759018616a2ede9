"""Densities in frame coordinates against differences of their own logarithms, and where they underflow."""

import numpy as np
import pytest

from isopleth import InputError
from isopleth.density.frame_density import ExpansionDensity
from isopleth.expansion import KernelExpansion
from isopleth.kernels import KERNELS, SDO, Laplacian


def accepted(squared, dim):
    """Names of the kernels that have a normaliser, by asking them."""
    out = []
    for name, kernel in KERNELS.items():
        try:
            bound = kernel.bind(dim)
            bound.self_convolution() if squared else bound.log_integral()
        except InputError:
            continue
        out.append(name)
    return out


# Kernels that underflow at distances of a few thousand length scales.
UNDERFLOWING = [name for name, kernel in KERNELS.items() if kernel.nonnegative and kernel.bind(3)(1e7) == 0.0]

PAIRS = [(squared, name, dim) for squared in (True, False) for dim in (1, 3) for name in accepted(squared, dim)]


def density(squared, kernel, dim, n=20, seed=0):
    rng = np.random.default_rng(seed)
    sums = KernelExpansion(kernel.bind(dim), rng.normal(size=(n, dim)), rng.uniform(0.1, 1.0, size=n))
    return ExpansionDensity(sums, squared)


def test_every_kernel_is_a_density_somewhere_and_some_are_refused():
    for dim in (1, 2, 7):
        bound = {name: kernel.bind(dim) for name, kernel in KERNELS.items()}
        assert accepted(True, dim) == [name for name, kernel in bound.items() if kernel.square_integrable]
        assert accepted(False, dim) == [name for name, kernel in bound.items() if kernel.integrable]
    assert accepted(True, 1) == list(KERNELS)
    assert accepted(True, 7) != list(KERNELS)
    assert 0 < len(accepted(False, 2)) < len(KERNELS)


def hyvarinen_by_differences(log_density, z, h):
    """Trace of the Hessian of log p plus half the squared gradient."""
    total = np.zeros(len(z))
    here = log_density(z)
    for e in np.eye(z.shape[1]):
        up, down = log_density(z + h * e), log_density(z - h * e)
        total += (up - 2 * here + down) / h**2 + 0.5 * ((up - down) / (2 * h)) ** 2
    return total


@pytest.mark.parametrize(("squared", "name", "dim"), PAIRS)
def test_hyvarinen_terms_by_differences(squared, name, dim):
    p = density(squared, KERNELS[name], dim)
    z = np.random.default_rng(1).normal(size=(15, dim)) * 1.5
    z = z[p.positive(z)]
    apart = np.abs(z[:, None] - p.expansion.centers).sum(axis=2).min(axis=1) > 0.02  # kinks
    want = hyvarinen_by_differences(p.log_density, z[apart], 3e-4)
    np.testing.assert_allclose(p.hyvarinen_terms(z[apart]), want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("squared", "name", "dim"), PAIRS)
def test_gradient_by_differences(squared, name, dim):
    p = density(squared, KERNELS[name], dim)
    z = np.random.default_rng(2).normal(size=(15, dim))
    for j, e in enumerate(np.eye(dim)):
        want = (p.log_density(z + 1e-6 * e) - p.log_density(z - 1e-6 * e)) / 2e-6
        np.testing.assert_allclose(p.grad_log_density(z)[:, j], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("name", UNDERFLOWING)
def test_hyvarinen_terms_where_the_sum_underflows(squared, name):
    p = density(squared, KERNELS[name], 3)
    direction = np.array([0.48, 0.6, 0.64])
    z = np.array([60.0, 300.0, 800.0, 5000.0])[:, None] * direction
    assert (p.expansion.value(z) == 0.0).any()
    # Steps of a hundredth: the logarithm is smooth out there, and large.
    want = hyvarinen_by_differences(p.log_density, z, 1e-2)
    np.testing.assert_allclose(p.hyvarinen_terms(z), want, rtol=2e-4, atol=1e-4)
    far = p.hyvarinen_terms(np.array([[1e8, 0.0, 0.0], [1e149, 0.0, 0.0], [-1e150, 1e150, 1e150]]))
    assert np.isfinite(far).all()
    assert p.positive(z).all()


@pytest.mark.parametrize("name", UNDERFLOWING)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_log_domain_joins_the_plain_one(name, dtype):
    """Neighbours on both sides of the threshold agree with a slow sum in logarithms."""
    rng = np.random.default_rng(0)
    centers, alpha = rng.normal(size=(12, 2)), rng.uniform(0.1, 1.0, size=12)
    f = KernelExpansion(KERNELS[name].bind(2), centers.astype(dtype), alpha.astype(dtype))
    x = np.linspace(2.0, 600.0, 400)[:, None] * np.array([[0.6, 0.8]])
    kernel = KERNELS[name].bind(2)
    s = ((x[:, None] - centers) ** 2).sum(axis=2)
    log_terms = kernel.log(s) + np.log(alpha)
    share = np.exp(log_terms - log_terms.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    step = 1e-3
    slope = lambda s: (kernel.log(s * (1 + step)) - kernel.log(s * (1 - step))) / (2 * step * s)  # noqa: E731
    bend = (kernel.log(s * (1 + step)) - 2 * kernel.log(s) + kernel.log(s * (1 - step))) / (step * s) ** 2
    want = (share * 2 * (2 * slope(s) + 2 * s * (bend + slope(s) ** 2))).sum(axis=1)
    got = f.laplacian_over_value(x.astype(dtype))
    tolerance = 1e-4 if dtype is np.float64 else 5e-3
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_positive_knows_a_sum_that_changes_sign():
    p = density(True, SDO(order=4), 1)
    z = np.linspace(-15, 15, 2001)[:, None]
    values = p.expansion.value(z)
    assert (values < 0).any()
    np.testing.assert_array_equal(p.positive(z), values > 0)
    assert density(False, Laplacian(), 2).positive(np.full((3, 2), 1e9)).all()


def test_mixtures_refuse_kernels_that_do_not_integrate():
    for name in (name for name, kernel in KERNELS.items() if not kernel.bind(2).integrable):
        with pytest.raises(InputError, match="'gaussian'"):
            _ = density(False, KERNELS[name], 2).log_normalizer
