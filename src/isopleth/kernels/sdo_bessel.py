"""The SDO kernel in closed form: Bessel functions of complex argument, from partial fractions of its spectrum."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import kve, logsumexp

from isopleth.kernels.estimate import EPS, Estimate


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
        # the root 1 of odd m is its own conjugate, all others come in pairs
        turns = np.arange(1 - m, 1, 2)
        self._angles = 0.5 * math.pi * turns / m
        self._roots = np.exp(1j * self._angles)
        self._roots.real = np.sin(0.5 * math.pi * (turns + m) / m)  # accurate where the root is almost imaginary
        self._weights = np.where(turns == 0, 1.0, 2.0)

    def __call__(self, r: np.ndarray) -> Estimate:
        """The derivative at distances `r` > 0."""
        value, size = np.zeros_like(r), np.zeros_like(r)
        for root, angle, weight in zip(self._roots, self._angles, self._weights, strict=True):
            turn = angle * (self._nu + 2.0)
            log_size = self._log_front - self._nu * np.log(r) - root.real * r
            seen = log_size > -745.0  # e^-745 is the last that is not 0
            with np.errstate(all="ignore"):
                term = weight * np.exp(log_size[seen]) * kve(self._nu, root * r[seen])
                value[seen] += (term * np.exp(1j * (turn - root.imag * r[seen]))).real
                size[seen] += np.abs(term)
        # errors of the exponents and phases are relative errors of the terms
        error = EPS * (4.0 + np.abs(self._log_front) + self._nu * np.abs(np.log(r)) + r) * size
        return Estimate(self._sign * value, np.where(np.isfinite(value), error, np.inf))

    def log_envelope(self, r: float) -> float:
        """Logarithm of the sum of the sizes of the terms at one distance: what oscillation cannot hide."""
        sizes = np.log(np.abs(kve(self._nu, self._roots * r)) * self._weights) - self._roots.real * r
        return float(logsumexp(sizes) + self._log_front - self._nu * math.log(r))
