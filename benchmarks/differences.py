"""Difference of two densities: time and error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.comparison import Comparison, Program
from isopleth import LSDD
from isopleth.difference import KDEDifference
from isopleth.difference.grids import ALPHAS, factors

SHIFT = 1.0
FRESH = 2000
CENTERS, FOLDS = 500, 5

Difference = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Samples:
    """Two samples, and test points drawn from both distributions."""

    x: np.ndarray
    y: np.ndarray
    fresh: np.ndarray


def problem(n: int, d: int) -> Samples:
    """Draw standard normal rows; those of the first sample are shifted by one standard deviation in the first column."""
    rng = np.random.default_rng(0)
    x, y, fresh = rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.normal(size=(FRESH, d))
    x[:, 0] += SHIFT
    fresh[::2, 0] += SHIFT
    return Samples(x, y, fresh)


def densities(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both densities."""
    log_q = -0.5 * (at**2).sum(axis=1) - 0.5 * at.shape[1] * math.log(2.0 * math.pi)
    return np.exp(log_q + SHIFT * at[:, 0] - 0.5 * SHIFT**2), np.exp(log_q)


def error(p: Samples, difference: Difference) -> float:
    """Return the L2 error relative to the L2 distance of the densities, by a mean over points of known density."""
    one, other = densities(p.fresh)
    law = 0.5 * (one + other)
    gap = (difference(p.fresh) - (one - other)) ** 2 / law
    dim = p.x.shape[1]
    size = 2.0 * (4.0 * math.pi) ** (-dim / 2.0) * (1.0 - math.exp(-(SHIFT**2) / 4.0))
    return float(np.sqrt(gap.mean() / size))


def plain(p: Samples) -> Difference:
    """Solve the paper's equations as written: for every length scale, ridge and fold, on the same grids."""
    rng, dim = np.random.default_rng(0), p.x.shape[1]
    spread = float(np.sqrt(0.5 * (p.x.var(axis=0) + p.y.var(axis=0))).mean())
    both = np.concatenate([p.x, p.y])
    centers = both[rng.choice(len(both), min(CENTERS, len(both)), replace=False)]
    folds = [rng.permutation(len(rows)) % FOLDS for rows in (p.x, p.y)]
    scales = factors(dim) * spread
    apart = cdist(centers, centers, "sqeuclidean")
    losses = np.zeros((len(scales), len(ALPHAS)))
    for i, scale in enumerate(scales):
        volume = (math.pi * scale**2) ** (dim / 2.0)
        gram = volume * np.exp(-0.25 * apart / scale**2)
        values = [np.exp(-0.5 * cdist(rows, centers, "sqeuclidean") / scale**2) for rows in (p.x, p.y)]
        for t in range(FOLDS):
            kept = [fold != t for fold in folds]
            h = values[0][kept[0]].mean(axis=0) - values[1][kept[1]].mean(axis=0)
            test = values[0][~kept[0]].mean(axis=0) - values[1][~kept[1]].mean(axis=0)
            for j, alpha in enumerate(ALPHAS):
                theta = np.linalg.solve(gram + alpha * volume * np.eye(len(centers)), h)
                losses[i, j] += theta @ gram @ theta - 2.0 * test @ theta
    best = np.unravel_index(np.argmin(losses), losses.shape)
    scale, alpha = scales[best[0]], ALPHAS[best[1]]
    volume = (math.pi * scale**2) ** (dim / 2.0)
    gram = volume * np.exp(-0.25 * apart / scale**2)
    h = np.subtract(
        *(np.exp(-0.5 * cdist(rows, centers, "sqeuclidean") / scale**2).mean(axis=0) for rows in (p.x, p.y))
    )
    theta = np.linalg.solve(gram + alpha * volume * np.eye(len(centers)), h)
    return lambda at: np.exp(-0.5 * cdist(at, centers, "sqeuclidean") / scale**2) @ theta


PROGRAMS = {
    "isopleth LSDD": Program(lambda p: LSDD(random_state=0).fit(p.x, p.y).difference),
    "isopleth LSDD, one thread": Program(lambda p: LSDD(random_state=0, n_jobs=1).fit(p.x, p.y).difference),
    "NumPy, a solve for every grid point and fold": Program(plain),
    "isopleth difference of two KDEs": Program(lambda p: KDEDifference().fit(p.x, p.y).difference),
}

COMPARISONS = [
    Comparison(
        "difference",
        "Difference of two normal densities, default grids and 5 folds, n = n' = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        error,
        "L2 error over the L2 distance",
        rows=(125, 250, 500, 1000, 2000),
        columns=1,
        column_range=(1, 2, 5, 10),
        column_rows=500,
        slowest=300.0,  # the cubic growth up to 500 centres does not go on
    ),
]
