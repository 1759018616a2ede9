"""Fits to rows that are not stored: time and memory of LSDD and NystromKEF by sums, against the number of rows.

    python -m experiments.streamed_fits [--rows 100000 1000000] [--curl-free-rows 20000] [--quick] [--out FILE]

Rows are drawn part by part, 50,000 at a time, and thrown away; for LSDD half of them from each of two normal distributions whose
means are 0.3 apart. Printed are the seconds of the processor and of the wall clock, the largest memory of the process, each fit
having one of its own, and how far the fit is off: for LSDD `squared_l2_` over the truth, for scores the root mean squared
difference to the truth at 2,000 fresh rows, over the size of the truth there.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from isopleth import LSDD, NystromKEF
from isopleth.core.parts import Add, Parts, S, part_sums
from isopleth.difference.lsdd import fit_parts as fit_difference
from isopleth.score.nystrom import fit_parts as fit_score

COLUMNS, PART, APART = 10, 50_000, 0.3

DIFFERENCES = {
    "LSDD, 500 centers, one length scale": {"length_scale": 1.5, "alpha": 1.0},
    "LSDD, 500 centers, default grids": {},
}
SCORES = {
    "NystromKEF, 300 landmarks, diagonal": "diagonal",
    "NystromKEF, 300 landmarks, curl-free": "curl_free",
}


class DrawnParts(Parts):
    """Normal rows, drawn again in each pass."""

    names = None
    n_features = COLUMNS

    def __init__(self, n: int, seed: int, shift: float = 0.0) -> None:
        self.n, self.seed, self.shift = n, seed, shift

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return the sums of a pass; see :meth:`Parts.sums`."""
        total = start()
        for number, first in enumerate(range(0, self.n, PART)):
            rows = np.random.default_rng([self.seed, number]).normal(size=(min(PART, self.n - first), COLUMNS))
            rows[:, 0] += self.shift
            total = total.merge(part_sums(start, add, rows, None, self.labels, f"part {number}"))
        return total


def difference(parameters: dict[str, Any], n: int) -> float:
    """Return the estimated squared distance divided by the true one."""
    model = LSDD(**parameters, random_state=0)
    fit_difference(model, DrawnParts(n // 2, 0), DrawnParts(n // 2, 1, APART))
    truth = 2.0 * (1.0 - math.exp(-(APART**2) / 4.0)) / (2.0 * math.sqrt(math.pi)) ** COLUMNS
    return model.squared_l2_ / truth


def score(space: str, n: int, landmarks: int = 300) -> float:
    """Return the root mean squared error of the score relative to the size of the true score."""
    model = fit_score(NystromKEF(space=space, landmarks=landmarks, random_state=0), DrawnParts(n, 0))
    fresh = np.random.default_rng(9).normal(size=(2000, COLUMNS))
    return float(np.linalg.norm(model.grad_log_density(fresh) + fresh) / np.linalg.norm(fresh))


def measured(work: Callable[[], float]) -> tuple[float, float, float, float]:
    """Return the result of `work`, its processor and wall-clock seconds, and the largest memory of this process in MB."""
    wall, processor = time.perf_counter(), time.process_time()
    answer = work()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return answer, processor, wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main(arguments: list[str] | None = None) -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="rows in all")
    parser.add_argument("--curl-free-rows", type=int, nargs="+", default=[20_000], help="rows of curl-free fits")
    parser.add_argument("--quick", action="store_true", help="2,000 rows and 20 landmarks: a check that it runs")
    parser.add_argument("--out", type=Path, help="a text file")
    options = parser.parse_args(arguments)
    rows, few = ([2000], [2000]) if options.quick else (options.rows, options.curl_free_rows)
    landmarks = 20 if options.quick else 300
    cases = [(name, n, partial(difference, given, n)) for name, given in DIFFERENCES.items() for n in rows]
    cases += [
        (name, n, partial(score, space, n, landmarks))
        for name, space in SCORES.items()
        for n in (few if space == "curl_free" else rows)
    ]
    lines = [
        f"{'fit, ' + str(COLUMNS) + ' columns':<40}{'rows':>12}{'cpu s':>10}{'wall s':>10}{'memory MB':>12}{'error':>10}"
    ]
    print(lines[0], flush=True)
    for name, n, work in cases:
        with get_context("spawn").Pool(1) as pool:
            answer, processor, wall, memory = pool.apply(measured, (work,))
        lines.append(f"{name:<40}{n:>12,}{processor:>10.1f}{wall:>10.1f}{memory:>12.0f}{answer:>10.3f}")
        print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
