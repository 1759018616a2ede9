"""Tables that need not fit in memory: read a chunk of rows at a time, from any row on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from isopleth.errors import InputError
from isopleth.io.formats import check_shape, recognised
from isopleth.io.gaps import Gaps
from isopleth.io.raw import Block, Progress, Source

# Numbers of a chunk, unless something else is asked for: 8 MiB of them.
_CELLS = 2**20


def _unheard(share: float) -> None:
    """For those who do not ask how far it is."""


@dataclass(frozen=True, eq=False)
class FileRows:
    """A table of finite numbers in a file, looked through once and now read in chunks.

    Parameters
    ----------
    source : Path
        The file.
    names : list of str
        One a column; ``x1``, ``x2``, ... where the file has none.
    named : bool
        Whether the names come from the file.
    n_rows : int
        How many rows there are.
    """

    source: Path
    names: list[str]
    named: bool
    n_rows: int
    _blocks: Source
    _stamp: tuple[int, int]

    @property
    def chunk_rows(self) -> int:
        """Rows that make chunks of 8 MiB."""
        return max(1, _CELLS // len(self.names))

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Block]:
        """The rows from `start` on, `rows` at a time; the last chunk may have fewer.

        Parameters
        ----------
        rows : int, optional
            Rows of a chunk; :attr:`chunk_rows` by default.
        start : int, default=0
            The first row, counted from 0. Nothing before it is converted.

        Yields
        ------
        Block
            ``values``, a float64 array of shape (rows, n_columns), and ``lines``, for text files the line on which each row
            begins.

        Raises
        ------
        InputError
            If the file has changed since it was looked through, or is not there any more.
        """
        found = start
        for block in self._blocks.blocks(rows or self.chunk_rows, start):
            found += len(block.values)
            self._check(found)
            yield block
        self._check(found, whole=True)

    def _check(self, found: int, *, whole: bool = False) -> None:
        try:
            same = _stamp(self.source) == self._stamp
        except OSError as error:
            raise InputError(f"{self.source} has gone while it was read; run again when it is back.") from error
        if not same or (whole and found < self.n_rows):
            raise InputError(f"{self.source} has changed while it was read; run again when nobody writes to it.")


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def open_rows(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    but: str | None = None,
    min_rows: int = 2,
    progress: Progress = _unheard,
) -> FileRows:
    """Look through a table of numbers and open it to be read in chunks.

    The rows are those of :func:`isopleth.io.read_table`, bit for bit, and so are refusals and warnings: all of them come here,
    before any work is done. It takes one pass over the file, and memory for a few rows; for a Parquet file also 1 MiB a
    column, and what its dictionaries take.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv, .parquet or .npy file.
    columns, but, min_rows
        As for :func:`isopleth.io.read_table`.
    progress : callable, optional
        Is called with the share of the file that has been looked through.

    Returns
    -------
    FileRows

    Raises
    ------
    InputError, MissingExtraError
        As :func:`isopleth.io.read_table`; for .npz files, which can only be read as a whole.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    >>> rows = open_rows(path)
    >>> rows.names, rows.n_rows, [chunk.values.tolist() for chunk in rows.chunks(2, start=1)]
    (['a', 'b'], 3, [[[3.0, 4.0], [5.0, 6.0]]])
    >>> folder.cleanup()
    """
    source, kind = recognised(path)
    if kind.open is None:
        raise InputError(
            f"{source}: {source.suffix} files are only read as a whole; save the table as .npy or .parquet."
        )
    stamp = _stamp(source)
    blocks = kind.open(source, columns, but, progress)
    check_shape(source, blocks.n_rows, len(blocks.names), min_rows)
    rows = FileRows(source, blocks.names, blocks.named, blocks.n_rows, blocks, stamp)
    gaps = blocks.gaps or _gaps(rows, progress)
    gaps.refuse(source, rows.names)
    return rows


def _gaps(rows: FileRows, progress: Progress) -> Gaps:
    gaps, seen = Gaps(len(rows.names)), 0
    for chunk in rows.chunks():
        gaps.add(chunk)
        seen += len(chunk.values)
        progress(seen / rows.n_rows)
    return gaps
