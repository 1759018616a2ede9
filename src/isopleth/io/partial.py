"""Work that was begun and not ended: where it lies, what it was about, and whether it may be gone on with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from isopleth.errors import InputError
from isopleth.io.atomic import hidden_beginning, refused_writing

# The file in a partial folder that says what it is about, and that is locked.
NOTE = "about.json"

# Bytes at the beginning of a file that are looked at to know it again.
_HEAD = 2**20


def partial_path(target: str | os.PathLike[str]) -> Path:
    """Where what is to be `target` lies until it is whole: beside it, with symbolic links followed."""
    path = Path(os.path.realpath(target))
    return path.with_name(f"{path.name}.partial")


def refuse_begun(path: Path, *, resume: bool) -> None:
    """Refuse to write over hours of work, unless it is to be gone on with.

    Raises
    ------
    InputError
        If `path` exists and `resume` is not set; the message says whether another run is at work on it.
    """
    if not resume and path.exists():
        held = path / NOTE if path.is_dir() else path
        if held.is_file() and os.access(held, os.R_OK):
            with open(held, "rb") as file:
                lock(file, path)
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

    Nothing is done where there are no such locks: on Windows, and on file systems that lack them.

    Raises
    ------
    InputError
        If another run has it.
    """
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"{path} is being written by another run; wait for it, or name another file.") from None
    except OSError:
        return


@contextmanager
def sole_run(path: Path) -> Iterator[None]:
    """Keep other runs from a file that is replaced again and again, by a :func:`lock` on a hidden one beside it.

    Raises
    ------
    InputError
        If another run has it, or if nothing can be written there.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f"{hidden_beginning(target)}lock")
    with refused_writing(path):
        file = _locked(beside, path)
    with file:
        try:
            yield
        finally:
            with suppress(OSError):  # before it is closed: the file of another run must not be taken away
                beside.unlink()


def _locked(beside: Path, path: Path) -> IO[bytes]:
    while True:
        file = open(beside, "ab")  # noqa: SIM115 - whoever asked closes it
        try:
            lock(file, path)
            if _has_name(file, beside):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _has_name(file: IO[bytes], path: Path) -> bool:
    """Whether an open file is still the one of that name: the run that had it before may have just removed it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
