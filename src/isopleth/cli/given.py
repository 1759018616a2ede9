"""The values of ``--given``: read, checked and compared with the rows of the table."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from isopleth.core.errors import InputError, listed, meant, warn_user
from isopleth.files.file_table import FileTable
from isopleth.results.text import cell_text
from isopleth.tables.coded_cells import decode_cells, displayed_cells, encode_cell
from isopleth.tables.intervals import given_interval
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema


def shell_name(column: Column) -> str:
    """Return the name of a column on the command line; columns of arrays have numbers and are named as in a file."""
    return column.name if isinstance(column.name, str) else f"x{column.name + 1}"


def values_of(given: list[str], schema: Schema, *, limits: bool = False) -> dict[str, Any]:
    """Return the values of ``--given a=3,b=x`` as what the columns of a schema hold; with `limits`, <0.5 is a value too."""
    columns = {shell_name(column): column for column in schema.columns}
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
        if name not in columns:
            offered = f"{meant([name], columns)}; expected one of {listed(list(columns))}"
            raise InputError(f"--given names column {name!r}, which is not used{offered}.")
        if name in found:
            raise InputError(f"--given names column {name!r} twice; give it one value.")
        interval = limits and columns[name].kind == "numeric" and given_interval(value) is not None
        found[name] = value if interval else _checked(part, columns[name], name, value, schema)
    return found


def typed_number(text: str) -> float:
    """Return a number that was typed, NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def _checked(part: str, column: Column, name: str, value: str, schema: Schema) -> Any:
    """Return a value as the column holds it; refuse what is no number, time, truth value or word of it."""
    found: Any = value
    if column.kind == "numeric":
        found = typed_number(value)
        if not np.isfinite(found):
            raise InputError(
                f"--given {part}: column {name!r} holds numbers; expected one such as 3.5, with a point, and no unit or range."
            )
    code = encode_cell(column, found, schema.missing)
    if column.kind == "categorical" and not code < len(column.levels):
        raise InputError(_no_such_word(part, column, value))
    return found


def _no_such_word(part: str, column: Column, word: str) -> str:
    """Return the sentence about a word that no row has, with those that look like it or the first ones."""
    levels = [str(level) for level in column.levels]
    low = word.lower()
    close = [level for level in levels if level.lower().startswith(low)]
    close = close or get_close_matches(word, levels, n=3, cutoff=0.6)
    which = f"did you mean {listed([repr(level) for level in close], 3)}?" if close else f"it has {listed(levels, 5)}."
    return f"--given {part}: column {shell_name(column)!r} has no such word; {which}"


def ranges_of(table: FileTable) -> dict[str, tuple[Column, np.ndarray]]:
    """Return the columns of numbers and times with their least and largest cells as numbers."""
    columns = table.schema.measured
    encoded = table.encoded()
    cells = encoded.numeric
    ends = np.stack([np.nanmin(cells, axis=0), np.nanmax(cells, axis=0)], axis=1) if columns else cells
    for j in encoded.limits.columns.tolist():  # numbers go on beyond a limit, to 0 where none is negative
        _, lower, upper = encoded.limits.of(j)
        low, high = min(ends[j, 0], lower.min()), max(ends[j, 1], upper.max())
        ends[j] = 0.0 if np.isinf(low) and min(ends[j, 0], upper.min()) >= 0.0 else low, high
    return {str(column.name): (column, each) for column, each in zip(columns, ends, strict=False)}


def limited(value: Any, column: Column, ends: np.ndarray) -> Any:
    """Return a number or time if it is between the ends of its column, else the nearer end: a count is not below 0."""
    number = encode_cell(column, value)
    nearest = np.clip(number, *ends)
    return value if nearest == number else decode_cells(column, np.array([nearest]))[0]


def warn_beyond(known: dict[str, Any], table: FileTable) -> bool:
    """Warn of given numbers and times that no row of the table comes up to, and tell whether there are any."""
    beyond = False
    for name, (column, ends) in ranges_of(table).items():
        if name not in known or (column.kind == "numeric" and isinstance(known[name], str)):
            continue
        if limited(known[name], column, ends) != known[name]:
            low, high = (cell_text(cell) for cell in displayed_cells(column, ends))
            text = f"{name} = {known[name]} is beyond all rows, whose values are from {low} to {high}: the answer extrapolates."
            warn_user(text)
            beyond = True
    return beyond


def unbounded_ranges(ranges: dict[str, tuple[Column, np.ndarray]]) -> dict[str, tuple[Column, np.ndarray]]:
    """Return ranges that only end at 0, of numbers none of which is negative."""
    return {
        name: (column, np.array([0.0 if column.kind == "numeric" and ends[0] >= 0.0 else -np.inf, np.inf]))
        for name, (column, ends) in ranges.items()
    }
