"""Spectrum of a Sobolev norm: its scale, its moments and draws from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from isopleth.errors import InputError

_NEGLIGIBLE = 45.0  # e^-45 is far below the machine epsilon
_LARGEST_SHIFT = 200  # octaves of s: a table holds third powers of the widths of cells
_LARGEST = 1e100  # of a_l at the scale of the mass, so that squares and products with powers of t do not overflow


class Piece(NamedTuple):
    """Interval of ln t, from `low` to `high`, in which the term ``a_l t^(2l)`` of l = order is the largest."""

    order: int
    low: float
    high: float


@dataclass(frozen=True)
class SobolevSpectrum:
    r"""Density :math:`S(t) = 1/P(t^2)`, :math:`P(u) = \sum_l a_l u^l`, of radii in `dim` dimensions."""

    dim: int  # dimension
    terms: tuple[float, ...]  # a_0 = 1 to a_m, none of them negative, the last positive, 2m > dim

    @property
    def m(self) -> int:
        """The degree of P."""
        return len(self.terms) - 1

    @cached_property
    def pieces(self) -> list[Piece]:
        """The largest terms, from ln t = -inf to inf. P is between its largest term and m + 1 times that."""
        hull: list[Piece] = []
        for order, a in enumerate(self.terms):
            if a <= 0.0:
                continue
            low = -math.inf
            while hull:
                low = (math.log(self.terms[hull[-1].order]) - math.log(a)) / (2.0 * (order - hull[-1].order))
                if low > hull[-1].low:
                    break
                hull.pop()  # the line of the last term is below its neighbours everywhere
            if hull:
                hull[-1] = hull[-1]._replace(high=low)
            hull.append(Piece(order, low, math.inf))
        return hull

    @cached_property
    def log_peak(self) -> float:
        """The ln t with the largest t^dim divided by the largest term, near most of the mass."""
        return next(piece.low for piece in self.pieces if 2 * piece.order >= self.dim)

    def scaled(self, shift: int) -> Self:
        """Return the spectrum in the unit ``2**(shift/2)`` of t."""
        try:
            terms = tuple(math.ldexp(a, shift * order) for order, a in enumerate(self.terms))
        except OverflowError:
            terms = (math.inf,)
        if abs(shift) > _LARGEST_SHIFT or not sum(terms) < _LARGEST or not terms[-1] > 1.0 / _LARGEST:
            raise InputError(
                f"coefficients = {self.terms[1:]!r}: expected sizes that double precision can hold side by side; "
                f"divide a_l by c^(2l) with one c for all l and multiply length_scale by c."
            )
        return type(self)(self.dim, terms)

    def log_polynomial(self, log_t: np.ndarray) -> np.ndarray:
        """Return ln P(t^2)."""
        first, *others = (math.log(a) + 2.0 * order * log_t for order, a in enumerate(self.terms) if a > 0.0)
        for term in others:
            np.logaddexp(first, term, out=first)
        return first

    def log_moment(self, p: int, power: int = 1) -> float:
        """Return the logarithm of the integral of ``t^(p - 1) S^power``, 0 < p < 2 m power.

        The trapezoid rule in ln t converges exponentially: the zeros of P are at least pi/(2m) from the real line.
        """
        margin = 2 * self.m * power - p
        step = 0.2 / self.m
        first = self.pieces[0].high - _NEGLIGIBLE / p
        last = self.pieces[-1].low + (_NEGLIGIBLE + power * math.log(self.m + 1.0)) / margin
        u = np.arange(math.floor(first / step), math.ceil(last / step) + 1) * step
        return float(logsumexp(p * u - power * self.log_polynomial(u)) + math.log(step))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` radii of density proportional to ``t^(dim - 1) S``, by rejection; at most m + 1 proposals each.

        Proposals have the largest term in place of P, so that their density consists of powers.
        """
        radii = np.empty(n)
        filled = 0
        while filled < n:
            u = self._propose(max(64, 2 * (n - filled)), rng)
            largest = np.max([math.log(self.terms[p.order]) + 2 * p.order * u for p in self.pieces], axis=0)
            kept = u[np.log1p(-rng.random(u.size)) < largest - self.log_polynomial(u)][: n - filled]
            radii[filled : filled + kept.size] = np.exp(kept)
            filled += kept.size
        return radii

    def _propose(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw ln t from the density of pieces ``t^(dim - 1 - 2l)/a_l``."""
        slopes = np.array([self.dim - 2.0 * p.order for p in self.pieces])
        ends = np.array([p.low if slope < 0 else p.high for p, slope in zip(self.pieces, slopes, strict=True)])
        widths = np.array([p.high - p.low for p in self.pieces])
        with np.errstate(divide="ignore", invalid="ignore"):  # slope 0: a uniform ln t
            areas = np.where(slopes == 0.0, widths, -np.expm1(-np.abs(slopes) * widths) / np.abs(slopes))
        logs = slopes * ends - np.log([self.terms[p.order] for p in self.pieces]) + np.log(areas)
        piece = rng.choice(len(slopes), size=n, p=np.exp(logs - logsumexp(logs)))
        share = rng.random(n)
        slope, width = slopes[piece], widths[piece]
        flat = slope == 0.0
        steep = np.where(flat, 1.0, np.abs(slope))
        with np.errstate(invalid="ignore"):
            down = np.where(flat, share * width, -np.log1p(share * np.expm1(-steep * width)) / steep)
        return ends[piece] + np.where(slope < 0, down, -down)


@lru_cache(maxsize=64)
def unit_spectrum(dim: int, coefficients: tuple[float, ...]) -> tuple[SobolevSpectrum, int]:
    """Return the spectrum with its mass about t = 1, and `shift`: its s is ``2**shift`` times that of `coefficients`.

    A power of two is exact: it shifts a table by octaves and changes exponents of floats only.
    """
    spectrum = SobolevSpectrum(dim, (1.0, *coefficients))
    shift = round(2.0 * spectrum.log_peak / math.log(2.0))
    return spectrum.scaled(shift), shift
