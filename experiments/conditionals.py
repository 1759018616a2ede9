"""One column of real tables given the others: `ConditionalDensity` beside other laws of a number given a row.

    python -m experiments.conditionals --data DIR [--out conditionals.csv] [--tables NAME ...] [--splits N] [--target NAME]
    python -m experiments.conditionals --page conditionals.csv > docs/conditionals_results.txt

DIR holds tables in two layouts, which may stand side by side:

- ``NAME/data/data.txt`` with ``index_features.txt``, ``index_target.txt``, ``n_splits.txt``, ``index_train_K.txt`` and
  ``index_test_K.txt``: the public layout of the regressions and splits of Hernandez-Lobato and Adams (ICML 2015).
- ``NAME.csv`` or ``NAME.csv.gz``, with or without names of columns. The target is the last column, or the one named by
  ``--target``; with ``--every-column`` each column of words or numbers is a target in turn, and the table is called NAME/COLUMN.
  ``NAME.test_mask.csv.gz`` marks held-out rows, one column a split; without it a tenth of the rows is drawn.

Figures of the held-out rows: ``log likelihood``, the mean log density in the units of the target, averaged over the step in which
it is recorded, at least .005 deviations; ``crps``, twice the mean pinball loss of 99 quantiles, and ``relative`` over that of
the quantiles of the target itself; ``coverage`` and ``width`` (in deviations) of the central interval of 90 %; ``fit`` and
``answers``, processor seconds.

- ``law``: `ConditionalDensity()`. ``one forest``: with ``forests=1``.
- ``quantile forest``: `RandomForestQuantileRegressor` of quantile-forest with its defaults. ``ngboost``: `NGBRegressor` with its
  defaults. ``normal``: a ridge regression by leave-one-out with a normal law. ``quantile regression``: linear, 19 levels, for
  tables of at most 1,500 rows. Words are columns of 0 and 1 and gaps means for these.
- A law that is given by quantiles has a constant density between neighbouring ones, at least .01 deviations apart, and
  exponential tails beyond the outermost.

A target of words has other figures and methods: those of ``experiments/conditional_words.py``.

A rival that is not installed is left out. Each line of the CSV file is one figure; a run that was interrupted goes on
where it stopped. Tables of a folder are divided in two halves by their names: what was chosen here was chosen on the first.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from experiments.conditional_words import WORD_FIGURES, WORD_METHODS, word_figures
from experiments.density_tables import is_reported
from experiments.resumed import resumed
from isopleth import ConditionalDensity
from isopleth.conditional.target import target_cells, target_column, target_step

FIELDS = ["table", "split", "method", "figure", "value"]
FIGURES = ("log likelihood", "crps", "relative", "coverage", "width", "fit", "answers")
LEVELS = np.arange(1, 100) / 100
LEAST_CELL = 0.0025  # least half width of a cell, in deviations
MOST_ROWS_OF_LINES = 1500
MOST_WORDS, LEAST_OF_SECOND = (
    30,
    10,
)  # of a column that is a target by --every-column: words, and rows of the second word

# Mean log likelihood of MC dropout (Gal and Ghahramani, ICML 2016, table 1), by the names of the folders.
PUBLISHED = {
    "bostonHousing": -2.40,
    "concrete": -2.94,
    "energy": -1.21,
    "kin8nm": 1.14,
    "naval-propulsion-plant": 4.45,
    "power-plant": -2.81,
    "protein-tertiary-structure": -2.87,
    "wine-quality-red": -0.93,
    "yacht": -1.25,
}


@dataclass(frozen=True)
class Split:
    """Rows of a fit and held-out rows of a table."""

    X: pd.DataFrame
    y: np.ndarray
    asked: pd.DataFrame
    truth: np.ndarray

    @property
    def of_words(self) -> bool:
        """Tell whether the target holds words."""
        return self.y.dtype == object

    @property
    def half(self) -> float:
        """Half the width of the cells over which densities are averaged."""
        column = target_column(target_cells(self.y))
        return max(0.5 * target_step(column, self.y), LEAST_CELL * self.y.std())

    def encoded(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the other columns of both parts as numbers: words as 0 and 1, gaps as means."""
        both = pd.concat([self.X, self.asked], ignore_index=True)
        words = [c for c in both if not pd.api.types.is_numeric_dtype(both[c])]
        numbers = pd.get_dummies(both, columns=words, dtype=float)
        numbers = numbers.fillna(numbers[: len(self.X)].mean()).fillna(0.0).to_numpy(dtype=float)
        return numbers[: len(self.X)], numbers[len(self.X) :]


