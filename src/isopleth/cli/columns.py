"""Read the columns of a table that a command uses, or that a model needs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isopleth.cells import MISSING_WORDS
from isopleth.cli.messages import say
from isopleth.cli.options import TableOptions
from isopleth.columns import TableColumns
from isopleth.errors import DataWarning, InputError
from isopleth.io import FileRows, Frame, Table, open_rows, read_frame, read_names, read_table
from isopleth.io.source import Block, MissingCells, choice, listed

T = TypeVar("T", Table, FileRows)

# Rows of a file larger than memory by which the kinds of its columns are decided.
_FIRST_ROWS = 100_000

# From here on, float64 holds only some of the integers.
_ALL_INTEGERS = 2.0**53


def read_numbers(path: Path, options: TableOptions, *, but: str | None = None, min_rows: int = 2) -> Table:
    """Read the columns of a table that a command uses, and say what is left out.

    Parameters
    ----------
    path : Path
        The table.
    options : TableOptions
        Columns and kinds that the user chose.
    but : str, optional
        A column that is used in another way, as the classes of the rows.
    min_rows : int, default=2
        Fewer rows than this are refused.

    Returns
    -------
    Table
        Finite numbers, from the columns that are no identifiers.

    Raises
    ------
    InputError
        If the file cannot be read, or columns with words or times are left: the commands take numbers only.
    """
    frame = _frame(path, options, but, min_rows)
    if isinstance(frame.data, np.ndarray):
        return read_table(path, frame.names, min_rows=min_rows)
    _refuse_infinite(path, frame, options)
    kinds = _kinds(path, frame, options)
    names = _numeric_names(path, frame, kinds, options)
    values = kinds.encode(frame.data, missing_of(options)).numeric
    cells = MissingCells(len(names))
    cells.add(Block(values, frame.lines))
    cells.refuse(path, names)
    finite_numbers(path, names, values, frame, options, min_rows)
    return Table(values, names, frame.named, path, frame.lines)


def finite_numbers(
    path: Path, names: list[str], values: np.ndarray, frame: Frame, options: TableOptions, min_rows: int
) -> np.ndarray:
    """Return `values`, and warn of integers of a text file that were rounded."""
    known = np.where(np.isnan(values), 0.0, values)
    rounded = [n for n, column in zip(names, known.T, strict=True) if np.abs(column).max() >= _ALL_INTEGERS]
    if rounded and frame.lines is not None:
        read_table(path, rounded, min_rows=min_rows, decimal=options.decimal)  # which warns of them
    return values


def read_kinds_frame(path: Path, options: TableOptions, min_rows: int) -> Frame:
    """Read the columns that a command uses, of all kinds; infinite numbers are refused.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    frame = _frame(path, options, None, min_rows, truth_values=True)
    if not isinstance(frame.data, np.ndarray):
        _refuse_infinite(path, frame, options)
    return frame


def _refuse_infinite(path: Path, frame: Frame, options: TableOptions) -> None:
    infinite = [name for name, column in zip(frame.names, frame.data.columns, strict=True) if _is_infinite(column)]
    if infinite:
        read_table(path, infinite, min_rows=1, decimal=options.decimal)  # which names the lines


def open_numbers(path: Path, options: TableOptions, progress: Callable[[float], None]) -> FileRows:
    """Open the columns of a table that a command uses, to be read in chunks; its first rows show their kinds.

    Raises
    ------
    InputError
        As :func:`read_numbers`.
    """
    frame = _frame(path, options, None, 1, _FIRST_ROWS)
    names = frame.names
    if not isinstance(frame.data, np.ndarray):
        names = _numeric_names(path, frame, _kinds(path, frame, options), options)
    # All columns of a file are not named: then an index without a name is recognised.
    chosen = None if options.columns is None and names == (read_names(path) or names) else names
    return open_rows(path, chosen, progress=progress, decimal=options.decimal)


def _frame(
    path: Path,
    options: TableOptions,
    but: str | None,
    min_rows: int,
    most: int | None = None,
    *,
    truth_values: bool = False,
) -> Frame:
    exclude = [*(options.exclude or []), *([] if but is None else [but])]
    frame = read_frame(
        path,
        options.columns,
        exclude=exclude,
        missing=options.missing,
        decimal=options.decimal,
        min_rows=min_rows,
        most=most,
    )
    for option, names in (
        ("--id", options.identifiers),
        ("--categorical", options.categorical),
        ("--numeric", options.numeric),
    ):
        unknown = [name for name in names or [] if name not in frame.names]
        if unknown:
            raise InputError(f"{path} has no column {listed(unknown)} ({option}); it has {listed(frame.names)}.")
    if not isinstance(frame.data, np.ndarray):
        return frame if truth_values else _booleans_as_numbers(frame, options.categorical or [])
    left_out = options.identifiers or []
    kept = [j for j, name in enumerate(frame.names) if name not in left_out]
    return Frame(frame.data[:, kept], [frame.names[j] for j in kept], False, frame.source)


def _booleans_as_numbers(frame: Frame, categorical: Sequence[str]) -> Frame:
    data = frame.data
    for j, name in enumerate(frame.names):
        if str(data.schema.field(name).type) == "bool" and name not in categorical:
            data = data.set_column(j, name, data.column(name).cast("int8"))
    return replace(frame, data=data)


