"""Standard deviation of a fitted difference, by the limit law of its coefficients."""

from __future__ import annotations

import numpy as np

from isopleth.difference.gaussian_system import GaussianSystem
from isopleth.difference.spectrum import PenalizedSpectrum


def deviation_factor(
    spectrum: PenalizedSpectrum, alpha: float, covariances: list[np.ndarray], counts: np.ndarray
) -> np.ndarray | None:
    """F with F F' = G (V/n + V'/n') G, of shape (b, r), so that the standard deviation at x is the norm of F' psi(x).

    None if a sample has one row only, which says nothing of its variance.
    """
    if not (counts > 1.0).all():
        return None
    unbiased = sum(v / (n - 1.0) for v, n in zip(covariances, counts, strict=True))
    values, vectors = np.linalg.eigh(unbiased)
    kept = values > len(values) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return spectrum.solve(vectors[:, kept] * np.sqrt(values[kept]), alpha)


def deviations_at(system: GaussianSystem, z: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Standard deviations at the rows `z`, over the volume."""
    out = np.zeros(len(z))
    for part in system.chunks(len(z)):
        out[part] = np.linalg.norm(system.values(z[part], factor), axis=1)
    return out
