"""Columns of text: kinds of cells, names in the first line, and cells that are refused."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from isopleth.errors import DataWarning, Hint, InputError
from isopleth.io.source import Origin, listed, refuse_text
from isopleth.tables.numerals import Numerals

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_BOOLEANS = {"true": 1.0, "false": 0.0}
# Stands for digits and signs that are no number as the table writes them.
_NO_NUMBER = "no number"
# From here on, float64 holds only some of the integers.
_ALL_INTEGERS = 2.0**53


def kind_of(cell: str) -> str:
    """Return the kind of a cell: "missing", "boolean", "number" or "text"."""
    word = cell.strip().lower()
    if word in _MISSING:
        return "missing"
    if word in _BOOLEANS:
        return "boolean"
    return "text" if _number(cell) is None else "number"


def cut(cell: str) -> str:
    """Return the cell in quotes, cut to a length that fits in a sentence."""
    return repr(cell) if len(cell) <= 40 else repr(cell[:37] + "...")


def has_decimal_comma(cell: str) -> bool:
    """Return whether the cell is a number with a decimal comma, such as 1,5."""
    return re.fullmatch(r"\s*[-+]?\d+,\d+\s*", cell) is not None


def _number(cell: str) -> float | None:
    """Return the number in a cell, or None. Python would read 2021_01 as 202101; in a table it is a word."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


@dataclass(eq=False)
class Column:
    """Numbers of one column as it is read, with counts of all other kinds of cells."""

    name: str
    parts: list[np.ndarray] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    # Whether float64 does not hold some integer of the column.
    rounded: bool = False
    numerals: Numerals = Numerals()  # noqa: RUF009 - frozen

    def add(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Append the cells of some rows, and the lines on which these begin."""
        written = cells if self.numerals.ordinary else [self.numerals.plain(cell) or _NO_NUMBER for cell in cells]
        try:
            if "_" in "".join(written):
                raise ValueError("_ is no part of a number")
            part = np.fromiter(map(float, written), dtype=np.float64, count=len(cells))
            self.kinds["number"] += len(cells)
        except ValueError:
            part = np.array([self._value(*both) for both in zip(cells, written, lines, strict=True)])
        large = np.flatnonzero(np.isfinite(part) & (np.abs(part) >= _ALL_INTEGERS))
        self.rounded = self.rounded or any(_is_other_integer(written[i], part[i]) for i in large.tolist())
        self.parts.append(part)

    def _value(self, cell: str, written: str, line: int) -> float:
        kind = kind_of(written if cell.strip() else cell)
        self.kinds[kind] += 1
        self.first.setdefault(kind, (line, cell))
        if kind == "boolean":
            return _BOOLEANS[cell.strip().lower()]
        return float(written) if kind == "number" else np.nan

    @property
    def values(self) -> np.ndarray:
        """The numbers of all rows that are kept, NaN where there is none."""
        return np.concatenate(self.parts)

    def forget(self) -> None:
        """Keep the counts and no numbers."""
        self.parts.clear()

    @property
    def words(self) -> int:
        """Return the number of cells that are neither numbers nor missing; booleans count only in columns with numbers."""
        mixed = self.kinds["number"] or self.kinds["text"]
        return self.kinds["text"] + (self.kinds["boolean"] if mixed else 0)

    @property
    def first_word(self) -> tuple[int, str]:
        """The first cell that is no number, and its line."""
        return min(self.first[kind] for kind in ("text", "boolean") if kind in self.first)


@dataclass(eq=False)
class Labels:
    """Cells of one column as text, for the classes of rows."""

    cells: list[str] = field(default_factory=list)

    def add(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Append the cells of some rows."""
        self.cells += [cell.strip() for cell in cells]


def _is_other_integer(cell: str, value: float) -> bool:
    return re.fullmatch(r"\s*[-+]?\d+\s*", cell) is not None and int(cell) != int(value)


def header_names(path: Path | Origin, first: list[str], numerals: Numerals = Numerals()) -> list[str] | None:  # noqa: B008
    """Return the column names in the first line, or None if it holds numbers."""
    kinds = [kind_of(numerals.plain(cell) or cell) for cell in first]
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
    """Return whether a line is 0, 1, 2, ...: the header of a frame made of an array, with or without a blank for its index."""
    names = first[1:] if first and not first[0].strip() else first
    return len(names) > 1 and [name.strip() for name in names] == [str(j) for j in range(len(names))]


def warn_of_numbered_header(path: Path | Origin, first: list[str]) -> None:
    """Warn if the first line may be a row and not a header."""
    if _is_numbered(first):
        warnings.warn(
            f"{path}: the first line counts the columns from 0, so it is taken as a header and not as a row.",
            DataWarning,
            stacklevel=6,
        )


class RowNumbers:
    """Check whether the first column has no name and counts the rows, as the index of a frame does.

    Parameters
    ----------
    first : list of str
        The first line, which names the columns.
    """

    def __init__(self, first: list[str]) -> None:
        self._possible = len(first) > 1 and not first[0].strip()
        self._next: float | None = None

    def add(self, values: np.ndarray) -> None:
        """Compare the rows of the column that follow."""
        if not self._possible or not len(values):
            return
        begin = values[0] if self._next is None else self._next
        self._possible = (self._next is not None or begin in (0, 1)) and np.array_equal(
            values, begin + np.arange(len(values))
        )
        self._next = begin + len(values)

    def found(self, path: Path | Origin) -> bool:
        """Return the answer when all rows have been added, with a warning if it is yes."""
        if self._possible:
            warnings.warn(
                f"{path}: the first column has no name and counts the rows; it is left out.", DataWarning, stacklevel=6
            )
        return self._possible


def look_at(path: Path | Origin, columns: list[Column], *, chosen: bool) -> None:
    """Refuse words and warn of rounding.

    Raises
    ------
    InputError
        If a column has cells that are no numbers.
    """
    _refuse_words(path, columns, chosen=chosen)
    _warn_of_rounding(path, columns)


def _refuse_words(path: Path | Origin, columns: list[Column], *, chosen: bool) -> None:
    """Refuse columns that hold mostly words by their name, and a word among numbers by its line."""
    text = [column for column in columns if column.words and column.words >= column.kinds["number"]]
    numeric = [column.name for column in columns if column not in text]
    refuse_text(path, [column.name for column in text], numeric, chosen=chosen, hint=_hint_at_commas(text))
    for column in columns:
        if column.words:
            line, cell = column.first_word
            hint = " (decimals are written with a point)" if has_decimal_comma(cell) else ""
            others = f" and {column.words - 1} more" if column.words > 1 else ""
            raise InputError(
                f"{path}, line {line}: {cut(cell)}{others} in the numeric column {column.name!r} "
                f"{'are not numbers' if others else 'is not a number'}{hint}",
                column=column.name,
                value=cell,
                hint=Hint("correct it, or choose other columns with {columns}", columns=...),
            )


def _hint_at_commas(text: list[Column]) -> str:
    found = [column.first_word for column in text if has_decimal_comma(column.first_word[1])]
    return f" (line {found[0][0]} has {cut(found[0][1])}: decimals are written with a point)" if found else ""


def _warn_of_rounding(path: Path | Origin, columns: list[Column]) -> None:
    rounded = [column.name for column in columns if column.rounded]
    if rounded:
        warnings.warn(
            DataWarning(
                f"{path}: integers beyond 2**53 in {listed(rounded)} are rounded, so that different ones may become equal",
                column=rounded[0],
                hint=Hint("subtract a constant from them first, or choose other columns with {columns}", columns=...),
            ),
            stacklevel=6,
        )
