"""Listeners to the progress of computations, besides `verbose`; this module imports nothing large."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

# Seconds between two lines in a log.
IN_LOG = 10.0

# Told what is computed, which share of it is done, and after how many seconds.
Hearer = Callable[[str, float, float], None]

_HEARER: ContextVar[Hearer | None] = ContextVar("_HEARER", default=None)


def listen(hearer: Hearer | None) -> None:
    """Tell `hearer` of all computations from now on; the shell does, for its bar."""
    _HEARER.set(hearer)


def hearer() -> Hearer | None:
    """Return who is told of computations."""
    return _HEARER.get()
