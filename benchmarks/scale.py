"""What fits to many rows cost, and how many bytes move between the processes that read them.

    python -m benchmarks.scale [--rows 100000 1000000 10000000] [--columns 20] [--samples] [--out FILE]

Rows are made while they are read, in parts as the partitions of a Dask collection. A pass adds each part to fresh sums, and sums
are merged eight at a time; the bytes are those of the pickles of all sums that a worker would send. A line a + b n through the
smallest and the largest number of rows gives the cost of 1e9 rows. The detector scores all rows in its last pass. With
`--samples` the tasks are those that are fitted to a sample, whose passes are the same, with the fits to it.
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
from isopleth import AnomalyDetector, DensityImputer, DriftMonitor, two_sample_test
from isopleth.core.parts import Parts
from isopleth.distributed.dask_parts import FAN
from isopleth.distributed.row_sample import drawn_rows
from isopleth.tasks.anomaly.fit_in_parts import fit_parts

PART = 50_000  # rows of a part
SAMPLE, OF_LAWS = (
    100_000,
    20_000,
)  # rows that are drawn, and to which laws of cells are fitted, which take a minute already
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


class MadeBlocks:
    """Blocks of rows that are drawn when they are read, and a count of the bytes of what is known of each."""

    what = "X"

    def __init__(self, n: int, columns: int) -> None:
        self.n, self.columns = n, columns
        self.seconds: list[float] = []
        self.moved: list[int] = []

    def total(self, of_block: Callable[..., Any], *shared: Any) -> Any:
        """Return the merged answers of all blocks; the drawing does not count."""
        found, spent, moved = [], 0.0, 0
        for number, first in enumerate(range(0, self.n, PART)):
            rows = np.random.default_rng(number).normal(size=(min(PART, self.n - first), self.columns))
            begin = time.process_time()
            found.append(of_block([rows], number, *shared))
            spent += time.process_time() - begin
            moved += len(pickle.dumps(found[-1]))
            begin = time.process_time()
            if len(found) == FAN:
                found = [merged(found)]
            spent += time.process_time() - begin
        begin = time.process_time()
        whole = merged(found)
        self.seconds.append(spent + time.process_time() - begin)
        self.moved.append(moved)
        return whole


def merged(found: list[Any]) -> Any:
    """Return sums merged in their order."""
    whole = found[0]
    for other in found[1:]:
        whole = whole.merge(other)
    return whole


def sampled(n: int, columns: int) -> tuple[list[float], list[float], np.ndarray]:
    """Return processor seconds and megabytes of each pass of a sample, and the sample."""
    blocks = MadeBlocks(n, columns)
    (rows,), _ = drawn_rows(blocks, SAMPLE)
    passes = len(blocks.seconds)
    seconds = blocks.seconds if passes == 3 else [blocks.seconds[0], 0.0, blocks.seconds[1]]
    return seconds, [size / 1e6 for size in blocks.moved], rows


def fits(rows: np.ndarray) -> list[str]:
    """Return lines with the processor seconds of the fits to a sample, by one thread."""
    few, one = rows[:OF_LAWS].copy(), {"n_jobs": 1, "random_state": 0}
    few[::20, 0] = np.nan
    other = np.random.default_rng(10**6).normal(size=rows.shape)
    programs: list[tuple[str, int, Callable[[], Any]]] = [
        ("two_sample_test, twice as many", len(rows), lambda: two_sample_test(rows, other, **one)),
        ("DriftMonitor", len(rows), lambda: DriftMonitor(**one).fit(rows)),
        ("DensityImputer, gaps in one column", len(few), lambda: DensityImputer(**one).fit(few)),
    ]
    lines = ["", f"{'fit to a sample':36}{'rows':>9}{'s':>9}"]
    print("\n".join(lines), flush=True)
    for name, n, program in programs:
        begin = time.process_time()
        program()
        lines.append(f"{name:36}{n:9,}{time.process_time() - begin:9.1f}")
        print(lines[-1], flush=True)
    return lines


def by_the_line(found: dict[int, np.ndarray], line: Callable[[int, np.ndarray], str]) -> str:
    """Return the line of 1e9 rows."""
    least, most = min(found), max(found)
    slope = (found[most] - found[least]) / (most - least)
    return line(int(MOST), found[most] + slope * (MOST - most)) + "  by the line"


def of_detector(sizes: list[int], columns: int) -> list[str]:
    """Measure and print the lines of the detector."""
    lines = [f"{'rows':>14}{'look s':>10}{'sample s':>10}{'scores s':>10}{'rest s':>9}{'all s':>12}{'sent MB':>11}"]
    print(lines[0], flush=True)
    found = {}
    for n in sizes:
        seconds, moved, rest = measured(n, columns)
        found[n] = np.array([*seconds, rest, sum(seconds) + rest, sum(moved)])
        lines.append(_line(n, found[n]))
        print(lines[-1], flush=True)
    lines.append(by_the_line(found, _line))
    print(lines[-1], flush=True)
    return lines


def of_samples(sizes: list[int], columns: int) -> list[str]:
    """Measure and print the lines of tasks that are fitted to a sample."""
    lines = [f"{'rows':>14}{'look s':>10}{'keys s':>10}{'sample s':>10}{'all s':>12}{'sent MB':>11}"]
    print(lines[0], flush=True)
    found = {}
    for n in sizes:
        seconds, moved, rows = sampled(n, columns)
        found[n] = np.array([*seconds, sum(seconds), sum(moved)])
        lines.append(_line_of_sample(n, found[n]))
        print(lines[-1], flush=True)
    del found[sizes[0]]  # a table that is no larger than its sample has no pass of keys
    lines.append(by_the_line(found, _line_of_sample) if len(found) > 1 else "")
    print(lines[-1], flush=True)
    return lines + fits(rows)


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument(
        "--samples", action="store_true", help="tasks that are fitted to a sample, in place of the detector"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [*description(), f"{options.columns} columns, parts of {PART:,} rows, one thread", ""]
    print("\n".join(lines), flush=True)
    lines += (of_samples if options.samples else of_detector)(sorted(options.rows), options.columns)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(n: int, figures: np.ndarray) -> str:
    return f"{n:14,}" + "".join(f"{x:{width},.1f}" for x, width in zip(figures, (10, 10, 10, 9, 12, 11), strict=True))


def _line_of_sample(n: int, figures: np.ndarray) -> str:
    return f"{n:14,}" + "".join(f"{x:{width},.1f}" for x, width in zip(figures, (10, 10, 10, 12, 11), strict=True))


if __name__ == "__main__":
    main()
