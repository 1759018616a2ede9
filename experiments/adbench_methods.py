"""Methods that the boards compare.

This library's detector and its densities, PyOD's detectors with their defaults, and neighbours' distances.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from experiments.adbench_boards import Task
from experiments.adbench_kernels import KERNELS
from isopleth import AnomalyDetector

Method = Callable[[Task, bool, int], np.ndarray]

PYOD = {
    "IForest": "iforest",
    "KNN": "knn",
    "LOF": "lof",
    "HBOS": "hbos",
    "ECOD": "ecod",
    "COPOD": "copod",
    "MCD": "mcd",
    "GMM": "gmm",
    "PCA": "pca",
    "CBLOF": "cblof",
    "INNE": "inne",
    "OCSVM": "ocsvm",
    "LODA": "loda",
    "KDE": "kde",
}
NEIGHBOURS = 5
CLUSTERS = range(8, 17)


def isopleth(task: Task, clean: bool, seed: int) -> np.ndarray:
    """The detector with its defaults; with a clean reference, ``novelty=True``."""
    detector = AnomalyDetector(novelty=clean, random_state=seed).fit(task.train)
    return -(detector.training_scores_ if task.test is None else detector.score_samples(task.test))


def isopleth_rule_of_anomalies(task: Task, clean: bool, seed: int) -> np.ndarray:
    """The detector for tables with anomalies, also where the reference is clean."""
    return isopleth(task, False, seed)


def neighbour_distances(power: int) -> Method:
    """Mean distance to 5 neighbours, to a power; with power 2 it is the non-parametric DTE."""

    def run(task: Task, clean: bool, seed: int) -> np.ndarray:
        index = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(task.train) - 1)).fit(task.train)
        distances, _ = index.kneighbors(task.test)  # of the training rows themselves where this is None
        return (distances**power).mean(axis=1)

    return run


def with_clusters(make: Callable[..., Any], X: np.ndarray) -> Any:
    """CBLOF with its default of 8 clusters; with one more where it cannot divide them into large and small ones."""
    for clusters in CLUSTERS:
        try:
            return make(n_clusters=clusters).fit(X)
        except ValueError as error:
            if "cluster separation" not in str(error):
                raise
    raise ValueError(f"no division into large and small clusters with {CLUSTERS[0]} to {CLUSTERS[-1]} clusters")


def pyod(name: str) -> Method:
    """A detector of PyOD with its defaults.

    Raises
    ------
    ImportError
        If PyOD, or what the detector needs of others, is not installed.
    """
    kind = getattr(importlib.import_module(f"pyod.models.{PYOD[name]}"), name)
    seeded = "random_state" in inspect.signature(kind).parameters

    def run(task: Task, clean: bool, seed: int) -> np.ndarray:
        make = partial(kind, random_state=seed) if seeded else kind
        detector = with_clusters(make, task.train) if name == "CBLOF" else make().fit(task.train)
        scores = detector.decision_scores_ if task.test is None else detector.decision_function(task.test)
        return np.nan_to_num(np.asarray(scores, dtype=float), posinf=1e300, neginf=-1e300)

    return run


OURS = "isopleth"
OWN: dict[str, Method] = {
    OURS: isopleth,
    "isopleth, rule of anomalies": isopleth_rule_of_anomalies,
    "5-NN": neighbour_distances(1),
    "DTE-NP": neighbour_distances(2),
}
DETECTORS = [*OWN, *PYOD]
NAMES = [*DETECTORS, *KERNELS]


def method(name: str) -> Method:
    """The method of a name, which :data:`NAMES` lists."""
    own = OWN | KERNELS
    return own[name] if name in own else pyod(name)
