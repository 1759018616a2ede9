"""``isopleth compare``: test whether two tables are from one distribution, and show where they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.mixed import decided, read_two_mixed, rows_of
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import Outputs, answer, places
from isopleth.errors import InputError
from isopleth.io import Table, read_names
from isopleth.io.source import listed
from isopleth.io.tables import read_labels
from isopleth.tasks.two_sample.testing import TwoSampleResult, TwoSampleTest, compare_samples


def compare(
    a: Path,
    b: Path,
    options: TableOptions,
    ignore_missing: bool,
    groups: str | None,
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
    if groups is not None:
        if groups in (options.columns or []):
            raise InputError(f"--columns names the groups {groups!r} too; leave them out of the columns to compare.")
        options = options if options.columns else replace(options, exclude=[*(options.exclude or []), groups])
    with Stages(["reading", "testing", "writing"]) as stage:
        stage("reading")
        first, second = read_both(a, b, options)
        of_rows = None if groups is None else (read_labels(a, groups), read_labels(b, groups))
        stage("testing")
        with naming_columns(first.names):
            result = compare_samples(
                decided(TwoSampleTest(), first),
                rows_of(first),
                rows_of(second),
                n_resamples=n_resamples,
                compare_missing=not ignore_missing,
                groups=of_rows,
                random_state=0,
            )
        result = replace(result, names=[str(name) for name in first.names], labels=(a.name, b.name))
        stage("writing")
        outputs.write(result, columns(result, (a, b), (first, second), row_numbers=row_numbers), sources=[a, b])
    answer(result, as_json, top, before=str(a), after=str(b))


def columns(
    result: TwoSampleResult, paths: tuple[Path, Path], tables: tuple[Table, Table], *, row_numbers: bool
) -> dict[str, np.ndarray]:
    """Return the columns of --out: file and place of each row, by line if both files have lines, and the fitted difference."""
    in_lines = all(table.lines is not None for table in tables)
    both = [places(len(table.values), table.lines if in_lines else None, row_numbers=row_numbers) for table in tables]
    files = np.repeat(np.array([str(path) for path in paths], dtype=object), result.sizes)
    where = {name: np.concatenate([each[name] for each in both]) for name in both[0]}
    return {"file": files, **where, "difference": np.concatenate([result.witness.x, result.witness.y])}


def read_both(a: Path, b: Path, options: TableOptions) -> tuple[Table, Table]:
    """Read two tables with the same columns in the same order.

    Raises
    ------
    InputError
        If they have not the same columns; the message names those that one lacks.
    """
    names_a, names_b = read_names(a), read_names(b)
    by_name = names_a is not None and names_b is not None
    if names_a is not None and names_b is not None and options.columns is None:
        lacks = [
            (path, [n for n in one if n not in other and n not in (options.exclude or [])])
            for path, one, other in ((b, names_a, names_b), (a, names_b, names_a))
        ]
        missing = [f"{path} lacks {listed(names)}" for path, names in lacks if names]
        if not set(names_a) & set(names_b):
            raise InputError(
                f"{a} and {b} have no column in common: {listed(names_a, most=4)}, and {listed(names_b, most=4)}; give the "
                "columns to compare the same names."
            )
        if missing:
            raise InputError(f"{' and '.join(missing)}; choose columns that both have with --columns.")
    return read_two_mixed(a, b, options, by_name=by_name)
