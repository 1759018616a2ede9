"""Kernel of the Sobolev norm of a single derivative order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammaln, kve, logsumexp

from isopleth.backend import Array
from isopleth.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, register
from isopleth.kernels.matern import Laplacian
from isopleth.kernels.radial_table import LOWEST_OCTAVE, RadialTable, tabulate
from isopleth.kernels.spectral_quadrature import EPS, Estimate, SpectralQuadrature


def _log_gamma_draws(shape: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw logarithms of Gamma distributed numbers, which themselves underflow for small shapes."""
    return np.log(rng.gamma(shape + 1.0, size=n)) + np.log1p(-rng.random(n)) / shape


@register("sdo")
@dataclass(frozen=True)
class SDO(Kernel):
    r"""Single derivative order kernel: the reproducing kernel of a Sobolev norm, scaled to be 1 at 0.

    The norm is :math:`\|f\|_2^2 + \ell^{2m} \sum_{|\alpha|=m} \tfrac{m!}{\alpha!} \|D^\alpha f\|_2^2`; the spectrum of
    its kernel is flat up to the frequency :math:`1/(2\pi\ell)`:

    .. math:: \varphi(s) = \frac{k_1(\sqrt s)}{k_1(0)}, \qquad
        k_1(|x|) = \int_{\mathbb{R}^d} \frac{e^{2\pi i\, z\cdot x}}{1 + |2\pi z|^{2m}}\, dz.

    It is evaluated to 11 digits or more, not by sampling the integral, but from a table that is computed once for every (dim,
    order) and is valid for all length scales. Except for ``dim=1, order=1``, where it is :math:`e^{-\sqrt s}`, it is negative at
    some distances, so sums of it with positive weights can be negative too.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.
    order : int, optional
        Derivative order m, more than half of `dim`; the default is ``dim // 2 + 2``.

    References
    ----------
    Kozdoba et al., Sobolev Space Regularised Pre Density Models.

    Examples
    --------
    >>> from isopleth.kernels import SDO
    >>> round(float(SDO(dim=1, order=1)(4.0)), 6)  # e^-2
    0.135335
    """

    order: int | None = None

    nonnegative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order is None:
            return
        smallest = 1 if self.dim is None else self.dim // 2 + 1
        if isinstance(self.order, bool) or not isinstance(self.order, Integral) or self.order < smallest:
            where = "" if self.dim is None else f" for {self.dim} columns"
            raise InputError(f"order = {self.order!r}: SDO needs a whole number, at least {smallest}{where}.")

    @property
    def bound_order(self) -> int:
        """The order, or its default for the dimension."""
        return self.bound_dim // 2 + 2 if self.order is None else int(self.order)

    @property
    def smoothness(self) -> float:
        """The order less dim/2."""
        return self.bound_order - 0.5 * self.bound_dim

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        return product_table(self.bound_dim, self.bound_order, order)(s, work)

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        """Compute it from one table, because the sum of two has infinities of opposite sign at 0."""
        if self.bound_order == 1:  # e^-u in one dimension, where the two infinities cancel
            return Laplacian(dim=1)._laplacian(s, work)
        return laplacian_table(self.bound_dim, self.bound_order)(s, work)

    def second_at_zero(self) -> float:
        r"""Compute it from the fourth moment of the spectrum: tables of :math:`s\varphi''` do not reach so close to 0."""
        d, m = self.bound_dim, self.bound_order
        if self.smoothness <= 2.0:
            return math.inf
        moment = math.sin(0.5 * math.pi * d / m) / math.sin(0.5 * math.pi * (d + 4) / m)
        return moment / (4.0 * d * (d + 2.0))

    def self_convolution(self) -> SelfConvolution:
        r"""Return it from its spectrum, :math:`q^2 = q + a\,\partial q/\partial a` with :math:`a = \ell^{2m}`.

        .. math:: \varphi * \varphi
            = \frac{1}{k_1(0)} \Bigl[\bigl(1 - \tfrac{d}{2m}\bigr)\, \varphi - \tfrac{s}{m}\, \varphi'\Bigr]
        """
        d, m = self.bound_dim, self.bound_order
        return SelfConvolution(math.log1p(-0.5 * d / m) - log_k0(d, m), convolution_table(d, m))

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw uniform directions, and radii from a ratio of Gamma draws.

        For a wave vector of the density proportional to :math:`1/(1 + |\omega|^{2m})`, the number
        :math:`v = |\omega|^{2m}` is such that :math:`v/(1+v)` has the Beta distribution of d/(2m) and 1 - d/(2m).
        """
        d, m = self.bound_dim, self.bound_order
        share = 0.5 * d / m
        log_v = _log_gamma_draws(share, n, rng) - _log_gamma_draws(1.0 - share, n, rng)
        direction = rng.standard_normal((n, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.exp(0.5 * log_v / m)[:, None] * direction

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""Return the logarithm of a density :math:`\propto 1/(1 + |\omega|^{2m})`."""
        d, m = self.bound_dim, self.bound_order
        with np.errstate(divide="ignore"):
            log_radius = np.log(np.linalg.norm(omega, axis=1))
        return np.asarray(-np.logaddexp(0.0, 2 * m * log_radius) - d * math.log(2.0 * math.pi) - log_k0(d, m))


