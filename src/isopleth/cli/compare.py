"""``isopleth compare``: whether two tables are from one distribution, and where they differ."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from isopleth.cli.columns import ColumnList
from isopleth.cli.messages import Stages, naming_columns, printable
from isopleth.cli.outputs import Outputs
from isopleth.errors import InputError
from isopleth.io import Table, read_names, read_table
from isopleth.io.selection import listed
from isopleth.io.writing import write_table
from isopleth.plotting import plot_two_samples, save_figure
from isopleth.tasks.two_sample.result import TwoSampleResult
from isopleth.tasks.two_sample.testing import two_sample_test

_PATH = click.Path(path_type=Path, readable=False)
_LEVEL = 0.05
_FEWEST_FOR_INTERVAL = 3
_COLUMNS_IN_HEADER = 6


@click.command(short_help="Test whether two tables differ, and show where.")
@click.argument("a", type=_PATH)
@click.argument("b", type=_PATH)
@click.option("--columns", type=ColumnList(), help="Use these columns only.")
@click.option("--out", type=_PATH, help="Write file, row and fitted difference of every row; .csv or .parquet.")
@click.option("--plot", type=_PATH, help="Draw columns and rows; .png, .svg or .pdf.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Show so many columns.")
@click.option(
    "--permutations", type=click.IntRange(min=1), default=999, show_default=True, help="Permute the rows so often."
)
def compare(
    a: Path, b: Path, columns: list[str] | None, out: Path | None, plot: Path | None, top: int, permutations: int
) -> None:
    """Test whether the rows of A and B, tables in .csv, .tsv, .parquet, .npy or .npz, are from one distribution.

    Columns are matched by name where both files have names, and by position otherwise.
    """
    outputs = Outputs(rows=out, figure=plot)
    for name, path in (("A", a), ("B", b)):  # one after the other: a table may be compared with itself
        outputs.check({name: path})
    with Stages(["reading", "testing", "columns", "interval", "writing"]) as stage:
        stage("reading")
        first, second = read_both(a, b, columns)
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
            rows = np.concatenate([np.arange(1, size + 1) for size in result.sizes])
            write_table(out, {"file": files, "row": rows, "difference": np.concatenate([witness.x, witness.y])})
        if plot and figure is not None:
            save_figure(figure, plot)
    click.echo(report(result, first, second, interval, top))


def read_both(a: Path, b: Path, columns: list[str] | None) -> tuple[Table, Table]:
    """Two tables with the same columns in the same order.

    Raises
    ------
    InputError
        If they have not the same columns; the message names those that one lacks.
    """
    names_a, names_b = read_names(a), read_names(b)
    if names_a is None or names_b is None or columns is not None:
        first, second = read_table(a, columns, min_rows=1), read_table(b, columns, min_rows=1)
        if len(first.names) != len(second.names):
            raise InputError(
                f"{a} has {len(first.names)} columns and {b} has {len(second.names)}; choose the same ones with --columns."
            )
        return first, second
    first = read_table(a, min_rows=1)
    lacks = [
        (path, [n for n in one if n not in other])
        for path, one, other in ((b, names_a, names_b), (a, names_b, names_a))
    ]
    missing = [f"{path} lacks {listed(names)}" for path, names in lacks if names]
    if missing:
        raise InputError(f"{' and '.join(missing)}; choose columns that both have with --columns.")
    return first, read_table(b, first.names, min_rows=1)


def distance(result: TwoSampleResult) -> str:
    """The interval for the squared L2 distance as a line of text; empty where there is none."""
    if min(result.sizes) < _FEWEST_FOR_INTERVAL or not np.isfinite(result.length_scale).any():
        return ""
    try:
        low, high = result.confidence_interval()
    except InputError:  # some samples that can be tested leave no density to fit
        return ""
    return f"squared L2 distance of the densities: {low:.3g} to {high:.3g} (95 % confidence)"


def report(result: TwoSampleResult, first: Table, second: Table, interval: str, top: int) -> str:
    """The text that a run prints."""
    names = [printable(name) for name in first.names]
    shown = ", ".join(names[:_COLUMNS_IN_HEADER]) + (", ..." if len(names) > _COLUMNS_IN_HEADER else "")
    n, m = result.sizes
    head = f"{n} and {m} rows, {len(names)} column{'s' if len(names) > 1 else ''} ({shown})"
    verdict = "the samples differ" if result.pvalue <= _LEVEL else "no difference is shown"
    lines = [head, f"p-value {result.pvalue:.3g} ({result.n_permutations} permutations): {verdict}"]
    if interval:
        lines.append(interval)
    return "\n\n".join(["\n".join(lines), _table(result, first, second, names, top), _meaning(result)])


def _table(result: TwoSampleResult, first: Table, second: Table, names: list[str], top: int) -> str:
    witness = result.witness
    cells = [["p-value", "median A", "median B", "spread A", "spread B", "column"]]
    for j in witness.order[:top]:
        samples = [table.values[:, j] for table in (first, second)]
        middles = [f"{np.median(values):.4g}" for values in samples]
        spreads = [f"{np.subtract(*np.percentile(values, [75, 25])):.4g}" for values in samples]
        mark = " *" if witness.pvalues[j] <= _LEVEL else ""
        cells.append([f"{witness.pvalues[j]:.3g}", *middles, *spreads, names[j] + mark])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join([*(cell.rjust(width) for cell, width in zip(line[:-1], widths, strict=False)), line[-1]])
        for line in cells
    )


def _meaning(result: TwoSampleResult) -> str:
    text = (
        "p-value of a column: it alone, adjusted for the number of columns, so that the chance to mark (*) any column falsely "
        "is at most 5 %. spread: from the first quartile to the third."
    )
    if result.pvalue <= _LEVEL and not result.witness.columns():
        text += "\nNo column differs by itself: look for a difference in how columns go together."
    return text
