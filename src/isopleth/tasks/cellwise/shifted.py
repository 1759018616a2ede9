"""Rows whose cells stand one column too far: a separator in a name, or one that is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

# Fewest cells that must be strange where they stand, and at home one column beside.
_FEWEST = 2


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

    def __init__(self, cells: np.ndarray) -> None:
        known = [cell for cell in cells.tolist() if not _is_gap(cell)]
        self.words = Counter(cell if isinstance(cell, str) else str(cell) for cell in known if not _is_measured(cell))
        measured = [cell for cell in known if _is_measured(cell)]
        self.measured = 2 * len(measured) > len(known)
        self.low: Any = min(measured) if self.measured else None
        self.high: Any = max(measured) if self.measured else None

    def holds(self, cell: Any) -> bool:
        """Return whether a cell could stand here: a word that other rows have, or a number or time in the range of theirs."""
        if not self.measured:
            return self.words[cell if isinstance(cell, str) else str(cell)] > 0
        value = _as_measured(cell, type(self.low))
        return value is not None and bool(self.low <= value <= self.high)


def shifted_rows(names: list[str], values: np.ndarray, flagged: np.ndarray) -> list[Shift]:
    """Return the rows whose cells fit when they are moved by one column.

    Parameters
    ----------
    names : list of str
        Columns.
    values : ndarray of shape (n, d)
        Cells; those that cannot be read as text.
    flagged : ndarray of shape (n, d), bool
        Cells that do not fit their rows: only rows with one are looked at.
    """
    doubted = np.flatnonzero(flagged.any(axis=1))
    if not len(doubted) or 2 * len(doubted) > len(values):
        return []
    columns = [ColumnRange(np.delete(cells, doubted)) for cells in values.T]
    found = (_shift(names, values[row], columns, int(row)) for row in doubted)
    return [shift for shift in found if shift is not None]


def _shift(names: list[str], cells: np.ndarray, columns: list[ColumnRange], row: int) -> Shift | None:
    """Return how the cells of a row are shifted; None if they are not."""
    d, known = len(cells), [not _is_gap(cell) for cell in cells.tolist()]
    strange = [known[j] and not columns[j].holds(cells[j]) for j in range(d)]
    if sum(strange) < _FEWEST:
        return None
    for to, step in (("left", -1), ("right", 1)):
        moved = [j for j in range(d) if 0 <= j + step < d]
        at_home = {j: not known[j] or columns[j + step].holds(cells[j]) for j in moved}
        for first in moved:
            later = [j for j in moved if j >= first]
            fits = [j for j in later if known[j] and strange[j]]
            if len(fits) >= _FEWEST and all(at_home[j] for j in later):
                return Shift(row, names[first], to)
    return None


def _is_gap(cell: Any) -> bool:
    return cell is None or bool(cell != cell)


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
