"""Cells of columns as numbers and codes, and numbers and codes as the cells of a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np

from isopleth.core.errors import InputError
from isopleth.tables.cells import MISSING_WORDS, NO_WORD, TRUTH, Cells, TextRule, parsed_number
from isopleth.tables.kinds import Column
from isopleth.tables.numerals import Numerals
from isopleth.tables.zones import zone_of

if TYPE_CHECKING:
    from isopleth.core.arrays import Backend
    from isopleth.tables.given import Given
    from isopleth.tables.schema import Schema

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode_cell(column: Column, value: Any, missing: frozenset[str] | None = None) -> float:
    """Encode one cell as a number or a code; NaN if it is missing: None, or one of the words `missing`."""
    words = (NO_WORD if column.is_words else MISSING_WORDS) if missing is None else missing
    cell = np.empty(1, dtype=object)
    cell[0] = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value
    cells = Cells.of_array(column.name, cell, words)
    try:
        if column.kind == "categorical":
            code = cells.codes(column.levels)[0]
            return np.nan if code < 0 else float(code)
        if column.kind == "time":
            if cells.form == "text":
                cells = Cells.of_list(column.name, [value], TextRule(words, Numerals()))
            if cells.known and (cells.zone is None) != (column.zone is None):
                zone = "no time zone" if column.zone is None else f"the time zone {column.zone}"
                how = (
                    "without one, as 2024-01-31 12:00"
                    if column.zone is None
                    else "with its zone, as 2024-01-31T12:00+01:00"
                )
                raise InputError(f"{{column}} holds times with {zone}; write a given time {how}.", column=column.name)
            return float(cells.times(column.zone)[0] - column.origin)
        return float(cells.numbers()[0])
    except InputError as error:  # a value that is in no row
        raise error.located(None, lambda _: "a given value") from None


def decode_cells(column: Column, values: np.ndarray, like: Any = None) -> Any:
    """Decode numbers or codes to numbers, times (of their zone) or words of the type of `like`, a cell of the table."""
    if column.kind == "numeric":
        return values
    if column.kind == "time":
        stamps = np.rint((values + column.origin) * 1e6)
        return stamps.astype("datetime64[us]") if column.zone is None else _zoned(stamps, column.zone)
    if like is None and column.levels == TRUTH:
        like = True
    return [None if np.isnan(code) else _typed(column.levels[int(code)], like) for code in values]


def displayed_cells(column: Column, values: np.ndarray) -> Any:
    """Decode numbers or codes as :func:`decode_cells` does, to times of day where the column holds these."""
    found = decode_cells(column, values)
    return [None if np.isnat(cell) else cell.item().time() for cell in found] if column.clock else found


def _zoned(stamps: np.ndarray, zone: str) -> np.ndarray:
    """Return microseconds since 1970 as datetimes of a zone, or of UTC where the zone is unknown or has no such year."""
    found = np.empty(len(stamps), dtype=object)
    where = zone_of(zone)
    for i, stamp in enumerate(stamps.tolist()):
        if np.isnan(stamp):
            continue
        moment = _EPOCH + timedelta(microseconds=stamp)
        try:
            found[i] = moment.astimezone(where)
        except OverflowError:
            found[i] = moment
    return found


def _typed(word: str, like: Any) -> Any:
    """Return a word as the type of another cell of its column."""
    if isinstance(like, (bool, np.bool_)):
        return word == "True"
    if isinstance(like, (int, np.integer)):
        return int(word)
    return float(word) if isinstance(like, (float, np.floating)) else word


def new_table(columns: Schema, values: np.ndarray, library: str | None) -> Any:
    """Make a table of encoded cells in the order of :attr:`Schema.columns`: a frame of a library, or an array if None."""
    cells = [decode_cells(column, values[:, j]) for j, column in enumerate(columns.columns)]
    if library is not None:
        names = [str(name) for name in columns.names]
        return nw.from_dict(dict(zip(names, cells, strict=True)), backend=cast(Any, library)).to_native()
    words = [word for levels in columns.levels for word in levels]
    if all(parsed_number(word) is not None for word in words) and not any(column.zone for column in columns.columns):
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in cells])
    out = np.empty(values.shape, dtype=object)
    for j, column in enumerate(cells):
        out[:, j] = column
    return out


def measured_table(given: Given, columns: Schema, values: np.ndarray, backend: Backend) -> Any:
    """Return numbers and times by column, without the words, as a frame of the library of a table, or as an array."""
    if (frame := given.frame) is None:
        return backend.array(values)
    cells = {
        str(column.name): [None] * len(values) if column.kind == "categorical" else decode_cells(column, values[:, j])
        for j, column in enumerate(columns.columns)
    }
    return nw.from_dict(cells, backend=frame.implementation).to_native()
