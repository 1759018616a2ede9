"""Anomaly detection on two boards of tables, beside PyOD's detectors, on the same rows in one process.

    python -m experiments.adbench --data DIR [--out board.csv] [--boards adbench oddbench] [--settings ...] [--methods ...]
    python -m experiments.adbench --page board.csv > docs/anomalies_board_results.txt
    python -m experiments.adbench --pictures board.csv --to docs/images
    python -m experiments.adbench --papers board.csv --published DIR > docs/anomalies_papers_results.txt

DIR holds a folder ``adbench`` with ADBench's classical sets and one ``oddbench`` with OddBench's tables; see
:mod:`experiments.adbench_boards` for the settings. Each line of the CSV file is one table, setting, seed and method with AUC,
average precision and seconds of processor time. A run that was interrupted goes on where it stopped, and methods may be added
later. The page and the pictures are made from the file alone. ``--papers`` sets published figures beside those of the file; see
:mod:`experiments.adbench_published` for the files in ``--published``.
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
from experiments.adbench_methods import NAMES, PYOD, Method, method
from experiments.adbench_page import page
from experiments.adbench_pictures import draw_pictures
from experiments.adbench_published import beside
from experiments.resumed import resumed

FIELDS = ["board", "setting", "table", "seed", "method", "auc", "pr", "seconds"]


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
    methods = available(options.methods)
    with resumed(options.out, FIELDS, 5) as (finished, add):
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
                                if name not in PYOD:
                                    raise
                                print(f"{name} on {path.stem}: {error}", file=sys.stderr)
                                continue
                            add([[*line, name, *(f"{value:.5f}" for value in found)]])


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the boards' tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the page of results made from this file")
    what.add_argument("--pictures", type=Path, metavar="CSV", help="draw the pictures made from this file")
    what.add_argument("--papers", type=Path, metavar="CSV", help="print published figures beside those of this file")
    parser.add_argument("--to", type=Path, default=Path(), help="folder of the pictures")
    parser.add_argument("--published", type=Path, default=Path(), help="folder with published figures by table")
    parser.add_argument("--out", type=Path, default=Path("board.csv"))
    parser.add_argument("--boards", nargs="+", choices=list(BOARDS), default=list(BOARDS))
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    return parser.parse_args()


def main() -> None:
    """Run the boards, or print the page."""
    options = parse()
    made_from = options.page or options.pictures or options.papers
    if made_from is None:
        run_boards(options)
        return
    with made_from.open(newline="") as file:
        lines = list(csv.DictReader(file))
    if options.page:
        print(page(lines))
    elif options.papers:
        print(beside(lines, options.published))
    else:
        draw_pictures(lines, options.to)


if __name__ == "__main__":
    main()
