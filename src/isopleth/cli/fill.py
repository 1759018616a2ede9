"""``isopleth fill``: write a table with its missing cells filled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log10
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from isopleth.cli.options import LAW_SIZE
from isopleth.cli.run import Run, refuse_same
from isopleth.cli.split import columns_of
from isopleth.conditional import DensityImputer
from isopleth.conditional.imputer import finer_columns
from isopleth.core.errors import InputError, quoted, warnings_about_answer
from isopleth.core.steps import TIME_STEPS, recorded_step
from isopleth.files.file_table import FileTable
from isopleth.files.new_cells import refuse_lost_limits
from isopleth.files.write import check_table_target
from isopleth.tables.number_formats import NumberFormat
from isopleth.tasks.expected_values import FilledCells

_UNITS = ("day", "hour", "minute", "second")


def fill(
    run: Run,
    file: Path,
    reference: Path | None,
    filled: Path | None,
    interval: bool,
    strategy: str,
    seed: int,
    confidence_level: float,
    limits: str,
    size: int | None,
) -> None:
    """Fill the missing cells of a table."""
    assert run.out is not None
    refuse_same({"FILE": file, "--reference": reference, "--out": run.out, "--report": run.report, "--filled": filled})
    if filled is not None:
        check_table_target(filled)
    run.stage("reading")
    known_rows = None if reference is None else run.read(reference)
    table = run.read(file, cells=True) if known_rows is None else _read_like(run, file, known_rows)
    gaps = Gaps.of(table, limits)
    if limits == "keep":
        refuse_lost_limits(run.out, table, ways=", or fill them with --limits fill")
    run.stage("fitting")
    imputer = DensityImputer(strategy, limits=limits, max_samples=size or LAW_SIZE, random_state=seed)
    whole = with_ends = table.data
    ends, chances, fitted, doubts = dict[str, str](), None, 0, list[str]()
    if gaps.missing.any():
        fitted = imputer.fit((known_rows or table).frame).n_samples_fit_
        run.stage("filling")
        with warnings_about_answer() as doubts:
            filled_table = imputer.transform(table.frame)
        finer = finer_columns(imputer)
        whole = with_ends = _with_decimals(filled_table, table, gaps.missing, known_rows or table, finer)
        if interval or filled is not None:
            found_ends = imputer.impute_interval(table.frame, confidence_level)
            with_ends, ends = _with_intervals(whole, found_ends, table, gaps.missing, known_rows or table, finer)
        if filled is not None:
            chances = imputer.impute_probability(table.frame)
    run.stage("writing")
    if filled is not None:
        run.write_columns(filled, _listed(run, table, gaps.missing, with_ends, ends, chances))
    _write(run, with_ends if interval else whole, table, gaps, ends if interval else {})
    left = [name for name in table.data.column_names if name not in table.names and table.data.column(name).null_count]
    counts = np.count_nonzero(gaps.missing, axis=0)
    rows_of_laws = None if known_rows is None else len(known_rows)
    drawn = imputer.max_samples == fitted < len(known_rows or table)
    found = FilledCells(table.names, counts, len(table), left, gaps.kept, gaps.within, fitted, rows_of_laws, drawn)
    found = replace(found, warnings=tuple(doubts))
    run.write(found)
    run.answer(found, out=str(run.out), filled_cells=None if filled is None else str(filled))


@dataclass(frozen=True)
class Gaps:
    """Cells of a table that are to be filled, and those that say a limit."""

    missing: np.ndarray  # (n, d): cells that are filled
    numbers: np.ndarray  # (n, d): cells that are known numbers or words
    kept: dict[str, int]  # cells that say a limit and stay, by column
    within: int  # cells that say a limit and are filled

    @classmethod
    def of(cls, table: FileTable, limits: str) -> Self:
        """Find them; with `limits` "fill" cells that say a limit are filled."""
        missing, limited = table.missing, table.limited
        if limits == "fill":
            return cls(missing | limited, ~(missing | limited), {}, int(limited.sum()))
        counts = zip(table.names, limited.sum(axis=0).tolist(), strict=True)
        return cls(missing, ~(missing | limited), {name: count for name, count in counts if count}, 0)


def _read_like(run: Run, file: Path, reference: FileTable) -> FileTable:
    """Read a table whose columns are used as those of a reference; options of columns are those of the reference."""
    run.options = replace(run.options, columns=None)
    there = columns_of(run, file)
    if lacking := [str(column.name) for column in reference.schema.columns if str(column.name) not in there]:
        them = "it" if len(lacking) == 1 else "them"
        raise InputError(
            f"{file} lacks {quoted(lacking)}, which the reference has; add {them} with empty cells to have {them} filled, or "
            f"leave {them} out with --exclude."
        )
    table = run.read_for(file, reference.schema, cells=True)
    data = table.data
    for place, name in enumerate(data.column_names):  # no cell says of which type an empty column is
        if name in table.names and data.column(name).null_count == len(table):
            kind = reference.data.column(name).type
            data = data.set_column(place, name, pa.nulls(len(table), kind))
    return replace(table, data=data)


def _write(run: Run, whole: Any, table: FileTable, gaps: Gaps, ends: dict[str, str]) -> None:
    """Write the filled table; known cells leave the file as they stand."""
    known = {name: np.ones(len(table), dtype=bool) for name in table.data.column_names}
    known |= dict(zip(table.names, ~gaps.missing.T, strict=True))
    numbers = dict(zip(table.names, gaps.numbers.T, strict=True))
    known |= {end: numbers[name] for end, name in ends.items()}
    run.write_rows(whole.replace_schema_metadata(None), table, known, ends)


def _listed(
    run: Run, table: FileTable, missing: np.ndarray, whole: Any, ends: dict[str, str], chances: Any
) -> dict[str, np.ndarray]:
    """Return the columns of the list of filled cells, in the order of the rows: where, value, interval, probability."""
    places, order = run.places_of(table), [*zip(*np.nonzero(missing), strict=True)]
    rows, columns = np.array(order, dtype=np.intp).reshape(-1, 2).T
    found = {name: np.asarray(where)[rows] for name, where in places.items()}
    found["column"] = np.array(table.names, dtype=object)[columns]
    texts = {key: np.full(len(rows), "", dtype=object) for key in ("value", "low", "high")}
    probability = np.full(len(rows), "", dtype=object)
    for j in np.unique(columns).tolist():
        here, name = columns == j, table.names[j]
        places_of_column = {"value": name} | {
            end.removeprefix(f"{name}_"): end for end, of in ends.items() if of == name
        }
        for key, of in places_of_column.items():
            texts[key][here] = _texts(whole.column(of).take(rows[here]))
        if chances is not None and f"{name}_low" not in ends:
            probability[here] = [f"{chance:.4g}" for chance in np.asarray(chances.column(name))[rows[here]]]
    return found | texts | {"probability": probability}


def _texts(cells: Any) -> list[str]:
    """Return Arrow cells as text without loss; nothing for a cell that stays empty."""
    return ["" if cell is None else _text(cell) for cell in cells.to_pylist()]


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(cell).removesuffix(".0" if isinstance(cell, float) else " 00:00:00")


def _with_decimals(filled: Any, table: FileTable, missing: np.ndarray, like: FileTable, finer: frozenset[str]) -> Any:
    """Record gaps as the cells of their column are in a table `like` this one; known cells stay to the last bit."""
    from pyarrow import compute

    for name, gaps in zip(table.names, missing.T, strict=True):
        if gaps.any():
            column = filled.column(name)
            rounded = _within_limits(table, name, recorded(like, name, column, finer))
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


def recorded(table: FileTable, name: str, values: Any, finer: frozenset[str] = frozenset()) -> Any:
    """Round values of a column to its decimals, days or minutes; an interval with rounded ends holds the same cells.

    Columns in `finer`, whose values may lie between those of the table, have two decimals more.
    """
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
    decimals = max(0, ceil(-log10(step) - 1e-9))
    if name in finer:
        return compute.add(compute.round(values.cast(pa.float64(), safe=False), ndigits=decimals + 2), 0.0)
    rounded = compute.add(compute.round(values, ndigits=decimals), 0.0)  # 0 for -0
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
    filled: Any, ends: tuple[Any, Any], table: FileTable, missing: np.ndarray, like: FileTable, finer: frozenset[str]
) -> tuple[Any, dict[str, str]]:
    """Append the ends of the intervals of columns of numbers and times that had gaps, and say of which column each is."""
    from pyarrow import compute

    added = {}
    for name, gaps in zip(table.names, missing.T, strict=True):
        column = next(column for column in table.schema.columns if str(column.name) == name)
        if not gaps.any() or column.kind == "categorical":
            continue
        for word, end in zip(("low", "high"), ends, strict=True):
            values = recorded(like, name, end.column(name), finer)
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
