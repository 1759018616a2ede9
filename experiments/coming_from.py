"""Lines of other libraries and of ours on made data whose truth is known: which answer is nearer?

    python -m experiments.coming_from [--seeds 3] [--only NAME ...]

Each comparison makes a table or a series, runs both libraries at their defaults, and measures both answers against what was
planted or against the exact law, as a mean over the seeds. A library that is not installed is named. Sizes are such that all
take a few minutes of a processor; nothing was chosen by these data.

- quantile-forest, NGBoost: 600 rows of four columns. The number follows a bend of one column with skewed noise that grows with
  another ("smooth"), or jumps at two bounds ("steps"). Mean distance of the quantiles of 5, 50 and 95 % from the true ones.
- crepes: the same rows, a random forest and a third of the rows for calibration. Mean distance of the ends of the intervals of
  90 % from the true quantiles, and how far the share of 2,000 new rows inside is from .9.
- missForest, as scikit-learn's IterativeImputer of random forests: 15 % of the cells are missing at random. Root mean square
  error of the filled numbers, in standard deviations.
- DDC, by robpy: 400 rows of six numbers of three hidden causes, 2 % of the cells moved by 5 deviations of what the others leave
  open; relations straight, or bent by a square. F1 of the flagged cells, and average precision of the scores.
- Raha with twenty labelled rows, the labels taken from the truth: 600 orders in which 1 or 3 % of the cells of five columns are
  misspelt words, prices of another article and wrong sums. F1 of the flagged cells.
- evidently: two tables of ten columns and 400 rows; nothing changed, one column moved by .5 deviations, or two columns go
  together no more. Share of the pairs of which exactly the changed columns are named.
- An alert as of Prometheus (above or below the mean of the reference by three deviations for a quarter of an hour) and river's
  ADWIN: two weeks of five-minute steps with a day as a reference, then a week without a change, with a step of one deviation of
  the noise, or with an incident of four hours. Share of the streams in which the first page comes after the change and within
  twelve hours, or in which none comes.
- CLaP, by claspy: 2,400 steps of four segments A B A C of different shapes or of different levels. Adjusted Rand index of the
  labels of the steps.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import gamma
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import adjusted_rand_score, average_precision_score

from isopleth import (
    CellwiseDetector,
    ChangePointDetector,
    ConditionalDensity,
    DensityImputer,
    DriftMonitor,
    two_sample_test,
)

LEVELS = np.array([0.05, 0.5, 0.95])
RISING = {
    "F1",
    "average precision",
    "right verdicts",
    "right columns",
    "right pages",
    "Rand index",
}  # measures of which more is better


class Found(NamedTuple):
    """One figure of both answers for one made table."""

    data: str
    measure: str
    there: float
    here: float


def law(kind: str, seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, a number of each, and its true quantiles at LEVELS."""
    rng = np.random.default_rng([seed, n])
    X = rng.uniform(size=(n, 4))
    middle = {"smooth": np.sin(4.0 * X[:, 0]), "steps": 2.0 * (X[:, 0] > 0.3) - 3.0 * (X[:, 1] > 0.6)}[kind]
    spread = 0.1 + 0.4 * X[:, 2]
    noise = (gamma(3.0).ppf(np.concatenate([rng.uniform(size=n), LEVELS])) - 3.0) / 3.0**0.5
    return X, middle + spread * noise[:n], middle[:, None] + spread[:, None] * noise[n:]


def of_laws(fit: Callable[[np.ndarray, np.ndarray], Callable]) -> Callable[[int], Iterator[Found]]:
    """Return a comparison of quantiles; `fit` returns a function from rows to quantiles at LEVELS."""

    def compared(seed: int) -> Iterator[Found]:
        for kind in ("smooth", "steps"):
            X, y, _ = law(kind, seed, 600)
            new, _, truth = law(kind, seed, 500)
            here = ConditionalDensity(random_state=seed).fit(X, y).predict_quantile(new, LEVELS)
            there = fit(X, y)(new)
            yield Found(kind, "distance of quantiles", np.abs(there - truth).mean(), np.abs(here - truth).mean())

    return compared


def quantile_forest(X: np.ndarray, y: np.ndarray) -> Callable:
    """Return the quantiles of quantile-forest."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(random_state=0).fit(X, y)
    return lambda new: model.predict(new, quantiles=list(LEVELS))


def ngboost(X: np.ndarray, y: np.ndarray) -> Callable:
    """Return the quantiles of NGBoost's normal laws."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=0, verbose=False).fit(X, y)
    return lambda new: np.column_stack([model.pred_dist(new).ppf(level) for level in LEVELS])


