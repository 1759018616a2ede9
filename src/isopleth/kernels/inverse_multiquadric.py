"""The inverse multiquadric kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import kve

from isopleth.backend import Array, namespace, overwrite
from isopleth.errors import InputError
from isopleth.kernels.base import DENSITIES, SQUARES, Kernel, SelfConvolution, Workspace
from isopleth.kernels.matern import matern_function

# s^floor(n/2) phi^(n) = c (s/(1+s))^floor(n/2) (1+s)^(-e/2); these are the (c, e).
_FACTORS = ((1.0, 1), (-1 / 2, 3), (3 / 4, 3), (-15 / 8, 5), (105 / 16, 5))

# Beyond this wave number, what is left of a Bessel function is its leading term.
_ASYMPTOTIC = 1e8


def _inverse(a: Array) -> Array:
    a **= -1.0
    return a


def _convolved(s: Array, work: Workspace) -> Array:
    """1/agm(1, sqrt(1 + s/4)), agm being the limit of arithmetic and geometric means in turn."""
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


@dataclass(frozen=True)
class IMQ(Kernel):
    r"""The inverse multiquadric kernel, :math:`\varphi(s) = (1 + s)^{-1/2}`.

    Its tails are so heavy that it does not integrate in any dimension, and its square does in one dimension only: it
    serves scores and Stein discrepancies, but in two dimensions and more no densities.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; left out, it is bound at fit.

    Examples
    --------
    >>> from isopleth import IMQ
    >>> float(IMQ(dim=2)(3.0))
    0.5
    """

    @property
    def smoothness(self) -> float:
        """Infinite: the kernel is analytic."""
        return math.inf

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        xp = namespace(s)
        share = None
        if order > 1:
            # s/(1+s) in a form that holds at infinity
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
        r"""In one dimension, a complete elliptic integral.

        .. math:: \int \varphi(|z|^2)\, \varphi(|z - r|^2)\, dz = \frac{4}{\sqrt{r^2 + 4}}\, K(k)
            = \frac{\pi}{\operatorname{agm}(1, \sqrt{1 + r^2/4})}, \qquad k^2 = \frac{r^2}{r^2 + 4}

        The mean of Gauss gives it to the last digits at every distance, in a dozen square roots or fewer.

        Raises
        ------
        InputError
            In two dimensions and more, where the square does not integrate.
        """
        if self.bound_dim > 1:
            raise InputError(
                f"{self!r} has a square that does not integrate, so that f^2 is no density: use {SQUARES}."
            )
        return SelfConvolution(math.log(math.pi), _convolved)

    def log_integral(self) -> float:
        """Refused: the kernel does not integrate in any dimension."""
        raise InputError(f"{self!r} does not integrate and is no density: use {DENSITIES}.")

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Refused, as :meth:`log_integral` is."""
        raise InputError(f"{self!r} does not integrate and is no density: use {DENSITIES}.")

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Products of a standard normal vector and a standard normal number.

        :math:`(1+s)^{-1/2} = \mathbb{E}\, e^{-g^2 s/2}` for a standard normal g, a mixture of Gaussian kernels.
        """
        return rng.standard_normal((n, 1)) * rng.standard_normal((n, self.bound_dim))

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r""":math:`\propto |\omega|^{-b} K_b(|\omega|)`, :math:`b = (d-1)/2`: infinite at 0."""
        order, d = 0.5 * (self.bound_dim - 1), self.bound_dim
        with np.errstate(divide="ignore", over="ignore"):
            r = np.linalg.norm(omega, axis=1)
            near = np.minimum(r, _ASYMPTOTIC)
            # K_b(r) e^r falls like r^(-1/2) from there on.
            log_bessel = np.log(kve(order, near)) - 0.5 * np.log(np.maximum(r / _ASYMPTOTIC, 1.0)) - r
            high = np.isposinf(log_bessel) & (r > 0.0)  # K_b of high orders overflows; r^b K_b does not
            if high.any() and order > 0.0:
                size = (order - 1.0) * math.log(2.0) + math.lgamma(order)
                log_bessel[high] = size - order * np.log(r[high]) + np.log(matern_function(r[high], order))
            at_one = -0.5 * d * math.log(2.0 * math.pi) - 0.5 * math.log(0.5 * math.pi)
            return np.asarray(log_bessel - order * np.log(r) + at_one)