@dataclass(frozen=True)
class Table:
    """Table with a target and its splits: places of the rows of the fit, and of the held-out rows."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    splits: list[tuple[np.ndarray, np.ndarray]]

    def split(self, k: int) -> Split:
        """Return the rows of one split."""
        fit, held = self.splits[k]
        X, asked = (self.X.iloc[places].reset_index(drop=True) for places in (fit, held))
        return Split(X, self.y[fit], asked, self.y[held])


def tables_of(
    data: Path, target: str | None, every_column: bool = False, most_rows: int | None = None
) -> dict[str, Callable[[], Table]]:
    """Return how each table in a folder is read, by its name."""
    found: dict[str, Callable[[], Table]] = {}
    for path in sorted(data.rglob("data.txt")):
        if (path.parent / "index_features.txt").exists():
            name = path.parent.parent.name if path.parent.name == "data" else path.parent.name
            found[name] = lambda path=path, name=name: indexed_table(name, path.parent)
    for path in sorted([*data.glob("*.csv"), *data.glob("*.csv.gz")]):
        name = path.name.removesuffix(".gz").removesuffix(".csv")
        if name.endswith(".test_mask"):
            continue
        if not every_column:
            found[name] = lambda path=path, name=name: csv_table(name, path, target, most_rows)
            continue
        for column in _targets(csv_frame(path)):
            found[f"{name}/{column}"] = lambda path=path, name=name, column=column: csv_table(
                name, path, column, most_rows
            )
    return found


def _targets(frame: pd.DataFrame) -> list[str]:
    """Return the columns that can be targets: those of two to thirty words of which the second has ten rows, and of numbers."""
    found = []
    for name in frame:
        known = frame[name].dropna()
        counts = known.value_counts()
        words = not pd.api.types.is_numeric_dtype(known)
        if len(counts) > 1 and (not words or (len(counts) <= MOST_WORDS and counts.iloc[1] >= LEAST_OF_SECOND)):
            found.append(name)
    return found


def indexed_table(name: str, folder: Path) -> Table:
    """Read a table with index files."""
    rows = np.loadtxt(folder / "data.txt")
    features, target = (
        np.loadtxt(folder / f"index_{what}.txt", ndmin=1).astype(int).ravel() for what in ("features", "target")
    )
    count = int(np.loadtxt(folder / "n_splits.txt"))
    splits = []
    for k in range(count):
        train, test = (
            np.loadtxt(folder / f"index_{part}_{k}.txt", ndmin=1).astype(int).ravel() for part in ("train", "test")
        )
        splits.append((train, test))
    return Table(name, pd.DataFrame(rows[:, features]).add_prefix("x"), rows[:, int(target[0])], splits)


def csv_frame(path: Path) -> pd.DataFrame:
    """Read a CSV file with or without names of columns."""
    first = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0]
    plain = pd.to_numeric(first, errors="coerce").notna().all()
    frame = pd.read_csv(path, header=None if plain else 0)
    frame.columns = [f"x{c}" if isinstance(c, int) else str(c) for c in frame.columns]
    return frame


def csv_table(name: str, path: Path, target: str | None, most_rows: int | None = None) -> Table:
    """Read a table of a CSV file; rows without a target are left out, and those beyond `most_rows`, drawn."""
    frame = csv_frame(path)
    if most_rows is not None and len(frame) > most_rows:
        frame = frame.iloc[np.sort(np.random.default_rng(0).permutation(len(frame))[:most_rows])].reset_index(drop=True)
    wanted = frame.columns[-1] if target is None or target not in frame else target
    mask_path = path.with_name(f"{name}.test_mask.csv.gz")
    if mask_path.exists():
        masks = list(pd.read_csv(mask_path, header=None).to_numpy().astype(bool).T)
    else:
        masks = [np.random.default_rng(k).permutation(len(frame)) < len(frame) / 10 for k in range(20)]
    known = frame[wanted].notna().to_numpy()
    frame, masks = frame[known].reset_index(drop=True), [mask[known] for mask in masks]
    splits = [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
    cells = frame[wanted]
    y = (
        cells.to_numpy(dtype=float)
        if pd.api.types.is_numeric_dtype(cells)
        else cells.astype(str).to_numpy(dtype=object)
    )
    return Table(name, frame.drop(columns=wanted), y, splits)


# ---- laws: quantiles of held-out rows at LEVELS, and log densities of the truth ----------------------------------------------

Answer = Callable[[Split], tuple[np.ndarray, np.ndarray]]
Fit = Callable[[Split], Answer]


def by_law(**parameters: object) -> Fit:
    """Return how `ConditionalDensity` answers."""

    def fit(split: Split) -> Answer:
        model = ConditionalDensity(n_jobs=1, random_state=0, **parameters).fit(split.X, split.y)  # type: ignore[arg-type]
        return lambda s: (model.predict_quantile(s.asked, LEVELS), model.log_prob(s.asked, s.truth))

    return fit


def by_marginal(split: Split) -> Answer:
    """Fit quantiles of the target by itself."""
    quantiles = np.quantile(split.y, LEVELS)
    return lambda s: _with_density(np.tile(quantiles, (len(s.truth), 1)), s)


def by_normal(split: Split) -> Answer:
    """Fit a ridge regression with a normal law."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, asked = split.encoded()
    model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-4, 1e4, 25))).fit(X, split.y)
    deviation = float(np.sqrt(max(-model[-1].best_score_, 1e-12)))  # of leave-one-out residuals

    def answer(s: Split) -> tuple[np.ndarray, np.ndarray]:
        mean = model.predict(asked)
        return mean[:, None] + deviation * norm.ppf(LEVELS), _of_cells(
            norm.cdf((s.truth - s.half - mean) / deviation), norm.cdf((s.truth + s.half - mean) / deviation), s
        )

    return answer


