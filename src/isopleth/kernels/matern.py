"""Matern kernels of order 1/2 (the Laplacian), 3/2, 5/2 and 7/2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, kve

from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.core.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, cap, register
from isopleth.kernels.radial_table import RadialTable, rescaled, tabulate


class MaternFamily(Kernel):
    r"""Kernels :math:`M_\nu(\sqrt{2\nu s})`, :math:`M_\nu(z) = \frac{2^{1-\nu}}{\Gamma(\nu)} z^\nu K_\nu(z)`, for half-odd nu.

    nu is the :attr:`smoothness`.
    """

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        return product_terms(self.smoothness, order).overwrite(overwrite(namespace(s).sqrt, s), work)

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        return laplacian_terms(self.smoothness, self.bound_dim).overwrite(overwrite(namespace(s).sqrt, s), work)

    def _log(self, s: Array, work: Workspace) -> Array:
        """Return the logarithm of the profile, a polynomial times an exponential of the root of s."""
        xp = namespace(s)
        u = overwrite(xp.sqrt, s)
        series = product_terms(self.smoothness, 0)
        if len(series.coefficients) > 1:
            # For huge u the logarithm of the polynomial is negligible beside u, and its powers would overflow.
            near = xp.clip(u, None, float(xp.finfo(u.dtype).max) ** 0.25)
            front = series._replace(coefficients=(0.0, *series.coefficients[1:])).polynomial(near, work)
            front = overwrite(xp.log1p, front)
            u *= -series.rate
            u += front
            return u
        u *= -series.rate
        return u

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        r"""Compute :math:`-\tfrac{\nu}{2(\nu-1)} M_{\nu-1}/M_\nu` by the recurrence of M in ratios, which stay finite."""
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
        r"""Return a Matern function of order :math:`\mu = 2\nu + d/2` in the same :math:`z = \sqrt{2\nu s}`.

        .. math:: k * k = \frac{2^d \pi^{d/2}}{(2\nu)^{d/2}} \Bigl[\tfrac{\Gamma(\nu+d/2)}{\Gamma(\nu)}\Bigr]^2
            \frac{\Gamma(2\nu+d/2)}{\Gamma(2\nu+d)}\, M_\mu(z), \qquad M_\mu(z) = \frac{2^{1-\mu}}{\Gamma(\mu)} z^\mu K_\mu(z)
        """
        d, nu = self.bound_dim, self.smoothness
        # The integral of M_nu is its spectrum at 0, and the spectrum of k * k is the square of that of k.
        log_constant = 2.0 * self.log_integral() - _log_integral(2.0 * nu + 0.5 * d, nu, d)
        return SelfConvolution(log_constant, partial(rescaled, matern_table(2.0 * nu + 0.5 * d), 2.0 * nu))

    def log_integral(self) -> float:
        r"""Return the logarithm of :math:`(2\nu)^{-d/2}\, 2^d \pi^{d/2}\, \Gamma(\nu + d/2)/\Gamma(\nu)`."""
        return _log_integral(self.smoothness, self.smoothness, self.bound_dim)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw normal vectors of variance :math:`t/\nu` with t from the Gamma distribution of shape nu + dim/2."""
        nu, d = self.smoothness, self.bound_dim
        variance = rng.gamma(nu + 0.5 * d, size=(n, 1)) / nu
        return np.sqrt(variance) * rng.standard_normal((n, d))

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw from the multivariate t-distribution with :math:`2\nu` degrees of freedom."""
        nu = self.smoothness
        return rng.standard_normal((n, self.bound_dim)) / np.sqrt(rng.gamma(nu, size=(n, 1)) / nu)

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""Return the logarithm of the multivariate t-density, :math:`\propto (1 + |\omega|^2/2\nu)^{-\nu - d/2}`."""
        nu, d = self.smoothness, self.bound_dim
        at_zero = gammaln(nu + 0.5 * d) - gammaln(nu) - 0.5 * d * math.log(2.0 * math.pi * nu)
        return np.asarray(at_zero - (nu + 0.5 * d) * np.log1p(0.5 / nu * np.sum(omega**2, axis=1)))


