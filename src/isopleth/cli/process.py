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
    signal.signal(signal.SIGTERM, _terminate)
    try:
        # The imports take a while, in which the run can be interrupted as well.
        from isopleth.cli.program import program

        program(prog_name="isopleth")
    except KeyboardInterrupt:
        print(f"isopleth: {INTERRUPTED}", file=sys.stderr)
        sys.exit(INTERRUPTED_CODE)
    finally:
        _drop_what_cannot_be_written()


def _terminate(*_: object) -> NoReturn:
    """Leave by an exception: what is half written is cleaned up on the way."""
    sys.exit(_TERMINATED_CODE)


def _stand_in_for_closed_streams() -> None:
    """Python has None for a stream that is closed, which no code expects."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _drop_what_cannot_be_written() -> None:
    """Python would try again when it ends, complain in words of its own and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
