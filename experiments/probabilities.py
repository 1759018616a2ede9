"""Probabilities that new rows are anomalies, given a clean reference: are they as often right as they say?

    python -m experiments.probabilities --data DIR [--out probabilities.csv] [--tables 100]
    python -m experiments.probabilities --page probabilities.csv [--picture FILE]

DIR/oddbench holds OddBench's tables; see :mod:`experiments.oddbench`. In the part *labelled*, a detector is fitted to the
ordinary rows of a table and gives the probabilities of its test rows, whose labels are known. In the part *ordinary*, 300 of
the ordinary rows are judged by a detector that is fitted to the others, so that every probability above 0 is too high.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np

from experiments.adbench_flags import EDGES, draw, reliability
from experiments.oddbench import tables, task_of
from experiments.resumed import resumed
from isopleth import AnomalyDetector
from isopleth.results.figures import check_figure_target

FIELDS = ["table", "part", "probabilities", "labels"]
MOST = 2000
JUDGED = 300  # ordinary rows that are judged


def parts_of(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Reference rows, new rows and labels of both parts."""
    train, test, labels = task_of(path, MOST, MOST)
    order = np.random.default_rng(1).permutation(len(train))
    judged, others = order[:JUDGED], order[JUDGED:]
    assert test is not None
    return {
        "labelled": (train, test, labels),
        "ordinary": (train[others], train[judged], np.zeros(JUDGED, dtype=int)),
    }


def run(options: argparse.Namespace) -> None:
    """Add the tables that the file lacks."""
    files = tables(options.data, "all")
    if not files:
        sys.exit(f"{options.data / 'oddbench'} holds no .npz files; OddBench's tables are expected there.")
    chosen = np.unique(np.linspace(0, len(files) - 1, options.tables).round().astype(int))
    with resumed(options.out, FIELDS, 2) as (finished, add), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in (files[k] for k in chosen):
            for part, (reference, new, labels) in parts_of(path).items():
                if (path.stem, part) not in finished:
                    detector = AnomalyDetector(novelty=True, random_state=1).fit(reference)
                    found = detector.anomaly_probability(new)
                    add([[path.stem, part, " ".join(f"{p:.4f}" for p in found), "".join(map(str, labels))]])


def by_table(probabilities: list[np.ndarray], labels: list[np.ndarray]) -> list[str]:
    """Share of anomalies less the mean probability in each class: means over the tables that have such rows, with errors."""
    out = [f"{'by table':<16}{'tables':>9}{'anomalies less said':>24}"]
    for low, high in pairwise(EDGES):
        inside = [(p >= low) & (p < high) for p in probabilities]
        gaps = [
            100 * (y[rows].mean() - p[rows].mean())
            for p, y, rows in zip(probabilities, labels, inside, strict=True)
            if rows.any()
        ]
        if len(gaps) > 1:
            shown = f"{np.mean(gaps):+.1f} % ({np.std(gaps, ddof=1) / len(gaps) ** 0.5:.1f})"
            out.append(f"{low:.2f} to {high:.2f}    {len(gaps):>9}{shown:>24}")
    return out


def page(lines: list[dict[str, str]], picture: Path | None) -> str:
    """The reliability of the labelled part, and the tables of ordinary rows with high probabilities."""
    p = {
        part: [np.array(line["probabilities"].split(), dtype=float) for line in lines if line["part"] == part]
        for part in ("labelled", "ordinary")
    }
    labels = [np.array(list(line["labels"]), dtype=int) for line in lines if line["part"] == "labelled"]
    if picture:
        draw(p["labelled"], labels, picture)
    highest = np.array([found.max() for found in p["ordinary"]])
    shares = ", ".join(f"above {limit} {100 * (highest > limit).mean():.0f} %" for limit in (0.5, 0.8, 0.95))
    none = np.mean([found.max() == 0.0 for found in p["labelled"]])
    return "\n".join(
        [
            f"{len(labels)} tables of OddBench, new rows and a clean reference; labelled rows",
            *reliability(p["labelled"], labels),
            *by_table(p["labelled"], labels),
            f"tables without a probability above 0: {100 * none:.0f} %",
            "",
            f"{len(highest)} tables, {JUDGED} ordinary rows each: tables with a probability {shares}",
        ]
    )


def main() -> None:
    """Run, or print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the boards' tables, in oddbench")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    parser.add_argument("--out", type=Path, default=Path("probabilities.csv"))
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--picture", type=Path, help="draw the reliability diagram in this file")
    options = parser.parse_args()
    if options.data:
        run(options)
        return
    if options.picture:
        check_figure_target(options.picture)
    limit = csv.field_size_limit(2**24)  # of the whole process
    with options.page.open(newline="") as file:
        lines = list(csv.DictReader(file))
    csv.field_size_limit(limit)
    print(page(lines, options.picture))


if __name__ == "__main__":
    main()
