"""The check of a kernel accepts the kernels of the library, and names the formula that is wrong in others."""

import math

import numpy as np
import pytest

from isopleth import InputError
from isopleth.kernels import (
    KERNELS,
    Gaussian,
    Kernel,
    ProductLaplacian,
    RationalQuadratic,
    SelfConvolution,
    check_kernel,
)
from kernels.lean import LeanKernel
from templates.kernel import KernelTemplate

ALL = {**KERNELS, "template": KernelTemplate(), "lean": LeanKernel()}
ALL["slow tails"] = RationalQuadratic(shape=0.6)  # part of its integral is beyond e^40


@pytest.mark.parametrize("name", ALL)
def test_it_accepts_every_kernel_of_the_library(name):
    found, kernel = check_kernel(ALL[name], dims=(1, 2)), ALL[name].bind(2)
    assert found[:6] == ["phi", "phi'", "s phi''", "s phi'''", "s^2 phi''''", "laplacian"]
    assert ("self_convolution" in found) == ALL[name].bind(1).square_integrable
    assert ("log_spectral_density" in found) == kernel.has_spectrum


class Scaled(Kernel):
    """A Gaussian kernel, one of whose formulas is multiplied by a factor."""

    smoothness = math.inf
    wrong, factor = None, 1.01

    def _product(self, s, order, work):
        right = Gaussian(dim=self.dim)._product(s, order, work)
        return right * self.factor if order == self.wrong else right


def variant(**body):
    """A kernel with a mistake; it is bound to no dimension."""
    return type("Variant", (Scaled,), body)()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"wrong": 0}, r"Variant\(dim=2\): phi at s = 0 is 1.01; expected 1"),
        ({"wrong": 1, "factor": 1.001}, "phi' at s = 0.05 .*finite differences"),
        ({"wrong": 2}, "s phi'' at"),
        ({"wrong": 3}, "s phi''' at"),
        ({"wrong": 4}, r"s\^2 phi'''' at"),
        ({"laplacian": lambda self, s: Gaussian(dim=3).laplacian(s)}, "the Laplacian at"),
        ({"_log": lambda self, s, work: -s}, "log phi at"),
        ({"_log": lambda self, s, work: -s / 2, "_log_slope": lambda self, s, work: 0.0 * s - 1.0}, "_log_slope at"),
        ({"log_integral": lambda self: 0.0}, "log_integral at .*quadrature"),
        (
            {"log_integral": Gaussian(dim=2).log_integral, "sample": lambda self, n, rng: rng.normal(0, 1.1, (n, 2))},
            "draws of sample do not",
        ),
        ({"self_convolution": lambda self: SelfConvolution(0.0, lambda s, work: np.exp(-s / 4))}, "log_constant"),
        (
            {"self_convolution": lambda self: SelfConvolution(math.log(math.pi), lambda s, work: np.exp(-s / 2))},
            "psi of self_convolution at s = 1 ",
        ),
        (
            {
                "sample_frequencies": lambda self, n, rng: rng.normal(0, 1.1, (n, 2)),
                "log_spectral_density": Gaussian(dim=2).log_spectral_density,
            },
            "draws of sample_frequencies do not",
        ),
        (
            {
                "sample_frequencies": Gaussian(dim=2).sample_frequencies,
                "log_spectral_density": lambda self, omega: Gaussian(dim=2).log_spectral_density(omega) + 0.1,
            },
            "log_spectral_density has the integral 1.1",
        ),
    ],
)
def test_it_names_the_formula_that_is_wrong(body, words):
    with pytest.raises(InputError, match=words):
        check_kernel(variant(**body), dims=(2,))


class Slow(Kernel):
    """1/(1 + s), capped where it should vanish, as a formula that guards against overflow may be."""

    smoothness = math.inf

    def _product(self, s, order, work):
        if order > 1:
            return super()._product(s, order, work)
        s = np.minimum(s, 1e30)
        return 1 / (1 + s) if order == 0 else -((1 + s) ** -2)


class Box(Kernel):
    smoothness = 0.5

    def _product(self, s, order, work):
        return (np.asarray(s) < 1.0).astype(s.dtype) if order == 0 else super()._product(s, order, work)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Slow(), "phi' at s = 1e[+]300 is -1e-60; expected 0, which far rows need"),
        (Box(dim=3), r"Box\(dim=3\): a matrix of 120 points has the eigenvalue -"),
        (ProductLaplacian(), "expected an instance of a radial kernel"),
        (Gaussian, "expected an instance of a radial kernel"),
    ],
)
def test_it_refuses_what_is_wrong_far_away_or_not_positive(kernel, words):
    with pytest.raises(InputError, match=words):
        check_kernel(kernel)
