"""The one place that knows which array library is in use."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

Array = Any
"""An array of any library that follows the array-API standard."""


def namespace(*arrays: Array) -> Any:
    """Array-API namespace that all of `arrays` belong to.

    NumPy itself answers for NumPy arrays: it follows the standard since 2.0, and its functions take ``out=``, which
    the hot path needs.
    """
    if all(isinstance(a, np.ndarray) for a in arrays):
        return np
    return array_api_compat.array_namespace(*arrays)


def overwrite(function: Any, a: Array) -> Array:
    """Apply the elementwise `function` to `a` in its own memory; libraries without ``out=`` get a copy back into it."""
    if isinstance(a, np.ndarray):
        return function(a, out=a)
    a[...] = function(a)
    return a


def add_at(out: Array, rows: Array, values: Array) -> None:
    """``out[rows] += values`` where a row may occur several times, which the standard has no function for."""
    if isinstance(out, np.ndarray):
        np.add.at(out, rows, values)
        return
    for i in range(rows.shape[0]):
        out[int(rows[i]), ...] += values[i, ...]
