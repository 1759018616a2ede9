"""Choice of a length scale: time, and error of the resulting density."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import gaussian_kde
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

from benchmarks.comparison import Comparison, Program
from isopleth import KDE, SOSREP, Search
from isopleth.density.search import DEFAULT_GRID

FRESH = 5000
MEANS = (-2.0, 2.0)
DEVIATIONS = (1.0, 0.4)


def log_truth(rows: np.ndarray) -> np.ndarray:
    """A mixture of two normal distributions, halfway and apart along the first column."""
    d = rows.shape[1]
    parts = []
    for mean, deviation in zip(MEANS, DEVIATIONS, strict=True):
        z = rows.copy()
        z[:, 0] -= mean
        parts.append(-0.5 * np.sum((z / deviation) ** 2, axis=1) - d * math.log(deviation))
    return logsumexp(parts, axis=0) - math.log(2.0) - 0.5 * d * math.log(2.0 * math.pi)


def draw(n: int, d: int, seed: int) -> np.ndarray:
    """Rows of the mixture."""
    rng = np.random.default_rng(seed)
    side = rng.integers(2, size=n)
    rows = rng.normal(size=(n, d)) * np.array(DEVIATIONS)[side][:, None]
    rows[:, 0] += np.array(MEANS)[side]
    return rows


@dataclass(frozen=True)
class Sample:
    """Rows to fit, and new rows to evaluate on."""

    x: np.ndarray
    fresh: np.ndarray


def problem(n: int, d: int) -> Sample:
    """Rows of the mixture."""
    return Sample(draw(n, d, 0), draw(FRESH, d, 1))


Judge = Callable[[np.ndarray], np.ndarray]


def ours(kind: type[KDE] | type[SOSREP], criterion: str) -> Callable[[Sample], Judge]:
    """Return the log density at the scale that a search chose."""
    frame = "scale" if criterion == "hyvarinen" else "auto"  # which has the second derivatives that the criterion needs
    return lambda p: kind(length_scale=Search(criterion=criterion), frame=frame).fit(p.x).score_samples


def one_scale(p: Sample) -> float:
    """Return Scott's rule for the geometric mean of the columns' standard deviations."""
    n, d = p.x.shape
    return float(np.exp(np.mean(np.log(p.x.std(axis=0))))) * n ** (-1.0 / (d + 4))


def alike(p: Sample) -> Judge:
    """Search with scikit-learn: one scale for all columns."""
    return KDE(length_scale=Search(criterion="likelihood", base=one_scale(p)), frame="scale").fit(p.x).score_samples


def rule(p: Sample) -> Judge:
    """Use Scott's rule for each column, without a search."""
    return KDE(frame="scale").fit(p.x).score_samples


def scikit_learn(**options: float) -> Callable[[Sample], Judge]:
    """The same likelihood, folds and grid; one scale for all columns, since it has no other."""

    def run(p: Sample) -> Judge:
        grid = {"bandwidth": one_scale(p) * np.array(DEFAULT_GRID)}
        folds = KFold(5, shuffle=True, random_state=0)
        return GridSearchCV(KernelDensity(**options), grid, cv=folds).fit(p.x).score_samples

    return run


def scipy_rule(p: Sample) -> Judge:
    """Use Scott's rule with the full covariance."""
    estimate = gaussian_kde(p.x.T)
    return lambda rows: estimate.logpdf(rows.T)


def improved_sheather_jones(p: Sample) -> Judge:
    """Use KDEpy's rule for one column, which solves for the scale."""
    import KDEpy

    estimate = KDEpy.FFTKDE(kernel="gaussian", bw="ISJ").fit(p.x[:, 0])
    estimate.evaluate()  # the scale is found at the first evaluation
    scale = estimate.bw
    return lambda rows: KernelDensity(bandwidth=scale).fit(p.x).score_samples(rows)


def divergence(p: Sample, judge: Judge) -> float:
    """Return the mean of log truth - log density over new rows: an estimate of the Kullback-Leibler divergence."""
    return float(np.mean(log_truth(p.fresh) - judge(p.fresh)))


PROGRAMS = {
    "isopleth KDE, likelihood": Program(ours(KDE, "likelihood")),
    "isopleth KDE, likelihood, one scale": Program(alike),
    "isopleth KDE, Hyvarinen": Program(ours(KDE, "hyvarinen")),
    "isopleth SOSREP, likelihood": Program(ours(SOSREP, "likelihood")),
    "isopleth SOSREP, Hyvarinen": Program(ours(SOSREP, "hyvarinen")),
    "isopleth KDE, Scott's rule (no search)": Program(rule),
    "scikit-learn GridSearchCV, likelihood": Program(scikit_learn()),
    "scikit-learn GridSearchCV, rtol=1e-4": Program(scikit_learn(rtol=1e-4)),
    "SciPy gaussian_kde, Scott's rule (no search)": Program(scipy_rule),
    "KDEpy improved Sheather-Jones (no search)": Program(improved_sheather_jones, needs="KDEpy", dims=(1,)),
}

COMPARISONS = [
    Comparison(
        "search",
        "Length scale of a mixture of two modes, 17 scales and 5 folds, n = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        divergence,
        "divergence from the truth",
        rows=(250, 500, 1000),
        columns=3,
        column_range=(1, 2, 4, 8),
        column_rows=500,
    ),
    Comparison(
        "search-line",
        "Length scale in one column, where there are rules that search nothing, n = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        divergence,
        "divergence from the truth",
        rows=(250, 500, 1000),
        columns=1,
    ),
]
