"""Interleaved timing: machines drift and are shared, so programs take turns and processor time counts."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any


def interleaved(runs: dict[str, Callable[[], Any]], rounds: int = 7, budget: float = math.inf) -> dict[str, float]:
    """Return the median processor seconds of each program, all its threads together, over its turns.

    The first turn of each is not counted, unless it alone takes the budget. Who has used up `budget` seconds takes no more
    turns.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            if sum(times[name]) > budget:
                continue
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(seconds[1:] or seconds) for name, seconds in times.items()}
