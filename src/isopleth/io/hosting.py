"""Models as NumPy has them: what files can hold of a model that was fitted to tensors."""

from __future__ import annotations

from copy import copy
from dataclasses import is_dataclass
from typing import Any

from sklearn.base import BaseEstimator

from isopleth.backend import is_foreign, to_numpy


def hosted(value: Any) -> Any:
    """A model with NumPy's arrays in the place of those of other libraries, in whatever it holds; itself where there are none.

    Parameters
    ----------
    value : object
        An estimator, or what one may hold: dataclasses, dicts, lists and tuples are gone through. It is left as it is.
    """
    if is_foreign(value):
        return to_numpy(value)
    if isinstance(value, dict):
        found = {key: hosted(part) for key, part in value.items()}
        return value if _same(found.values(), value.values()) else found
    if isinstance(value, (list, tuple)):
        parts = [hosted(part) for part in value]
        if _same(parts, value):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, type) or not (isinstance(value, BaseEstimator) or is_dataclass(value)):
        return value
    state = vars(value)
    found = hosted(state)
    if found is state:
        return value
    out = copy(value)
    vars(out).update(found)  # past what a frozen dataclass guards: this is its copy
    return out


def _same(some: Any, others: Any) -> bool:
    return all(a is b for a, b in zip(some, others, strict=True))
