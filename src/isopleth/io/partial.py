"""Work that was begun and not ended: where it lies, what it was about, and whether it may be gone on with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from isopleth.errors import InputError

_HEAD = 2**20
"""Bytes at the beginning of a file that are looked at to know it again."""


def partial_path(target: str | os.PathLike[str]) -> Path:
    """Where what is to be `target` lies until it is whole: beside it, with symbolic links followed."""
    path = Path(os.path.realpath(target))
    return path.with_name(f"{path.name}.partial")


def refuse_begun(path: Path, *, resume: bool) -> None:
    """Refuse to write over hours of work, unless it is to be gone on with.

    Raises
    ------
    InputError
        If `path` exists and `resume` is not set.
    """
    if not resume and path.exists():
        raise InputError(
            f"{path} is what an interrupted run has left: go on with --resume, or delete it to begin anew."
        )


def table_stamp(path: Path) -> str:
    """By what a table is known again that may be too large to be read for that: size, time of the last change, beginning."""
    status = path.stat()
    with open(path, "rb") as file:
        head = hashlib.sha256(file.read(_HEAD)).hexdigest()
    return f"{status.st_size} bytes, {status.st_mtime_ns} ns, {head}"


def content_stamp(path: Path) -> str:
    """By what a small file is known again: its content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refuse_other(path: Path, had: Mapping[str, Any], has: Mapping[str, Any]) -> None:
    """Refuse to go on with what was begun about something else.

    Parameters
    ----------
    path : Path
        What was begun.
    had, has : mapping of str to anything
        What it was about and what this run is about, by what the user calls it.

    Raises
    ------
    InputError
        If they differ; the message names in what.
    """
    other = sorted(key for key in {**had, **has} if had.get(key) != has.get(key))
    if other:
        raise InputError(
            f"{path} was begun with another {', '.join(other)}: give what it was begun with, or delete it to begin anew."
        )


def lock(file: IO[bytes], path: Path) -> None:
    """Keep other runs from `path` while `file` is open; the lock goes with the process, however that ends.

    Raises
    ------
    InputError
        If another run has it.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(f"{path} is being written by another run; wait for it, or name another file.") from None
