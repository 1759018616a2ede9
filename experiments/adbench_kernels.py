"""Minus the log density as a score of anomalies: SOSREP and the kernel density estimate, kernel by kernel.

Every density uses one length scale for all columns, by one of these rules:

- fixed: a quarter of the median distance between rows;
- likelihood: the largest mean held-out log density on a grid of multiples of the median distance;
- score matching: the smallest held-out Hyvarinen loss on the same grid, as in the paper on SOSREP. It is infinite where the root
  changes its sign, so it is not used with the SDO kernel.

The scale is chosen with at most SEARCH_ROWS training rows, and the density fitted to all of them. SDO kernels of d columns
decrease over distances that are larger by the root of d, so their scales are divided by it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from sklearn.model_selection import KFold

from experiments.adbench_boards import Task
from isopleth import KDE, SOSREP, Search
from isopleth.core.rows import merge_rows
from isopleth.core.scales import median

FRACTION = 1 / 4
GRID = tuple(2.0**k for k in range(-6, 3))
SEARCH_ROWS = 1500
FOLDS = 5
ESTIMATORS: dict[str, type[KDE | SOSREP]] = {"SOSREP": SOSREP, "KDE": KDE}
CRITERIA = {"fixed": None, "likelihood": "likelihood", "score matching": "hyvarinen"}


def median_distance(X: np.ndarray, kernel: str) -> float:
    """Median distance between distinct rows, for the SDO kernel over the root of the number of columns."""
    distance = float(median(*merge_rows(X, np.ones(len(X)))[:2])[0])
    return distance / X.shape[1] ** 0.5 if kernel == "sdo" else distance


def length_scale(X: np.ndarray, estimator: str, kernel: str, rule: str, seed: int) -> float:
    """Return the length scale that a rule chooses."""
    base = median_distance(X, kernel)
    criterion = CRITERIA[rule]
    if criterion is None:
        return FRACTION * base
    some = np.random.default_rng(seed).permutation(len(X))[:SEARCH_ROWS]
    search = Search(criterion, grid=GRID, base=base, cv=0.3)
    chosen = ESTIMATORS[estimator](kernel=kernel, length_scale=search, frame="scale").fit(X[some])
    return base * float(chosen.search_path_.best_factor)


def density_score(estimator: str, kernel: str, rule: str) -> Callable[[Task, bool, int], np.ndarray]:
    """Score by a density; rows of the fit itself are scored by fits to the other folds."""

    def run(task: Task, clean: bool, seed: int) -> np.ndarray:
        scale = length_scale(task.train, estimator, kernel, rule, seed)
        density = ESTIMATORS[estimator](kernel=kernel, length_scale=scale, frame="scale")
        if task.test is not None:
            return scores(density.fit(task.train), task.test)
        out = np.empty(len(task.train))
        for others, fold in KFold(FOLDS, shuffle=True, random_state=seed).split(task.train):
            out[fold] = scores(density.fit(task.train[others]), task.train[fold])
        return out

    return run


def scores(density: KDE | SOSREP, X: np.ndarray) -> np.ndarray:
    """Minus the log density; finite, also where the density is zero."""
    return np.nan_to_num(-density.score_samples(X), posinf=1e300, neginf=-1e300)


def combinations() -> dict[str, Callable[[Task, bool, int], np.ndarray]]:
    """Every estimator with every kernel that it takes and every rule, by name."""
    found = {}
    for estimator, kernel, rule in product(ESTIMATORS, ("gaussian", "laplacian", "sdo"), CRITERIA):
        if kernel == "sdo" and (estimator == "KDE" or rule == "score matching"):
            continue  # SDO kernels have negative values
        if estimator == "KDE" and rule == "score matching":
            continue
        found[f"{estimator} {kernel}, {rule}"] = density_score(estimator, kernel, rule)
    return found


KERNELS = combinations()
