"""``isopleth fill``: write a table with its missing cells filled."""

from __future__ import annotations

from math import ceil, log10
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.cli.run import Run
from isopleth.density import DensityImputer
from isopleth.density.recording import NumberFormat
from isopleth.tables.table import FileTable
from isopleth.tables.write import write_frame
from isopleth.tasks.expected_values import FilledCells


def fill(run: Run, file: Path, interval: bool, confidence_level: float) -> None:
    """Fill the missing cells of a table."""
    assert run.out is not None
    run.stage("reading")
    table = run.read(file)
    used, missing = table.names, table.missing
    run.stage("fitting")
    filled = table.data
    if missing.any():
        imputer = DensityImputer().fit(table.frame)
        run.stage("filling")
        filled = _with_decimals(imputer.transform(table.frame), table)
        if interval:
            filled = _with_intervals(filled, imputer.impute_interval(table.frame, confidence_level), table)
    run.stage("writing")
    write_frame(run.out, filled.replace_schema_metadata(None), raw_text=run.raw_text)
    left = [name for name in table.data.column_names if name not in used and table.data.column(name).null_count]
    found = FilledCells(used, np.count_nonzero(missing, axis=0), len(table), left)
    run.write(found)
    run.answer(found, out=str(run.out))


def _with_decimals(filled: Any, table: FileTable) -> Any:
    """Round gaps to the decimals of the known numbers of their column, or to its days; known cells stay to the last bit."""
    import pyarrow as pa
    from pyarrow import compute

    for name, gaps in zip(table.names, table.missing.T, strict=True):
        column = filled.column(name)
        if not gaps.any():
            continue
        if (digits := _decimals(table, name, gaps)) is not None:
            rounded = compute.round(column, ndigits=digits)
        elif _holds_days(table, name):
            rounded = compute.round_temporal(column, unit="day")
        else:
            continue
        column = compute.if_else(pa.array(gaps), rounded, column)
        filled = filled.set_column(filled.column_names.index(name), name, column)
    return filled


def _holds_days(table: FileTable, name: str) -> bool:
    """Tell whether all known cells of a column are times at midnight."""
    import pyarrow as pa
    from pyarrow import compute

    known = table.data.column(name).drop_null()
    return bool(pa.types.is_timestamp(known.type) and known == compute.floor_temporal(known, unit="day"))


def _decimals(table: FileTable, name: str, gaps: np.ndarray) -> int | None:
    """Return the decimals of the known numbers of a column; None for other columns, and if there are too many to count."""
    import pyarrow as pa

    column = table.data.column(name)
    if not pa.types.is_floating(column.type) and not pa.types.is_integer(column.type):
        return None
    step = NumberFormat.of(column.to_numpy()[~gaps].astype(np.float64)).step
    return max(0, ceil(-log10(step) - 1e-9)) if step else None


def _with_intervals(filled: Any, ends: tuple[Any, Any], table: FileTable) -> Any:
    """Append the ends of the intervals of columns of numbers and times that had gaps, rounded outwards as the column is."""
    import pyarrow as pa
    from pyarrow import compute

    for name, gaps in zip(table.names, table.missing.T, strict=True):
        column = next(column for column in table.schema.columns if str(column.name) == name)
        if not gaps.any() or column.kind == "categorical":
            continue
        digits, days = _decimals(table, name, gaps), _holds_days(table, name)
        modes, tempos = ("down", "up"), (compute.floor_temporal, compute.ceil_temporal)
        for word, end, mode, tempo in zip(("low", "high"), ends, modes, tempos, strict=True):
            values = end.column(name)
            if digits is not None:
                values = compute.round(values, ndigits=digits, round_mode=mode)
            elif days:
                values = tempo(values, unit="day")
            filled = filled.append_column(f"{name}_{word}", compute.if_else(pa.array(gaps), values, end.column(name)))
    return filled
