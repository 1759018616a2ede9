"""Progress of long computations, on standard error (parameter `verbose`) and by the callbacks of scikit-learn 1.9 or later."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import wraps
from numbers import Integral
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isopleth.core.errors import InputError
from isopleth.core.progress_listeners import IN_LOG, Hearer, hearer

if TYPE_CHECKING:
    from sklearn.callback import CallbackSupportMixin
else:
    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError:  # an earlier version, without callbacks
        CallbackSupportMixin = object

# Seconds before the first report: shorter computations stay silent.
PATIENCE = 0.5

# Seconds between two reports on a terminal, where one line is overwritten; elsewhere each is a new line.
ON_TERMINAL = 0.1

_ERASE = "\r\x1b[K"
_WIDTH = 24

# Steps of a computation that callbacks see at most: each is two calls of each callback.
_SEEN = 100

# The estimator that is being fitted under callbacks, and its context.
_UNDER_CALLBACKS: ContextVar[tuple[Any, Any] | None] = ContextVar("_UNDER_CALLBACKS", default=None)

# Whether a computation that reports is running: those inside it, such as the fits of a search, stay silent.
_REPORTING: ContextVar[bool] = ContextVar("_REPORTING", default=False)

# The part of a computation that reports which runs now: what is done of a computation inside it is done of the part.
_PART: ContextVar[AtMost | None] = ContextVar("_PART", default=None)


class ReportsProgress(CallbackSupportMixin):
    """Base of estimators whose fits show their progress to callbacks of scikit-learn, set by ``set_callbacks``."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "fit" in vars(cls) and CallbackSupportMixin is not object:
            cls.fit = _under_callbacks(cls.fit)


