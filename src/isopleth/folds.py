"""Parting rows for held-out scores."""

from __future__ import annotations

import numpy as np

FOLDS = 5


def folds_of(n: int, seed: int, folds: int = FOLDS) -> np.ndarray:
    """Fold of each of `n` distinct rows, as even as can be."""
    return np.random.default_rng(seed).permutation(n) % max(1, min(folds, n))


def held_out_parts(n: int, cv: int | float, seed: int = 0) -> list[np.ndarray]:
    """Masks of the rows held out in turn: of `cv` folds that part `n` distinct rows, or of one share `cv` of them."""
    if cv >= 1:
        fold = folds_of(n, seed, int(cv))
        return [fold == k for k in range(fold.max() + 1)]
    count = min(max(1, round(cv * n)), n - 1)  # something is left on both sides
    return [np.random.default_rng(seed).permutation(n) < count]
