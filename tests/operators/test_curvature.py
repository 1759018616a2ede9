"""The shared formulas of a kernel against those that every kernel has."""

from dataclasses import dataclass

import array_api_strict
import numpy as np
import pytest

from isopleth.kernels import IMQ, Gaussian, Workspace
from isopleth.operators.blocks import laplacian_slope, slope_and_bend


@dataclass(frozen=True)
class OwnGaussian(Gaussian):
    """A Gaussian of another type, for which the general code is used."""


@dataclass(frozen=True)
class OwnIMQ(IMQ):
    """Likewise."""


PAIRS = [(Gaussian(dim=4), OwnGaussian(dim=4)), (IMQ(dim=4), OwnIMQ(dim=4)), (IMQ(dim=1), OwnIMQ(dim=1))]


def distances(dtype=np.float64):
    return np.concatenate([10.0 ** np.linspace(-6, 6, 90), np.linspace(0.1, 60.0, 90)]).astype(dtype)[:, None]


def close(got, want, scale, tol):
    tiny = np.finfo(got.dtype).tiny  # numbers below it have fewer digits
    assert np.all(np.abs(got - want) <= tol * scale + 100 * tiny)


@pytest.mark.parametrize(("quick", "general"), PAIRS, ids=repr)
@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-13), (np.float32, 1e-4)])
def test_they_are_the_derivatives(quick, general, dtype, tol):
    s = distances(dtype)
    with np.errstate(all="ignore"):
        for got, want in zip(
            slope_and_bend(quick, s.copy(), Workspace()), slope_and_bend(general, s.copy(), Workspace()), strict=True
        ):
            assert got.dtype == dtype
            close(got, want, np.abs(want), tol)
        got = laplacian_slope(quick, s.copy(), Workspace())
        want = laplacian_slope(general, s.copy(), Workspace())
    second, third = quick.derivative(s, 2) / s, quick.derivative(s, 3)
    close(got, want, 4 * (quick.dim + 2) * np.abs(second) + 8 * np.abs(third), tol)


@pytest.mark.parametrize("kernel", [Gaussian(dim=3), IMQ(dim=3)], ids=repr)
def test_nothing_is_left_at_infinity(kernel):
    far = np.array([[1e30, np.inf]])
    with np.errstate(all="ignore"):
        assert np.all(np.abs(slope_and_bend(kernel, far.copy(), Workspace())) < 1e-40)
        assert np.all(np.abs(laplacian_slope(kernel, far.copy(), Workspace())) < 1e-40)


@pytest.mark.parametrize("kernel", [Gaussian(dim=3), IMQ(dim=3)], ids=repr)
def test_they_run_on_a_strict_array_api_library(kernel):
    s = distances()
    strict = array_api_strict.asarray(s)
    for got, want in zip(
        slope_and_bend(kernel, array_api_strict.asarray(strict, copy=True), Workspace()),
        slope_and_bend(kernel, s.copy(), Workspace()),
        strict=True,
    ):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-14)
    got = laplacian_slope(kernel, array_api_strict.asarray(strict, copy=True), Workspace())
    np.testing.assert_allclose(np.asarray(got), laplacian_slope(kernel, s.copy(), Workspace()), rtol=1e-12, atol=1e-300)
