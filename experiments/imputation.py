"""Imputation and held-out log densities on real tables with words and gaps, beside other methods.

    python -m experiments.imputation --data DIR [--out imputation.csv] [--seeds 0 1 2] [--parts errors densities conditional]
    python -m experiments.imputation --page imputation.csv > docs/imputation_results.txt
    python -m experiments.imputation --costs 500

DIR holds the folders ``mixed`` and ``uci``. Every table has at most 450 rows, drawn at random; two thirds are for the fit.

- ``errors``: 10 or 30 % of the known cells of all rows are removed at random, the methods are fitted to the first two thirds
  and fill the gaps of the rest. The error of numbers is the root of the mean squared error in standard deviations of their
  columns; that of words is the share of wrong ones. ``coverage`` is the share of numbers inside intervals of 90 %, ``seconds``
  are the processor's. ``draws`` fills by draws of the same laws. ``MinMAE``, ``AvgMAE`` and ``Wasserstein`` are the measures of
  the board of ForestDiffusion (Jolicoeur-Martineau, Fatras, Kachman, AISTATS 2024) over five fills (one for methods that always
  answer alike): the mean absolute error of the best fill and of all, and the distance in optimal transport (mean absolute
  difference per column, at most 300 rows) of filled rows to the true ones, all in columns scaled to [0, 1] with words as 0 and 1.
- ``densities``: 30 % of the cells of two thirds of the rows of the fit are removed. Mean log density of the held-out rows after a
  fit to all rows, to the complete ones only, and to rows whose gaps were filled by means and the most frequent words.
- ``frames``: mean log density of the held-out rows where the columns of numbers are only scaled, or also made normal. To each
  number a uniform draw of the width of the least distance of two values of its column is added: otherwise the density of values
  that many rows share has no limit.
- ``conditional``: 500 complete rows and five columns of numbers; mean log density of the last one given the others.

Each line of the CSV file is one figure. A run that was interrupted goes on where it stopped. ``--costs`` measures log densities
and means of 10,000 rows with one pattern of gaps, and of as many rows as are asked for with a pattern each, at 1,000 centres.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.mixed_data import MOST_ROWS, OTHER_TABLES, TABLES, OneHot, is_words, read_table, some_rows
from experiments.resumed import resumed
from isopleth import KDE, SOSREP, DensityImputer
from isopleth.core.budget import Budget
from isopleth.density.column_density import ColumnDensity
from isopleth.kernels.product import GAUSSIAN_FACTOR, LAPLACIAN_FACTOR, ColumnKernel, ProductLaplacian

FIELDS = ["part", "table", "share", "seed", "method", "figure", "value"]
SHARES = (0.1, 0.3)

# Fills the gaps of the second table after a fit to the first.
Fill = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


def split(data: Path, name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, np.random.Generator]:
    """Return the rows of the fit and those that are held out."""
    rng = np.random.default_rng(seed)
    frame = some_rows(read_table(data, name), MOST_ROWS, rng)
    n = 2 * len(frame) // 3
    return frame[:n], frame[n:].reset_index(drop=True), rng


def with_gaps(frame: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of which a share of the cells is missing."""
    return frame.mask(rng.uniform(size=frame.shape) < share)


# ---- methods -----------------------------------------------------------------------------------------------------------


