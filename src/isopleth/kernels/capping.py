"""An upper limit to the argument of polynomials that an exponential has long made 0."""

from __future__ import annotations

import numpy as np

from isopleth._namespace import Array, namespace


def cap(a: Array, most: float) -> Array:
    """Overwrite what is above `most` by it, so that powers stay finite and no infinity meets a 0; NaN stays."""
    if not isinstance(a, np.ndarray):
        a[...] = namespace(a).clip(a, max=most)  # to look would be to wait for the device
        return a
    above = a > most
    if np.any(above):  # to look takes a quarter of the time of a minimum
        a[above] = most
    return a
