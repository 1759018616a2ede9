"""The first line of a text file: names of the columns, or numbers already; and what pandas puts there."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from isopleth.errors import InputError
from isopleth.io.text_column import Column, cut, kind_of
from isopleth.validation import DataWarning


def header_names(path: Path, first: list[str]) -> list[str] | None:
    """Column names in the first line, or None if it holds numbers."""
    kinds = [kind_of(cell) for cell in first]
    if _is_numbered(first) or ("number" not in kinds and "boolean" not in kinds):
        return [cell.strip() or f"x{j + 1}" for j, cell in enumerate(first)]
    if "text" in kinds:
        word = first[kinds.index("text")]
        value = next(cell for cell, kind in zip(first, kinds, strict=True) if kind in ("number", "boolean"))
        raise InputError(
            f"{path}: the first line mixes words ({cut(word)}) and numbers ({cut(value)}), so it is neither a header "
            "nor a row; put a header above it, or give every column a name that is not a number."
        )
    return None


def _is_numbered(first: list[str]) -> bool:
    """Whether the line is 0, 1, 2, ..., the header of a frame made of an array, or that after a blank for its index."""
    names = first[1:] if first and not first[0].strip() else first
    return len(names) > 1 and [name.strip() for name in names] == [str(j) for j in range(len(names))]


def warn_of_numbered_header(path: Path, first: list[str]) -> None:
    """Say so where a header could be meant as a row."""
    if _is_numbered(first):
        warnings.warn(
            f"{path}: the first line counts the columns from 0, so it is taken as a header and not as a row.",
            DataWarning,
            stacklevel=5,
        )


def without_row_numbers(path: Path, first: list[str], columns: list[Column]) -> list[Column]:
    """All columns but a first one without a name that counts the rows, as the index of a frame does."""
    if first[0].strip() or len(columns) < 2:
        return columns
    values = columns[0].values
    if values[0] not in (0, 1) or not np.array_equal(values, values[0] + np.arange(len(values))):
        return columns
    warnings.warn(
        f"{path}: the first column has no name and counts the rows; it is left out.", DataWarning, stacklevel=5
    )
    return columns[1:]
