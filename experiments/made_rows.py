"""Rows drawn from densities, beside simple ways to make rows, on five real tables.

    python -m experiments.made_rows --data DIR [--out made_rows.csv] [--seeds 0 1 2]
    python -m experiments.made_rows --page made_rows.csv > docs/made_rows_results.txt

DIR holds the folders ``mixed`` and ``uci``. Every table has at most 1,000 rows, drawn at random. Two thirds are for the fit, the
rest are held out; as many rows are made as there are for the fit. Figures:

- ``detected``: area under the ROC curve of gradient boosted trees that tell made rows from held-out ones (0.5: they cannot);
- ``rejected``: share of runs in which the two-sample test of this library rejects at 5 %, 200 made rows against 200 held-out
  ones, words as columns of 0 and 1, gaps as the mean and a column of their own;
- ``accuracy``: of trees that were trained on made rows, for the class of held-out rows; of trees trained on the rows themselves
  in the line ``the rows themselves``;
- ``near``: share of the made rows that are nearer to a row of the fit than half of the held-out rows are (0.5: as held-out rows;
  above: some repeat rows of the fit);
- ``copies``: share of the made rows that are equal to a row of the fit;
- ``seconds``: processor time of the fit and the draws.

Each line of the CSV file is one figure. A run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.mixed_data import OneHot, is_words, read_table, some_rows
from experiments.resumed import resumed
from isopleth import KDE, SOSREP, two_sample_test
from isopleth.kernels.product import ProductLaplacian
from isopleth.tables.number_formats import NumberFormat
from isopleth.tasks import make_rows

# The tables, with the column that is to be predicted.
TARGETS = {"credit_a": "class", "credit_g": "class", "hypothyroid": "Class", "abalone": "Sex", "diabetes": "target"}
MOST_ROWS = 1000
TEST_ROWS = 200
FIELDS = ["table", "seed", "method", "figure", "value"]

# Makes rows like those of a table.
Maker = Callable[[pd.DataFrame, int], pd.DataFrame]


# ---- ways to make rows ----------------------------------------------------------------------------------------------------


def drawn(density: Callable[[], SOSREP | KDE]) -> Maker:
    """Return how rows are drawn from a density."""

    def make(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
        return make_rows(density().fit(frame), len(frame), random_state=seed)

    return make


def recorded(frame: pd.DataFrame, made: pd.DataFrame) -> pd.DataFrame:
    """Round numbers to the decimals of the table, within its range."""
    out = made.copy()
    for column, word in zip(frame, is_words(frame), strict=True):
        if not word:
            cells = out[column].to_numpy(dtype=float, copy=True)
            known = ~np.isnan(cells)
            form = NumberFormat.of(frame[column].to_numpy(dtype=float))
            cells[known] = np.clip(cells[known], form.quantiles[0], form.quantiles[-1])
            if form.step:
                cells[known] = np.round(np.rint(cells[known] / form.step) * form.step, 9)
            out[column] = cells
    return out


def gaps_of(frame: pd.DataFrame, made: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return made rows with the gaps of random rows of the table."""
    pattern = frame.isna().to_numpy()[rng.integers(len(frame), size=len(made))]
    return made.mask(pattern)


