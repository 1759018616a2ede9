"""Spectrum of a Sobolev norm: its scale, its moments and draws from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import numpy as np
from scipy.special import gammaln, hankel1e, jv, logsumexp

from isopleth.core.errors import InputError

_NEGLIGIBLE = 45.0  # e^-45 is far below the machine epsilon
_LARGEST_SHIFT = 200  # octaves of s: a table holds third powers of the widths of cells
_LARGEST = 1e100  # of a_l at the scale of the mass, so that squares and products with powers of t do not overflow


class LargestTerm(NamedTuple):
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
    def pieces(self) -> list[LargestTerm]:
        """The largest terms, from ln t = -inf to inf. P is between its largest term and m + 1 times that."""
        hull: list[LargestTerm] = []
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
            hull.append(LargestTerm(order, low, math.inf))
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
        """Return the log of the integral of ``t^(p - 1) S^power`` by the trapezoid rule in ln t, which converges fast."""
        margin = 2 * self.m * power - p
        step = 0.2 / self.m
        first = self.pieces[0].high - _NEGLIGIBLE / p
        last = self.pieces[-1].low + (_NEGLIGIBLE + power * math.log(self.m + 1.0)) / margin
        u = np.arange(math.floor(first / step), math.ceil(last / step) + 1) * step
        return float(logsumexp(p * u - power * self.log_polynomial(u)) + math.log(step))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` radii of density proportional to ``t^(dim - 1) S`` by rejection; at most m + 1 proposals each."""
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
    """Return the spectrum with its mass about t = 1, and `shift`: its s is ``2**shift`` times that of `coefficients`."""
    spectrum = SobolevSpectrum(dim, (1.0, *coefficients))
    shift = round(2.0 * spectrum.log_peak / math.log(2.0))
    return spectrum.scaled(shift), shift


_NO_SHARE = 41.0  # e^-41 is far below the machine epsilon


def bessel_ratio(b: float, x: np.ndarray) -> np.ndarray:
    """Return 0F1(; b; -x^2/4), the mean of a plane wave of wavenumber x over directions in 2 b dimensions."""
    y = 0.25 * x * x
    out = np.empty_like(x)
    small = (
        y <= 5.0 * b
    )  # digits of the series cancel beyond; the Bessel function underflows below, in a thousand dimensions
    n = np.arange(1, 40)
    out[small] = np.polynomial.polynomial.polyval(y[small], np.r_[1.0, np.cumprod(-1.0 / (n * (b + n - 1)))])
    big = x[~small]
    root = np.exp(
        0.5 * (gammaln(b) + (1.0 - b) * np.log(0.5 * big))
    )  # its square can overflow where the product does not
    out[~small] = root * jv(b - 1.0, big) * root
    return out


_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Half widths of panels for which 20 nodes give 15 digits: in ln y, relative to the distance of the nearest zero of P; for a power
# of y, divided by its exponent; for a plane wave, in radians.
_NEAR_ZERO, _POWER, _WAVE = 1.0, 10.0, 7.0
_PANEL_GROWTH = 12.0  # logarithm of how much an integrand may grow across a panel
_TINY = 1e-270  # smaller powers are set to 0, because matrix products with subnormal numbers are slow
_CHUNK = 1 << 17


class _Nodes:
    """Real or complex nodes y, in panels of equal numbers, and weights without the modulus of y^p and without S."""

    def __init__(self, y: np.ndarray, weights: np.ndarray) -> None:
        self.y, self.weights = y, weights
        self._log_y = np.log(np.abs(y).reshape(-1, _POINTS.size).mean(axis=1))
        with np.errstate(divide="ignore"):  # in hundreds of dimensions the wave is 0 at its turning point
            self._log_weight = np.log(np.abs(weights).reshape(-1, _POINTS.size).max(axis=1))
        self._windows: dict[int, tuple[int, int]] = {}

    def window(self, spectrum: SobolevSpectrum, p: int, power: int, exponent: int) -> tuple[int, int]:
        """Return the first and last node at which the integrand counts for distances in the octave below ``2**exponent``."""
        if exponent not in self._windows:
            log_t = self._log_y - math.log(2.0) * np.array([[exponent], [exponent - 1]])
            log_size = self._log_weight + p * log_t - power * spectrum.log_polynomial(log_t)
            least = log_size.max(axis=1, keepdims=True) - _NO_SHARE - _PANEL_GROWTH
            panels = np.flatnonzero((log_size > least).any(axis=0))
            self._windows[exponent] = int(panels[0]) * _POINTS.size, int(panels[-1] + 1) * _POINTS.size
        return self._windows[exponent]