def of_crepes(seed: int) -> Iterator[Found]:
    """Compare intervals of 90 % with those of crepes."""
    from crepes import WrapRegressor

    for kind in ("smooth", "steps"):
        X, y, _ = law(kind, seed, 600)
        new, y_new, truth = law(kind, seed, 2000)
        there = WrapRegressor(RandomForestRegressor(random_state=seed))
        there.fit(X[:400], y[:400])
        there.calibrate(X[400:], y[400:])
        ends = [  # low and high
            there.predict_int(new, confidence=0.9),
            np.column_stack(
                ConditionalDensity(random_state=seed).fit(X, y).predict_interval(new, confidence_level=0.9)
            ),
        ]
        yield Found(kind, "distance of the ends", *(np.abs(each - truth[:, [0, 2]]).mean() for each in ends))
        held = [((each[:, 0] <= y_new) & (y_new <= each[:, 1])).mean() for each in ends]
        yield Found(kind, "coverage less .9", *(abs(share - 0.9) for share in held))


def of_miss_forest(seed: int) -> Iterator[Found]:
    """Compare filled numbers with those of iterated random forests."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    rng = np.random.default_rng(seed)
    for kind in ("straight", "bent"):
        full = factors(rng, 300, kind)
        holes = pd.DataFrame(np.where(rng.uniform(size=full.shape) < 0.15, np.nan, full)).add_prefix("x")
        gaps = holes.isna().to_numpy()
        forests = IterativeImputer(RandomForestRegressor(random_state=0), max_iter=5, random_state=0)
        there, here = (
            np.asarray(fill.fit_transform(holes), float) for fill in (forests, DensityImputer(random_state=0))
        )
        errors = [((each - full) / full.std(axis=0))[gaps] for each in (there, here)]
        yield Found(kind, "error of filled cells", *((each**2).mean() ** 0.5 for each in errors))


def factors(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """Return six columns of three hidden causes, with noise of .3; a square bends half of the columns."""
    hidden = rng.normal(size=(n, 3))
    rows = hidden @ rng.normal(size=(3, 6))
    if kind == "bent":
        rows[:, 3:] = hidden[:, :3] ** 2 + hidden[:, [1, 2, 0]]
    return rows + 0.3 * rng.normal(size=(n, 6))


def f1(flagged: np.ndarray, wrong: np.ndarray) -> float:
    """Return F1 of flagged cells."""
    return 2.0 * (flagged & wrong).sum() / max(1, flagged.sum() + wrong.sum())


def of_ddc(seed: int) -> Iterator[Found]:
    """Compare flagged cells with those of DetectDeviatingCells."""
    from robpy.outliers.ddc import DDC

    rng = np.random.default_rng(seed)
    for kind in ("straight", "bent"):
        full = factors(rng, 400, kind)
        wrong = rng.uniform(size=full.shape) < 0.02
        table = pd.DataFrame(full + wrong * rng.choice([-1.5, 1.5], size=full.shape)).add_prefix("x")
        there = DDC().fit(table)
        flagged, scores = cells_here(table, seed)
        yield Found(kind, "F1", f1(np.asarray(there.cellwise_outliers_, bool), wrong), f1(flagged, wrong))
        away = np.abs(np.asarray(there.standardized_residuals_, float))
        precision = [average_precision_score(wrong.ravel(), each.ravel()) for each in (away, scores)]
        yield Found(kind, "average precision", *precision)


def cells_here(table: pd.DataFrame, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the cells that our detector flags, and the scores of all cells, higher for wrong ones."""
    detector = CellwiseDetector(random_state=seed).fit(table)
    return np.asarray(detector.cells().flagged, bool), np.nan_to_num(np.asarray(detector.cell_scores_, float))


def of_raha(seed: int) -> Iterator[Found]:
    """Compare flagged cells with those of Raha and twenty labelled rows."""
    from raha import Detection

    from experiments.questions import orders

    for share in (0.01, 0.03):
        clean = orders(600, seed)
        dirty = with_wrong_cells(clean, share, np.random.default_rng([seed, 1]))
        wrong = (dirty.astype(str) != clean.astype(str)).to_numpy()
        with tempfile.TemporaryDirectory() as folder:
            paths = {"path": Path(folder) / "dirty.csv", "clean_path": Path(folder) / "clean.csv"}
            for table, path in zip((dirty, clean), paths.values(), strict=True):
                table.to_csv(path, index=False)
            app = Detection()
            app.SAVE_RESULTS = False
            found = app.run({"name": "orders", **{key: str(path) for key, path in paths.items()}})
        there = np.zeros(wrong.shape, dtype=bool)
        there[tuple(np.array(list(found), dtype=int).reshape(-1, 2).T)] = True
        yield Found(f"orders, {share:.0%} wrong", "F1", f1(there, wrong), f1(cells_here(dirty, seed)[0], wrong))


