"""Python threads over NumPy work, with BLAS held to one thread under each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from isopleth.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

_TAKEN: ContextVar[bool] = ContextVar("_TAKEN", default=False)


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads: None and -1 are all the processors this process may use, -2 all but one, and so on.

    None is one thread within :func:`processors_taken`.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
        raise InputError(f"n_jobs = {n_jobs!r}: expected None, -1 for all processors, or a number of threads.")
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return 1 if _TAKEN.get() else available
    return max(1, available + 1 + int(n_jobs))


class _OneBlasThread:
    """BLAS threads under ours would only fight for the same cores.

    The limit belongs to the process: the first of several callers at once sets it, the last one lifts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._controller = self._controller or ThreadpoolController()  # finding the libraries takes a while
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


ONE_BLAS_THREAD = _OneBlasThread()


@contextmanager
def processors_taken() -> Iterator[None]:
    """Work of one of several callers which share the processors: no threads but where they were asked for, nor in BLAS."""
    token = _TAKEN.set(True)
    try:
        with ONE_BLAS_THREAD:
            yield
    finally:
        _TAKEN.reset(token)


def map_threads(work: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """`work` of each item, in order."""
    if workers == 1:
        return [work(item) for item in items]
    with ONE_BLAS_THREAD, ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))
