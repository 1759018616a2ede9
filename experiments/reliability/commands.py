"""The command line as a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from experiments.reliability.outcomes import Tally, progress


def command(arguments: Sequence[str]) -> list[str]:
    """Return the command of the console script."""
    return [sys.executable, "-m", "isopleth_command", *arguments]


def side_by_side(work: Callable[[int], Tally], count: int) -> Tally:
    """Run ``work(case)`` for each of `count` cases, as many at a time as there are processors: it waits for processes."""
    tally = Tally()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in progress(pool.map(work, range(count)), count, tally):
            tally.merge(done)
    return tally
