"""One column of a text file, and what its cells are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_BOOLEANS = {"true": 1.0, "false": 0.0}
# From here on, float64 holds only some of the integers.
_ALL_INTEGERS = 2.0**53


def kind_of(cell: str) -> str:
    """One of "missing", "boolean", "number" and "text"."""
    word = cell.strip().lower()
    if word in _MISSING:
        return "missing"
    if word in _BOOLEANS:
        return "boolean"
    return "text" if _number(cell) is None else "number"


def cut(cell: str) -> str:
    """The cell in quotes, not longer than a sentence can bear."""
    return repr(cell) if len(cell) <= 40 else repr(cell[:37] + "...")


def has_decimal_comma(cell: str) -> bool:
    """Whether the cell is a number in the manner of countries that write 1,5."""
    return re.fullmatch(r"\s*[-+]?\d+,\d+\s*", cell) is not None


def _number(cell: str) -> float | None:
    """Python would read 2021_01 as 202101; in a table it is a word."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


@dataclass(eq=False)
class Column:
    """One column as it is read: its numbers, and a count of everything that is not one."""

    name: str
    parts: list[np.ndarray] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    # Whether float64 does not hold some integer of the column.
    rounded: bool = False

    def add(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Append the cells of some rows, and the lines on which these begin."""
        try:
            if "_" in "".join(cells):
                raise ValueError("_ is no part of a number")
            part = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
            self.kinds["number"] += len(cells)
        except ValueError:
            part = np.array([self._value(cell, line) for cell, line in zip(cells, lines, strict=True)])
        large = np.flatnonzero(np.isfinite(part) & (np.abs(part) >= _ALL_INTEGERS))
        self.rounded = self.rounded or any(_is_other_integer(cells[i], part[i]) for i in large.tolist())
        self.parts.append(part)

    def _value(self, cell: str, line: int) -> float:
        kind = kind_of(cell)
        self.kinds[kind] += 1
        self.first.setdefault(kind, (line, cell))
        if kind == "boolean":
            return _BOOLEANS[cell.strip().lower()]
        return float(cell) if kind == "number" else np.nan

    @property
    def values(self) -> np.ndarray:
        """The numbers of all rows that are kept, NaN where there is none."""
        return np.concatenate(self.parts)

    def forget(self) -> None:
        """Keep the counts and no numbers."""
        self.parts.clear()

    @property
    def words(self) -> int:
        """How many cells are neither numbers nor missing; booleans count only where numbers stand beside them."""
        mixed = self.kinds["number"] or self.kinds["text"]
        return self.kinds["text"] + (self.kinds["boolean"] if mixed else 0)

    @property
    def first_word(self) -> tuple[int, str]:
        """The first cell that is no number, and its line."""
        return min(self.first[kind] for kind in ("text", "boolean") if kind in self.first)


@dataclass(eq=False)
class Labels:
    """One column as it stands there: words or numbers, for the classes of rows."""

    cells: list[str] = field(default_factory=list)

    def add(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Append the cells of some rows."""
        self.cells += [cell.strip() for cell in cells]


def _is_other_integer(cell: str, value: float) -> bool:
    return re.fullmatch(r"\s*[-+]?\d+\s*", cell) is not None and int(cell) != int(value)
