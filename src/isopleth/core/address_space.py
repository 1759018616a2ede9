"""Limit of the address space of a process (``ulimit -v``), near which linear algebra waits for ever or ends the process."""

from __future__ import annotations

import os
from pathlib import Path

from isopleth.core.errors import InputError

# Bytes that a thread takes: its stack of 8 MiB, an arena of malloc of 128, and a buffer of 32 for each of two BLAS libraries
# (NumPy's and SciPy's). OpenBLAS asks again and again for a buffer that it does not get, or gives up, which ends the process.
THREAD_BYTES = 200 * 2**20

# Bytes with which the command runs on two processors, measured: below them imports fail, each in another way, or never end.
COMMAND_BYTES = 1.2e9

_PAGES = Path("/proc/self/statm")


def address_space() -> tuple[float, float]:
    """Return the limit of the address space in bytes and how much of it is left; both infinite where there is no limit."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return float("inf"), float("inf")
        used = int(_PAGES.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, OSError):  # systems without such limits, or without a count of what is used
        return float("inf"), float("inf")
    return float(limit), float(limit - used)


def too_small_for_the_command() -> str:
    """Return a sentence if the address space is too small for the imports and threads of the command, otherwise nothing."""
    limit, _ = address_space()
    return (
        f"the address space of this process is limited to {limit / 1e6:,.0f} MB (ulimit -v), and isopleth needs "
        f"{COMMAND_BYTES / 1e6:,.0f} MB; raise the limit (ulimit -v unlimited, or more memory from the batch system)."
        if limit < COMMAND_BYTES
        else ""
    )


def affordable_threads(wanted: int) -> int:
    """Return how many of these threads the address space holds, 1 at least; InputError if not even one does."""
    limit, left = address_space()
    if left < THREAD_BYTES:
        raise InputError(
            f"the address space of this process is limited to {limit / 1e6:,.0f} MB, of which {max(left, 0.0) / 1e6:,.0f} MB are "
            f"left; a thread needs {THREAD_BYTES / 1e6:,.0f} MB, so raise the limit (ulimit -v in kB, or of the batch system)."
        )
    return wanted if left == float("inf") else min(wanted, int(left // THREAD_BYTES))