def by_means(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Fill by the mean of a column, or its most frequent word."""
    fill = {
        column: train[column].mode().iloc[0] if word else train[column].mean()
        for column, word in zip(train, is_words(train), strict=True)
        if train[column].notna().any()
    }
    return test.fillna(fill)


def encoded(imputer: Callable[[], object]) -> Fill:
    """Return how an imputer of scikit-learn fills one-hot columns."""

    def fill(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
        encoding = OneHot.of(train)
        model = imputer().fit(encoding.encode(train))  # type: ignore[attr-defined]
        return encoding.decode(model.transform(encoding.encode(test)))

    return fill


class MixtureImputer:
    """Conditional means of a Gaussian mixture, which is fitted to rows with filled gaps, and again to what it fills in.

    The number of components, 1 to 5, is the one of the least Bayesian information criterion.
    """

    def fit(self, X: np.ndarray) -> MixtureImputer:
        """Fit the mixture."""
        from sklearn.mixture import GaussianMixture

        filled = np.where(np.isnan(X), np.nanmean(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0), X)
        for _ in range(5):
            models = [GaussianMixture(k, reg_covar=1e-2, random_state=0).fit(filled) for k in range(1, 6)]
            self._mixture = min(models, key=lambda model: model.bic(filled))
            filled = self.transform(X)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Fill gaps by conditional means."""
        mixture, out = self._mixture, X.copy()
        for row in np.flatnonzero(np.isnan(X).any(axis=1)):
            gone = np.isnan(X[row])
            logs, means = [], []
            for weight, mean, cov in zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True):
                seen = X[row, ~gone] - mean[~gone]
                block = cov[np.ix_(~gone, ~gone)]
                solved = np.linalg.solve(block, seen)
                logs.append(np.log(weight) - 0.5 * (seen @ solved + np.linalg.slogdet(block)[1]))
                means.append(mean[gone] + cov[np.ix_(gone, ~gone)] @ solved)
            share = np.exp(np.array(logs) - max(logs))
            out[row, gone] = (share / share.sum()) @ np.array(means)
        return out


def knn() -> object:
    """Return scikit-learn's imputer by neighbours."""
    from sklearn.impute import KNNImputer

    return KNNImputer(keep_empty_features=True)


def iterative() -> object:
    """Return scikit-learn's imputer by ridge regressions, as it is."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(keep_empty_features=True, random_state=0)


def forests() -> object:
    """Return scikit-learn's iterative imputer with random forests, which is much like missForest."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    model = RandomForestRegressor(50, max_features="sqrt", random_state=0)
    return IterativeImputer(model, max_iter=4, keep_empty_features=True, random_state=0)


# Fills of one table by which draws are judged, and most rows whose distances are compared.
FILLS, MOST_COMPARED = 5, 300


LAWS = {"DensityImputer": "mean", "draws": "draw"}
OURS = {
    "SOSREP()": lambda: SOSREP(n_jobs=1),
    "KDE product Laplacian": lambda: KDE(ProductLaplacian(), "leave_one_out", n_jobs=1),
}
OTHERS: dict[str, Fill] = {
    "KNNImputer": encoded(knn),
    "IterativeImputer": encoded(iterative),
    "Gaussian mixture": encoded(MixtureImputer),
    "means": by_means,
    "random forests": encoded(forests),
}


# ---- the three parts -----------------------------------------------------------------------------------------------------


def judged(truth: pd.DataFrame, asked: pd.DataFrame, filled: pd.DataFrame) -> dict[str, float]:
    """Return the errors of the cells that were removed."""
    words = is_words(truth)
    gone = (asked.isna() & truth.notna()).to_numpy()
    squared, wrong = [], []
    for j, column in enumerate(truth):
        cells = truth[column][gone[:, j]]
        found = filled[column][gone[:, j]]
        if words[j]:
            wrong.append((cells != found).to_numpy(dtype=float))
        else:
            unit = truth[column].std() or 1.0
            squared.append(((cells - found).to_numpy(dtype=float) / unit) ** 2)
    out = {"error of numbers": float(np.sqrt(np.mean(np.concatenate(squared))))}
    return out | ({"wrong words": float(np.mean(np.concatenate(wrong)))} if wrong else {})


