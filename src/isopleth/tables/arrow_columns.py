"""Columns of Arrow tables: other cells in them, and numbers, words and times in the types of other columns."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isopleth.tables.usual_types import in_usual_type

PREFIX = "arrow:"  # of the text of a type
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second


def with_columns(table: Any, columns: dict[Any, Any]) -> Any:
    """Return a table with other columns in the place of its own."""
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def with_cells(column: Any, rows: np.ndarray, cells: list[Any]) -> Any:
    """Return a column with other cells in some rows, of the same type."""
    kind = column.type
    known = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else in_usual_type(column)
    place = np.arange(len(column))
    place[rows] = len(column) + np.arange(len(rows))
    return _packed(pa.chunked_array([*known.chunks, pa.array(cells, known.type)]).take(pa.array(place)), kind)


def _packed(column: Any, kind: Any) -> Any:
    """Return plain cells as a column of codes, runs or views."""
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(column.cast(kind.value_type), run_end_type=kind.run_end_type)
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type).dictionary_encode().cast(kind)
    return column.cast(kind, safe=False)


def type_of(table: Any, name: Any) -> str:
    """Return the type of a column as text."""
    return text_of_type(table.schema.field(name).type)


def text_of_type(kind: Any) -> str:
    """Return a type as text, which :func:`type_of_text` reads."""
    return PREFIX + base64.b64encode(pa.schema([("x", kind)]).serialize()).decode()


def type_of_text(text: str) -> Any:
    """Return the type that a text says."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text.removeprefix(PREFIX)))).field(0).type


def in_types(table: Any, types: dict[str, str]) -> Any:
    """Return a table with the types of other rows."""
    asked = [name for name in table.column_names if types.get(name, "").startswith(PREFIX)]
    return with_columns(table, {name: in_type(table.column(name), types[name]) for name in asked})


def in_type(column: Any, text: str) -> Any:
    """Return a column of numbers, words or times with the type that a text says."""
    kind = type_of_text(text)
    value = getattr(kind, "value_type", kind)
    if pa.types.is_floating(column.type):  # with gaps in the place of NaN
        column = pa.chunked_array([pa.array(column.to_numpy(), from_pandas=True)])
    convert = next((convert for test, convert in _CONVERSIONS if test(value)), None)
    return _packed(column if convert is None else convert(column, value), kind)


def _clocks(column: Any, kind: Any) -> Any:
    """Return times as times of day."""
    return pa.chunked_array([pa.array([cell and cell.time() for cell in column.to_pylist()], pa.time64("us"))])


def _durations(column: Any, kind: Any) -> Any:
    """Return seconds as whole numbers of the unit of a type."""
    return pc.round(pc.multiply(column, float(UNITS[kind.unit]))).cast(pa.int64())


def _decimals(column: Any, kind: Any) -> Any:
    """Return numbers with the decimals of a type."""
    step = Decimal(1).scaleb(-kind.scale)
    cells = [None if cell is None else Decimal(repr(cell)).quantize(step) for cell in column.to_pylist()]
    return pa.chunked_array([pa.array(cells, kind)])


def _whole(column: Any, kind: Any) -> Any:
    """Return numbers rounded to whole ones."""
    return pc.round(column) if pa.types.is_floating(column.type) else column


# Types that need more than a cast.
_CONVERSIONS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]], ...] = (
    (pa.types.is_time, _clocks),
    (pa.types.is_duration, _durations),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_integer, _whole),
)
