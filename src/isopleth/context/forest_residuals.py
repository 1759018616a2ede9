"""Residuals of columns given the others where relations bend: by forests, each row by trees that have not seen it."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import f as f_law
from sklearn.ensemble import ExtraTreesRegressor

from isopleth.core.rows import columns_by_key, keys_by_rank

# Rows times squared columns beyond which forests take too long, and the fewest rows that show a bend.
_MOST, _FEWEST = 40_000, 50
# Parts of a column in which the mean residual is compared, and the p-value below which relations bend.
_PARTS, _BENT = 8, 0.01
_TREES, _LEAF, _SEED = 40, 2, 53
# Trees see multiples of this: their sums have no rounding errors then, which would choose between divisions that are alike.
_STEP = 2.0**-20


def forest_residuals(scores: np.ndarray, residuals: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """Return out-of-bag residuals of coordinates on those of other columns; None if relations do not bend or rows are too many.

    `scores` and linear `residuals` are of shape (n, p), and `columns` the numbers of the columns. Each row counts once. Neither
    the order of rows nor that of columns matters, and nothing depends on which rows are of which sample.
    """
    n, p = scores.shape
    if n < _FEWEST or n * p**2 > _MOST or not bend(scores, residuals, columns):
        return None
    order = np.argsort(keys_by_rank(scores), kind="stable")
    ranked, out = scores[order], np.empty((n, p))
    for j in range(p):
        others = np.flatnonzero(columns != columns[j])
        x = ranked[:, others[columns_by_key(ranked[:, others])]]
        out[order, j] = _left_by_forest(x, ranked[:, j])
    return out


def bend(scores: np.ndarray, residuals: np.ndarray, columns: np.ndarray) -> bool:
    """Tell whether linear residuals of a column differ in the mean between parts of another one, more than by chance."""
    n, p = scores.shape
    rank = np.argsort(np.argsort(scores, axis=0, kind="stable"), axis=0)
    least = 1.0
    centred = residuals - residuals.mean(axis=0)
    total = (centred**2).sum(axis=0)
    for k in range(p):
        part = rank[:, k] * _PARTS // n
        sums = np.stack([np.bincount(part, column, minlength=_PARTS) for column in centred.T])
        between = (sums**2 / np.bincount(part, minlength=_PARTS)).sum(axis=1)
        # Of what is explained in full, rounding errors are left.
        within = np.maximum(total - between, np.finfo(np.float64).eps * total + np.finfo(np.float64).tiny)
        ratio = between / (_PARTS - 1.0) / (within / (n - _PARTS))
        ratio[(columns == columns[k]) | (total <= 0.0)] = 0.0
        least = min(least, float(f_law.sf(ratio.max(), _PARTS - 1, n - _PARTS)))
    return least * p * (p - 1) < _BENT


def _left_by_forest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what a forest leaves of `y`, each row by the trees that were grown without it."""
    forest = ExtraTreesRegressor(
        _TREES, min_samples_leaf=_LEAF, bootstrap=True, oob_score=True, random_state=_SEED, n_jobs=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # a row may be in the bags of all trees: its residual is that of the mean
        expected = forest.fit(_in_steps(x), _in_steps(y)).oob_prediction_
    return np.asarray(y - np.where(np.isfinite(expected), expected, y.mean()))


def _in_steps(values: np.ndarray) -> np.ndarray:
    return np.rint(values / _STEP) * _STEP