def errors(data: Path, table: str, share: float, seed: int, method: str) -> dict[str, float]:
    """Fill removed cells."""
    train, test, rng = split(data, table, seed)
    train, asked = with_gaps(train, share, rng), with_gaps(test, share, rng)
    start = time.process_time()
    if method in OTHERS:
        fills = [OTHERS[method](train, asked)]
        seconds = time.process_time() - start
        return judged(test, asked, fills[0]) | distances(test, asked, fills) | {"seconds": seconds}
    if method in OURS:
        density = OURS[method]().fit(train)
        return judged(test, asked, density.impute(asked))
    imputer = DensityImputer(LAWS[method], n_jobs=1, random_state=0).fit(train)
    fills = [imputer.transform(asked)]
    seconds = time.process_time() - start
    if method == "draws":
        fills += [imputer.set_params(random_state=k).transform(asked) for k in range(1, FILLS)]
        return distances(test, asked, fills) | {"seconds": seconds}
    ends = imputer.impute_interval(asked)
    lower, upper = (end.reindex(columns=test.columns).to_numpy(dtype=float) for end in ends)
    numbers = ~np.asarray(is_words(test))
    gone = (asked.isna() & test.notna()).to_numpy() & numbers
    truth = np.full(test.shape, np.nan)
    truth[:, numbers] = test.loc[:, numbers].to_numpy(dtype=float)
    found = judged(test, asked, fills[0]) | distances(test, asked, fills)
    return found | {"coverage": float(np.mean(((lower <= truth) & (truth <= upper))[gone])), "seconds": seconds}


