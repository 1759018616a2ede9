"""Process around the command line: its exit code, and streams that are closed or full."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from isopleth.cli.signals import INTERRUPTED, INTERRUPTED_CODE, on_signals, stop


def main() -> None:
    """Run the command line and exit: 0 when done, 2 when the input is wrong, 130 or 143 when stopped by a signal."""
    _stand_in_for_closed_streams()
    try:
        # The imports take a while, in which the run can be interrupted as well.
        from isopleth.cli.program import program

        on_signals(stop)
        program(prog_name="isopleth")
    except KeyboardInterrupt:
        with suppress(OSError):
            print(f"isopleth: {INTERRUPTED}", file=sys.stderr)
        sys.exit(INTERRUPTED_CODE)
    finally:
        on_signals(signal.SIG_IGN)  # the rest takes no time and handles no signals
        # Under python -m, after an interrupt during an exec of text, as in the creation of a data class, Python ends by that
        # signal and ignores the exit code, unless another exec has succeeded since.
        exec("")
        _drop_what_cannot_be_written()


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
