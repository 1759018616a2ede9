"""The process around the command line: its signals, and streams that are closed or full."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = "interrupted; nothing is left half written."
INTERRUPTED_CODE, _TERMINATED_CODE = 130, 143


def main() -> None:
    """Run the command line and exit: 0 when done, 2 when the input is wrong, 130 or 143 when stopped by a signal."""
    _stand_in_for_closed_streams()
    try:
        # The imports take a while, in which the run can be interrupted as well.
        from isopleth.cli.program import program

        signal.signal(signal.SIGTERM, _terminate)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        program(prog_name="isopleth")
    except KeyboardInterrupt:
        print(f"isopleth: {INTERRUPTED}", file=sys.stderr)
        sys.exit(INTERRUPTED_CODE)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left takes no time, and has no words for it
        _drop_what_cannot_be_written()


def _terminate(*_: object) -> NoReturn:
    """Leave by an exception: what is half written is cleaned up on the way."""
    sys.exit(_TERMINATED_CODE)


def _stand_in_for_closed_streams() -> None:
    """Python has None for a stream that is closed, which no code expects."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open to the end


def _drop_what_cannot_be_written() -> None:
    """Python would try again when it ends, complain in words of its own and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
