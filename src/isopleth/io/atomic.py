"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from zlib import crc32

from isopleth.errors import InputError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Seconds after which no writer can still be at work on a temporary file.
_ABANDONED = 60.0

_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def check_target(path: str | os.PathLike[str]) -> Path:
    """Find out before the work whether a file can be written after it.

    Parameters
    ----------
    path : path-like
        The file to be written; it may exist, and is then replaced.

    Returns
    -------
    Path
        Where the bytes go: `path` with symbolic links followed, so that the link survives and its target changes.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written to, or if `path` is anything but a plain file.
    """
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        raise InputError(f"{path} is a folder: name a file in it.")
    if not folder.exists():
        raise InputError(f"{path}: the folder {folder} does not exist; create it or choose another.")
    if not folder.is_dir():
        raise InputError(f"{path}: {folder} is not a folder; choose another.")
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        raise InputError(f"{path} is not a plain file; name one that can be replaced.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path}: the folder {folder} is read-only; choose another.")
    return target


def hidden_beginning(target: Path) -> str:
    """Of the names of hidden files beside `target`; a hash, since a name at the length limit must not fail by an addition."""
    return f".isopleth-{crc32(os.fsencode(target.name)):08x}-"


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files for `path` of writers that were killed: those that nobody has written to for a minute."""
    target = Path(os.path.realpath(path))
    for temporary in target.parent.glob(f"{hidden_beginning(target)}*.tmp"):
        with suppress(OSError):  # it was another run's, and has its name now
            if time.time() - temporary.stat().st_mtime > _ABANDONED:
                temporary.unlink()


def is_for_want_of_room(error: BaseException | None) -> bool:
    """Whether an error says, or comes from one that says, that a file could not be written."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__
    return error is not None


@contextmanager
def refused_writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in a sentence why `path` cannot be written.

    Raises
    ------
    InputError
        If the disk is full, or writing is not permitted.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(f"{path}: no room is left on the disk; free some or write elsewhere.") from error
        if error.errno in _FORBIDDEN:
            raise InputError(f"{path}: writing is not permitted here; choose another folder.") from error
        raise


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open `path` for writing so that it appears whole or stays as it was.

    The bytes go to a temporary file in the same folder, which takes the name `path` when the block ends. If the block
    fails or is interrupted, the temporary file is removed.

    Parameters
    ----------
    path : path-like
        The file to write; if it exists, it is replaced and keeps its permissions.

    Yields
    ------
    binary file
        Open for writing.

    Raises
    ------
    InputError
        As :func:`check_target`, and if the disk is full.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "answer.txt"
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"42")
    >>> path.read_text()
    '42'
    >>> folder.cleanup()
    """
    target = check_target(path)
    temporary = target.with_name(f"{hidden_beginning(target)}{secrets.token_hex(8)}.tmp")
    try:
        with refused_writing(path):
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            os.replace(temporary, target)
    finally:
        # After a success it has its new name, and there is nothing to remove.
        with suppress(OSError):
            temporary.unlink()