def missing_of(options: TableOptions) -> frozenset[str]:
    return MISSING_WORDS if options.missing is None else frozenset({"", *options.missing})


def _kinds(path: Path, frame: Frame, options: TableOptions) -> TableColumns:
    """Decide the kinds of the columns, and say so if anything is left out or was recognised."""
    kinds = decided_kinds(path, frame, options)
    notes = [*frame.notes, *kinds.notes]
    if kinds.left_out or notes:
        say(kinds.summary(len(frame.data)))
    for note in notes:
        say(note)
    return kinds


def decided_kinds(path: Path, frame: Frame, options: TableOptions, also: Frame | None = None) -> TableColumns:
    """Decide the kinds of the columns of a file, or of two files with the same columns together."""
    try:
        return TableColumns.of(
            frame.data,
            categorical=options.categorical or (),
            numeric=options.numeric or (),
            identifiers=options.identifiers or (),
            # A column that is asked for by name is wanted.
            keep_identifiers=options.keep_identifiers or options.columns is not None,
            missing=missing_of(options),
            cycles=False,
            also=None if also is None else also.data,
        )
    except InputError as error:  # rows of a file have lines, those of a frame are counted from 0
        message = re.sub(r"\bin row (\d+)\b", lambda found: f"at {frame.place(int(found[1]))}", str(error))
        raise InputError(f"{path}: {message}") from None


def _numeric_names(path: Path, frame: Frame, kinds: TableColumns, options: TableOptions) -> list[str]:
    """Return the names of the columns that are used; refuse words and times."""
    text = [str(column.name) for column in kinds.columns if column.kind != "numeric"]
    for name in text:
        if name not in (options.categorical or []) and _is_mostly_numbers(frame.data.column(name)):
            read_table(path, [name], min_rows=1, decimal=options.decimal)  # which names the line
    if text:
        several = len(text) > 1
        others = "" if len(text) < len(kinds.columns) else ", and there are no others; a table of numbers is needed"
        advice = "" if others else f"; leave {'them' if several else 'it'} out with `exclude={choice(text)}`"
        raise InputError(f"{path}: no numbers in column{'s' if several else ''} {listed(text)}{others}{advice}.")
    return [str(column.name) for column in kinds.columns]


def _is_infinite(cells: Any) -> bool:
    import pyarrow.compute as compute

    return str(cells.type) == "double" and bool(compute.any(compute.is_inf(cells)).as_py())


def _is_mostly_numbers(cells: Any) -> bool:
    import pyarrow.compute as compute

    if str(cells.type) not in ("string", "large_string"):
        return False
    numbers = compute.match_substring_regex(cells, r"^[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?$")
    return 2 * (compute.sum(numbers).as_py() or 0) > len(cells) - cells.null_count


def read_for_model(
    path: Path,
    options: TableOptions,
    expected: int,
    known: list[str] | None,
    read: Callable[..., T] = read_table,  # type: ignore[assignment]
) -> T:
    """Read the columns that a model was fitted on, in its order: by name where both have names, else by position.

    Parameters
    ----------
    path : Path
        The table.
    options : TableOptions
        Columns chosen by the user, and the decimal sign; the kinds of the columns are those of the model.
    expected : int
        Number of columns of the model.
    known : list of str, optional
        Names of the columns of the model.
    read : callable
        :func:`~isopleth.io.read_table` or :func:`~isopleth.io.open_rows`.

    Raises
    ------
    InputError
        If they are not there; the message names those missing and those left over.
    """
    present, columns = read_names(path), options.columns
    read = partial(read, decimal=options.decimal)
    if known is None or present is None:
        return _read_by_position(path, columns, expected, known, read)
    refuse_mismatch(path, known, present if columns is None else columns, chosen=columns is not None)
    return read(path, known, min_rows=1)


def refuse_mismatch(path: Path, names: list[str], offered: Sequence[str], *, chosen: bool) -> None:
    """Refuse missing columns. Other columns of the file are ignored; others that were chosen by name are refused."""
    there, known = set(offered), set(names)
    missing = [name for name in names if name not in there]
    extra = [name for name in offered if name not in known]
    if not missing and not (extra and chosen):
        return
    where = "--columns" if chosen else str(path)
    lacks = f"lacks {listed(missing)} of the model's columns" if missing else "has all of the model's columns"
    others = f", and has {listed(extra)} that it does not know" if extra else ""
    raise InputError(f"{where} {lacks}{others}; give the model the columns it was fitted on: {listed(names)}.")


def _read_by_position(
    path: Path, columns: Sequence[str] | None, expected: int, known: list[str] | None, read: Callable[..., T]
) -> T:
    table = read(path, columns, min_rows=1)
    if len(table.names) != expected:
        raise InputError(
            f"{path}: {len(table.names)} columns where the model was fitted on {expected}; choose them with --columns."
        )
    if known is not None:
        warnings.warn(
            f"{path} names no columns; they are taken to be {listed(known)}, in this order.", DataWarning, stacklevel=2
        )
    return table
