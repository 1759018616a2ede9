"""Held-out Hyvarinen losses of scores fitted to real tables.

    python -m experiments.scores_of_tables --data DATA --out FILE [--part 1/1] [--rows 300] [--methods NAME ...]
    python -m experiments.scores_of_tables --page FILE > docs/scores_of_tables_results.txt

Columns with at least 90 % distinct values of the tables of `density_tables`, ADBench and ODDBench, at most 12 of each, over the
standard deviations of the rows that are fitted. Losses are means of div s + |s|^2/2 over up to 1,000 other rows: half the squared
error of a score up to a constant that is the same for all methods. A few rows may decide a mean, and a few tables a mean over
tables, so the page has medians of differences to the fitted normal and the number of tables ahead of it, and of pairs of methods.
The half of a table follows from its name (`density_tables`). ``--part 2/4`` takes every fourth table, from the second one on.
Lines are added to the file as they are found, and a run that was interrupted goes on where it stopped.

Fitted normal: covariance of Ledoit and Wolf. Student t: degrees of freedom by likelihood, location and scatter by EM. Mixture:
components and ridge by three folds, scikit-learn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import gammaln
from sklearn.covariance import LedoitWolf
from sklearn.mixture import GaussianMixture

from experiments.density_methods import folded_mixture
from experiments.density_tables import find_tables, is_reported, read_table
from experiments.resumed import resumed
from isopleth import KernelScore, NystromKEF
from isopleth.score import SSGE, Stein

MOST_HELD_OUT = 1000
FIELDS = ["table", "method", "columns", "loss", "seconds"]

# Loss of each row of Q by a fit to X.
Method = Callable[[np.ndarray, np.ndarray], np.ndarray]


def ours(estimator: type, **parameters: object) -> Method:
    """Return the losses of one of our estimators."""

    def losses(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
        model = estimator(n_jobs=1, **parameters).fit(X)
        return np.asarray(model.divergence(Q) + 0.5 * np.sum(model.grad_log_density(Q) ** 2, axis=1))

    return losses


def fitted_normal(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the losses of a normal density with shrunk covariance."""
    model = LedoitWolf().fit(X)
    pull = (Q - model.location_) @ model.precision_
    return np.asarray(0.5 * np.sum(pull**2, axis=1) - np.trace(model.precision_))


def student(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the losses of a multivariate t density; its scatter is shrunk as little as inversion needs."""
    n, d = X.shape
    best = (-np.inf, 0.0, np.zeros(d), np.eye(d))
    for nu in (1.0, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 100.0):
        mean, scatter = X.mean(axis=0), np.cov(X.T, bias=True)
        for _ in range(100):
            centred = X - mean
            precision = np.linalg.inv(scatter + 1e-6 * np.eye(d))
            weights = (nu + d) / (nu + np.sum(centred @ precision * centred, axis=1))
            mean = weights @ X / weights.sum()
            scatter = ((X - mean) * weights[:, None]).T @ (X - mean) / n
        precision = np.linalg.inv(scatter + 1e-6 * np.eye(d))
        q = np.sum((X - mean) @ precision * (X - mean), axis=1)
        constant = (
            gammaln(0.5 * (nu + d)) - gammaln(0.5 * nu) - 0.5 * d * np.log(nu) + 0.5 * np.linalg.slogdet(precision)[1]
        )
        likelihood = n * constant - 0.5 * (nu + d) * np.sum(np.log1p(q / nu))
        best = max(best, (float(likelihood), nu, mean, precision), key=lambda one: one[0])
    _, nu, mean, precision = best
    pull = (Q - mean) @ precision
    below, squares = nu + np.sum(pull * (Q - mean), axis=1), np.sum(pull**2, axis=1)
    trace = np.trace(precision) / below - 2.0 * squares / below**2
    return np.asarray(0.5 * (nu + d) ** 2 * squares / below**2 - (nu + d) * trace)


def mixture(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the losses of a normal mixture chosen by cross-validated likelihood."""
    model: GaussianMixture = folded_mixture(X, 0)
    shares = model.predict_proba(Q)
    pulls = -np.einsum("kij,nkj->nki", model.precisions_, Q[:, None, :] - model.means_)
    score = np.einsum("nk,nki->ni", shares, pulls)
    traces = np.trace(model.precisions_, axis1=1, axis2=2)
    divergence = np.sum(shares * (np.sum(pulls**2, axis=2) - traces), axis=1) - np.sum(score**2, axis=1)
    return np.asarray(divergence + 0.5 * np.sum(score**2, axis=1))


METHODS: dict[str, Method] = {
    "fitted normal": fitted_normal,
    "Student t": student,
    "mixture": mixture,
    "KernelScore": ours(KernelScore),
    "NystromKEF": ours(NystromKEF, random_state=0),
    "Stein": ours(Stein),
    "SSGE": ours(SSGE),
}


def run(options: argparse.Namespace) -> None:
    """Write the mean loss and the seconds of each method on each table of a part that are not there yet."""
    part, parts = map(int, options.part.split("/"))
    files = {
        name: path for name, path in find_tables(options.data).items() if name.startswith(("adbench/", "oddbench/"))
    }
    with resumed(options.out, FIELDS, 2) as (finished, add):
        for name in sorted(files)[part - 1 :: parts]:
            left = [method for method in options.methods if (name, method) not in finished]
            rows = split(name, files[name], options.rows) if left else None
            for method in left if rows is not None else []:
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    losses = METHODS[method](*rows)
                add([[name, method, rows[0].shape[1], float(np.mean(losses)), time.process_time() - start]])


def split(name: str, file: Path, n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return standardised rows to fit, and other rows; None if a table has too few."""
    table = read_table(name, file)
    if table is None or len(table.X) < n + 50:
        return None
    X, Q = table.X[:n], table.X[n : n + MOST_HELD_OUT]
    middle, unit = X.mean(axis=0), X.std(axis=0)
    return ((X - middle) / unit, (Q - middle) / unit) if (unit > 0.0).all() else None


def page(found: pd.DataFrame) -> str:
    """Return the summary: medians of differences to the fitted normal, and tables ahead, for both halves."""
    losses = found.pivot(index="table", columns="method", values="loss")
    losses = losses[[name for name in METHODS if name in losses]]
    seconds = found.groupby("method").seconds.median()
    out = []
    reported = np.array([is_reported(name) for name in losses.index])
    for title, half in (("choosing half", losses[~reported]), ("reported half", losses[reported])):
        out += [f"{title}, {len(half)} tables", f"{'':<15}{'median':>11}{'quartiles':>22}   ahead of"]
        out += [f"{'':<51}" + "".join(f"{name:>14}" for name in half) + f"{'seconds':>9}"]
        for name in half:
            gain = half[name] - half["fitted normal"]
            low, middle, high = gain.quantile([0.25, 0.5, 0.75])
            ahead = "".join(f"{(half[name] < half[other]).sum():>14}" for other in half)
            out.append(f"{name:<15}{middle:>11.4g}{low:>11.4g}{high:>11.4g}   {ahead}{seconds[name]:>9.2f}")
        out.append("")
    return "\n".join(out)


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    if options.page is not None:
        print(page(pd.read_csv(options.page)))
        return
    if options.data is None or options.out is None:
        parser.error("expected --data with the folder of the tables and --out, or --page with a file of lines")
    run(options)


if __name__ == "__main__":
    main()
