"""``isopleth compare``: test whether two tables are from one distribution, and show where they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.run import Run
from isopleth.core.errors import InputError
from isopleth.files.file_table import FileTable
from isopleth.tasks.two_sample.result import TwoSampleResult
from isopleth.tasks.two_sample.testing import two_sample_test


def compare(
    run: Run,
    a: Path,
    b: Path,
    ignore_missing: bool,
    groups: str | None,
    keep_times: bool,
    top: int,
    n_resamples: int,
    tolerance: float | None,
) -> None:
    """Test whether two tables differ and report where."""
    if groups is not None and groups in (run.options.columns or []):
        raise InputError(f"--columns names the groups {groups!r} too; leave them out of the columns to compare.")
    run.stage("reading")
    first, second, found = run.read_two(a, b, {} if groups is None else {groups: "groups"})
    of_rows = None if groups is None else labels_of_one_kind(first.labels[groups], second.labels[groups])
    run.stage("testing")
    result = two_sample_test(
        first.frame,
        second.frame,
        n_resamples=n_resamples,
        compare_missing=not ignore_missing,
        groups=of_rows,
        tolerance=tolerance,
        keep_times=keep_times,
        random_state=0,
    )
    named = [str(name) for name in first.names if name not in result.set_aside]
    lines = (first.lines, second.lines) if first.files is None and second.files is None else (None, None)
    result = replace(result, names=named, labels=(a.name, b.name), schema=found, lines=lines)
    run.stage("writing")
    run.write(result, columns(run, result, (a, b), (first, second)))
    run.answer(result, top, before=str(a), after=str(b))


def labels_of_one_kind(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of two files as words if one of the files, a text, has words only: its 7 is the other's number 7."""
    if (first.dtype.kind == "U") == (second.dtype.kind == "U"):
        return first, second
    return _in_words(first), _in_words(second)


def _in_words(labels: np.ndarray) -> np.ndarray:
    return np.array([str(int(x) if isinstance(x, float) and x.is_integer() else x) for x in labels.tolist()])


def columns(
    run: Run, result: TwoSampleResult, paths: tuple[Path, Path], tables: tuple[FileTable, FileTable]
) -> dict[str, np.ndarray]:
    """Return the columns of --out: file and place of each row, by line if both files have lines, and the fitted difference."""
    in_lines = all(table.lines is not None for table in tables)
    both = [run.places_of(table if in_lines else replace(table, lines=None)) for table in tables]
    names = np.repeat(np.array([str(path) for path in paths], dtype=object), result.sizes)
    files = [
        given if table.files is None else table.files
        for table, given in zip(tables, np.split(names, [result.sizes[0]]), strict=True)
    ]
    where = {
        name: np.concatenate([each[name] for each in both]) for name in both[0] if name != "file" and name in both[1]
    }
    return {"file": np.concatenate(files), **where, "difference": np.concatenate([result.witness.x, result.witness.y])}
