"""``isopleth compare``: test whether two tables are from one distribution, and show where they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.commands import TableOptions
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.outputs import Outputs, answer, places
from isopleth.cli.reading import naming_labels, read_two
from isopleth.errors import InputError
from isopleth.tables.table import FileTable
from isopleth.tasks.two_sample.testing import TwoSampleResult, TwoSampleTest, compare_samples


def compare(
    a: Path,
    b: Path,
    options: TableOptions,
    ignore_missing: bool,
    groups: str | None,
    keep_times: bool,
    out: Path | None,
    plot: Path | None,
    top: int,
    n_resamples: int,
    row_numbers: bool,
    raw_text: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Test whether two tables differ and report where."""
    outputs = Outputs(rows=out, figure=plot, raw_text=raw_text, page=report)
    outputs.check(A=a, B=b)
    if groups is not None and groups in (options.columns or []):
        raise InputError(f"--columns names the groups {groups!r} too; leave them out of the columns to compare.")
    with Stages(["reading", "testing", "writing"]) as stage:
        stage("reading")
        with naming_labels("groups"):
            first, second, found = read_two(a, b, options, [] if groups is None else [groups])
        of_rows = None if groups is None else (first.labels[groups], second.labels[groups])
        stage("testing")
        with naming_columns(first.names):
            result = compare_samples(
                TwoSampleTest(keep_times=keep_times),
                first.frame,
                second.frame,
                n_resamples=n_resamples,
                compare_missing=not ignore_missing,
                groups=of_rows,
                random_state=0,
            )
        named = [str(name) for name in first.names if name not in result.set_aside]
        result = replace(result, names=named, labels=(a.name, b.name), schema=found, lines=(first.lines, second.lines))
        stage("writing")
        outputs.write(result, columns(result, (a, b), (first, second), row_numbers=row_numbers), sources=[a, b])
    answer(result, as_json, top, before=str(a), after=str(b))


def columns(
    result: TwoSampleResult, paths: tuple[Path, Path], tables: tuple[FileTable, FileTable], *, row_numbers: bool
) -> dict[str, np.ndarray]:
    """Return the columns of --out: file and place of each row, by line if both files have lines, and the fitted difference."""
    in_lines = all(table.lines is not None for table in tables)
    both = [places(len(table.values), table.lines if in_lines else None, row_numbers=row_numbers) for table in tables]
    files = np.repeat(np.array([str(path) for path in paths], dtype=object), result.sizes)
    where = {name: np.concatenate([each[name] for each in both]) for name in both[0]}
    return {"file": files, **where, "difference": np.concatenate([result.witness.x, result.witness.y])}
