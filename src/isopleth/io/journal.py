"""Results that are kept as they come: a partial file to which rows are appended, and whose torn end is cut off."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from zlib import crc32

import numpy as np

from isopleth.errors import InputError
from isopleth.io.atomic import check_target, refused_writing
from isopleth.io.partial import lock, refuse_other

_MAGIC = b"isopleth partial 1\n"
# Bytes of a record, and their checksum.
_RECORD = struct.Struct("<QI")


class Journal:
    """Rows of numbers in a partial file, kept from the moment that :meth:`append` returns.

    Parameters
    ----------
    path : Path
        The partial file; what it holds is gone on with, or refused.
    about : mapping of str to str
        What the rows are results of, by what the user calls it. Only results of the same are gone on with.
    width : int
        Numbers a row.

    Attributes
    ----------
    n_rows : int
        Rows that are kept.

    Raises
    ------
    InputError
        If the file is another one than a journal or is about something else, or cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "result.partial"
    >>> with Journal(path, {"FILE": "a.csv"}, 2) as journal:
    ...     journal.append(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> with Journal(path, {"FILE": "a.csv"}, 2) as journal:  # another run
    ...     journal.n_rows, [block.tolist() for block in journal.blocks()]
    (2, [[[1.0, 2.0], [3.0, 4.0]]])
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, about: Mapping[str, str], width: int) -> None:
        check_target(path)
        self.path, self.n_rows = path, 0
        self._width = width
        header = json.dumps({**about, "number of columns": width}).encode()
        with refused_writing(path):
            self._file: IO[bytes] = open(path, "r+b" if path.exists() else "x+b")  # noqa: SIM115 - closed by close
        try:
            lock(self._file, path)
            self._begin(header)
        except BaseException:
            self._shut()
            raise

    def _begin(self, header: bytes) -> None:
        beginning = self._file.read(len(_MAGIC))
        if not _MAGIC.startswith(beginning):
            raise InputError(f"{self.path} is no partial file of isopleth; move it away, results are to be kept there.")
        found = self._record() if beginning == _MAGIC else None
        if found is None:  # nothing, or killed while it was begun
            self._file.seek(0)
            self._file.truncate()
            try:
                self._write(_MAGIC + _record_of(header))
            except BaseException:
                self.remove()
                raise
        else:
            refuse_other(self.path, json.loads(found), json.loads(header))
            end = self._file.tell()
            while (content := self._record()) is not None:
                self.n_rows += len(content) // (8 * self._width)
                end = self._file.tell()
            self._file.seek(end)
            with refused_writing(self.path):
                self._file.truncate()

    def _record(self) -> bytes | None:
        """The content of the next record, or None where the file ends or is torn."""
        head = self._file.read(_RECORD.size)
        if len(head) < _RECORD.size:
            return None
        size, check = _RECORD.unpack(head)
        left = os.fstat(self._file.fileno()).st_size - self._file.tell()
        if size > left:
            return None
        content = self._file.read(size)
        return content if crc32(content) == check else None

    def append(self, rows: np.ndarray) -> None:
        """Keep `rows`, an array of shape (n, width)."""
        self._write(_record_of(np.ascontiguousarray(rows, dtype="<f8").tobytes()))
        self.n_rows += len(rows)

    def _write(self, content: bytes) -> None:
        """No fsync: what a machine without power has not written to its disk is cut off."""
        with refused_writing(self.path):
            self._file.write(content)
            self._file.flush()

    def blocks(self) -> Iterator[np.ndarray]:
        """All rows, as they were appended."""
        self._file.seek(len(_MAGIC))
        self._record()
        left = self.n_rows
        while left:
            content = self._record()
            if content is None:
                raise InputError(f"{self.path} has been changed while it was read; run again.")
            yield np.frombuffer(content, dtype="<f8").reshape(-1, self._width)
            left -= len(content) // (8 * self._width)

    def _shut(self) -> None:
        with suppress(OSError):  # what no room was left for is tried once more, and has been told of
            self._file.close()

    def remove(self) -> None:
        """Delete the file, when its rows have been written elsewhere."""
        self._shut()
        self.path.unlink(missing_ok=True)  # a run that waited for this one may have been quicker

    def close(self) -> None:
        """Close the file, which stays if it holds any rows."""
        if self._file.closed:
            return
        if self.n_rows:
            self._shut()
        else:
            self.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _record_of(content: bytes) -> bytes:
    return _RECORD.pack(len(content), crc32(content)) + content
