"""Checks at the door of every estimator: one clear sentence for what cannot be used, a warning for what is doubtful."""

from __future__ import annotations

import ast
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
    """What messages call the columns: their names at fit, in quotes, or their numbers."""
    return estimator._column_labels


def plain_names(estimator: BaseEstimator) -> list[str]:
    """What a person calls the columns at fit: their names, or "column 0" and so on where they had none."""
    given = getattr(estimator, "feature_names_in_", None)
    if given is not None:
        return [str(name) for name in given]
    # Messages quote the names of a frame, which scikit-learn does not keep where they are numbers.
    return [name if name.startswith("column ") else ast.literal_eval(name) for name in column_names(estimator)]


def _names(X: Any) -> list[Any] | None:
    """Names of the columns of a frame, whatever it is called there; None for what is no frame."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None else list(names)


def _listed(parts: list[str], most: int = 8) -> str:
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def _columns(X: Any) -> list[tuple[str, Any]]:
    """Name and content of the columns of a frame or of a two-dimensional array; empty for anything else."""
    names = _names(X)
    if names is not None:
        return [(f"column {str(name)!r}", X[name]) for name in names]
    table = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return [(f"column {j}", table[:, j]) for j in range(table.shape[1])] if table.ndim == 2 else []


def _refuse_names(X: Any) -> None:
    """Refuse frames whose columns cannot be told apart, or that have none."""
    names = _names(X)
    if names is None:
        if isinstance(X, np.ndarray) and X.dtype.names is not None:
            raise InputError("X is a structured array; pass a plain array of numbers or a data frame.")
        return
    if not names:
        raise InputError("X has no columns; expected at least one column of numbers.")
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"X has several columns named {_listed([repr(name) for name in twice])}; give each a name of its own."
        )


_TIMES = ("date", "time", "duration", "period", "interval")


def _refuse_kinds(X: Any) -> None:
    """Refuse whole columns and tables of a kind that would be read as numbers which they are not."""
    if issparse(X):
        raise TypeError(
            "X is a sparse matrix, which kernels of distances cannot use; pass X.toarray() if it fits in memory."
        )
    if np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).any():
        raise InputError(f"X has {np.ma.getmaskarray(X).sum()} masked cells; fill them or drop their rows first.")
    if hasattr(X, "collect") and hasattr(X, "lazy"):
        raise InputError("X is a lazy frame, which holds no rows yet; pass X.collect().")
    if _names(X) is None and not isinstance(X, np.ndarray):
        return
    for name, column in _columns(X)[: 1 if isinstance(X, np.ndarray) else None]:  # an array is of one kind
        kind = str(getattr(column, "dtype", "")).lower()
        if kind.startswith("complex"):
            raise InputError(f"Complex data not supported: X has them in {name}; pass real and imaginary parts.")
        if kind.startswith(_TIMES):
            raise InputError(
                f"X has dates or times in {name}; turn them into numbers of a unit that you choose, or drop it."
            )
        if kind.startswith("float16"):
            warnings.warn(f"X has float16 in {name}, which holds three digits only.", DataWarning, stacklevel=4)
            return


def _refuse_text(X: Any, error: Exception) -> None:
    """Name the first cell of `X` that cannot be read as a number; cells that are containers are left to scikit-learn."""
    for name, column in _columns(X):
        for i, cell in enumerate(np.asarray(column, dtype=object)):
            if isinstance(cell, (dict, list, set, tuple, np.ndarray)):
                return
            try:
                float(cell)
            except (TypeError, ValueError, OverflowError):
                shown = repr(cell) if len(repr(cell)) < 40 else f"{repr(cell)[:36]}..."
                raise InputError(
                    f"X has something other than numbers in {name}: row {i} holds {shown}; drop or encode the column."
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
        For text, dates, masked cells and values that are not finite, with the column or how many rows.
    ValueError, TypeError
        For empty or sparse input and for columns other than at fit.
    """
    _refuse_kinds(X)
    _refuse_names(X)
    try:
        checked = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=min_samples
        )
    except (ValueError, TypeError, OverflowError) as error:
        if any(words in str(error) for words in ("could not convert", "float()", "must be real", "too large")):
            _refuse_text(X, error)
        raise
    if reset:
        names = _names(X)
        labels = range(checked.shape[1]) if names is None else names
        estimator._column_labels = [f"column {j}" if names is None else repr(str(j)) for j in labels]
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
    try:
        w = np.asarray(sample_weight)
        w = w.astype(np.float64, casting="unsafe" if w.dtype == object else "same_kind")
    except (TypeError, ValueError) as error:
        raise InputError(
            "sample_weight holds something other than real numbers; expected one number >= 0 a row."
        ) from error
    if w.ndim == 0:
        w = np.full(n, w)
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
    if w.max() / n > 1e300 or w[w > 0].min() / w.max() < 1e-290:
        raise InputError(
            "sample_weight spans more than double precision holds; expected weights within a factor of 1e290."
        )
    return w


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
            f"all rows of X are equal, those of weight 0 left out, so there is no density to fit (n_samples = 1 once merged); "
            f"expected at least two rows that differ in one of {len(keep)} columns."
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
