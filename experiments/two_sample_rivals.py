"""Power of the two-sample test beside classifiers, kernel and energy distances and tests of single columns, on the same samples.

    python -m experiments.two_sample_rivals --data DIR [--runs 40] [--first 0] [--only NAME ...] [--quick] [--jobs N]

Samples are of 100 rows each, from the tables of `DIR/uci_regression` (one column of the second is shifted by a share of its
standard deviation, so that it moves little by itself and much given the other columns), or those of
``experiments.two_sample_power``. Every test has the level .05.

isopleth   `two_sample_test` with 199 permutations.
logistic   Logistic regression of standardised columns (scikit-learn), ten folds: rank sums of its scores within the folds.
forest     Random forest of 100 trees with leaves of 5 rows (scikit-learn), five folds, likewise.
MMD        Unbiased maximum mean discrepancy with a Gaussian kernel of the median distance, 199 permutations.
energy     Energy distance of standardised rows, 199 permutations.
columns    Kolmogorov and Smirnov's test of each column at .05 over the number of columns; chi-squared for up to five values.
half       Evidently's default for tables of up to 1,000 rows, written here (the library is not used): these tests at .05 each,
           and the tables differ if at least half of the columns do.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import chi2_contingency, ks_2samp, mannwhitneyu, norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.two_sample_power import EIGHT, MADE_UP, OTHERS, Pair, dependent
from isopleth import two_sample_test

LEVEL, PERMUTATIONS, ROWS = 0.05, 199, 100
# Table, column that is shifted (from 0), and by which share of its standard deviation.
TABLES = {
    "airfoil": (4, 0.25),
    "parkinsons": (8, 0.2),
    "autompg": (1, 0.25),
    "skillcraft": (5, 0.3),
    "stock": (2, 0.2),
    "pendulum": (1, 0.2),
}
NULL = "no difference, d = 5"


def correlated(rng: np.random.Generator) -> Pair:
    """Ten columns of correlation .9, one of which moves by .2."""
    x, y = (dependent(rng, ROWS, 10, 0.9) for _ in range(2))
    y[:, 0] += 0.2
    return x, y


SETTINGS: dict[str, Callable[[np.random.Generator], Pair]] = {
    NULL: lambda rng: (rng.normal(size=(ROWS, 5)), rng.normal(size=(ROWS, 5))),
    "correlation .9, one by .2": correlated,
    "correlation .5 of a pair": EIGHT["correlation .5 of a pair"],
    "skew (gamma), d = 3": EIGHT["skew (gamma), d = 3"],
    "digits of 8 x 8, .3": EIGHT["digits of 8 x 8, .3"],
    "mean of 1 of 10": MADE_UP["mean of 1 of 10"],
    "mean of all 10": MADE_UP["mean of all 10"],
    "spread of all 10": MADE_UP["spread of all 10"],
    "counts": OTHERS["counts"],
}


@cache
def table(path: Path) -> np.ndarray:
    """Return the rows of a table, without those that repeat others."""
    if not path.exists():
        raise SystemExit(f"{path} is missing; it is a table of numbers.")
    rows = np.genfromtxt(path, delimiter=",")
    return np.unique(rows[np.isfinite(rows).all(axis=1)], axis=0)


def shifted(rng: np.random.Generator, data: Path, name: str) -> Pair:
    """Return two samples of a table, of which one column of the second is shifted."""
    column, by = TABLES[name]
    rows = table(data / "uci_regression" / f"{name}.csv.gz")
    x, y = rows[rng.choice(len(rows), 2 * ROWS, replace=False)].reshape(2, ROWS, -1)
    y[:, column] += by * rows[:, column].std()
    return x, y


def by_classifier(z: np.ndarray, second: np.ndarray, classifier: object, folds: int, run: int) -> float:
    """Return the p-value of the rank sums of held-out scores, over the folds together."""
    total = variance = 0.0
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=run).split(z, second):
        score = classifier.fit(z[train], second[train]).predict_proba(z[test])[:, 1]  # type: ignore[attr-defined]
        x, y = score[~second[test]], score[second[test]]
        total += mannwhitneyu(y, x).statistic - len(x) * len(y) / 2.0
        variance += len(x) * len(y) * (len(x) + len(y) + 1.0) / 12.0
    return float(norm.sf(total / np.sqrt(variance)))


def by_permutations(kernel: np.ndarray, second: np.ndarray, run: int) -> float:
    """Return the p-value of the mean of a kernel within the samples less that between them, pairs of a row with itself apart."""
    rng, inner = np.random.default_rng([run, 1]), kernel - np.diag(np.diag(kernel))
    labels = np.stack([second, *(rng.permutation(second) for _ in range(PERMUTATIONS))]).astype(float)
    m, n = second.sum(), (~second).sum()
    within, between = np.einsum("bi,bi->b", labels @ inner, labels), np.einsum("bi,bi->b", labels @ inner, 1.0 - labels)
    statistic = (
        within / (m * (m - 1)) + (inner.sum() - within - 2.0 * between) / (n * (n - 1)) - 2.0 * between / (m * n)
    )
    return float((statistic >= statistic[0] - 1e-12).mean())


def of_columns(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the p-value of each column that varies: Kolmogorov and Smirnov's, or chi-squared for up to five values."""
    found = []
    for one, two in zip(x.T, y.T, strict=True):
        values = np.unique(np.concatenate([one, two]))
        if len(values) > 5:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # ties: the limiting law is used
                found.append(ks_2samp(one, two).pvalue)
        elif len(values) > 1:
            found.append(chi2_contingency([[(part == value).sum() for value in values] for part in (one, two)]).pvalue)
    return np.array(found)


