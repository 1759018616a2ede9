"""Parts of the rows that are chunks of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from isopleth.distributed.checkpoint import Checkpoint
from isopleth.io.tables import FileRows, open_rows
from isopleth.parts import Add, Parts, S, part_sums


def _unheard(number: int, share: float) -> None:
    """Ignore reports of progress."""


class FileParts(Parts):
    """Rows of a table in a file that need not fit in memory, read chunk by chunk.

    Parameters
    ----------
    path : path-like or FileRows
        A .csv, .tsv, .parquet or .npy file of numbers, or the result of :func:`isopleth.io.open_rows`.
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
        As :func:`isopleth.io.open_rows`.

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
        checkpoint: Checkpoint | None = None,
        progress: Callable[[int, float], None] = _unheard,
    ) -> None:
        self.rows = path if isinstance(path, FileRows) else open_rows(path, columns)
        self.chunk_rows = chunk_rows or self.rows.chunk_rows
        self.checkpoint, self.progress = checkpoint, progress
        self.names = self.rows.names if self.rows.named else None
        self.n_features = len(self.rows.names)
        self._passes = 0

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return the sums of a pass over the parts; see :meth:`isopleth.parts.Parts.sums`."""
        self._passes += 1
        kept = self.checkpoint.next_pass() if self.checkpoint else None
        total, done = kept.begun(start) if kept else (start(), 0)
        n_rows = self.rows.n_rows
        self.progress(self._passes, done / n_rows)
        for chunk in self.rows.chunks(self.chunk_rows, done):
            part = part_sums(start, add, chunk.values, None, self.labels, f"rows from {done + 1} on")
            total = total.merge(part)
            done += len(chunk.values)
            if kept:
                kept.keep(total, done, whole=done == n_rows)
            self.progress(self._passes, done / n_rows)
        return total
