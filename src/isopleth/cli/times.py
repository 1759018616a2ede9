"""Read the column of a file that has the times of its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isopleth.cli.options import TableOptions
from isopleth.errors import InputError
from isopleth.io import read_frame, read_names
from isopleth.io.source import listed
from isopleth.tables.cells import MISSING_WORDS, SourceTable
from isopleth.tables.numerals import Numerals
from isopleth.tables.typed import moment
from isopleth.tasks.change_points.times import ascending_times

# Rows by which a column of times is recognised.
_FIRST_ROWS = 1000
# Least share of cells that are times, so that a mistyped one is named and does not turn the column into words.
_TIMES_SHARE = 0.9


def time_column(path: Path, options: TableOptions) -> str | None:
    """Return the name of the only column of dates or times in a file; None if there is none.

    Columns that the user left out, or gave another kind, do not count.

    Raises
    ------
    InputError
        If there are several, or the file cannot be read.
    """
    how: dict[str, Any] = {"missing": options.missing, "decimal": options.decimal}
    frame = read_frame(path, None, exclude=options.exclude or [], min_rows=1, most=_FIRST_ROWS, **how)
    if isinstance(frame.data, np.ndarray):
        return None
    table = SourceTable.of(frame.data)
    known = {*(options.identifiers or []), *(options.categorical or []), *(options.numeric or [])}
    found = [name for name in frame.names if name not in known and _holds_times(table, name)]
    if len(found) > 1:
        raise InputError(
            f"{path}: several columns hold times, {listed(found)}; choose that of the rows with --time, and leave the others "
            "out with --exclude."
        )
    return found[0] if found else None


def _holds_times(table: SourceTable, name: str) -> bool:
    cells = table.cells(name, MISSING_WORDS, Numerals())
    if cells.form != "text":
        return cells.form == "time"
    known = [text for text in cells.texts() if text is not None]
    times = sum(moment(text) is not None for text in known)
    return bool(known) and times >= _TIMES_SHARE * len(known)


def read_times(path: Path, name: str, options: TableOptions) -> np.ndarray:
    """Return the times of the rows of a file, as words as they are in the file, or numbers.

    Raises
    ------
    InputError
        If there is no such column, or its times do not ascend; the message names the first line.
    """
    present = read_names(path)
    if present is not None and name not in present:
        raise InputError(f"{path} has no column {name!r} (--time); it has {listed(present)}.")
    frame = read_frame(path, [name], missing=options.missing, decimal=options.decimal, min_rows=1)
    data = frame.data
    cells = data[:, 0] if isinstance(data, np.ndarray) else np.array(data.column(0).to_pylist())
    try:
        times = ascending_times(cells, f"column {name!r}")
    except InputError as error:
        raise error.located(path, frame.place) from None
    return times if times.dtype.kind in "iuf" else np.array([str(time) for time in times.tolist()], dtype=object)
