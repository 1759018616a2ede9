"""One column of real tables given the others: densities beside conditional kernel, neighbour and forest estimates.

    python -m experiments.conditionals --data DIR [--out conditionals.csv] [--seeds 0 1 2] [--half reported]
    python -m experiments.conditionals --page conditionals.csv > docs/conditionals_results.txt

DIR holds the folders ``mixed`` and ``uci``. Of each table at most 600 complete rows are drawn; half of them are for the fit.
The column of numbers with the most distinct values is asked for, given all others. It gets uniform noise of the smallest gap
between its values, so that a density can be asked for, and is in standard deviations.

Figures of the held-out rows: ``crps``, the integral of the squared error of the distribution function; ``log loss``, minus
the log density; ``coverage``, the share of values inside the central interval of 90 %; ``width`` of that interval;
``seconds`` of a fit and all answers.

- ``expect``: the density of ``isopleth expect``, a SOSREP whose scales have the largest leave-one-out likelihood of all columns.
- ``marginal``: the same in ``frame="marginal"``. ``SOSREP()``: the default of the library, which is ``marginal`` with a smaller
  `tol` in tables with words. ``KDE``: as ``expect`` with a kernel density estimate.
- ``kernel``: the conditional kernel estimate, a weighted sum of Gaussian kernels of the target in which the weights are products
  of Gaussian kernels of the numbers and of Aitchison and Aitken's of the words; all widths maximise the leave-one-out likelihood
  of the target given the others (Hall, Racine, Li, JASA 99, 2004).
- ``neighbours``: the k nearest rows in standardised and one-hot columns. ``forest``: the leaf weights of 300 trees (Meinshausen,
  JMLR 7, 2006). The number of neighbours or the size of the leaves, and for the log loss the width of a Gaussian kernel around
  each value, are chosen by the leave-one-out or out-of-bag likelihood.
- ``normal``: Bayesian ridge regression on the same columns, whose law is normal.

The half of a table follows from its name. That extreme numbers are drawn in where scales are chosen was decided on the choosing
half and on hypothyroid, two splits each, of four ways that were tried. Each line of the CSV file is one figure; a run that
was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import norm

from experiments.density_tables import is_reported
from experiments.mixed_data import OneHot, is_words, read_table, some_rows
from experiments.resumed import resumed
from isopleth import KDE, SOSREP

# Of the folders' tables with numbers; others are copies of these with other codes.
TABLES = (
    "abalone",
    "anneal",
    "autos",
    "colic",
    "credit_a",
    "credit_g",
    "diabetes",
    "heart_c",
    "heart_statlog",
    "hypothyroid",
)
FIELDS = ["table", "seed", "method", "figure", "value"]
FIGURES = ("crps", "log loss", "coverage", "width", "seconds")
MOST_ROWS, LEVEL = 600, 0.9
# Columns with a larger share of missing cells are left out.
MOST_MISSING = 0.2
# Places of the grid on which distribution functions are integrated, in standard deviations of the target.
GRID = np.linspace(-6.0, 12.0, 721)
WIDTHS = np.geomspace(0.02, 1.0, 18)

Rng = np.random.Generator


@dataclass(frozen=True)
class Task:
    """A table whose column `target` is asked for."""

    train: pd.DataFrame
    test: pd.DataFrame
    target: str

    @property
    def y(self) -> np.ndarray:
        """Values of the target in the rows of the fit."""
        return self.train[self.target].to_numpy()

    def encoded(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the other columns of both tables, standardised and one-hot."""
        train, test = (rows.drop(columns=self.target) for rows in (self.train, self.test))
        encoding = OneHot.of(train)
        return encoding.encode(train), encoding.encode(test)


