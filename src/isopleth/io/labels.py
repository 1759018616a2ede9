"""The classes of the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isopleth.errors import InputError
from isopleth.io.csv_file import read_csv_labels
from isopleth.io.parquet_file import read_parquet_labels
from isopleth.io.tables import read_table
from isopleth.io.text_column import kind_of


def read_labels(path: Path, column: str) -> np.ndarray:
    """One column as it stands there: words of text files, numbers or words of Parquet files, numbers of arrays.

    Parameters
    ----------
    path : Path
        The table, in a format of :func:`isopleth.io.read_table`.
    column : str
        Name of the column.

    Returns
    -------
    ndarray of shape (n,)
        One class a row.

    Raises
    ------
    InputError
        If there is no such column, or a row has no class; the message names the first.
    """
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        cells, lines = read_csv_labels(path, "\t" if suffix == ".tsv" else None, column)
        _refuse_missing(path, column, _missing_words(cells), [f"line {line}" for line in lines])
        return np.array(cells)
    if suffix == ".parquet":
        values = read_parquet_labels(path, column)
        _refuse_missing(path, column, [_is_missing(v) for v in values], [f"row {i + 1}" for i in range(len(values))])
        return np.array(values)
    return read_table(path, [column]).values[:, 0]


def _missing_words(cells: list[str]) -> list[bool]:
    """Among words, "none" may be a class; among numbers, it and its like are missing ones."""
    kinds = [kind_of(cell) for cell in cells]
    return [cell == "" for cell in cells] if "text" in kinds else [kind == "missing" for kind in kinds]


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _refuse_missing(path: Path, column: str, missing: list[bool], places: list[str]) -> None:
    if any(missing):
        place = places[missing.index(True)]
        raise InputError(f"{path}, {place}: no class in column {column!r}; fill the cell or drop the row.")
