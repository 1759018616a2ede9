"""Densities on a regular grid, for which a Fourier transform of binned rows is fast."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.neighbors import KernelDensity

from benchmarks.comparison import Comparison, Program
from benchmarks.exact import gaussian_log_density
from benchmarks.scoring import whitened
from isopleth import KDE

# Grid points along an axis.
SIDE = {1: 1024, 2: 128}


@dataclass(frozen=True)
class Grid:
    """Rows, the grid's points and the bandwidth."""

    x: np.ndarray
    points: np.ndarray
    bandwidth: float


def problem(n: int, d: int) -> Grid:
    """Draw n normal rows, and return a grid around them with a margin of four bandwidths."""
    x = whitened(np.random.default_rng(0).normal(size=(n, d)))
    bandwidth = n ** (-1.0 / (d + 4))
    axes = [np.linspace(c.min() - 4 * bandwidth, c.max() + 4 * bandwidth, SIDE[d]) for c in x.T]
    return Grid(x, np.array(list(itertools.product(*axes))), bandwidth)


def kdepy(p: Grid) -> np.ndarray:
    """Return KDEpy's Fourier transform estimate."""
    import KDEpy

    return KDEpy.FFTKDE(kernel="gaussian", bw=p.bandwidth).fit(p.x).evaluate(p.points)


def on_grid(p: Grid) -> np.ndarray:
    """Return isopleth's estimate by a Fourier transform."""
    density, limits = KDE(length_scale=p.bandwidth, frame="scale"), np.stack([p.points[0], p.points[-1]], axis=1)
    return density.fit(p.x).evaluate_on_grid(SIDE[p.x.shape[1]], limits).density.ravel()


def error(p: Grid, got: np.ndarray) -> float:
    """Return the error at some of the points, relative to the largest value."""
    some = np.linspace(0, len(p.points) - 1, 300).astype(int)
    exact = np.exp(gaussian_log_density(p.points[some], p.x, p.bandwidth))
    return float(np.max(np.abs(got[some] - exact)) / exact.max())


def scikit_learn(p: Grid, **options: float) -> np.ndarray:
    """Return the estimate of scikit-learn's KernelDensity."""
    return np.exp(KernelDensity(bandwidth=p.bandwidth, **options).fit(p.x).score_samples(p.points))


PROGRAMS = {
    "isopleth KDE": Program(
        lambda p: np.exp(KDE(length_scale=p.bandwidth, frame="scale").fit(p.x).score_samples(p.points))
    ),
    "isopleth KDE.evaluate_on_grid": Program(on_grid),
    "scikit-learn KernelDensity": Program(scikit_learn),
    "scikit-learn, rtol=1e-4": Program(lambda p: scikit_learn(p, rtol=1e-4)),
    "SciPy gaussian_kde": Program(lambda p: gaussian_kde(p.x.T, bw_method=p.bandwidth)(p.points.T)),
    "KDEpy FFTKDE": Program(kdepy, needs="KDEpy"),
}

COMPARISONS = [
    Comparison(
        "grid",
        "A density of n rows on a grid of 1,024 points, n = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        error,
        "largest error of p, over its peak",
        rows=(1000, 4000, 16_000, 64_000),
        columns=1,
    ),
    Comparison(
        "grid-plane",
        "A density of n rows on a grid of 128 by 128 points, n = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        error,
        "largest error of p, over its peak",
        rows=(500, 1000, 2000, 4000),
        columns=2,
    ),
]
