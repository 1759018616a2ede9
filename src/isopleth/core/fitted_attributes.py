"""Attributes of estimators that are read from the value which a fit returned."""

from __future__ import annotations

from typing import Any

import numpy as np

_NOTHING = object()


class FromFit:
    """Attribute of an estimator that its fitted value knows, in the array library of the rows of the fit.

    The estimator keeps the value as `_fitted`. The value has the attribute `source`, by default the name without its
    underscore, or an entry of this name in its mapping `facts`; and `backend`, the array library and device of the rows.
    """

    def __init__(self, source: str = "", missing: Any = _NOTHING) -> None:
        self._source, self._missing = source, missing

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self._source = self._source or name.rstrip("_")

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        fitted: Any = getattr(model, "_fitted", None)
        found = getattr(fitted, self._source, getattr(fitted, "facts", {}).get(self._source))
        if found is None and (fitted is None or self._missing is _NOTHING):
            raise AttributeError(f"{type(model).__name__!r} object has no attribute {self.name!r}")
        if found is None:
            return self._missing
        return fitted.backend.array(found) if isinstance(found, np.ndarray) else found