def with_wrong_cells(table: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return orders in which a share of five columns is wrong: misspelt words, prices of another article, sums 10 % off."""
    table = table.copy()
    for name in ("article", "category", "region", "price", "sum"):
        for row in np.flatnonzero(rng.uniform(size=len(table)) < share):
            value = table.loc[row, name]
            if isinstance(value, str):
                place = int(rng.integers(len(value)))
                table.loc[row, name] = value[:place] + value[place] + value[place:]
            else:
                other = rng.choice(table.loc[table["article"] != table.loc[row, "article"], "price"])
                table.loc[row, name] = other if name == "price" else round(value * 1.1, 2)
    return table


CHANGED = {"nothing": set(), "one column": {"c2"}, "two go together no more": {"c4", "c5"}}


def of_evidently(seed: int) -> Iterator[Found]:
    """Compare verdicts, and the columns that are named, with those of evidently's preset; four pairs a seed."""
    from evidently import Report
    from evidently.presets import DataDriftPreset

    for k, (kind, changed) in itertools.product(range(4), CHANGED.items()):
        before, after = (month(np.random.default_rng([seed, k, part]), kind if part else "nothing") for part in (0, 1))
        metrics = Report([DataDriftPreset()]).run(after, before).dict()["metrics"]
        columns = [(m["config"], m["value"]) for m in metrics if "column" in m["config"]]
        there = {config["column"] for config, pvalue in columns if pvalue < config["threshold"]}
        result = two_sample_test(before, after, random_state=seed)
        yield Found(kind, "right verdicts", bool(there) == bool(changed), (result.pvalue <= 0.05) == bool(changed))
        if len(changed) == 1:
            found = result.changes()
            here = {name for name, pvalue in zip(found["column"], found["pvalue"], strict=True) if pvalue <= 0.05}
            yield Found(kind, "right columns", there == changed, here == changed)


def month(rng: np.random.Generator, kind: str) -> pd.DataFrame:
    """Return 400 rows of ten columns, pairs of which go together."""
    rows = rng.normal(size=(400, 10))
    rows[:, 1::2] = 0.8 * rows[:, ::2] + 0.6 * rows[:, 1::2]
    if kind == "one column":
        rows[:, 2] += 0.5
    if kind == "two go together no more":
        rows[:, 5] = rng.normal(size=400)
    return pd.DataFrame(rows, columns=[f"c{k}" for k in range(10)])


PER_DAY, CHANGE = 288, 2 * 288 + 150


def stream(rng: np.random.Generator, start: str, days: int, kind: str = "nothing") -> pd.DataFrame:
    """Return steps of five minutes with a day and noise that depends on the step before."""
    times = pd.date_range(start, periods=days * PER_DAY, freq="5min")
    left = rng.normal(size=len(times))
    for step in range(1, len(left)):
        left[step] = 0.5 * left[step - 1] + 0.75**0.5 * left[step]
    left[CHANGE:] += kind == "step"
    left[CHANGE : CHANGE + 48] += 6.0 * (kind == "incident")
    hours = np.asarray(times.hour + times.minute / 60.0)
    return pd.DataFrame({"time": times, "rate": 20.0 + 5.0 * np.sin(hours / 12.0 * np.pi) + left})


def of_alerts(there: Callable[[np.ndarray, np.ndarray], list[int]]) -> Callable[[int], Iterator[Found]]:
    """Return a comparison of pages; `there` returns the steps of alarms from the numbers of reference and stream."""

    def compared(seed: int) -> Iterator[Found]:
        before = stream(np.random.default_rng([seed, 0]), "2025-01-06", 14)
        monitor = DriftMonitor(context="time", expected_run_length=28 * PER_DAY, random_state=seed).fit(before)
        begin = monitor.state_
        for kind in ("nothing", "step", "incident"):
            after = stream(np.random.default_rng([seed, 1]), "2025-01-20", 7, kind)
            monitor.state_ = begin
            events = monitor.update(after).to_dict()["table"]
            here = [each["row"] for each in events if each.get("event", "opened") == "opened"]
            pages = there(before["rate"].to_numpy(), after["rate"].to_numpy())
            yield Found(kind, "right pages", right(pages, kind), right(here, kind))

    return compared


def right(pages: list[int], kind: str) -> bool:
    """Tell whether the first page is after the change and within twelve hours, or whether there is none to be."""
    if kind == "nothing":
        return not pages
    return bool(pages) and CHANGE <= min(pages) <= CHANGE + PER_DAY // 2


def alert(before: np.ndarray, after: np.ndarray) -> list[int]:
    """Return the steps at which the rate has been off by three deviations for four steps."""
    off = np.abs(after - before.mean()) > 3.0 * before.std()
    return [step for step in range(3, len(off)) if off[step - 3 : step + 1].all()]


def adwin(before: np.ndarray, after: np.ndarray) -> list[int]:
    """Return the steps at which ADWIN tells a change, after the reference."""
    from river.drift import ADWIN

    detector, found = ADWIN(), []
    for step, value in enumerate([*before, *after], -len(before)):
        detector.update(float(value))
        if detector.drift_detected and step >= 0:
            found.append(step)
    return found


def of_clap(seed: int) -> Iterator[Found]:
    """Compare labels of states with those of CLaP."""
    from claspy.state_detection import AgglomerativeCLaPDetection

    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 0, 2], 600)
    phase = np.arange(len(truth)) * 2.0 * np.pi / 40.0
    shapes = np.array([np.sin(phase), np.sign(np.sin(phase)), np.abs(np.sin(phase)) * 2.0 - 1.0])
    made = {"shapes": shapes[truth, np.arange(len(truth))], "levels": truth * 1.5}
    for kind, series in made.items():
        noisy = series + 0.3 * rng.normal(size=len(series))
        try:
            there = AgglomerativeCLaPDetection(n_jobs=1).fit_predict(noisy)
        except ValueError:  # its classifier refuses the one class that there is where no change was found
            there = np.zeros(len(truth))
        found = ChangePointDetector(random_state=seed).fit(noisy[:, None])
        here = np.asarray(found.states_)[np.searchsorted(found.change_points_, np.arange(len(truth)), side="right")]
        yield Found(kind, "Rand index", adjusted_rand_score(truth, there), adjusted_rand_score(truth, here))


