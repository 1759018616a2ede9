"""Derivatives of Matern kernels of half-odd order, as sums of powers times an exponential."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from isopleth._namespace import Array, namespace, overwrite
from isopleth.kernels.capping import cap
from isopleth.kernels.workspace import Workspace

_Terms = dict[int, Fraction]
"""Coefficients of powers of z = sqrt(2 nu s), in front of e^-z. Exact: terms that cancel are gone."""

_FURTHEST = 1e3  # of sqrt(s): e^-1000 is 0 in every precision, and no power of 1000 in use overflows


class PowerSeries(NamedTuple):
    r""":math:`e^{-\lambda u} \sum_k c_k u^{lowest + k}` in u = sqrt(s)."""

    rate: float
    lowest: int
    coefficients: tuple[float, ...]

    def overwrite(self, u: Array, work: Workspace) -> Array:
        """Values at `u`, in its memory or in scratch. An infinite limit at 0 stays infinite."""
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
        """The sum over u^lowest, by Horner's rule in scratch."""
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
    """Product in scratch, in one pass where there is scratch."""
    if not isinstance(u, np.ndarray):
        return u * factor
    return np.multiply(u, factor, out=work.empty("polynomial", u.shape, u.dtype))


def _phi(nu: Fraction) -> _Terms:
    p = int(nu)
    front = Fraction(math.factorial(p), math.factorial(2 * p))
    return {
        p - i: front * Fraction(math.factorial(p + i), math.factorial(i) * math.factorial(p - i)) * 2 ** (p - i)
        for i in range(p + 1)
    }


def _slope(terms: _Terms, nu: Fraction) -> _Terms:
    """The derivative in s: dz/ds = nu/z."""
    out: _Terms = {}
    for k, c in terms.items():
        out[k - 1] = out.get(k - 1, Fraction(0)) - nu * c
        out[k - 2] = out.get(k - 2, Fraction(0)) + nu * k * c
    return out


def _product(nu: Fraction, order: int) -> _Terms:
    terms = _phi(nu)
    for _ in range(order):
        terms = _slope(terms, nu)
    power = order // 2
    return {k + 2 * power: c / (2 * nu) ** power for k, c in terms.items()}


def _in_distances(terms: _Terms, nu: Fraction) -> PowerSeries:
    rate = math.sqrt(2 * nu)
    kept = [k for k, c in terms.items() if c]
    powers = range(min(kept), max(kept) + 1)
    return PowerSeries(rate, powers[0], tuple(float(terms.get(k, 0)) * rate**k for k in powers))


@lru_cache
def product_terms(nu: float, order: int) -> PowerSeries:
    """s^floor(order/2) times the derivative `order` of phi in s."""
    half_odd = Fraction(nu)
    return _in_distances(_product(half_odd, order), half_odd)


@lru_cache
def laplacian_terms(nu: float, dim: int) -> PowerSeries:
    """2 (dim phi' + 2 s phi''), in one: infinities of opposite sign cancel here and not at 0."""
    half_odd = Fraction(nu)
    terms = {k: 2 * dim * c for k, c in _product(half_odd, 1).items()}
    for k, c in _product(half_odd, 2).items():
        terms[k] = terms.get(k, Fraction(0)) + 4 * c
    return _in_distances(terms, half_odd)
