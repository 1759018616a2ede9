"""Slow reference computations that do not use the library."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, kve, logsumexp


def squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return squared distances from differences, which lose no digits, of shape (len(x), len(y))."""
    return np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2)


def gaussian_log_density(rows: np.ndarray, x: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return the logarithm of the kernel density estimate of the rows `x` at `rows`."""
    n, d = x.shape
    logs = -0.5 * squared_distances(rows, x) / bandwidth**2
    return logsumexp(logs, axis=1) - math.log(n) - d * math.log(bandwidth) - 0.5 * d * math.log(2.0 * math.pi)


def sdo(r: np.ndarray, d: int, m: int) -> np.ndarray:
    r"""Return the SDO kernel divided by its value at 0, at distances `r` > 0 and unit length scale.

    Partial fractions of the spectrum :math:`1/(1 + t^{2m})` make it a sum of m Bessel functions of complex argument. Terms
    cancel where r is small: below 1 digits are lost, the more the higher m is.
    """
    total = np.zeros_like(r)
    order = 0.5 * d - 1.0
    for j in range(m):
        w = np.exp(0.5j * math.pi * (2 * j + 1 - m) / m)
        total += np.real(w**2 / m * (w / r) ** order * kve(order, w * r) * np.exp(-w * r))
    log_sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - gammaln(0.5 * d)
    log_peak = log_sphere - d * math.log(2.0 * math.pi) + math.log(math.pi / (2 * m * math.sin(0.5 * math.pi * d / m)))
    return total * math.exp(-0.5 * d * math.log(2.0 * math.pi) - log_peak)
