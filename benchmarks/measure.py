"""Measure a comparison."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks import memory
from benchmarks.comparison import Comparison, Program
from benchmarks.power_law import Growth, expected, fitted
from benchmarks.timing import interleaved

# Smallest memory in bytes that is distinguishable from what libraries keep for themselves.
PLAIN = 2**24


@dataclass
class Figures:
    """Measurements of one program.

    Parameters
    ----------
    note : str
        Why something is missing.
    seconds : dict
        By number of rows.
    column_seconds : dict
        By number of columns.
    bytes : dict
        By number of rows.
    accuracy : float
        At the largest number of rows, NaN where it did not come that far.
    """

    note: str = ""
    seconds: dict[int, float] = field(default_factory=dict)
    column_seconds: dict[int, float] = field(default_factory=dict)
    bytes: dict[int, float] = field(default_factory=dict)
    accuracy: float = math.nan

    @property
    def growth(self) -> dict[str, Growth | None]:
        """Return the fitted power laws."""
        large = max(self.bytes.values(), default=0.0) >= PLAIN
        return {
            "rows": fitted(self.seconds),
            "columns": fitted(self.column_seconds),
            "memory": fitted(self.bytes) if large else None,
        }


@dataclass(frozen=True)
class Limits:
    """Limits of time, in seconds.

    Parameters
    ----------
    budget : float
        Of a program's turns at one size.
    slowest : float
        A size at which a program is expected to take longer is left out.
    rounds : int
        Turns.
    """

    budget: float
    slowest: float
    rounds: int


FULL = Limits(budget=1.5, slowest=6.0, rounds=5)
QUICK = Limits(budget=0.1, slowest=3.0, rounds=2)


def measured(comparison: Comparison, subject: str, quick: bool) -> dict[str, Figures]:
    """Measure each program; `subject` is the module of the comparison."""
    limits = QUICK if quick else FULL
    figures = {name: _start(program) for name, program in comparison.programs.items()}
    rows, columns, column_rows = comparison.sizes(quick)
    answers: dict[str, tuple[Any, Any]] = {}
    for n in rows:
        costs = {name: figures[name].seconds for name in figures}
        answers = _one_size(comparison, figures, costs, (n, comparison.columns), n, limits)
    for name, (problem, answer) in answers.items():
        figures[name].accuracy = comparison.accuracy(problem, answer)
    del answers
    for d in columns:
        costs = {name: figures[name].column_seconds for name in figures}
        _one_size(comparison, figures, costs, (column_rows, d), d, limits)
    _memory(comparison, subject, figures)
    return figures


def _start(program: Program) -> Figures:
    there = importlib.util.find_spec(program.needs) is not None
    return Figures("" if there else f"{program.needs} is not installed: not measured")


def _one_size(
    comparison: Comparison,
    figures: dict[str, Figures],
    costs: dict[str, dict[int, float]],
    shape: tuple[int, int],
    size: int,
    limits: Limits,
) -> dict[str, tuple[Any, Any]]:
    """Add the seconds of all programs that can do this size to `costs`; return problems and answers by name."""
    problem = comparison.problem(*shape)
    runs: dict[str, Callable[[], Any]] = {}
    answers: dict[str, tuple[Any, Any]] = {}
    for name, program in comparison.able(*shape).items():
        mine = figures[name]
        if mine.note or expected(costs[name], size) / program.times > max(limits.slowest, comparison.slowest):
            continue
        try:
            state = _quietly(program.setup, problem)
            answers[name] = (problem, _quietly(program.run, state))
        except Exception as error:  # whatever goes wrong in a program is no reason to stop
            mine.note = f"not measured: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        runs[name] = partial(_quietly, program.run, state)
    for name, seconds in interleaved(runs, limits.rounds, limits.budget).items():
        costs[name][size] = seconds * comparison.programs[name].times
    return answers


def _quietly(run: Callable[[Any], Any], argument: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(argument)


def _memory(comparison: Comparison, subject: str, figures: dict[str, Figures]) -> None:
    if not memory.available():
        return
    for name in comparison.programs:
        sizes = sorted(figures[name].seconds)
        if not figures[name].note and sizes:
            shapes = [(n, comparison.columns) for n in sizes]
            found = memory.peaks(subject, comparison.name, name, shapes)
            figures[name].bytes = {n: peak for n, peak in zip(sizes, found, strict=True) if not math.isnan(peak)}