def _log_integral(mu: float, nu: float, dim: int) -> float:
    """Return the logarithm of the integral of M_mu(sqrt(2 nu) |x|)."""
    return float(0.5 * dim * math.log(2.0 * math.pi / nu) + gammaln(mu + 0.5 * dim) - gammaln(mu))


_ORDERS = (1.5, 2.5, 3.5)
_OTHER_NAMES = {0.5: "Laplacian()", float("inf"): "Gaussian()"}


@register("matern72", nu=3.5)
@register("matern52", nu=2.5)
@register("matern32", nu=1.5)
@dataclass(frozen=True)
class Matern(MaternFamily):
    r"""Matern kernel of order nu, a polynomial in :math:`z = \sqrt{2\nu s}` times an exponential.

    .. math:: \varphi(s) = e^{-z} \begin{cases} 1 + z & \nu = 3/2 \\ 1 + z + z^2/3 & \nu = 5/2 \\
        1 + z + 2z^2/5 + z^3/15 & \nu = 7/2 \end{cases}

    Functions in its space have about nu + dim/2 derivatives. Order 1/2 is :class:`Laplacian`, and the limit of large orders is
    :class:`Gaussian`.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.
    nu : {1.5, 2.5, 3.5}, default=1.5
        Order.

    Examples
    --------
    >>> from isopleth.kernels import Matern
    >>> round(float(Matern(dim=2, nu=1.5)(3.0)), 6)  # z = 3: 4 e^-3
    0.199148
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.nu, Real) and self.nu in _ORDERS:
            return
        if isinstance(self.nu, Real) and self.nu in _OTHER_NAMES:
            raise InputError(f"nu = {self.nu!r}: that kernel is isopleth.{_OTHER_NAMES[float(self.nu)]}; use that.")
        raise InputError(f"nu = {self.nu!r}: Matern has 1.5, 2.5 and 3.5; Laplacian() is 0.5.")

    @property
    def smoothness(self) -> float:
        """The order `nu`."""
        return float(self.nu)


@register("laplacian")
@dataclass(frozen=True)
class Laplacian(MaternFamily):
    r"""Laplacian or exponential kernel, :math:`\varphi(s) = e^{-\sqrt{s}}` (Matern 1/2).

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.

    Examples
    --------
    >>> from isopleth.kernels import Laplacian
    >>> round(float(Laplacian(dim=2)(4.0)), 6)  # e^-2
    0.135335
    """

    @property
    def smoothness(self) -> float:
        """1/2: continuous, with a kink at 0."""
        return 0.5


_END = 1e-17  # values below are taken for 0


def matern_function(u: np.ndarray, mu: float) -> np.ndarray:
    r"""Return :math:`M_\mu(u) = \tfrac{2^{1-\mu}}{\Gamma(\mu)} u^\mu K_\mu(u)` for u > 0 and mu >= 1/2 a multiple of 1/2.

    The recurrence adds positive terms only, so that no digits cancel and nothing overflows for any mu.
    """
    if (2 * mu) % 1 or mu < 0.5:
        raise ValueError(f"mu = {mu!r}: expected a positive multiple of 1/2.")
    decay = np.exp(-u)
    if mu % 1:
        start, below, here = 1.5, decay, (1.0 + u) * decay
    else:
        start, below, here = 2.0, u * kve(1, u) * decay, 0.5 * u * u * kve(2, u) * decay
    if mu < start:
        return below
    for nu in np.arange(start, mu):
        below, here = here, here + u * u / (4.0 * nu * (nu - 1.0)) * below
    return here


@lru_cache(maxsize=64)
def matern_table(mu: float) -> RadialTable:
    """Return M_mu as a table in s = u^2."""
    octaves = np.arange(2, 40)
    gone = matern_function(np.sqrt(np.ldexp(1.0, octaves)), mu) < _END
    return tabulate(lambda s: matern_function(np.sqrt(s), mu), 1.0, int(octaves[np.argmax(gone)]), 1.0)


# Coefficients of powers of z = sqrt(2 nu s), in front of e^-z. They are exact, so terms that cancel become 0.
_Terms = dict[int, Fraction]

_FURTHEST = 1e3  # of sqrt(s): e^-1000 is 0 in every precision, and no power of 1000 in use overflows


class PowerSeries(NamedTuple):
    r"""The function :math:`e^{-\lambda u} \sum_k c_k u^{lowest + k}` of u = sqrt(s)."""

    rate: float
    lowest: int
    coefficients: tuple[float, ...]

    def overwrite(self, u: Array, work: Workspace) -> Array:
        """Compute values at `u`, in its memory or in scratch. An infinite limit at 0 stays infinite."""
        if len(self.coefficients) == 1 and self.lowest == 0:
            out = self._decay(u)
            if self.coefficients != (1.0,):
                out *= self.coefficients[0]
            return out
        u = cap(u, _FURTHEST)
        out = self.polynomial(u, work)
        for _ in range(self.lowest):
            out *= u
        for _ in range(-self.lowest):
            out /= u
        out *= self._decay(u)
        return out

    def polynomial(self, u: Array, work: Workspace) -> Array:
        """Compute the sum divided by u^lowest, by Horner's rule in scratch."""
        out = _times(u, self.coefficients[-1], work)
        for c in self.coefficients[-2:0:-1]:
            out += c
            out *= u
        if len(self.coefficients) > 1:
            out += self.coefficients[0]
        else:
            out[...] = self.coefficients[0]
        return out

    def _decay(self, u: Array) -> Array:
        u *= -self.rate
        return overwrite(namespace(u).exp, u)


