"""Anomaly detection in tables with words and missing cells.

    python -m experiments.mixed_anomalies --data DIR [--seeds 20] [--gap-seeds 3] [--parts words reference gaps]

DIR holds a folder ``mixed`` with tables of the UCI repository, whose last column is a class, and one ``adbench`` with ADBench's
classical sets.

*words*: the rows of the ordinary class of nine tables, and a random 5 % of as many others, at least 3; all rows are scored
without labels. The other detectors get numbers filled with the mean, and words as indicators or as codes, all columns
standardised; a missing word is a word of its own.

*reference*: the same tables, fitted to a random half of the ordinary rows; the other half and the others are scored.

*gaps*: the tables of :mod:`experiments.adbench`, 30 % of all cells removed at random after the split, in training and test rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from experiments.adbench_boards import adbench, tables
from isopleth import AnomalyDetector

ORDINARY = {
    "credit_a": "-",
    "credit_g": "good",
    "colic": "no",
    "hypothyroid": "negative",
    "mushroom": "e",
    "heart_c": "<50",
    "anneal": "3",
    "car": "unacc",
    "labor": "good",
}
SHARE = 0.05  # anomalies, of as many ordinary rows
FEWEST = 3
REMOVED = 0.3
Scores = dict[str, np.ndarray]


def task(table: pd.DataFrame, ordinary: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows without their class, and labels (1: anomaly)."""
    classes = table.iloc[:, -1].astype(str).to_numpy()
    usual, others = np.flatnonzero(classes == ordinary), np.flatnonzero(classes != ordinary)
    count = min(len(others), max(FEWEST, round(SHARE * len(usual))))
    rows = np.append(usual, np.random.default_rng(seed).choice(others, size=count, replace=False))
    labels = np.append(np.zeros(len(usual)), np.ones(count))
    return table.iloc[rows, :-1].reset_index(drop=True), labels


