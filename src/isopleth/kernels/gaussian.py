"""The Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, cap, register
from isopleth.kernels.product import GAUSSIAN_FACTOR, Factor

_FURTHEST = 1e4  # of s: e^(-s/2) is 0 beyond it


def _exp_of(s: Array, factor: float) -> Array:
    """Compute e^(factor s) in the memory of `s`."""
    s *= factor
    return overwrite(namespace(s).exp, s)


def _capped_copy(s: Array, work: Workspace) -> Array:
    """Return a copy of `s` with values so limited that their powers are finite."""
    return cap(work.copy("power of s", s), _FURTHEST)


@register("gaussian")
@dataclass(frozen=True)
class Gaussian(Kernel):
    r"""Gaussian kernel, :math:`\varphi(s) = e^{-s/2}`.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.

    Examples
    --------
    >>> from isopleth.kernels import Gaussian
    >>> float(Gaussian(dim=2)(0.0))
    1.0
    """

    @property
    def column_factor(self) -> Factor:
        """Factor of a column: the Gaussian kernel is a product over columns."""
        return GAUSSIAN_FACTOR

    @property
    def smoothness(self) -> float:
        """Infinite: the kernel is analytic."""
        return math.inf

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        """Return :math:`s^k` times the k-th derivative of :math:`e^{-s/2}`."""
        if order < 2:
            out = _exp_of(s, -0.5)
            if order:
                out *= -0.5
            return out
        power = _capped_copy(s, work)
        if order == 4:
            power *= power
        power *= (-0.5) ** order
        power *= _exp_of(s, -0.5)
        return power

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        """Compute (s - d) e^(-s/2): one exponential instead of two."""
        out = _capped_copy(s, work)
        out -= float(self.bound_dim)
        out *= _exp_of(s, -0.5)
        return out

    def _log(self, s: Array, work: Workspace) -> Array:
        s *= -0.5
        return s

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        s[...] = -0.5
        return s

    def at_half_the_scale(self, values: Array) -> Array:
        """Compute the fourth power, which takes a fifth of the time of an exponential."""
        values *= values
        values *= values
        return values

    def self_convolution(self) -> SelfConvolution:
        r"""Return :math:`\pi^{d/2}\, e^{-s/4}`."""
        return SelfConvolution(0.5 * self.bound_dim * math.log(math.pi), lambda s, work: _exp_of(s, -0.25))

    def log_integral(self) -> float:
        r"""Return the logarithm of :math:`(2\pi)^{d/2}`."""
        return 0.5 * self.bound_dim * math.log(2.0 * math.pi)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw from the standard normal distribution."""
        return rng.standard_normal((n, self.bound_dim))

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw from the standard normal distribution, the spectrum of the kernel."""
        return rng.standard_normal((n, self.bound_dim))

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        """Return the logarithm of the standard normal density."""
        return np.asarray(-0.5 * np.sum(omega**2, axis=1) - 0.5 * self.bound_dim * math.log(2.0 * math.pi))