def bootstrap(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw rows with replacement; add normal noise of a tenth of a standard deviation, and change one word in twenty."""
    rng = np.random.default_rng(seed)
    made = frame.iloc[rng.integers(len(frame), size=len(frame))].reset_index(drop=True)
    for column, word in zip(frame, is_words(frame), strict=True):
        if word:
            other = frame[column].dropna().to_numpy()[rng.integers(frame[column].notna().sum(), size=len(made))]
            made[column] = made[column].where((rng.uniform(size=len(made)) > 0.05) | made[column].isna(), other)
        else:
            made[column] = made[column] + 0.1 * frame[column].std() * rng.normal(size=len(made))
    return recorded(frame, made)


def copula(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw from a Gaussian copula of ranks, words ordered by frequency, with the columns' own distributions."""
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(seed)
    normal = np.empty(frame.shape)
    orders = {}
    for j, (column, word) in enumerate(zip(frame, is_words(frame), strict=True)):
        cells = frame[column]
        if word:
            orders[column] = list(cells.value_counts().index)
            cells = cells.map({level: i for i, level in enumerate(orders[column])})
        known = cells.notna().to_numpy()
        values = cells.to_numpy(dtype=float)
        ranks = pd.Series(values + 1e-9 * rng.uniform(size=len(values))).rank().to_numpy()
        normal[:, j] = np.where(known, ndtri((ranks - 0.5) / known.sum()), 0.0)
    correlation = np.corrcoef(normal.T) + 1e-6 * np.eye(normal.shape[1])
    uniform = ndtr(
        rng.multivariate_normal(np.zeros(len(correlation)), correlation, size=len(frame), check_valid="ignore")
    )
    made = {}
    for j, column in enumerate(frame):
        known = frame[column].dropna()
        if column in orders:
            place = {level: i for i, level in enumerate(orders[column])}
            known = known.iloc[np.argsort(known.map(place).to_numpy(), kind="stable")]
            made[column] = known.to_numpy()[(uniform[:, j] * len(known)).astype(int)]
        else:
            made[column] = np.quantile(known.to_numpy(dtype=float), uniform[:, j])
    return gaps_of(frame, recorded(frame, pd.DataFrame(made)), rng)


def mixture(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw from a Gaussian mixture of one-hot columns, gaps filled by means, with 1 to 10 components."""
    from sklearn.mixture import GaussianMixture

    encoding = OneHot.of(frame)
    values = encoding.encode(frame)
    values = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    models = [GaussianMixture(k, reg_covar=1e-3, random_state=seed).fit(values) for k in (1, 2, 3, 5, 10)]
    best = min(models, key=lambda model: model.bic(values))
    made = encoding.decode(best.sample(len(frame))[0])
    rng = np.random.default_rng(seed)
    return gaps_of(frame, recorded(frame, made.sample(frac=1.0, random_state=seed).reset_index(drop=True)), rng)


def themselves(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the rows of the fit."""
    return frame


METHODS: dict[str, Maker] = {
    "SOSREP()": drawn(lambda: SOSREP(n_jobs=1)),
    "SOSREP product Laplacian": drawn(lambda: SOSREP(ProductLaplacian(), "leave_one_out", n_jobs=1)),
    "KDE Gaussian": drawn(lambda: KDE(length_scale="leave_one_out", n_jobs=1)),
    "KDE product Laplacian": drawn(lambda: KDE(ProductLaplacian(), "leave_one_out", n_jobs=1)),
    "bootstrap and noise": bootstrap,
    "Gaussian copula": copula,
    "Gaussian mixture": mixture,
    "the rows themselves": themselves,
}


# ---- figures ---------------------------------------------------------------------------------------------------------------


def trees() -> object:
    """Return a classifier that takes words and gaps."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=60, random_state=0)


def typed(frame: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return words as categories of the words in `like`."""
    out = frame.copy()
    for column, word in zip(like, is_words(like), strict=True):
        if word:
            out[column] = pd.Categorical(frame[column], categories=sorted(like[column].dropna().unique()))
        else:
            out[column] = frame[column].astype(float)
    return out


def detected(made: pd.DataFrame, real: pd.DataFrame, every: pd.DataFrame, rng: np.random.Generator) -> float:
    """Return the area under the ROC curve of trees that tell made from real rows, in five folds."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    n = min(len(made), len(real))
    rows = pd.concat([made.iloc[rng.permutation(len(made))[:n]], real.iloc[rng.permutation(len(real))[:n]]])
    labels = np.repeat([1, 0], n)
    order = rng.permutation(2 * n)
    table = typed(rows.reset_index(drop=True), every).iloc[order]
    chance = cross_val_predict(trees(), table, labels[order], cv=5, method="predict_proba")[:, 1]
    return float(roc_auc_score(labels[order], chance))


def accuracy(made: pd.DataFrame, test: pd.DataFrame, every: pd.DataFrame, target: str) -> float:
    """Return the accuracy for held-out rows of trees that were trained on made ones."""
    train, test = (part[part[target].notna()] for part in (made, test))
    columns = [column for column in every if column != target]
    features = every[columns]
    model = trees().fit(typed(train[columns], features), train[target].to_numpy())  # type: ignore[attr-defined]
    return float(np.mean(model.predict(typed(test[columns], features)) == test[target].to_numpy()))


def numbers(frame: pd.DataFrame, every: pd.DataFrame) -> np.ndarray:
    """Return rows as numbers: words as columns of 0 and 1, gaps as the mean and a column of their own."""
    values = OneHot.of(every).encode(frame)
    means = np.nanmean(OneHot.of(every).encode(every), axis=0)
    gaps = frame.loc[:, every.isna().any().to_numpy()].isna().to_numpy(dtype=float)
    return np.hstack([np.where(np.isnan(values), means, values), gaps])


def judged(train: pd.DataFrame, test: pd.DataFrame, made: pd.DataFrame, target: str, seed: int) -> dict[str, float]:
    """Return the figures of some made rows."""
    from scipy.spatial import cKDTree

    every = pd.concat([train, test], ignore_index=True)
    rng = np.random.default_rng(seed)
    made = made[list(train)]
    x, y, z = (numbers(part, every) for part in (train, test, made))
    tree = cKDTree(x)
    near, usual = tree.query(z)[0], tree.query(y)[0]
    size = min(TEST_ROWS, len(y), len(z))
    pick = z[rng.permutation(len(z))[:size]], y[rng.permutation(len(y))[:size]]
    pvalue = two_sample_test(*pick, n_resamples=199, random_state=seed, n_jobs=1).pvalue
    return {
        "detected": detected(made, test, every, rng),
        "rejected": float(pvalue <= 0.05),
        "accuracy": accuracy(made, test, every, target),
        "near": float(np.mean(near < np.median(usual)) + 0.5 * np.mean(near == np.median(usual))),
        "copies": float(np.mean(near < 1e-9)),
    }


def measured(data: Path, table: str, seed: int, method: str) -> dict[str, float]:
    """Return all figures of one method."""
    rng = np.random.default_rng(seed)
    frame = some_rows(read_table(data, table), MOST_ROWS, rng)
    n = 2 * len(frame) // 3
    train, test = frame[:n].reset_index(drop=True), frame[n:].reset_index(drop=True)
    train = train[[column for column in train if train[column].nunique() > 1]]
    start = time.process_time()
    made = METHODS[method](train, seed)
    seconds = time.process_time() - start
    return judged(train, test[list(train)], made, TARGETS[table], seed) | {"seconds": seconds}


def run(options: argparse.Namespace) -> None:
    """Add to the file what is not in it yet."""
    with resumed(options.out, FIELDS, 3) as (finished, add):
        for seed in options.seeds:
            for table in options.tables:
                for method in options.methods:
                    key = (table, str(seed), method)
                    if key in finished:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = measured(options.data, table, seed, method)
                    add([*key, figure, f"{value:.5f}"] for figure, value in found.items())


FIGURES = {
    "detected": "area under the ROC curve of trees that tell made from held-out rows",
    "rejected": "share of runs in which the two-sample test rejects at 5 %",
    "accuracy": "accuracy for held-out rows of trees trained on made rows",
    "near": "share of made rows nearer to a row of the fit than half of the held-out rows",
    "copies": "share of made rows equal to a row of the fit",
    "seconds": "processor seconds",
}


def page(path: Path) -> str:
    """Return the tables of results made from the file."""
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            values[line["figure"], line["method"], line["table"]].append(float(line["value"]))
    lines = [f"Means of {max(map(len, values.values()))} random splits."]
    for figure, title in FIGURES.items():
        lines += ["", title, f"{'':<26}" + "".join(f"{table:>13}" for table in TARGETS)]
        for method in METHODS:
            cells = [values[figure, method, table] for table in TARGETS]
            row = "".join(f"{np.mean(cell):>13.3f}" if cell else f"{'-':>13}" for cell in cells)
            lines.append(f"{method:<26}{row}")
    return "\n".join(lines)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    parser.add_argument("--out", type=Path, default=Path("made_rows.csv"))
    parser.add_argument("--tables", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, or print the results."""
    options = parse(arguments)
    if options.page:
        print(page(options.page))
    else:
        run(options)


if __name__ == "__main__":
    main()
