"""Anomaly detection on ADBench's tables, beside PyOD's detectors, on the same splits in one process.

    python -m experiments.adbench --data DIR [--seeds 1 2 3] [--copies 5] [--rows N] [--bootstrap]

DIR holds ADBench's ``*.npz`` files (keys X and y). Protocol: rows beyond 10,000 cut at random, a stratified 70/30 split, min-max
scaling fitted on the training rows, AUC of the test rows. ``--copies 5`` replaces the anomalies, in train and test apart, by five
times as many draws with replacement; ``--rows`` cuts the training rows; ``--bootstrap`` repeats ADBench's own habit of filling
tables of fewer than 1,000 rows by draws with replacement before the split, which leaks copies into the test rows.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from isopleth import AnomalyDetector

PEERS = {
    "IForest": "iforest",
    "KNN": "knn",
    "HBOS": "hbos",
    "ECOD": "ecod",
    "COPOD": "copod",
    "PCA": "pca",
    "LOF": "lof",
}
MAX_ROWS = 10_000


def with_copies(X: np.ndarray, y: np.ndarray, times: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Anomalies replaced by `times` as many draws with replacement."""
    anomalies = np.flatnonzero(y == 1)
    drawn = rng.choice(anomalies, size=len(anomalies) * times)
    rows = np.concatenate([np.flatnonzero(y == 0), drawn])
    return X[rows], y[rows]


def split(path: Path, seed: int, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, test rows and labels of the test rows."""
    with np.load(path) as file:
        X, y = file["X"].astype(float), file["y"].astype(int).ravel()
    rng = np.random.default_rng(seed)
    if options.bootstrap and len(X) < 1000:
        chosen = rng.choice(len(X), size=1000)
        X, y = X[chosen], y[chosen]
    if len(X) > MAX_ROWS:
        chosen = rng.choice(len(X), size=MAX_ROWS, replace=False)
        X, y = X[chosen], y[chosen]
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    if options.copies > 1:
        train, y_train = with_copies(train, y_train, options.copies, rng)
        test, y_test = with_copies(test, y_test, options.copies, rng)
    if options.rows:
        chosen = rng.choice(len(train), size=min(options.rows, len(train)), replace=False)
        train = train[chosen]
    scaler = MinMaxScaler().fit(train)
    return scaler.transform(train), scaler.transform(test), y_test


def ours(train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """The default detector."""
    return -AnomalyDetector(random_state=seed).fit(train).score_samples(test)


def peer(module: str, name: str) -> Callable[[np.ndarray, np.ndarray, int], np.ndarray]:
    """A PyOD detector with its defaults."""
    kind = getattr(importlib.import_module(f"pyod.models.{module}"), name)

    def run(train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
        detector = kind(random_state=seed) if name == "IForest" else kind()
        return np.nan_to_num(detector.fit(train).decision_function(test), posinf=1e300)

    return run


def detectors(names: list[str]) -> Iterator[tuple[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]]]:
    """Ours and the peers that are installed."""
    yield "isopleth", ours
    for name in names:
        try:
            yield name, peer(PEERS[name], name)
        except ImportError:
            print(f"{name}: pyod is not installed, not measured", file=sys.stderr)


def paired(table: np.ndarray, names: list[str], rows: np.ndarray, label: str) -> None:
    """Mean AUC, and our paired difference of AUC and of rank to each peer with its standard error over sets."""
    part = table[rows]
    rank = (
        (part[:, None, :] > part[:, :, None]).sum(axis=2) + (part[:, None, :] == part[:, :, None]).sum(axis=2) / 2 + 0.5
    )
    n = len(rows)
    print(f"\n{label} ({n} sets): mean AUC {100 * part[:, 0].mean():.1f}, mean rank {rank[:, 0].mean():.2f}")
    for j, name in enumerate(names[1:], 1):
        auc, place = 100 * (part[:, 0] - part[:, j]), rank[:, 0] - rank[:, j]
        print(
            f"  v {name:<8} mean AUC {100 * part[:, j].mean():.1f}: AUC {auc.mean():+.1f} (se {auc.std(ddof=1) / n**0.5:.1f}), "
            f"rank {place.mean():+.2f} (se {place.std(ddof=1) / n**0.5:.2f})"
        )


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--bootstrap", action="store_true")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=["IForest", "KNN", "HBOS", "ECOD", "COPOD"])
    return parser.parse_args()


def main() -> None:
    """Print the table of AUC and the paired differences."""
    options = parse()
    files = sorted(options.data.glob("*.npz"))
    if not files:
        sys.exit(f"{options.data} holds no .npz files; ADBench's classical sets are expected there.")
    chosen = dict(detectors(options.peers))
    names = list(chosen)
    seconds: dict[str, float] = dict.fromkeys(names, 0.0)
    auc = np.zeros((len(files), len(names)))
    print(f"{'':<22}" + "".join(f"{name:>10}" for name in names))
    for i, path in enumerate(files):
        auc[i], spent = one_set(path, chosen, options)
        for name in names:
            seconds[name] += spent[name]
        print(f"{path.stem:<22}" + "".join(f"{100 * a:>10.1f}" for a in auc[i]), flush=True)
    index = np.arange(len(files))
    paired(auc, names, index, "all")
    paired(auc, names, index[::2], "half A (even places in the list)")
    paired(auc, names, index[1::2], "half B (odd places)")
    print("\nseconds: " + ", ".join(f"{name} {spent:.0f}" for name, spent in seconds.items()))


def one_set(path: Path, chosen: dict[str, Any], options: argparse.Namespace) -> tuple[np.ndarray, dict[str, float]]:
    """Mean AUC over the seeds of each detector, and the seconds each took."""
    spent = dict.fromkeys(chosen, 0.0)
    auc = np.zeros((len(options.seeds), len(chosen)))
    for k, seed in enumerate(options.seeds):
        train, test, y = split(path, seed, options)
        for j, (name, run) in enumerate(chosen.items()):
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                auc[k, j] = roc_auc_score(y, run(train, test, seed))
            spent[name] += time.perf_counter() - start
    return auc.mean(axis=0), spent


if __name__ == "__main__":
    main()
