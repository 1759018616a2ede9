"""Interleaved timing: machines drift, so rivals take turns and ratios come from one run."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import sklearn


def machine() -> str:
    """One line on where the numbers come from."""
    return (
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )


def interleaved(rivals: dict[str, Callable[[], Any]], rounds: int = 7) -> dict[str, float]:
    """Median seconds of each rival over `rounds` turns, after one turn that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(rounds + 1):
        for name, run in rivals.items():
            start = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def table(title: str, seconds: dict[str, float], ours: str) -> None:
    """Print medians in milliseconds and their ratio to ours."""
    print(f"\n{title}")
    for name, value in seconds.items():
        print(f"  {name:<42}{value * 1e3:>12.1f} ms   {value / seconds[ours]:>8.2f} x ours")
