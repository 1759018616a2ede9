"""Anomaly detection with a clean reference on OddBench's tables: a board that any method can enter.

    python -m experiments.oddbench --data DIR [--out oddbench.csv] [--half all|chosen|kept] [--methods ...]
    python -m experiments.oddbench --data DIR --methods experiments/own_method.py:mixture
    python -m experiments.oddbench --page oddbench.csv

DIR/oddbench holds files ``*.npz`` with keys train (ordinary rows only), test and test_labels (1: anomaly). Methods are fitted
to `train`, standardised by it, and score `test`; those that depend on a seed are run with five. ``--methods`` takes names and
functions in files, as ``FILE.py:FUNCTION``. A run that was interrupted goes on where it stopped, and methods may be added
later. A method that cannot be imported is named and left out; one that fails on a table is named on the page.

The rule of ``AnomalyDetector(novelty=True)`` was chosen on the tables of ``first57.txt`` and on the half "chosen" of the others,
not on the half "kept". The halves alternate in the order of names.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import wrap

import numpy as np

from experiments.adbench import Job, available, measure
from experiments.adbench_boards import CLEAN, Task, oddbench
from experiments.adbench_boards import tables as tables_of
from experiments.adbench_methods import DETECTORS, OURS, SLOW

GIVEN_BEFORE = "first57.txt"
HALVES = ("all", "chosen", "kept")
Results = dict[str, dict[str, np.ndarray]]


def tables(data: Path, half: str) -> list[Path]:
    """Tables of the board, or of one half of those that were not given before."""
    files = tables_of(data, "oddbench")
    if half == "all":
        return files
    listed = data / "oddbench" / GIVEN_BEFORE
    before = set(listed.read_text().replace(".npz", "").split()) if listed.exists() else set()
    new = [path for path in files if path.stem not in before]
    return new[HALVES.index(half) - 1 :: 2]


def task_of(path: Path, train: int, test: int) -> Task:
    """A table with at most so many rows of each kind, drawn at random, the same ones for every seed of a method."""
    task = oddbench(path, CLEAN, 0)
    rng = np.random.default_rng(0)
    fit, judged = (np.sort(rng.permutation(len(X))[:most]) for X, most in ((task.train, train), (task.test, test)))
    return Task(task.train[fit], task.test[judged], task.labels[judged])


def jobs_of(options: argparse.Namespace, files: list[Path]) -> Iterator[Job]:
    """Tables seed by seed; methods without chance are run with the first seed only."""
    setting = CLEAN if options.train_rows is None else f"{CLEAN}, {options.train_rows} rows"
    train = options.most if options.train_rows is None else options.train_rows
    for seed in options.seeds:
        for path in files:
            load = partial(task_of, path, train, options.most)
            yield Job("oddbench", setting, path.stem, seed, load, seed == options.seeds[0])


def results(lines: list[dict[str, str]]) -> tuple[Results, dict[str, set[str]], list[str]]:
    """AUC and average precision in percent, seconds and MiB by method and table, seeds of each method, and failures."""
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    seeds, failures = defaultdict(set), []
    for line in lines:
        name, table = line["method"], line["table"]
        if line["failure"]:
            failures.append(f"{name} failed on {table}: {line['failure']}")
            continue
        values = [float(line[key] or "nan") for key in ("auc", "pr", "seconds", "megabytes")]
        found[name][table].append([100 * values[0], 100 * values[1], *values[2:]])
        seeds[name].add(line["seed"])
    means = {m: {t: np.mean(values, axis=0) for t, values in tables.items()} for m, tables in found.items()}
    return means, seeds, failures


def with_error(values: np.ndarray, sign: str = "") -> str:
    """Mean and, in brackets, its standard error over tables."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():{sign}.1f} ({error:.1f})"


def block(lines: list[dict[str, str]]) -> list[str]:
    """One line a method, in the order of the difference to this library's detector, each on the tables that it has."""
    found, seeds, failures = results(lines)
    ours = found.get(OURS, {})
    rows = []
    for name, values in found.items():
        auc, pr, seconds, megabytes = np.array(list(values.values())).T
        line = f"{name:<28}{len(values):>7}{len(seeds[name]):>6}{with_error(auc):>12}{with_error(pr):>12}"
        line += f"{seconds.mean():>9.2f}{np.nanmax(megabytes) if not np.isnan(megabytes).all() else np.nan:>6.0f}"
        common = [table for table in values if table in ours]
        lead = np.array([ours[table] - values[table] for table in common])[:, :2] if common else np.empty((0, 2))
        if name != OURS and len(lead):
            line += "".join(f"{with_error(column, '+'):>13}" for column in lead.T)
        rows.append((lead[:, 0].mean() if len(lead) else np.inf, line))
    return [line for _, line in sorted(rows, key=lambda row: row[0])] + [
        part for failure in sorted(set(failures)) for part in wrap(failure, 110, subsequent_indent="  ")
    ]


HEADER = f"{'':<28}{'tables':>7}{'seeds':>6}{'AUC':>12}{'PR':>12}{'seconds':>9}{'MiB':>6}{'in AUC':>13}{'in PR':>13}"


def page(lines: list[dict[str, str]]) -> str:
    """Means of each method, and the leads of this library's detector."""
    out = [
        "OddBench, fitted to ordinary rows. Mean AUC and average precision (PR) in percent with standard errors over tables;",
        "processor seconds a table; the most memory beyond what the process had; difference of isopleth to each method on",
        "the tables that both have. Means over different tables are not comparable, differences are.",
    ]
    for setting in sorted({line["setting"] for line in lines}, key=lambda setting: (len(setting), setting)):
        some = [line for line in lines if line["setting"] == setting]
        out += ["", f"{setting}: {len({line['table'] for line in some})} tables", HEADER, *block(some)]
    return "\n".join(out)


def main() -> None:
    """Run the methods, or print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the boards' tables, in oddbench")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    parser.add_argument("--out", type=Path, default=Path("oddbench.csv"))
    parser.add_argument("--half", choices=HALVES, default="all")
    parser.add_argument("--every", type=int, default=1, help="only every so many of the tables")
    parser.add_argument("--methods", nargs="+", default=[*DETECTORS, *SLOW], help="names, or FILE.py:FUNCTION")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--most", type=int, default=2000, help="most rows of each kind")
    parser.add_argument("--train-rows", type=int, help="fit to so many rows only")
    options = parser.parse_args()
    if options.data:
        files = tables(options.data, options.half)[:: options.every]
        if not files:
            sys.exit(f"{options.data / 'oddbench'} holds no .npz files; OddBench's tables are expected there.")
        measure(options.out, available(options.methods), jobs_of(options, files))
        return
    with options.page.open(newline="") as file:
        print(page(list(csv.DictReader(file))))


if __name__ == "__main__":
    main()
