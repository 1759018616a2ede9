"""Columns of a file with types of their own: text becomes numbers, times and truth values where it holds these."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from isopleth.core.errors import InputError, Message
from isopleth.files.file_table import FileTable
from isopleth.files.readers import Columns
from isopleth.files.source import Source
from isopleth.tables.cells import hold_codes, say_limits
from isopleth.tables.numerals import Numerals
from isopleth.tables.plain_numbers import without_codes
from isopleth.tables.schema import Schema
from isopleth.tables.text_column import known_words
from isopleth.tables.text_times import days_of
from isopleth.tables.text_types import typed
from isopleth.tables.unread import CensoredCells, OddCells, UnreadCells


@dataclass(frozen=True, eq=False)
class TypedColumns:
    """Columns with types of their own, the cells that could not be read, and what was recognised."""

    data: Any
    odd: OddCells
    notes: list[Message]


@dataclass(frozen=True)
class ParseOptions:
    """Way to read the text of columns."""

    missing: frozenset[str]  # words that mean a missing cell
    placeholders: frozenset[str]  # those that do so beside numbers and times
    numerals: Numerals
    day_first: dict[str, bool]  # order of days and months by column; it gets what the cells show
    detection_limits: Mapping[str, float]  # what words such as ND say, by column


def typed_columns(
    source: Source,
    columns: Columns,
    names: list[str],
    wanted: Mapping[str, str],
    written: Collection[str],
    way: ParseOptions,
) -> TypedColumns:
    """Return columns with types of their own, some as they are `wanted`.

    Text that looks like numbers is numbers in the columns `written`, unless some of them begin with 0, and where it is wanted.
    """
    table = FileTable(columns.data, Schema.of_numbers([], True), source.shown, True, columns.lines)
    found: list[Any] = []
    unread: dict[str, UnreadCells] = {}
    censored: dict[str, CensoredCells] = {}
    notes: list[Message] = []
    for name, cells in zip(names, columns.data.columns, strict=False):  # labels come behind
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if pa.types.is_nested(cells.type):
            text = "{column} holds lists or records; leave it out, or make columns of them."
            raise InputError(text, column=name).located(source)
        if pa.types.is_null(cells.type):
            cells = cells.cast(pa.string())
        elif pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
            cells = cells.cast(pa.string())
            kind = wanted.get(name)
            if kind == "categorical":
                cells = known_words(cells, way.missing)
            else:
                numbers = kind == "numeric" or (name in written and not hold_codes(cells))
                numbers = numbers or (kind is None and say_limits(cells))
                how: dict[str, Any] = {"wanted": kind, "placeholders": way.placeholders}
                how["detection_limit"] = way.detection_limits.get(name)
                try:
                    read = typed(name, cells, way.missing, way.numerals, table.place, way.day_first, numbers, **how)
                except InputError as error:
                    raise error.located(source, table.place) from None
                unread |= {name: read.unread} if read.unread else {}
                censored |= {name: read.censored} if read.censored else {}
                cells = read.values
                notes += read.notes
        elif pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
            cells = without_codes(cells, way.missing)
            kind = wanted.get(name)
            days = days_of(name, cells, asked=kind == "time") if kind in (None, "time") else None
            if days is not None:
                cells = days.values
                notes += days.notes
        found.append(cells)
    return TypedColumns(pa.table(found, names=names), OddCells(unread, censored), notes)
