"""Anomaly detection on two boards of tables, beside the detectors of other packages, on the same rows in one process.

    python -m experiments.adbench --data DIR [--out board.csv] [--boards adbench oddbench] [--settings ...] [--methods ...]
    python -m experiments.adbench --page board.csv
    python -m experiments.adbench --pictures board.csv --to docs/images

DIR holds a folder ``adbench`` with ADBench's classical sets and one ``oddbench`` with OddBench's tables; see
:mod:`experiments.adbench_boards` for the settings. ``--methods`` takes names and functions in files, as ``FILE.py:FUNCTION``; see
``experiments/own_method.py``. Each line of the CSV file is one table, setting, seed and method with AUC, average precision,
seconds of processor time and memory, or with the reason why it failed. A run that was interrupted goes on where it stopped, and
methods may be added later; a failure is tried again once its line is deleted. The page and the pictures are made from the file
alone.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import ctypes
import gc
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments.adbench_boards import BOARDS, CLEAN, SETTINGS, Task, tables
from experiments.adbench_methods import NAMES, Method, method
from experiments.adbench_page import page
from experiments.adbench_pictures import draw_pictures
from experiments.resumed import resumed

FIELDS = ["board", "setting", "table", "seed", "method", "auc", "pr", "seconds", "megabytes", "failure"]
_STATUS, _RESTART = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Job(NamedTuple):
    """A table in a setting with a seed, read when it is needed."""

    board: str
    setting: str
    table: str
    seed: int
    load: Callable[[], Task]
    all_methods: bool = True  # False: only those that depend on the seed


def warm_up(how: Method) -> None:
    """Score a small table, so that a method has loaded and compiled what it needs before it is measured."""
    X = np.random.default_rng(0).normal(size=(64, 4))
    with warnings.catch_warnings(), contextlib.suppress(Exception):  # what fails on all tables is named there
        warnings.simplefilter("ignore")
        how.run(Task(X, X[:32] + 1.0, np.zeros(32)), True, 0)


def memory(name: str) -> float:
    """Resident memory of this process in MiB, by its name in Linux's table: VmRSS now, VmHWM the most since a restart."""
    lines = _STATUS.read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measured(how: Method, task: Task, setting: str, seed: int) -> list[str]:
    """AUC, average precision, seconds of processor time, MiB beyond those before, and the failure if there was one."""
    tells_memory = os.access(_RESTART, os.W_OK)
    gc.collect()
    if tells_memory:
        with contextlib.suppress(AttributeError):  # glibc: give back what earlier methods freed
            ctypes.CDLL(None).malloc_trim(0)
        _RESTART.write_text("5")
        before = memory("VmRSS")
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scores = how.run(task, setting.startswith(CLEAN), seed)
            found = [roc_auc_score(task.labels, scores), average_precision_score(task.labels, scores)]
        except Exception as error:  # a method that fails on a table is named on the page
            return ["", "", "", "", f"{type(error).__name__}: {error}".splitlines()[0][:200]]
    values = [*found, time.process_time() - start]
    return [*(f"{value:.5f}" for value in values), f"{memory('VmHWM') - before:.1f}" if tells_memory else "", ""]


def available(names: Iterable[str]) -> dict[str, Method]:
    """Methods that are installed; the others are named on standard error."""
    found = {}
    for name in names:
        try:
            known, run = method(name)
        except ImportError as error:
            print(f"{name}: {error}; not measured", file=sys.stderr)
        else:
            found[known] = run
    return found


def measure(out: Path, methods: dict[str, Method], jobs: Iterable[Job]) -> None:
    """Add to the file what is not in it yet."""
    warm = set()
    with resumed(out, FIELDS, 5) as (finished, add):
        for job in jobs:
            line = [job.board, job.setting, job.table, str(job.seed)]
            missing = [
                name
                for name, how in methods.items()
                if (*line, name) not in finished and (job.all_methods or how.random)
            ]
            task = job.load() if missing else None
            for name in missing:
                if name not in warm:
                    warm_up(methods[name])
                    warm.add(name)
                found = measured(methods[name], task, job.setting, job.seed)
                add([[*line, name, *found]])
                if found[-1]:
                    print(f"{name} on {job.table}: {found[-1]}", file=sys.stderr)


def jobs_of(options: argparse.Namespace) -> Iterator[Job]:
    """Tables of the boards in each setting, seed by seed."""
    for board in options.boards:
        files = tables(options.data, board)
        if not files:
            print(f"{options.data / board} holds no .npz files; its tables are expected there.", file=sys.stderr)
        for setting in options.settings:
            for seed in options.seeds:
                for path in files[:: options.every]:
                    yield Job(board, setting, path.stem, seed, partial(BOARDS[board], path, setting, seed))


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the boards' tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the page of results made from this file")
    what.add_argument("--pictures", type=Path, metavar="CSV", help="draw the pictures made from this file")
    parser.add_argument("--to", type=Path, default=Path(), help="folder of the pictures")
    parser.add_argument("--out", type=Path, default=Path("board.csv"))
    parser.add_argument("--boards", nargs="+", choices=list(BOARDS), default=list(BOARDS))
    parser.add_argument("--every", type=int, default=1, help="only every so many of the tables")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", default=NAMES, help="names, or FILE.py:FUNCTION")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    return parser.parse_args()


def main() -> None:
    """Run the boards, or print the page."""
    options = parse()
    made_from = options.page or options.pictures
    if made_from is None:
        measure(options.out, available(options.methods), jobs_of(options))
        return
    with made_from.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if not line["failure"]]
    if options.page:
        print(page(lines))
    else:
        draw_pictures(lines, options.to)


if __name__ == "__main__":
    main()
