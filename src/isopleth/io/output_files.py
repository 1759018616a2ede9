"""Files to write: checks before the work, a file whole or not at all, and locks."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from typing import IO
from zlib import crc32

from isopleth.core.errors import InputError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Seconds after which no writer can still be at work on a temporary file.
_ABANDONED = 60.0

_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def check_target(path: str | os.PathLike[str]) -> Path:
    """Check before the work that a file can be written after it."""
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


def check_suffix(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> str:
    """Return the suffix of `path` in small letters, if it is one of `suffixes`."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        raise InputError(
            f"{path}: the name ends in none of {', '.join(suffixes)}, which decides the format; choose one."
        )
    return suffix


def _hidden_beginning(target: Path) -> str:
    """Return the beginning of names of hidden files beside `target`; a hash, since `target` may have the longest name allowed."""
    return f".isopleth-{crc32(os.fsencode(target.name)):08x}-"


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files for `path` that killed writers have left: those not written to for a minute."""
    target = Path(os.path.realpath(path))
    for temporary in target.parent.glob(f"{_hidden_beginning(target)}*.tmp"):
        with suppress(OSError):  # it was another run's, and has its name now
            if time.time() - temporary.stat().st_mtime > _ABANDONED:
                temporary.unlink()


def is_for_want_of_room(error: BaseException | None) -> bool:
    """Return whether an error is, or was caused by, a failure to write a file."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__
    return error is not None


@contextmanager
def refused_writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn failures to write `path` into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(f"{path}: no space is left on the disk; free some or write elsewhere.") from error
        if error.errno in _FORBIDDEN:
            raise InputError(f"{path}: writing is not permitted here; choose another folder.") from error
        raise


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open `path` for writing, by a temporary file beside it, so that it appears whole or stays as it was."""
    target = check_target(path)
    temporary = target.with_name(f"{_hidden_beginning(target)}{secrets.token_hex(8)}.tmp")
    try:
        with refused_writing(path):
            # Nobody can read it who cannot read the target, from its first byte on.
            with open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode_of(target))) as file:
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


def mode_of(target: Path) -> int:
    """Return the permissions for a file that takes the place of `target`, or that holds parts of what it will hold."""
    return stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock `path` against other runs while `file` is open, at most as long as the process lives; not on Windows."""
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
    """Lock a file that is replaced again and again, by a lock on a hidden file beside it."""
    target = Path(os.path.realpath(path))
    beside = target.with_name(f"{_hidden_beginning(target)}lock")
    with refused_writing(path):
        file = _open_locked(beside, path)
    with file:
        try:
            yield
        finally:
            with suppress(OSError):  # before it is closed: the file of another run must not be taken away
                beside.unlink()


def _open_locked(path: Path, shown: Path) -> BufferedRandom:
    """Open `path` for reading and writing, made if it is not there, and lock it."""
    while True:
        file = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")  # noqa: SIM115 - the caller closes it
        try:
            _lock(file, shown)
            if _has_name(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _has_name(file: IO[bytes], path: Path) -> bool:
    """Return whether an open file still has that name: the run that had it before may have just removed it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
