"""The profile of the SDO kernel and its derivatives, accurate at every distance."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from isopleth.kernels.estimate import Estimate
from isopleth.kernels.sdo_bessel import SDOBessel
from isopleth.kernels.sdo_series import SDOSeries, sine_of_share
from isopleth.kernels.spectral_quadrature import SpectralQuadrature

_GOOD_ENOUGH = 1e-14  # errors, relative to the size of the function, that call for no other way of evaluation
_POOR = 1e-13
_END = 1e-17


def log_k0(dim: int, m: int) -> float:
    """Logarithm of k_1(0), the mass of the spectral density 1/(1 + (2 pi |z|)^(2m))."""
    log_sphere = math.log(2.0) + 0.5 * dim * math.log(math.pi) - gammaln(0.5 * dim)
    return float(log_sphere - dim * math.log(2.0 * math.pi) + _log_radial_mass(dim, m))


def _log_radial_mass(dim: int, m: int) -> float:
    """Logarithm of the integral of t^(dim-1)/(1 + t^(2m))."""
    return math.log(math.pi / (2 * m)) - math.log(sine_of_share(0.5 * dim, m))


class SDOProfile:
    r"""Derivative `order` in s of :math:`\varphi(s) = k_1(\sqrt s)/k_1(0)` for the pair (dim, m).

    Three ways of evaluation answer with an estimate of their own error, and every point takes the best: the series at
    0, the closed form far from it, and, in high dimensions, quadrature between the two.
    """

    def __init__(self, dim: int, m: int, order: int) -> None:
        self.dim, self.m, self.order = dim, m, order
        self.scale = (0.5 / dim) ** order  # phi is of the size 1 as far as s = 2 dim
        self._series = SDOSeries(dim, m, order)
        self._bessel = SDOBessel(dim, m, order, log_k0(dim, m))
        self._quadrature = self._between()

    def _between(self) -> SpectralQuadrature | None:
        """Quadrature for the distances, if any, that are too far for the series and too near for the closed form."""
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
        """What errors are measured against: they are multiplied by powers of s in use."""
        return self.scale * np.minimum(1.0, self.dim / s) ** ((self.order + 1) // 2)

    def estimate(self, s: np.ndarray) -> Estimate:
        """Values and their errors at an array of s > 0."""
        r = np.sqrt(s)
        out = self._series(r)
        for way in (self._bessel, self._quadrature):
            wanted = out.error > _GOOD_ENOUGH * self._size(s)
            if way is not None and wanted.any():
                out.improve(wanted, way(r[wanted]))
        return out

    def __call__(self, s: np.ndarray) -> np.ndarray:
        """Values at an array of s > 0."""
        return self.estimate(s).value

    def at_zero(self) -> float:
        """The value at 0, which exists where the order is below m - dim/2."""
        return self._series.at_zero()

    def end(self, power: int) -> int:
        """The octave from which on s^power times the derivative is as good as 0."""
        log_end = math.log(_END * self.scale)
        octave = 4
        while not self._bessel.log_envelope(2.0 ** (0.5 * octave)) + power * octave * math.log(2.0) < log_end:
            octave += 1  # also where Bessel functions overflow
        return octave
