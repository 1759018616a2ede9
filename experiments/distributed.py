"""SOSREP in random features over a Dask cluster: cost against rows and workers, the parts of it, and what many workers would do.

    python -m experiments.distributed [--rows 100000 300000 1000000] [--features 200] [--quick] [--out FILE]

Worker processes of this machine, with one thread each, hold normal rows in 5 columns in memory, in partitions of 25,000. Printed
are, for each number of rows and one and two workers: passes and seconds of the whole fit, what the formula says of it, and the
seconds of the workers' processors. The formula goes by the parts that are measured alone, computations in seconds of a processor:
adding a row to sums, merging and sending sums, the overhead of a task, of a pass, and what is done by one process alone, which is
to solve for a step and to check the model against the exact one on 2,000 rows. It then predicts a
hundred workers, with four partitions each. Nothing in it is fitted to the times of the fits.
"""

from __future__ import annotations

import argparse
import copy
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
from isopleth.density.feature_statistics import FeatureStatistics
from isopleth.distributed.dask_parts import FAN, DaskParts
from isopleth.operators.random_features import RandomFeatures
from isopleth.operators.threads import processors_taken
from isopleth.survey import ColumnMoments, Survey

COLUMNS = 5
PART = 25_000
HUNDRED = ((10_000_000, 100), (100_000_000, 100), (1_000_000_000, 100))
"""Rows and workers of the prediction."""

FORMULA = """\
seconds of a fit = survey + passes * (add + merge + send + tasks + pass + solve) + check, with p partitions and W workers:
    survey  = ceil(p/W) * (rows of a partition) * (survey of a row) + (overhead of a pass) + p * (overhead of a task)
    add     = ceil(p/W) * (rows of a partition) * (adding a row)
    merge   = (ceil(p/W) + (FAN - 1) * ceil(log p / log FAN)) * (merging two sums)
    send    = (ceil(p/W) * (1 - 1/W) + (FAN - 1) * ceil(log p / log FAN)) * (sending sums)
    tasks   = p * (1 + 1/(FAN - 1)) * (overhead of a task), all in the one scheduler
FAN = 8 sums are merged in one task; the second term of merge and send is the last path of the tree, where no work is shared."""


