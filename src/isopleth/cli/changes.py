"""``isopleth changes``: find the changes of a series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import Outputs, answer, places
from isopleth.cli.times import read_series
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
    outputs = Outputs(rows=out, figure=plot, page=report)
    outputs.check(FILE=file)
    with Stages(["reading", "searching", "writing"]) as stage:
        stage("reading")
        table, times = read_series(file, options, time)
        stage("searching")
        with naming_columns(table.names):
            detector = ChangePointDetector(false_alarm_rate=false_alarm_rate, random_state=0).fit(
                table.values, times=times
            )
        where = places(len(table.values), table.lines, row_numbers=row_numbers)
        found = replace(detector.result_, where=where, names=table.names)
        stage("writing")
        outputs.write(found, columns(found), sources=[file])
    answer(found, as_json, None)


def columns(found: ChangePoints) -> dict[str, np.ndarray]:
    """Return the columns of --out: place, time and segment of each step, and what changed there, or nothing."""
    kinds = np.full(len(found.series), "", dtype=object)
    kinds[found.change_points] = found.kinds
    times = {} if found.times is None else {"time": found.times}
    segments = np.searchsorted(found.change_points, np.arange(len(found.series)), side="right")
    return found.where | times | {"segment": segments, "change": kinds}
