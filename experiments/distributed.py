"""SOSREP by random features on a Dask cluster: cost against rows and workers, its parts, and a prediction for many workers.

    python -m experiments.distributed [--rows 100000 300000 1000000] [--features 200] [--quick] [--out FILE]

Worker processes of this machine, with one thread each, hold normal rows in 5 columns in memory, in partitions of 25,000.
Parts of a fit are measured alone, in seconds of a processor: what a row costs in two workers that are both at work; what a
partition costs its worker, and what it costs the process of client and scheduler, by passes over partitions of one row with
sums as large as those of the fits; the seconds of a pass over one row; solving the sums of a pass; and the check against the
exact model at the end. A formula makes the seconds of a fit of them. Fits by one and two workers say how right it is, and it
predicts a hundred workers, with four partitions each. Nothing in it is fitted to the times of the fits.

The formula says what a fit takes on a machine that has nothing else to do. The share of a processor that the workers had
while rows were timed is printed with the parts: where it is far below 100 %, compare seconds of processors, which depend on
it little.
"""

from __future__ import annotations

import argparse
import logging
import math
import pickle
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from distributed import Client, LocalCluster, wait
from isopleth import DataWarning, RandomFeatureSOSREP, distributed
from isopleth.core.budget import Budget
from isopleth.core.parts import FirstPass
from isopleth.core.threads import processors_taken
from isopleth.density.feature_statistics import FeatureStatistics
from isopleth.distributed.dask_parts import FAN, DaskParts
from isopleth.operators.features import RandomFeatures

COLUMNS = 5
PART = 25_000
# Partitions of one row: the cost of 200 more of them gives the cost of one.
FEW, MANY = 8, 208
# Rows and workers of the prediction.
HUNDRED = ((10_000_000, 100), (100_000_000, 100), (1_000_000_000, 100))

FORMULA = """\
seconds of a fit = survey + passes * (pass + solve) + check, with p partitions of r rows and W workers:
    pass   = (pass over one row) + p * (partition: scheduler) + (ceil(p/W) + path) * (partition: worker)
             + ceil(p/W) * r * (row: sums)
    path   = (FAN - 1) * ceil(log p / log FAN) for W > 1: the last merges, where no work is shared, each taken for a partition
    survey = such a pass with (row: survey)
cpu of W workers = rows * ((row: survey) + passes * (row: sums)) + (1 + passes) * p * (partition: worker)
    + W * (seconds of the fit) * (worker without work)
FAN = 8 sums are merged in one task; scheduler and workers are taken not to work at the same time."""


@dataclass(frozen=True)
class Costs:
    """Seconds of each part of a fit."""

    survey: float
    row: float
    worker: float
    scheduler: float
    begin: float
    solve: float
    check: float
    idle: float
    size: int
    share: float

    def lines(self) -> list[str]:
        """Return the seconds as a table."""
        named = (
            ("row: survey", self.survey * 1e6, "us"),
            ("row: sums", self.row * 1e6, "us"),
            ("partition: worker", self.worker * 1e3, "ms"),
            ("partition: scheduler", self.scheduler * 1e3, "ms"),
            ("pass over one row", self.begin * 1e3, "ms"),
            ("solve", self.solve * 1e3, "ms"),
            ("check", self.check * 1e3, "ms"),
            ("worker without work", self.idle * 1e2, "% of a processor"),
            ("size of sums", self.size / 1e6, "MB"),
            ("share of a processor", self.share * 1e2, "%"),
        )
        return [f"    {name:<22}{value:>10.3f} {unit}" for name, value, unit in named]

    def a_pass(self, rows: int, workers: int, part: int, row: float) -> float:
        """Return the seconds of a pass in partitions of `part` rows, at `row` seconds each."""
        p = math.ceil(rows / part)
        path = (FAN - 1) * math.ceil(math.log(p) / math.log(FAN)) if workers > 1 else 0
        each = math.ceil(p / workers)
        return self.begin + p * self.scheduler + (each + path) * self.worker + each * min(part, rows) * row

    def fit(self, rows: int, workers: int, passes: int, part: int = PART) -> float:
        """Return the seconds of a fit."""
        first = self.a_pass(rows, workers, part, self.survey)
        return first + passes * (self.a_pass(rows, workers, part, self.row) + self.solve) + self.check

    def processors(self, rows: int, workers: int, passes: int, seconds: float) -> float:
        """Return the processor seconds of all workers in a fit that took this many seconds."""
        tasks = (1 + passes) * math.ceil(rows / PART) * self.worker
        return rows * (self.survey + passes * self.row) + tasks + workers * seconds * self.idle


