"""Steps in which numbers and times are recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isopleth.core.threads import slices

# Steps that values may be multiples of, the largest one first; those of times are in seconds.
USUAL_STEPS = tuple(m * 10.0**k for k in range(5, -7, -1) for m in (5.0, 1.0))
TIME_STEPS = (86400.0, 3600.0, 60.0, 1.0)
# Numbers nearer than this share of their size are the same.
_EQUAL = 1e-9

# Share of the numbers of a column with mistakes that are multiples of the step in which it is recorded.
NEARLY_ALL_IN_STEPS = 0.965

# Values that are looked at together: most steps are ruled out by the first of them.
_AT_ONCE = 2**13


def recorded_step(values: np.ndarray, steps: Sequence[float] = USUAL_STEPS, share: float = 1.0) -> float:
    """Return the largest of `steps` of which all values, or a `share` of them, are multiples; 0 for none."""
    return next((step for step in steps if _are_multiples(values, step, share)), 0.0)


def _are_multiples(values: np.ndarray, step: float, share: float) -> bool:
    """Return whether a share of the values are multiples of a step."""
    possible = len(values)
    for part in slices(len(values), _AT_ONCE):
        some = values[part]
        near = np.abs(some - np.rint(some / step) * step) <= _EQUAL * np.abs(some)
        possible -= len(some) - int(np.count_nonzero(near))
        if possible / len(values) < share:
            return False
    return True
