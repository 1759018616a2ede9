"""``isopleth expect``: what the columns of a table hold where some have given values."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa

from isopleth.cli.fill import recorded
from isopleth.cli.given import limited, ranges_of, unbounded_ranges, values_of
from isopleth.cli.options import LAW_SIZE
from isopleth.cli.run import Run
from isopleth.conditional import ExpectedCells, LawsGiven
from isopleth.core.errors import warnings_about_answer
from isopleth.files.file_table import FileTable
from isopleth.tasks.expected_values import Expectation


def expect(run: Run, file: Path, given: list[str], confidence_level: float, size: int | None) -> None:
    """Say what to expect of the other columns."""
    run.stage("reading")
    table = replace(run.read(file, gaps=False), named=True)  # columns of arrays are given by the names of the file
    known = values_of(given, table.schema, limits=True)
    run.stage("fitting")
    with warnings_about_answer() as doubts:
        asked = LawsGiven(known, max_samples=size or LAW_SIZE).fit(table.frame)
    values = recorded_values(asked, table, confidence_level, bool(asked.beyond))
    found = Expectation(asked, known, len(table), confidence_level, values, warnings=tuple(doubts))
    run.stage("writing")
    run.write(found)
    run.answer(found)


def recorded_values(
    laws: ExpectedCells, table: FileTable, confidence_level: float, beyond: bool
) -> dict[str, tuple[Any, Any, Any]]:
    """Return the median and ends of the interval of each column with the decimals, or as the days, of the table.

    They are within the values of the column, unless a given value is `beyond` its own: laws follow a line there, and are taken
    given that the number is above 0 where none is negative.
    """
    ends, found, numbers = laws.interval(confidence_level), {}, ranges_of(table)
    numbers = unbounded_ranges(numbers) if beyond else numbers
    least = {name: float(limits[0]) for name, (_, limits) in numbers.items()} if beyond else {}
    upper = laws.quantile(0.5 + 0.5 * confidence_level, least)
    ends = {name: (low, upper[name]) for name, (low, _) in ends.items()}
    for name, middle in laws.quantile(0.5, least).items():
        shown = [
            limited(value, *numbers[str(name)]) if str(name) in numbers else value for value in (middle, *ends[name])
        ]
        cells = [recorded(table, str(name), pa.array([value]), laws.finer)[0].as_py() for value in shown]
        days = all(isinstance(cell, datetime) and cell.time() == time() for cell in cells)
        if pa.types.is_time(table.data.column(str(name)).type):  # times of day
            cells = [cell.time() if isinstance(cell, datetime) else cell for cell in cells]
        found[str(name)] = tuple(cell.date() if days else cell for cell in cells)
    return found
