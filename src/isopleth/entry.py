"""Checks at the door of every estimator: one clear sentence for what cannot be used, a warning for what is doubtful."""

from __future__ import annotations

import ast
import warnings
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from isopleth.backend import is_foreign, refuse_gradient, to_numpy
from isopleth.errors import DataWarning, InputError


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


def frame_names(X: Any) -> list[Any] | None:
    """Names of the columns of a frame, whatever it is called there; None for what is no frame."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None else list(names)


def listed(parts: list[str], most: int = 8) -> str:
    """The first of `parts`, and how many more there are."""
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def _columns(X: Any) -> list[tuple[str, Any]]:
    """Name and content of the columns of a frame or of a two-dimensional array; empty for anything else."""
    names = frame_names(X)
    if names is not None:
        return [(f"column {str(name)!r}", X[name]) for name in names]
    table = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return [(f"column {j}", table[:, j]) for j in range(table.shape[1])] if table.ndim == 2 else []


def _refuse_names(X: Any) -> None:
    """Refuse frames whose columns cannot be told apart, or that have none."""
    names = frame_names(X)
    if names is None:
        if isinstance(X, np.ndarray) and X.dtype.names is not None:
            raise InputError("X is a structured array; pass a plain array of numbers or a data frame.")
        return
    if not names:
        raise InputError("X has no columns; expected at least one column of numbers.")
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"X has several columns named {listed([repr(name) for name in twice])}; give each a name of its own."
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
    if frame_names(X) is None and not isinstance(X, np.ndarray):
        return
    of_one_kind = isinstance(X, np.ndarray) and X.ndim == 2
    for name, column in _columns(X[:, :1] if of_one_kind else X):
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
    raise InputError(f"X contains {kinds} in {listed(parts)}; drop those rows or fill them first.")


def on_host(x: Any, name: str) -> Any:
    """`x` as it is, or, where it is an array of another library than NumPy, as a NumPy array.

    Parameters
    ----------
    x : object
        What a user gave.
    name : str
        What messages call it.

    Raises
    ------
    InputError
        For a tensor that requires a gradient, or that does not hold its numbers one by one, as sparse ones do not.
    """
    if not is_foreign(x):
        return x
    refuse_gradient(x, name)
    if is_torch_array(x):
        _refuse_layout(x, name)
    return to_numpy(x)


def _refuse_layout(x: Any, name: str) -> None:
    if str(x.layout).startswith("torch.sparse"):
        raise InputError(f"{name} is a sparse tensor; pass {name}.to_dense() if it fits in memory.")
    if x.is_meta or x.is_quantized or x.is_nested or str(x.layout) != "torch.strided":
        raise InputError(f"{name} is a tensor of a kind that does not hold its numbers one by one; pass a plain one.")


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool, min_samples: int = 1) -> np.ndarray:
    """Rows as a NumPy array of float64, names and number of columns set on (`reset`) or held against `estimator`.

    Arrays of any array-API library are taken, on any device; :class:`isopleth.backend.Backend` says where they came from.

    Raises
    ------
    InputError
        For text, dates, masked cells and values that are not finite, with the column or how many rows; for tensors that
        require a gradient.
    ValueError, TypeError
        For empty or sparse input and for columns other than at fit.
    """
    X = on_host(X, "X")
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
        names = frame_names(X)
        labels = range(checked.shape[1]) if names is None else names
        estimator._column_labels = [f"column {j}" if names is None else repr(str(j)) for j in labels]
    _refuse_not_finite(estimator, checked)
    return checked


def check_weights(sample_weight: Any, n: int, *, added: bool = False) -> np.ndarray:
    """Weights as float64 of NumPy, ones when None; arrays of any array-API library are taken.

    Of rows that are `added` to others, none need count.

    Raises
    ------
    InputError
        If there are not `n`, or they are not finite, negative or all zero.
    """
    if sample_weight is None:
        return np.ones(n)
    sample_weight = on_host(sample_weight, "sample_weight")
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
        if added:
            return w
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
        constant = listed([names[j] for j in np.flatnonzero(~keep)])
        warnings.warn(f"constant columns are dropped: {constant}.", DataWarning, stacklevel=3)
    return keep


def check_memory_limit(memory_limit: Any) -> None:
    """Refuse what is no number of bytes, where no estimator's own constraints do.

    Raises
    ------
    InputError
        If it is none.
    """
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, Real) or not float(memory_limit) > 0:
        raise InputError(f"memory_limit = {memory_limit!r}: expected a number of bytes > 0.")


def warn_few_rows(n: int, dim: int) -> None:
    """Warn where there are fewer distinct rows than columns."""
    if n < dim:
        warnings.warn(
            f"there are fewer distinct rows ({n}) than columns ({dim}): the density says little beyond nearness to these rows.",
            DataWarning,
            stacklevel=3,
        )


def warn_of_new_beginning() -> None:
    """Warn that a model fitted at once cannot be added to."""
    warnings.warn(
        "fit keeps no sums that rows could be added to, so partial_fit begins anew and forgets the rows of fit; call it on a new "
        "model, from the first rows on.",
        DataWarning,
        stacklevel=3,
    )
