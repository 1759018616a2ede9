"""Certified limits on the number of anomalies: how often one is false, and how high they are; levels of p-values.

    python -m experiments.certificates [--out FILE] [--runs 2000] [--rows 50 200 1000] [--laws ...] [--unsplit]
    python -m experiments.certificates --levels [--out FILE] [--runs 400] [--rows 60 200 1000] [--laws ...]
    python -m experiments.certificates --page FILE

Of 100 new rows a tenth are moved by 0, 2 or 6 standard deviations in each column. "violations" is the share of runs in which any
set of new rows, not only the first of the list, has fewer anomalies than its limit, with the upper 99 % limit of that share. For
each fit 50 sets of calibration rows and new rows are drawn, which are independent given the scores. "mean" is the limit for all
new rows where anomalies are 6 standard deviations off. ``--unsplit`` computes limits from training rows that are judged
without themselves, for which they are not proved; each run has a fit of its own then.

``--levels``: the share of ordinary new rows with a p-value up to t = .1, .05 and .01, relative to floor(t (n + 1)) / (n + 1).
Each run has a fit and 200 new rows. FILE has a line for each law and number of rows; a run that was interrupted goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from experiments.resumed import resumed
from isopleth import AnomalyDetector
from isopleth.tasks.anomaly.certificate import CONFIDENCE, Certificate
from isopleth.tasks.anomaly.table import NEW

Law = Callable[[np.random.Generator, int], Any]


def clusters(count: int) -> Law:
    """Tight clusters, far apart."""
    centres = 10.0 * np.random.default_rng(0).normal(size=(count, 3))
    return lambda rng, n: centres[rng.integers(count, size=n)] + 0.01 * rng.normal(size=(n, 3))


def mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Numbers that depend on a word, with gaps in both."""
    word = rng.choice(["a", "b", "c"], size=n, p=[0.6, 0.3, 0.1])
    numbers = rng.normal(size=(n, 3)) + 2.0 * (word == "b")[:, None]
    numbers[rng.random((n, 3)) < 0.1] = np.nan
    return pd.DataFrame(numbers, columns=["x", "y", "z"]).assign(word=np.where(rng.random(n) < 0.1, None, word))


LAWS: dict[str, Law] = {
    "normal, 1 column": lambda rng, n: rng.normal(size=(n, 1)),
    "normal, 3 columns": lambda rng, n: rng.normal(size=(n, 3)),
    "normal, 20 columns": lambda rng, n: rng.normal(size=(n, 20)),
    "Student t3, 20 columns": lambda rng, n: rng.standard_t(3, size=(n, 20)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=(n, 3)),
    "log-normal, 5 columns": lambda rng, n: np.exp(1.5 * rng.normal(size=(n, 5))),
    "Poisson (2)": lambda rng, n: rng.poisson(2.0, size=(n, 3)).astype(float),
    "truth values": lambda rng, n: (rng.random((n, 6)) < 0.3).astype(float),
    "six tight clusters": clusters(6),
    "rounded": lambda rng, n: rng.normal(size=(n, 2)).round(1),
    "words and gaps": mixed,
}
NEW_ROWS, ANOMALIES = 100, 10
FAR = (0.0, 2.0, 6.0)
SETS = 50  # sets of calibration rows and new rows for each fit
SHARES = (0.1, 0.05, 0.01)
FIELDS = ["part", "law", "rows", "runs", *(f"value {i}" for i in range(6))]


def fitted(X: Any, seed: int, fast: bool = False) -> AnomalyDetector:
    """The detector of a clean reference."""
    return AnomalyDetector(novelty=True, fast=fast, n_jobs=1, random_state=seed).fit(X)


def new_rows(law: Law, rng: np.random.Generator, spread: np.ndarray, far: float) -> np.ndarray:
    """New rows, the first of them moved."""
    new = law(rng, NEW_ROWS)
    new[:ANOMALIES] += far * spread * rng.choice([-1.0, 1.0], size=(ANOMALIES, new.shape[1]))
    return new


def verdict(certificate: Certificate, anomalies: int) -> tuple[bool, int]:
    """Tell whether any set of ordinary rows is too large, and return the limit for all new rows."""
    counted = np.bincount(certificate.place[anomalies:], minlength=len(certificate.bounds) + 1)
    order = np.argsort(certificate.place, kind="stable")
    return bool((np.cumsum(counted)[:-1] > certificate.bounds).any()), int(certificate.at_least(order)[-1])