def model(features: int) -> RandomFeatureSOSREP:
    """Return the estimator."""
    return RandomFeatureSOSREP(length_scale=1.5, n_frequencies=features // 2, random_state=0, n_jobs=1)


def empty_sums(features: int) -> FeatureStatistics:
    """Return the statistics of a pass."""
    waves = np.random.default_rng(0).normal(size=(features // 2, COLUMNS))
    return FeatureStatistics(RandomFeatures(waves, Budget(n_jobs=1)), np.full(features, 0.01))


def added(sums: FeatureStatistics, rows: np.ndarray, weights: None = None) -> FeatureStatistics:
    """Add rows of weight 1."""
    return sums.accumulate(rows, np.ones(len(rows)))


def quickest(work: Callable[[], Any], times: int) -> float:
    """Return the processor seconds of the fastest of several runs; slower runs shared the machine."""
    found = []
    with processors_taken():
        work()  # what is made once
        for _ in range(times):
            start = time.thread_time()
            work()
            found.append(time.thread_time() - start)
    return min(found)


def of_rows(features: int, times: int) -> tuple[float, float, float]:
    """Return the seconds for a row in the first pass and in the sums of a pass, and the available share of a processor."""
    rows = np.random.default_rng(0).normal(size=(PART, COLUMNS))
    start, used = time.perf_counter(), time.thread_time()
    survey = quickest(lambda: FirstPass(COLUMNS, 2001).add(rows), times)
    row = quickest(lambda: added(empty_sums(features), rows), times)
    return survey / PART, row / PART, (time.thread_time() - used) / (time.perf_counter() - start)


def of_pass(client: Client, features: int, partitions: int, times: int) -> tuple[float, float, float]:
    """Return the least seconds of a pass over partitions of one row: wall clock, workers, and client with scheduler."""
    X = da.ones((partitions, COLUMNS), chunks=(1, COLUMNS)).persist()
    wait(X)
    found = []
    for _ in range(times + 1):
        used, here, start = processors_of(client), time.process_time(), time.perf_counter()
        DaskParts(X).sums(partial(empty_sums, features), added)
        seconds, here = time.perf_counter() - start, time.process_time() - here
        found.append((seconds, processors_of(client) - used, here))
    seconds, workers, scheduler = (min(of) for of in zip(*found, strict=True))
    return seconds, workers, scheduler


def processors_of(client: Client) -> float:
    """Return the processor seconds of all workers."""
    return float(sum(client.run(time.process_time).values()))


def measured(client: Client, features: int, times: int) -> Costs:
    """Measure each part separately."""
    places = list(client.scheduler_info()["workers"])
    at_once = [client.submit(of_rows, features, times, workers=[place], pure=False) for place in places]
    survey, row, share = np.mean(client.gather(at_once), axis=0)
    begin = of_pass(client, features, 1, times)[0]
    few, many = (of_pass(client, features, partitions, times) for partitions in (FEW, MANY))
    _, worker, scheduler = (np.array(many) - few) / (MANY - FEW)
    used = processors_of(client)
    time.sleep(5.0)
    idle = (processors_of(client) - used) / 5.0 / len(places)
    rows = np.random.default_rng(0).normal(size=(2000, COLUMNS))
    sums = added(empty_sums(features), rows)
    solve = quickest(sums.solve, times)
    check = quickest(lambda: model(features).fit(rows), times)
    return Costs(survey, row, worker, scheduler, begin, solve, check, idle, len(pickle.dumps(sums)), share)


def fitted(client: Client, rows: int, features: int) -> tuple[int, float, float]:
    """Return the passes of a fit to rows in the memory of the workers, its seconds, and the workers' processor seconds."""
    X = da.random.default_rng(0).normal(size=(rows, COLUMNS), chunks=(PART, COLUMNS)).persist()
    wait(X)
    used, start = processors_of(client), time.perf_counter()
    found = distributed.fit(model(features), X)
    seconds = time.perf_counter() - start
    return found.n_iter_, seconds, processors_of(client) - used


def workers_of(count: int) -> LocalCluster:
    """Start a cluster of processes with one thread each on this machine."""
    return LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def study(sizes: list[int], features: int, times: int, say: Callable[[str], None]) -> None:
    """Return all lines; print each as soon as it is known."""
    say(f"SOSREP in T = {features} features, {COLUMNS} columns, partitions of {PART:,} rows\n\nparts, measured")
    with workers_of(2) as cluster, Client(cluster) as client:
        fitted(client, 2 * PART, features)  # workers import what they need
        costs = measured(client, features, times)
    say(
        "\n".join(
            [
                *costs.lines(),
                "",
                FORMULA,
                "",
                "fits, measured and by the formula; cpu is that of all workers, theirs of waiting included",
            ]
        )
    )
    heads = ("seconds", "formula", "cpu s", "formula")
    say(f"{'rows':>14}{'workers':>9}{'passes':>8}" + "".join(f"{head:>10}" for head in heads))
    passes = 0
    for workers in (1, 2):
        with workers_of(workers) as cluster, Client(cluster) as client:
            fitted(client, workers * PART, features)
            for rows in sizes:
                passes, seconds, used = fitted(client, rows, features)
                busy = costs.processors(rows, workers, passes, seconds)
                figures = (seconds, costs.fit(rows, workers, passes), used, busy)
                say(f"{rows:>14,}{workers:>9}{passes:>8}" + "".join(f"{figure:>10.1f}" for figure in figures))
    say(f"\npredicted by the formula, not measured; {passes} passes as in the largest fit")
    say(f"{'rows':>14}{'workers':>9}{'seconds':>10}{'one worker':>14}{'quicker by':>12}")
    for rows, workers in HUNDRED:
        part = max(PART, rows // (4 * workers))
        many, one = costs.fit(rows, workers, passes, part), costs.fit(rows, 1, passes, part)
        say(f"{rows:>14,}{workers:>9}{many:>10.0f}{one:>14,.0f}{one / many:>12.1f}")


def main(arguments: list[str] | None = None) -> None:
    """Print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 300_000, 1_000_000], help="rows that are fitted"
    )
    parser.add_argument("--features", type=int, default=200, help="number of features, even")
    parser.add_argument("--quick", action="store_true", help="50,000 rows and 20 features: a check that it runs")
    parser.add_argument("--out", type=Path, help="a text file")
    options = parser.parse_args(arguments)
    sizes, features, times = ([50_000], 20, 1) if options.quick else (options.rows, options.features, 7)
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # few features are as good as many for the time they take
        study(sizes, features, times, say)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
