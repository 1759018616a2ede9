"""Numbers over a volume whose logarithm alone fits in double precision."""

from __future__ import annotations

import math

import numpy as np


def over_volume(relative: np.ndarray | float, log_volume: np.ndarray | float) -> np.ndarray:
    """`relative` / V, infinite or 0 only where the quotient is."""
    relative = np.asarray(relative, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        size = np.exp(np.log(np.abs(relative)) - log_volume)
    return np.sign(relative) * size


def smallest(relative: np.ndarray, log_volumes: np.ndarray) -> tuple[int, ...]:
    """Where `relative` / V is smallest, V being one number a row, without forming the quotient."""
    with np.errstate(divide="ignore"):
        sizes = np.log(np.abs(relative)) - log_volumes[:, None]
    sign = np.sign(relative)
    place = np.argmax(np.where(sign < 0, sizes, -np.inf)) if (sign < 0).any() else np.argmin(sizes)
    return tuple(int(i) for i in np.unravel_index(place, relative.shape))


def quotient(relative: float, log_volume: float) -> str:
    """`relative` / V in digits, with an exponent that need not fit in double precision."""
    value = float(over_volume(relative, log_volume))
    if relative == 0.0 or 0.0 < abs(value) < math.inf:
        return f"{value:.5g}"
    power, rest = divmod((math.log(abs(relative)) - log_volume) / math.log(10.0), 1.0)
    return f"{math.copysign(10.0**rest, relative):.4f}e{power:+.0f}"