def certificates(law: Law, n: int, runs: int, unsplit: bool) -> list[float]:
    """Violations, their upper 99 % limit, and the mean limit where anomalies are far."""
    false, found = [], []
    for run in range(runs):
        rng = np.random.default_rng([n, run])
        if unsplit or run % SETS == 0:
            X = law(rng, n)
            detector = fitted(X, run, fast=not unsplit)  # the split scores are the same
            spread = X.std(axis=0)
        split, limits, far = detector._split, detector._limits, FAR[run % len(FAR)]
        new = detector._frame.enter(new_rows(law, rng, spread, far))
        if unsplit:
            surprise = detector._rule.surprises(new, np.full(len(new), NEW), limits).sum(axis=1)
            certificate = Certificate.of(-detector.training_scores_, surprise, CONFIDENCE)
        else:
            calibration = detector._frame.enter(law(rng, len(split.calibration)))
            certificate = Certificate.of(split.surprise(calibration, limits), split.surprise(new, limits), CONFIDENCE)
        wrong, limit = verdict(certificate, ANOMALIES if far else 0)
        false.append(wrong)
        if far == FAR[-1]:
            found.append(limit)
    count = int(np.sum(false))
    upper = 1.0 if count == runs else float(beta.ppf(0.99, count + 1, runs - count))
    return [float(np.mean(false)), upper, float(np.mean(found))]


def levels(law: Law, n: int, runs: int) -> list[float]:
    """Shares of ordinary new rows with small p-values over nominal ones, and standard errors; NaN where none can be so small."""
    shares = []
    for run in range(runs):
        rng = np.random.default_rng([n, run])
        p_values = fitted(law(rng, n), run).p_values(law(rng, 200))
        shares.append([(p_values <= t * (1.0 + 1e-9)).mean() for t in SHARES])
    nominal = np.floor(np.array(SHARES) * (n + 1) * (1.0 + 1e-9)) / (n + 1)
    nominal[nominal == 0.0] = np.nan
    mean, error = np.mean(shares, axis=0) / nominal, np.std(shares, axis=0, ddof=1) / np.sqrt(runs) / nominal
    return [*mean.tolist(), *error.tolist()]


def page(lines: list[dict[str, str]]) -> str:
    """The tables of a file of results."""
    out = []
    for part, runs in dict.fromkeys((line["part"], line["runs"]) for line in lines):
        some = [line for line in lines if (line["part"], line["runs"]) == (part, runs)]
        rows = sorted({int(line["rows"]) for line in some})
        title = "up to .1, .05, .01" if part == "levels" else "violations (limit), mean"
        out.append(f"{part}, {runs} runs; reference rows: " + ", ".join(map(str, rows)))
        out.append(f"{'':<24}" + f"{title:>28}" * len(rows))
        for law in dict.fromkeys(line["law"] for line in some):
            cells = {
                int(line["rows"]): [float(line[f"value {i}"] or "nan") for i in range(6)]
                for line in some
                if line["law"] == law
            }
            if part == "levels":
                texts = [
                    " ".join("    -" if np.isnan(v) else f"{v:5.2f}" for v in cells[n][:3]) if n in cells else ""
                    for n in rows
                ]
            else:
                texts = [
                    f"{cells[n][0]:.3f} ({cells[n][1]:.3f}) {cells[n][2]:5.2f}" if n in cells else "" for n in rows
                ]
            out.append(f"{law:<24}" + "".join(f"{text:>28}" for text in texts))
    return "\n".join(out)


def main() -> None:
    """Add to the file what is not in it yet, or print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", action="store_true")
    parser.add_argument("--unsplit", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--out", type=Path, default=Path("certificates.csv"))
    parser.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    options = parser.parse_args()
    if options.page:
        with options.page.open(newline="") as file:
            print(page(list(csv.DictReader(file))))
        return
    warnings.simplefilter("ignore")
    part = "levels" if options.levels else "certificates of unsplit scores" if options.unsplit else "certificates"
    runs = options.runs or (400 if options.levels else 2000)
    with resumed(options.out, FIELDS, 4) as (finished, add):
        for n in options.rows or ([60, 200, 1000] if options.levels else [50, 200, 1000]):
            for name in options.laws:
                if (part, name, str(n), str(runs)) in finished or (not options.levels and LAWS[name] is mixed):
                    continue
                found = (
                    levels(LAWS[name], n, runs)
                    if options.levels
                    else certificates(LAWS[name], n, runs, options.unsplit)
                )
                add([[part, name, n, runs, *(f"{value:.4f}" for value in found), *[""] * (6 - len(found))]])


if __name__ == "__main__":
    main()
