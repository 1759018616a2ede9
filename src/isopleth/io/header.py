"""The first line of a text file: names of the columns, or numbers already; and what pandas puts there."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from isopleth.errors import DataWarning, InputError
from isopleth.io.text_column import cut, kind_of


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
            stacklevel=6,
        )


class RowNumbers:
    """Whether the first column has no name and counts the rows, as the index of a frame does.

    Parameters
    ----------
    first : list of str
        The first line, which names the columns.
    """

    def __init__(self, first: list[str]) -> None:
        self._possible = len(first) > 1 and not first[0].strip()
        self._next: float | None = None

    def add(self, values: np.ndarray) -> None:
        """Look at the rows of the column that follow."""
        if not self._possible or not len(values):
            return
        begin = values[0] if self._next is None else self._next
        self._possible = (self._next is not None or begin in (0, 1)) and np.array_equal(
            values, begin + np.arange(len(values))
        )
        self._next = begin + len(values)

    def found(self, path: Path) -> bool:
        """The answer, when all rows have been seen; a warning says so if it is yes."""
        if self._possible:
            warnings.warn(
                f"{path}: the first column has no name and counts the rows; it is left out.", DataWarning, stacklevel=6
            )
        return self._possible
