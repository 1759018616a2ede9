"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.errors import InputError, require
from isopleth.io.raw import Raw
from isopleth.io.selection import positions, refuse_text

_INDEX = "__index_level_"
"""What pandas calls the column in which it keeps the labels of the rows."""


def read_parquet_names(path: Path) -> list[str]:
    """Column names of a Parquet file."""
    with _opened(path) as file:
        return _names(file)


def read_parquet(path: Path, columns: Sequence[str] | None, but: str | None) -> Raw:
    """Read the chosen columns of a Parquet file."""
    types = require("pyarrow", "parquet", "Reading Parquet").types
    with _opened(path) as file:
        names = _names(file)
        chosen = [names[j] for j in positions(path, names, columns, but)]
        schema = file.schema_arrow
        text = [name for name in chosen if not _is_numeric(types, schema.field(name).type)]
        refuse_text(path, text, [name for name in chosen if name not in text], chosen=columns is not None)
        table = file.read(columns=chosen)
        values = np.empty((table.num_rows, len(chosen)))
        for j, name in enumerate(chosen):
            values[:, j] = _floats(table.column(name))
    return Raw(values, chosen, named=True)


def read_parquet_labels(path: Path, column: str) -> list[Any]:
    """One column as it stands there: words, numbers, truth values or dates, and None for what is missing."""
    types = require("pyarrow", "parquet", "Reading Parquet").types
    with _opened(path) as file:
        positions(path, _names(file), [column])
        if types.is_nested(file.schema_arrow.field(column).type):
            raise InputError(f"{path}: column {column!r} holds lists or records; expected one word or number a row.")
        return list(file.read(columns=[column]).column(column).to_pylist())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The Parquet file, with what its reader can meet turned into one sentence."""
    arrow = require("pyarrow", "parquet", "Reading Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowException, OSError):
        raise InputError(f"{path} is damaged or cut short, and is no Parquet table; save it again.") from None


def _names(file: Any) -> list[str]:
    return [name for name in file.schema_arrow.names if not name.startswith(_INDEX)]


def _is_numeric(types: Any, kind: Any) -> bool:
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _floats(column: Any) -> np.ndarray:
    """Numbers of a column, NaN where it has none. Booleans have no direct way to floats in Arrow."""
    types = require("pyarrow", "parquet", "Reading Parquet").types
    steps = ("int8", "float64") if types.is_boolean(column.type) else ("float64",)
    for step in steps:
        column = column.cast(step, safe=False)
    return column.to_numpy()
