"""Densities of real tables and of made data, ours in each frame beside kernels, normal mixtures, flows and forests.

    python -m experiments.densities --data DIR [--out densities.csv] [--half reported] [--parts real repeated made] [--rows 300]
    python -m experiments.densities --page densities.csv > docs/densities_board_results.txt

DIR has folders ``adbench``, ``oddbench``, ``mixed`` and ``uci`` of tables. Half of the tables, by a hash of their names, was for
choosing the defaults of the library (``--half chosen``); what is reported is measured on the other half.

- ``real``: columns with 90 % of distinct values or more, at most 12 of a table. Mean log density of at most 1,000 rows that were
  not fitted, in nats a row; a row below -50 counts as -50.
- ``repeated``: up to 50 columns with at least ten distinct values. Where values repeat, a uniform number between half the typical
  gap below and above is added, the same for all methods: without it the log density has no upper bound.
- ``made``: densities with a formula. Hellinger distance, by 4,000 draws, and the relative squared error of the score, by
  differences, at 500 draws (80 in 50 columns).

All methods get the same rows, in standard deviations of the fitted ones, and one thread. ``seconds`` are those of the processor
for the fit, ``seconds of 1,000 rows`` those of log densities. The flows stop when a fifth of the rows, which they are not trained
on, has not gained for 60 epochs, or when their time is up. A library that is not installed is left out with a note. Each line of
the CSV file is one figure. A run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.density_methods import METHODS
from experiments.density_tables import find_tables, is_reported, read_repeated, read_table
from experiments.density_targets import TARGETS, gradient
from experiments.resumed import resumed

FIELDS = ["part", "table", "n", "seed", "method", "figure", "value"]
FLOOR, MOST_JUDGED = -50.0, 1000

# Tables of the second part: the first ones by name.
REPEATED_TABLES = 10


def judged(method: str, X: np.ndarray, Q: np.ndarray, seed: int) -> tuple[np.ndarray, dict[str, float]]:
    """Return log densities of the rows `Q` after a fit to `X`, and times; -inf where a method fails."""
    mean, scale = X.mean(axis=0), X.std(axis=0)
    start = time.process_time()
    try:
        log_density = METHODS[method]((X - mean) / scale, seed)
        middle = time.process_time()
        found = log_density((Q - mean) / scale)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        print(f"{method}, {X.shape}: {error}", file=sys.stderr)
        return np.full(len(Q), -np.inf), {}
    end = time.process_time()
    return np.asarray(found), {"seconds": middle - start, "seconds of 1,000 rows": (end - middle) * 1000.0 / len(Q)}


def _known(values: np.ndarray) -> np.ndarray:
    """Return log densities, -inf where a method has found none."""
    return np.where(np.isnan(values) | (values == np.inf), -np.inf, values)


def on_table(X: np.ndarray, n: int, seed: int, method: str) -> dict[str, float]:
    """Return the figures of a real table."""
    X = X[np.random.default_rng(seed).permutation(len(X))]
    values, times = judged(method, X[:n], X[n : n + MOST_JUDGED], seed)
    values = np.maximum(_known(values), FLOOR)
    return {"log density": float(values.mean()), "columns": X.shape[1], **times}


def on_target(name: str, n: int, seed: int, method: str) -> dict[str, float]:
    """Return the figures of made data."""
    target, rng = TARGETS[name], np.random.default_rng(seed)
    X, Q = target.draw(n, rng), target.draw(4000, rng)
    scale = X.std(axis=0)
    few = Q[: min(500, 4000 // target.dim)]
    asked = np.concatenate([Q, *_around(few, scale)])
    values, times = judged(method, X, asked, seed)
    values = _known(values) - np.log(scale).sum()
    truth = target.log_density(Q)
    hellinger = np.sqrt(max(0.0, 1.0 - np.mean(np.exp(0.5 * (values[: len(Q)] - truth)))))
    rest = values[len(Q) :].reshape(X.shape[1], 2, len(few))
    with np.errstate(invalid="ignore"):
        scores = (rest[:, 0] - rest[:, 1]).T / (2.0 * _STEP)
    true = gradient(target.log_density, few) * scale
    error = np.sum(np.nan_to_num((scores - true) ** 2, nan=np.inf)) / np.sum(true**2)
    figures = {"log density": float(np.maximum(values[: len(Q)] + np.log(scale).sum(), FLOOR).mean())}
    return figures | {"Hellinger": float(hellinger), "score error": float(error), **times}


_STEP = 1e-4


def _around(X: np.ndarray, scale: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows moved up and down in each column."""
    for j in range(X.shape[1]):
        for sign in (1.0, -1.0):
            moved = X.copy()
            moved[:, j] += sign * _STEP * scale[j]
            yield moved


def cases(options: argparse.Namespace) -> Iterator[tuple[str, str, np.ndarray | None]]:
    """Yield part, name and rows of what is to be measured."""
    tables = {
        name: path
        for name, path in find_tables(options.data).items()
        if is_reported(name) == (options.half == "reported")
    }
    if "real" in options.parts:
        for name, path in tables.items():
            table = read_table(name, path)
            if table is not None:
                yield "real", name, table.X
    if "repeated" in options.parts:
        found = 0
        for name, path in tables.items():
            table = read_repeated(name, path)
            if table is not None and found < REPEATED_TABLES:
                found += 1
                yield "repeated", name, table.X
    if "made" in options.parts:
        for name in TARGETS:
            yield "made", name, None


