"""``isopleth changes``: where a series changes."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from isopleth.cli.columns import ColumnList
from isopleth.cli.messages import Stages, naming_columns, printable
from isopleth.cli.outputs import refuse_same
from isopleth.cli.report import aligned
from isopleth.io import Table, read_table
from isopleth.io.writing import check_table_target, write_table
from isopleth.plotting import check_figure_target, plot_change_points, save_figure
from isopleth.plotting.change_points import MEANINGS
from isopleth.tasks.change_points.detector import ChangePointDetector
from isopleth.tasks.change_points.result import ChangePoints

# Without click's own test of readability, which would speak before the sentences of the library.
_PATH = click.Path(path_type=Path, readable=False)


@click.command(short_help="Show where a series changes.")
@click.argument("file", type=_PATH)
@click.option("--column", "columns", type=ColumnList(), help="Use this column, or several as one series of vectors.")
@click.option(
    "--false-alarm-rate",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability with which a series without a change may show one.",
)
@click.option(
    "--out", type=_PATH, help="Write row, score and change (what changed, or nothing) of every row; .csv or .parquet."
)
@click.option("--plot", type=_PATH, help="Draw the series, its changes and the score curve; .png, .svg or .pdf.")
def changes(
    file: Path, columns: list[str] | None, false_alarm_rate: float, out: Path | None, plot: Path | None
) -> None:
    """Show where the series in FILE changes, a table with a row a step in .csv, .tsv, .parquet, .npy or .npz."""
    refuse_same({"FILE": file, "--out": out, "--plot": plot})
    if out:
        check_table_target(out)
    if plot:
        check_figure_target(plot)
    with Stages(["reading", "searching", "writing"]) as stage:
        stage("reading")
        table = read_table(file, columns)
        stage("searching")
        with naming_columns(table.names):
            detector = ChangePointDetector(false_alarm_rate=false_alarm_rate, random_state=0).fit(table.values)
        found = detector.result_
        stage("writing")
        if plot:
            save_figure(plot_change_points(found, table.names), plot)
        if out:
            write_table(out, _columns(found))
    click.echo(_report(found, table, false_alarm_rate))


def _columns(found: ChangePoints) -> dict[str, np.ndarray]:
    kinds = np.full(len(found.series), "", dtype=object)
    kinds[found.places] = found.kinds
    return {"row": np.arange(1, len(found.series) + 1), "score": found.scores, "change": kinds}


def _report(found: ChangePoints, table: Table, rate: float) -> str:
    rows, count = len(found.series), len(found)
    names = ", ".join(printable(name) for name in table.names[:6]) + (", ..." if len(table.names) > 6 else "")
    header = f"{rows} rows of {names}: {count or 'no'} change{'' if count == 1 else 's'} (false-alarm rate {rate:.3g})"
    if not count:
        return header
    lines = table.lines
    cells = [["row", *["line"] * (lines is not None), "score", "change of"]]
    for place, kind in zip(found.places, found.kinds, strict=True):
        score = found.scores[place]
        where = [str(place + 1), *([] if lines is None else [str(lines[place])])]
        cells.append([*where, "-" if np.isnan(score) else f"{score:.4g}", MEANINGS[kind]])
    meaning = "row: the first one of what is new. score: - where a window would leave the series."
    return f"{header}\n\n{aligned(cells)}\n\n{meaning}"
