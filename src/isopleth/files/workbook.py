"""Workbooks: one sheet as a table, by its name or number, and what a table cannot say of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import pyarrow as pa

from isopleth.core.errors import Hint, InputError, Message, quoted, require
from isopleth.files.readers import Columns, array_of, mixed_columns
from isopleth.files.source import Source
from isopleth.tables.cells import number_word

_CELL = 8  # bytes of a cell in memory, at least
_FORMULA = (b"<f>", b"<f ")


def read_workbook(source: Source, sheet: str | int | None = None) -> Columns:
    """Read a sheet of a workbook, the first visible one by default: names in its first row, rows of the table below."""
    openpyxl = require("openpyxl", "xlsx", "Reading workbooks")
    with _of_workbooks(source):
        with ZipFile(source.file) as archive:
            source.refuse_beyond(sum(member.file_size for member in archive.infolist()), "the unpacked workbook")
        book = openpyxl.load_workbook(source.file, read_only=True, data_only=True)
        name, others = _chosen(source, book, sheet)
        rows = list(_sheet_rows(source, book[name]))
    if len(rows) < 2:
        what = "the first sheet" if sheet is None else f"the sheet {name!r}"
        raise InputError(f"{source}: {what} has no rows below a header; a table is needed.")
    _refuse_title(source, rows)
    (first, header), body = rows[0], rows[1:]
    width = max(len(row) for _, row in rows)
    names = [str(cell).strip() if cell is not None else f"x{j + 1}" for j, cell in enumerate(header)]
    names += [f"x{j + 1}" for j in range(len(names), width)]
    for line, row in body:
        if row == header:
            raise InputError(f"{source}, line {line} repeats the header of line {first}; delete that line.")
    lines = [line for line, _ in body]
    cells = [[row[j] if j < len(row) else None for _, row in body] for j in range(width)]
    arrays = [array_of(source, name, column, lines) for name, column in zip(names, cells, strict=True)]
    texts = pa.table([pa.array(map(_shown, column), pa.string()) for column in cells], names=names)
    notes = []
    if others and sheet is None:
        hint = Hint("another is read with {sheet}", sheet=others[0])
        notes.append(Message(f"the sheet {name!r} is read, and not {quoted(others)}", hint=hint))
    notes += _notes_of_formulas(source, name, dict(zip(lines, range(len(lines)), strict=True)), cells, names)
    data = pa.table(arrays, names=names)
    return Columns(data, True, np.array(lines, dtype=np.int64), mixed_columns(arrays, cells), texts, tuple(notes))


@contextmanager
def _of_workbooks(source: Source) -> Iterator[None]:
    """Rewind a file, and turn the errors of its reader into one sentence."""
    source.file.seek(0)
    try:
        yield
    except InputError:
        raise
    except (BadZipFile, KeyError, IndexError, ValueError, OSError):
        raise InputError(f"{source} is damaged, or no workbook with a sheet; save it again.") from None


def _chosen(source: Source, book: Any, sheet: str | int | None) -> tuple[str, list[str]]:
    """Return the name of the sheet of a name, or of the number of a visible one, and the names of other visible ones."""
    every = [each.title for each in book.worksheets]
    visible = [each.title for each in book.worksheets if each.sheet_state == "visible"] or every
    if sheet is None:
        return visible[0], visible[1:]
    if sheet in every:
        return str(sheet), [name for name in visible if name != sheet]
    number = int(sheet) if str(sheet).isdigit() else 0
    if not 1 <= number <= len(visible):
        text = f"{source} has no sheet {{value}} ({{parameter}}); it has {quoted(visible)}."
        raise InputError(text, parameter="sheet", value=sheet)
    return visible[number - 1], [name for name in visible if name != visible[number - 1]]


def _refuse_title(source: Source, rows: list[tuple[int, tuple]]) -> None:
    """Refuse lines of one cell above the header of a table of several columns: they are a title, and no names."""
    (line, first), others = rows[0], rows[1:]
    filled = [(number, [cell for cell in row if cell is not None]) for number, row in others]
    at = next((i for i, (_, cells) in enumerate(filled) if len(cells) > 1), None)
    if at is None or sum(cell is not None for cell in first) != 1 or len(rows) < at + 3:
        return
    header, cells = filled[at]
    if all(isinstance(cell, str) for cell in cells):
        title = next(cell for cell in first if cell is not None)
        raise InputError(
            f"{source}, line {line}: a title, {str(title)!r}, stands above the header in line {header}",
            hint="delete the lines above the header",
        )


def _notes_of_formulas(
    source: Source, sheet: str, rows: dict[int, int], cells: list[list[Any]], names: list[str]
) -> list[Message]:
    """Return a message about each column with formulas whose values were not saved: their cells are empty.

    `rows` are the rows of the table by their lines.
    """
    if not any(cell is None for column in cells for cell in column):
        return []
    with _of_workbooks(source), ZipFile(source.file) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        if not any(mark in archive.read(name) for name in sheets for mark in _FORMULA):
            return []
    openpyxl = require("openpyxl", "xlsx", "Reading workbooks")
    found: dict[int, list[int]] = {}
    with _of_workbooks(source):
        book = openpyxl.load_workbook(source.file, read_only=True)
        for line, row in _sheet_rows(source, book[sheet]):
            for j, cell in enumerate(row if line in rows else ()):
                if isinstance(cell, str) and cell.startswith("=") and cells[j][rows[line]] is None:
                    found.setdefault(j, []).append(rows[line])
    hint = "open the workbook in a spreadsheet and save it"
    text = "{column}: {value} formulas without a saved value, the first in {row}, count as missing"
    return [Message(text, column=names[j], row=where[0], value=len(where), hint=hint) for j, where in found.items()]


def _shown(cell: Any) -> str | None:
    """Return the cell of a workbook as a workbook shows it."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return number_word(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ").removesuffix(" 00:00:00")
    return None if cell is None else str(cell)


def _sheet_rows(source: Source, sheet: Any) -> Iterator[tuple[int, tuple]]:
    """Yield the rows that are not empty. One cell in the last corner of a sheet makes 17 thousand million of them."""
    sheet.reset_dimensions()
    width = 0
    for line, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if any(cell is not None for cell in row):
            while row and row[-1] is None:
                row = row[:-1]
            width = max(width, len(row))
            source.refuse_beyond(line * width * _CELL, "the cells of the first sheet up to the last one that is filled")
            yield line, row
