"""``isopleth compare``: test whether two tables are from one distribution, and show where they differ."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.answers import answer, write_page
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.mixed import decided, kinds_in_words, read_two_mixed, rows_of
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import Outputs
from isopleth.cli.text import ColumnNumbers, aligned, counted, places, pvalue_text, shortened
from isopleth.errors import InputError, printable
from isopleth.io import Table, read_names
from isopleth.io.source import listed
from isopleth.io.tables import read_labels
from isopleth.plotting import plot_two_samples, save_figure
from isopleth.tables.write import write_table
from isopleth.tasks.two_sample.testing import TwoSampleResult, TwoSampleTest, compare_samples

_LEVEL = 0.05


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
    outputs = Outputs(rows=out, figure=plot, page=report)
    for name, path in (("A", a), ("B", b)):  # one after the other: a table may be compared with itself
        outputs.check({name: path})
    if groups is not None:
        if groups in (options.columns or []):
            raise InputError(f"--columns names the groups {groups!r} too; leave them out of the columns to compare.")
        options = options if options.columns else replace(options, exclude=[*(options.exclude or []), groups])
    with Stages(["reading", "testing", "columns", "writing"]) as stage:
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
        stage("columns")
        text = report_text(result, first, second, top)
        stage("writing")
        figure = plot_two_samples(result, first.names, (a.name, b.name)) if plot else None
        if out:
            files = np.repeat(np.array([str(a), str(b)], dtype=object), result.sizes)
            where = places_of_both(first, second, row_numbers=row_numbers)
            difference = np.concatenate([result.witness.x, result.witness.y])
            write_table(out, {"file": files, **where, "difference": difference}, raw_text=raw_text)
        if plot and figure is not None:
            save_figure(figure, plot)
        if report:
            write_page(result, report, [a, b], labels=(a.name, b.name))
    answer(text, result, as_json, top, before=str(a), after=str(b))


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


def places_of_both(first: Table, second: Table, *, row_numbers: bool) -> dict[str, np.ndarray]:
    """Return the columns that say where the rows of two tables stand in their files: by line if both files have lines."""
    in_lines = first.lines is not None and second.lines is not None
    both = [
        places(len(table.values), table.lines if in_lines else None, row_numbers=row_numbers)
        for table in (first, second)
    ]
    return {name: np.concatenate([one[name] for one in both]) for name in both[0]}


def report_text(result: TwoSampleResult, first: Table, second: Table, top: int) -> str:
    """Return the text that a run prints."""
    n, m = result.sizes
    columns = f"{counted(len(first.names), 'column')} ({shortened(first.names)})"
    head = f"{n:,} and {m:,} rows, {columns}: {kinds_in_words(first)}"
    verdict = "the samples differ" if result.pvalue <= _LEVEL else "no difference is shown"
    lines = [head, f"p-value {pvalue_text(result.pvalue)} ({result.n_resamples} permutations): {verdict}"]
    with suppress(InputError):  # too few rows to hold some out
        found = str(result.separation())
        lines.append(found[0].upper() + found[1:])
    return "\n\n".join(["\n".join(lines), _table(result, first, second, top), _meaning(result)])


def _table(result: TwoSampleResult, first: Table, second: Table, top: int) -> str:
    witness, changes = result.witness, result.changes(1.0)
    shares = dict(zip(changes["column"], changes["share"], strict=True))
    said = dict(zip(changes["column"], changes.get("description", changes["column"]), strict=True))
    cells = [["p-value", "share", "column", "A -> B"]]
    for j in witness.order[:top]:
        name = result.names[j]
        mark = " *" if witness.p_values[j] <= _LEVEL else ""
        change = (
            printable(said[name]) if "description" in changes else _numbers(first.values[:, j], second.values[:, j])
        )
        share = f"{100.0 * shares[name]:.1f} %"
        cells.append([pvalue_text(witness.p_values[j]), share, printable(first.names[j]) + mark, change])
    return aligned(cells)


def _numbers(first: np.ndarray, second: np.ndarray) -> str:
    """Return how a column of complete numbers changed."""
    samples = (first, second)
    numbers = ColumnNumbers(np.concatenate(samples))
    middles = [numbers.statistic(float(np.median(values))) for values in samples]
    spreads = [numbers.statistic(float(np.subtract(*np.percentile(values, [75, 25])))) for values in samples]
    return f"median: {' -> '.join(middles)};  spread: {' -> '.join(spreads)}"


def _meaning(result: TwoSampleResult) -> str:
    text = (
        "p-value of a column: it alone, adjusted for the number of columns, so that the chance to mark (*) any column falsely "
        "is at most 5 %.\nshare: at least this share of the cells would have to change to make the column alike in both.  "
        "spread: from the first quartile to the third."
    )
    if result.pvalue <= _LEVEL and not result.witness.columns():
        text += "\nNo column differs by itself: look for a difference in how columns go together."
    return text