def run(options: argparse.Namespace) -> None:
    """Add to the file what is not in it yet."""
    absent: set[str] = set()
    with resumed(options.out, FIELDS, 5) as (finished, add):
        for part, name, X in cases(options):
            for n, seed, method in ((n, s, m) for n in options.rows for s in options.seeds for m in options.methods):
                key = (part, name, str(n), str(seed), method)
                if key in finished or method in absent or name not in (options.tables or [name]):
                    continue
                if X is not None and len(X) < n + 50:
                    continue
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        figures = on_target(name, n, seed, method) if X is None else on_table(X, n, seed, method)
                except ImportError as error:
                    print(f"{method}: {error}; not measured", file=sys.stderr)
                    absent.add(method)
                    continue
                add([*key, figure, f"{value:.6g}"] for figure, value in figures.items())


# ---- page ----------------------------------------------------------------------------------------------------------------

Values = dict[tuple[str, str, int, str], dict[str, float]]


def read(path: Path) -> Values:
    """Return figures by part, table, number of rows and method: means of the seeds."""
    found: dict[tuple[str, str, int, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            key = line["part"], line["table"], int(line["n"]), line["method"]
            found[key][line["figure"]].append(float(line["value"]))
    return {key: {name: float(np.mean(v)) for name, v in figures.items()} for key, figures in found.items()}


def matrix(values: Values, part: str, n: int, figure: str) -> tuple[list[str], list[str], np.ndarray]:
    """Return tables, methods and figures of the tables that all of these methods have; NaN where one is missing."""
    methods = [m for m in METHODS if any(key[0] == part and key[2] == n and key[3] == m for key in values)]
    tables = sorted({key[1] for key in values if key[0] == part and key[2] == n})
    out = np.array([[values.get((part, t, n, m), {}).get(figure, np.nan) for m in methods] for t in tables])
    return tables, methods, out.reshape(len(tables), len(methods))


def summary(values: Values, part: str, n: int) -> list[str]:
    """Return the lines of one table of means; a method that was not run on all tables has differences only."""
    tables, methods, found = matrix(values, part, n, "log density")
    _, _, seconds = matrix(values, part, n, "seconds")
    best = {name: methods.index(name) for name in ("SOSREP, auto", "SOSREP, deep") if name in methods}
    head = f"{'':<36}{'mean':>8}{'median':>8}{'seconds':>9}"
    head += "".join(f"{name.partition(', ')[2] + ' less this':>34}" for name in best)
    lines = ["", f"{part}, {n:,} rows fitted, {len(tables)} tables", head]
    for k, method in enumerate(methods):
        mean, median = (f"{f(found[:, k]):>8.2f}".replace("nan", "  -") for f in (np.mean, np.median))
        row = f"{method:<36}{mean}{median}{_mean(seconds[:, k]):>9.2f}"
        for column in best.values():
            row += f"{_lead(found[:, column] - found[:, k]):>34}"
        lines.append(row.rstrip())
    return lines


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def _lead(gain: np.ndarray) -> str:
    """Return mean and standard error, median, and on how many tables a method is ahead."""
    gain = gain[~np.isnan(gain)]
    if not gain.any():
        return ""
    error = gain.std(ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else np.nan
    return f"{gain.mean():.2f} ({error:.2f}), {np.median(gain):.2f}, {np.sum(gain > 0)} of {len(gain)}"


def page(path: Path) -> str:
    """Return the tables of results made from the file."""
    values = read(path)
    lines = [
        "Mean log density of rows that were not fitted, in nats a row, and processor seconds of a fit.",
        "'less this': mean difference over the tables with its standard error, median, number of tables ahead.",
    ]
    for part in ("real", "repeated"):
        for n in sorted({key[2] for key in values if key[0] == part}):
            lines += summary(values, part, n)
    for n in sorted({key[2] for key in values if key[0] == "made"}):
        for figure in ("Hellinger", "score error"):
            tables, methods, found = matrix(values, "made", n, figure)
            lines += [
                "",
                f"made, {n:,} rows fitted: {figure}",
                f"{'':<36}" + "".join(f"{i + 1:>9}" for i in range(len(tables))),
            ]
            lines += [
                f"{method:<36}" + "".join(f"{_short(value):>9}" for value in row)
                for method, row in zip(methods, found.T, strict=True)
            ]
            lines += [f"{i + 1}: {name}" for i, name in enumerate(tables)]
    for n in sorted({key[2] for key in values if key[0] == "real"}):
        tables, methods, found = matrix(values, "real", n, "log density")
        _, _, columns = matrix(values, "real", n, "columns")
        chosen = [m for m in SHOWN if m in methods]
        lines += [
            "",
            f"real, {n:,} rows fitted, each table",
            f"{'':<34}{'d':>4}" + "".join(f"{SHOWN[m]:>11}" for m in chosen),
        ]
        for name, row, count in zip(tables, found, columns, strict=True):
            cells = "".join(f"{_short(row[methods.index(m)]):>11}" for m in chosen)
            lines.append(f"{name:<34}{int(np.nanmax(count)):>4}{cells}")
    return "\n".join(lines)


SHOWN = {
    "SOSREP, scale": "scale",
    "SOSREP, auto": "auto",
    "SOSREP, deep": "deep",
    "normal distribution": "normal",
    "SciPy gaussian_kde": "SciPy",
    "mixture, folds": "mixture",
    "zuko NSF, 60 s": "NSF, 60 s",
}


def _short(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}" if abs(value) < 100 else f"{value:.3g}"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    parser.add_argument("--out", type=Path, default=Path("densities.csv"))
    parser.add_argument("--half", choices=["reported", "chosen"], default="reported")
    parser.add_argument(
        "--parts", nargs="+", choices=["real", "repeated", "made"], default=["real", "repeated", "made"]
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000], help="numbers of rows to fit")
    parser.add_argument("--tables", nargs="+", help="names of tables and of made data, instead of all")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, or print the results."""
    options = parse(arguments)
    print(page(options.page)) if options.page else run(options)


if __name__ == "__main__":
    main()
