"""Rows whose cells stand one column too far: a separator in a name, or one that is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.results.result import ShownCells
from isopleth.tables.cells import is_missing

# Fewest cells that must be strange where they stand, and at home one column beside; and share of the known cells that are moved.
# Columns of like numbers hold each other's cells: two strange ones among many that are at home are two wrong cells.
_FEWEST, _SHARE = 2, 0.5


@dataclass(frozen=True)
class Shift:
    """Row whose cells from a column on fit one column beside."""

    row: int
    column: str  # the first one whose cell belongs elsewhere
    to: str  # "left": a separator too many; "right": one too few

    def __str__(self) -> str:
        """Return it as a reason against the cells of the row."""
        return f"shifted: from {self.column} on the cells fit one column to the {self.to}"


class ColumnRange:
    """Content of a column in the rows that are not doubted: words with their counts, or the range of its numbers or times."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self._measured = 0
        self._ends: list[Any] = []

    def add(self, cells: np.ndarray) -> None:
        """Note the content of cells."""
        words, count, ends = _content(cells)
        self.words.update(words)
        self._measured += count
        self._ends += ends

    @cached_property
    def measured(self) -> bool:
        """Return whether most known cells are numbers or times."""
        return self._measured > self.words.total()

    @cached_property
    def low(self) -> Any:
        """Least number or time."""
        return min(self._ends) if self.measured else None

    @cached_property
    def high(self) -> Any:
        """Largest number or time."""
        return max(self._ends) if self.measured else None

    def holds(self, cell: Any) -> bool:
        """Return whether a cell could stand here: a word that other rows have, or a number or time in the range of theirs."""
        if not self.measured:
            return self.words[cell if isinstance(cell, str) else str(cell)] > 0
        value = _as_measured(cell, type(self.low))
        return value is not None and bool(self.low <= value <= self.high)


def shifted_rows(names: list[str], values: np.ndarray | ShownCells, flagged: np.ndarray) -> list[Shift]:
    """Return the rows whose cells fit when they are moved by one column.

    Parameters
    ----------
    names : list of str
        Columns.
    values : array-like of shape (n, d)
        Cells; those that cannot be read as text.
    flagged : ndarray of shape (n, d), bool
        Cells that do not fit their rows: only rows with one are looked at.
    """
    doubted = np.flatnonzero(flagged.any(axis=1))
    if not len(doubted) or 2 * len(doubted) > len(values):
        return []
    columns = [ColumnRange() for _ in names]
    for part in values.parts() if isinstance(values, ShownCells) else [slice(0, len(values))]:
        others = np.setdiff1d(np.arange(part.start, part.stop), doubted)
        for column, cells in zip(columns, values[others].T, strict=True):
            column.add(cells)
    found = (_shift(names, values[row], columns, int(row)) for row in doubted)
    return [shift for shift in found if shift is not None]


def _shift(names: list[str], cells: np.ndarray, columns: list[ColumnRange], row: int) -> Shift | None:
    """Return how the cells of a row are shifted; None if they are not."""
    d, known = len(cells), [not is_missing(cell) for cell in cells.tolist()]
    strange = [known[j] and not columns[j].holds(cells[j]) for j in range(d)]
    if sum(strange) < _FEWEST:
        return None
    for to, step in (("left", -1), ("right", 1)):
        moved = [j for j in range(d) if 0 <= j + step < d]
        at_home = {j: not known[j] or columns[j + step].holds(cells[j]) for j in moved}
        for first in moved:
            later = [j for j in moved if j >= first]
            of_known = [j for j in later if known[j]]
            fits = [j for j in of_known if strange[j]]
            if len(fits) >= max(_FEWEST, _SHARE * len(of_known)) and all(at_home[j] for j in later):
                return Shift(row, names[first], to)
    return None


def _content(cells: np.ndarray) -> tuple[dict[str, int], int, list[Any]]:
    """Return the words of cells with their counts, the number of numbers and times, and the least and the largest."""
    try:
        column = pa.array(cells, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # of several kinds
        column = pa.nulls(0)
    if pa.types.is_string(column.type):
        counts = column.drop_null().value_counts().to_pylist()
        return {each["values"]: each["counts"] for each in counts}, 0, []
    if pa.types.is_floating(column.type):
        ends = compute.min_max(column).as_py()
        known = len(column) - column.null_count
        return {}, known, [ends["min"], ends["max"]] if known else []
    known_cells = [cell for cell in cells.tolist() if not is_missing(cell)]
    measured = [cell for cell in known_cells if _is_measured(cell)]
    words = Counter(cell if isinstance(cell, str) else str(cell) for cell in known_cells if not _is_measured(cell))
    return words, len(measured), [min(measured), max(measured)] if measured else []


def _is_measured(cell: Any) -> bool:
    """Return whether a cell is a number or a time."""
    return not isinstance(cell, (str, bool, np.bool_))


def _as_measured(cell: Any, kind: type) -> Any:
    """Return a cell as a number or time of a kind; None for another one."""
    if isinstance(cell, kind):
        return cell
    try:
        return kind(cell) if kind is float and not isinstance(cell, (bool, np.bool_)) else None
    except (TypeError, ValueError):
        return None
