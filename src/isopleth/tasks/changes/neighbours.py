"""Segments beside a change in its own columns: a change of another column between them is none of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def stretch_around(
    steps: Sequence[int] | np.ndarray, columns: Sequence[Sequence[int]], number: int, length: int
) -> tuple[int, int]:
    """Return the changes before and after one of `steps` that share a column with it, or the ends of the series."""
    own = set(columns[number])
    shared = [bool(own.intersection(some)) for some in columns]
    before = [int(step) for step, same in zip(steps[:number], shared[:number], strict=True) if same]
    after = [int(step) for step, same in zip(steps[number + 1 :], shared[number + 1 :], strict=True) if same]
    return max(before, default=0), min(after, default=length)
