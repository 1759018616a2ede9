"""Methods that the boards compare, each defined once.

This library's detector and its densities, neighbours' distances, the detectors of PyOD, ADERH's and two of DeepOD with their
defaults, and functions in files of the user.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from experiments.adbench_boards import Task
from experiments.adbench_kernels import KERNELS
from isopleth import AnomalyDetector

Scoring = Callable[[Task, bool, int], np.ndarray]


class Method(NamedTuple):
    """Scores of a task, given whether the reference is clean and a seed; higher for less likely rows."""

    run: Scoring
    random: bool = True  # whether the scores depend on the seed


# Class by name: its module, and parameters that are not those of its class.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "IForest": ("pyod.models.iforest", {}),
    "KNN": ("pyod.models.knn", {}),
    "LOF": ("pyod.models.lof", {}),
    "HBOS": ("pyod.models.hbos", {}),
    "ECOD": ("pyod.models.ecod", {}),
    "COPOD": ("pyod.models.copod", {}),
    "MCD": ("pyod.models.mcd", {}),
    "GMM": ("pyod.models.gmm", {}),
    "PCA": ("pyod.models.pca", {}),
    "CBLOF": ("pyod.models.cblof", {}),
    "INNE": ("pyod.models.inne", {}),
    "OCSVM": ("pyod.models.ocsvm", {}),
    "LODA": ("pyod.models.loda", {}),
    "KDE": ("pyod.models.kde", {}),
    "ADERH": ("aderh", {}),
    # The defaults ask for a GPU and print.
    "ICL": ("deepod.models.tabular", {"device": "cpu", "verbose": 0}),
    "SLAD": ("deepod.models.tabular", {"device": "cpu", "verbose": 0}),
}
SLOW = ("ICL", "SLAD")  # a minute a table; run when asked for
NEIGHBOURS = 5
CLUSTERS = range(8, 17)


def isopleth(task: Task, clean: bool, seed: int) -> np.ndarray:
    """The detector with its defaults; with a clean reference, ``novelty=True``."""
    return ours(AnomalyDetector(novelty=clean, random_state=seed), task)


def fast(task: Task, clean: bool, seed: int) -> np.ndarray:
    """The detector without conditional laws, which are part of the rule for clean references only."""
    return ours(AnomalyDetector(novelty=clean, fast=clean, random_state=seed), task)


def isopleth_rule_of_anomalies(task: Task, clean: bool, seed: int) -> np.ndarray:
    """The detector for tables with anomalies, also where the reference is clean."""
    return isopleth(task, False, seed)


def ours(detector: AnomalyDetector, task: Task) -> np.ndarray:
    """Minus the scores of the rows that are judged."""
    detector.fit(task.train)
    return -(detector.training_scores_ if task.test is None else detector.score_samples(task.test))


def neighbour_distances(power: int) -> Method:
    """Mean distance to 5 neighbours, to a power; with power 2 it is the non-parametric DTE."""

    def run(task: Task, clean: bool, seed: int) -> np.ndarray:
        index = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(task.train) - 1)).fit(task.train)
        distances, _ = index.kneighbors(task.test)  # of the training rows themselves where this is None
        return (distances**power).mean(axis=1)

    return Method(run, random=False)


def with_clusters(make: Callable[..., Any], X: np.ndarray) -> Any:
    """CBLOF with its default of 8 clusters; with one more where it cannot divide them into large and small ones."""
    for clusters in CLUSTERS:
        try:
            return make(n_clusters=clusters).fit(X)
        except ValueError as error:
            if "cluster separation" not in str(error):
                raise
    raise ValueError(f"no division into large and small clusters with {CLUSTERS[0]} to {CLUSTERS[-1]} clusters")


def of_others(name: str) -> Method:
    """A detector of another package with its defaults.

    Raises
    ------
    ImportError
        If the package, or what the detector needs of others, is not installed.
    """
    module, parameters = OTHERS[name]
    kind = getattr(importlib.import_module(module), name)
    random = "random_state" in inspect.signature(kind).parameters

    def run(task: Task, clean: bool, seed: int) -> np.ndarray:
        make = partial(kind, **parameters, **({"random_state": seed} if random else {}))
        detector = with_clusters(make, task.train) if name == "CBLOF" else make()
        if name != "CBLOF":
            detector.fit(task.train)
        scores = detector.decision_scores_ if task.test is None else detector.decision_function(task.test)
        return np.clip(np.asarray(scores, dtype=float), -1e300, 1e300)

    return Method(run, random)


def of_file(path: Path, function: str) -> Method:
    """A function of training rows, of the rows that are judged and of a seed; these are one array if the fit's rows are judged.

    Raises
    ------
    ImportError
        If there is no such file or function, or the file imports what is not installed.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise ImportError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        raise ImportError(f"{path} has no function {function}")
    scores = getattr(module, function)
    return Method(lambda task, clean, seed: scores(task.train, task.train if task.test is None else task.test, seed))


OURS = "isopleth"
FAST = f"{OURS}, fast"
OWN: dict[str, Method] = {
    OURS: Method(isopleth),
    FAST: Method(fast),
    "isopleth, rule of anomalies": Method(isopleth_rule_of_anomalies),
    "5-NN": neighbour_distances(1),
    "DTE-NP": neighbour_distances(2),
}
DETECTORS = [*OWN, *(name for name in OTHERS if name not in SLOW)]
NAMES = [*DETECTORS, *KERNELS]


def method(name: str) -> tuple[str, Method]:
    """The name and the method of a name that is listed here, or of ``FILE.py:FUNCTION``.

    Raises
    ------
    ImportError
        If there is none, or something that it needs is not installed.
    """
    own = OWN | {name: Method(run) for name, run in KERNELS.items()}
    if name in own:
        return name, own[name]
    if name in OTHERS:
        return name, of_others(name)
    file, _, function = name.rpartition(":")
    if not file.endswith(".py"):
        raise ImportError(f"expected FILE.py:FUNCTION or one of {', '.join([*own, *OTHERS])}")
    return function, of_file(Path(file), function)
