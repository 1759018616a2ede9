"""Progress of long computations on standard error, for estimators with a parameter `verbose`."""

from __future__ import annotations

import sys
import threading
import time
from contextvars import ContextVar, Token
from numbers import Integral
from types import TracebackType
from typing import Any, Self

import numpy as np

from isopleth.errors import InputError

# Seconds before the first report: shorter computations stay silent.
PATIENCE = 0.5

# Seconds between two reports on a terminal, where one line is overwritten, and elsewhere, where each is a new line.
ON_TERMINAL, IN_LOG = 0.1, 10.0

_ERASE = "\r\x1b[K"
_WIDTH = 24

# Whether a computation that reports is running: those inside it, such as the fits of a search, stay silent.
_REPORTING: ContextVar[bool] = ContextVar("_REPORTING", default=False)


class Progress:
    """Context that reports how much of a computation is done; its object is called after each step, from any thread.

    On a terminal it is a bar that disappears at the end, elsewhere a line every ten seconds and one at the end. Computations
    inside one that reports do not report themselves.
    """

    def __init__(self, label: str, total: int, verbose: bool | int) -> None:
        self._label, self._total, self._visible = label, max(1, int(total)), bool(verbose)
        self._token: Token[bool] | None = None
        self._done, self._lock = 0, threading.Lock()
        self._start = self._next = 0.0
        self._shown = False

    def __enter__(self) -> Self:
        self._visible = self._visible and not _REPORTING.get()
        if self._visible:
            self._token = _REPORTING.set(True)
        self._start = time.monotonic()
        self._next = self._start + PATIENCE
        return self

    def __call__(self, steps: int = 1) -> None:
        """Count steps that are done."""
        if not self._visible:
            return
        with self._lock:
            self._done = min(self._total, self._done + steps)
            now = time.monotonic()
            if now < self._next:
                return
            terminal = sys.stderr.isatty()
            self._next = now + (ON_TERMINAL if terminal else IN_LOG)
            self._shown = True
            _write(f"{_ERASE}{self._line(now)}" if terminal else f"{self._line(now)}\n")

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
        if not self._shown:
            return
        if sys.stderr.isatty():
            _write(_ERASE)
        elif kind is None:
            _write(f"{self._label}: done in {time.monotonic() - self._start:.1f} s\n")


def unheard(steps: int = 1) -> None:
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
