"""Real tables for studies of densities: their continuous columns, and halves for choosing and for reporting.

The half of a table follows from its name alone. Defaults of the library are chosen on the choosing half, and figures are reported
of the other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

# Least share of distinct values of a column that counts as continuous, and most columns of a table.
DISTINCT, MOST_COLUMNS = 0.9, 12

# Least number of distinct values of a column that gets noise, and most columns of such a table.
LEAST_VALUES, MOST_REPEATED = 10, 50

# Tables with fewer complete rows are left out.
LEAST_ROWS = 150

# Rows of a long table that are read: the first ones after a shuffle.
MOST_ROWS = 40_000


def is_reported(name: str) -> bool:
    """Tell whether a table belongs to the half whose figures are reported."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


@dataclass(frozen=True)
class RealTable:
    """Continuous columns of a real table, in random order of the rows.

    Parameters
    ----------
    name : str
        Folder and name of the file.
    X : array of shape (n, d)
        Rows.
    """

    name: str
    X: np.ndarray


def find_tables(data: Path) -> dict[str, Path]:
    """Return the files of the tables below a folder, by name."""
    patterns = ("adbench/*.npz", "oddbench/*.npz", "mixed/*.csv", "uci/*.tsv.gz")
    found = [path for pattern in patterns for path in sorted(data.glob(pattern))]
    return {f"{path.parent.name}/{path.name.partition('.')[0]}": path for path in found}


def read_table(name: str, path: Path) -> RealTable | None:
    """Return the continuous columns of a table; None if it has fewer than two, or few rows."""
    rng = np.random.default_rng(0)
    X = _numbers(path)
    if len(X) > MOST_ROWS:
        X = X[rng.choice(len(X), size=MOST_ROWS, replace=False)]
    kept: list[np.ndarray] = []
    for column in X.T:
        known = column[np.isfinite(column)]
        if len(known) < 0.9 * len(column) or len(np.unique(known)) < DISTINCT * len(known):
            continue
        if not any(_is_copy(column, other) for other in kept):
            kept.append(column)
    if len(kept) < 2:
        return None
    X = np.stack(kept[:MOST_COLUMNS], axis=1)
    X = np.unique(X[np.isfinite(X).all(axis=1)], axis=0)
    if len(X) < LEAST_ROWS:
        return None
    return RealTable(name, X[rng.permutation(len(X))])


def read_repeated(name: str, path: Path) -> RealTable | None:
    """Return up to 50 columns of a table of which values repeat, with uniform noise of the typical gap between values.

    Returns None if all columns are continuous, there are fewer than two, or few rows.
    """
    rng = np.random.default_rng(0)
    X = _numbers(path)
    if len(X) > MOST_ROWS:
        X = X[rng.choice(len(X), size=MOST_ROWS, replace=False)]
    X = X[:, np.isfinite(X).mean(axis=0) > 0.9]
    X = X[np.isfinite(X).all(axis=1)]
    kept: list[np.ndarray] = []
    noisy = False
    for column in X.T:
        values = np.unique(column)
        if len(values) < LEAST_VALUES or any(_is_copy(column, other) for other in kept):
            continue
        repeats = len(values) < DISTINCT * len(column)
        noisy |= repeats
        kept.append(column + repeats * np.median(np.diff(values)) * rng.uniform(-0.5, 0.5, size=len(column)))
    if len(kept) < 2 or not noisy or len(X) < LEAST_ROWS:
        return None
    X = np.stack(kept[:MOST_REPEATED], axis=1)
    return RealTable(name, X[rng.permutation(len(X))])


def _numbers(path: Path) -> np.ndarray:
    """Return the columns of numbers of a file."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            parts = [file["X"]] if "X" in file else [file["train"], file["test"]]
        return np.concatenate(parts).astype(float)
    frame = pd.read_csv(path, sep="\t" if path.suffix == ".gz" else ",")
    frame = frame.iloc[:, :-1]  # the class
    return frame.select_dtypes("number").to_numpy(dtype=float)


def _is_copy(x: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether a column is another one in other units."""
    both = np.isfinite(x) & np.isfinite(y)
    return bool(abs(np.corrcoef(x[both], y[both])[0, 1]) > 1.0 - 1e-9)
