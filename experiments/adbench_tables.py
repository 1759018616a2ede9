"""ADBench's tables by the names that the papers use for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

SOURCE = "the folder adbench/datasets/Classical of https://github.com/Minqi824/ADBench"


def find_table(folder: Path, name: str) -> Path | None:
    """The file ``<number>_<name>.npz`` anywhere below `folder`, whatever the case of its letters."""
    files = (path for path in sorted(folder.rglob("*.npz")) if path.stem.partition("_")[2].lower() == name.lower())
    return next(files, None)


def missing(name: str, folder: Path) -> str:
    """The sentence that says what is absent and where it comes from."""
    return f"{name}: no file <number>_{name}.npz below {folder}; it comes from {SOURCE}."


def standardised(path: Path, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most `most` rows of a table, columns centred and divided by their standard deviations, constant columns left out."""
    with np.load(path) as file:
        X = file["X"].astype(float)
    if len(X) > most:
        X = X[rng.choice(len(X), size=most, replace=False)]
    spread = X.std(axis=0)
    return (X[:, spread > 0] - X[:, spread > 0].mean(axis=0)) / spread[spread > 0]


def typical_length(z: np.ndarray) -> float:
    """Median distance between rows over the root of the number of columns, at which SDO kernels are between 0 and 1."""
    apart = pdist(z)
    return float(np.median(apart[apart > 0])) / z.shape[1] ** 0.5