class RayQuadrature:
    r""":math:`\int_0^\infty t^{p-1}\, S(t)^e\; {}_0F_1(; D/2; -(rt)^2/4)\, dt` for r > 0, also if the wave decreases slowly.

    From beyond its turning point the wave follows a ray of angle pi/(4m), on which Hankel's function decreases exponentially:
    P(t^2) has no zero below pi/(2m), and its terms hardly cancel. Divergent integrals are continued in p.
    """

    def __init__(self, spectrum: SobolevSpectrum, dimension: int, p: int, power: int, r_min: float) -> None:
        self._spectrum, self._p, self._power = spectrum, p, power
        self._present = np.flatnonzero(spectrum.terms)
        self._terms = np.array(spectrum.terms)[self._present]
        nu = 0.5 * dimension - 1.0
        corner = nu + 2.0  # before the first zero of the wave
        log_first = (-_NO_SHARE - power * math.log(math.fsum(spectrum.terms))) / p
        self._axis = self._on_axis(math.log(r_min) + log_first, math.log(corner), dimension)
        self._ray = self._on_ray(nu, corner)

    def _on_axis(self, low: float, high: float, dimension: int) -> _Nodes:
        """Return nodes from e^low to e^high, with weights for the integral in ln y."""
        half = min(_NEAR_ZERO * 0.5 * math.pi / self._spectrum.m, _POWER / self._p)
        edges = np.linspace(low, high, 1 + math.ceil(0.5 * (high - low) / half))
        middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (high - low) / (edges.size - 1)
        y = np.exp((middle[:, None] + half * _POINTS).ravel())
        return _Nodes(y, np.tile(half * _WEIGHTS, middle.size) * bessel_ratio(0.5 * dimension, y))

    def _on_ray(self, nu: float, corner: float) -> _Nodes:
        """Return nodes for the rest of the integral, in panels that grow with the distance from the zeros of P."""
        angle = 0.25 * math.pi / self._spectrum.m
        direction = complex(math.cos(angle), math.sin(angle))
        growth = (
            self._p - nu - 0.5
        )  # the integrand is of the size |y|^(growth - 1) e^(-x sin(angle)), largest at the top
        top = max(growth / direction.imag, corner)
        ends = [corner]
        while ends[-1] < top or growth * math.log(ends[-1] / top) > (ends[-1] - top) * direction.imag - _NO_SHARE:
            ends.append(ends[-1] + 2.0 * min(_WAVE, _NEAR_ZERO * angle * ends[-1]))
        middle, half = 0.5 * np.add(ends[1:], ends[:-1]), 0.5 * np.diff(ends)
        y = corner + (middle[:, None] - corner + half[:, None] * _POINTS).ravel() * direction
        log_front = gammaln(nu + 1.0) - nu * np.log(0.5 * y) - np.log(y)
        wave = np.exp(log_front + 1j * y) * hankel1e(nu, y)
        return _Nodes(y, direction * np.outer(half, _WEIGHTS).ravel() * wave * np.exp(1j * self._p * np.angle(y)))

    def __call__(self, r: np.ndarray) -> np.ndarray:
        """Return values at an array of distances."""
        out = np.empty(r.shape)
        mantissa, exponent = np.frexp(r)
        for e in np.unique(exponent):
            here = exponent == e
            out[here] = self._octave(mantissa[here], int(e))
        return out

    def _octave(self, ratio: np.ndarray, exponent: int) -> np.ndarray:
        """Return values at distances ``ratio * 2**exponent``, 1/2 <= ratio < 1."""
        total = np.zeros(ratio.shape)
        scaled = self._terms * ratio[:, None] ** (-2.0 * self._present)
        for nodes in (self._axis, self._ray):
            powers, weights = self._powers(nodes, exponent)
            rows = max(1, _CHUNK // weights.size)
            for start in range(0, ratio.size, rows):
                part = slice(start, start + rows)
                total[part] += self._sum(scaled[part], powers, weights)
        return total * ratio ** -float(self._p)

    def _sum(self, scaled: np.ndarray, powers: tuple[np.ndarray, ...], weights: np.ndarray) -> np.ndarray:
        """Return real parts of sums of weights/P^power, where P is a matrix product."""
        if len(powers) == 1:
            return _raised(1.0 / (scaled @ powers[0]), self._power) @ weights
        real, imaginary = scaled @ powers[0], scaled @ powers[1]
        size = real * real
        size += imaginary * imaginary
        inverse = np.empty(real.shape, dtype=np.complex128)
        np.divide(real, size, out=inverse.real)
        np.divide(imaginary, size, out=inverse.imag)  # of the conjugate, because conjugating the weights is cheaper
        return (_raised(inverse, self._power) @ weights.conj()).real

    def _powers(self, nodes: _Nodes, exponent: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        r"""Return powers of z = t^2 in P and weights of the nodes that count, divided by their highest powers where \|t\| > 1."""
        first, last = nodes.window(self._spectrum, self._p, self._power, exponent)
        t, weights = nodes.y[first:last] * math.ldexp(1.0, -exponent), nodes.weights[first:last]
        z, size, m = t * t, np.abs(t), self._spectrum.m
        big = size > 1.0
        base = np.where(big, 1.0 / z, z)
        powers = np.where(big, _powers(base, m - self._present), _powers(base, self._present))
        turn = np.where(big, (base / np.abs(base)) ** (m * self._power), 1.0)
        degree = np.where(big, self._p - 2.0 * m * self._power, self._p)
        powers[np.abs(powers) < _TINY] = 0.0
        components = (powers.real.copy(), powers.imag.copy()) if np.iscomplexobj(powers) else (powers,)
        return components, weights * turn * size**degree


def _powers(base: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Return powers of numbers of modulus at most 1, by squaring; one row for each order."""
    out, square = np.ones((orders.size, base.size), dtype=base.dtype), base
    for bit in range(int(orders.max()).bit_length()):
        if bit:
            square = square * square
        out[(orders >> bit) & 1 == 1] *= square
    return out


def _raised(a: np.ndarray, power: int) -> np.ndarray:
    return a if power == 1 else a * a
