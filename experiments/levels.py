"""Levels of the p-values of new rows with a clean reference, and false discoveries of `select`.

    python -m experiments.levels [--out FILE] [--runs 400] [--rows 60 200 1000] [--laws ...] [--fast] [--select]
    python -m experiments.levels --page FILE

The share of ordinary new rows with a p-value up to t = .1, .05 and .01, relative to floor(t (n + 1)) / (n + 1), and its standard
error. Each run has a fit and max(200, n) new rows.

``--select``: the mean share of ordinary rows among those that ``select`` selects at a rate of .1, its standard error, and the
mean number of anomalies among them, for 200 new rows of which a tenth or a half are anomalies.

FILE has a line for each law and number of rows; a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.certificates import GROUPS, LAWS
from experiments.resumed import resumed
from isopleth import AnomalyDetector

NEW_ROWS = 200
SHARES = (0.1, 0.05, 0.01)
ANOMALIES, FAR = (
    (20, 100),
    3.0,
)  # numbers among the new rows, and how many standard deviations each of their cells is moved
FIELDS = ["part", "law", "rows", "runs", *(f"value {i}" for i in range(6))]


def mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Numbers that depend on a word, with gaps in both."""
    word = rng.choice(["a", "b", "c"], size=n, p=[0.6, 0.3, 0.1])
    numbers = rng.normal(size=(n, 3)) + 2.0 * (word == "b")[:, None]
    numbers[rng.random((n, 3)) < 0.1] = np.nan
    return pd.DataFrame(numbers, columns=["x", "y", "z"]).assign(word=np.where(rng.random(n) < 0.1, None, word))


ALL_LAWS: dict[str, Any] = {name: law for name, law in LAWS.items() if name != GROUPS} | {"words and gaps": mixed}


def fitted(X: Any, seed: int, *, fast: bool) -> AnomalyDetector:
    """The detector of a clean reference."""
    return AnomalyDetector(novelty=True, fast=fast, n_jobs=1, random_state=seed).fit(X)


def levels(name: str, n: int, runs: int, *, fast: bool) -> list[float]:
    """Shares of ordinary new rows with small p-values over nominal ones, and standard errors; NaN where none can be so small."""
    law, shares = ALL_LAWS[name], []
    for run in range(runs):
        rng = np.random.default_rng([n, run])
        p_values = fitted(law(rng, n), run, fast=fast).p_values(law(rng, max(NEW_ROWS, n)))
        shares.append([(p_values <= t * (1.0 + 1e-9)).mean() for t in SHARES])
    nominal = np.floor(np.array(SHARES) * (n + 1) * (1.0 + 1e-9)) / (n + 1)
    nominal[nominal == 0.0] = np.nan
    mean, error = np.mean(shares, axis=0) / nominal, np.std(shares, axis=0, ddof=1) / np.sqrt(runs) / nominal
    return [*mean.tolist(), *error.tolist()]


def discoveries(name: str, n: int, runs: int, *, fast: bool) -> list[float]:
    """For each number of anomalies: the mean share of false discoveries, its standard error, and the mean number of true ones."""
    law, out = ALL_LAWS[name], []
    for count in ANOMALIES:
        false, true = [], []
        for run in range(runs):
            rng = np.random.default_rng([n, run])
            X, new = law(rng, n), law(rng, NEW_ROWS)
            new[:count] += FAR * X.std(axis=0) * rng.choice([-1.0, 1.0], size=(count, X.shape[1]))
            selected = fitted(X, run, fast=fast).select(new, fdr=0.1)
            false.append(selected[count:].sum() / max(1, selected.sum()))
            true.append(selected[:count].sum())
        out += [np.mean(false), np.std(false, ddof=1) / np.sqrt(runs), np.mean(true)]
    return [float(value) for value in out]


def page(lines: list[dict[str, str]]) -> str:
    """The tables of a file of results."""
    out = []
    for part, group in groupby(sorted(lines, key=lambda line: line["part"]), key=lambda line: line["part"]):
        some = list(group)
        rows = sorted({int(line["rows"]) for line in some})
        names = [
            f"{n} rows, {' or '.join({line['runs'] for line in some if line['rows'] == str(n)})} runs" for n in rows
        ]
        width, cell = (38, 12) if part.startswith("levels") else (48, 24)
        out += [part, f"{'':<24}" + "".join(f"{name:>{width}}" for name in names)]
        for law in ALL_LAWS:
            cells = {int(c["rows"]): [float(c[f"value {i}"]) for i in range(6)] for c in some if c["law"] == law}
            texts = []
            for n in rows:
                v = cells.get(n, [np.nan] * 6)
                if part.startswith("levels"):
                    parts = [f"{v[i]:5.2f} ({v[i + 3]:.2f})" if v[i] == v[i] else "" for i in range(3)]
                else:
                    parts = [f"{v[i]:.3f} ({v[i + 1]:.3f}) {v[i + 2]:5.1f}" for i in (0, 3)]
                texts.append("".join(f"{text:>{cell}}" for text in parts))
            if cells:
                out.append(f"{law:<24}" + "".join(f"{text:>{width}}" for text in texts))
    return "\n".join(line.rstrip() for line in out)


def main() -> None:
    """Add to the file what is not in it yet, or print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="without conditional laws")
    parser.add_argument("--select", action="store_true")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--rows", type=int, nargs="+", default=[60, 200, 1000])
    parser.add_argument("--laws", nargs="+", choices=list(ALL_LAWS), default=list(ALL_LAWS))
    parser.add_argument("--out", type=Path, default=Path("levels.csv"))
    parser.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    options = parser.parse_args()
    if options.page:
        with options.page.open(newline="") as file:
            print(page(list(csv.DictReader(file))))
        return
    warnings.simplefilter("ignore")
    part = ("false discoveries" if options.select else "levels") + " without conditional laws" * options.fast
    with resumed(options.out, FIELDS, 4) as (finished, add):
        for n in options.rows:
            for name in options.laws:
                missing = (part, name, str(n), str(options.runs)) not in finished
                if missing and not (options.select and ALL_LAWS[name] is mixed):
                    work = discoveries if options.select else levels
                    found = work(name, n, options.runs, fast=options.fast)
                    add([[part, name, n, options.runs, *(f"{value:.4f}" for value in found)]])


if __name__ == "__main__":
    main()