# Library, module that has to be there, comparison.
COMPARISONS: dict[str, tuple[str, Callable[[int], Iterator[Found]]]] = {
    "quantile-forest": ("quantile_forest", of_laws(quantile_forest)),
    "NGBoost": ("ngboost", of_laws(ngboost)),
    "crepes": ("crepes", of_crepes),
    "missForest": ("sklearn", of_miss_forest),
    "DDC": ("robpy", of_ddc),
    "Raha": ("raha", of_raha),
    "evidently": ("evidently", of_evidently),
    "alert": ("isopleth", of_alerts(alert)),
    "ADWIN": ("river", of_alerts(adwin)),
    "CLaP": ("claspy", of_clap),
}


def figure(value: float) -> str:
    """Return a figure of at most three digits."""
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1.0 else f"{value:.2f}"


def lines(name: str, seeds: int) -> Iterator[str]:
    """Yield the lines of one library."""
    module, compare = COMPARISONS[name]
    if importlib.util.find_spec(module) is None:
        yield f"{name:16} not installed: not run"
        return
    begin, found = time.process_time(), {}
    for seed in range(seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for each in compare(seed):
                found.setdefault((each.data, each.measure), []).append((each.there, each.here))
    for (data, measure), pairs in found.items():
        there, here = np.mean(np.array(pairs, dtype=float), axis=0)
        ahead = (here - there) * (1.0 if measure in RISING else -1.0)
        nearer = "equal" if abs(ahead) < 5e-4 else "isopleth" if ahead > 0.0 else name
        yield f"{name:16} {data:24} {measure:22} {figure(there):>6} {figure(here):>6}  {nearer}"
    print(f"{name}: {time.process_time() - begin:.0f} s", file=sys.stderr)


def main(arguments: list[str] | None = None) -> Any:
    """Run the comparisons and print a line for each measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(COMPARISONS), default=list(COMPARISONS))
    asked = parser.parse_args(arguments)
    print(
        f"{'library':16} {'made data':24} {'measure':22} {'there':>6} {'here':>6}  nearer; means of {asked.seeds} tables"
    )
    for name in asked.only:
        for line in lines(name, asked.seeds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
