"""Numbers, points, weights and other parameters as they were given, checked and as NumPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from isopleth.core.arrays import is_foreign, refuse_gradient, to_numpy
from isopleth.core.errors import InputError


def on_host(x: Any, name: str) -> Any:
    """Return `x` as a NumPy array if it is an array of another library, otherwise unchanged; `name` is for messages."""
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
        raise InputError(f"{name} is a quantised, nested or meta tensor; pass a plain dense tensor.")


def given_numbers(name: str, value: Any, expected: str) -> np.ndarray:
    """Return a parameter that has to hold numbers as a float64 array."""
    value = on_host(value, name)
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = f"{{parameter}} = {{value}}: expected {expected}."
        raise InputError(text, parameter=name, value=value) from error


def given_points(name: str, value: Any, columns: int, expected: str) -> np.ndarray:
    """Return a parameter that has to hold finite points, of shape (n, columns)."""
    rows = given_numbers(name, value, expected)
    if rows.ndim != 2 or rows.shape[1] != columns or not len(rows) or not np.isfinite(rows).all():
        raise InputError(f"{name} has shape {rows.shape}; expected {expected}.", parameter=name)
    return rows


def check_weights(sample_weight: Any, n: int, *, added: bool = False, name: str = "sample_weight") -> np.ndarray:
    """Return weights as float64, ones for None; all may be zero if rows are `added` to others."""
    if sample_weight is None:
        return np.ones(n)
    sample_weight = on_host(sample_weight, name)
    try:
        w = np.asarray(sample_weight)
        w = w.astype(np.float64, casting="unsafe" if w.dtype == object else "same_kind")
    except (TypeError, ValueError) as error:
        raise InputError(
            "{parameter} holds something other than real numbers; expected one number >= 0 a row.", parameter=name
        ) from error
    if w.ndim == 0:
        w = np.full(n, w)
    if w.shape != (n,):
        text = f"{{parameter}} has shape {w.shape}; expected one weight a row, ({n},)."
        raise InputError(text, parameter=name, value=w.shape)
    if not np.isfinite(w).all():
        raise InputError(
            f"{{parameter}} has {np.sum(~np.isfinite(w))} values that are not finite; expected numbers >= 0.",
            parameter=name,
            row=int(np.argmin(np.isfinite(w))),
        )
    if (w < 0).any():
        raise InputError(
            f"{{parameter}} is negative in {np.sum(w < 0)} rows, first in {{row}}; expected >= 0.",
            parameter=name,
            row=int(np.argmax(w < 0)),
        )
    if not (w > 0).any():
        if added:
            return w
        text = "{parameter} is zero in every row; at least two rows that differ need a positive weight."
        raise InputError(text, parameter=name)
    if w.max() / n > 1e300 or w[w > 0].min() / w.max() < 1e-290:
        text = "{parameter} spans more than double precision holds; expected weights within a factor of 1e290."
        raise InputError(text, parameter=name)
    return w


def column_labels(names: Sequence[Any] | None, n_features: int) -> list[str]:
    """Return columns as messages name them: their names in quotes, or their numbers."""
    return [f"column {j}" for j in range(n_features)] if names is None else [repr(str(name)) for name in names]


def check_memory_limit(memory_limit: Any) -> None:
    """Check `memory_limit` where the parameter constraints of an estimator do not."""
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, Real) or not float(memory_limit) > 0:
        text = "{parameter} = {value}: expected a number of bytes > 0."
        raise InputError(text, parameter="memory_limit", value=memory_limit)
