"""Expansions: the log domain and other array libraries."""

import array_api_strict
import numpy as np
import pytest

from isopleth.expansion import KernelExpansion
from isopleth.kernels import KERNELS


@pytest.mark.parametrize("name", KERNELS)
def test_every_value_on_a_strict_array_api_library(name):
    rng = np.random.default_rng(0)
    centers, alpha = rng.normal(size=(30, 4)), rng.uniform(0.1, 1.0, size=30)
    x = rng.normal(size=(12, 4))
    x[5:8] *= 1e4  # where f underflows
    plain = KernelExpansion(KERNELS[name].bind(4), centers, alpha)
    strict = KernelExpansion(KERNELS[name].bind(4), *(array_api_strict.asarray(a) for a in (centers, alpha)))
    for method in ("value", "gradient", "laplacian", "log_abs", "grad_log_abs", "laplacian_over_value"):
        got, want = getattr(strict, method)(array_api_strict.asarray(x)), getattr(plain, method)(x)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-9)
    if plain.kernel.square_integrable:
        assert strict.log_square_integral() == pytest.approx(plain.log_square_integral(), rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_the_laplacian_is_the_trace_of_second_differences(name):
    rng = np.random.default_rng(1)
    f = KernelExpansion(KERNELS[name].bind(3), rng.normal(size=(20, 3)), rng.uniform(0.1, 1.0, size=20))
    x, h = rng.normal(size=(15, 3)) * 2, 1e-4
    total = -6.0 * f.value(x)
    for e in np.eye(3):
        total += f.value(x + h * e) + f.value(x - h * e)
    np.testing.assert_allclose(f.laplacian(x), total / h**2, rtol=1e-3, atol=1e-4)
