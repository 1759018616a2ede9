"""Python threads over NumPy work, with BLAS held to one thread under each."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads: None and -1 are all the processors this process may use, -2 all but one, and so on."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
        raise ValueError(f"n_jobs = {n_jobs!r}: expected None, -1 for all processors, or a number of threads.")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def map_threads(work: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """`work` of each item, in order. BLAS threads under ours would only fight for the same cores."""
    if workers == 1:
        return [work(item) for item in items]
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))
