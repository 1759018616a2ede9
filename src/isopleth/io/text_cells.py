"""One column of a table as it stands there: words or numbers, for the classes of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isopleth.errors import InputError, require
from isopleth.io.csv_file import _opened, _reader, _records
from isopleth.io.header import header_names, without_row_numbers
from isopleth.io.tables import read_table
from isopleth.io.text_column import Column

_NO_TEXT = ""


def read_cells(path: Path, column: str) -> np.ndarray:
    """The cells of one column: words of text files, numbers or words of Parquet files, numbers of arrays.

    Parameters
    ----------
    path : Path
        The table, in a format of :func:`isopleth.io.read_table`.
    column : str
        Name of the column, which the table has.

    Returns
    -------
    ndarray of shape (n,)
        One cell a row.

    Raises
    ------
    InputError
        If a cell is empty; the message names the first.
    """
    if path.suffix.lower() == ".parquet":
        return _from_parquet(path, column)
    if _delimiter(path) == _NO_TEXT:
        return read_table(path, [column]).values[:, 0]
    lines, cells = _from_text(path, column)
    if "" in cells:
        raise InputError(
            f"{path}, line {lines[cells.index('')]}: no class in column {column!r}; fill the cell or drop the row."
        )
    return np.array(cells)


def names_without_index(path: Path, names: Sequence[str]) -> list[str]:
    """The names of the columns but that of a first one that counts the rows of a text file, as the index of a frame does.

    Parameters
    ----------
    path : Path
        The table.
    names : sequence of str
        All its columns.

    Returns
    -------
    list of str
        All of them, or all but the first.
    """
    if _delimiter(path) == _NO_TEXT or len(names) < 2:
        return list(names)
    lines, cells = _from_text(path, names[0])
    first = Column(names[0])
    first.add(cells, lines)
    kept = without_row_numbers(path, _records_of(path)[0][1], [first, Column(names[1])])
    return list(names[2 - len(kept) :])


def _delimiter(path: Path) -> str | None:
    """That of a text file, None where it is to be found out, and _NO_TEXT for other files."""
    return {".csv": None, ".tsv": "\t"}.get(path.suffix.lower(), _NO_TEXT)


def _records_of(path: Path) -> list[tuple[int, list[str]]]:
    with _opened(path) as file:
        return list(_records(_reader(file, path, _delimiter(path))))


def _from_text(path: Path, column: str) -> tuple[list[int], list[str]]:
    """Line and cell of every row."""
    records = _records_of(path)
    names = header_names(path, records[0][1])
    where = int(column[1:]) - 1 if names is None else names.index(column)  # x1, x2, ... where the file has no names
    rows = records if names is None else records[1:]
    return [line for line, _ in rows], [record[where].strip() for _, record in rows]


def _from_parquet(path: Path, column: str) -> np.ndarray:
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    cells = parquet.read_table(path, columns=[column]).column(column).to_pylist()
    if None in cells:
        raise InputError(
            f"{path}, row {cells.index(None) + 1}: no class in column {column!r}; fill the cell or drop the row."
        )
    return np.array(cells)
