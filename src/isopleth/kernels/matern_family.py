"""What the Matern kernels of half-odd order share, the Laplacian among them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.special import gammaln

from isopleth._namespace import Array, namespace, overwrite
from isopleth.kernels.base import Kernel, SelfConvolution
from isopleth.kernels.matern_function import matern_table
from isopleth.kernels.matern_terms import laplacian_terms, product_terms
from isopleth.kernels.radial_table import RadialTable
from isopleth.kernels.workspace import Workspace


def _rescaled(table: RadialTable, factor: float, s: Array, work: Workspace) -> Array:
    s *= factor
    return table(s, work)


class MaternFamily(Kernel):
    r"""The kernels :math:`M_\nu(\sqrt{2\nu s})`, :math:`M_\nu(z) = \frac{2^{1-\nu}}{\Gamma(\nu)} z^\nu K_\nu(z)`, nu half-odd.

    nu is their :attr:`smoothness`.
    """

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        return product_terms(self.smoothness, order).overwrite(overwrite(namespace(s).sqrt, s), work)

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        return laplacian_terms(self.smoothness, self.bound_dim).overwrite(overwrite(namespace(s).sqrt, s), work)

    def _log(self, s: Array, work: Workspace) -> Array:
        xp = namespace(s)
        u = overwrite(xp.sqrt, s)
        series = product_terms(self.smoothness, 0)
        if len(series.coefficients) > 1:
            # Far beyond, the logarithm of the polynomial is nothing beside u, and its powers would overflow.
            near = xp.clip(u, None, float(xp.finfo(u.dtype).max) ** 0.25)
            front = series._replace(coefficients=(0.0, *series.coefficients[1:])).polynomial(near, work)
            front = overwrite(xp.log1p, front)
            u *= -series.rate
            u += front
            return u
        u *= -series.rate
        return u

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        r""":math:`-\tfrac{\nu}{2(\nu-1)} M_{\nu-1}/M_\nu` by the recurrence of M, in ratios that neither over- nor underflow."""
        nu = self.smoothness
        z = overwrite(namespace(s).sqrt, s)
        z *= math.sqrt(2.0 * nu)
        if nu < 1.0:
            z[...] = -nu / z
            return z
        ratio = work.copy("ratio", z)  # z M_(mu-1)/M_mu over 4 mu (mu - 1)
        ratio[...] = 1.0
        for i in range(1, int(nu)):
            ratio += 1.0 / z
            ratio *= 4.0 * (i + 0.5) * (i - 0.5)
            ratio[...] = 1.0 / ratio
        ratio *= z
        ratio += 1.0
        ratio[...] = (-0.5 * nu / (nu - 1.0)) / ratio
        return ratio

    def self_convolution(self) -> SelfConvolution:
        r"""A Matern function of order :math:`\mu = 2\nu + d/2` in the same :math:`z = \sqrt{2\nu s}`, not rescaled.

        .. math:: k * k = \frac{2^d \pi^{d/2}}{(2\nu)^{d/2}} \Bigl[\tfrac{\Gamma(\nu+d/2)}{\Gamma(\nu)}\Bigr]^2
            \frac{\Gamma(2\nu+d/2)}{\Gamma(2\nu+d)}\, M_\mu(z), \qquad M_\mu(z) = \frac{2^{1-\mu}}{\Gamma(\mu)} z^\mu K_\mu(z)
        """
        d, nu = self.bound_dim, self.smoothness
        # The integral of M_nu is its spectrum at 0, and the spectrum of k * k is the square of that of k.
        log_constant = 2.0 * self.log_integral() - _log_integral(2.0 * nu + 0.5 * d, nu, d)
        return SelfConvolution(log_constant, partial(_rescaled, matern_table(2.0 * nu + 0.5 * d), 2.0 * nu))

    def log_integral(self) -> float:
        r"""log of :math:`(2\nu)^{-d/2}\, 2^d \pi^{d/2}\, \Gamma(\nu + d/2)/\Gamma(\nu)`."""
        return _log_integral(self.smoothness, self.smoothness, self.bound_dim)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Normal draws of variance :math:`t/\nu` with t from the Gamma distribution of shape nu + dim/2."""
        nu, d = self.smoothness, self.bound_dim
        variance = rng.gamma(nu + 0.5 * d, size=(n, 1)) / nu
        return np.sqrt(variance) * rng.standard_normal((n, d))

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draws of the multivariate t-distribution with :math:`2\nu` degrees of freedom."""
        nu = self.smoothness
        return rng.standard_normal((n, self.bound_dim)) / np.sqrt(rng.gamma(nu, size=(n, 1)) / nu)

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""The multivariate t-density, :math:`\propto (1 + |\omega|^2/2\nu)^{-\nu - d/2}`."""
        nu, d = self.smoothness, self.bound_dim
        at_zero = gammaln(nu + 0.5 * d) - gammaln(nu) - 0.5 * d * math.log(2.0 * math.pi * nu)
        return np.asarray(at_zero - (nu + 0.5 * d) * np.log1p(0.5 / nu * np.sum(omega**2, axis=1)))


def _log_integral(mu: float, nu: float, dim: int) -> float:
    """log of the integral of M_mu(sqrt(2 nu) |x|)."""
    return float(0.5 * dim * math.log(2.0 * math.pi / nu) + gammaln(mu + 0.5 * dim) - gammaln(mu))
