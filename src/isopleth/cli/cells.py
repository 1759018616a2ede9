"""``isopleth cells``: find the cells of a table that do not fit their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.cli.fill import recorded
from isopleth.cli.run import Run, refuse_same
from isopleth.core.errors import InputError
from isopleth.core.rows import mask_of_cells
from isopleth.files.file_table import FileTable
from isopleth.files.new_cells import as_written, refuse_lost_limits
from isopleth.files.table_parts import read_files
from isopleth.files.write import FRAME_SUFFIXES, check_table_target, write_table
from isopleth.io.output_files import atomic_write, check_target
from isopleth.results.text import counted
from isopleth.tables.rules import rules_of_json, rules_to_json
from isopleth.tasks.cellwise.detector import CellwiseDetector
from isopleth.tasks.cellwise.result import CellFindings


def cells(
    run: Run,
    file: Path,
    threshold: float | None,
    top: int,
    repaired: Path | None,
    changes: Path | None,
    rules: Path | None,
) -> None:
    """Find the wrong cells of a table and report them."""
    given = rules is not None and rules.exists()
    _check(run, file, repaired, changes, None if given else rules)
    known = rules_of_json(_text_of(rules), str(rules)) if rules is not None and given else None
    run.stage("reading")
    table = run.read(file, cells=True)
    if repaired is not None:
        refuse_lost_limits(repaired, table)
    run.stage("fitting")
    detector = CellwiseDetector(threshold="auto" if threshold is None else threshold, random_state=0)
    detector.fit(table.frame)
    if known is not None:
        detector.use_rules(known)
    run.stage("judging")
    found = replace(detector.cells(), where=run.places_of(table))  # of the fit, whose rows are not encoded again
    run.stage("writing")
    if repaired is not None or changes is not None:
        whole, rows = _repaired(run, file, detector.repaired(table.frame), table, found)
        masks = _kept(whole, found)
        if repaired is not None:
            replace(run, out=repaired).write_rows(rows, whole, masks)
        if changes is not None:
            _write_changes(run, found, whole, as_written(whole, rows, masks, {}, text=True), changes)
        found = replace(found, written=_of_files(len(found.repairs), repaired, changes))
    if rules is not None and not given:
        with atomic_write(rules) as out:
            out.write(rules_to_json(detector.rules_).encode())
    run.write(found, _columns(found), detector)
    run.answer(found, top)


def _check(run: Run, file: Path, repaired: Path | None, changes: Path | None, rules: Path | None) -> None:
    """Refuse files that cannot be written before the work."""
    outputs = {"--out": run.out, "--report": run.report, "--repaired": repaired, "--changes": changes, "--rules": rules}
    refuse_same({"FILE": file, **outputs})
    if repaired is not None:
        check_table_target(repaired, FRAME_SUFFIXES)
    if changes is not None:
        check_table_target(changes)
    if rules is not None:
        check_target(rules)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def _columns(found: CellFindings) -> dict[str, ColumnOfRows]:
    """Return the columns of --out, one row for each row of the table in its order, which are made some rows at a time."""
    rows = RowsInBlocks(found)
    return {name: ColumnOfRows(rows, name) for name in rows[slice(0, 1)]}


class RowsInBlocks:
    """Worst cell of each row as columns, of which one block is held."""

    def __init__(self, found: CellFindings) -> None:
        self.found = found
        self._held, self._block = slice(0, 0), dict[str, np.ndarray]()

    def __getitem__(self, part: slice) -> dict[str, np.ndarray]:
        if part != self._held:
            columns = self.found.columns_of_rows(np.arange(len(self.found))[part])
            self._held, self._block = part, {name: _plain(np.asarray(values)) for name, values in columns.items()}
        return self._block


@dataclass(frozen=True)
class ColumnOfRows:
    """One column of rows that are made in blocks."""

    rows: RowsInBlocks
    name: str

    def __len__(self) -> int:
        return len(self.rows.found)

    def __getitem__(self, part: slice) -> np.ndarray:
        return self.rows[part][self.name]


def _plain(values: np.ndarray) -> np.ndarray:
    """Return cells of several kinds as text, as files have one kind a column."""
    if values.dtype != object:
        return values
    return np.array(["" if value is None else str(value) for value in values], dtype=object)


def _repaired(
    run: Run, file: Path, changed: pa.Table, table: FileTable, found: CellFindings
) -> tuple[FileTable, pa.Table]:
    """Return the file with all its columns, those too that were not asked for, and its rows with the replaced cells."""
    for name, flags in zip(found.names, mask_of_cells(found.repairs, found.scores.shape).T, strict=True):
        if flags.any():
            rounded = recorded(table, name, changed.column(name))
            kept = compute.if_else(pa.array(flags), rounded, changed.column(name).cast(rounded.type, safe=False))
            changed = changed.set_column(changed.column_names.index(name), name, kept)
    whole = table
    if run.options.exclude or run.options.columns is not None:
        whole = read_files(file, replace(run.options, columns=None, exclude=[], bad_cells="missing"), 2, cells=True)
    columns = {
        name: changed.column(name) if name in changed.column_names else whole.data.column(name)
        for name in whole.data.column_names
    }
    return whole, pa.table(columns)


def _of_files(count: int, repaired: Path | None, changes: Path | None) -> str:
    """Return the sentence about the files that were written."""
    cells = counted(count, "cell")
    if repaired is None:
        return f"{changes} lists the {cells} that --repaired would replace."
    how = f"{changes} lists them" if changes else "--changes FILE lists them"
    return f"{repaired} has {cells} replaced: {how}, with what stood there and why."


def _kept(whole: FileTable, found: CellFindings) -> dict[str, np.ndarray]:
    """Return masks of the cells that stay as they stand in the file, by column."""
    kept = {name: np.ones(len(whole), dtype=bool) for name in whole.data.column_names}
    return kept | dict(zip(found.names, ~mask_of_cells(found.repairs, found.scores.shape).T, strict=True))


def _write_changes(run: Run, found: CellFindings, whole: FileTable, written: pa.Table, path: Path) -> None:
    """Write where cells are replaced, as they stand in the file and in the repaired one, and why."""
    columns, cells = found.changes(), sorted(found.repairs)
    for key, source in (("old", whole.cells), ("new", written)):
        columns[key] = [
            "" if (cell := source.column(found.names[j])[i].as_py()) is None else str(cell) for i, j in cells
        ]
    arrays = {name: np.asarray(values, dtype=object if len(values) == 0 else None) for name, values in columns.items()}
    write_table(path, arrays, raw_text=run.raw_text)
