"""``isopleth compare``: test whether two tables are from one distribution, and show where they differ."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from isopleth.cli.columns import read_numbers
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import Outputs
from isopleth.cli.text import ColumnNumbers, aligned, counted, p_value, places, shortened
from isopleth.errors import InputError, printable
from isopleth.io import Table, read_names, read_table
from isopleth.io.source import listed
from isopleth.io.writing import write_table
from isopleth.plotting import plot_two_samples, save_figure
from isopleth.tasks.two_sample.testing import TwoSampleResult, two_sample_test

_LEVEL = 0.05
_FEWEST_FOR_INTERVAL = 3


def compare(
    a: Path,
    b: Path,
    options: TableOptions,
    out: Path | None,
    plot: Path | None,
    top: int,
    permutations: int,
    row_numbers: bool,
    raw_text: bool,
) -> None:
    """Test whether two tables differ and report where."""
    outputs = Outputs(rows=out, figure=plot)
    for name, path in (("A", a), ("B", b)):  # one after the other: a table may be compared with itself
        outputs.check({name: path})
    with Stages(["reading", "testing", "columns", "interval", "writing"]) as stage:
        stage("reading")
        first, second = read_both(a, b, options)
        stage("testing")
        with naming_columns(first.names):
            result = two_sample_test(first.values, second.values, n_permutations=permutations, random_state=0)
        stage("columns")
        witness = result.witness
        stage("interval")
        interval = distance(result)
        stage("writing")
        figure = plot_two_samples(result, first.names, (a.name, b.name)) if plot else None
        if out:
            files = np.repeat(np.array([str(a), str(b)], dtype=object), result.sizes)
            where = places_of_both(first, second, row_numbers=row_numbers)
            difference = np.concatenate([witness.x, witness.y])
            write_table(out, {"file": files, **where, "difference": difference}, raw_text=raw_text)
        if plot and figure is not None:
            save_figure(figure, plot)
    click.echo(report(result, first, second, interval, top))


def read_both(a: Path, b: Path, options: TableOptions) -> tuple[Table, Table]:
    """Read two tables with the same columns in the same order.

    Raises
    ------
    InputError
        If they have not the same columns; the message names those that one lacks.
    """
    names_a, names_b = read_names(a), read_names(b)
    if names_a is None or names_b is None or options.columns is not None:
        first, second = read_numbers(a, options, min_rows=1), read_numbers(b, options, min_rows=1)
        if len(first.names) != len(second.names):
            raise InputError(
                f"{a} has {len(first.names)} columns and {b} has {len(second.names)}; choose the same ones with --columns."
            )
        return first, second
    first = read_numbers(a, options, min_rows=1)
    lacks = [
        (path, [n for n in one if n not in other and n not in (options.exclude or [])])
        for path, one, other in ((b, names_a, names_b), (a, names_b, names_a))
    ]
    missing = [f"{path} lacks {listed(names)}" for path, names in lacks if names]
    if missing:
        raise InputError(f"{' and '.join(missing)}; choose columns that both have with --columns.")
    return first, read_table(b, first.names, min_rows=1, decimal=options.decimal)


def places_of_both(first: Table, second: Table, *, row_numbers: bool) -> dict[str, np.ndarray]:
    """Return the columns that say where the rows of two tables stand in their files: by line if both files have lines."""
    in_lines = first.lines is not None and second.lines is not None
    both = [
        places(len(table.values), table.lines if in_lines else None, row_numbers=row_numbers)
        for table in (first, second)
    ]
    return {name: np.concatenate([one[name] for one in both]) for name in both[0]}


def distance(result: TwoSampleResult) -> str:
    """Return the interval for the squared L2 distance as a line of text; empty where there is none."""
    if min(result.sizes) < _FEWEST_FOR_INTERVAL or not np.isfinite(result.length_scale).any():
        return ""
    try:
        low, high = result.confidence_interval()
    except InputError:  # some samples that can be tested leave no density to fit
        return ""
    return f"squared L2 distance of the densities: {low:.3g} to {high:.3g} (95 % confidence)"


def report(result: TwoSampleResult, first: Table, second: Table, interval: str, top: int) -> str:
    """Return the text that a run prints."""
    names = [printable(name) for name in first.names]
    n, m = result.sizes
    head = f"{n:,} and {m:,} rows, {counted(len(names), 'column')} ({shortened(first.names)})"
    verdict = "the samples differ" if result.pvalue <= _LEVEL else "no difference is shown"
    lines = [head, f"p-value {p_value(result.pvalue)} ({result.n_permutations} permutations): {verdict}"]
    if interval:
        lines.append(interval)
    return "\n\n".join(["\n".join(lines), _table(result, first, second, names, top), _meaning(result)])


def _table(result: TwoSampleResult, first: Table, second: Table, names: list[str], top: int) -> str:
    witness = result.witness
    cells = [["p-value", "median A", "median B", "spread A", "spread B", "column"]]
    for j in witness.order[:top]:
        samples = [table.values[:, j] for table in (first, second)]
        numbers = ColumnNumbers(np.concatenate(samples))
        middles = [numbers.statistic(float(np.median(values))) for values in samples]
        spreads = [numbers.statistic(float(np.subtract(*np.percentile(values, [75, 25])))) for values in samples]
        mark = " *" if witness.pvalues[j] <= _LEVEL else ""
        cells.append([p_value(witness.pvalues[j]), *middles, *spreads, names[j] + mark])
    return aligned(cells)


def _meaning(result: TwoSampleResult) -> str:
    text = (
        "p-value of a column: it alone, adjusted for the number of columns, so that the chance to mark (*) any column falsely "
        "is at most 5 %. spread: from the first quartile to the third."
    )
    if result.pvalue <= _LEVEL and not result.witness.columns():
        text += "\nNo column differs by itself: look for a difference in how columns go together."
    return text
