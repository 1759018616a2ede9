"""Tables of the Sobolev kernels: one for every dimension, coefficients and function, made on first use and kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from isopleth.kernels.radial_table import RadialTable
from isopleth.kernels.ray_quadrature import RayQuadrature
from isopleth.kernels.sobolev_spectrum import Spectrum, unit_spectrum
from isopleth.kernels.tabulation import LOWEST_OCTAVE, tabulate

_KEPT = 64  # a table takes a megabyte or two, more for high orders in few dimensions
_END = 1e-15  # of the size of the function, what is left out beyond a table
_LOOKS = 48  # an octave: none of them all are near zeros of a wave

_R_MIN = math.ldexp(1.0, LOWEST_OCTAVE // 2)


@lru_cache(maxsize=_KEPT)
def product_table(dim: int, coefficients: tuple[float, ...], order: int) -> RadialTable:
    """s^floor(order/2) times the derivative `order` of phi."""
    spectrum, shift = unit_spectrum(dim, coefficients)
    power, wave = order // 2, dim + 2 * order
    front = _front(dim, order) * math.exp(-spectrum.log_moment(dim))
    integral = RayQuadrature(spectrum, wave, wave, 1, _R_MIN)
    table = _tabulate(
        lambda s: front * s**power * integral(np.sqrt(s)),
        product_at_zero(spectrum, order),
        spectrum,
        (0.5 / dim) ** order * (2.0 * dim) ** power,
    )
    return _moved(table, shift, order - power)


def _front(dim: int, order: int) -> float:
    return math.prod(-0.25 / (0.5 * dim + i) for i in range(order))


def product_at_zero(spectrum: Spectrum, order: int) -> float:
    """Limit of s^floor(order/2) times the derivative.

    Near 0, phi is a polynomial plus s^(m - dim/2), which comes with log s where the exponent is whole.
    """
    dim, power = spectrum.dim, order // 2
    half = 0.5 * dim + order
    room = spectrum.m - half
    if power and room + power > 0:
        return 0.0
    front = _front(dim, order)
    if room > 0:
        return front * math.exp(spectrum.log_moment(dim + 2 * order) - spectrum.log_moment(dim))
    if room == 0 or room + power < 0:
        return math.copysign(math.inf, front)
    # s^(-room) phi^(order) tends to the transform of the last term alone, t^(-2m)/a_m
    constants = gammaln(-room) + gammaln(half) - gammaln(spectrum.m) - (2.0 * room + 1.0) * math.log(2.0)
    return front * math.exp(constants - math.log(spectrum.terms[-1]) - spectrum.log_moment(dim))


@lru_cache(maxsize=_KEPT)
def laplacian_table(dim: int, coefficients: tuple[float, ...]) -> RadialTable:
    """The Laplacian of phi(|x|^2), whose spectrum is -t^2 S; m > 1."""
    spectrum, shift = unit_spectrum(dim, coefficients)
    front = -math.exp(-spectrum.log_moment(dim))
    integral = RayQuadrature(spectrum, dim, dim + 2, 1, _R_MIN)
    at_zero = front * math.exp(spectrum.log_moment(dim + 2)) if spectrum.m - 0.5 * dim > 1 else -math.inf
    return _moved(_tabulate(lambda s: front * integral(np.sqrt(s)), at_zero, spectrum, 1.0), shift, 1)


@lru_cache(maxsize=_KEPT)
def convolution_table(dim: int, coefficients: tuple[float, ...]) -> RadialTable:
    """phi convolved with itself, divided by its value at 0: its spectrum is S^2."""
    spectrum, shift = unit_spectrum(dim, coefficients)
    front = math.exp(-spectrum.log_moment(dim, 2))
    integral = RayQuadrature(spectrum, dim, dim, 2, _R_MIN)
    return _moved(_tabulate(lambda s: front * integral(np.sqrt(s)), 1.0, spectrum, 1.0), shift, 0)


@lru_cache(maxsize=_KEPT)
def log_convolution(dim: int, coefficients: tuple[float, ...]) -> float:
    """Logarithm of phi convolved with itself at 0: of the integral of phi^2."""
    spectrum, shift = unit_spectrum(dim, coefficients)
    log_sphere = math.log(2.0) - 0.5 * dim * math.log(math.pi) - gammaln(0.5 * dim) - dim * math.log(2.0)
    log_squared = spectrum.log_moment(dim, 2) - 2.0 * spectrum.log_moment(dim)
    return float(log_squared - log_sphere - 0.5 * dim * shift * math.log(2.0))


def _tabulate(
    function: Callable[[np.ndarray], np.ndarray], at_zero: float, spectrum: Spectrum, scale: float
) -> RadialTable:
    return tabulate(function, at_zero, _end(function, spectrum, scale), scale)


def _end(function: Callable[[np.ndarray], np.ndarray], spectrum: Spectrum, scale: float) -> int:
    """The octave from which on the function is as good as 0.

    No zero of P(t^2) is nearer to the real line than its smallest modulus times sin(pi/(2m)): that is the slowest decay,
    and the distance beyond which nothing is left. Most kernels end long before.
    """
    m = spectrum.m
    log_modulus = min(
        -(math.log(m) + math.log(a)) / order for order, a in enumerate(spectrum.terms) if order and a > 0.0
    )
    slowest = math.exp(0.5 * log_modulus) * math.sin(0.5 * math.pi / m)
    octaves = np.arange(1, max(4, math.ceil(2.0 * math.log2(50.0 / slowest))))
    s = np.ldexp(1.0 + np.arange(_LOOKS) / _LOOKS, octaves[:, None])
    left = np.abs(function(s.ravel())).reshape(s.shape).max(axis=1) > _END * scale
    return int(octaves[left][-1]) + 1 if left.any() else int(octaves[0])


def _moved(table: RadialTable, shift: int, derivatives: int) -> RadialTable:
    """The table of a function of ``2**shift s``, of which `derivatives` more derivatives in s than powers of s are taken."""
    factor = math.ldexp(1.0, shift * derivatives)
    cells = table.cells * factor
    cells.flags.writeable = False
    return RadialTable(cells, table.lowest - shift, table.bits, table.at_zero * factor)
