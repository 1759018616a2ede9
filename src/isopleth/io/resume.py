"""Resume an interrupted run: a partial file beside the result, to which records are appended as they are computed.

The file begins with a description of the run. Each record that follows is a set of named arrays under a key, with a checksum.
If a run is killed, an incomplete last record is removed when the file is opened again. Of two records with one key, the later
counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np

from isopleth.errors import Hint, InputError
from isopleth.tables.output_files import check_target, hidden_beginning, lock, open_locked, open_new, refused_writing
from isopleth.tables.source import opened

_MAGIC = b"isopleth partial 2\n"

# Bytes of the head of a record, bytes of its arrays, and the checksum of both.
_RECORD = struct.Struct("<QQI")

# Bytes at the beginning of a table that are hashed to recognise the table.
_HASHED = 2**20

# Superseded records of fewer bytes than this are not worth a new file.
_SUPERSEDED = 2**24

# Bytes copied at a time when a new file is made.
_PIECE = 2**20


def partial_path(target: str | os.PathLike[str]) -> Path:
    """Return the path of the partial file for `target`: beside it, with symbolic links followed."""
    path = Path(os.path.realpath(target))
    return path.with_name(f"{path.name}.partial")


def refuse_begun(path: Path, *, resume: bool) -> None:
    """Refuse to overwrite the partial file of an interrupted run, unless the run is to be resumed."""
    if not resume and path.exists():
        if path.is_file() and os.access(path, os.R_OK):
            with open(path, "rb") as file:
                lock(file, path)
        how = Hint("continue it with {resume}, or delete it to start again", resume=...)
        raise InputError(f"{path} is what an interrupted run has left", parameter="resume", hint=how)


def table_fingerprint(path: Path) -> str:
    """Return a fingerprint of a possibly huge table without reading it all: size, modification time, hash of the first MiB."""
    if str(path) == "-":  # standard input, which has been copied and has no time of its own
        source = opened(path)
        source.file.seek(0)
        return f"{source.size} bytes, {hashlib.sha256(source.file.read(_HASHED)).hexdigest()}"
    status = path.stat()
    with open(path, "rb") as file:
        head = hashlib.sha256(file.read(_HASHED)).hexdigest()
    return f"{status.st_size} bytes, {status.st_mtime_ns} ns, {head}"


def content_fingerprint(path: Path) -> str:
    """Return a fingerprint of a small file: the hash of its content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class _Place(NamedTuple):
    """Position of a record in the file."""

    start: int
    end: int


