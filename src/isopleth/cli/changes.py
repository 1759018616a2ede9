"""``isopleth changes``: find the changes of a series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.clock_times import on_clock
from isopleth.cli.run import Run, tell
from isopleth.core.errors import Hint, InputError, quoted, warn_user
from isopleth.files.file_table import FileTable, numbers_with_gaps, refuse_odd_cells
from isopleth.files.read import Reader, Reading
from isopleth.files.source import refuse_unknown
from isopleth.tasks.changes.detector import ChangePointDetector
from isopleth.tasks.changes.result import ChangePoints
from isopleth.tasks.changes.steps import ascending_times, rises_as_time


def changes(
    run: Run,
    file: Path,
    time: str | None,
    timezone: str | None,
    given: list[str] | None,
    period: str,
    false_alarm_rate: float,
) -> None:
    """Find the changes of a series and report them."""
    run.stage("reading")
    table, times, written = read_series(run, file, time, timezone, given or [])
    run.stage("searching")
    detector = ChangePointDetector(false_alarm_rate=false_alarm_rate, period=_periods(period), random_state=0)
    series = table.without(given or [])
    others = None if given is None else table.data.select(given)
    try:
        detector.fit(series.frame, times=_steps(table) if times is None else times, given=others)
    except InputError as error:
        raise error.located(table.source, table.place) from None
    found = replace(detector.result_, where=run.places(len(table), table.lines), names=series.names)
    found = replace(found, times=None) if times is None else found
    run.stage("writing")
    run.write(found, columns(found, written))
    run.answer(found)


def _steps(table: FileTable) -> np.ndarray | None:
    """Return the numbers of the rows if a column that is part of the series could be taken as times."""
    rises = any(rises_as_time(_cells_of(table, name)) for name in table.names)
    return np.arange(len(table)) if rises else None


def _periods(text: str) -> str | list[float | str] | None:
    """Return what --period says; the detector checks it."""
    if text in ("auto", "none"):
        return text if text == "auto" else None
    periods: list[float | str] = []
    for word in text.split(","):
        try:
            number = float(word)
            periods.append(int(number) if number.is_integer() else number)
        except ValueError:
            periods.append(word.strip())
    return periods


def columns(found: ChangePoints, written: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the columns of --out: place, time as it is written and segment of each step, and what changed there, or nothing."""
    kinds = np.full(len(found.series), "", dtype=object)
    kinds[found.change_points] = found.kinds
    times = {} if found.times is None else {"time": found.times if written is None else written}
    segments = np.searchsorted(found.change_points, np.arange(len(found.series)), side="right")
    return found.where | times | {"segment": segments, "change": kinds}


def read_series(
    run: Run, path: Path, time: str | None, timezone: str | None, given: Sequence[str]
) -> tuple[FileTable, np.ndarray | None, np.ndarray | None]:
    """Read the numbers of a series and of `given` columns, and the times of its rows: the column `time`, or the only such one.

    The times are returned as they are written, too, where text is written to a text.
    """
    # The times need not be among the columns that are asked for.
    options = run.options
    keep = options.keep_identifiers or bool(options.columns)
    # Cells as text have the offsets of times, of which a column of instants knows one.
    table = Reader(path, replace(options, columns=None, keep_identifiers=keep, bad_cells="missing")).read(2, cells=True)
    _check_names(table, path, time, given, options)
    time = time or _only_column_of_times(table, options)
    used = [*_series_columns(table, path, time, given, options), *dict.fromkeys(given)]
    schema = table.schema.take(table.names.index(name) for name in used)
    left_out = {name: why for name, why in table.schema.left_out.items() if name != time}
    if options.bad_cells == "refuse":
        refuse_odd_cells(table.select([*used, *filter(None, [time])]), categories=False)
    words = table.cells.column(time).to_pylist() if time is not None and table.header is not None else None
    times = None if time is None else _times(table, time, words, timezone)
    if timezone is not None and time is None:
        raise InputError(f"{path} has no column of times for {{parameter}}; name it with --time.", parameter="timezone")
    as_text = run.out is not None and run.out.suffix.lower() == ".csv"
    written = np.array(words, dtype=object) if as_text and words is not None else None
    unused = set(table.data.column_names) - {*used, time}
    notes = tuple(note for note in table.notes if note.column not in unused)
    table = numbers_with_gaps(replace(table.using(replace(schema, left_out=left_out)), notes=notes))
    run.keep(table.schema, table)
    tell(table)
    return table, times, written