_KEPT = 64  # tables; each has a megabyte or two, more for high orders in few dimensions


@lru_cache(maxsize=_KEPT)
def product_table(dim: int, m: int, order: int) -> RadialTable:
    """Return a table of s^floor(order/2) times the derivative `order` of phi."""
    profile, power = SDOProfile(dim, m, order), order // 2
    return tabulate(
        lambda s: s**power * profile(s),
        _product_at_zero(profile, power),
        profile.end(power),
        profile.scale * (2.0 * dim) ** power,
    )


def _product_at_zero(profile: SDOProfile, power: int) -> float:
    """Return the limit of s^power times the derivative at 0.

    Near 0, phi is a polynomial plus s^(m - dim/2), times log s if the exponent is whole.
    """
    margin = profile.m - 0.5 * profile.dim - profile.order
    if power and (margin > 0 or margin + power > 0):
        return 0.0
    if margin > 0:
        return profile.at_zero()
    tiny = math.ldexp(1.0, LOWEST_OCTAVE)
    value = tiny**power * float(profile(np.array([tiny]))[0])
    return value if margin < 0 and margin + power == 0 else math.copysign(math.inf, value)


@lru_cache(maxsize=_KEPT)
def laplacian_table(dim: int, m: int) -> RadialTable:
    """Return a table of 2 (dim phi' + 2 s phi''), which at 0 avoids the sum of two infinities."""
    first, second = SDOProfile(dim, m, 1), SDOProfile(dim, m, 2)
    at_zero = 2.0 * dim * first.at_zero() if m - 0.5 * dim > 1 else -math.inf
    return tabulate(
        lambda s: 2.0 * (dim * first(s) + 2.0 * s * second(s)), at_zero, max(first.end(0), second.end(1)), 1.0
    )


@lru_cache(maxsize=_KEPT)
def convolution_table(dim: int, m: int) -> RadialTable:
    """Return a table of phi convolved with itself, divided by its value at 0."""
    phi, first = SDOProfile(dim, m, 0), SDOProfile(dim, m, 1)
    margin = m - 0.5 * dim
    return tabulate(lambda s: phi(s) - s * first(s) / margin, 1.0, max(phi.end(0), first.end(1)), 1.0)


_GOOD_ENOUGH = 1e-14  # error, relative to the size of the function, from which on another method is tried
_POOR = 1e-13  # error from which on quadrature is prepared
_END = 1e-17  # relative size that counts as 0


def log_k0(dim: int, m: int) -> float:
    """Return the logarithm of k_1(0), the mass of the spectral density 1/(1 + (2 pi |z|)^(2m))."""
    log_sphere = math.log(2.0) + 0.5 * dim * math.log(math.pi) - gammaln(0.5 * dim)
    return float(log_sphere - dim * math.log(2.0 * math.pi) + _log_radial_mass(dim, m))


def _log_radial_mass(dim: int, m: int) -> float:
    """Return the logarithm of the integral of t^(dim-1)/(1 + t^(2m))."""
    return math.log(math.pi / (2 * m)) - math.log(sine_of_share(0.5 * dim, m))


