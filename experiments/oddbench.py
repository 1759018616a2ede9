"""Anomaly detection with a clean reference on OddBench's tables: AUC and average precision of each method on each table.

    python -m experiments.oddbench --data DIR [--out oddbench.csv] [--half all|chosen|kept] [--methods ...] [--most 2000]
    python -m experiments.oddbench --page oddbench.csv

DIR holds files ``*.npz`` with keys train (ordinary rows only), test and test_labels (1: anomaly). Methods are fitted to `train`,
standardised by it, and score `test`. A run that was interrupted goes on where it stopped, and methods may be added later.
A method that cannot be imported is named and left out. To add one, give :data:`experiments.adbench_methods.OWN` a function of a
task, of whether the reference is clean and of a seed that returns one number a row, higher for less likely ones.

The rule of ``AnomalyDetector(novelty=True)`` was chosen on the tables of ``first57.txt`` and on the half "chosen" of the others.
The half "kept" was looked at once, after the choice. The halves alternate in the order of names.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
from pathlib import Path

import numpy as np

from experiments.adbench import measured
from experiments.adbench_boards import Task, oddbench
from experiments.adbench_methods import DETECTORS, OURS, method
from experiments.resumed import resumed
from isopleth import AnomalyDetector

FIELDS = ["table", "seed", "method", "auc", "pr", "seconds", "megabytes"]
GIVEN_BEFORE = "first57.txt"
HALVES = ("all", "chosen", "kept")
SETTING = "clean reference"


def fast(task: Task, clean: bool, seed: int) -> np.ndarray:
    """The detector without conditional laws."""
    return -AnomalyDetector(novelty=True, fast=True, random_state=seed).fit(task.train).score_samples(task.test)


FAST = f"{OURS}, fast"
NAMES = [*DETECTORS, FAST]


def tables(folder: Path, half: str) -> list[Path]:
    """Tables of a folder, or of one half of those that were not given before."""
    files = sorted(folder.glob("*.npz"))
    if half == "all":
        return files
    listed = folder / GIVEN_BEFORE
    before = set(listed.read_text().replace(".npz", "").split()) if listed.exists() else set()
    new = [path for path in files if path.stem not in before]
    return new[HALVES.index(half) - 1 :: 2]


def task_of(path: Path, most: int, seed: int) -> Task:
    """A table with at most `most` rows of each kind, drawn at random."""
    task = oddbench(path, SETTING, seed)
    rng = np.random.default_rng(seed)
    fit, judged = (rng.permutation(n)[:most] if n > most else np.arange(n) for n in (len(task.train), len(task.test)))
    return Task(task.train[fit], task.test[judged], task.labels[judged])


def run(options: argparse.Namespace) -> None:
    """Add to the file what is not in it yet."""
    files = tables(options.data, options.half)
    if not files:
        sys.exit(f"{options.data} holds no .npz files; OddBench's tables are expected there.")
    methods = {}
    for name in options.methods:
        try:
            methods[name] = fast if name == FAST else method(name)
        except ImportError as error:
            print(f"{name}: {error}; not measured", file=sys.stderr)
    with resumed(options.out, FIELDS, 3) as (finished, add):
        for path in files:
            for seed in options.seeds:
                missing = [name for name in methods if (path.stem, str(seed), name) not in finished]
                task = task_of(path, options.most, seed) if missing else None
                for name in missing:
                    try:
                        found = measured(methods[name], task, SETTING, seed)
                    except Exception as error:  # a method that fails on a table is named, and is not on the page
                        print(f"{name} on {path.stem}: {type(error).__name__}: {error}", file=sys.stderr)
                        continue
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                    add([[path.stem, seed, name, *(f"{value:.5f}" for value in found), f"{peak:.0f}"]])


def page(lines: list[dict[str, str]]) -> str:
    """Means over the tables that all listed methods have, and the leads of this library's detector."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for line in lines:
        values = [100 * float(line["auc"]), 100 * float(line["pr"]), float(line["seconds"])]
        found.setdefault(line["method"], {}).setdefault(line["table"], []).append(values)
    names = sorted(set.union(*(set(tables) for tables in found.values())))
    whole = {
        m: np.array([np.mean(tables[t], axis=0) for t in names])
        for m, tables in found.items()
        if len(tables) == len(names)
    }
    out = [
        f"{len(names)} tables of OddBench, fitted to ordinary rows. Means in percent, processor seconds of all tables, and the",
        f"difference of {OURS} to each method in AUC and in average precision (PR), with standard errors over tables.",
        f"{'':<32}{'AUC':>6}{'PR':>6}{'seconds':>9}{'in AUC':>15}{'in PR':>15}",
    ]
    for name in sorted(whole, key=lambda name: -whole[name][:, 0].mean()):
        auc, pr, seconds = whole[name].T
        line = f"{name:<32}{auc.mean():>6.1f}{pr.mean():>6.1f}{seconds.sum():>9.1f}"
        if name != OURS and OURS in whole:
            leads = (whole[OURS] - whole[name])[:, :2]
            errors = leads.std(axis=0, ddof=1) / np.sqrt(len(leads))
            line += "".join(
                f"{f'{lead:+.1f} ({error:.1f})':>15}" for lead, error in zip(leads.mean(axis=0), errors, strict=True)
            )
        out.append(line)
    left = sorted(set(found) - set(whole))
    return "\n".join(out + ([f"not run on all tables: {', '.join(left)}"] if left else []))


def main() -> None:
    """Run the methods, or print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    parser.add_argument("--out", type=Path, default=Path("oddbench.csv"))
    parser.add_argument("--half", choices=HALVES, default="all")
    parser.add_argument("--methods", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--most", type=int, default=2000, help="most rows of each kind")
    options = parser.parse_args()
    if options.data:
        run(options)
        return
    with options.page.open(newline="") as file:
        print(page(list(csv.DictReader(file))))


if __name__ == "__main__":
    main()