def by_quantile_forest(split: Split) -> Answer:
    """Fit a quantile regression forest."""
    from quantile_forest import RandomForestQuantileRegressor

    X, asked = split.encoded()
    model = RandomForestQuantileRegressor(random_state=0, n_jobs=1).fit(X, split.y)
    return lambda s: _with_density(model.predict(asked, quantiles=LEVELS.tolist()), s)


def by_ngboost(split: Split) -> Answer:
    """Fit boosted normal laws."""
    from ngboost import NGBRegressor

    X, asked = split.encoded()
    model = NGBRegressor(random_state=0, verbose=False).fit(X, split.y)

    def answer(s: Split) -> tuple[np.ndarray, np.ndarray]:
        law = model.pred_dist(asked)
        mean, deviation = law.params["loc"], law.params["scale"]
        ends = [norm.cdf((s.truth + side * s.half - mean) / deviation) for side in (-1, 1)]
        return mean[:, None] + deviation[:, None] * norm.ppf(LEVELS), _of_cells(*ends, s)

    return answer


def by_quantile_regression(split: Split) -> Answer:
    """Fit linear quantile regressions at 19 levels, with the others between them."""
    from sklearn.linear_model import QuantileRegressor
    from sklearn.preprocessing import StandardScaler

    X, asked = split.encoded()
    scaler, some = StandardScaler().fit(X), np.arange(1, 20) / 20
    models = [QuantileRegressor(quantile=q, alpha=0.0).fit(scaler.transform(X), split.y) for q in some]

    def answer(s: Split) -> tuple[np.ndarray, np.ndarray]:
        found = np.sort(np.stack([model.predict(scaler.transform(asked)) for model in models], axis=1), axis=1)
        return _with_density(np.array([np.interp(LEVELS, some, row) for row in found]), s)

    return answer


