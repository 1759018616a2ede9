"""Inner products of arrays of any shape, as numbers."""

from __future__ import annotations

import math

import numpy as np

from isopleth._namespace import Array, namespace


def inner(a: Array, b: Array) -> float:
    """The sum of products of two arrays of one shape."""
    product = a * b  # and no dot, which sums float32 with more rounding
    # Of few numbers NumPy's function takes twice the time of its method.
    return float(product.sum() if isinstance(product, np.ndarray) else namespace(product).sum(product))


def norm(a: Array) -> float:
    """The root of the sum of squares."""
    return math.sqrt(inner(a, a))
