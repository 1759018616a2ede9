"""Parting rows for held-out scores."""

from __future__ import annotations

import numpy as np

FOLDS = 5


def folds_of(n: int, seed: int) -> np.ndarray:
    """Fold of each of `n` distinct rows, as even as can be."""
    return np.random.default_rng(seed).permutation(n) % max(1, min(FOLDS, n))
