"""Filled and made rows as the file of a table writes its own: known cells as they stand, others in the form of their column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.files.file_table import FileTable
from isopleth.tables.forms import Form, form_of, plain

_MOST = 1000  # different cells by which the form of a column is found


def form_of_column(table: FileTable, name: str) -> Form:
    """Return the form of a column, by its cells as they stand in the file and the values read from them."""
    texts, values = (each.column(name).combine_chunks() for each in (table.cells, table.data))
    codes = texts.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    # The order of rows decides nothing: those texts are looked at whose first characters come first.
    rows = np.unique(codes, return_index=True)[1][: _MOST + 1]
    known = [row for row in rows.tolist() if codes[row] >= 0]
    day_first = table.schema.day_first.get(name)
    return form_of(texts.take(known).to_pylist(), values.take(known).to_pylist(), day_first=day_first)


def as_written(
    table: FileTable,
    rows: Any,
    known: Mapping[str, np.ndarray],
    like: Mapping[str, str],
    *,
    text: bool,
) -> Any:
    """Return new rows, an Arrow table, with the cells and types that the file of a table would have for them.

    `known` are masks of cells that stand in the file, by column, and `like` columns of the file that others look like. With
    `text`, cells of a file of text are text. The table has been read with its cells.
    """
    columns = {}
    for name in rows.column_names:
        of = like.get(name, name)
        mask = known.get(of, np.zeros(len(rows), dtype=bool))
        raw, new = table.cells.column(of), rows.column(name)
        if table.header is not None and not text:
            columns[name] = new
        elif table.header is not None or (_is_text(raw.type) and not _is_text(new.type)):
            columns[name] = _in_words(table, of, new, raw if mask.any() else None, mask)
        else:
            columns[name] = _of_type(new, raw, mask)
    return pa.table(columns)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _in_words(table: FileTable, name: str, new: Any, raw: Any, mask: np.ndarray) -> Any:
    """Return new values as text in the form of a column, with known cells as they stand."""
    if _is_text(new.type) or pa.types.is_dictionary(new.type):
        words = new.cast(pa.string())
    else:
        asked = new.filter(pa.array(~mask)).to_pylist()
        form = form_of_column(table, name) if table.data.column(name).type != pa.string() else plain
        cells = np.empty(len(mask), dtype=object)
        cells[~mask] = [None if cell is None else form(cell) for cell in asked]
        words = pa.chunked_array([pa.array(cells.tolist(), pa.string())])
    return words if raw is None else compute.if_else(pa.array(mask), raw.cast(pa.string()), words)


def _of_type(new: Any, raw: Any, mask: np.ndarray) -> Any:
    """Return new values with the type of a column of the file, with known cells as they stand."""
    kind = raw.type
    if pa.types.is_null(kind) or mask.all():
        return raw
    coded = pa.types.is_dictionary(kind)
    plain_kind = kind.value_type if coded else kind
    cells = new.cast(plain_kind, safe=False)
    if mask.any():
        cells = compute.if_else(pa.array(mask), raw.cast(plain_kind), cells)
    return cells.dictionary_encode().cast(kind) if coded else cells
