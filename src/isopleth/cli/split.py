"""``--split``: two parts of one table, by the entries of a column or at a number or time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.cli.given import shell_name, typed_number
from isopleth.cli.run import Run
from isopleth.core.errors import InputError, listed, quoted, warn_user
from isopleth.files.file_table import FileTable
from isopleth.files.read import Reader, Reading
from isopleth.files.table_parts import files_of, read_files
from isopleth.results.text import cell_text
from isopleth.tables.coded_cells import displayed_cells, encode_cell
from isopleth.tables.kinds import Column

# Entries that a message names.
_MOST_NAMED = 6


@dataclass(frozen=True)
class TwoParts:
    """Rows of two parts of one table, as masks, and what each part is called."""

    column: str
    names: tuple[str, str]
    masks: tuple[np.ndarray, np.ndarray]


def read_parts(
    run: Run, path: Path, split: str, labels: Mapping[str, str]
) -> tuple[FileTable, FileTable, tuple[str, str]]:
    """Read a table and return two parts of it and their names, without the column that divides them; all rows decide kinds."""
    parts = parts_of(run, path, split)
    kept = None if run.options.columns is None else [name for name in run.options.columns if name != parts.column]
    out = [parts.column] if kept is None else []
    run.options = replace(run.options, columns=kept, exclude=[*run.options.exclude, *out])
    table = run.read(path, labels=labels)
    first, second = (table.take(np.flatnonzero(mask)) for mask in parts.masks)
    run.sources |= {"X": first, "Y": second}
    return first, second, parts.names


def parts_of(run: Run, path: Path, split: str) -> TwoParts:
    """Return the parts that ``COL``, ``COL=A``, ``COL=A,B``, ``COL@VALUE`` or ``COL@median`` says."""
    name, sign, said = _divided(split, columns_of(run, path))
    table = read_files(path, _of_column(run.options, name), 2)
    if not table.schema.columns:
        raise InputError(f"--split {split}: all cells of column {name!r} are alike; give a column with two entries.")
    column = table.schema.columns[0]
    cells = table.encoded().rows[:, 0]
    missing = np.isnan(cells)
    if missing.any():
        rows = "1 row has" if missing.sum() == 1 else f"{missing.sum():,} rows have"
        warn_user(f"{rows} no entry in {name!r} and {'is' if missing.sum() == 1 else 'are'} left out.")
    at = _at if sign == "@" else _by_entries
    names, masks = at(split, column, cells, said)
    for label, mask in zip(names, masks, strict=True):
        if not mask.any():
            raise InputError(f"--split {split}: no row has {label}; choose another value.")
    return TwoParts(name, names, masks)


def _of_column(options: Reading, name: str) -> Reading:
    """Return how one column is read: what was said of others is for the tables that are compared."""
    said: dict[str, Any] = {
        kind: [name] if name in getattr(options, kind) else [] for kind in ("categorical", "numeric", "time_columns")
    }
    return replace(options, columns=[name], exclude=[], labels=[], identifiers=[], rename_each=False, **said)


def columns_of(run: Run, path: Path) -> list[str]:
    """Return the names of the columns of a table."""
    return list(
        Reader(files_of(path)[0], replace(run.options, columns=None, exclude=[], labels=[], rename_each=False)).names
    )


def _divided(split: str, offered: list[str]) -> tuple[str, str, str]:
    """Return column, sign and values of what was typed; a name may hold = or @ itself."""
    if split in offered:
        return split, "", ""
    for place, sign in enumerate(split):
        if sign in "=@" and split[:place].strip() in offered:
            return split[:place].strip(), sign, split[place + 1 :].strip()
    raise InputError(
        f"--split {split}: there is no such column; expected one of {quoted(offered)}, as COL, COL=A, COL=A,B, COL@VALUE or "
        "COL@median."
    )


def _code(split: str, column: Column, text: str) -> float:
    """Return what a typed entry is in a column: the code of a word, or a number or time."""
    found: Any = text
    if column.kind == "numeric":
        found = typed_number(text)
        if not np.isfinite(found):
            raise InputError(f"--split {split}: column {shell_name(column)!r} holds numbers and {text!r} is none.")
    return float(encode_cell(column, found))


def _at(
    split: str, column: Column, cells: np.ndarray, said: str
) -> tuple[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Divide at a number or time: what is below it, and what is not."""
    name = shell_name(column)
    if column.kind == "categorical":
        raise InputError(f"--split {split}: column {name!r} holds words, which have no order; give {name}=A,B.")
    if said.lower() == "median":
        value = _middle(cells[~np.isnan(cells)])
        said = cell_text(displayed_cells(column, np.array([value]))[0])
    else:
        value = _code(split, column, said)
    return (f"{name} < {said}", f"{name} >= {said}"), (cells < value, cells >= value)


def _middle(cells: np.ndarray) -> float:
    """Return the value that divides cells most evenly in those below and those from it on: of many equal ones, one end."""
    values, counts = np.unique(cells, return_counts=True)
    below = np.cumsum(counts)[:-1] if len(values) > 1 else np.zeros(1)
    nearest = int(np.argmin(np.abs(below - len(cells) / 2)))
    return float(values[min(nearest + 1, len(values) - 1)])


def _by_entries(
    split: str, column: Column, cells: np.ndarray, said: str
) -> tuple[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Divide by two entries, by one and all others, or by the only two that there are."""
    name, found = shell_name(column), np.unique(cells[~np.isnan(cells)])
    words = [cell_text(cell) for cell in displayed_cells(column, found)]
    if column.is_words:  # whose codes say how frequent they are
        words, found = sorted(words), found[np.argsort(words)]
    if not said:
        if len(found) != 2:
            has = f"has {len(found):,} entries: {listed(words, _MOST_NAMED)}"
            order = "" if column.kind == "categorical" else f", or a value to divide at, as in {name}@VALUE"
            raise InputError(f"--split {split}: column {name!r} {has}; choose two, as in {name}=A,B{order}.")
        return (f"{name}={words[0]}", f"{name}={words[1]}"), (cells == found[0], cells == found[1])
    whole = _known(column, said, found)
    texts = [said] if whole else [text.strip() for text in said.split(",")]
    if len(texts) > 2:
        raise InputError(f"--split {split}: {len(texts)} entries; give two, or one that is compared with all others.")
    codes = [_code(split, column, text) for text in texts]
    for text, code in zip(texts, codes, strict=True):
        if code not in found:
            order = f"; {name}@{text} divides the column there" * (column.kind != "categorical" and len(texts) == 1)
            raise InputError(f"--split {split}: no row has {name}={text}; it has {listed(words, _MOST_NAMED)}{order}.")
    first = cells == codes[0]
    if len(codes) == 1:
        return (f"{name}={texts[0]}", f"{name} otherwise"), (first, ~first & ~np.isnan(cells))
    if codes[0] == codes[1]:
        raise InputError(f"--split {split}: both entries are the same; give two.")
    return (f"{name}={texts[0]}", f"{name}={texts[1]}"), (first, cells == codes[1])


def _known(column: Column, text: str, found: np.ndarray) -> bool:
    """Tell whether a text with a comma is one entry of a column of words."""
    return column.kind == "categorical" and float(encode_cell(column, text)) in found
