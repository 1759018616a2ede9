"""``isopleth changes``: find the changes of a series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.answers import answer, check_report, write_page
from isopleth.cli.columns import read_numbers
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import refuse_same
from isopleth.cli.text import aligned, counted, places, shortened
from isopleth.cli.times import read_times, time_column
from isopleth.io import Table
from isopleth.plotting import check_figure_target, plot_change_points, save_figure
from isopleth.plotting.change_points import MEANINGS
from isopleth.tables.write import check_table_target, write_table
from isopleth.tasks.change_points.detector import ChangePointDetector, ChangePoints


def changes(
    file: Path,
    options: TableOptions,
    time: str | None,
    false_alarm_rate: float,
    out: Path | None,
    plot: Path | None,
    row_numbers: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Find the changes of a series and report them."""
    refuse_same({"FILE": file, "--out": out, "--plot": plot, "--report": report})
    check_report(report)
    if out:
        check_table_target(out)
    if plot:
        check_figure_target(plot)
    with Stages(["reading", "searching", "writing"]) as stage:
        stage("reading")
        column = time_column(file, options) if time is None else time
        times = None if column is None else read_times(file, column, options)
        table = read_numbers(file, options, but=column)
        stage("searching")
        with naming_columns(table.names):
            detector = ChangePointDetector(false_alarm_rate=false_alarm_rate, random_state=0).fit(
                table.values, times=times
            )
        where = places(len(table.values), table.lines, row_numbers=row_numbers)
        found = replace(detector.result_, where=where, names=table.names)
        stage("writing")
        if plot:
            save_figure(plot_change_points(found, table.names), plot)
        if out:
            write_table(out, _columns(found, table, row_numbers))
        if report:
            write_page(found, report, [file])
    answer(_report(found, table, false_alarm_rate, row_numbers), found, as_json)


def _columns(found: ChangePoints, table: Table, row_numbers: bool) -> dict[str, np.ndarray]:
    kinds = np.full(len(found.series), "", dtype=object)
    kinds[found.places] = found.kinds
    segments = np.searchsorted(found.places, np.arange(len(found.series)), side="right")
    where = places(len(found.series), table.lines, row_numbers=row_numbers)
    return where | _times(found) | {"segment": segments, "change": kinds}


def _times(found: ChangePoints) -> dict[str, np.ndarray]:
    return {} if found.times is None else {"time": found.times}


def _report(found: ChangePoints, table: Table, rate: float, row_numbers: bool) -> str:
    rows, count = len(found.series), len(found)
    found_so_many = counted(count, "change") if count else "no changes"
    header = f"{counted(rows, 'row')} of {shortened(table.names)}: {found_so_many} (false-alarm rate {rate:.3g})"
    if not count:
        return header
    where = places(rows, table.lines, row_numbers=row_numbers) | _times(found)
    counts = next(iter(where.values()))
    intervals = np.empty((count, 2), dtype=int) if found.intervals is None else found.intervals
    cells = [[*where, "90 % interval", "change of"]]
    for place, (low, high), kind in zip(found.places, intervals, found.kinds, strict=True):
        steps = [str(column[place]) for column in where.values()]
        cells.append([*steps, f"{counts[low]}-{counts[high]}", MEANINGS[kind]])
    meaning = f"{next(iter(where))}: the first one after the change."
    return f"{header}\n\n{aligned(cells)}\n\n{meaning}"
