"""What a fit of a detector to many rows costs, and how many bytes move between the processes that read them.

    python -m benchmarks.scale [--rows 100000 1000000] [--columns 20] [--out FILE]

Rows are made while they are read, in parts as the partitions of a Dask collection. A pass adds each part to fresh sums, and sums
are merged eight at a time; the bytes are those of the pickles of all sums that a worker would send. A line a + b n through the
smallest and the largest number of rows gives the cost of 1e9 rows.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import description
from isopleth import AnomalyDetector
from isopleth.core.parts import Parts
from isopleth.tasks.anomaly.detector import fit_parts

PART = 50_000  # rows of a part
MOST = 1e9


class MadeRows(Parts):
    """Rows that are drawn when they are read, and a count of the bytes of the sums of their parts."""

    names = None

    def __init__(self, n: int, columns: int) -> None:
        self.n, self.n_features = n, columns
        self.seconds: list[float] = []
        self.moved: list[int] = []

    def sums(self, start: Callable[[], Any], add: Callable[..., Any]) -> Any:
        """Return sums over all rows, made part by part; the drawing does not count."""
        total, spent, moved = start(), 0.0, 0
        for number, first in enumerate(range(0, self.n, PART)):
            rows = np.random.default_rng(number).normal(size=(min(PART, self.n - first), self.n_features))
            begin = time.process_time()
            part = add(start(), rows, None)
            spent += time.process_time() - begin
            moved += len(pickle.dumps(part))
            begin = time.process_time()
            total = total.merge(part)
            spent += time.process_time() - begin
        self.seconds.append(spent)
        self.moved.append(moved)
        return total


def measured(n: int, columns: int) -> tuple[list[float], list[float], float]:
    """Return processor seconds and megabytes of each pass, and the seconds of the rest of the fit."""
    parts = MadeRows(n, columns)
    begin = time.process_time()
    fit_parts(AnomalyDetector(random_state=0, n_jobs=1), parts)
    drawing = time.process_time()
    for number in range(-(-n // PART)):
        np.random.default_rng(number).normal(size=(min(PART, n - number * PART), columns))
    once = time.process_time() - drawing
    rest = drawing - begin - sum(parts.seconds) - len(parts.seconds) * once
    return parts.seconds, [size / 1e6 for size in parts.moved], max(rest, 0.0)


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [*description(), f"{options.columns} columns, parts of {PART:,} rows, one thread", ""]
    lines.append(f"{'rows':>14}{'look s':>10}{'sample s':>10}{'scores s':>10}{'rest s':>9}{'all s':>12}{'sent MB':>11}")
    found = {}
    for n in sorted(options.rows):
        seconds, moved, rest = measured(n, options.columns)
        found[n] = np.array([*seconds, rest, sum(seconds) + rest, sum(moved)])
        lines.append(_line(n, found[n]))
        print(lines[-1], flush=True)
    least, most = min(found), max(found)
    slope = (found[most] - found[least]) / (most - least)
    lines.append(_line(int(MOST), found[most] + slope * (MOST - most)) + "  by the line")
    print(lines[-1])
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(n: int, figures: np.ndarray) -> str:
    return f"{n:14,}" + "".join(f"{x:{width},.1f}" for x, width in zip(figures, (10, 10, 10, 9, 12, 11), strict=True))


if __name__ == "__main__":
    main()
