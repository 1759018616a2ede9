"""``isopleth monitor``: alarms when rows from standard input stop looking like a reference."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import numpy as np

from isopleth.cli.columns import ColumnList
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.model_file import matched_columns, of_this_version
from isopleth.cli.stream import RowReader
from isopleth.errors import InputError
from isopleth.io import Table, check_target, load, read_table, save
from isopleth.io.atomic import remove_leftovers
from isopleth.io.partial import sole_run
from isopleth.rows import row_keys
from isopleth.tasks.drift.alarms import DriftAlarms
from isopleth.tasks.drift.monitor import DriftMonitor

# Without click's own test of readability, which would speak before the sentences of the library.
_PATH = click.Path(path_type=Path, readable=False)


@click.command(short_help="Watch rows from standard input for a change.")
@click.option("--reference", type=_PATH, required=True, help="Table of rows as they are while nothing changes.")
@click.option("--state", type=_PATH, help="Keep the place in the stream in this file, and go on there if it exists.")
@click.option(
    "--replay", is_flag=True, help="Standard input begins at its first row again: skip rows counted in --state."
)
@click.option("--window", type=click.IntRange(min=2), default=50, show_default=True, help="Rows compared at a time.")
@click.option(
    "--run-length",
    type=click.FloatRange(min=0, min_open=True),
    default=10_000,
    show_default=True,
    help="Mean number of rows until a false alarm.",
)
@click.option("--columns", type=ColumnList(), help="Use these columns only.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each alarm, and nothing else.")
def monitor(
    reference: Path,
    state: Path | None,
    replay: bool,
    window: int,
    run_length: float,
    columns: list[str] | None,
    as_json: bool,
) -> None:
    """Read rows in CSV from standard input and say, as they come, where they stop looking like the reference.

    Rows are counted from 1. With --state the run can be killed at any moment and started again. An alarm is printed before
    the file is written, so that none is lost; after a kill the last ones may be printed twice, with the same row. A second run
    with the same --state is refused while the first one lasts.
    """
    if replay and state is None:
        raise InputError("--replay skips the rows that a state file has counted: name it with --state.")
    if state is not None:
        check_target(state)
        click.get_current_context().with_resource(sole_run(state))
        remove_leftovers(state)  # of runs that were killed
    with Stages(["reading", "fitting"]) as stage:
        stage("reading")
        table = read_table(reference, columns)
        stage("fitting")
        watching = _known(state, table, window, run_length) if state and state.exists() else None
        if watching is None:
            watching = _fitted(table, window, run_length)
            if state is not None:
                save(watching, state)
    skip = watching.state_.rows if replay else 0
    for batch in RowReader(table.names, table.named).batches(sys.stdin.buffer):
        skipped, skip = min(skip, len(batch.values)), max(0, skip - len(batch.values))
        if skipped < len(batch.values):
            with matched_columns():
                _print(watching.update(batch.values[skipped:]), as_json)
            if state is not None:
                save(watching, state)
        if batch.error is not None:
            raise batch.error
    if not as_json:
        rows, alarms = watching.state_.rows, watching.state_.alarms
        click.echo(f"{rows:,} row{'s' * (rows != 1)}, {alarms:,} alarm{'s' * (alarms != 1)}")


def _fitted(table: Table, window: int, run_length: float) -> DriftMonitor:
    """A monitor that gives the same answers each time."""
    with naming_columns(table.names):
        watching = DriftMonitor(window, run_length, random_state=0).fit(table.values)
    if table.named:
        watching.feature_names_in_ = np.array(table.names, dtype=object)
    return watching


def _known(state: Path, table: Table, window: int, run_length: float) -> DriftMonitor:
    """The monitor in a state file.

    Raises
    ------
    InputError
        If it watches with another reference or other parameters.
    """
    watching = load(state)
    if not isinstance(watching, DriftMonitor):
        raise InputError(f"{state} holds a {type(watching).__name__} and no monitor; name another file with --state.")
    with of_this_version(state):
        had = (watching.window, watching.expected_run_length)
        same = watching._reference_key == int(row_keys(table.values).sum())
    if had != (window, run_length):
        raise InputError(
            f"{state} was made with --window {had[0]} --run-length {had[1]:g}; give the same ones, or another file."
        )
    if not same:
        raise InputError(
            f"{state} was made with another reference than {table.source}, or with other columns of it; give the same ones, "
            "or another file."
        )
    # What does not fit shows at the first row, and not in the midst of a stream.
    with of_this_version(state), matched_columns():
        place = watching.state_
        watching.update(table.values[:1])
        watching.state_ = place
    return watching


def _print(alarms: DriftAlarms, as_json: bool) -> None:
    """Alarms at once: whoever reads them may be waiting."""
    for row, first, statistic, threshold in zip(*alarms.table().values(), strict=True):
        if as_json:
            values = {"row": int(row) + 1, "first_row": int(first) + 1}
            click.echo(json.dumps(values | {"statistic": float(statistic), "threshold": float(threshold)}))
        else:
            click.echo(
                f"row {row + 1}: rows {first + 1} to {row + 1} differ from the reference "
                f"(distance {statistic:.4g}, threshold {threshold:.4g})"
            )