def _with_density(quantiles: np.ndarray, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Return quantiles, and the log densities of the truth under a density that is constant between them."""
    ends = [_cdf(quantiles, split.truth + side * split.half, 0.01 * split.y.std()) for side in (-1, 1)]
    return quantiles, _of_cells(*ends, split)


def _cdf(quantiles: np.ndarray, y: np.ndarray, least: float) -> np.ndarray:
    """Return distribution functions at y of laws given by quantiles; each step between them is at least `least` / 98 wide."""
    spread = quantiles + np.linspace(-0.5, 0.5, len(LEVELS)) * least
    out = np.array([np.interp(value, row, LEVELS) for value, row in zip(y, spread, strict=True)])
    reach = np.maximum(spread[:, 9] - spread[:, 0], least) / np.log(10.0)
    below, above = (spread[:, 0] - y) / reach, (y - spread[:, -1]) / reach
    out = np.where(below > 0, 0.01 * np.exp(-np.maximum(below, 0.0)), out)
    return np.where(above > 0, 1.0 - 0.01 * np.exp(-np.maximum(above, 0.0)), out)


def _of_cells(low: np.ndarray, high: np.ndarray, split: Split) -> np.ndarray:
    """Return log densities from the distribution functions at the ends of cells; no cell is less likely than 1e-12."""
    return np.log(np.maximum(high - low, 1e-12)) - np.log(2.0 * split.half)


METHODS: dict[str, tuple[Fit, str | None]] = {
    "law": (by_law(), None),
    "one forest": (by_law(forests=1), None),
    "quantile forest": (by_quantile_forest, "quantile_forest"),
    "ngboost": (by_ngboost, "ngboost"),
    "quantile regression": (by_quantile_regression, None),
    "normal": (by_normal, None),
    "marginal": (by_marginal, None),
}


def figures(split: Split, method: str) -> dict[str, float]:
    """Return the figures of a method on the held-out rows of a split."""
    if split.of_words:
        return _figures_of_words(split, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        answer = METHODS[method][0](split)
        fitted = time.process_time()
        quantiles, logs = answer(split)
        answered = time.process_time()
    crps, by_itself = (crps_of(q, split.truth) for q in (quantiles, np.quantile(split.y, LEVELS)[None]))
    low, high = quantiles[:, 4], quantiles[:, 94]
    values = (
        np.mean(logs),
        crps,
        crps / by_itself,
        np.mean((low <= split.truth) & (split.truth <= high)),
        np.mean(high - low) / split.y.std(),
        fitted - start,
        answered - fitted,
    )
    return dict(zip(FIGURES, map(float, values), strict=True))


def _figures_of_words(split: Split, method: str) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        answer = WORD_METHODS[method](split)
        fitted = time.process_time()
        words = answer(split)
        answered = time.process_time()
    values = (*word_figures(words, split), fitted - start, answered - fitted)
    return dict(zip(WORD_FIGURES, map(float, values), strict=True))


def crps_of(quantiles: np.ndarray, truth: np.ndarray) -> float:
    """Return the continuous ranked probability score, as twice the mean pinball loss of quantiles at LEVELS."""
    step = truth[:, None] - quantiles
    return float(2.0 * np.mean(np.maximum(LEVELS * step, (LEVELS - 1.0) * step)))


def run(options: argparse.Namespace) -> None:
    """Write the figures of all tables, splits and methods that are not there yet."""
    readers = tables_of(options.data, options.target, options.every_column, options.most_rows)
    names = [name for name in options.tables or readers if _wanted(name, options.half)]
    if unknown := [name for name in names if name not in readers]:
        raise SystemExit(f"{options.data} has no table {', '.join(unknown)}; it has {', '.join(readers)}.")
    numbers = [m for m in options.methods if m in METHODS and (METHODS[m][1] is None or find_spec(str(METHODS[m][1])))]
    with resumed(options.out, FIELDS, 3) as (finished, add):
        for name in names:
            table = readers[name]()
            methods = [m for m in options.methods if m in WORD_METHODS] if table.y.dtype == object else numbers
            for k, method in _left(table, options.splits, methods, name, finished):
                split = table.split(k)
                if method == "quantile regression" and len(split.y) > MOST_ROWS_OF_LINES:
                    continue
                found = figures(split, method)
                add([name, k, method, figure, value] for figure, value in found.items())
                rounded = {key: round(value, 3) for key, value in found.items()}
                print(name, k, method, rounded, file=sys.stderr, flush=True)


def _wanted(name: str, half: str | None) -> bool:
    return half is None or _reported(name) is (half == "reported")


def _reported(name: str) -> bool:
    """Tell whether a target is of a table of the reported half."""
    return is_reported(name.partition("/")[0])


def _left(
    table: Table, splits: int, methods: list[str], name: str, finished: set[tuple[str, ...]]
) -> Iterator[tuple[int, str]]:
    for k in range(min(splits, len(table.splits))):
        for method in methods:
            if (name, str(k), method) not in finished:
                yield k, method


# ---- page --------------------------------------------------------------------------------------------------------------


def page(path: Path) -> str:
    """Return the figures as text: log likelihoods beside published ones, means and comparisons, and each table."""
    found: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            found[line["table"], line["method"], line["figure"]][line["split"]] = float(line["value"])
    of_words = sorted({key[0] for key in found if key[2] == "log loss"}, key=lambda name: (_reported(name), name))
    words_page = _page_of_words(found, of_words) if of_words else []
    tables = sorted({key[0] for key in found} - set(of_words), key=lambda name: (_reported(name), name))
    if not tables:
        return "\n".join(words_page)
    methods = [method for method in METHODS if any(key[1] == method and key[0] in tables for key in found)]
    lines = [f"{len(tables)} tables, at most {max(map(len, found.values()))} splits each; coverage is to be .90."]
    for words, half in (("choosing", False), ("reporting", True)):
        chosen = [name for name in tables if _reported(name) is half]
        if chosen:
            lines += [
                "",
                f"{len(chosen)} tables of the {words} half: {', '.join(chosen)}",
                *_means(found, chosen, methods),
            ]
    lines += ["", "Tables on which law is ahead in crps: " + _ahead(found, tables, methods)]
    for figure in ("log likelihood", "relative", "coverage"):
        lines += ["", f"{figure}, with standard errors over splits", _row("", [*methods, "MC dropout"])]
        for name in tables:
            cells = [_cell(found.get((name, method, figure), {})) for method in methods]
            published = f"{PUBLISHED[name]:.2f}" if figure == "log likelihood" and name in PUBLISHED else ""
            lines.append(_row(name, [*cells, published]))
    return "\n".join(lines + ([""] + words_page if words_page else []))


def _page_of_words(found: dict, tables: list[str]) -> list[str]:
    """Return the figures of targets of words: means by half, and the log loss of each."""
    methods = [method for method in WORD_METHODS if any(key[1] == method and key[0] in tables for key in found)]
    lines = [f"{len(tables)} targets of words, at most {max(map(len, found.values()))} splits each"]
    for words, half in (("choosing", False), ("reporting", True)):
        chosen = [name for name in tables if _reported(name) is half]
        if chosen:
            lines += ["", f"{len(chosen)} targets of the {words} half", *_means(found, chosen, methods, WORD_FIGURES)]
    lines += ["", "log loss, with standard errors over splits", _row("", methods)]
    return lines + [_row(name, [_cell(found.get((name, m, "log loss"), {})) for m in methods]) for name in tables]


def _means(found: dict, tables: list[str], methods: list[str], figures: tuple[str, ...] = FIGURES) -> list[str]:
    """Return the means over tables of each figure."""
    lines = [_row("", list(figures))]
    for method in methods:
        of_all = [name for name in tables if (name, method, figures[0]) in found]
        cells = [np.mean([np.mean([*found[name, method, f].values()]) for name in of_all]) for f in figures]
        note = "" if len(of_all) == len(tables) else f"  ({len(of_all)} tables)"
        lines.append(_row(method, [f"{cell:.3f}" for cell in cells]) + note)
    return lines


def _ahead(found: dict, tables: list[str], methods: list[str]) -> str:
    """Return on how many tables the law has a smaller crps than each other method, over the same splits."""
    parts = []
    for method in methods:
        if method in ("law", "one forest"):
            continue
        both = [n for n in tables if (n, method, "crps") in found and (n, "law", "crps") in found]
        wins = sum(_of_common(found, n, "law", method) > 0 for n in both)
        parts.append(f"{method} {wins} of {len(both)}")
    return ", ".join(parts)


def _of_common(found: dict, name: str, one: str, other: str) -> float:
    a, b = found[name, one, "crps"], found[name, other, "crps"]
    return float(np.mean([b[k] - a[k] for k in a if k in b]))


def _cell(values: dict[str, float]) -> str:
    found = list(values.values())
    if not found:
        return ""
    error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    return f"{np.mean(found):.3f} ({error:.3f})"


def _row(name: str, cells: list[str]) -> str:
    return f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells)


def main(arguments: list[str] | None = None) -> None:
    """Run the study, or print the page of its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the tables")
    what.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    parser.add_argument("--out", type=Path, default=Path("conditionals.csv"))
    parser.add_argument("--tables", nargs="+", help="tables of the folder; all by default")
    parser.add_argument("--half", choices=("choosing", "reported"), help="tables of this half only")
    parser.add_argument("--target", help="name of the target in CSV files; the last column by default")
    parser.add_argument("--every-column", action="store_true", help="each column of a CSV file is a target")
    parser.add_argument("--most-rows", type=int, help="at most so many rows of a CSV file, drawn")
    parser.add_argument("--splits", type=int, default=20, help="at most so many splits of a table")
    methods = list(dict.fromkeys([*METHODS, *WORD_METHODS]))
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    options = parser.parse_args(arguments)
    if options.page:
        print(page(options.page))
    else:
        run(options)


if __name__ == "__main__":
    main()
