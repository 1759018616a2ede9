"""``isopleth monitor``: print alarms when rows from standard input differ from a reference."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from isopleth.cli.answers import check_report, write_page
from isopleth.cli.columns import read_numbers
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.models import matched_columns, of_this_version
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import refuse_same
from isopleth.cli.stream import RowReader
from isopleth.cli.text import counted
from isopleth.errors import InputError
from isopleth.io import Table, check_target, load, save
from isopleth.io.files import remove_leftovers, sole_run
from isopleth.rows import row_keys
from isopleth.tasks.drift.alarms import DriftAlarms, joined
from isopleth.tasks.drift.monitor import DriftMonitor

# Last rows of a stream that a page shows; parts of a stream that are kept before they are joined.
_MOST_ROWS, _MOST_PARTS = 1_000_000, 10_000


def monitor(
    reference: Path,
    state: Path | None,
    replay: bool,
    window: int,
    run_length: float,
    options: TableOptions,
    as_json: bool,
    report: Path | None,
) -> None:
    """Watch rows from standard input and print alarms."""
    if replay and state is None:
        raise InputError("--replay skips the rows that a state file has counted: name it with --state.")
    if state is not None:
        refuse_same({"--reference": reference, "--state": state, "--report": report})
        check_target(state)
        click.get_current_context().with_resource(sole_run(state))
        remove_leftovers(state)  # of runs that were killed
    check_report(report)
    with Stages(["reading", "fitting"]) as stage:
        stage("reading")
        table = read_numbers(reference, options)
        stage("fitting")
        watching = _known(state, table, window, run_length) if state and state.exists() else None
        if watching is None:
            watching = _fitted(table, window, run_length)
            if state is not None:
                save(watching, state)
    with ExitStack() as at_the_end:
        # Written at an interrupt, too: an endless stream ends with one.
        kept = at_the_end.enter_context(_paged(report, reference)) if report else None
        _watch(watching, table, state, replay, as_json, kept)
    if not as_json:
        rows, alarms = watching.state_.rows, watching.state_.alarms
        click.echo(f"{counted(rows, 'row')}, {counted(alarms, 'alarm')}")


def _watch(
    watching: DriftMonitor,
    table: Table,
    state: Path | None,
    replay: bool,
    as_json: bool,
    kept: list[DriftAlarms] | None,
) -> None:
    """Process the rows of standard input until it ends."""
    skip = watching.state_.rows if replay else 0
    for batch in RowReader(table.names, table.named).batches(sys.stdin.buffer):
        skipped, skip = min(skip, len(batch.values)), max(0, skip - len(batch.values))
        if skipped < len(batch.values):
            with matched_columns():
                alarms = watching.update(batch.values[skipped:])
            _print(alarms, as_json)
            if kept is not None:
                kept.append(alarms)
                if len(kept) > _MOST_PARTS:
                    kept[:] = [joined(kept, _MOST_ROWS)]
            if state is not None:
                save(watching, state)
        if batch.error is not None:
            raise batch.error


@contextmanager
def _paged(report: Path, reference: Path) -> Iterator[list[DriftAlarms]]:
    """Give a list for the alarms of the stream, and write their page in the end."""
    kept: list[DriftAlarms] = []
    try:
        yield kept
    finally:
        if kept:
            found = replace(joined(kept, _MOST_ROWS), counted_from=1)
            notes = [f"The page shows the last rows of the stream, from row {found.first_row + 1} on."] * (
                found.first_row > 0
            )
            write_page(found, report, [reference], notes=notes)


def _fitted(table: Table, window: int, run_length: float) -> DriftMonitor:
    """Return a fitted monitor, with a fixed seed so that each run gives the same alarms."""
    with naming_columns(table.names):
        watching = DriftMonitor(window, run_length, random_state=0).fit(table.values)
    if table.named:
        watching.feature_names_in_ = np.array(table.names, dtype=object)
    return watching


def _known(state: Path, table: Table, window: int, run_length: float) -> DriftMonitor:
    """Load the monitor in a state file.

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
    # A state that does not fit is refused at the first row, not in the middle of a stream.
    with of_this_version(state), matched_columns():
        place = watching.state_
        watching.update(table.values[:1])
        watching.state_ = place
    return watching


def _print(alarms: DriftAlarms, as_json: bool) -> None:
    """Print alarms at once, for a reader that waits for them."""
    for row, first, statistic, threshold in zip(*alarms._columns().values(), strict=True):
        if as_json:
            values = {"row": int(row) + 1, "first_row": int(first) + 1}
            click.echo(json.dumps(values | {"statistic": float(statistic), "threshold": float(threshold)}))
        else:
            click.echo(
                f"row {row + 1}: rows {first + 1} to {row + 1} differ from the reference "
                f"(distance {statistic:.4g}, threshold {threshold:.4g})"
            )
