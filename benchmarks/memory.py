"""Peak memory of a program, measured in a separate process.

The measure is the same for all: the largest resident memory during the run, less what was resident before it. Data exist
before, and a run on a small problem has loaded libraries and compiled what they compile. Only Linux tells the largest
resident memory since a moment (VmHWM, which writing to clear_refs restarts); the one that getrusage tells is of the whole
life of a process, and of the one that it was forked from.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.comparison import Comparison, Program

# Rows of the first problem, which loads the libraries; at most as many as are measured.
SMALL = 64

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h


def available() -> bool:
    """Return whether this system reports the memory of a process."""
    return sys.platform == "linux" and os.access("/proc/self/clear_refs", os.W_OK)


def peaks(subject: str, comparison: str, program: str, sizes: Sequence[tuple[int, int]]) -> list[float]:
    """Return the bytes for each size (rows, columns), ascending; NaN where the process ended before.

    `subject` is the module, whose COMPARISONS have one of the name `comparison`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.subjects"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(theirs, subject, comparison, program, list(sizes)), daemon=True)
    process.start()
    theirs.close()
    found: list[float] = []
    with contextlib.suppress(EOFError):
        while len(found) < len(sizes):
            found.append(ours.recv())
    process.join()
    return found + [float("nan")] * (len(sizes) - len(found))


def _report(pipe: Connection, subject: str, comparison: str, program: str, sizes: list[tuple[int, int]]) -> None:
    # Large arrays get pages of their own and give them back, so that one size leaves nothing for the next to use.
    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 65536)
    task = next(c for c in importlib.import_module(subject).COMPARISONS if c.name == comparison)
    chosen = task.programs[program]
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        contextlib.suppress(Exception),  # failures have been reported by the timing
    ):
        for n, d in sizes:
            pipe.send(_peak(task, chosen, n, d))
    pipe.close()


def _peak(task: Comparison, program: Program, n: int, d: int) -> float:
    small, problem = task.problem(min(SMALL, n), d), task.problem(n, d)
    program.run(program.setup(small))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    answer = program.run(program.setup(problem))
    peak = float(_status("VmHWM") - before)
    del answer  # which counts, since it was there until now
    return peak


def _status(key: str) -> int:
    """Return the bytes in /proc/self/status under a key."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return 1024 * int(line.split()[1])
    raise KeyError(key)
