"""Kernels of Sobolev norms: derivatives of any orders, and SDO, the preset of a single order."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from isopleth.core.arrays import Array
from isopleth.core.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, register
from isopleth.kernels.radial_table import LOWEST_OCTAVE, RadialTable, tabulate
from isopleth.kernels.sobolev_spectrum import RayQuadrature, SobolevSpectrum, unit_spectrum


class SobolevNorm(Kernel):
    """Base class of the reproducing kernels of Sobolev norms; a subclass has the coefficients."""

    nonnegative: ClassVar[bool] = False

    @property
    @abstractmethod
    def _coefficients(self) -> tuple[float, ...]:
        """The coefficients a_1 to a_m of :class:`Sobolev`; the last is positive."""

    @property
    def smoothness(self) -> float:
        """The order m less dim/2."""
        return len(self._coefficients) - 0.5 * self.bound_dim

    @property
    def _norm(self) -> tuple[int, tuple[float, ...]]:
        return self.bound_dim, self._coefficients

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        return product_table(*self._norm, order)(s, work)

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        """Compute it from one table, because the sum of two has infinities of opposite sign at 0."""
        if len(self._coefficients) == 1:  # exp(-r/sqrt(a_1)) in one dimension, where the two infinities cancel
            out = self._product(s, 0, work)
            out /= self._coefficients[0]
            return out
        return laplacian_table(*self._norm)(s, work)

    def second_at_zero(self) -> float:
        r"""Compute it from the fourth moment of the spectrum: tables of :math:`s\varphi''` do not reach so close to 0."""
        if self.smoothness <= 2.0:
            return math.inf
        spectrum, shift = unit_spectrum(*self._norm)
        d = self.bound_dim
        moment = math.exp(spectrum.log_moment(d + 4) - spectrum.log_moment(d)) * 4.0**shift
        return moment / (4.0 * d * (d + 2.0))

    def self_convolution(self) -> SelfConvolution:
        r"""Return it from its spectrum, the square of that of the kernel."""
        return SelfConvolution(log_convolution(*self._norm), convolution_table(*self._norm))

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw wave vectors :math:`\omega` with :math:`\varphi(|x|^2) = E \cos(\omega \cdot x)`, exactly.

        Parameters
        ----------
        n : int
            Number of wave vectors.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n, dim)
            Directions are uniform, lengths have a density proportional to :math:`t^{d-1}/(1 + \sum_l a_l t^{2l})`.
        """
        spectrum, shift = unit_spectrum(*self._norm)
        directions = rng.standard_normal((n, self.bound_dim))
        radii = spectrum.sample(n, rng) * 2.0 ** (0.5 * shift)
        return directions * (radii / np.linalg.norm(directions, axis=1))[:, None]

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""Return the logarithm of a density :math:`\propto 1/(1 + \sum_l a_l |\omega|^{2l})`."""
        spectrum, shift = unit_spectrum(*self._norm)
        d, octaves = self.bound_dim, 0.5 * shift * math.log(2.0)
        log_sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)
        log_radius = np.log(np.maximum(np.linalg.norm(omega, axis=1), 1e-300))
        mass = log_sphere + spectrum.log_moment(d) + d * octaves
        return np.asarray(-spectrum.log_polynomial(log_radius - octaves) - mass)


@dataclass(frozen=True)
class Sobolev(SobolevNorm):
    r"""Reproducing kernel of a Sobolev norm with a weight for each derivative order, scaled to be 1 at 0.

    The norm is :math:`\sum_{l=0}^m a_l\, \ell^{2l} \sum_{|\alpha|=l} \tfrac{l!}{\alpha!} \|D^\alpha f\|_2^2` with
    :math:`a_0 = 1` (appendix H.1 of [1]_), and

    .. math:: \varphi(s) = \frac{k(\sqrt s)}{k(0)}, \qquad
        k(|x|) = \int_{\mathbb{R}^d} \frac{e^{2\pi i\, z\cdot x}}{1 + \sum_{l=1}^m a_l\, |2\pi z|^{2l}}\, dz.

    With ``a_m = 1`` and zeros before it, this is :class:`SDO`; with binomial coefficients, :math:`a_l = \binom{m}{l}`, it is the
    Matern kernel of order m - d/2 in :math:`\sqrt s`. It is evaluated to 11 digits or more from a table that is computed once for
    every dimension and coefficients and is valid for all length scales. It can be negative.

    Parameters
    ----------
    coefficients : sequence of float
        :math:`a_1, \ldots, a_m`, not negative. The order m of the last one that is not 0 must be above half the number of
        columns. Frequencies are in units of 1/length_scale.
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.

    Raises
    ------
    InputError
        If coefficients are negative, all zero or no numbers; and when bound, if there are too few for the columns.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Unnormalized Density Estimation with Root Sobolev Norm Regularization".

    Examples
    --------
    >>> from isopleth.kernels import Sobolev
    >>> kernel = Sobolev([2.0, 1.0], dim=1)  # (1 + t^2)^2: Matern 3/2
    >>> round(float(kernel(4.0)), 6)  # (1 + 2) e^-2
    0.406006
    """

    coefficients: Sequence[float]
    dim: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "coefficients", _checked(self.coefficients))
        if self.dim is not None and 2 * len(self.coefficients) <= self.dim:
            least = self.dim // 2 + 1
            raise InputError(
                f"coefficients = {self.coefficients!r}: Sobolev needs a positive coefficient of order {least} or above for "
                f"{self.dim} columns, and the highest here is of order {len(self.coefficients)}."
            )

    @property
    def _coefficients(self) -> tuple[float, ...]:
        return tuple(self.coefficients)


def _checked(coefficients: Sequence[float]) -> tuple[float, ...]:
    """Return coefficients as a tuple that ends with a positive one."""
    sequence = isinstance(coefficients, Sequence | np.ndarray) and not isinstance(coefficients, str | bytes)
    values = list(coefficients) if sequence else []
    while values and isinstance(values[-1], Real) and values[-1] == 0:
        values.pop()
    numbers = all(isinstance(a, Real) and not isinstance(a, bool) and math.isfinite(a) and a >= 0 for a in values)
    if not values or not numbers:
        raise InputError(
            f"coefficients = {coefficients!r}: expected a_1, ..., a_m, finite numbers that are at least 0 and one of them "
            f"above, such as (0.5, 0.0, 1.0)."
        )
    return tuple(float(a) for a in values)


_KEPT = 64  # tables; each has a megabyte or two, more for high orders in few dimensions
_END = 1e-15  # relative size that counts as 0
_PROBES = 48  # points in an octave, enough that not all of them are near zeros of a wave

_R_MIN = math.ldexp(1.0, LOWEST_OCTAVE // 2)


@lru_cache(maxsize=_KEPT)
def product_table(dim: int, coefficients: tuple[float, ...], order: int) -> RadialTable:
    """Return a table of s^floor(order/2) times the derivative `order` of phi."""
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


def product_at_zero(spectrum: SobolevSpectrum, order: int) -> float:
    """Return the limit at 0 of s^floor(order/2) times the derivative: phi is a polynomial plus s^(m - dim/2) there."""
    dim, power = spectrum.dim, order // 2
    half = 0.5 * dim + order
    margin = spectrum.m - half
    if power and margin + power > 0:
        return 0.0
    front = _front(dim, order)
    if margin > 0:
        return front * math.exp(spectrum.log_moment(dim + 2 * order) - spectrum.log_moment(dim))
    if margin == 0 or margin + power < 0:
        return math.copysign(math.inf, front)
    # s^(-margin) phi^(order) tends to the transform of the last term alone, t^(-2m)/a_m
    constants = gammaln(-margin) + gammaln(half) - gammaln(spectrum.m) - (2.0 * margin + 1.0) * math.log(2.0)
    return front * math.exp(constants - math.log(spectrum.terms[-1]) - spectrum.log_moment(dim))


@lru_cache(maxsize=_KEPT)
def laplacian_table(dim: int, coefficients: tuple[float, ...]) -> RadialTable:
    """Return a table of the Laplacian of phi(|x|^2), whose spectrum is -t^2 S; m > 1."""
    spectrum, shift = unit_spectrum(dim, coefficients)
    front = -math.exp(-spectrum.log_moment(dim))
    integral = RayQuadrature(spectrum, dim, dim + 2, 1, _R_MIN)
    at_zero = front * math.exp(spectrum.log_moment(dim + 2)) if spectrum.m - 0.5 * dim > 1 else -math.inf
    return _moved(_tabulate(lambda s: front * integral(np.sqrt(s)), at_zero, spectrum, 1.0), shift, 1)


@lru_cache(maxsize=_KEPT)
def convolution_table(dim: int, coefficients: tuple[float, ...]) -> RadialTable:
    """Return a table of phi convolved with itself, whose spectrum is S^2, divided by its value at 0."""
    spectrum, shift = unit_spectrum(dim, coefficients)
    front = math.exp(-spectrum.log_moment(dim, 2))
    integral = RayQuadrature(spectrum, dim, dim, 2, _R_MIN)
    return _moved(_tabulate(lambda s: front * integral(np.sqrt(s)), 1.0, spectrum, 1.0), shift, 0)


@lru_cache(maxsize=_KEPT)
def log_convolution(dim: int, coefficients: tuple[float, ...]) -> float:
    """Return the logarithm of the integral of phi^2."""
    spectrum, shift = unit_spectrum(dim, coefficients)
    log_sphere = math.log(2.0) - 0.5 * dim * math.log(math.pi) - gammaln(0.5 * dim) - dim * math.log(2.0)
    log_squared = spectrum.log_moment(dim, 2) - 2.0 * spectrum.log_moment(dim)
    return float(log_squared - log_sphere - 0.5 * dim * shift * math.log(2.0))


def _tabulate(
    function: Callable[[np.ndarray], np.ndarray], at_zero: float, spectrum: SobolevSpectrum, scale: float
) -> RadialTable:
    return tabulate(function, at_zero, _end(function, spectrum, scale), scale)


def _end(function: Callable[[np.ndarray], np.ndarray], spectrum: SobolevSpectrum, scale: float) -> int:
    """Return the octave from which on the function counts as 0. The zeros of P bound its decay, and so the search."""
    m = spectrum.m
    log_modulus = min(
        -(math.log(m) + math.log(a)) / order for order, a in enumerate(spectrum.terms) if order and a > 0.0
    )
    slowest = math.exp(0.5 * log_modulus) * math.sin(0.5 * math.pi / m)
    octaves = np.arange(1, max(4, math.ceil(2.0 * math.log2(50.0 / slowest))))
    s = np.ldexp(1.0 + np.arange(_PROBES) / _PROBES, octaves[:, None])
    left = np.abs(function(s.ravel())).reshape(s.shape).max(axis=1) > _END * scale
    return int(octaves[left][-1]) + 1 if left.any() else int(octaves[0])


def _moved(table: RadialTable, shift: int, derivatives: int) -> RadialTable:
    """Return the table of a function of ``2**shift s``, with `derivatives` more derivatives in s than powers of s."""
    factor = math.ldexp(1.0, shift * derivatives)
    cells = table.cells * factor
    cells.flags.writeable = False
    return RadialTable(cells, table.lowest - shift, table.bits, table.at_zero * factor)


@register("sdo")
@dataclass(frozen=True)
class SDO(SobolevNorm):
    r"""Single derivative order kernel: the reproducing kernel of a Sobolev norm, scaled to be 1 at 0.

    The norm is :math:`\|f\|_2^2 + \ell^{2m} \sum_{|\alpha|=m} \tfrac{m!}{\alpha!} \|D^\alpha f\|_2^2`; the spectrum of
    its kernel is flat up to the frequency :math:`1/(2\pi\ell)`:

    .. math:: \varphi(s) = \frac{k_1(\sqrt s)}{k_1(0)}, \qquad
        k_1(|x|) = \int_{\mathbb{R}^d} \frac{e^{2\pi i\, z\cdot x}}{1 + |2\pi z|^{2m}}\, dz, \qquad
        k_1(0) = \frac{2 \pi^{d/2}}{(2\pi)^d\, \Gamma(d/2)}\, \frac{\pi}{2m \sin(\pi d/2m)}.

    It is :class:`Sobolev` with the last coefficient 1 and zeros before it, and is evaluated like that kernel: to 11 digits or
    more, from a table that is computed once for every (dim, order) and is valid for all length scales. Except for
    ``dim=1, order=1``, where it is :math:`e^{-\sqrt s}`, it is negative at some distances, so sums of it with positive weights
    can be negative too. Further constants are

    .. math:: \varphi''(0) = \frac{\sin(\pi d/2m)}{4 d (d + 2) \sin(\pi (d + 4)/2m)} \quad (2m > d + 4), \qquad
        \varphi * \varphi = \frac{1}{k_1(0)} \Bigl[\bigl(1 - \tfrac{d}{2m}\bigr)\, \varphi - \tfrac{s}{m}\, \varphi'\Bigr].

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
    def _coefficients(self) -> tuple[float, ...]:
        return (0.0,) * (self.bound_order - 1) + (1.0,)
