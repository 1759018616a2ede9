"""``isopleth cells``: find the cells of a table that do not fit their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.cli.fill import recorded
from isopleth.cli.run import Run, refuse_same
from isopleth.core.errors import InputError
from isopleth.files.file_table import FileTable
from isopleth.files.new_cells import refuse_lost_limits
from isopleth.files.write import FRAME_SUFFIXES, check_table_target
from isopleth.io.output_files import atomic_write, check_target
from isopleth.tables.rules import rules_of_json, rules_to_json
from isopleth.tasks.cellwise.detector import CellwiseDetector
from isopleth.tasks.cellwise.result import CellFindings


def cells(run: Run, file: Path, threshold: float | None, top: int, repaired: Path | None, rules: Path | None) -> None:
    """Find the wrong cells of a table and report them."""
    given = rules is not None and rules.exists()
    _check(run, file, repaired, None if given else rules)
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
    found = replace(detector.cells(table.frame), where=run.places_of(table))
    run.stage("writing")
    if repaired is not None:
        _write_repaired(run, detector, table, found, repaired)
    if rules is not None and not given:
        with atomic_write(rules) as out:
            out.write(rules_to_json(detector.rules_).encode())
    run.write(found, _columns(found), detector)
    run.answer(found, top)


def _check(run: Run, file: Path, repaired: Path | None, rules: Path | None) -> None:
    """Refuse files that cannot be written before the work."""
    refuse_same({"FILE": file, "--out": run.out, "--report": run.report, "--repaired": repaired, "--rules": rules})
    if repaired is not None:
        check_table_target(repaired, FRAME_SUFFIXES)
    if rules is not None:
        check_target(rules)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def _columns(found: CellFindings) -> dict[str, np.ndarray]:
    """Return the columns of --out, one row for each row of the table in its order."""
    order = np.empty(len(found), dtype=np.intp)
    order[found.order] = np.arange(len(found))
    return {name: _plain(np.asarray(values)[order]) for name, values in found.columns_of_rows().items()}


def _plain(values: np.ndarray) -> np.ndarray:
    """Return cells of several kinds as text, as files have one kind a column."""
    if values.dtype != object:
        return values
    return np.array(["" if value is None else str(value) for value in values], dtype=object)


def _write_repaired(run: Run, detector: CellwiseDetector, table: FileTable, found: CellFindings, path: Path) -> None:
    """Write the table with flagged cells replaced by what is usual there, in the form of their column; others as they stand."""
    changed = detector.repaired(table.frame)
    known = {name: np.ones(len(table), dtype=bool) for name in table.data.column_names}
    for name, flags in zip(found.names, found.flagged.T, strict=True):
        if flags.any():
            known[name] = ~flags
            rounded = recorded(table, name, changed.column(name))
            kept = compute.if_else(pa.array(flags), rounded, changed.column(name).cast(rounded.type, safe=False))
            changed = changed.set_column(changed.column_names.index(name), name, kept)
    replace_out = replace(run, out=path)
    replace_out.write_rows(changed.replace_schema_metadata(None), table, known)
