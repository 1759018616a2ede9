"""Log densities of rows under a kernel density estimate of one bandwidth, the same function for all programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.neighbors import KernelDensity

from benchmarks.comparison import Comparison, Program
from benchmarks.exact import gaussian_log_density
from isopleth import KDE


@dataclass(frozen=True)
class Scoring:
    """Centres, rows to score and the bandwidth."""

    x: np.ndarray
    rows: np.ndarray
    bandwidth: float


def whitened(x: np.ndarray) -> np.ndarray:
    """Rows of mean 0 and covariance I, so that SciPy, which scales by the covariance, estimates the same function."""
    x = x - x.mean(axis=0)
    factor = np.linalg.cholesky(np.atleast_2d(x.T @ x / (len(x) - 1)))
    return np.ascontiguousarray(np.linalg.solve(factor, x.T).T)


def problem(n: int, d: int) -> Scoring:
    """Draw n normal centres and twice as many rows; return them with Scott's bandwidth."""
    rng = np.random.default_rng(0)
    return Scoring(whitened(rng.normal(size=(n, d))), rng.normal(size=(2 * n, d)), n ** (-1.0 / (d + 4)))


def ours(p: Scoring, n_jobs: int = -1) -> np.ndarray:
    """Fit and score with isopleth."""
    return KDE(length_scale=p.bandwidth, n_jobs=n_jobs, frame="scale").fit(p.x).score_samples(p.rows)


def scikit_learn(**options: Any) -> Callable[[Scoring], np.ndarray]:
    """Return scikit-learn's KernelDensity with options."""

    def run(p: Scoring) -> np.ndarray:
        settings = {name: len(p.x) if value == "n" else value for name, value in options.items()}
        return KernelDensity(bandwidth=p.bandwidth, **settings).fit(p.x).score_samples(p.rows)

    return run


def kdepy(kind: str) -> Callable[[Scoring], np.ndarray]:
    """Return a KDEpy estimator that can score any rows."""

    def run(p: Scoring) -> np.ndarray:
        import KDEpy

        values = getattr(KDEpy, kind)(kernel="gaussian", bw=p.bandwidth).fit(p.x).evaluate(p.rows)
        with np.errstate(divide="ignore"):
            return np.log(values)

    return run


def keops(p: Scoring) -> np.ndarray:
    """Compute the log-sum-exp by pykeops on the CPU."""
    import pykeops
    from pykeops.numpy import LazyTensor

    pykeops.set_verbose(False)
    a, b = LazyTensor(p.rows[:, None, :]), LazyTensor(p.x[None, :, :])
    logs = (((a - b) ** 2).sum(-1) * (-0.5 / p.bandwidth**2)).logsumexp(axis=1)[:, 0]
    n, d = p.x.shape
    return logs - math.log(n) - d * math.log(p.bandwidth) - 0.5 * d * math.log(2.0 * math.pi)


def log_error(p: Scoring, got: np.ndarray) -> float:
    """Return the error of the first rows."""
    return float(np.max(np.abs(got[:200] - gaussian_log_density(p.rows[:200], p.x, p.bandwidth))))


PROGRAMS = {
    "isopleth KDE": Program(ours),
    "isopleth KDE, one thread": Program(lambda p: ours(p, n_jobs=1)),
    "scikit-learn KernelDensity": Program(scikit_learn()),
    "scikit-learn, one leaf (no tree)": Program(scikit_learn(leaf_size="n")),
    "scikit-learn, rtol=1e-4": Program(scikit_learn(rtol=1e-4)),
    "scikit-learn, rtol=1e-2": Program(scikit_learn(rtol=1e-2)),
    "SciPy gaussian_kde": Program(lambda p: gaussian_kde(p.x.T, bw_method=p.bandwidth).logpdf(p.rows.T)),
    "KDEpy NaiveKDE": Program(kdepy("NaiveKDE"), needs="KDEpy"),
    "KDEpy TreeKDE": Program(kdepy("TreeKDE"), needs="KDEpy"),
    "pykeops log-sum-exp": Program(keops, needs="pykeops"),
}
ERROR = "largest error of log p"

COMPARISONS = [
    Comparison(
        "scoring",
        "Log density of 2n rows under n centres, Scott's bandwidth, n = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        log_error,
        ERROR,
        rows=(500, 1000, 2000, 4000),
        columns=10,
        column_range=(1, 2, 4, 8, 16, 32),
        column_rows=1000,
    ),
    Comparison(
        "scoring-low",
        "The same log densities in few columns, where trees are at their best, n = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        log_error,
        ERROR,
        rows=(1000, 2000, 4000, 8000),
        columns=2,
    ),
]