def _check_names(table: FileTable, path: Path, time: str | None, given: Sequence[str], options: Reading) -> None:
    """Refuse names of columns that the file does not have, or that are asked for twice."""
    there = table.data.column_names
    refuse_unknown(path, [] if time is None else [time], there, "time")
    if both := [name for name in options.columns or [] if name in options.exclude]:
        raise InputError(f"{{parameter}} and --exclude both name {quoted(both)}.", parameter="columns", column=both[0])
    for parameter, asked in (("columns", options.columns or []), ("given", given)):
        refuse_unknown(path, asked, there, parameter)
    if both := [name for name in given if name in (options.columns or []) or name == time]:
        raise InputError(f"{{parameter}} names {quoted(both)}, which is the series or its times.", parameter="given")


def _series_columns(
    table: FileTable, path: Path, time: str | None, given: Sequence[str], options: Reading
) -> list[str]:
    """Return the columns of the series: those asked for, or all but the times and the given ones."""
    if lacking := [name for name in given if name not in table.names]:
        why = table.schema.left_out.get(lacking[0], "it holds no numbers")
        text = f"{path}: {{column}} ({{parameter}}) is left out ({why}); give columns of numbers."
        raise InputError(text, column=lacking[0], parameter="given")
    known = [name for name in table.names if name != time and name not in given]
    used = [name for name in options.columns or known if name in known]
    if used:
        return used
    if empty := [name for name in options.columns or [] if name in table.schema.left_out]:
        text = f"{path}: {{column}} is left out ({table.schema.left_out[empty[0]]}); a series of numbers is needed."
        raise InputError(text, column=empty[0])
    besides = "its times and those that are given" if given else "its times"
    raise InputError(f"{path} has no column besides {besides}; a series of numbers is needed.")


def _only_column_of_times(table: FileTable, options: Reading) -> str | None:
    """Return the column of times if there is one; refuse to choose among several."""
    known = {*options.identifiers, *options.categorical, *options.numeric}
    found = [name for name in table.data.column_names if name not in known and _holds_times(table, name)]
    if len(found) > 1:
        raise InputError(
            f"{table.source}: several columns hold times, {quoted(found)}",
            column=found[0],
            hint=Hint(
                "choose that of the rows with {time}, and leave the others out with {exclude}", time=..., exclude=...
            ),
        )
    return found[0] if found else _column_that_rises(table, options)


def _column_that_rises(table: FileTable, options: Reading) -> str | None:
    """Return the first column of numbers that rise as time does, if others are left, and say so."""
    asked = {*options.numeric, *(options.columns or ())}
    found = [
        name for name in table.schema.names_of("numeric") if name not in asked and rises_as_time(_cells_of(table, name))
    ]
    if not found or len(found) == len(table.names):
        return None
    text = "{column} rises from row to row by equal steps, as times do, and is taken as the times of the rows"
    warn_user(text, column=found[0], hint=Hint("{numeric} takes it as part of the series", numeric=found[:1]))
    return found[0]


def _cells_of(table: FileTable, name: str) -> np.ndarray:
    return table.data.column(name).cast("float64").to_numpy()


def _holds_times(table: FileTable, name: str) -> bool:
    return str(table.data.column(name).type).startswith(("timestamp", "date", "time"))


def _times(table: FileTable, name: str, words: list[str | None] | None, timezone: str | None) -> np.ndarray:
    """Return the times of the rows as words by their clock, or numbers."""
    cells = np.array(table.data.column(name).to_pylist())
    try:
        times = ascending_times(cells, f"column {name!r}")
    except InputError as error:
        raise error.located(table.source, table.place) from None
    times = on_clock(times, words, timezone)
    return times if times.dtype.kind in "iuf" else np.array([str(time) for time in times.tolist()], dtype=object)
