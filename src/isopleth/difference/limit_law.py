"""Standard deviation of a fitted difference, by the limit law of its coefficients."""

from __future__ import annotations

import numpy as np

from isopleth.backend import Array, namespace, to_numpy
from isopleth.difference.gaussian_system import GaussianSystem
from isopleth.difference.system import DifferenceSystem


def deviation_factor(at: DifferenceSystem, alpha: float) -> np.ndarray | None:
    """F with F F' = G (V/n + V'/n') G, of shape (b, r), so that the standard deviation at x is the norm of F' psi(x).

    None if a sample has one row only, which says nothing of its variance.
    """
    if not (at.counts > 1.0).all():
        return None
    values, vectors = map(to_numpy, namespace(at.noise).linalg.eigh(at.noise))
    kept = values > len(values) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return at.spectrum.solve(vectors[:, kept] * np.sqrt(values[kept]), alpha)


def deviations_at(system: GaussianSystem, z: Array, factor: np.ndarray) -> np.ndarray:
    """Standard deviations at the rows `z`, over the volume."""
    out = np.zeros(len(z))
    for part in system.chunks(len(z)):
        out[part] = np.linalg.norm(system.values(z[part], factor), axis=1)
    return out
