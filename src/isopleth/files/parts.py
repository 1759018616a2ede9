"""Chunks of a file as parts of the rows of a fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from isopleth.core.parts import Add, Parts, S, part_sums
from isopleth.files.read import Reading
from isopleth.files.stream import FileRows


class Checkpoints(Protocol):
    """Store of the sums of the passes of a fit, such as :class:`isopleth.io.checkpoint.Checkpoint`."""

    def next_pass(self) -> Any:
        """Return the pass that comes next."""
        ...


class FileParts(Parts):
    """Rows of a table in a file that need not fit in memory, read chunk by chunk.

    Parameters
    ----------
    path : path-like or FileRows
        A .csv, .tsv, .parquet or .npy file of numbers, or its rows that were opened before.
    columns : sequence of str, optional
        Columns to read, in this order; all by default.
    chunk_rows : int, optional
        Rows in a chunk; by default as many as fit 8 MiB.
    checkpoint : Checkpoint, optional
        Keeps the sums of passes, for a fit that may be interrupted.
    progress : callable, optional
        Called with the number of the pass, counted from 1, and the share of its rows that has been read.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`isopleth.read_table`, and for cells that are no finite numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from isopleth import RandomFeatureSOSREP
    >>> from isopleth.distributed import FileParts, fit
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "rows.npy"
    >>> np.save(path, np.random.default_rng(0).normal(size=(5000, 2)))
    >>> model = fit(RandomFeatureSOSREP(n_frequencies=50, random_state=0), FileParts(path))
    >>> model.score_samples([[0.0, 0.0], [9.0, 9.0]]).round(1)
    array([-2.5, -inf])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | FileRows,
        columns: Sequence[str] | None = None,
        chunk_rows: int | None = None,
        checkpoint: Checkpoints | None = None,
        progress: Callable[[int, float], None] = lambda *_: None,
    ) -> None:
        self.rows = path if isinstance(path, FileRows) else FileRows(path, Reading(columns=columns))
        self.chunk_rows = chunk_rows or self.rows.chunk_rows
        self.checkpoint, self.progress = checkpoint, progress
        self.names = self.rows.names if self.rows.named else None
        self.n_features = len(self.rows.names)
        self._passes = 0

    @property
    def labels(self) -> list[str]:
        """Names of the columns in messages; those of a file without names are x1, x2, ..."""
        return [repr(name) for name in self.rows.names]

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return the sums of a pass over the parts; see :meth:`isopleth.core.parts.Parts.sums`."""
        self._passes += 1
        kept = self.checkpoint.next_pass() if self.checkpoint else None
        total, done = kept.begun(start) if kept else (start(), 0)
        n_rows = self.rows.n_rows
        self.progress(self._passes, done / n_rows)
        for table in self.rows.tables(self.chunk_rows, done):
            part = part_sums(start, add, table.encoded().rows, None, self.labels, f"rows from {done + 1} on")
            total = total.merge(part)
            done += len(table)
            if kept:
                kept.keep(total, done, whole=done == n_rows)
            self.progress(self._passes, done / n_rows)
        return total
