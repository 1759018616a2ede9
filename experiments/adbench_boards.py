"""The two boards of anomaly tables, and the settings in which they are used.

ADBench's tables are files ``*.npz`` with keys X and y; rows beyond 10,000 are cut at random. OddBench's are files ``*.npz`` with
keys train (ordinary rows only), test and test_labels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

MAX_ROWS = 10_000
TIMES = 5  # copies of each anomaly, on average: draws with replacement
CLEAN = "clean reference"
SETTINGS = {
    "as they are": "the rows as they are, anomalies among them",
    "copies": "every anomaly five times, exact",
    "copies moved 1 %": "every anomaly five times, each moved by 1 % of a column's standard deviation",
    "copies moved 5 %": "every anomaly five times, each moved by 5 % of a column's standard deviation",
    "copies, all moved 1 %": "every anomaly five times, and every row moved by 1 % of a column's standard deviation",
    CLEAN: "fitted to ordinary rows only",
}
# Standard deviations by which rows are moved: of anomalies only, or of all rows. Where only anomalies are moved, the noise itself
# marks them in columns of few values.
MOVED = {
    "copies": (0.0, False),
    "copies moved 1 %": (0.01, False),
    "copies moved 5 %": (0.05, False),
    "copies, all moved 1 %": (0.01, True),
}


class Task(NamedTuple):
    """Rows to fit to, rows to score with their labels (1: anomaly); `test` is None where the rows of the fit are scored."""

    train: np.ndarray
    test: np.ndarray | None
    labels: np.ndarray


def with_copies(
    X: np.ndarray, y: np.ndarray, setting: str, deviation: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Anomalies replaced by TIMES as many draws with replacement, and rows moved at random as the setting says."""
    share, all_rows = MOVED[setting]
    anomalies = np.flatnonzero(y == 1)
    rows = np.concatenate([np.flatnonzero(y == 0), rng.choice(anomalies, size=TIMES * len(anomalies))])
    X, y = X[rows], y[rows]
    moved = (y == 1) | all_rows
    X[moved] += share * deviation * rng.normal(size=(int(moved.sum()), X.shape[1]))
    return X, y


def adbench(path: Path, setting: str, seed: int) -> Task:
    """A table of ADBench.

    A stratified 70/30 split, min-max scaling fitted on the training rows, copies made after the split. With a clean reference:
    half of the ordinary rows train, all others are scored, and columns are standardised by the training rows.
    """
    with np.load(path) as file:
        X, y = file["X"].astype(float), file["y"].astype(int).ravel()
    rng = np.random.default_rng(seed)
    if len(X) > MAX_ROWS:
        chosen = rng.choice(len(X), size=MAX_ROWS, replace=False)
        X, y = X[chosen], y[chosen]
    if setting == CLEAN:
        ordinary = rng.permutation(np.flatnonzero(y == 0))
        half = len(ordinary) // 2
        tested = np.concatenate([ordinary[half:], np.flatnonzero(y == 1)])
        scaler = StandardScaler().fit(X[ordinary[:half]])
        return Task(scaler.transform(X[ordinary[:half]]), scaler.transform(X[tested]), y[tested])
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    if setting in MOVED:
        deviation = train.std(axis=0)
        train, y_train = with_copies(train, y_train, setting, deviation, rng)
        test, y_test = with_copies(test, y_test, setting, deviation, rng)
    scaler = MinMaxScaler().fit(train)
    return Task(scaler.transform(train), scaler.transform(test), y_test)


def oddbench(path: Path, setting: str, seed: int) -> Task:
    """A table of OddBench, standardised: fitted to the test rows and scoring them, or fitted to the ordinary training rows."""
    with np.load(path) as file:
        train, test = file["train"].astype(float), file["test"].astype(float)
        y = file["test_labels"].astype(int).ravel()
    if setting == CLEAN:
        scaler = StandardScaler().fit(train)
        return Task(scaler.transform(train), scaler.transform(test), y)
    if setting in MOVED:
        test, y = with_copies(test, y, setting, test.std(axis=0), np.random.default_rng(seed))
    return Task(StandardScaler().fit_transform(test), None, y)


BOARDS: dict[str, Callable[[Path, str, int], Task]] = {"adbench": adbench, "oddbench": oddbench}


def tables(data: Path, board: str) -> list[Path]:
    """Files of a board, in the order of their names; none where the folder is absent."""
    return sorted((data / board).glob("*.npz"))
