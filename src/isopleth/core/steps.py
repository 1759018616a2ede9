"""Steps in which numbers and times are recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Steps that values may be multiples of, the largest one first; those of times are in seconds.
USUAL_STEPS = tuple(m * 10.0**k for k in range(5, -7, -1) for m in (5.0, 1.0))
TIME_STEPS = (86400.0, 3600.0, 60.0, 1.0)
# Numbers nearer than this share of their size are the same.
_EQUAL = 1e-9

# Share of the numbers of a column with mistakes that are multiples of the step in which it is recorded.
NEARLY_ALL_IN_STEPS = 0.965


def recorded_step(values: np.ndarray, steps: Sequence[float] = USUAL_STEPS, share: float = 1.0) -> float:
    """Return the largest of `steps` of which all values, or a `share` of them, are multiples; 0 for none."""
    return next((step for step in steps if _multiples(values, step) >= share), 0.0)


def _multiples(values: np.ndarray, step: float) -> float:
    """Return the share of values that are multiples of a step."""
    return (
        float((np.abs(values - np.rint(values / step) * step) <= _EQUAL * np.abs(values)).mean())
        if len(values)
        else 1.0
    )
