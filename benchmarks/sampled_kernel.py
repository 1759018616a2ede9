"""Values of the SDO kernel: from its table, and by the papers' random features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.comparison import Comparison, Program
from benchmarks.exact import sdo
from isopleth.kernels import SDO
from isopleth.operators import Operator


def problem(n: int, d: int) -> np.ndarray:
    """Draw normal points, at distances of about one length scale."""
    return np.random.default_rng(0).normal(size=(n, d)) * 4.0 / np.sqrt(d)


def sampled(features: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the papers' estimate, divided by the kernel's value at 0: one cosine for each feature, radii from a fine grid.

    With the two slips of the printed algorithm mended (it leaves out a factor of 2, and 2 pi in the phase).
    """

    def run(x: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(1)
        d = x.shape[1]
        m = d // 2 + 2
        directions = rng.normal(size=(d, features))
        directions /= np.linalg.norm(directions, axis=0)
        grid = np.linspace(0.0, 20.0, 100_001)[1:]  # angular frequencies; the tail beyond is below 1e-4 of the mass
        density = grid ** (d - 1) / (1.0 + grid ** (2 * m))
        radii = rng.choice(grid, size=features, p=density / density.sum())
        waves = np.cos(x @ (radii * directions) + rng.uniform(0.0, 2.0 * np.pi, size=features))
        return 2.0 / features * waves @ waves.T

    return run


def error(x: np.ndarray, got: np.ndarray) -> float:
    """Return the error for the first 50 points, at distances of one unit or more."""
    d = x.shape[1]
    r = np.sqrt(np.sum((x[:50, None, :] - x[None, :50, :]) ** 2, axis=2))
    apart = r >= 1.0
    return float(np.max(np.abs(got[:50, :50][apart] - sdo(r[apart], d, d // 2 + 2))))


COMPARISONS = [
    Comparison(
        "sampled-kernel",
        "Matrix of the SDO kernel over n points, n = {n:,}, d = {d}",
        problem,
        {"isopleth, from its table": Program(lambda x: Operator(SDO(), x).dense())}
        | {f"papers' random features, T = {t:,}": Program(sampled(t)) for t in (100, 1_000, 10_000)},
        error,
        "largest error of a value",
        rows=(250, 500, 1000, 2000),
        columns=5,
        column_range=(2, 4, 8, 16),
        column_rows=500,
    )
]
