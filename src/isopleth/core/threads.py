"""Threads for NumPy work: how many there are, parts of the work, BLAS limited to one thread, and an end of all on Ctrl-C."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import LibController, ThreadpoolController

from isopleth.core.address_space import affordable_threads
from isopleth.core.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

# Default of the parameter `n_jobs` everywhere in this package: all processors.
DEFAULT_N_JOBS = -1

# Floating-point operations of a call that is so short that nobody notices if Ctrl-C waits for its end.
LONG_CALL = 1e9

# Largest number of rows of a fit of which several run one after another. Such fits spend their time in Python code, where
# threads wait for one another: up to 1,000 rows two of them took as long and up to twice the processor's time, and at 2,000 rows
# 1.2 to 1.4 times the processor's time for 4 to 36 % less waiting.
ROWS_OF_ONE_THREAD = 2_000

# Seconds that an interrupted call waits for its workers. Workers in Python code end within that time.
GRACE = 0.3

# Windows does not interrupt a wait for a lock, so waits are cut into pieces of this many seconds.
_WAIT = 0.1

_TAKEN: ContextVar[bool] = ContextVar("_TAKEN", default=False)


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that a parameter `n_jobs` stands for, as in scikit-learn.

    -1 stands for all processors that this process may use, -2 for all but one, but for one thread within
    :func:`processors_taken`; None for the number in ``joblib.parallel_config``, which is 1 outside of it.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
        raise InputError(f"n_jobs = {n_jobs!r}: expected None, -1 for all processors, or a number of threads.")
    if n_jobs is None:
        return int(joblib.effective_n_jobs(None))
    if n_jobs > 0:
        return int(n_jobs)
    if _TAKEN.get():
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, available + 1 + int(n_jobs))


class _OneBlasThread:
    """Context that limits BLAS to one thread in the whole process, from the first simultaneous caller to the last.

    More threads would compete with ours and change how sums are rounded. Recent threadpoolctl lets only one thread set the limit
    of OpenBLAS and ignores others, so whoever sets or restores it takes that right over first, and releases it after restoring.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._libraries: list[LibController] | None = None
        self._before: dict[str, int] = {}

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            try:
                self._limit()
            except BaseException:  # after an interrupt here, __exit__ would not be called
                self.__exit__()
                raise

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._lift()

    def _limit(self) -> None:
        """Set the limit in every BLAS library, also where other code has changed it since the first call."""
        if self._libraries is None:  # finding the libraries takes a while
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        for library in self._libraries:
            count = library.get_num_threads()
            if count is not None and count > 1:
                self._before[library.filepath] = count
                _take_over(library)
                library.set_num_threads(1)

    def _lift(self) -> None:
        """Give every BLAS library the number of threads back that it had."""
        for library in self._libraries or ():
            before = self._before.pop(library.filepath, None)
            if before is not None and library.get_num_threads() == 1:
                _take_over(library)
                library.set_num_threads(before)
                _take_over(library)  # release the right


def _take_over(library: LibController) -> None:
    """Take over the right to set the limit, which OpenBLAS has in some versions of threadpoolctl, from its thread."""
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


ONE_BLAS_THREAD = _OneBlasThread()


@contextmanager
def processors_taken() -> Iterator[None]:
    """Context for work that shares the processors with others: negative `n_jobs` are one thread, and so is BLAS."""
    token = _TAKEN.set(True)
    try:
        with ONE_BLAS_THREAD:
            yield
    finally:
        _TAKEN.reset(token)


class Stopped(BaseException):
    """Raised in a worker whose caller was interrupted. No Exception, so that no handler of errors catches it."""


class _Stop:
    """Flag for the workers of a call: true once that call, or the call that it is part of, was interrupted."""

    def __init__(self, above: _Stop | None) -> None:
        self.now = False
        self._above = above

    def __bool__(self) -> bool:
        return self.now or bool(self._above)


_STOP: ContextVar[_Stop | None] = ContextVar("_STOP", default=None)


def check_stopped() -> None:
    """Raise :class:`Stopped` if the caller of this worker was interrupted. Long loops call it at every step."""
    if _STOP.get():
        raise Stopped


def slices(size: int, step: float) -> list[slice]:
    """Split `size` rows into slices of at most `step` rows each, and of at least one."""
    step = max(1, int(step))
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def map_threads(work: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """Return `work` of each item, in order, computed by `workers` threads; the first error in that order is raised.

    An interrupt ends it within :data:`GRACE` seconds; workers stop at their next item or :func:`check_stopped`, compiled calls
    are not waited for. `work` runs in a copy of the caller's context, and must not change what is used after an interrupt.
    """
    with ONE_BLAS_THREAD:
        if affordable_threads(workers) == 1:
            found = []
            for item in items:
                check_stopped()
                found.append(work(item))
            return found
        return _threaded(work, list(items), workers)


def interruptible(operations: float, function: Callable[..., R], *arguments: Any, **options: Any) -> R:
    """Return ``function(*arguments, **options)`` of compiled code, such that Ctrl-C need not wait for its end.

    A long call, by its rough number of `operations`, runs in another thread and is abandoned there after an interrupt, so
    `function` must not change what is used afterwards.
    """
    check_stopped()
    if operations < LONG_CALL or threading.current_thread() is not threading.main_thread():
        return function(*arguments, **options)
    return _threaded(lambda _: function(*arguments, **options), [None], 1)[0]


def _threaded(work: Callable[[T], R], items: Sequence[T], workers: int) -> list[R]:
    call = _Call(work, items, affordable_threads(min(workers, len(items))))
    return call.results() if items else []


class _Call:
    """One call of :func:`map_threads`; its threads are daemons, since at its end the interpreter waits for all others."""

    def __init__(self, work: Callable[[Any], Any], items: Sequence[Any], workers: int) -> None:
        self._work, self._items = work, items
        self._above = _STOP.get()
        self._stop = _Stop(self._above)
        self._next = iter(range(len(items)))
        self._results: list[Any] = [None] * len(items)
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        self._running = workers
        self._ended = threading.Lock()  # released by the last worker
        self._ended.acquire()

    def results(self) -> list[Any]:
        """Run the threads and wait for them."""
        started = 0
        try:
            for _ in range(self._running):
                context = copy_context()
                threading.Thread(target=context.run, args=(self._run,), daemon=True).start()
                started += 1
            while not self._ended.acquire(timeout=_WAIT):
                if self._above:
                    raise Stopped
        except BaseException:
            self._stop.now = True
            if started == self._running:
                self._ended.acquire(timeout=GRACE)
            raise
        if self._errors:
            raise self._errors[min(self._errors)]
        return self._results

    def _run(self) -> None:
        """Work on items until none is left; the last worker to end wakes the caller."""
        _STOP.set(self._stop)
        try:
            while (place := self._take()) is not None:
                self._attempt(place)
        finally:
            with self._lock:
                self._running -= 1
                last = self._running == 0
            if last:
                self._ended.release()

    def _take(self) -> int | None:
        """Return the number of the next item, None after an error. All items before a failed one were started."""
        with self._lock:
            return None if self._stop or self._errors else next(self._next, None)

    def _attempt(self, place: int) -> None:
        try:
            self._results[place] = self._work(self._items[place])
        except BaseException as error:
            self._errors[place] = error
