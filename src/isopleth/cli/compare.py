"""``isopleth compare``: test whether two tables are from one distribution, and show where they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.run import Run
from isopleth.cli.split import columns_of, read_parts
from isopleth.core.errors import InputError, listed, quoted
from isopleth.files.file_table import FileTable
from isopleth.io.input_files import names_of_files
from isopleth.tables.schema_changes import SchemaComparison, compare_schemas
from isopleth.tables.time_text import as_datetime
from isopleth.tasks import ShiftGiven
from isopleth.tasks.two_sample.result import TwoSampleResult
from isopleth.tasks.two_sample.testing import two_sample_test

# Text of the unit of a time that rows of a group share.
_FORMS = {"day": "%Y-%m-%d", "week": "%G-%V", "month": "%Y-%m"}


def compare(
    run: Run,
    a: Path,
    b: Path | None,
    split: str | None,
    ignore_missing: bool,
    groups: str | None,
    keep_times: bool,
    top: int,
    n_resamples: int,
    tolerance: float | None,
    target: str | None,
    given: list[str] | None,
    by: str | None,
) -> None:
    """Test whether two tables differ and report where."""
    if given and target is None:
        raise InputError("--given needs the column that is compared given others; name it by --target.")
    run.stage("reading")
    column, unit = (None, "") if groups is None else _column_of_groups(run, a, groups)
    if column is not None and column in (run.options.columns or []):
        raise InputError(f"--columns names the groups {column!r} too; leave them out of the columns to compare.")
    labels = {} if column is None else {column: "groups"}
    first, second, found, called = _two_tables(run, a, b, split, labels)
    of_rows = None
    if column is not None:
        each = [_in_units(column, table.labels[column], unit) for table in (first, second)]
        of_rows = labels_of_one_kind(*each)
    target, word = _target_of(target, [str(name) for name in first.names])
    if target is not None:  # wrong names are told before the test
        ShiftGiven.given_columns([str(name) for name in first.names], target, given)
        _refuse_several_words(first, target, word)
    if by is not None and by not in first.names:
        raise InputError(f"--by names {by!r}, which no column has; expected one of {quoted(map(str, first.names))}.")
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
    result = replace(result, names=named, labels=called, schema=found, lines=lines)
    result = _with_answer(result, target, word, given, by)
    run.stage("describing")
    result.explain()
    run.stage("writing")
    paths = (str(a), str(a if b is None else b))
    parts = None if split is None else called
    # The difference at every row takes a pass over all of them, and only the file holds it.
    run.write(result, columns(run, result, paths, parts, (first, second)) if run.out else None)
    before, after = parts or paths
    run.answer(result, top, before=before, after=after)


def _with_answer(
    result: TwoSampleResult, target: str | None, word: str | None, given: list[str] | None, by: str | None
) -> TwoSampleResult:
    """Return the result with the answer to --target and --by, if they were given."""
    if target is None:
        return result if by is None else replace(result, asked=result.in_groups(by))
    asked = result.shift(target, given, word=word) if by is None else result.shifts(target, by, given, word=word)
    return replace(result, asked=asked)


def _target_of(target: str | None, names: list[str]) -> tuple[str | None, str | None]:
    """Return the column of ``--target COL`` or ``--target COL=WORD``, and the word; a name may hold = itself."""
    if target is None or target in names or "=" not in target:
        return target, None
    name, _, word = target.partition("=")
    return name, word


def _refuse_several_words(table: FileTable, target: str, word: str | None) -> None:
    """Refuse a target of three words or more if none of them is named."""
    for column in table.schema.columns:
        if str(column.name) == target and column.kind == "categorical" and word is None and len(column.levels) > 2:
            ShiftGiven.refuse_words(target, [str(level) for level in column.levels])


def _two_tables(
    run: Run, a: Path, b: Path | None, split: str | None, labels: dict[str, str]
) -> tuple[FileTable, FileTable, SchemaComparison, tuple[str, str]]:
    """Read two tables, or two parts of one: both, how the schema changed, and what each is called."""
    if split is None:
        other = _other(a, b)
        before, after = names_of_files([a, other])
        return *run.read_two(a, other, labels), (before, after)
    first, second, called = read_parts(run, _alone(a, b), split, labels)
    return first, second, compare_schemas(first.schema, second.schema), called


def _other(a: Path, b: Path | None) -> Path:
    """Return the second table, which has to be given where one table is not divided."""
    if b is None:
        raise InputError(f"compare has one table, {a}; give a second one, or --split COL to compare two parts of it.")
    return b


def _alone(a: Path, b: Path | None) -> Path:
    """Return the table that is divided, which has to be the only one."""
    if b is not None:
        raise InputError(f"--split divides one table; leave {b} out, or leave --split out.")
    return a


def _column_of_groups(run: Run, a: Path, groups: str) -> tuple[str, str]:
    """Return the column of ``--groups``, and the unit of ``COL@day``, ``COL@week`` or ``COL@month``; a name may hold @ itself."""
    name, sign, unit = groups.rpartition("@")
    if sign and groups not in columns_of(run, a):
        if unit in _FORMS:
            return name, unit
        raise InputError(f"--groups {groups}: expected one of {listed([f'{name}@{unit}' for unit in _FORMS])}.")
    return groups, ""


def _in_units(name: str, labels: np.ndarray, unit: str) -> np.ndarray:
    """Return the day, week or month of each label, which is a time; labels as they are without a unit."""
    if not unit:
        return labels
    times = [as_datetime(label) for label in labels.tolist()]
    if None in times:
        odd = labels[times.index(None)]
        raise InputError(f"--groups {name}@{unit}: {odd} in column {name!r} is no time; name a column of times.")
    return np.array([time.strftime(_FORMS[unit]) for time in times if time is not None])


def labels_of_one_kind(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of two files as words if one of the files, a text, has words only: its 7 is the other's number 7."""
    if (first.dtype.kind == "U") == (second.dtype.kind == "U"):
        return first, second
    return _in_words(first), _in_words(second)


def _in_words(labels: np.ndarray) -> np.ndarray:
    return np.array([str(int(x) if isinstance(x, float) and x.is_integer() else x) for x in labels.tolist()])


def columns(
    run: Run,
    result: TwoSampleResult,
    paths: tuple[str, str],
    parts: tuple[str, str] | None,
    tables: tuple[FileTable, FileTable],
) -> dict[str, np.ndarray]:
    """Return the columns of --out: file, part and place of each row, by line if all have lines, and the fitted difference."""
    in_lines = all(table.lines is not None for table in tables)
    both = [run.places_of(table if in_lines else replace(table, lines=None)) for table in tables]
    files = [
        np.repeat(np.array([path], dtype=object), len(table)) if table.files is None else table.files
        for table, path in zip(tables, paths, strict=True)
    ]
    where = {
        name: np.concatenate([each[name] for each in both]) for name in both[0] if name != "file" and name in both[1]
    }
    part = {} if parts is None else {"part": np.repeat(np.array(parts, dtype=object), result.sizes)}
    difference = np.concatenate([result.witness.x, result.witness.y])
    return {"file": np.concatenate(files), **part, **where, "difference": difference}
