"""Read the columns of a table that a model needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from isopleth.errors import DataWarning, InputError
from isopleth.io import FileRows, Table, read_names, read_table
from isopleth.io.source import listed

T = TypeVar("T", Table, FileRows)


def read_for_model(
    path: Path,
    columns: Sequence[str] | None,
    expected: int,
    known: list[str] | None,
    read: Callable[..., T] = read_table,  # type: ignore[assignment]
) -> T:
    """Read the columns that a model was fitted on, in its order: by name where both have names, else by position.

    Parameters
    ----------
    path : Path
        The table.
    columns : sequence of str, optional
        Columns chosen by the user.
    expected : int
        How many columns the model was fitted on.
    known : list of str, optional
        Their names.
    read : callable
        :func:`~isopleth.io.read_table` or :func:`~isopleth.io.open_rows`.

    Raises
    ------
    InputError
        If they are not there; the message names those missing and those left over.
    """
    present = read_names(path)
    if known is None or present is None:
        return _read_by_position(path, columns, expected, known, read)
    _refuse_mismatch(path, known, present if columns is None else columns, chosen=columns is not None)
    return read(path, known, min_rows=1)


def _refuse_mismatch(path: Path, names: list[str], offered: Sequence[str], *, chosen: bool) -> None:
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
