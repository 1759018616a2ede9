"""Checks at the door of every estimator: one clear sentence for what cannot be used, a warning for what is doubtful."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from isopleth.errors import InputError


class DataWarning(UserWarning):
    """The data can be used, but something about them should be known."""


def column_names(estimator: BaseEstimator) -> list[str]:
    """Names of the columns at fit, in quotes, or their numbers."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"column {j}" for j in range(estimator.n_features_in_)]
    return [repr(str(name)) for name in names]


def _listed(parts: list[str], most: int = 8) -> str:
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def _refuse_text(X: Any, error: ValueError) -> None:
    """Name the first column of `X` that cannot be read as numbers."""
    names = getattr(X, "columns", None)
    table = X if names is not None else np.asarray(X, dtype=object)
    if names is None and table.ndim != 2:
        return
    for j in range(table.shape[1]):
        column = np.asarray(table[names[j]] if names is not None else table[:, j], dtype=object)
        for i, cell in enumerate(column):
            try:
                float(cell)
            except (TypeError, ValueError):
                name = f"column {names[j]!r}" if names is not None else f"column {j}"
                raise InputError(
                    f"X has text in {name}: row {i} holds {cell!r} where a number was expected; drop or encode the column."
                ) from error


def _refuse_not_finite(estimator: BaseEstimator, X: np.ndarray) -> None:
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    counts = bad.sum(axis=0)
    names = column_names(estimator)
    parts = [f"{names[j]} ({counts[j]} row{'s' if counts[j] > 1 else ''})" for j in np.flatnonzero(counts)]
    kinds = " and ".join(k for k, found in (("NaN", np.isnan(X).any()), ("inf", np.isinf(X).any())) if found)
    raise InputError(f"X contains {kinds} in {_listed(parts)}; drop those rows or fill them first.")


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool, min_samples: int = 1) -> np.ndarray:
    """Rows as a float64 array, names and number of columns set on (`reset`) or held against `estimator`.

    Raises
    ------
    InputError
        For text and for values that are not finite, with the columns and how many rows.
    ValueError, TypeError
        scikit-learn's own, for empty, sparse or complex input and for columns other than at fit.
    """
    if issparse(X):
        raise TypeError(
            "X is a sparse matrix, which kernels of distances cannot use; pass X.toarray() if it fits in memory."
        )
    if getattr(X, "dtype", None) == np.float16:
        warnings.warn("X is float16, which holds three digits only; computing in float64.", DataWarning, stacklevel=3)
    try:
        checked = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=min_samples
        )
    except ValueError as error:
        if "could not convert" in str(error):
            _refuse_text(X, error)
        raise
    _refuse_not_finite(estimator, checked)
    return checked


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights as float64, ones when None.

    Raises
    ------
    InputError
        If there are not `n`, or they are not finite, negative or all zero.
    """
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, numbers.Number):
        return np.full(n, float(sample_weight))  # type: ignore[arg-type]
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.shape != (n,):
        raise InputError(f"sample_weight has shape {w.shape}; expected one weight a row, ({n},).")
    if not np.isfinite(w).all():
        raise InputError(
            f"sample_weight has {np.sum(~np.isfinite(w))} values that are not finite; expected numbers >= 0."
        )
    if (w < 0).any():
        raise InputError(
            f"sample_weight is negative in {np.sum(w < 0)} rows, first in row {np.argmax(w < 0)}; expected >= 0."
        )
    if not (w > 0).any():
        raise InputError("sample_weight is zero in every row; at least two rows that differ need a positive weight.")
    return w


def merge_rows(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows of positive weight in lexical order, their summed weights, and the place of each row of `X` (-1: none)."""
    positive = w > 0
    kept = X[positive] + 0.0  # -0.0 is 0.0
    if kept.shape[1] == 1:
        rows, inverse = np.unique(kept, return_inverse=True)
        rows = rows[:, None]
    else:
        rows, inverse = _unique_rows(kept)
    place = np.full(len(X), -1)
    place[positive] = inverse.ravel()
    return rows, np.bincount(inverse.ravel(), weights=w[positive], minlength=len(rows)), place


def _unique_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """np.unique over rows, without its slow comparison of structured rows: one stable sort a column."""
    order = np.lexsort(X.T[::-1])
    ordered = X[order]
    starts = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    inverse = np.empty(len(X), dtype=np.intp)
    inverse[order] = np.cumsum(starts) - 1
    return ordered[starts], inverse


def varying_columns(estimator: BaseEstimator, X: np.ndarray) -> np.ndarray:
    """Mask of the columns that are not constant, with a warning that names those that are.

    Raises
    ------
    InputError
        If no column varies: all rows are equal.
    """
    keep = X.min(axis=0) < X.max(axis=0)
    if not keep.any():
        raise InputError(
            f"all rows of X are equal, so there is no density to fit (n_samples = 1 once merged); expected at least two rows "
            f"that differ in one of {len(keep)} columns."
        )
    if not keep.all():
        names = column_names(estimator)
        constant = _listed([names[j] for j in np.flatnonzero(~keep)])
        warnings.warn(f"constant columns are dropped: {constant}.", DataWarning, stacklevel=3)
    return keep


def warn_few_rows(n: int, dim: int) -> None:
    """Warn where there are fewer distinct rows than columns."""
    if n < dim:
        warnings.warn(
            f"there are fewer distinct rows ({n}) than columns ({dim}): the density says little beyond nearness to these rows.",
            DataWarning,
            stacklevel=3,
        )
