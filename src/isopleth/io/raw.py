"""What the readers of single formats hand over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Raw:
    """A table as it was read, not yet checked for missing values."""

    values: np.ndarray
    names: list[str]
    named: bool
    lines: np.ndarray | None = None
