"""Anomaly detection on two boards of tables, beside PyOD's detectors, on the same rows in one process.

    python -m experiments.adbench --data DIR [--out board.csv] [--boards adbench oddbench] [--settings ...] [--methods ...]
    python -m experiments.adbench --page board.csv > docs/anomalies_board_results.txt

DIR holds a folder ``adbench`` with ADBench's classical sets and one ``oddbench`` with OddBench's tables; see
:mod:`experiments.adbench_boards` for the settings. Each line of the CSV file is one table, setting, seed and method with AUC,
average precision and seconds of processor time. A run that was interrupted goes on where it stopped, and methods may be added
later. The page is made from the file alone.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path

from sklearn.metrics import average_precision_score, roc_auc_score

from experiments.adbench_boards import BOARDS, SETTINGS, Task, tables
from experiments.adbench_methods import NAMES, Method, method
from experiments.adbench_page import page

FIELDS = ["board", "setting", "table", "seed", "method", "auc", "pr", "seconds"]


def done(path: Path) -> set[tuple[str, ...]]:
    """Results that the file already holds."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {tuple(line[name] for name in FIELDS[:5]) for line in csv.DictReader(file)}


def measured(run: Method, task: Task, setting: str, seed: int) -> list[float]:
    """AUC, average precision and seconds of processor time."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = run(task, setting == "clean reference", seed)
    seconds = time.process_time() - start
    return [roc_auc_score(task.labels, scores), average_precision_score(task.labels, scores), seconds]


def available(names: list[str]) -> dict[str, Method]:
    """Methods that are installed; the others are named on standard error."""
    found = {}
    for name in names:
        try:
            found[name] = method(name)
        except ImportError as error:
            print(f"{name}: {error}; not measured", file=sys.stderr)
    return found


def run_boards(options: argparse.Namespace) -> None:
    """Add to the file what is not in it yet."""
    finished = done(options.out)
    methods = available(options.methods)
    new = not options.out.exists()
    with options.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        for board in options.boards:
            files = tables(options.data, board)
            if not files:
                print(f"{options.data / board} holds no .npz files; its tables are expected there.", file=sys.stderr)
            for setting in options.settings:
                for seed in options.seeds:
                    for path in files:
                        line = [board, setting, path.stem, str(seed)]
                        missing = [name for name in methods if (*line, name) not in finished]
                        task = BOARDS[board](path, setting, seed) if missing else None
                        for name in missing:
                            try:
                                found = measured(methods[name], task, setting, seed)
                            except Exception as error:  # a method of others that fails on a table is left out there
                                if name.startswith("isopleth"):
                                    raise
                                print(f"{name} on {path.stem}: {error}", file=sys.stderr)
                                continue
                            writer.writerow([*line, name, *(f"{value:.5f}" for value in found)])
                            file.flush()


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the boards' tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the page of results made from this file")
    parser.add_argument("--out", type=Path, default=Path("board.csv"))
    parser.add_argument("--boards", nargs="+", choices=list(BOARDS), default=list(BOARDS))
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    return parser.parse_args()


def main() -> None:
    """Run the boards, or print the page."""
    options = parse()
    if options.page:
        with options.page.open(newline="") as file:
            print(page(list(csv.DictReader(file))))
    else:
        run_boards(options)


if __name__ == "__main__":
    main()
