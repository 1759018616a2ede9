"""The class of each labelled row, whatever it is written as."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth.entry import on_host
from isopleth.errors import InputError


def checked_labels(y: Any, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes, the number of each row's class, and the sizes of the classes.

    Raises
    ------
    InputError
        If there is not one label a row, a label is missing, or a class is too small.
    """
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
        raise InputError("y mixes words and numbers; expected one class a row, all of one kind.") from error
    if len(classes) < 2:
        raise InputError(f"y has one class only, {classes.tolist()[0]!r}; expected rows of at least two classes.")
    if counts.min() < 2:
        few = classes.tolist()[int(np.argmin(counts))]
        raise InputError(
            f"y has the class {few!r} in one row only; a class needs at least two, one to learn from and one to judge by."
        )
    return classes, numbers.ravel(), counts


def _as_array(y: Any) -> np.ndarray:
    """Labels of the kind they are of: NumPy makes words of all that stands beside a word, and objects of words in a frame."""
    labels = np.asarray(y)
    if labels.dtype.kind == "U" and not hasattr(y, "dtype"):
        labels = np.asarray(y, dtype=object)
    if labels.dtype == object and all(isinstance(label, str) for label in labels.flat):
        labels = labels.astype(str)  # words in an array of their own kind can be saved
    return labels


def _is_missing(label: Any) -> bool:
    """None, NaN, an infinity, or what is not even equal to itself."""
    try:
        return label is None or bool(label != label) or label in (np.inf, -np.inf)
    except TypeError:  # of pandas.NA nothing is true or false
        return True
