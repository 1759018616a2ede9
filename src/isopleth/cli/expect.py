"""``isopleth expect``: what the columns of a table hold where some have given values."""

from __future__ import annotations

from datetime import datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.cli.fill import recorded
from isopleth.cli.run import Run
from isopleth.cli.sample import fitted
from isopleth.density import SOSREP
from isopleth.density.table_density import TableDensity
from isopleth.errors import InputError, listed, warn_user
from isopleth.results.text import cell_text
from isopleth.tables.file_table import FileTable
from isopleth.tables.kinds import Column
from isopleth.tables.schema import decode_cells, encode_cell
from isopleth.tasks.expected_values import Expectation


def expect(run: Run, file: Path, given: list[str], confidence_level: float, size: int | None) -> None:
    """Say what to expect of the other columns."""
    run.stage("reading")
    table = run.read(file, gaps=False)
    known = values_of(given, table)
    warn_beyond(known, table)
    run.stage("fitting")
    # Intervals do not show more digits than these, and the last ones take longest.
    density = fitted(SOSREP(length_scale="leave_one_out", frame="scale", tol=1e-6), table, size, 0)
    asked = density.conditional(known)
    values = recorded_values(asked, table, confidence_level)
    found = Expectation(asked, known, len(table), confidence_level, values)
    run.stage("writing")
    run.write(found)
    run.answer(found)


def recorded_values(
    density: TableDensity, table: FileTable, confidence_level: float
) -> dict[str, tuple[Any, Any, Any]]:
    """Return the median and ends of the interval of each column with the decimals, or as the days, of the table."""
    ends, found, numbers = density.interval(confidence_level), {}, ranges_of(table)
    for name, middle in density.median().items():
        shown = [
            limited(value, *numbers[str(name)]) if str(name) in numbers else value for value in (middle, *ends[name])
        ]
        cells = [recorded(table, str(name), pa.array([value]))[0].as_py() for value in shown]
        days = all(isinstance(cell, datetime) and cell.time() == time() for cell in cells)
        found[str(name)] = tuple(cell.date() if days else cell for cell in cells)
    return found


def values_of(given: list[str], table: FileTable) -> dict[str, Any]:
    """Return the values of ``--given a=3,b=x`` as what the columns of a table hold."""
    kinds = {str(column.name): column.kind for column in table.schema.columns}
    found: dict[str, Any] = {}
    parts: list[str] = []
    for part in given:  # a comma in a value, as in a=2,5, is no beginning of another
        parts[-1:] = [f"{parts[-1]},{part}"] if parts and "=" not in part else [*parts[-1:], part]
    for part in parts:
        name, sign, value = (word.strip() for word in part.partition("="))
        if not sign or not value:
            raise InputError(
                f"--given has {part!r}; write a column and one value, as in --given price=3,colour=red; ranges are not taken."
            )
        if name not in kinds:
            raise InputError(
                f"--given names column {name!r}, which is not used; expected one of {listed(list(kinds))}."
            )
        found[name] = value
        if kinds[name] == "numeric":
            try:
                found[name] = float(value)
            except ValueError:
                raise InputError(
                    f"--given {part}: column {name!r} holds numbers; expected one such as 3.5, with a point, and no range."
                ) from None
    return found


def ranges_of(table: FileTable) -> dict[str, tuple[Column, np.ndarray]]:
    """Return the columns of numbers and times with their least and largest cells as numbers."""
    columns = [column for column in table.schema.columns if column.kind != "categorical"]
    cells = table.encoded().numeric
    ends = np.stack([np.nanmin(cells, axis=0), np.nanmax(cells, axis=0)], axis=1) if columns else cells
    return {str(column.name): (column, each) for column, each in zip(columns, ends, strict=False)}


def limited(value: Any, column: Column, ends: np.ndarray) -> Any:
    """Return a number or time if it is between the ends of its column, else the nearer end: a count is not below 0."""
    number = encode_cell(column, value)
    nearest = np.clip(number, *ends)
    return value if nearest == number else decode_cells(column, np.array([nearest]))[0]


def warn_beyond(known: dict[str, Any], table: FileTable) -> None:
    """Warn of given numbers and times that no row of the table comes up to: there the density extrapolates."""
    for name, (column, ends) in ranges_of(table).items():
        if name in known and limited(known[name], column, ends) != known[name]:
            low, high = (cell_text(cell) for cell in decode_cells(column, ends))
            text = f"{name} = {known[name]} is beyond all rows, whose values are from {low} to {high}: the answer extrapolates."
            warn_user(text)
