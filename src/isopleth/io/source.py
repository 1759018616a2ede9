"""Common parts of the readers of all formats: blocks of rows, choice of columns, and missing cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from isopleth.errors import InputError

# Called with the share of a file that has been read.
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Origin:
    """File that is read, and the name that messages give it.

    Parameters
    ----------
    path : Path
        Where its bytes are: the file, or a temporary file with what was packed in it or came on standard input.
    shown : Path
        The name that the user knows.
    suffix : str
        Suffix that says the format, in small letters.
    temporary : object, optional
        The temporary file, which is removed when nothing refers to it any more.
    """

    path: Path
    shown: Path
    suffix: str
    temporary: object = None

    def __str__(self) -> str:
        return str(self.shown)


@dataclass(frozen=True, eq=False)
class UncheckedTable:
    """Table as it was read, not yet checked for missing cells."""

    values: np.ndarray
    names: list[str]
    named: bool
    lines: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a table, NaN for missing cells; `lines` are the lines of a text file on which the rows begin."""

    values: np.ndarray
    lines: np.ndarray | None = None


class Source(Protocol):
    """Chosen columns of a file, read in blocks of rows, from any row on.

    `missing` are those of all its cells, where opening it has looked at them.
    """

    names: list[str]
    named: bool
    n_rows: int
    missing: MissingCells | None

    def blocks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Yield blocks of `size` rows from row `start` on; the last may be smaller."""
        ...


class MissingCells:
    """Count of missing and infinite cells in each column: found block by block, refused at the end.

    Parameters
    ----------
    width : int
        Number of columns.
    """

    def __init__(self, width: int) -> None:
        self._counts = np.zeros(width, dtype=np.int64)
        self._first = [""] * width
        self._rows = 0

    def add(self, block: Block) -> None:
        """Count the missing cells of the rows that follow."""
        bad = ~np.isfinite(block.values)
        for j in np.flatnonzero(bad.any(axis=0)):
            if not self._counts[j]:
                row = int(bad[:, j].argmax())
                self._first[j] = f"row {self._rows + row + 1}" if block.lines is None else f"line {block.lines[row]}"
            self._counts[j] += np.count_nonzero(bad[:, j])
        self._rows += len(bad)

    def refuse(self, path: Path | Origin, names: list[str]) -> None:
        """Refuse the file if any was found; `names` are those of the last columns, where the first are left out.

        Raises
        ------
        InputError
            With the number of such rows in each column, and the first of them.
        """
        left_out = len(self._counts) - len(names)
        bad = [int(j) for j in np.flatnonzero(self._counts) if j >= left_out]
        if not bad:
            return
        worst = [f"{names[j - left_out]!r} {self._where(j)}" for j in bad[:5]]
        more = len(bad) - len(worst)
        if more:
            worst.append(f"{more} more column{'s' if more > 1 else ''}")
        raise InputError(
            f"{path}: empty, NaN or infinite cells in {', '.join(worst)}; "
            "fill or drop these rows, or choose other columns with `columns`."
        )

    def _where(self, j: int) -> str:
        count, place = self._counts[j], self._first[j]
        return f"({count} rows, the first at {place})" if count > 1 else f"({place})"


# More names than this are not listed in one sentence.
_MANY = 12


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence: quoted, and cut short when there are many."""
    shown = ", ".join(repr(name) for name in names[:_MANY])
    return shown if len(names) <= _MANY else f"{shown} and {len(names) - _MANY} more"


def positions(
    path: Path | Origin, names: Sequence[str], columns: Sequence[str] | None, but: str | None = None
) -> list[int]:
    """Return the positions of the chosen columns among `names`, in the given order; for None all columns except `but`.

    Raises
    ------
    InputError
        If names of the file or of the choice repeat, if the choice is empty or names what the file does not have.
    """
    _refuse_repeated(f"{path}: the column name", names, "give every column its own name.")
    if columns is None:
        return [j for j, name in enumerate(names) if name != but]
    if not columns:
        raise InputError("`columns` names no column; name at least one, or leave `columns` out to use all of them.")
    _refuse_repeated("`columns`: the column", columns, "name every column once.")
    where = {name: position for position, name in enumerate(names)}
    unknown = [name for name in columns if name not in where]
    if unknown:
        raise InputError(f"{path} has no column {listed(unknown)} (`columns`); it has {listed(names)}.")
    return [where[name] for name in columns]


def _refuse_repeated(subject: str, names: Sequence[str], advice: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{subject} {listed(repeated)} occurs more than once; {advice}")


def refuse_text(
    path: Path | Origin, text: Sequence[str], numeric: Sequence[str], *, chosen: bool, hint: str = ""
) -> None:
    """Refuse columns that hold no numbers; `hint` says what may have gone wrong with them.

    Raises
    ------
    InputError
        If `text` names any column.
    """
    if not text:
        return
    subject = f"{path}: no numbers in column{'s' if len(text) > 1 else ''} {listed(text)}{hint}"
    if chosen:
        raise InputError(f"{subject}; leave {'them' if len(text) > 1 else 'it'} out of `columns`.")
    if not numeric:
        raise InputError(f"{subject}, and there are no others; a table of numbers is needed.")
    raise InputError(f"{subject}; choose those to use with `columns={choice(numeric)}`.")


def choice(names: Sequence[str]) -> str:
    """Return names as a list in Python, cut short when there are many."""
    few = ", ".join(map(repr, names[:_MANY]))
    return f"[{few}]" if len(names) <= _MANY else f"[{few}, ...]"


def regrouped(pieces: Iterator[np.ndarray], size: int, skip: int = 0) -> Iterator[np.ndarray]:
    """Yield the rows of `pieces` without the first `skip`, `size` at a time."""
    held: list[np.ndarray] = []
    count = 0
    for piece in pieces:
        left = piece[skip:]
        skip = max(0, skip - len(piece))
        while len(left):
            held.append(left[: size - count])
            left = left[size - count :]
            count += len(held[-1])
            if count == size:
                yield np.concatenate(held)
                held, count = [], 0
    if count:
        yield np.concatenate(held)
