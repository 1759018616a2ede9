"""Python threads over NumPy work: BLAS held to one thread under each, and all of it stopped by Ctrl-C."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import LibController, ThreadpoolController

from isopleth.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

# Below this many floating-point operations, or what takes as long, a call ends before anyone could notice that Ctrl-C waits.
LONG_CALL = 1e9

# Seconds that an interrupted call waits for its workers: those in Python code end in that time, and nothing of theirs goes on.
GRACE = 0.3

# Windows does not interrupt a wait for a lock, so waits are cut into pieces of this many seconds.
_LOOK = 0.1

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
    """Hold BLAS to one thread in the whole process: the first of several callers sets the limit, the last one lifts it.

    BLAS threads under ours would compete for the same cores, and the number of BLAS threads decides how sums are rounded. So
    everything whose result depends on BLAS runs inside of this, in whichever thread it is called.

    The limit belongs to the process, but recent versions of threadpoolctl let only one thread set that of OpenBLAS, until
    this thread gives the right up or ends, and ignore the others without a word. Callers come and go in any order here, so
    whoever sets or lifts the limit takes the right over first and gives it up after lifting.
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
            except BaseException:  # an interrupt: nobody calls __exit__ then
                self.__exit__()
                raise

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._lift()

    def _limit(self) -> None:
        """Set the limit wherever it is not set, by whoever has changed it in the meantime."""
        if self._libraries is None:  # finding the libraries takes a while
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        for library in self._libraries:
            count = library.get_num_threads()
            if count is not None and count > 1:
                self._before[library.filepath] = count
                _take_over(library)
                library.set_num_threads(1)

    def _lift(self) -> None:
        for library in self._libraries or ():
            before = self._before.pop(library.filepath, None)
            if before is not None and library.get_num_threads() == 1:
                _take_over(library)
                library.set_num_threads(before)
                _take_over(library)  # and leave it to nobody


def _take_over(library: LibController) -> None:
    """Take the right to set the limit from whatever thread has it.

    Only OpenBLAS has such a right, and not in all versions of threadpoolctl.
    """
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


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


class Stopped(BaseException):
    """Ends a worker whose caller was interrupted. Not an Exception: nothing on the way out shall take it for a failure."""


class _Stop:
    """Whether the workers of a call shall end, because that call was interrupted or the one that it is part of."""

    def __init__(self, above: _Stop | None) -> None:
        self.now = False
        self._above = above

    def __bool__(self) -> bool:
        return self.now or bool(self._above)


_STOP: ContextVar[_Stop | None] = ContextVar("_STOP", default=None)


def check_stopped() -> None:
    """End this worker if its caller was interrupted; loops of workers call it at every step.

    Raises
    ------
    Stopped
    """
    if _STOP.get():
        raise Stopped


def map_threads(work: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """Return `work` of each item, in order, computed by so many threads.

    An interrupt of the caller ends it within :data:`GRACE` seconds. Workers end at their next item or
    :func:`check_stopped`; one that is inside of a long call of compiled code is left to itself, and ends after that.

    Parameters
    ----------
    work : callable
        It runs in a copy of the caller's context, and changes nothing that outlives an interrupted call.
    items : iterable
        What to compute; taken in order.
    workers : int
        Number of threads; 1 is the calling one.

    Raises
    ------
    Exception
        The first error in the order of the items. Once there is one, no further items are begun.
    """
    with ONE_BLAS_THREAD:
        if workers == 1:
            return [_checked(work, item) for item in items]
        return _threaded(work, list(items), workers)


def interruptible(operations: float, function: Callable[..., R], *arguments: Any, **options: Any) -> R:
    """Return ``function(*arguments, **options)`` of compiled code, which an interrupt would otherwise have to wait for.

    Python handles signals in the main thread, between its own instructions. So a long call leaves the main thread free and
    runs in another one; after an interrupt it is abandoned there.

    Parameters
    ----------
    operations : float
        Floating-point operations of the call, roughly. Short calls are made directly.
    function : callable
        It changes nothing that is in use after an interrupt.
    """
    check_stopped()
    if operations < LONG_CALL or threading.current_thread() is not threading.main_thread():
        return function(*arguments, **options)
    return _threaded(lambda _: function(*arguments, **options), [None], 1)[0]


def _checked(work: Callable[[T], R], item: T) -> R:
    check_stopped()
    return work(item)


def _threaded(work: Callable[[T], R], items: Sequence[T], workers: int) -> list[R]:
    call = _Call(work, items, min(workers, len(items)))
    return call.results() if items else []


class _Call:
    """One call of :func:`map_threads` and its threads.

    They are daemons, since at the end of the process the interpreter waits for all others, however long they take.
    """

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
            while not self._ended.acquire(timeout=_LOOK):
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
        """Number of the next item; none after an error. Items before one that failed were begun: the first error is known."""
        with self._lock:
            return None if self._stop or self._errors else next(self._next, None)

    def _attempt(self, place: int) -> None:
        try:
            self._results[place] = self._work(self._items[place])
        except BaseException as error:
            self._errors[place] = error
