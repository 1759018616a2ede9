"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from isopleth.errors import InputError
from isopleth.io.source import Block, MissingCells, Origin, positions, refuse_text, regrouped

# Prefix of the column in which pandas stores the labels of the rows.
_INDEX = "__index_level_"

# Rows that Arrow decodes at a time.
_BATCH = 65_536

# Bytes of each column that are read ahead.
_BUFFER = 2**20


def read_parquet_names(path: Origin) -> list[str]:
    """Return the column names of a Parquet file."""
    with opened_parquet(path) as file:
        return column_names(file)


class ParquetSource:
    """Chosen columns of a Parquet file, read in blocks.

    Parameters
    ----------
    path : Origin
        The file.
    columns, but
        As for :func:`isopleth.io.read_table`.

    Raises
    ------
    InputError
        If it is no such file, or a chosen column holds no numbers.
    """

    named = True
    missing: MissingCells | None = None

    def __init__(self, path: Origin, columns: Sequence[str] | None, but: str | None) -> None:
        self._path = path
        with opened_parquet(path) as file:
            names = column_names(file)
            self.names = [names[j] for j in positions(path, names, columns, but)]
            schema = file.schema_arrow
            text = [name for name in self.names if not is_numeric(schema.field(name).type)]
            self._ends = np.cumsum(
                [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)], dtype=np.int64
            )
        refuse_text(path, text, [name for name in self.names if name not in text], chosen=columns is not None)
        self.n_rows = int(self._ends[-1]) if len(self._ends) else 0

    def blocks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Yield blocks of `size` rows from row `start` on; the last may be smaller."""
        if start >= self.n_rows:
            return
        group = int(np.searchsorted(self._ends, start, side="right"))
        skip = start - (int(self._ends[group - 1]) if group else 0)
        groups = list(range(group, len(self._ends)))
        with opened_parquet(self._path) as file:
            found = file.iter_batches(min(size, _BATCH), row_groups=groups, columns=self.names)
            for values in regrouped(map(self._floats, found), size, skip):
                yield Block(values)

    def _floats(self, batch: Any) -> np.ndarray:
        values = np.empty((batch.num_rows, len(self.names)))
        for j, name in enumerate(self.names):
            values[:, j] = floats(batch.column(name))
        return values


def read_parquet_labels(path: Origin, column: str) -> list[Any]:
    """Return the cells of one column: words, numbers, booleans or dates, and None for missing ones."""
    types = _types()
    with opened_parquet(path) as file:
        positions(path, column_names(file), [column])
        if types.is_nested(file.schema_arrow.field(column).type):
            raise InputError(f"{path}: column {column!r} holds lists or records; expected one word or number a row.")
        return list(file.read(columns=[column]).column(column).to_pylist())


def _types() -> Any:
    import pyarrow

    return pyarrow.types


@contextmanager
def opened_parquet(path: Origin) -> Iterator[Any]:
    """Open a Parquet file; errors of its reader become one sentence."""
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        # Read in pieces: a group of rows may be as large as the file.
        with parquet.ParquetFile(path.path, buffer_size=_BUFFER, pre_buffer=False) as file:
            yield file
    except (arrow.ArrowException, OSError):
        raise InputError(f"{path} is damaged or cut short, and is no Parquet table; save it again.") from None


def column_names(file: Any) -> list[str]:
    """Return the names of the columns, without the index of a frame."""
    return [name for name in file.schema_arrow.names if not name.startswith(_INDEX)]


def is_numeric(kind: Any) -> bool:
    """Tell whether an Arrow type holds numbers: integers, floats, decimals, booleans, or nothing but missing cells."""
    types = _types()
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def floats(column: Any) -> np.ndarray:
    """Return the numbers of a column, NaN for missing ones. Arrow casts booleans to floats only through integers."""
    types = _types()
    steps = ("int8", "float64") if types.is_boolean(column.type) else ("float64",)
    for step in steps:
        column = column.cast(step, safe=False)
    return column.to_numpy(zero_copy_only=False)