def as_numbers(X: pd.DataFrame, one_hot: bool, fitted: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Return numbers for detectors that take nothing else, standardised by the rows of the fit."""
    parts = []
    for name in X.columns:
        column = X[name]
        if pd.api.types.is_numeric_dtype(column):
            parts.append(column.fillna(column.mean()).fillna(0.0).to_numpy(float)[:, None])
            continue
        words = column.astype(object).where(column.notna(), "missing").astype(str)
        codes = (
            pd.get_dummies(words).to_numpy(float) if one_hot else words.astype("category").cat.codes.to_numpy()[:, None]
        )
        parts.append(codes.astype(float))
    numbers = np.concatenate(parts, axis=1)
    return StandardScaler().fit(numbers[fitted]).transform(numbers)


def neighbours(Z: np.ndarray) -> np.ndarray:
    """Return mean distances to five other rows."""
    return NearestNeighbors(n_neighbors=5).fit(Z).kneighbors()[0].mean(axis=1)


def ecod() -> Callable[[np.ndarray], np.ndarray] | None:
    """Return PyOD's ECOD, if PyOD is installed."""
    try:
        from pyod.models.ecod import ECOD
    except ImportError as error:
        print(f"ECOD: {error}; not measured", file=sys.stderr)
        return None
    return lambda Z: ECOD().fit(Z).decision_scores_


def scored(X: pd.DataFrame, seed: int, ecod_of: Callable[[np.ndarray], np.ndarray] | None) -> Scores:
    """Return the scores of each detector, higher for anomalies."""
    hot, codes = as_numbers(X, one_hot=True), as_numbers(X, one_hot=False)
    found = {
        "isopleth": -AnomalyDetector(random_state=seed).fit(X).training_scores_,
        "isopleth one-hot": -AnomalyDetector(random_state=seed).fit(hot).training_scores_,
        "IForest one-hot": -IsolationForest(random_state=seed).fit(hot).score_samples(hot),
        "IForest codes": -IsolationForest(random_state=seed).fit(codes).score_samples(codes),
        "5-NN one-hot": neighbours(hot),
        "5-NN codes": neighbours(codes),
    }
    if ecod_of is not None:
        found["ECOD one-hot"] = ecod_of(hot)
    return found


def scored_by_reference(X: pd.DataFrame, ordinary: np.ndarray, seed: int) -> tuple[Scores, np.ndarray]:
    """Return the scores of the rows that are not in a random half of the ordinary ones, and which these rows are."""
    fitted = np.random.default_rng(seed).permutation(np.flatnonzero(ordinary))[: int(ordinary.sum()) // 2]
    asked = np.setdiff1d(np.arange(len(X)), fitted)
    hot, codes = as_numbers(X, True, fitted), as_numbers(X, False, fitted)
    found = {}
    for name, fast in (("isopleth", False), ("isopleth fast", True)):
        detector = AnomalyDetector(novelty=True, fast=fast, random_state=seed).fit(X.iloc[fitted])
        found[name] = -detector.score_samples(X.iloc[asked])
    for name, Z in (("one-hot", hot), ("codes", codes)):
        forest = IsolationForest(random_state=seed).fit(Z[fitted])
        found[f"IForest {name}"] = -forest.score_samples(Z[asked])
        index = NearestNeighbors(n_neighbors=5).fit(Z[fitted])
        found[f"5-NN {name}"] = index.kneighbors(Z[asked])[0].mean(axis=1)
    return found, asked


def words(data: Path, seeds: int, reference: bool = False) -> None:
    """Print the mean AUC of each detector on each of the nine tables."""
    other = None if reference else ecod()
    means: dict[str, list[float]] = defaultdict(list)
    for name, ordinary in ORDINARY.items():
        table = pd.read_csv(data / "mixed" / f"{name}.csv", keep_default_na=False, na_values=[""])
        auc = defaultdict(list)
        for seed in range(seeds):
            X, y = task(table, ordinary, seed)
            found, asked = (
                scored_by_reference(X, y == 0, seed) if reference else (scored(X, seed, other), np.arange(len(X)))
            )
            for method, scores in found.items():
                auc[method].append(100.0 * roc_auc_score(y[asked], scores))
        if not means:
            how = ", fitted to half of the ordinary rows" if reference else ""
            print(f"nine tables with words and gaps{how}, {seeds} seed{'s' * (seeds > 1)}, mean AUC")
            for place in (0, 1):
                print(f"{'':<14}" + "".join(f"{[*method.split(), ''][place]:>10}" for method in auc))
        for method, values in auc.items():
            means[method].append(float(np.mean(values)))
        print(f"{name:<14}" + "".join(f"{means[method][-1]:>10.1f}" for method in auc), flush=True)
    for title, part in (("mean", slice(None)), ("every other", slice(0, None, 2)), ("the others", slice(1, None, 2))):
        print(f"{title:<14}" + "".join(f"{np.mean(values[part]):>10.1f}" for values in means.values()))


def with_gaps(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a copy with cells removed at random."""
    return np.where(rng.random(X.shape) < REMOVED, np.nan, X)


def gaps(data: Path, seeds: int) -> None:
    """Print the mean AUC of each detector on ADBench's tables with missing cells."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    files = tables(data, "adbench")
    for path in files:
        auc = defaultdict(list)
        for seed in range(1, seeds + 1):
            board = adbench(path, "as they are", seed)
            rng = np.random.default_rng(seed)
            train, test = with_gaps(board.train, rng), with_gaps(board.test, rng)
            means = np.nan_to_num(np.nanmean(train, axis=0))
            ways = {
                "isopleth, complete": (AnomalyDetector(random_state=seed), board.train, board.test),
                "isopleth": (AnomalyDetector(random_state=seed), train, test),
                "isopleth, mean imputation": (
                    AnomalyDetector(random_state=seed),
                    np.where(np.isnan(train), means, train),
                    np.where(np.isnan(test), means, test),
                ),
                "IForest, complete": (IsolationForest(random_state=seed), board.train, board.test),
                "IForest": (IsolationForest(random_state=seed), train, test),
            }
            for name, (detector, fitted, asked) in ways.items():
                auc[name].append(100.0 * roc_auc_score(board.labels, -detector.fit(fitted).score_samples(asked)))
        for name, values in auc.items():
            found[name].append(values)
        print(f"{path.stem:<20}" + "".join(f"{np.mean(v):>8.1f}" for v in auc.values()), file=sys.stderr, flush=True)
    print(f"{len(files)} tables of ADBench, {100 * REMOVED:.0f} % of the cells removed, seeds 1 to {seeds}, mean AUC")
    print(f"{'':<28}{'all':>8}{'every other':>14}{'the others':>13}")
    for name, values in found.items():
        mean = np.mean(values, axis=1)
        print(f"{name:<28}{mean.mean():>8.1f}{mean[::2].mean():>14.1f}{mean[1::2].mean():>13.1f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gap-seeds", type=int, default=3)
    parts = ["words", "reference", "gaps"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if "words" in options.parts:
        words(options.data, options.seeds)
    if "reference" in options.parts:
        words(options.data, options.seeds, reference=True)
    if "gaps" in options.parts:
        gaps(options.data, options.gap_seeds)


if __name__ == "__main__":
    main()