def task_of(data: Path, name: str, seed: int) -> Task:
    """Return complete rows of a table, half of them for the fit, and the column that is asked for."""
    rng = np.random.default_rng(seed)
    frame = read_table(data, name)
    frame = frame[[column for column in frame if frame[column].isna().mean() <= MOST_MISSING]].dropna()
    frame = some_rows(frame, MOST_ROWS, rng)
    numbers = [column for column, word in zip(frame, is_words(frame), strict=True) if not word]
    target = max(numbers, key=lambda column: frame[column].nunique())
    y = frame[target].to_numpy(dtype=float)
    y = y + np.diff(np.unique(y)).min() * rng.uniform(-0.5, 0.5, size=len(y))
    n = len(frame) // 2
    frame[target] = (y - y[:n].mean()) / y[:n].std()
    train, test = frame[:n], frame[n:].reset_index(drop=True)
    kept = [column for column in frame if train[column].nunique() > 1]
    return Task(train[kept], test[kept], target)


# ---- laws of the target for each held-out row: log density at the truth, and distribution function on the grid --------------


def log_densities(weights: np.ndarray, values: np.ndarray, width: float, truth: np.ndarray) -> np.ndarray:
    """Return the log densities at the truth of weighted values with a Gaussian kernel around each."""
    logs = np.where(weights > 0.0, -0.5 * ((truth[:, None] - values) / width) ** 2, -np.inf)
    top = logs.max(axis=1)
    found = np.log((weights * np.exp(logs - top[:, None])).sum(axis=1))
    return top + found - 0.5 * np.log(2.0 * np.pi) - np.log(width)


