"""``isopleth anomalies`` of tables that are not read into memory: large files, and many files."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.cli.options import MOST_FLAGGED
from isopleth.cli.program import ShellWording, say
from isopleth.cli.run import Run
from isopleth.core.errors import DataWarning, Hint, InputError, listed, warn_user
from isopleth.core.rows import sample_places
from isopleth.files.file_table import FileTable
from isopleth.files.readers import parquet_shape
from isopleth.files.source import opened
from isopleth.files.table_parts import TableParts, files_of
from isopleth.io.input_files import is_pattern, names_of_files
from isopleth.results.result import ShownCells
from isopleth.results.text import place_text
from isopleth.tables.checks import rising_times
from isopleth.tables.schema import Schema
from isopleth.tasks.anomaly.detector import AnomalyDetector
from isopleth.tasks.anomaly.fit_in_parts import fit_parts
from isopleth.tasks.anomaly.result import COMPARED_ROWS, Anomalies

# Cells of a Parquet file, and bytes of a text, from which it is read chunk by chunk, several times.
_CELLS, _BYTES = 6_000_000, 2**26
_STAGES = ("reading", "fitting", "scoring", "writing")
_JUDGED_CELLS = 200  # flagged rows whose cells are judged


def is_read_in_parts(file: Path) -> bool:
    """Return whether a name is a pattern for many files, or that of a file too large to be read at once."""
    if is_pattern(file):
        return True
    if file.suffix.lower() in (".csv", ".tsv", ".txt"):
        return file.exists() and file.stat().st_size > _BYTES
    if file.suffix.lower() == ".parquet":
        rows, names = parquet_shape(opened(file))
        return rows * len(names) > _CELLS
    return False


@dataclass(frozen=True)
class SomeRows:
    """Rows of a table that are in memory, by their positions in it; the others are only counted."""

    positions: np.ndarray  # rising
    table: FileTable
    count: int
    where: dict[str, np.ndarray]  # where each row of the whole table stands

    def __len__(self) -> int:
        return self.count

    @property
    def schema(self) -> Schema:
        """Schema: the use of each column."""
        return self.table.schema

    @property
    def names(self) -> list[str]:
        """Names of the columns that are used."""
        return self.table.names

    def take(self, rows: np.ndarray) -> FileTable:
        """Return rows by their positions in the whole table."""
        return self.table.take(np.searchsorted(self.positions, rows))

    def encoded(self) -> Any:
        """Return the rows in memory as numbers and codes."""
        return self.table.encoded()

    def place(self, row: int) -> str:
        """Return where one of the rows in memory stands in the whole table."""
        return place_text(self.where, int(self.positions[row]))

    @property
    def cells(self) -> ShownCells:
        """Cells of the whole table, of which those in memory can be shown."""
        kind = np.float64 if self.schema.only_numbers else object
        return ShownCells((self.count, len(self.names)), kind, lambda rows: self.take(rows).values)


def judged_in_parts(
    run: Run, file: Path, contamination: float | None, fdr: float, top: int, explain: bool
) -> tuple[AnomalyDetector, SomeRows, Anomalies]:
    """Fit a detector to the rows of files in passes over them; return it, some of the rows, and the answer about all."""
    parts = TableParts(files_of(file), run.options, Schema.with_constants)
    if run.save_to and (rising := rising_clocks(run, parts.first)):
        exclude = [*run.options.exclude, *rising]
        parts = TableParts(files_of(file), replace(run.options, exclude=exclude), Schema.with_constants)
    parts.progress = lambda share: run.stage(_STAGES[min(parts.passes, 4) - 1], share)
    run.keep(parts.schema, parts.first)
    share = "auto" if contamination is None else contamination
    detector = fit_parts(AnomalyDetector(contamination=share, random_state=0), parts, parts.schema)
    _say_how_parts_were_read(file, parts)
    scores = detector.training_scores_
    shown = max(top, _JUDGED_CELLS, min(int((detector.training_labels_ < 0).sum()), MOST_FLAGGED) if explain else 0)
    first = np.argsort(scores, kind="stable")[:shown]
    positions = np.unique(
        np.concatenate([first, sample_places(len(scores), COMPARED_ROWS), sample_places(len(scores), 1000)])
    )
    where = _where(run, parts)
    some = SomeRows(positions, parts.take(positions), len(scores), where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = detector.anomalies_of_fit(some.names, some.cells, fdr)
    vars(found)["where"] = where
    return detector, some, found


def rising_clocks(run: Run, table: FileTable) -> list[str]:
    """Return columns of times that a detector for later rows leaves out, and say so: these rows would all be unlikely."""
    found = [
        name for name in rising_times(table.schema, table.encoded().numeric) if name not in run.options.time_columns
    ]
    if not found or len(found) == len(table.schema.columns):
        return []
    names = listed(
        [f"{name!r} (its times rise from row to row, and those of new rows will be later)" for name in found]
    )
    warn_user(f"columns left out of the model: {names}", hint=Hint("{time_columns} uses them", time_columns=found))
    return found


def _where(run: Run, parts: TableParts) -> dict[str, np.ndarray]:
    """Return the columns that say where rows stand: their file, if there are several, and line or row."""
    lines = np.concatenate(parts.lines) if parts.lines else None
    if len(parts.paths) == 1:
        return run.places(int(parts.counts.sum()), lines)
    names = np.repeat(np.array(names_of_files(parts.paths), dtype=object), parts.counts)
    rows = np.concatenate([np.arange(1, count + 1) for count in parts.counts])
    return {"file": names} | ({"row": rows} if lines is None else {"line": lines})


def _say_how_parts_were_read(file: Path, parts: TableParts) -> None:
    """Say what the columns were taken as, and what counted as missing."""
    rows = int(parts.counts.sum())
    several = f"{len(parts.paths):,} files, " if len(parts.paths) > 1 else ""
    say(f"{file}: {several}{parts.schema.summary(rows)}; read in parts, kinds of columns by the first rows")
    for note in dict.fromkeys([*parts.first.notes, *parts.notes]):
        say(note.render(ShellWording()))
    if parts.unseen:
        counts = listed([f"{name!r} ({count:,})" for name, count in parts.unseen.items()])
        say(
            f"{file}: words that the first rows do not have, by column and number of cells: {counts}; they count as one."
        )


def refuse_with_patterns(file: Path, **others: object) -> None:
    """Refuse options that need one table in memory, for a pattern of many files."""
    given = [name for name, value in others.items() if value]
    if is_pattern(file) and given:
        option = f"--{given[0]}"
        raise InputError(f"{option} takes one file, and {file} is a pattern; name one file, or leave {option} out.")
