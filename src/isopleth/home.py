"""Fitted attributes at the home of the rows that they were fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth._namespace import HOST, Home


def settle(model: Any, home: Home) -> None:
    """Send the public fitted arrays of `model` to a home, at the end of a fit.

    These are the attributes of numbers whose names end, and do not begin, with an underscore. Names of columns stay what they
    are, and what is held by another object, a search path say, stays there.

    Parameters
    ----------
    model : estimator
        Just fitted.
    home : Home
        That of the rows: ``Home.of(X)``.
    """
    if home == HOST:
        return
    for name, value in vars(model).items():
        public = name.endswith("_") and not name.startswith("_")
        if public and isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            setattr(model, name, home.send(value))
