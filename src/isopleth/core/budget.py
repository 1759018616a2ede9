"""What a computation may use, which does not affect its result: memory, threads, and whether progress is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from isopleth.core.progress import Progress
from isopleth.core.threads import map_threads, slices

P = TypeVar("P")
R = TypeVar("R")

# Bytes that an estimator may use for matrices and scratch arrays, unless another limit is asked for: 1 GiB.
DEFAULT_MEMORY_LIMIT = 2**30

# Rows that are computed at once, so that their distances stay in the processor's cache.
MOST_ROWS = 2048


class Budget(NamedTuple):
    """Memory in bytes, number of threads and whether to show progress."""

    memory: float
    threads: int
    verbose: bool | int = False

    def blocks(self, n: int, row_bytes: float, most: float = MOST_ROWS) -> list[slice]:
        """Split `n` rows into slices of at most `most`, such that the scratch memory of all threads is within the limit."""
        return slices(n, min(most, self.memory / self.threads / row_bytes))

    def map(self, label: str, work: Callable[[P], R], parts: Sequence[P]) -> list[R]:
        """Return `work` of each part, computed in threads, with a progress bar if one was asked for."""

        def counted(part: P) -> R:
            found = work(part)
            tick()
            return found

        with Progress(label, len(parts), self.verbose) as tick:
            return map_threads(counted, parts, self.threads)
