"""Filled and made rows as the file of a table writes its own: known cells as they stand, others in the form of their column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import InputError, quoted
from isopleth.files.file_table import FileTable
from isopleth.tables.forms import Form, exact, form_of, plain

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

    `known` are masks of cells that stand in the file, by column, and `like` columns of the file that others look like, whose
    masks hold where they have none. With `text`, cells of a file of text are text. The table has been read with its cells.
    """
    columns = {}
    for name in rows.column_names:
        of = like.get(name, name)
        mask = known.get(name, known.get(of, np.zeros(len(rows), dtype=bool)))
        raw, new = table.cells.column(of), rows.column(name)
        ends_of_limits = name in like and of in table.odd.censored
        if not text and (table.header is not None or ends_of_limits):
            columns[name] = new
        elif table.header is not None or (_is_text(raw.type) and not _is_text(new.type)):
            columns[name] = _in_words(table, of, new, raw if mask.any() else None, mask, exactly=ends_of_limits)
        else:
            columns[name] = _of_type(new, raw, mask)
    return pa.table(columns)


def limits_as_written(table: FileTable, known: Mapping[str, np.ndarray]) -> dict[str, dict[int, str]]:
    """Return the known cells of a file of text that say a limit, as they stand there: texts by row, by column.

    Columns of numbers, as :func:`as_written` makes them, have no place for these.
    """
    if table.header is None:
        return {}
    found = {}
    for name in table.odd.censored.keys() & known.keys():
        cells, rows = table.cells.column(name), table.odd.censored[name].rows
        found[name] = {row: cells[row].as_py() for row in rows[known[name][rows]].tolist()}
    return {name: texts for name, texts in found.items() if texts}


def refuse_lost_limits(path: Path, table: FileTable, *, ways: str = "") -> None:
    """Refuse a format whose columns are all numbers for cells that say a limit and stay; `ways` are further ways out."""
    suffix = path.suffix.lower()
    if suffix not in (".parquet", ".npy") or table.header is None:
        return
    names = [name for name in table.data.column_names if name in table.odd.censored]
    if names:
        text = table.odd.censored[names[0]].texts[0]
        raise InputError(
            f"{path}: cells of column{'s' * (len(names) > 1)} {quoted(names)} say a limit, such as {text!r}, which "
            f"{suffix} cannot hold among numbers; write .csv, .tsv or .jsonl{ways}.",
            column=names[0],
        )


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _in_words(table: FileTable, name: str, new: Any, raw: Any, mask: np.ndarray, *, exactly: bool) -> Any:
    """Return new values as text in the form of a column, `exactly` with all decimals, and known cells as they stand."""
    if _is_text(new.type) or pa.types.is_dictionary(new.type):
        words = new.cast(pa.string())
    else:
        asked = new.filter(pa.array(~mask)).to_pylist()
        form = form_of_column(table, name) if table.data.column(name).type != pa.string() else plain
        form = exact(form) if exactly else form  # a limit may have more decimals than the numbers
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
