"""Process around the command line: signals, which leave nothing half written, exit codes, and streams that are closed or full."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from isopleth.core.address_space import too_small_for_the_command
from isopleth_command import leave

INTERRUPTED = "interrupted; nothing is left half written."
TERMINATED = "terminated; nothing is left half written."
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


def turn_on_garbage_collection() -> None:
    """Turn on the collection of garbage that the entry point turned off; what was imported until now is no garbage."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@contextmanager
def reraise_signals() -> Iterator[None]:
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


def main() -> None:
    """Run the command line and exit: 0 when done, 2 for wrong input, 3 after an alarm, 130 or 143 when stopped by a signal."""
    _stand_in_for_closed_streams()
    if words := too_small_for_the_command():
        print(f"isopleth: {words}", file=sys.stderr)
        sys.exit(2)
    code: Any = 0
    os.environ.pop(
        "MPLBACKEND", None
    )  # pictures go to files, and a notebook's name of a backend is unknown outside of it
    try:
        # The imports take a while, in which the run can be interrupted as well.
        from isopleth.cli.commands import program

        on_signals(stop)
        program(prog_name="isopleth")
    except KeyboardInterrupt:
        with suppress(OSError):
            print(f"isopleth: {INTERRUPTED}", file=sys.stderr)
        code = INTERRUPTED_CODE
    except SystemExit as error:
        code = error.code
        if signal.SIGTERM in _received:
            with suppress(OSError):
                print(f"isopleth: {TERMINATED}", file=sys.stderr)
    finally:
        on_signals(signal.SIG_IGN)  # the rest takes no time and handles no signals
        # Under python -m, after an interrupt during an exec of text, as in the creation of a data class, Python ends by that
        # signal and ignores the exit code, unless another exec has succeeded since.
        exec("")
        _drop_what_cannot_be_written()
    if (
        _received
    ):  # threads that were abandoned still run: compiled code of theirs prints a message if the interpreter ends
        os._exit(code if isinstance(code, int) else 1)
    sys.exit(code)


def _stand_in_for_closed_streams() -> None:
    """Open a null stream for each closed standard stream, for which Python has None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open to the end


def _drop_what_cannot_be_written() -> None:
    """Drop output that cannot be written: Python would try again at exit, print a traceback and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