class Journal:
    """Named arrays under keys in a partial file, kept from the moment that :meth:`append` returns.

    Only the results of a run with an equal `about` are resumed.
    """

    def __init__(self, path: Path, about: Mapping[str, str]) -> None:
        check_target(path)
        self.path = path
        self._places: dict[str, _Place] = {}
        with refused_writing(path):
            self._file = open_locked(path, target=path.with_name(path.name.removesuffix(".partial")))
        self._beside = path.with_name(f"{hidden_beginning(path)}compact.tmp")
        try:
            self._beside.unlink(missing_ok=True)  # from a run that was killed
            self._resume(dict(about))
        except BaseException:
            self._shut()
            raise

    def _resume(self, about: dict[str, str]) -> None:
        beginning = self._file.read(len(_MAGIC))
        if not _MAGIC.startswith(beginning):
            raise InputError(f"{self.path} is no partial file of isopleth; move it away, results are to be kept there.")
        head = self._checked_head() if beginning == _MAGIC else None
        if head is None:  # empty, or killed while the description was written
            self._file.seek(0)
            self._file.truncate()
            self._begin = self._end = 0
            try:
                self._write([_MAGIC, *_record(about, [])])
            except BaseException:
                self.remove()
                raise
            self._begin = self._end
            return
        self._refuse_other(head, about)
        self._begin = self._end = self._file.tell()
        while (head := self._checked_head()) is not None:
            self._places[head["key"]] = _Place(self._end, self._file.tell())
            self._end = self._file.tell()
        self._file.seek(self._end)
        with refused_writing(self.path):
            self._file.truncate()

    def _refuse_other(self, had: Mapping[str, Any], has: Mapping[str, Any]) -> None:
        other = sorted(key for key in {**had, **has} if had.get(key) != has.get(key))
        if other:
            raise InputError(
                f"{self.path} was begun with another {', '.join(other)}: give what it was begun with, or delete it to start "
                "again."
            )

    def _checked_head(self) -> dict[str, Any] | None:
        """Read the record at the current place; return its head, or None where the file ends, is torn or was changed."""
        start = self._file.read(_RECORD.size)
        if len(start) < _RECORD.size:
            return None
        head_size, size, check = _RECORD.unpack(start)
        if head_size + size > os.fstat(self._file.fileno()).st_size - self._file.tell():
            return None
        head = self._file.read(head_size)
        found = crc32(head)
        while size:
            piece = self._file.read(min(size, _PIECE))
            found, size = crc32(piece, found), size - len(piece)
        return dict(json.loads(head)) if found == check else None

    @property
    def keys(self) -> list[str]:
        """Keys of the records, in the order in which they were first appended."""
        return list(self._places)

    def append(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep `arrays` under `key`. A record of this key that is there already is superseded."""
        kept = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        head = {"key": key, "arrays": [(name, array.dtype.str, array.shape) for name, array in kept.items()]}
        start = self._end
        self._write(_record(head, list(kept.values())))
        self._places[key] = _Place(start, self._end)
        live = sum(place.end - place.start for place in self._places.values())
        if self._end - self._begin - live > max(live, _SUPERSEDED):
            self._compact()

    def read(self, key: str) -> dict[str, np.ndarray] | None:
        """Return the arrays under `key`, or None if there are none."""
        if key not in self._places:
            return None
        self._file.seek(self._places[key].start)
        head_size, _, _ = _RECORD.unpack(self._file.read(_RECORD.size))
        head = json.loads(self._file.read(head_size))
        found = {}
        for name, kind, shape in head["arrays"]:
            array = np.empty(shape, np.dtype(kind))
            if self._file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
                raise InputError(f"{self.path} has been changed while it was read; run again.")
            found[name] = array
        return found

    def _write(self, pieces: Iterable[Any]) -> None:
        """Append without fsync. After a power failure an incomplete last record is removed."""
        self._file.seek(self._end)
        with refused_writing(self.path):
            for piece in pieces:
                self._file.write(piece)
            self._file.flush()
        self._end = self._file.tell()

    def _compact(self) -> None:
        """Copy the records that count to a new file, which takes the place of this one as a whole."""
        places, at = {}, self._begin
        with refused_writing(self.path):
            new = open_new(self._beside, self.path)
            try:
                lock(new, self.path)
                self._copy(new, _Place(0, self._begin))
                for key, place in self._places.items():
                    self._copy(new, place)
                    places[key] = _Place(at, at := at + place.end - place.start)
                new.flush()
                os.fsync(new.fileno())
                os.replace(self._beside, self.path)
            except BaseException:
                new.close()
                self._beside.unlink(missing_ok=True)
                raise
        self._shut()
        self._file, self._places, self._end = new, places, at

    def _copy(self, new: BufferedRandom, place: _Place) -> None:
        self._file.seek(place.start)
        left = place.end - place.start
        while left:
            left -= new.write(self._file.read(min(left, _PIECE)))

    def _shut(self) -> None:
        with suppress(OSError):  # a write that failed for want of space is tried again here, and was reported before
            self._file.close()

    def remove(self) -> None:
        """Delete the file, when its content has been written elsewhere."""
        self._shut()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file. It stays if it holds any record."""
        if self._file.closed:
            return
        if self._places:
            self._shut()
        else:
            self.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _record(head: Mapping[str, Any], arrays: list[np.ndarray]) -> list[Any]:
    """Return the pieces of a record; arrays are not copied."""
    text = json.dumps(head).encode()
    contents = [array.reshape(-1).view(np.uint8).data for array in arrays]
    check = crc32(text)
    for content in contents:
        check = crc32(content, check)
    return [_RECORD.pack(len(text), sum(content.nbytes for content in contents), check), text, *contents]
