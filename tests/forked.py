"""The console command in a process that is forked from the tests.

It is a process of its own, with streams, signals and an exit code, but it does not spend two seconds on imports. Tests of what
happens while Python starts or ends need a new process instead.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from threadpoolctl import threadpool_limits

import isopleth_command

Stream = int | IO


class Forked:
    """A command that runs in a forked process.

    Parameters
    ----------
    arguments : sequence
        The command line without the name of the program.
    stdin : int, file or None
        What the process reads: an open file or descriptor, or None for a pipe, to which the attribute ``stdin`` writes.
    stdout, stderr : int or file
        What the process writes to: an open file or descriptor.
    before : callable
        Called in the process before the command.
    """

    def __init__(
        self,
        arguments: Sequence[object],
        stdin: Stream | None,
        stdout: Stream,
        stderr: Stream,
        before: Callable[[], object] = lambda: None,
    ) -> None:
        self.returncode: int | None = None
        source, writer = (stdin, None) if stdin is not None else os.pipe()
        descriptors = [s if isinstance(s, int) else s.fileno() for s in (source, stdout, stderr)]
        self.pid = os.fork()
        if self.pid == 0:
            _become([str(argument) for argument in arguments], descriptors, before)
        if writer is not None:
            os.close(descriptors[0])
            self.stdin = open(writer, "wb")  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the pipe, and kill the process if it still runs."""
        if hasattr(self, "stdin"):
            with suppress(BrokenPipeError):
                self.stdin.close()
        if self.returncode is None:
            self.kill()

    def wait(self, timeout: float = 60.0) -> int:
        """Return the exit code, or minus the number of the signal that ended the process; kill it after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.returncode is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                self.kill()
                raise TimeoutError(f"the command ran for more than {timeout} seconds")
            else:
                time.sleep(0.002)
        return self.returncode

    def kill(self) -> int:
        """Kill the process and wait for its end."""
        os.kill(self.pid, signal.SIGKILL)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


def run(
    arguments: Sequence[object], before: Callable[[], object] = lambda: None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command with this input to its end."""
    with (
        tempfile.TemporaryFile("w+") as source,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        source.write(given)
        source.seek(0)
        code = Forked(arguments, source, out, err, before).wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([*map(str, arguments)], code, out.read(), err.read())


def _become(arguments: list[str], descriptors: list[int], before: Callable[[], object]) -> None:
    """Be the command, and never return."""
    code = 1
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        # The descriptors of pytest and of the other ends of pipes: a reader would wait for their end.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(i, "r" if i == 0 else "w", closefd=False) for i in range(3))
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # the width of a terminal
        sys.argv = ["isopleth", *arguments]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with threadpool_limits(1):  # threads of OpenMP do not survive a fork
            before()
            isopleth_command.main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
