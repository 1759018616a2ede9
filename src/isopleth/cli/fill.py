"""``isopleth fill``: write a table with its missing cells filled."""

from __future__ import annotations

from math import ceil, log10
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.cli.commands import LAW_SIZE
from isopleth.cli.run import Run
from isopleth.conditional import DensityImputer
from isopleth.core.steps import TIME_STEPS, recorded_step
from isopleth.files.file_table import FileTable
from isopleth.files.new_cells import refuse_lost_limits
from isopleth.tables.number_formats import NumberFormat
from isopleth.tasks.expected_values import FilledCells

_UNITS = ("day", "hour", "minute", "second")


def fill(run: Run, file: Path, interval: bool, confidence_level: float, limits: str, size: int | None) -> None:
    """Fill the missing cells of a table."""
    assert run.out is not None
    run.stage("reading")
    table = run.read(file, cells=True)
    used, missing, limited = table.names, table.missing, table.limited
    kept = {name: int(count) for name, count in zip(used, limited.sum(axis=0), strict=True) if count}
    if limits == "fill":
        missing, kept = missing | limited, {}
    else:
        refuse_lost_limits(run.out, table, ways=", or fill them with --limits fill")
    run.stage("fitting")
    filled, fitted = table.data, 0
    ends: dict[str, str] = {}
    if missing.any():
        imputer = DensityImputer(limits=limits, max_samples=size or LAW_SIZE).fit(table.frame)
        fitted = imputer.n_samples_fit_
        run.stage("filling")
        filled = _with_decimals(imputer.transform(table.frame), table, missing)
        if interval:
            found_ends = imputer.impute_interval(table.frame, confidence_level)
            filled, ends = _with_intervals(filled, found_ends, table, missing)
    run.stage("writing")
    known = {name: np.ones(len(table), dtype=bool) for name in table.data.column_names}
    known |= dict(zip(used, ~missing.T, strict=True))
    numbers = dict(zip(used, ~(missing | limited).T, strict=True))
    known |= {end: numbers[name] for end, name in ends.items()}
    run.write_rows(filled.replace_schema_metadata(None), table, known, ends)
    left = [name for name in table.data.column_names if name not in used and table.data.column(name).null_count]
    within = int((missing & limited).sum())
    found = FilledCells(used, np.count_nonzero(missing, axis=0), len(table), left, kept, within, fitted)
    run.write(found)
    run.answer(found, out=str(run.out))


def _with_decimals(filled: Any, table: FileTable, missing: np.ndarray) -> Any:
    """Record gaps as the known cells of their column are; known cells stay to the last bit."""
    from pyarrow import compute

    for name, gaps in zip(table.names, missing.T, strict=True):
        if gaps.any():
            column = filled.column(name)
            rounded = _within_limits(table, name, recorded(table, name, column))
            kept = compute.if_else(pa.array(gaps), rounded, column.cast(rounded.type, safe=False))
            filled = filled.set_column(filled.column_names.index(name), name, kept)
    return filled


def _within_limits(table: FileTable, name: str, rounded: Any) -> Any:
    """Return rounded values of a column with those that rounding took to their limit, or beyond it, one step inside."""
    limits = table.odd.censored.get(name)
    if limits is None:
        return rounded
    values = np.array(rounded.to_numpy(), dtype=np.float64)
    step = NumberFormat.of(table.data.column(name).drop_null().to_numpy().astype(np.float64)).step
    cells, digits = values[limits.rows], max(0, ceil(-log10(step) - 1e-9)) if step else 12
    cells = np.where(cells >= limits.upper, np.round(limits.upper - step, digits), cells)
    cells = np.where(cells <= limits.lower, np.round(limits.lower + step, digits), cells)
    values[limits.rows] = np.clip(cells, limits.lower, limits.upper)
    return pa.chunked_array([pa.array(values, from_pandas=True).cast(rounded.type, safe=False)])


def recorded(table: FileTable, name: str, values: Any) -> Any:
    """Round values of a column to its decimals, days or minutes; an interval with rounded ends holds the same cells."""
    from pyarrow import compute

    known = table.data.column(name).drop_null()
    if pa.types.is_timestamp(known.type):
        unit = next((unit for unit in _UNITS if known == compute.floor_temporal(known, unit=unit)), None)
        return values if unit is None else compute.round_temporal(values, unit=unit)
    if pa.types.is_duration(known.type):
        return _recorded_lengths(known, values)
    whole = pa.types.is_integer(known.type)
    if not whole and not pa.types.is_floating(known.type):
        return values
    step = NumberFormat.of(known.to_numpy().astype(np.float64)).step
    if not step:  # there are too many decimals to count
        return values
    rounded = compute.add(compute.round(values, ndigits=max(0, ceil(-log10(step) - 1e-9))), 0.0)  # 0 for -0
    return rounded.cast(pa.int64()) if whole and step >= 1.0 else rounded


def _recorded_lengths(known: Any, values: Any) -> Any:
    """Round durations, or their seconds, to the hours, minutes or seconds in which the known ones are recorded."""
    microseconds = pa.duration("us")
    step = recorded_step(known.cast(microseconds, safe=False).cast(pa.int64()).to_numpy() / 1e6, TIME_STEPS) or 1e-6
    if pa.types.is_duration(values.type):
        values = values.cast(microseconds, safe=False).cast(pa.int64()).cast(pa.float64())
        values = pa.array(values.to_numpy(zero_copy_only=False) / 1e6, from_pandas=True)
    seconds = values.to_numpy(zero_copy_only=False)
    lengths = np.rint(np.rint(seconds / step) * step * 1e6)
    return pa.array(lengths, from_pandas=True).cast(pa.int64()).cast(microseconds)


def _with_intervals(
    filled: Any, ends: tuple[Any, Any], table: FileTable, missing: np.ndarray
) -> tuple[Any, dict[str, str]]:
    """Append the ends of the intervals of columns of numbers and times that had gaps, and say of which column each is."""
    from pyarrow import compute

    added = {}
    for name, gaps in zip(table.names, missing.T, strict=True):
        column = next(column for column in table.schema.columns if str(column.name) == name)
        if not gaps.any() or column.kind == "categorical":
            continue
        for word, end in zip(("low", "high"), ends, strict=True):
            values = recorded(table, name, end.column(name))
            known = _with_limits(end.column(name), table, name, word)
            if name in table.odd.censored:
                values = values.cast(known.type, safe=False)
            known = values if pa.types.is_duration(values.type) else known.cast(values.type, safe=False)
            added[f"{name}_{word}"] = name
            filled = filled.append_column(f"{name}_{word}", compute.if_else(pa.array(gaps), values, known))
    return filled, added


def _with_limits(known: Any, table: FileTable, name: str, word: str) -> Any:
    """Return ends of intervals of a column with those of the cells that say a limit and stay: the limit, or null."""
    limits = table.odd.censored.get(name)
    if limits is None:
        return known
    values = np.array(known.to_numpy(), dtype=np.float64)
    found = limits.lower if word == "low" else limits.upper
    values[limits.rows] = np.where(np.isfinite(found), found, np.nan)
    whole = pa.types.is_integer(known.type) and (values[~np.isnan(values)] % 1 == 0).all()
    return pa.chunked_array([pa.array(values, from_pandas=True).cast(known.type if whole else pa.float64())])