def quickest(work: Callable[[], Any], times: int, clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds of the quickest of some runs, of the processor if not told otherwise: others had neighbours."""
    found = []
    work()  # what is made once
    for _ in range(times):
        start = clock()
        work()
        found.append(clock() - start)
    return min(found)


@dataclass(frozen=True)
class Costs:
    """Seconds of the parts of a fit."""

    survey: float
    add: float
    merge: float
    send: float
    task: float
    begin: float
    solve: float
    check: float
    size: int

    def lines(self) -> list[str]:
        """As a table."""
        named = (
            ("survey of a row", self.survey * 1e6, "us"),
            ("adding a row to sums", self.add * 1e6, "us"),
            ("merging two sums", self.merge * 1e3, "ms"),
            (f"sending sums ({self.size / 1e6:.2f} MB)", self.send * 1e3, "ms"),
            ("overhead of a task", self.task * 1e3, "ms"),
            ("overhead of a pass", self.begin * 1e3, "ms"),
            ("solving for a step", self.solve * 1e3, "ms"),
            ("the check at the end", self.check * 1e3, "ms"),
        )
        return [f"    {name:<28}{value:>12.3f} {unit}" for name, value, unit in named]

    def predicted(self, rows: int, workers: int, passes: int, part: int = PART) -> float:
        """Seconds of a fit in partitions of `part` rows, by the formula."""
        p = math.ceil(rows / part)
        each, path = math.ceil(p / workers), (FAN - 1) * math.ceil(math.log(max(p, 2)) / math.log(FAN))
        survey = each * part * self.survey + self.begin + p * self.task
        step = each * part * self.add + (each + path) * self.merge
        step += (each * (1.0 - 1.0 / workers) + (path if workers > 1 else 0)) * self.send
        step += p * (1.0 + 1.0 / (FAN - 1)) * self.task + self.begin + self.solve
        return survey + passes * step + self.check


def model(features: int) -> RandomFeatureSOSREP:
    """What is fitted."""
    return RandomFeatureSOSREP(length_scale=1.5, n_frequencies=features // 2, random_state=0, n_jobs=1)


def measured(client: Client, features: int, times: int) -> Costs:
    """The parts, each alone; what goes over the wire between two workers of `client`."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(PART, COLUMNS))
    waves = RandomFeatures(rng.normal(size=(features // 2, COLUMNS)), n_jobs=1)
    start = partial(FeatureStatistics, waves, np.full(features, 0.01))
    with processors_taken():
        survey = quickest(lambda: Survey(COLUMNS, 2001).add(rows), times) / PART
        add = quickest(lambda: start().accumulate(rows), times) / PART
        sums = start().accumulate(rows)
        merge = quickest(lambda: copy.deepcopy(sums).merge(sums), times)
        solve = quickest(sums.solve, times)
        few = rng.normal(size=(2001, COLUMNS))
        known = model(features).fit(few[:2000])
        check = quickest(lambda: known._approximation_error(known._fitted(), few, np.ones(2001)), 2)
    sent = sending(client, sums, times)
    overhead = [quickest(partial(empty_pass, n), times, time.perf_counter) for n in (4, 204)]
    task = (overhead[1] - overhead[0]) / (200 * (1.0 + 1.0 / (FAN - 1)))
    return Costs(
        survey, add, merge, sent, task, max(overhead[0] - 4 * task, 0.0), solve, check, len(pickle.dumps(sums))
    )


def sending(client: Client, sums: Any, times: int, copies: int = 30) -> float:
    """Seconds from one worker to the other for each of some sums at once, those of an empty task taken off."""
    here, there = list(client.scheduler_info()["workers"])[:2]

    def seconds(count: int) -> float:
        held = client.submit(lambda one: [copy.deepcopy(one) for _ in range(count)], sums, workers=here, pure=False)
        wait(held)
        start = time.perf_counter()
        wait(client.submit(lambda _: None, held, workers=there, pure=False))
        return time.perf_counter() - start

    full, empty = (min(seconds(count) for _ in range(times + 1)) for count in (copies, 0))
    return max(full - empty, 0.0) / copies


def empty_pass(partitions: int) -> None:
    """A pass over partitions of one row each."""
    parts = DaskParts(da.ones((partitions, 1), chunks=(1, 1)))
    parts.sums(partial(ColumnMoments, 1), ColumnMoments.add)


def fitted(client: Client, rows: int, features: int) -> tuple[RandomFeatureSOSREP, float, float]:
    """A fit to rows that are in the memory of the workers, its seconds, and those of the workers' processors."""
    X = da.random.default_rng(0).normal(size=(rows, COLUMNS), chunks=(PART, COLUMNS)).persist()
    wait(X)
    used = sum(client.run(time.process_time).values())
    start = time.perf_counter()
    found = distributed.fit(model(features), X)
    seconds = time.perf_counter() - start
    return found, seconds, sum(client.run(time.process_time).values()) - used


def workers_of(count: int) -> LocalCluster:
    """Processes of one thread each on this machine."""
    return LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def study(sizes: list[int], features: int, times: int) -> list[str]:
    """All lines."""
    lines = [
        f"SOSREP in T = {features} features, {COLUMNS} columns, partitions of {PART:,} rows",
        "",
        "parts, measured",
    ]
    with workers_of(2) as cluster, Client(cluster) as client:
        fitted(client, PART, features)  # workers import what they need
        costs = measured(client, features, times)
    lines += [*costs.lines(), "", FORMULA, "", "fits, measured and by the formula"]
    lines += [f"{'rows':>14}{'workers':>9}{'passes':>8}{'seconds':>10}{'formula':>10}{'workers cpu s':>15}"]
    passes = 0
    for workers in (1, 2):
        with workers_of(workers) as cluster, Client(cluster) as client:
            fitted(client, PART, features)
            for rows in sizes:
                found, seconds, used = fitted(client, rows, features)
                passes = found.n_iter_
                expected = costs.predicted(rows, workers, passes)
                lines.append(f"{rows:>14,}{workers:>9}{passes:>8}{seconds:>10.1f}{expected:>10.1f}{used:>15.1f}")
                print(lines[-1], flush=True)
    lines += ["", f"predicted by the formula, not measured; {passes} passes as in the largest fit"]
    lines += [f"{'rows':>14}{'workers':>9}{'seconds':>10}{'one worker':>14}{'quicker by':>12}"]
    for rows, workers in HUNDRED:
        part = max(PART, rows // (4 * workers))
        many, one = costs.predicted(rows, workers, passes, part), costs.predicted(rows, 1, passes, part)
        lines.append(f"{rows:>14,}{workers:>9}{many:>10.0f}{one:>14,.0f}{one / many:>12.1f}")
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 300_000, 1_000_000], help="rows that are fitted"
    )
    parser.add_argument("--features", type=int, default=200, help="number of features, even")
    parser.add_argument("--quick", action="store_true", help="50,000 rows and 20 features: a check that it runs")
    parser.add_argument("--out", type=Path, help="a text file")
    options = parser.parse_args(arguments)
    sizes, features, times = ([50_000], 20, 1) if options.quick else (options.rows, options.features, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # few features are as good as many for the time they take
        lines = study(sizes, features, times)
    print("\n".join(lines), flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