def _times(u: Array, factor: float, work: Workspace) -> Array:
    """Return u times factor, for NumPy in scratch."""
    if not isinstance(u, np.ndarray):
        return u * factor
    return np.multiply(u, factor, out=work.empty("polynomial", u.shape, u.dtype))


def _phi(nu: Fraction) -> _Terms:
    """Return the polynomial of the kernel itself."""
    p = int(nu)
    front = Fraction(math.factorial(p), math.factorial(2 * p))
    return {
        p - i: front * Fraction(math.factorial(p + i), math.factorial(i) * math.factorial(p - i)) * 2 ** (p - i)
        for i in range(p + 1)
    }


def _slope(terms: _Terms, nu: Fraction) -> _Terms:
    """Return the derivative in s, with dz/ds = nu/z."""
    out: _Terms = {}
    for k, c in terms.items():
        out[k - 1] = out.get(k - 1, Fraction(0)) - nu * c
        out[k - 2] = out.get(k - 2, Fraction(0)) + nu * k * c
    return out


def _product(nu: Fraction, order: int) -> _Terms:
    """Return s^floor(order/2) times the derivative `order` in s."""
    terms = _phi(nu)
    for _ in range(order):
        terms = _slope(terms, nu)
    power = order // 2
    return {k + 2 * power: c / (2 * nu) ** power for k, c in terms.items()}


def _in_distances(terms: _Terms, nu: Fraction) -> PowerSeries:
    """Return the same function in sqrt(s) in place of z."""
    rate = math.sqrt(2 * nu)
    kept = [k for k, c in terms.items() if c]
    powers = range(min(kept), max(kept) + 1)
    return PowerSeries(rate, powers[0], tuple(float(terms.get(k, 0)) * rate**k for k in powers))


@lru_cache
def product_terms(nu: float, order: int) -> PowerSeries:
    """Return s^floor(order/2) times the derivative `order` of phi in s."""
    half_odd = Fraction(nu)
    return _in_distances(_product(half_odd, order), half_odd)


@lru_cache
def laplacian_terms(nu: float, dim: int) -> PowerSeries:
    """Return 2 (dim phi' + 2 s phi'') as one series, in which infinities of opposite sign at 0 cancel exactly."""
    half_odd = Fraction(nu)
    terms = {k: 2 * dim * c for k, c in _product(half_odd, 1).items()}
    for k, c in _product(half_odd, 2).items():
        terms[k] = terms.get(k, Fraction(0)) + 4 * c
    return _in_distances(terms, half_odd)
