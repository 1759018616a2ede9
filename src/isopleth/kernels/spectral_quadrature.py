"""Radial kernels from their spectral density, by the trapezoid rule in the logarithm of frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.special import gammaln, jv

_NEGLIGIBLE = 41.0  # e^-41 is far below the machine epsilon
_SPLINE_DEGREE = 9
_MARGIN = 24  # a spline is worse at its ends


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


class SpectralQuadrature:
    r"""Quadrature of the derivative `order` in s of :math:`\int q(z)\, e^{2\pi i z\cdot x}\,dz \big/ \int q(z)\,dz`, q radial.

    With t = 2 pi \|z\|, S(t) the density up to a factor, D = dim + 2 order and b = dim/2,

    .. math:: \frac{(-1/4)^{order}}{(b)_{order}} \int t^{D-1} S(t)\; {}_0F_1(; D/2; -(rt)^2/4)\, dt
        \Big/ \int t^{dim-1} S(t)\, dt.

    In ln t the waves depend on ln r + ln t only, so one grid of Bessel functions is used for all distances of a grid; values
    between them are interpolated by a spline. It needs many dimensions, in which oscillations decrease fast.

    Parameters
    ----------
    dim, order : int
        As above.
    log_spectrum : callable
        ln S as a function of ln t; for Sobolev norms minus the logarithm of ``1 + sum_l a_l t^(2l)``.
    log_mass : float
        The logarithm of the last integral.
    step : float
        A step in ln t that resolves the spectrum; a smaller one is used if the waves need it.
    r_min, r_max : float
        Range of the distances.
    """

    def __init__(
        self,
        dim: int,
        order: int,
        log_spectrum: Callable[[np.ndarray], np.ndarray],
        log_mass: float,
        step: float,
        r_min: float,
        r_max: float,
    ) -> None:
        self._range = (r_min, r_max)
        half = 0.5 * dim + order
        step = min(step, 0.05 / half)
        front = math.prod(-0.25 / (0.5 * dim + i) for i in range(order))

        def log_weight(u: np.ndarray) -> np.ndarray:
            return 2.0 * half * u + log_spectrum(u) - log_mass

        low, high, cut = _window(log_weight, half, math.log(r_min), step)
        stride = max(1, int(0.05 / (half * step)))
        u = np.arange(low, high, step)
        log_r = np.arange(
            math.log(r_min) - _MARGIN * stride * step, math.log(r_max) + _MARGIN * stride * step, stride * step
        )
        grid = low + log_r[0] + step * np.arange(u.size + stride * (log_r.size - 1))
        weights = front * step * np.exp(log_weight(u))
        waves = np.lib.stride_tricks.sliding_window_view(bessel_ratio(half, np.exp(grid)), u.size)[::stride]
        self._value = make_interp_spline(log_r, waves @ weights, k=_SPLINE_DEGREE)
        # Rounding is relative to the largest term of series, and to the logarithm of a Gamma function in Bessel functions.
        rounding = EPS * (32.0 + gammaln(half))
        size = np.array([np.abs(w) @ np.abs(weights) for w in waves])
        self._error = make_interp_spline(log_r, rounding * size + abs(front) * cut, k=1)

    def __call__(self, r: np.ndarray) -> Estimate:
        """Return the derivative at distances `r`; errors are infinite outside of the range."""
        out = Estimate.unknown(r.shape)
        inside = (r >= self._range[0]) & (r <= self._range[1])
        log_r = np.log(r[inside])
        out.improve(inside, Estimate(self._value(log_r), self._error(log_r)))
        return out


def _window(
    log_weight: Callable[[np.ndarray], np.ndarray], half: float, log_r: float, step: float
) -> tuple[float, float, float]:
    """Return the ends of the integral in ln t for distances from e^log_r on, and a bound of the rest beyond the upper end."""
    resolved = math.log(0.5 / step) - log_r  # a step has half a radian of the plane wave
    u = np.linspace(-80.0, resolved, 8000)
    log_x = u + log_r
    log_wave = np.minimum(0.0, gammaln(half) + (1.0 - half) * (log_x - math.log(2.0)) - 0.5 * log_x)
    log_size = log_weight(u) + log_wave
    seen = np.flatnonzero(log_size > log_size.max() - _NEGLIGIBLE)
    first, last = max(seen[0] - 1, 0), min(seen[-1] + 1, u.size - 1)
    return float(u[first]), float(u[last]), math.exp(min(700.0, log_size[last]))


EPS = float(np.finfo(np.float64).eps)


class Estimate(NamedTuple):
    """Values and the sizes of their errors, about the machine epsilon times the largest term."""

    value: np.ndarray
    error: np.ndarray

    @classmethod
    def unknown(cls, shape: tuple[int, ...]) -> Estimate:
        """Return an estimate with infinite errors."""
        return cls(np.full(shape, np.nan), np.full(shape, np.inf))

    def improve(self, where: np.ndarray, other: Estimate) -> None:
        """Replace values by those of `other`, which belong to the places where `where` is true, if their error is smaller."""
        places = np.flatnonzero(where)[other.error < self.error[where]]
        better = other.error < self.error[where]
        self.value[places] = other.value[better]
        self.error[places] = other.error[better]
