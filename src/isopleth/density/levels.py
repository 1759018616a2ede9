"""Held-out scores and their quantiles, for thresholds that mean what they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isopleth.folds import folds_of


def cross_fitted(
    rows: np.ndarray, weights: np.ndarray, score: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Score of each distinct row under a fit to the other folds: `score(train_rows, train_weights, test_rows)`."""
    # Distinct rows are in lexical order, so the folds do not depend on how they came.
    fold = folds_of(len(rows), seed=0)
    out = np.empty(len(rows))
    for k in range(fold.max() + 1):
        test = fold == k
        out[test] = score(rows[~test], weights[~test], rows[test])
    return out


def weighted_quantile(values: np.ndarray, weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Smallest value whose cumulative share of the weight exceeds `q`."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    place = np.searchsorted(cumulative, q * (1 + 1e-12), side="right")
    return values[order][np.minimum(place, len(values) - 1)]
