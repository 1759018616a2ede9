"""Signals: how they end the process, so that nothing is left half written."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from isopleth_command import leave

INTERRUPTED = "interrupted; nothing is left half written."
INTERRUPTED_CODE = 128 + signal.SIGINT
# Of a command that watches, if there was an alarm.
ALARM_CODE = 3

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds in which a repeated signal is ignored, while half-written files are removed.
_BURST = 1.0

# Time at which each signal was last acted on, by its number.
_received: dict[int, float] = {}


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Let signals end the process at once, while nothing is written: an import that is cut short can raise anything."""
    changed = [number for number in _SIGNALS if signal.getsignal(number) is stop]
    for number in changed:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, stop)


@contextmanager
def signals_first() -> Iterator[None]:
    """Raise the exception of a signal where an interrupted import turned it into another one."""
    try:
        yield
    except Exception:
        if _received:
            raise _exception(next(iter(_received))) from None
        raise


def on_signals(handler: object) -> None:
    """Set the handler of the signals that end the process, unless the process was started to ignore them."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as for jobs that a script starts in the background
            signal.signal(number, handler)  # type: ignore[arg-type]


def stop(number: int, _: object) -> None:
    """Raise an exception, so that half-written files are removed; a repeated signal does not disturb that."""
    now = time.monotonic()
    if now - _received.get(number, -_BURST) >= _BURST:
        _received[number] = now
        raise _exception(number)


def _exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
