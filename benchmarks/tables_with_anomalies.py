"""Simulated tables whose anomalies are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHARE = 0.05
KINDS = ("scattered", "clustered", "local", "dependent", "copied")


@dataclass(frozen=True)
class Labelled:
    """Rows and labels (1: anomaly)."""

    X: np.ndarray
    y: np.ndarray


def table(n: int, d: int, kind: str, seed: int = 0) -> Labelled:
    """Draw correlated rows in three clusters, and a share of anomalies.

    "scattered": uniform in a box a tenth larger than the rows'. "clustered": one tight group elsewhere. "local": about the
    centre of a cluster, five times as wide. "dependent": ordinary values in each column, drawn from different rows. "copied":
    scattered ones, each there five times.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    few = max(1, int(SHARE * n))
    centres = 4.0 * rng.normal(size=(3, d))
    mixing = rng.normal(size=(3, d, d)) / np.sqrt(d)

    def ordinary(count: int) -> np.ndarray:
        cluster = rng.integers(3, size=count)
        return centres[cluster] + np.einsum("ij,ijk->ik", rng.normal(size=(count, d)), mixing[cluster])

    rows = ordinary(n - few)
    low, high = rows.min(axis=0), rows.max(axis=0)
    low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
    if kind == "clustered":
        odd = rng.uniform(low, high) + 0.3 * rng.normal(size=(few, d))
    elif kind == "local":
        cluster = rng.integers(3, size=few)
        noise = np.einsum("ij,ijk->ik", rng.normal(size=(few, d)), mixing[cluster])
        odd = centres[cluster] + 5.0**0.5 * noise
    elif kind == "dependent":
        odd = np.column_stack([rng.permutation(column)[:few] for column in rows.T])
    elif kind == "copied":
        odd = np.repeat(rng.uniform(low, high, size=(few // 5 + 1, d)), 5, axis=0)[:few]
    else:
        odd = rng.uniform(low, high, size=(few, d))
    order = rng.permutation(n)
    return Labelled(np.vstack([rows, odd])[order], np.repeat([0, 1], [n - few, few])[order])