class SDOProfile:
    r"""Derivative `order` in s of :math:`\varphi(s) = k_1(\sqrt s)/k_1(0)` for the pair (dim, m).

    Three methods give values with estimates of their errors, and each point gets the value of the smallest error: the series at
    0, a closed form far from 0 and, in high dimensions, quadrature between the two.
    """

    def __init__(self, dim: int, m: int, order: int) -> None:
        self.dim, self.m, self.order = dim, m, order
        self.scale = (0.5 / dim) ** order  # phi is of the size 1 up to s = 2 dim
        self._series = SDOSeries(dim, m, order)
        self._bessel = SDOBessel(dim, m, order, log_k0(dim, m))
        self._quadrature = self._between()

    def _between(self) -> SpectralQuadrature | None:
        """Return a quadrature for distances too far for the series and too near for the closed form, if there are any."""
        r = math.sqrt(self.dim) * np.geomspace(1.0, 10.0 * math.sqrt(self.dim + 8.0), 200)
        poor = np.minimum(self._series(r).error, self._bessel(r).error) > _POOR * self._size(r * r)
        if not poor.any():
            return None
        first, last = np.flatnonzero(poor)[[0, -1]]
        return SpectralQuadrature(
            self.dim,
            self.order,
            lambda u: -np.logaddexp(0.0, 2 * self.m * u),
            _log_radial_mass(self.dim, self.m),
            0.05 / self.m,
            r[max(first - 1, 0)],
            r[min(last + 1, r.size - 1)],
        )

    def _size(self, s: np.ndarray) -> np.ndarray:
        """Return the size that errors are relative to; it decreases, because values are later multiplied by powers of s."""
        return self.scale * np.minimum(1.0, self.dim / s) ** ((self.order + 1) // 2)

    def estimate(self, s: np.ndarray) -> Estimate:
        """Return values and their errors at an array of s > 0."""
        r = np.sqrt(s)
        out = self._series(r)
        for method in (self._bessel, self._quadrature):
            wanted = out.error > _GOOD_ENOUGH * self._size(s)
            if method is not None and wanted.any():
                out.improve(wanted, method(r[wanted]))
        return out

    def __call__(self, s: np.ndarray) -> np.ndarray:
        """Return values at an array of s > 0."""
        return self.estimate(s).value

    def at_zero(self) -> float:
        """Return the value at 0, which is finite if the order is below m - dim/2."""
        return self._series.at_zero()

    def end(self, power: int) -> int:
        """Return the octave from which on s^power times the derivative counts as 0."""
        log_end = math.log(_END * self.scale)
        octave = 4
        while not self._bessel.log_envelope(2.0 ** (0.5 * octave)) + power * octave * math.log(2.0) < log_end:
            octave += 1  # the form `not <` also continues where Bessel functions overflow
        return octave


_TERMS = 120
_MAX_ARGUMENT = (
    25.0  # of x below: terms grow to e^x before they decrease, and after 120 of them the rest is below 1e-18
)


def sine_of_share(p: float, m: int) -> float:
    """Return sin(pi p / m), accurate near its zeros."""
    periods, rest = divmod(p, m)
    return (-1.0) ** periods * math.sin(math.pi * min(rest, m - rest) / m)


def _gamma(twice: int) -> Fraction:
    """Return Gamma(twice/2), for odd `twice` divided by the square root of pi; even `twice` must be positive."""
    n = twice // 2
    if twice % 2 == 0:
        return Fraction(math.factorial(n - 1))
    if n >= 0:
        return Fraction(math.factorial(2 * n), 4**n * math.factorial(n))
    return Fraction((-4) ** -n * math.factorial(-n), math.factorial(-2 * n))


class SDOSeries:
    r"""Derivative `order` in s of :math:`k_1(\sqrt s)/k_1(0)` as a series at 0.

    The derivative is a multiple of the kernel of D = dim + 2 order dimensions. With x = s/(2 D) it is

    .. math:: P(x) + \ln(r/2)\, Q(x) + \sum_j c_j\, (r/2)^{2m(j+1) - D}

    where Q is 0 for odd D; for even D the last sum has negative powers only, because the others become the logarithm.
    """

    def __init__(self, dim: int, m: int, order: int) -> None:
        self.half = 0.5 * dim + order
        self._m, self._order = m, order
        # Everything is divided by k_1(0), which has these constants.
        self._sine = sine_of_share(0.5 * dim, m)
        self._front = math.prod(-0.25 / (0.5 * dim + i) for i in range(order))
        self._reach = math.sqrt(self.half * _MAX_ARGUMENT)  # of r/2
        self._regular, self._logarithmic = self._polynomials()
        self._powers, self._coefficients = self._singular()

    def _polynomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return P and Q, lowest coefficient first."""
        n = np.arange(_TERMS)
        falling = np.cumprod(np.r_[1.0, -self.half / (n[1:] * (self.half + n[:-1]))]) * self._front
        regular, logarithmic = np.zeros(_TERMS), np.zeros(_TERMS)
        for i, factor in enumerate(falling):
            p = self.half + i
            if p % self._m:
                regular[i] = factor * self._sine / sine_of_share(p, self._m)
            else:
                residue = factor * (-1.0) ** (p // self._m - 1) * 2 * self._m * self._sine / math.pi
                regular[i] = residue * 0.5 * (digamma(i + 1.0) + digamma(p))
                logarithmic[i] = -residue
        return regular, logarithmic

    def _singular(self) -> tuple[np.ndarray, np.ndarray]:
        """Return exponents and coefficients of the last sum, in units of the reach, so that no power overflows.

        They are computed as exact fractions, because with logarithms of Gamma functions three digits cancel in high dimensions.
        """
        twice = round(2 * self.half)
        top = self.half + _TERMS if twice % 2 else self.half - 0.5
        steps = range(self._m, int(top) + 1, self._m)
        front = self._m * self._sine * (1.0 if twice % 2 else 1.0 / math.pi) * (-0.25) ** self._order
        reach, gamma = Fraction(self._reach), _gamma(twice - 2 * self._order)
        coefficients = [
            (-1.0) ** j
            * front
            * float(gamma * _gamma(twice - 2 * n) * reach ** (2 * n - twice) / math.factorial(n - 1))
            for j, n in enumerate(steps)
        ]
        return 2.0 * np.array(steps) - twice, np.array(coefficients)

    def at_zero(self) -> float:
        """Return the value at 0, if no power or logarithm is infinite there."""
        return float(self._regular[0])

    def __call__(self, r: np.ndarray) -> Estimate:
        """Return the derivative at distances `r` > 0; errors are infinite beyond the reach of the series."""
        out = Estimate.unknown(r.shape)
        near = r <= 2.0 * self._reach
        out.improve(near, self._sum(r[near]))
        return out

    def _sum(self, r: np.ndarray) -> Estimate:
        x, log_r = r * r / (4.0 * self.half), np.log(0.5 * r)
        value, size = np.zeros_like(r), np.zeros_like(r)
        for power, coefficient in zip(self._powers, self._coefficients, strict=True):
            term = coefficient * (0.5 * r / self._reach) ** power
            value += term
            size += np.abs(term)
        polynomial = np.polynomial.polynomial.polyval
        value += polynomial(x, self._regular) + log_r * polynomial(x, self._logarithmic)
        size += polynomial(x, np.abs(self._regular)) + np.abs(log_r) * polynomial(x, np.abs(self._logarithmic))
        return Estimate(value, 4.0 * EPS * size)  # coefficients are products of many factors


class SDOBessel:
    r"""Derivative `order` in s of :math:`k_1(r)/k_1(0)`, with D = dim + 2 order and :math:`\nu = D/2 - 1`, as

    .. math:: \frac{(-\pi)^{order}}{k_1(0)}\, (2\pi)^{-D/2} \sum_{j<m}
        \Re\Bigl[\tfrac{w_j^2}{m} \bigl(\tfrac{w_j}{r}\bigr)^{\nu} K_\nu(w_j r)\Bigr],
        \qquad w_j = e^{i\pi(2j+1-m)/(2m)}.

    Near 0 its terms cancel.
    """

    def __init__(self, dim: int, m: int, order: int, log_k0: float) -> None:
        half = 0.5 * dim + order
        self._nu = half - 1.0
        self._sign = (-1.0) ** order
        self._log_front = order * math.log(math.pi) - half * math.log(2 * math.pi) - log_k0 - math.log(m)
        # for odd m, the root 1 is its own conjugate; all others are pairs
        turns = np.arange(1 - m, 1, 2)
        self._angles = 0.5 * math.pi * turns / m
        self._roots = np.exp(1j * self._angles)
        self._roots.real = np.sin(0.5 * math.pi * (turns + m) / m)  # accurate where the root is almost imaginary
        self._weights = np.where(turns == 0, 1.0, 2.0)

    def __call__(self, r: np.ndarray) -> Estimate:
        """Return the derivative at distances `r` > 0."""
        value, size = np.zeros_like(r), np.zeros_like(r)
        for root, angle, weight in zip(self._roots, self._angles, self._weights, strict=True):
            turn = angle * (self._nu + 2.0)
            log_size = self._log_front - self._nu * np.log(r) - root.real * r
            seen = log_size > -745.0  # e^-745 is the smallest float above 0
            with np.errstate(all="ignore"):
                term = weight * np.exp(log_size[seen]) * kve(self._nu, root * r[seen])
                value[seen] += (term * np.exp(1j * (turn - root.imag * r[seen]))).real
                size[seen] += np.abs(term)
        # errors of the exponents and phases are relative errors of the terms
        error = EPS * (4.0 + np.abs(self._log_front) + self._nu * np.abs(np.log(r)) + r) * size
        return Estimate(self._sign * value, np.where(np.isfinite(value), error, np.inf))

    def log_envelope(self, r: float) -> float:
        """Return the logarithm of the sum of the sizes of the terms at one distance, a bound without oscillation."""
        sizes = np.log(np.abs(kve(self._nu, self._roots * r)) * self._weights) - self._roots.real * r
        return float(logsumexp(sizes) + self._log_front - self._nu * math.log(r))
