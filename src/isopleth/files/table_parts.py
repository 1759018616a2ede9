"""Tables in one file or in many, read again in chunks for each pass over their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.core.errors import InputError, Message, listed, warn_user
from isopleth.core.parts import Add, Parts, S
from isopleth.files.file_table import FileTable
from isopleth.files.read import Reader, Reading
from isopleth.files.stream import FileRows
from isopleth.io.input_files import check_source, is_pattern
from isopleth.tables.schema import Schema


def files_of(path: Path) -> list[Path]:
    """Return the files that a name stands for: those that match it, in the order of their names, if it is a pattern."""
    if not is_pattern(path):
        return [path]
    found = sorted(Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file())
    if not found:
        raise InputError(f"no file matches {path}; check the folder and the pattern.")
    _say_keys_of_folders(path, found)
    return [check_source(name) for name in found]


def _say_keys_of_folders(pattern: Path, files: Sequence[Path]) -> None:
    """Warn of columns that folders say by their names, as in ``year=2024/part.parquet``: they are in none of the files."""
    values: dict[str, set[str]] = {}
    for name in files:
        for folder in name.parent.parts:
            key, sign, value = folder.partition("=")
            if sign and key:
                values.setdefault(key, set()).add(value)
    keys = [key for key, found in values.items() if len(found) > 1]
    if keys:
        warn_user(
            Message(
                f"{pattern}: the names of the folders say {listed(keys)}, which {'is' if len(keys) == 1 else 'are'} not read as "
                f"{'a column' if len(keys) == 1 else 'columns'}",
                hint="write a table that has them into one file, as pandas.read_parquet of the folder gives it",
            )
        )


def read_files(
    path: Path,
    how: Reading,
    min_rows: int = 1,
    *,
    cells: bool = False,
    then: Callable[[Reader], None] = lambda reader: None,
) -> FileTable:
    """Read a file, or those that match a pattern as one table in memory: all rows decide what each column is used as.

    `then` is called with the reader of each file once all are read.
    """
    first, *more = readers = [Reader(name, how) for name in files_of(path)]
    table = first.read(min_rows, cells=cells, more=more)
    for reader in readers:
        then(reader)
    return replace(table, source=path) if more else table


class TableParts(Parts):
    """Rows of tables in files with the same columns, of all kinds: numbers, then codes, NaN where a cell is missing.

    The first rows of the first file decide what each column is used as.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        how: Reading,
        of_first: Callable[[Schema], Schema] = lambda schema: schema,
        progress: Callable[[float], None] = lambda share: None,
    ) -> None:
        self.paths, self.progress, self._how = list(paths), progress, how
        reader = Reader(self.paths[0], how)
        first = reader.first()
        self.first = first.using(of_first(first.schema))
        self.schema: Schema = self.first.schema
        self.dialect = reader.dialect
        self.names, self.n_features = self.first.names, len(self.first.names)
        self._rows = [FileRows(path, how.of_schema(self.schema), self.schema) for path in self.paths]
        self.lines: list[
            np.ndarray
        ] = []  # of the rows of text files, and how many rows each file has, after the first pass
        self.counts = np.zeros(0, dtype=np.int64)
        self.passes = 0  # that have begun

    def tables(self) -> Iterator[tuple[int, FileTable]]:
        """Yield the rows in order, chunk by chunk, with the number of their file."""
        self.passes += 1
        sizes = np.array([path.stat().st_size for path in self.paths], dtype=np.float64)
        before = np.append(0.0, np.cumsum(sizes)) / max(float(sizes.sum()), 1.0)
        for number, rows in enumerate(self._rows):
            done = 0
            for table in rows.tables():
                yield number, table
                done += len(table)
                self.progress(float(before[number] + (before[number + 1] - before[number]) * rows.file.share_of(done)))

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return sums over all rows; see :meth:`isopleth.core.parts.Parts.sums`."""
        total, first, counts = start(), not len(self.counts), np.zeros(len(self.paths), dtype=np.int64)
        for number, table in self.tables():
            total = add(total, table.encoded().rows, None)
            counts[number] += len(table)
            if first and table.lines is not None:
                self.lines.append(table.lines.astype(np.int64))
        self.counts = counts
        return total

    def take(self, rows: np.ndarray) -> FileTable:
        """Return the rows at some rising positions, of all rows of the files, in one pass."""
        found: list[FileTable] = []
        before = 0
        for _, table in self.tables():
            here = rows[np.searchsorted(rows, before) : np.searchsorted(rows, before + len(table))] - before
            if len(here):
                found.append(table.take(here))
            before += len(table)
        data = pa.concat_tables([table.data for table in found]).combine_chunks()
        lines = None if found[0].lines is None else np.concatenate([table.lines for table in found])
        return replace(found[0], data=data, lines=lines, before=0, schema=self.schema)

    @property
    def notes(self) -> list[Any]:
        """Sentences about cells of the files that count as missing, since they could not be read."""
        return [note for rows in self._rows for note in rows.odd.notes(rows.source)]

    @property
    def unseen(self) -> dict[str, int]:
        """Number of cells of the last pass with words that the first rows do not have, by column."""
        names = {name for rows in self._rows for name in rows.unseen}
        return {name: sum(rows.unseen[name] for rows in self._rows) for name in sorted(names)}