def _under_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a fit that is a task of the callbacks of its estimator; without callbacks it is the same."""

    @wraps(fit)
    def fit_as_task(self: Any, *args: Any, **keywords: Any) -> Any:
        # The fits of a search are of clones, which share the callbacks, and belong to the task of the outer fit.
        outermost = _UNDER_CALLBACKS.get() is None and hasattr(self, "_skl_callbacks")
        if not (outermost or hasattr(self, "_parent_callback_ctx")):
            return fit(self, *args, **keywords)
        with _task_of(self, args, keywords):
            return fit(self, *args, **keywords)

    return fit_as_task


@contextmanager
def _task_of(estimator: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[None]:
    """Tell the callbacks of an estimator that its fit begins and ends."""
    from sklearn.callback._callback_support import (
        callback_management_context,  # as the public decorator of methods does
    )

    with callback_management_context(estimator):
        context = estimator._init_callback_context(max_subtasks=None)
        rows = dict(zip(("X", "y"), args, strict=False)) | {
            name: keywords[name] for name in ("X", "y") if name in keywords
        }
        context.call_on_fit_task_begin(estimator=estimator, **rows)
        token = _UNDER_CALLBACKS.set((estimator, context))
        try:
            yield
        finally:
            _UNDER_CALLBACKS.reset(token)
        # A copy of the fitted estimator has all that it needs.
        context.call_on_fit_task_end(estimator=estimator, reconstruction_attributes={}, **rows)


class Progress:
    """Context that reports how much of a computation is done; its object is called after each step, from any thread.

    On a terminal it is a bar that disappears at the end, elsewhere a line every ten seconds and one at the end. Computations
    inside one that reports do not report themselves. Within a fit under callbacks it is a task with at most a hundred subtasks.
    """

    def __init__(self, label: str, total: int, verbose: bool | int) -> None:
        self._label, self._total, self._visible = label, max(1, int(total)), bool(verbose)
        self._token: Token[bool] | None = None
        self._done, self._lock = 0.0, threading.Lock()
        self._start = self._next = 0.0
        self._shown = False
        self._estimator: Any = None
        self._task: Any = None
        self._seen = 0
        self._hearer: Hearer | None = None
        self._part: AtMost | None = None
        self._steps = 1.0
        self._part_token: Token[AtMost | None] | None = None

    def __enter__(self) -> Self:
        inside, under = _REPORTING.get(), _UNDER_CALLBACKS.get()
        if inside and (part := _PART.get()) is not None:
            self._part, self._steps = part, part.most / self._total
            self._part_token = _PART.set(None)
        self._visible = self._visible and not inside
        self._hearer = None if inside or self._visible else hearer()
        if under is not None and not inside:
            self._estimator, context = under
            self._task = context.subcontext(task_name=self._label, max_subtasks=min(self._total, _SEEN))
            self._task.call_on_fit_task_begin(estimator=self._estimator)
        if self._visible or self._hearer is not None or self._task is not None:
            self._token = _REPORTING.set(True)
        self._start = time.monotonic()
        self._next = self._start + PATIENCE
        return self

    @contextmanager
    def part(self, steps: float) -> Iterator[None]:
        """Count `steps` while the block runs: computations inside it say how far they are, and its end counts the rest."""
        counted = AtMost(steps, self)
        token = _PART.set(counted)
        try:
            yield
        finally:
            _PART.reset(token)
        counted.end()

    def __call__(self, steps: float = 1) -> None:
        """Count steps that are done."""
        if self._part is not None:
            with self._lock:
                self._part(self._steps * steps)
            return
        if not self._visible and self._hearer is None and self._task is None:
            return
        with self._lock:
            self._done = min(self._total, self._done + steps)
            self._tell_callbacks()
            if not self._visible and self._hearer is None:
                return
            now = time.monotonic()
            if now < self._next:
                return
            if self._hearer is not None:
                self._next = now + ON_TERMINAL
                self._hearer(self._label, self._done / self._total, now - self._start)
                return
            terminal = sys.stderr.isatty()
            self._next = now + (ON_TERMINAL if terminal else IN_LOG)
            self._shown = True
            _write(f"{_ERASE}{self._line(now)}" if terminal else f"{self._line(now)}\n")

    def _tell_callbacks(self) -> None:
        """End as many subtasks as the steps that are done stand for."""
        if self._task is None:
            return
        for _ in range(self._seen, int(self._done * min(self._total, _SEEN) / self._total)):
            part = self._task.subcontext(task_name=f"part of {self._label}")
            part.call_on_fit_task_begin(estimator=self._estimator)
            part.call_on_fit_task_end(estimator=self._estimator)
            self._seen += 1

    def _line(self, now: float) -> str:
        share = self._done / self._total
        bar = "#" * int(_WIDTH * share)
        left = (now - self._start) * (1.0 - share) / share if share else 0.0
        return f"{self._label} [{bar:-<{_WIDTH}}] {share:4.0%}, {left:.0f} s left"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _REPORTING.reset(self._token)
            self._token = None
        if self._part_token is not None:
            _PART.reset(self._part_token)
            self._part_token = None
        if self._task is not None and kind is None:
            self._task.call_on_fit_task_end(estimator=self._estimator)
        if not self._shown:
            return
        if sys.stderr.isatty():
            _write(_ERASE)
        elif kind is None:
            _write(f"{self._label}: done in {time.monotonic() - self._start:.1f} s\n")


class AtMost:
    """Steps of a computation whose number is not known beforehand: `most` are counted, the rest of these at the end."""

    def __init__(self, most: float, tick: Callable[[float], None]) -> None:
        self.most, self._left, self._tick = most, most, tick

    def __call__(self, steps: float = 1) -> None:
        """Count steps that are done, as far as there are any left."""
        counted = min(steps, self._left)
        self._left -= counted
        self._tick(counted)

    def end(self) -> None:
        """Count the steps that were not needed."""
        self(self._left)


def unheard(steps: float = 1) -> None:
    """Ignore steps that are done, where nothing is to be reported."""


def checked_verbose(verbose: Any) -> bool:
    """Return whether to report, for a parameter `verbose` that scikit-learn does not check."""
    if not isinstance(verbose, (bool, np.bool_)) and not (isinstance(verbose, Integral) and int(verbose) >= 0):
        raise InputError(f"verbose = {verbose!r}: expected True or False, or a whole number, at least 0.")
    return bool(verbose)


def _write(text: str) -> None:
    """Write to standard error; a stream that is closed or full does not end the computation."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
