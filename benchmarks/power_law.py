"""Growth of a cost with a size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Growth:
    """A power law over a range of sizes: cost = constant * size^exponent.

    Parameters
    ----------
    exponent : float
        By least squares of the logarithms.
    low, high : int
        The smallest and largest size that it was fitted to.
    """

    exponent: float
    low: int
    high: int


def fitted(costs: Mapping[int, float]) -> Growth | None:
    """Fit the power law of positive costs by size; return None for fewer than two sizes."""
    sizes = sorted(size for size, cost in costs.items() if cost > 0.0)
    if len(sizes) < 2:
        return None
    slope = np.polyfit(np.log(sizes), np.log([costs[size] for size in sizes]), 1)[0]
    return Growth(float(slope), sizes[0], sizes[-1])


def expected(costs: Mapping[int, float], size: int) -> float:
    """Predict the cost at a larger size from the last two smaller ones; from one, by quadratic growth; 0 without any."""
    known = sorted(costs)
    if not known:
        return 0.0
    exponent = 2.0
    if len(known) > 1:
        a, b = known[-2:]
        exponent = float(np.clip(np.log(costs[b] / costs[a]) / np.log(b / a), 0.0, 3.0))
    return costs[known[-1]] * (size / known[-1]) ** exponent
