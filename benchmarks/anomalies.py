"""Anomaly detection: time, memory and area under the ROC curve, compared with PyOD's detectors with their defaults."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.comparison import Comparison, Program
from benchmarks.report import Section
from benchmarks.tables_with_anomalies import KINDS, Labelled, table
from isopleth import AnomalyDetector

PEERS = {"IForest": "iforest", "KNN": "knn", "LOF": "lof", "ECOD": "ecod", "HBOS": "hbos", "KDE": "kde"}


def problem(n: int, d: int) -> Labelled:
    """Draw a table with anomalies that no single column shows."""
    return table(n, d, "dependent")


def ours(t: Labelled) -> np.ndarray:
    """Fit and return the scores of the same rows; large for anomalies, as in PyOD."""
    return -AnomalyDetector(random_state=0).fit(t.X).training_scores_


def peer(name: str) -> Callable[[Labelled], np.ndarray]:
    """Return a PyOD detector with its defaults."""

    def run(t: Labelled) -> np.ndarray:
        kind = getattr(importlib.import_module(f"pyod.models.{PEERS[name]}"), name)
        detector = kind(random_state=0) if name == "IForest" else kind()
        return np.nan_to_num(detector.fit(t.X).decision_scores_, posinf=1e300)

    return run


def auc(t: Labelled, scores: np.ndarray) -> float:
    """Return the area under the ROC curve."""
    return float(roc_auc_score(t.y, scores))


PROGRAMS = {"isopleth AnomalyDetector": Program(ours)} | {
    f"PyOD {name}": Program(peer(name), needs="pyod") for name in PEERS
}

COMPARISONS = [
    Comparison(
        "anomalies",
        "Fit and scores of the same rows, 5 % anomalies, n = {n:,}, d = {d}",
        problem,
        PROGRAMS,
        auc,
        "AUC",
        rows=(1000, 2000, 4000, 8000),
        columns=10,
        column_range=(4, 8, 16, 32, 64),
        column_rows=2000,
        higher_is_better=True,
    )
]


def simulated(quick: bool) -> Iterator[tuple[str, list[Labelled]]]:
    """Return simulated tables by kind of anomaly."""
    n, seeds = (200, 1) if quick else (1000, 3)
    for kind in KINDS:
        yield kind, [table(n, 10, kind, seed) for seed in range(seeds)]


def files(data: Path, quick: bool) -> Iterator[tuple[str, list[Labelled]]]:
    """Return ADBench's tables in a folder, at most 2,000 rows of each, with columns scaled to the range 0 to 1."""
    for path in sorted(data.glob("*.npz"))[: 2 if quick else None]:
        with np.load(path) as file:
            X, y = file["X"].astype(float), file["y"].astype(int).ravel()
        chosen = np.random.default_rng(0).permutation(len(X))[: 200 if quick else 2000]
        X = X[chosen] - X[chosen].min(axis=0)
        yield path.stem, [Labelled(X / np.maximum(X.max(axis=0), 1e-300), y[chosen])]


def qualities(quick: bool, data: Path | None) -> list[Section]:
    """Measure the tables of areas under the ROC curve."""
    found = [_quality("AUC by kind of anomaly in simulated tables of 10 columns", simulated(quick))]
    if data is not None:
        title = "AUC on the tables of --data, at most 2,000 rows each, fitted to the rows that are judged"
        found.append(_quality(title, files(data, quick)))
    return found


def _quality(title: str, tables: Iterator[tuple[str, list[Labelled]]]) -> Section:
    there = {name: program for name, program in PROGRAMS.items() if importlib.util.find_spec(program.needs) is not None}
    names = {name: name.removeprefix("PyOD ").removesuffix(" AnomalyDetector") for name in there}
    rows, means = [], []
    for kind, repeats in tables:
        if any(len(np.unique(t.y)) < 2 for t in repeats):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mean = [float(np.mean([auc(t, program.run(t)) for t in repeats])) for program in there.values()]
        means.append(mean)
        rows.append([kind, *(f"{value:.3f}" for value in mean)])
    total = np.mean(means, axis=0)
    rows.append(["mean", *(f"{value:.3f}" for value in total)])
    return Section(title, ["", *names.values()], rows, _ahead(list(names.values()), np.round(means, 3)))


def _ahead(names: list[str], areas: np.ndarray) -> list[str]:
    """Return sentences about the detectors that are better than the first one, on tables and in the mean."""
    tables = (areas > areas[:, :1]).sum(axis=0)
    single = [f"{name} on {count}" for name, count in zip(names, tables, strict=True) if count]
    means = areas.mean(axis=0)
    mean = [name for name, area in zip(names, means, strict=True) if area > means[0]]
    out = [f"Ahead of {names[0]} on lines of this table, of {len(areas)}: {', '.join(single)}."] if single else []
    return out + ([f"Ahead of {names[0]} on the mean: {', '.join(mean)}."] if mean else [])