def rejections(run: int, name: str, data: Path | None) -> list[bool]:
    """Return which tests reject that the samples of one run are from one distribution, in the order of NAMES."""
    rng = np.random.default_rng([run, sum(map(ord, name))])
    x, y = shifted(rng, data or Path(), name) if name in TABLES else SETTINGS[name](rng)
    both, second = np.vstack([x, y]), np.arange(len(x) + len(y)) >= len(x)
    spread = both.std(axis=0)
    z = (both - both.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
    far = squareform(pdist(z))
    columns = of_columns(x, y)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=run)
    p_values = [
        two_sample_test(x, y, n_resamples=PERMUTATIONS, n_jobs=1, random_state=run).pvalue,
        by_classifier(both, second, logistic, 10, run),
        by_classifier(both, second, forest, 5, run),
        by_permutations(np.exp(-0.5 * (far / np.median(far[far > 0.0])) ** 2), second, run),
        by_permutations(-far, second, run),
        float(columns.min() * len(columns)),
    ]
    return [p <= LEVEL + 1e-9 for p in p_values] + [bool((columns < LEVEL).mean() >= 0.5)]


NAMES = ("isopleth", "logistic", "forest", "MMD", "energy", "columns", "half")


def main(arguments: list[str] | None = None) -> None:
    """Print a line a setting, and the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with uci_regression; without it the made samples only")
    parser.add_argument("--runs", type=int, default=40, help="pairs of samples a setting")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these settings only")
    parser.add_argument("--quick", action="store_true", help="3 runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(arguments)
    runs = range(options.first, options.first + (3 if options.quick else options.runs))
    names = [name for name in [*(TABLES if options.data else []), *SETTINGS] if name in (options.only or [name])]
    print(f"{f'power at .05, {len(runs)} pairs of samples':<36}" + "".join(f"{name:>10}" for name in NAMES), flush=True)
    powers = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in names:
            found = pool.map(partial(rejections, name=name, data=options.data), runs, chunksize=4)
            powers[name] = np.mean(list(found), axis=0)
            print(f"{name:<36}" + "".join(f"{power:>10.2f}" for power in powers[name]), flush=True)
    differ = [power for name, power in powers.items() if name != NULL]
    if len(differ) > 1:
        print(f"{'mean where there is a difference':<36}" + "".join(f"{p:>10.3f}" for p in np.mean(differ, axis=0)))


if __name__ == "__main__":
    main()
