"""Resources that a computation may use, which do not affect its result: memory, threads, and whether progress is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from isopleth.core.progress import Progress
from isopleth.core.threads import DEFAULT_N_JOBS, effective_n_jobs, map_threads, slices

P = TypeVar("P")
R = TypeVar("R")

# Bytes that an estimator may use for matrices and scratch arrays, unless another limit is asked for: 1 GiB.
DEFAULT_MEMORY_LIMIT = 2**30

# Rows that are computed at once, so that their distances stay in the processor's cache.
MOST_ROWS = 2048


@dataclass(frozen=True)
class Budget:
    """Memory, threads and progress of a computation: what estimators take as `memory_limit`, `n_jobs` and `verbose`."""

    memory: float = DEFAULT_MEMORY_LIMIT  # bytes for matrices and scratch arrays
    n_jobs: int | None = DEFAULT_N_JOBS  # number of threads, or what stands for it
    verbose: bool | int = False  # whether to show progress

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the budget that the parameters of an estimator state, which may lack some."""
        return cls(getattr(model, "memory_limit", DEFAULT_MEMORY_LIMIT), model.n_jobs, getattr(model, "verbose", False))

    @property
    def threads(self) -> int:
        """Number of threads."""
        return effective_n_jobs(self.n_jobs)

    @property
    def limits(self) -> dict[str, Any]:
        """Memory and threads, by the names of parameters of public functions and classes."""
        return {"memory_limit": self.memory, "n_jobs": self.n_jobs}

    def within(self, memory: float) -> Self:
        """Return this budget with another limit of memory, such as what a computation leaves to a part of it."""
        return replace(self, memory=memory)

    @property
    def alone(self) -> Self:
        """The same budget for one thread."""
        return replace(self, n_jobs=1)

    def shared(self, workers: int) -> Self:
        """Return the budget of each of several computations that run at once, in one thread each."""
        return replace(self, memory=self.memory / workers, n_jobs=1)

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


# What estimators may use unless their parameters say otherwise; what parts of a computation may use that has threads of its own.
DEFAULT_BUDGET, ONE_THREAD = Budget(), Budget(n_jobs=1)
