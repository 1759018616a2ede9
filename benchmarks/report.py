"""Tables for the screen, and in reStructuredText for the pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.comparison import Comparison
from benchmarks.measure import Figures
from benchmarks.power_law import Growth

ABSENT = "–"
# Costs within this factor count as equal.
CLOSE = 1.1

# Errors below this count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Section:
    """Table with a title and sentences below it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return aligned columns."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.header))]
        shown = [
            "  ".join(
                cell.ljust(width) if j == 0 else cell.rjust(width)
                for j, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join(["", self.title, *(f"  {line}" for line in shown), *(f"  {note}" for note in self.notes), ""])

    def rst(self) -> str:
        """Return a list-table."""
        out = [self.title, "-" * len(self.title), "", ".. list-table::", "   :header-rows: 1", ""]
        for line in [self.header, *self.rows]:
            out += [f"   {'*' if j == 0 else ' '} - {cell}".rstrip() for j, cell in enumerate(line)]
        for note in self.notes:
            out += ["", note]
        return "\n".join([*out, ""])


def section(comparison: Comparison, figures: dict[str, Figures], quick: bool) -> Section:
    """Return the table of one comparison."""
    rows, columns, column_rows = comparison.sizes(quick)
    reference = next(iter(figures.values()))
    header = ["", "time", "x ours", "memory", comparison.measure, *_growth_headers(rows, columns, column_rows)]
    lines = [
        [name, *_cells(mine, reference, comparison, rows[-1]), *_growth_cells(mine, rows, columns)]
        for name, mine in figures.items()
        if not (mine.note or not mine.seconds)
    ]
    notes = [f"{name}: {mine.note}" for name, mine in figures.items() if mine.note]
    notes += _ahead(comparison, figures, rows[-1])
    return Section(comparison.title.format(n=rows[-1], d=comparison.columns), header, lines, notes)


def _growth_headers(rows: list[int], columns: list[int], column_rows: int) -> list[str]:
    span = f"n = {rows[0]:,} to {rows[-1]:,}"
    out = [f"time ~ n^, {span}", f"memory ~ n^, {span}"]
    return out + ([f"time ~ d^, d = {columns[0]} to {columns[-1]}, n = {column_rows:,}"] if columns else [])


def _cells(mine: Figures, reference: Figures, comparison: Comparison, n: int) -> list[str]:
    seconds, ours = mine.seconds.get(n, math.nan), reference.seconds.get(n, math.nan)
    shown = ABSENT if math.isnan(mine.accuracy) else f"{mine.accuracy:.3f}"
    if not comparison.higher_is_better and shown != ABSENT:
        shown = f"{mine.accuracy:.1e}"
    return [duration(seconds), number(seconds / ours), size(mine.bytes.get(n, math.nan)), shown]


def _growth_cells(mine: Figures, rows: list[int], columns: list[int]) -> list[str]:
    growth = mine.growth
    cells = [_power(growth["rows"], rows), _power(growth["memory"], rows)]
    return cells + ([_power(growth["columns"], columns)] if columns else [])


def _power(growth: Growth | None, sizes: list[int]) -> str:
    """Return the exponent, and the range if it differs from that of the column."""
    if growth is None:
        return ABSENT
    low = "" if growth.low == sizes[0] else f" from {growth.low:,}"
    high = "" if growth.high == sizes[-1] else f" to {growth.high:,}"
    return f"{growth.exponent:.2f}{low}{high}"


def _ahead(comparison: Comparison, figures: dict[str, Figures], n: int) -> list[str]:
    """Return sentences about the programs that are better than the first row, in what and by how much."""
    first, *_ = figures
    ours = figures[first]
    wins: dict[str, list[str]] = {"time": [], "memory": [], comparison.measure: []}
    for name, mine in figures.items():
        if name.startswith("isopleth"):
            continue
        if _lower(mine.seconds.get(n), ours.seconds.get(n)):
            wins["time"].append(f"{name} ({number(mine.seconds[n] / ours.seconds[n])} of ours)")
        if _lower(mine.bytes.get(n), ours.bytes.get(n), 2.0**20):
            wins["memory"].append(f"{name} ({size(mine.bytes[n])} for our {size(ours.bytes[n])})")
        if _better(mine.accuracy, ours.accuracy, comparison.higher_is_better):
            wins[comparison.measure].append(name)
    return [f"Ahead of {first} in {what}: {', '.join(names)}." for what, names in wins.items() if names]


def _lower(theirs: float | None, ours: float | None, least: float = 0.0) -> bool:
    """Return whether a cost is lower by a factor and by a minimal amount."""
    return theirs is not None and ours is not None and theirs * CLOSE < ours and theirs + least <= ours


def _better(theirs: float, ours: float, higher: bool) -> bool:
    return theirs > ours + 5e-4 if higher else ours > ROUNDING and theirs < ours / CLOSE


def _scaled(value: float, units: list[tuple[float, str]], show: Callable[[float], str]) -> str:
    if not math.isfinite(value):
        return ABSENT
    scale, unit = next(((s, u) for s, u in units if value >= s), units[-1])
    return f"{show(value / scale)} {unit}"


def number(value: float) -> str:
    """Format with two or three digits."""
    if not math.isfinite(value):
        return ABSENT
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit."""
    return _scaled(seconds, [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")], number)


def size(count: float) -> str:
    """Format bytes in MiB."""
    return _scaled(count, [(2.0**20, "MiB")], lambda value: f"{value:.1f}")
