"""Comparisons: one task and the programs that do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# Largest arrays, in bytes, with which a program is tried.
MOST_BYTES = 4 * 2**30


def _nothing(problem: Any) -> Any:
    return problem


def _small(rows: int, columns: int) -> float:
    return 0.0


@dataclass(frozen=True)
class Program:
    """One way to do the task.

    Parameters
    ----------
    run : callable
        Does it, all of what is timed.
    needs : str
        The module without which it is not measured.
    setup : callable
        What `run` gets, from the problem: work that is not timed.
    times : float
        What the seconds are multiplied by, where `run` does a part of the work.
    dims : sequence of int, optional
        Numbers of columns that it can do.
    array_bytes : callable
        Bytes that its arrays take at a number of rows and of columns, for those that may take more than there is: sizes
        above `MOST_BYTES` are left out.
    """

    run: Callable[[Any], Any]
    needs: str = "numpy"
    setup: Callable[[Any], Any] = _nothing
    times: float = 1.0
    dims: Sequence[int] | None = None
    array_bytes: Callable[[int, int], float] = _small


@dataclass(frozen=True)
class Comparison:
    """One task with a growing number of rows and of columns.

    Parameters
    ----------
    name : str
        What `--only` takes.
    title : str
        One sentence; {n} and {d} are filled in.
    problem : callable
        The data of n rows and d columns.
    programs : dict from str to Program
        The first is ours, and the others are compared with it.
    accuracy : callable
        One number from the problem and a program's answer.
    measure : str
        What that number is.
    rows : sequence of int
        Numbers of rows, ascending; the last one is the table's.
    columns : int
        Number of columns of the table.
    column_range : sequence of int
        Numbers of columns for the growth in them, ascending; with `column_rows` rows.
    column_rows : int
        See `column_range`.
    higher_is_better : bool
        Whether a program with the higher accuracy number is ahead.
    quick_rows : sequence of int
        Numbers of rows for a quick run; left out, they are made of `rows`.
    slowest : float
        Seconds that a turn may be expected to take, where that is more than usual.
    """

    name: str
    title: str
    problem: Callable[[int, int], Any]
    programs: dict[str, Program]
    accuracy: Callable[[Any, Any], float]
    measure: str
    rows: Sequence[int]
    columns: int
    column_range: Sequence[int] = ()
    column_rows: int = 0
    higher_is_better: bool = False
    quick_rows: Sequence[int] = ()
    slowest: float = 0.0

    def sizes(self, quick: bool) -> tuple[list[int], list[int], int]:
        """Return numbers of rows, numbers of columns and the rows to use with them; small ones for a quick run."""
        if not quick:
            return list(self.rows), list(self.column_range), self.column_rows
        if self.quick_rows:
            return list(self.quick_rows), list(self.column_range[:2]), self.quick_rows[0]
        largest = max(240, self.rows[-1] // 20)
        return [largest // 2, largest], list(self.column_range[:2]), 120

    def able(self, rows: int, columns: int) -> dict[str, Program]:
        """Return the programs that can do this number of rows and columns."""
        return {
            name: program
            for name, program in self.programs.items()
            if (program.dims is None or columns in program.dims) and program.array_bytes(rows, columns) <= MOST_BYTES
        }
