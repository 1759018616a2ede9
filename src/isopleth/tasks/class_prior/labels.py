"""Classes of labelled rows: which there are, and refusals of labels that say no class."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth.core.errors import InputError
from isopleth.core.parameters import on_host
from isopleth.tables.cells import is_missing


def checked_labels(y: Any, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the classes, the index of the class of each row, and the sizes of the classes."""
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None; give the class of each row.")
    labels = _as_array(on_host(y, "y"))
    if labels.shape != (rows,):
        raise InputError(f"y has shape {labels.shape}; expected one class a row, ({rows},).")
    missing = np.ma.getmaskarray(y) if np.ma.isMaskedArray(y) else [_is_missing(label) for label in labels]
    if np.any(missing):
        raise InputError(f"y has no class in row {int(np.argmax(missing))}; pass rows without one to estimate.")
    try:
        classes, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    except TypeError as error:
        text = "{parameter} mixes words and numbers; expected one class a row, all of one kind."
        raise InputError(text, parameter="y") from error
    if len(classes) < 2:
        text = "{parameter} has one class only, {value}; expected rows of at least two classes."
        raise InputError(text, parameter="y", value=classes.tolist()[0])
    if counts.min() < 2:
        text = "{parameter} has the class {value} in one row only"
        how = "a class needs at least two, one to learn from and one to judge by"
        raise InputError(text, parameter="y", value=classes.tolist()[int(np.argmin(counts))], hint=how)
    return classes, numbers.ravel(), counts


def _as_array(y: Any) -> np.ndarray:
    """Return labels without NumPy's conversions: numbers beside strings stay numbers, strings in a frame become strings."""
    labels = np.asarray(y)
    if labels.dtype.kind == "U" and not hasattr(y, "dtype"):
        labels = np.asarray(y, dtype=object)
    if labels.dtype == object and all(isinstance(label, str) for label in labels.flat):
        labels = labels.astype(str)  # an array of strings can be saved, one of objects cannot
    return labels


def _is_missing(label: Any) -> bool:
    """Tell whether a label is missing as a cell is, or infinite."""
    return is_missing(label) or label in (np.inf, -np.inf)
