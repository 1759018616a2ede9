"""Tables of the SDO kernel: one for every pair (dim, m) and function, made on first use and kept."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from isopleth.kernels.radial_table import RadialTable
from isopleth.kernels.sdo_profile import SDOProfile
from isopleth.kernels.tabulation import LOWEST_OCTAVE, tabulate

_KEPT = 64  # a table takes a megabyte or two, more for high orders in few dimensions


@lru_cache(maxsize=_KEPT)
def product_table(dim: int, m: int, order: int) -> RadialTable:
    """s^floor(order/2) times the derivative `order` of phi."""
    profile, power = SDOProfile(dim, m, order), order // 2
    return tabulate(
        lambda s: s**power * profile(s),
        _product_at_zero(profile, power),
        profile.end(power),
        profile.scale * (2.0 * dim) ** power,
    )


def _product_at_zero(profile: SDOProfile, power: int) -> float:
    """Limit of s^power times the derivative.

    Near 0, phi is a polynomial plus s^(m - dim/2), which comes with log s where the exponent is whole.
    """
    room = profile.m - 0.5 * profile.dim - profile.order
    if power and (room > 0 or room + power > 0):
        return 0.0
    if room > 0:
        return profile.at_zero()
    tiny = math.ldexp(1.0, LOWEST_OCTAVE)
    value = tiny**power * float(profile(np.array([tiny]))[0])
    return value if room < 0 and room + power == 0 else math.copysign(math.inf, value)


@lru_cache(maxsize=_KEPT)
def laplacian_table(dim: int, m: int) -> RadialTable:
    """2 (dim phi' + 2 s phi''), at 0 without the sum of two infinities."""
    first, second = SDOProfile(dim, m, 1), SDOProfile(dim, m, 2)
    at_zero = 2.0 * dim * first.at_zero() if m - 0.5 * dim > 1 else -math.inf
    return tabulate(
        lambda s: 2.0 * (dim * first(s) + 2.0 * s * second(s)), at_zero, max(first.end(0), second.end(1)), 1.0
    )


@lru_cache(maxsize=_KEPT)
def convolution_table(dim: int, m: int) -> RadialTable:
    """phi convolved with itself, divided by its value at 0."""
    phi, first = SDOProfile(dim, m, 0), SDOProfile(dim, m, 1)
    room = m - 0.5 * dim
    return tabulate(lambda s: phi(s) - s * first(s) / room, 1.0, max(phi.end(0), first.end(1)), 1.0)
