"""Inverse multiquadric kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isopleth.backend import Array, namespace, overwrite
from isopleth.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, names_of_kernels, register
from isopleth.kernels.rational_quadratic import RationalQuadratic

# s^floor(n/2) phi^(n) = c (s/(1+s))^floor(n/2) (1+s)^(-e/2); these are the (c, e).
_FACTORS = ((1.0, 1), (-1 / 2, 3), (3 / 4, 3), (-15 / 8, 5), (105 / 16, 5))


def _inverse(a: Array) -> Array:
    """Compute 1/a in the memory of `a`."""
    a **= -1.0
    return a


def _convolved(s: Array, work: Workspace) -> Array:
    """Compute 1/agm(1, sqrt(1 + s/4)), agm being the arithmetic-geometric mean."""
    xp = namespace(s)
    s *= 0.25
    s += 1.0
    a = overwrite(xp.sqrt, s)
    g = work.copy("geometric mean", a)
    g[...] = 1.0
    digits = float(xp.finfo(a.dtype).eps)
    while bool(xp.any(a - g > 4.0 * digits * a)):
        middle = work.copy("arithmetic mean", a)
        middle += g
        middle *= 0.5
        g *= a
        g = overwrite(xp.sqrt, g)
        a[...] = middle
    return _inverse(a)


@register("imq")
@dataclass(frozen=True)
class IMQ(Kernel):
    r"""Inverse multiquadric kernel, :math:`\varphi(s) = (1 + s)^{-1/2}`.

    It has no integral in any dimension, and its square has one in one dimension only: use it for scores and Stein
    discrepancies, not for densities of two columns or more. It is ``RationalQuadratic(shape=0.5)`` without a logarithm and an
    exponential for each value.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.

    Examples
    --------
    >>> from isopleth.kernels import IMQ
    >>> float(IMQ(dim=2)(3.0))
    0.5
    """

    @property
    def smoothness(self) -> float:
        """Infinite: the kernel is analytic."""
        return math.inf

    @property
    def integrable(self) -> bool:
        """False: the kernel has no integral in any dimension."""
        return False

    @property
    def square_integrable(self) -> bool:
        """True in one dimension."""
        return self.bound_dim == 1

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        xp = namespace(s)
        share = None
        if order > 1:
            # s/(1+s) in a form that is 1 at infinity
            share = _inverse(work.copy("share", s))
            share += 1.0
            share = _inverse(share)
            if order == 4:
                share *= share
        s += 1.0
        root = _inverse(overwrite(xp.sqrt, s))
        factor, exponent = _FACTORS[order]
        if exponent == 1:
            return root
        square = work.copy("square", root)
        square *= root
        for _ in range(exponent // 2):
            root *= square
        if share is not None:
            root *= share
        root *= factor
        return root

    def _log(self, s: Array, work: Workspace) -> Array:
        out = overwrite(namespace(s).log1p, s)
        out *= -0.5
        return out

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        s += 1.0
        out = _inverse(s)
        out *= -0.5
        return out

    def self_convolution(self) -> SelfConvolution:
        r"""Return a complete elliptic integral, in one dimension.

        .. math:: \int \varphi(|z|^2)\, \varphi(|z - r|^2)\, dz = \frac{4}{\sqrt{r^2 + 4}}\, K(k)
            = \frac{\pi}{\operatorname{agm}(1, \sqrt{1 + r^2/4})}, \qquad k^2 = \frac{r^2}{r^2 + 4}

        The arithmetic-geometric mean gives it to the last digits at every distance, in a dozen square roots or fewer.

        Raises
        ------
        InputError
            In two dimensions and more, where the square has no integral.
        """
        if not self.square_integrable:
            others = names_of_kernels("square_integrable", self.bound_dim)
            raise InputError(f"{self!r} has a square that does not integrate, so that f^2 is no density: use {others}.")
        return SelfConvolution(math.log(math.pi), _convolved)

    def log_integral(self) -> float:
        """Raise InputError: the kernel has no integral in any dimension."""
        raise self._no_integral()

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Raise InputError, as :meth:`log_integral` does."""
        raise self._no_integral()

    def _no_integral(self) -> InputError:
        others = names_of_kernels("integrable", self.bound_dim)
        return InputError(f"{self!r} does not integrate and is no density: use {others}.")

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw products of a standard normal vector and a standard normal number.

        The kernel is a mixture of Gaussian kernels: :math:`(1+s)^{-1/2} = \mathbb{E}\, e^{-g^2 s/2}` for a standard normal g.
        """
        return rng.standard_normal((n, 1)) * rng.standard_normal((n, self.bound_dim))

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""Return the log of a density :math:`\propto |\omega|^{-b} K_b(|\omega|)`, :math:`b = (d-1)/2`: infinite at 0."""
        return RationalQuadratic(self.bound_dim, shape=0.5).log_spectral_density(omega)