def distances(truth: pd.DataFrame, asked: pd.DataFrame, fills: list[pd.DataFrame]) -> dict[str, float]:
    """Return the measures of the board of ForestDiffusion for fills of the rows that are known in full."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    whole = truth.notna().all(axis=1).to_numpy()
    if not whole.any():
        return {}
    encoding = OneHot.of(truth[whole])
    rows = [encoding.encode(table[whole]) for table in (truth, *fills)]
    low, span = rows[0].min(axis=0), np.ptp(rows[0], axis=0)
    real, *made = [(each - low) / np.where(span > 0.0, span, 1.0) for each in rows]
    gone = asked[whole].isna().to_numpy().sum()
    errors = [np.abs(each - real).sum() / max(gone, 1) for each in made]
    costs = [cdist(real[:MOST_COMPARED], each[:MOST_COMPARED], "cityblock") for each in made]
    moved = [cost[linear_sum_assignment(cost)].mean() for cost in costs]
    return {"MinMAE": float(min(errors)), "AvgMAE": float(np.mean(errors)), "Wasserstein": float(np.mean(moved))}


def densities(data: Path, table: str, share: float, seed: int, method: str) -> dict[str, float]:
    """Compare what is done with incomplete rows of the fit."""
    train, test, rng = split(data, table, seed)
    some = rng.uniform(size=len(train)) < 2.0 / 3.0
    gappy = train.mask((rng.uniform(size=train.shape) < share) & some[:, None])
    complete = gappy[gappy.notna().all(axis=1)]
    out = {}
    for figure, rows in (("with gaps", gappy), ("complete rows", complete), ("filled", by_means(gappy, gappy))):
        if len(rows) < 20:
            continue
        known = [column for column in test if rows[column].nunique() > 1]
        if figure != "filled" and len(known) < len(list(test)):
            continue  # another density: some column does not vary
        out[figure] = float(np.mean(OURS[method]().fit(rows).score_samples(test)))
    return out


FRAMES = {
    f"{name}, {frame}": lambda kernel=kernel, rule=rule, frame=frame: SOSREP(kernel, rule, n_jobs=1, frame=frame)
    for name, kernel, rule in (
        ("Scott", "gaussian", "scott"),
        ("leave-one-out", "gaussian", "leave_one_out"),
        ("product Laplacian", ProductLaplacian(), "leave_one_out"),
    )
    for frame in ("scale", "marginal")
}


def frames(data: Path, table: str, share: float, seed: int, method: str) -> dict[str, float]:
    """Compare maps of the columns of numbers."""
    rng = np.random.default_rng(seed)
    frame = some_rows(read_table(data, table), MOST_ROWS, rng)
    for column, word in zip(frame, is_words(frame), strict=True):
        if not word and frame[column].nunique() > 1:
            step = float(np.diff(np.unique(frame[column].dropna())).min())
            frame[column] = frame[column] + step * rng.uniform(-0.5, 0.5, size=len(frame))
    train, test = frame[: 2 * len(frame) // 3], frame[2 * len(frame) // 3 :]
    known = [column for column in train if train[column].nunique() > 1]
    start = time.process_time()
    density = FRAMES[method]().fit(train[known])
    seconds = time.process_time() - start
    return {"in frames": float(np.mean(density.score_samples(test[known]))), "fit": seconds}


def conditional(data: Path, table: str, share: float, seed: int, method: str) -> dict[str, float]:
    """Compare log densities of one column given four others."""
    rng = np.random.default_rng(seed)
    frame = read_table(data, table)
    names = [
        column
        for column, word in zip(frame, is_words(frame), strict=True)
        if not word and column != "normalized-losses"
    ]
    rows = some_rows(frame[[*names[:4], names[-1]]].dropna(), 500, rng)
    train, test = rows[: 2 * len(rows) // 3], rows[2 * len(rows) // 3 :]
    start = time.process_time()
    if method in OURS:
        density = OURS[method]().fit(train)
        given = test.copy()
        given[names[-1]] = np.nan
        values = density.score_samples(test) - density.score_samples(given)
    else:
        from statsmodels.nonparametric.kernel_density import KDEMultivariateConditional

        *others, last = (train[column].to_numpy(dtype=float) for column in train)
        bandwidth = "cv_ml" if method.endswith("cross-validation") else "normal_reference"
        model = KDEMultivariateConditional([last], others, "c", "cccc", bw=bandwidth)
        *others, last = (test[column].to_numpy(dtype=float) for column in test)
        values = np.log(np.maximum(model.pdf([last], others), 1e-300))
    return {"log density": float(np.mean(values)), "seconds": time.process_time() - start}


STATSMODELS = ["statsmodels, rule", "statsmodels, cross-validation"]
PARTS = {
    "errors": (errors, SHARES, [*LAWS, *OURS, *OTHERS]),
    "densities": (densities, (0.3,), list(OURS)),
    "conditional": (conditional, (0.0,), [*OURS, *STATSMODELS]),
    "frames": (frames, (0.0,), list(FRAMES)),
}


def cases(parts: list[str], tables: list[str], seeds: list[int]) -> Iterator[tuple[str, str, float, int, str]]:
    """Yield what is to be measured."""
    for seed in seeds:
        for part in parts:
            _, shares, methods = PARTS[part]
            for table in tables:
                for share in shares:
                    for method in methods:
                        yield part, table, share, seed, method


def run(options: argparse.Namespace) -> None:
    """Add to the file what is not in it yet."""
    with resumed(options.out, FIELDS, 5) as (finished, add):
        for part, table, share, seed, method in cases(options.parts, options.tables, options.seeds):
            key = (part, table, str(share), str(seed), method)
            if key in finished or method in options.without:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = PARTS[part][0](options.data, table, share, seed, method)
            except ImportError as error:
                print(f"{method}: {error}; not measured", file=sys.stderr)
                continue
            add([*key, figure, f"{value:.5f}"] for figure, value in found.items())


# ---- costs ---------------------------------------------------------------------------------------------------------------


def costs(distinct: int) -> list[str]:
    """Return processor and wall-clock seconds for 14 numbers and two categories, 1,000 centres, on two threads."""
    rng = np.random.default_rng(0)
    centers = np.column_stack([rng.normal(size=(1000, 14)), rng.integers(0, 5, (1000, 2))])
    lines = [f"{'':<40}{'rows':>8}{'cpu s':>8}{'wall s':>8}"]
    for factor in (GAUSSIAN_FACTOR, LAPLACIAN_FACTOR):
        kernel = ColumnKernel(16, factor, (0.1, 0.1), (6, 6))
        density = ColumnDensity(kernel, centers, np.full(1000, 1e-3), True, budget=Budget(n_jobs=2))
        for n, one in ((10_000, True), (distinct, False)):
            rows = np.column_stack([rng.normal(size=(n, 14)), rng.integers(0, 5, (n, 2))]).astype(float)
            pattern = np.full(n, 2**1 + 2**5 + 2**15) if one else rng.permutation(2**16 - 1)[:n]
            rows[(pattern[:, None] >> np.arange(16) & 1).astype(bool)] = np.nan
            for what, work in (("log densities", density.log_density), ("means", density.impute)):
                wall, processor = time.perf_counter(), time.process_time()
                work(rows)
                wall, processor = time.perf_counter() - wall, time.process_time() - processor
                name = f"{type(factor).__name__[:-6]}, {'one pattern' if one else 'a pattern each'}, {what}"
                lines.append(f"{name:<40}{n:>8,}{processor:>8.1f}{wall:>8.1f}")
    return lines


# ---- page ----------------------------------------------------------------------------------------------------------------


def shown(values: list[float], error: bool) -> str:
    """Return the mean of some values, with its standard error."""
    if not values:
        return f"{'-':>15}"
    text = f"{np.mean(values):.3f}"
    return f"{text} ({np.std(values, ddof=1) / len(values) ** 0.5:.3f})".rjust(15) if error else text.rjust(15)


def page(path: Path) -> str:
    """Return the tables of results made from the file."""
    values: dict[tuple[str, ...], list[float]] = defaultdict(list)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            values[line["part"], line["figure"], line["share"], line["table"], line["method"]].append(
                float(line["value"])
            )
    seeds = max(map(len, values.values()))
    lines = [f"Means of {seeds} random splits."]
    titles = {
        ("errors", "error of numbers"): "error of filled numbers, in standard deviations",
        ("errors", "wrong words"): "share of wrong filled words",
        ("errors", "coverage"): "share of numbers in intervals of 90 %, with standard errors",
        ("errors", "MinMAE"): "MinMAE: mean absolute error of a filled cell in the best of the fills",
        ("errors", "AvgMAE"): "AvgMAE: the same in the mean of the fills",
        ("errors", "Wasserstein"): "distance of the filled rows to the true ones in optimal transport",
        ("errors", "seconds"): "processor seconds of a fit and one fill",
        ("densities", "with gaps"): "mean log density of held-out rows: all rows fitted",
        ("densities", "complete rows"): "mean log density of held-out rows: complete rows fitted",
        ("densities", "filled"): "mean log density of held-out rows: gaps filled by means",
        ("frames", "in frames"): "mean log density of held-out rows",
        ("frames", "fit"): "processor seconds of the fit",
        ("conditional", "log density"): "mean log density of one column given four",
        ("conditional", "seconds"): "processor seconds of it",
    }
    for (part, figure), title in titles.items():
        for share in sorted({key[2] for key in values if key[:2] == (part, figure)}):
            inside = {key: found for key, found in values.items() if key[:3] == (part, figure, share)}
            tables = [name for name in TABLES + OTHER_TABLES if any(key[3] == name for key in inside)]
            methods = [m for m in PARTS[part][2] if any(key[4] == m for key in inside)]
            missing = f", {float(share):.0%} missing" if float(share) else ""
            lines += ["", f"{title}{missing}", f"{'':<30}" + "".join(f"{name:>15}" for name in tables)]
            for method in methods:
                cells = [inside.get((part, figure, share, name, method), []) for name in tables]
                lines.append(f"{method:<30}" + "".join(shown(cell, figure == "coverage") for cell in cells))
    return "\n".join(lines)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    what.add_argument("--costs", type=int, metavar="ROWS", help="measure times, with so many rows of a pattern each")
    parser.add_argument("--out", type=Path, default=Path("imputation.csv"))
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--tables", nargs="+", choices=TABLES + OTHER_TABLES, default=list(TABLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--without", nargs="+", default=[], help="methods to leave out")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, or print the results."""
    options = parse(arguments)
    if options.page:
        print(page(options.page))
    elif options.costs:
        print("\n".join(costs(options.costs)))
    else:
        run(options)


if __name__ == "__main__":
    main()