def shares(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithm of the sum of exponentials of each row, and the share of each of them."""
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = weights.sum(axis=1, keepdims=True)
    return (top + np.log(total))[:, 0], weights / total


def smoothed(weights: np.ndarray, values: np.ndarray, width: float, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log densities at the truth and distribution functions of weighted values with a Gaussian kernel around each."""
    return log_densities(weights, values, width, truth), weights @ ndtr((GRID - values[:, None]) / width)


def of_values(
    weights: np.ndarray, values: np.ndarray, width: float, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smoothed log densities, and the distribution functions of the weighted values as they are."""
    return log_densities(weights, values, width, truth), weights @ (values[:, None] <= GRID)


def best_width(laws: list[np.ndarray], values: np.ndarray) -> tuple[int, float]:
    """Return the number of the law and the width with the largest likelihood of `values`, each under weights without itself."""
    gains = {}
    for place, weights in enumerate(laws):
        used = weights.sum(axis=1) > 0.0
        for width in WIDTHS:
            gains[place, float(width)] = float(log_densities(weights[used], values, width, values[used]).mean())
    return max(gains, key=lambda key: gains[key])


def by_density(model: Callable[[], SOSREP | KDE]) -> Callable[[Task], tuple[np.ndarray, np.ndarray]]:
    """Return how a density of this library answers: by `conditional`, row by row."""

    def laws(task: Task) -> tuple[np.ndarray, np.ndarray]:
        density = model().fit(task.train)
        logs, cdfs = [], []
        step = GRID[1] - GRID[0]
        for given in task.test.to_dict("records"):
            truth = given.pop(task.target)
            asked = pd.DataFrame({task.target: np.append(GRID, truth)})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # words of held-out rows that no row of the fit has
                found = density.conditional(given).score_samples(asked)
            heights = np.exp(found[:-1])
            logs.append(found[-1])
            cdfs.append(np.append(0.0, np.cumsum(0.5 * step * (heights[1:] + heights[:-1]))))
        return np.array(logs), np.clip(cdfs, 0.0, 1.0)

    return laws


def by_kernel(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return the conditional kernel estimate with the widths of the largest leave-one-out likelihood."""
    near, far = _squares(task, task.train), _squares(task, task.test)
    squares = (task.y[:, None] - task.y) ** 2
    n, d = len(task.y), len(near)
    own = np.where(np.eye(n, dtype=bool), np.inf, 0.0)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        rates = np.exp(theta)
        given = -0.5 * np.tensordot(rates[:d], near, axes=1) - own
        joint = given - 0.5 * rates[d] * squares
        (log_joint, p), (log_given, q) = shares(joint), shares(given)
        value = float((log_joint - log_given).mean() + 0.5 * theta[d])
        slope = np.array([-0.5 * np.vdot(p - q, term) for term in near] + [-0.5 * np.vdot(p, squares)]) * rates / n
        slope[d] += 0.5
        return -value, -slope

    limits = [(-12.0, 8.0)] * d + [(0.0, -2.0 * np.log(WIDTHS[0]))]
    starts = [np.append(np.full(d, start), 2.0) for start in (-2.0, 1.0)]
    found = min(
        (minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits) for start in starts),
        key=lambda each: each.fun,
    )
    rates = np.exp(found.x)
    _, weights = shares(-0.5 * np.tensordot(rates[:d], far, axes=1))
    return smoothed(weights, task.y, rates[d] ** -0.5, task.test[task.target].to_numpy())


def _squares(task: Task, rows: pd.DataFrame) -> np.ndarray:
    """Return squared distances of each column to the rows of the fit, (d, m, n); 1 between different words."""
    found = []
    for column, word in zip(rows, is_words(task.train), strict=True):
        if column != task.target:
            here, there = rows[column].to_numpy()[:, None], task.train[column].to_numpy()[None, :]
            found.append((here != there).astype(float) if word else ((here - there) / there.std()).astype(float) ** 2)
    return np.array(found)


def by_neighbours(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest rows, all of one weight."""
    X, new = task.encoded()
    counts = [k for k in (3, 5, 8, 12, 20, 30, 50, 80) if k < len(X)]

    def weights(rows: np.ndarray, k: int, skipped: int) -> np.ndarray:
        order = np.argsort(((rows[:, None] - X) ** 2).sum(axis=2), axis=1, kind="stable")[:, skipped : k + skipped]
        out = np.zeros((len(rows), len(X)))
        np.put_along_axis(out, order, 1.0 / k, axis=1)
        return out

    place, width = best_width([weights(X, k, 1) for k in counts], task.y)
    return of_values(weights(new, counts[place], 0), task.y, width, task.test[task.target].to_numpy())


def by_forest(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return the leaf weights of a random forest."""
    from sklearn.ensemble import RandomForestRegressor

    X, new = task.encoded()
    found = []
    for leaf in (2, 5, 10, 20):
        forest = RandomForestRegressor(300, min_samples_leaf=leaf, max_features=1 / 3, random_state=0).fit(X, task.y)
        bags = [np.bincount(drawn, minlength=len(X)) for drawn in forest.estimators_samples_]
        here = forest.apply(X)
        found.append((_leaf_weights(here, here, bags, out_of_bag=True), _leaf_weights(forest.apply(new), here, bags)))
    place, width = best_width([own for own, _ in found], task.y)
    return of_values(found[place][1], task.y, width, task.test[task.target].to_numpy())


def _leaf_weights(
    rows: np.ndarray, leaves: np.ndarray, bags: list[np.ndarray], *, out_of_bag: bool = False
) -> np.ndarray:
    """Return the mean over trees of the shares of the leaf of each row; of trees that did not see the row if `out_of_bag`."""
    total, trees = np.zeros((len(rows), len(leaves))), np.zeros(len(rows))
    for own, leaf, bag in zip(rows.T, leaves.T, bags, strict=True):
        same = (own[:, None] == leaf) * bag.astype(float)
        used = bag == 0 if out_of_bag else np.ones(len(rows), dtype=bool)
        total[used] += same[used] / same[used].sum(axis=1, keepdims=True)
        trees += used
    return total / np.maximum(trees, 1.0)[:, None]


def by_normal(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return the normal law of a Bayesian ridge regression."""
    from sklearn.linear_model import BayesianRidge

    X, new = task.encoded()
    mean, deviation = BayesianRidge().fit(X, task.y).predict(new, return_std=True)
    truth = task.test[task.target].to_numpy()
    return norm.logpdf(truth, mean, deviation), norm.cdf((GRID - mean[:, None]) / deviation[:, None])


METHODS: dict[str, Callable[[Task], tuple[np.ndarray, np.ndarray]]] = {
    "expect": by_density(lambda: SOSREP(length_scale="leave_one_out", frame="scale", tol=1e-6, n_jobs=1)),
    "marginal": by_density(lambda: SOSREP(length_scale="leave_one_out", frame="marginal", tol=1e-6, n_jobs=1)),
    "SOSREP()": by_density(lambda: SOSREP(n_jobs=1)),
    "KDE": by_density(lambda: KDE(length_scale="leave_one_out", frame="scale", n_jobs=1)),
    "kernel": by_kernel,
    "neighbours": by_neighbours,
    "forest": by_forest,
    "normal": by_normal,
}


def figures(task: Task, method: str) -> dict[str, float]:
    """Return the figures of a method on the held-out rows."""
    start = time.process_time()
    log_density, cdf = METHODS[method](task)
    seconds = time.process_time() - start
    truth = task.test[task.target].to_numpy()
    crps = np.trapezoid((cdf - (truth[:, None] <= GRID)) ** 2, GRID, axis=1)
    at_truth = np.array([np.interp(y, GRID, law) for y, law in zip(truth, cdf, strict=True)])
    inside = np.abs(at_truth - 0.5) <= 0.5 * LEVEL
    ends = [[np.interp(q, law, GRID) for law in cdf] for q in (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL)]
    width = np.subtract(ends[1], ends[0])
    values = (crps.mean(), -log_density.mean(), inside.mean(), width.mean(), seconds)
    return dict(zip(FIGURES, map(float, values), strict=True))


def run(data: Path, out: Path, tables: list[str], seeds: list[int]) -> None:
    """Write the figures of all tables, seeds and methods that are not there yet."""
    with resumed(out, FIELDS, 3) as (finished, add):
        for seed in seeds:
            for name in tables:
                missing = [method for method in METHODS if (name, str(seed), method) not in finished]
                if not missing:
                    continue
                task = task_of(data, name, seed)
                for method in missing:
                    add([name, seed, method, figure, value] for figure, value in figures(task, method).items())


# ---- page --------------------------------------------------------------------------------------------------------------


def page(path: Path) -> str:
    """Return the figures as text: means over tables of both halves, and each table."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            found[line["table"], line["method"], line["figure"]].append(float(line["value"]))
    means = {key: float(np.mean(values)) for key, values in found.items()}
    tables = sorted({table for table, _, _ in means}, key=lambda name: (is_reported(name), name))
    splits = len(next(iter(found.values())))
    how = "One split of each table" if splits == 1 else f"Means over {splits} splits of each table"
    lines = [f"{how}; lower is better, coverage is to be .90."]
    for words, half in (("choosing half", False), ("reporting half", True)):
        chosen = [name for name in tables if is_reported(name) is half]
        if not chosen:
            continue
        lines += ["", f"{len(chosen)} tables of the {words}: {', '.join(chosen)}", _row("", FIGURES)]
        for method in METHODS:
            values = [np.mean([means[name, method, figure] for name in chosen]) for figure in FIGURES]
            lines.append(_row(method, [f"{value:.3f}" for value in values]))
    for figure in FIGURES[:3]:
        lines += ["", figure, _row("", list(METHODS))]
        for name in tables:
            lines.append(_row(name, [f"{means[name, method, figure]:.3f}" for method in METHODS]))
    return "\n".join(lines)


def _row(name: str, cells: list[str] | tuple[str, ...]) -> str:
    return f"{name:<14}" + "".join(f"{cell:>12}" for cell in cells)


def main() -> None:
    """Run the study, or print the page of its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("conditionals.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--half", choices=("choosing", "reported"), help="Tables of this half only.")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    if given.page:
        print(page(given.page))
    elif given.data is None:
        parser.error("--data is needed: the folder with mixed and uci.")
    else:
        tables = [name for name in TABLES if given.half is None or is_reported(name) is (given.half == "reported")]
        run(given.data, given.out, tables, given.seeds)


if __name__ == "__main__":
    main()
