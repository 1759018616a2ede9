"""Profile of the SDO kernel and its derivatives, accurate at every distance."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import digamma, gammaln, kve, logsumexp

from isopleth.kernels.spectral_quadrature import EPS, Estimate, SpectralQuadrature

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
