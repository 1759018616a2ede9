"""Kernel of the Sobolev norm of a single derivative order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import ClassVar

import numpy as np

from isopleth.backend import Array
from isopleth.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, register
from isopleth.kernels.matern import Laplacian
from isopleth.kernels.radial_table import LOWEST_OCTAVE, RadialTable, tabulate
from isopleth.kernels.sdo_profile import SDOProfile, log_k0


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
    >>> from isopleth import SDO
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
