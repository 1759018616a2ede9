"""Resume an interrupted run: a partial file beside the result, to which records are added as they are computed.

The file is a database of SQLite. It holds a description of the run, and under keys the records, each a set of named arrays in
the format of NumPy's archives, whose checksums are compared when they are read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np

from isopleth.core.errors import Hint, InputError
from isopleth.io.output_files import check_target, mode_of, refused_writing

# What says that a database is one of these: the letters "isop".
_APPLICATION = 0x69736F70
_TABLES = """
BEGIN;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE records (place INTEGER PRIMARY KEY, key TEXT UNIQUE, arrays BLOB);
"""


def partial_path(target: str | os.PathLike[str]) -> Path:
    """Return the path of the partial file for `target`: beside it, with symbolic links followed."""
    path = Path(os.path.realpath(target))
    return path.with_name(f"{path.name}.partial")


def refuse_begun(path: Path, *, resume: bool) -> None:
    """Refuse to overwrite the partial file of an interrupted run, unless the run is to be resumed."""
    if not resume and path.exists():
        if path.is_file() and os.access(path, os.W_OK):
            _connected(path).close()
        how = Hint("continue it with {resume}, or delete it to start again", resume=...)
        raise InputError(f"{path} is what an interrupted run has left", parameter="resume", hint=how)


def content_fingerprint(path: Path) -> str:
    """Return a fingerprint of a small file: the hash of its content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Turn failures of a database into one sentence, and failures to write it into those of any file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if kind == sqlite3.SQLITE_BUSY:
            text = f"{path} is being written by another run; wait for it, or name another file."
            raise InputError(text) from None
        if kind in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            full = kind in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
            raise OSError(errno.ENOSPC if full else errno.EACCES, str(error)) from error
        text = f"{path} is no partial file of isopleth, or is damaged; move it away, results are to be kept there."
        raise InputError(text) from None


def _connected(path: Path) -> sqlite3.Connection:
    """Open a database that no other run has open; the lock ends with the process, however that ends."""
    with refused_writing(path), _refused(path):
        found = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        try:
            found.execute("PRAGMA locking_mode = EXCLUSIVE")
            found.execute(
                "PRAGMA synchronous = OFF"
            )  # a kill loses nothing; after a power failure the run begins again
            found.execute("BEGIN EXCLUSIVE")
            found.execute("COMMIT")
        except BaseException:
            found.close()
            raise
        return found


class Journal:
    """Named arrays under keys in a partial file, kept once :meth:`append` returns; runs with an equal `about` resume."""

    def __init__(self, path: Path, about: Mapping[str, str]) -> None:
        check_target(path)
        self.path = path
        begun = path.exists()
        mode = mode_of(path.with_name(path.name.removesuffix(".partial"))) | 0o600
        with refused_writing(path):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, mode))
        try:
            self._database = _connected(path)
            if self._value("SELECT count(*) FROM sqlite_master"):
                self._refuse_other(about)
            else:  # new, or killed before the description was written
                self._begin(about)
        except BaseException:
            self._shut(remove=not begun)
            raise

    def _value(self, question: str) -> Any:
        with _refused(self.path):
            return self._database.execute(question).fetchone()[0]

    def _begin(self, about: Mapping[str, str]) -> None:
        """Make the tables of a new file, and write the description of the run."""
        with refused_writing(self.path), _refused(self.path):
            self._database.executescript(_TABLES)
            self._database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute("COMMIT")

    def _refuse_other(self, has: Mapping[str, str]) -> None:
        """Refuse a file of another kind, or of a run with another description."""
        if self._value("PRAGMA application_id") != _APPLICATION:
            raise InputError(f"{self.path} is no partial file of isopleth; move it away, results are to be kept there.")
        with _refused(self.path):
            had = dict(self._database.execute("SELECT name, value FROM about"))
        other = sorted(key for key in {**had, **has} if had.get(key) != has.get(key))
        if other:
            raise InputError(
                f"{self.path} was begun with another {', '.join(other)}: give what it was begun with, or delete it to start "
                "again."
            )

    @property
    def keys(self) -> list[str]:
        """Keys of the records, in the order in which they were first appended."""
        with _refused(self.path):
            return [key for (key,) in self._database.execute("SELECT key FROM records ORDER BY place")]

    def append(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep `arrays` under `key`. A record of this key that is there already is superseded."""
        held = BytesIO()
        np.savez(held, **arrays)  # type: ignore[arg-type]
        with refused_writing(self.path), _refused(self.path):
            self._database.execute(
                "INSERT INTO records (key, arrays) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET arrays = excluded.arrays",
                (key, held.getbuffer()),
            )

    def read(self, key: str) -> dict[str, np.ndarray] | None:
        """Return the arrays under `key`, or None if there are none."""
        with _refused(self.path):
            found = self._database.execute("SELECT arrays FROM records WHERE key = ?", (key,)).fetchone()
        if found is None:
            return None
        try:
            with np.load(BytesIO(found[0]), allow_pickle=False) as archive:
                return dict(archive)
        except (BadZipFile, ValueError):
            raise InputError(f"{self.path} is damaged; delete it to start again.") from None

    def _shut(self, *, remove: bool) -> None:
        """Close the database, and delete its files if they are to be removed."""
        if hasattr(self, "_database"):
            self._database.close()
        if remove:
            self.path.unlink(missing_ok=True)
            self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the file, when its content has been written elsewhere."""
        self._shut(remove=True)

    def close(self) -> None:
        """Close the file. It stays if it holds any record."""
        if self.path.exists():
            self._shut(remove=not self.keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
