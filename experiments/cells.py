"""Wrong cells: planted errors in real tables, and real errors of tables whose right values are known.

    python -m experiments.cells --data DIR [--seeds 2] [--most 1000] [--share 0.02]
    python -m experiments.cells --clean 3

DIR holds pairs ``NAME-dirty.csv`` and ``NAME-clean.csv`` (also ``.csv.gz``) of equal rows, in which a cell is wrong where the two
differ; and other CSV files with a header, in which errors are planted: 2 % of the rows, one cell each. Kinds of errors in
numbers: the value of another row, that of another column, a factor of 10 or 100, a changed sign, two digits transposed, 999, 4
standard deviations off; in words: letters dropped or doubled, the word of another row, the word of another column.

Planted errors are judged by rows: area under the ROC curve, average precision (AP), precision among as many rows as there are
errors, the share of errors whose cell is the worst of its row, the share of errors that are flagged, and flagged cells without
an error in 1,000 rows. Beside :class:`CellwiseDetector`: :class:`AnomalyDetector`, the isolation forest, the local outlier factor
(20 neighbours), the largest robust z-score of a row, and the largest residual of a random forest of each column, in robust
deviations; words as indicators. Real errors are judged by cells: precision, recall and F1 of the flagged ones and at the best
bound, and the share of wrong cells whose usual value is the right one. Cells that are absent and should not be count as found
in the second set of figures.

``--clean`` makes tables without errors instead, so many of each kind and of 60, 200, 600 and 2,000 rows, and prints the flagged
cells in 1,000 rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest, RandomForestRegressor
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from isopleth import AnomalyDetector, CellwiseDetector

SHARE = 0.02  # of the rows that get an error
NUMBER_KINDS = ("other row", "other column", "factor", "sign", "digits", "999", "deviations")
WORD_KINDS = ("misspelt", "word of another row", "word of another column")


def wrong_number(frame: pd.DataFrame, row: int, name: str, kind: str, rng: np.random.Generator) -> float:
    """Return a wrong number for a cell."""
    column = frame[name].dropna().to_numpy(float)
    value, other = float(frame[name].iloc[row]), float(rng.choice(column))
    if kind == "other column":
        numbers = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c]) and c != name]
        other = float(frame[rng.choice(numbers)].iloc[row]) if numbers else other
    if kind == "digits":
        digits = list(f"{value:.6g}")
        places = [i for i in range(len(digits) - 1) if digits[i].isdigit() and digits[i + 1].isdigit()]
        if places:
            i = int(rng.choice(places))
            digits[i], digits[i + 1] = digits[i + 1], digits[i]
        other = float("".join(digits))
    made = {
        "factor": value * float(rng.choice([0.01, 0.1, 10.0, 100.0])),
        "sign": -value,
        "999": 999.0,
        "deviations": value + float(rng.choice([-4.0, 4.0])) * float(column.std()),
    }
    return made.get(kind, other)


def wrong_word(frame: pd.DataFrame, row: int, name: str, kind: str, rng: np.random.Generator) -> str:
    """Return a wrong word for a cell."""
    word = str(frame[name].iloc[row])
    if kind == "misspelt":
        i = int(rng.integers(len(word)))
        return (
            word[:i] + word[i] * 2 + word[i + 1 :] if rng.random() < 0.5 or len(word) < 2 else word[:i] + word[i + 1 :]
        )
    columns = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    others = [c for c in columns if c != name]
    source = rng.choice(others) if kind == "word of another column" and others else name
    return str(rng.choice(frame[source].dropna().astype(str).to_numpy()))


def planted(frame: pd.DataFrame, seed: int, share: float = SHARE) -> tuple[pd.DataFrame, list[tuple[int, str, str]]]:
    """Return a table with wrong cells, and the row, column and kind of each."""
    rng = np.random.default_rng(seed)
    out, done = frame.copy(), []
    for name in out:
        if pd.api.types.is_numeric_dtype(out[name]):
            out[name] = out[name].astype(float)
        else:
            out[name] = out[name].astype(object).where(out[name].notna(), None)
    for row in rng.permutation(len(frame))[: max(2, round(share * len(frame)))]:
        known = [name for name in frame if pd.notna(frame[name].iloc[row])]
        name = str(rng.choice(known))
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        kind = str(rng.choice(NUMBER_KINDS if numeric else WORD_KINDS))
        wrong = (wrong_number if numeric else wrong_word)(frame, int(row), name, kind, rng)
        if wrong != frame[name].iloc[row]:
            out.loc[row, name] = wrong
            done.append((int(row), name, kind))
    return out, done


def indicators(frame: pd.DataFrame) -> np.ndarray:
    """Return standardised numbers for detectors that take nothing else: means in gaps, words as 0 and 1."""
    parts = []
    for name in frame:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            parts.append(column.fillna(column.mean()).fillna(0.0).to_numpy(float)[:, None])
        else:
            words = column.astype(object).where(column.notna(), "missing").astype(str)
            parts.append(pd.get_dummies(words.where(words.map(words.value_counts()) > 1, "rare")).to_numpy(float))
    return StandardScaler().fit_transform(np.concatenate(parts, axis=1))


def robust(x: np.ndarray) -> np.ndarray:
    """Return distances from the median in robust deviations."""
    away = np.abs(x - np.nanmedian(x, axis=0))
    return np.nan_to_num(away / np.maximum(1.4826 * np.nanmedian(away, axis=0), 1e-3 * np.nanstd(x, axis=0) + 1e-12))


def of_residuals(frame: pd.DataFrame) -> np.ndarray:
    """Return the largest residual of each row among random forests of all columns, out of bag, in robust deviations."""
    Z, worst = indicators(frame), np.zeros(len(frame))
    for j in range(Z.shape[1]):
        model = RandomForestRegressor(60, min_samples_leaf=3, max_features=1 / 3, oob_score=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left = Z[:, j] - model.fit(np.delete(Z, j, axis=1), Z[:, j]).oob_prediction_
        worst = np.maximum(worst, robust(left))
    return worst


def clean_tables(n: int, rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Return tables of many kinds whose cells are all right."""
    factors = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6))
    group = rng.choice(12, n, p=rng.dirichlet(np.ones(12)))
    level = np.exp(rng.normal(3.0, 1.5, 12))[group]
    zipf = np.minimum(rng.zipf(1.5, size=(n, 3)), 400)
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 700, n)), unit="D")
    counts = rng.poisson(np.exp(0.5 * factors))
    return {
        "normal": pd.DataFrame(factors + 0.5 * rng.normal(size=(n, 6))),
        "skewed": pd.DataFrame(np.exp(factors + 0.5 * rng.normal(size=(n, 6)))),
        "heavy tails": pd.DataFrame(factors + 0.5 * rng.standard_t(2.0, size=(n, 6))),
        "unrelated": pd.DataFrame(np.column_stack([rng.uniform(size=(n, 3)), rng.exponential(size=(n, 3))])),
        "ties": pd.DataFrame(
            np.column_stack([counts, np.round(factors[:, :2]), np.sign(factors[:, 2:4]) * counts[:, :2]])
        ),
        "words of many levels": pd.DataFrame(zipf)
        .map(lambda k: f"w{k:03}")
        .assign(x=rng.normal(size=n) + zipf[:, 0] % 7),
        "words of few levels": pd.DataFrame(np.digitize(factors, [-1.5, 0.0, 1.0])).map(lambda k: "abcd"[k]),
        "groups": pd.DataFrame(
            {
                "item": [f"item {k}" for k in group],
                "price": np.round(level * np.exp(0.05 * rng.normal(size=n)), 2),
                "weight": np.round(level**0.5 * np.exp(0.2 * rng.normal(size=n)), 1),
                "count": rng.integers(1, 9, n),
                "shop": rng.choice(list("NSEW"), n),
            }
        ),
        "dates": pd.DataFrame(
            {
                "ordered": days,
                "sent": days + pd.to_timedelta(rng.poisson(3, n), unit="D"),
                "number": np.arange(n) + rng.integers(0, 5, n),
                "amount": np.round(rng.gamma(2.0, 20.0, n), 2),
            }
        ),
    }


def study_clean(seeds: int) -> None:
    """Look for wrong cells in tables without any, and print the flagged cells in 1,000 rows."""
    totals = defaultdict(list)
    sizes = (60, 200, 600, 2000)
    for n in sizes:
        for seed in range(seeds):
            for kind, table in clean_tables(n, np.random.default_rng([seed, n])).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = CellwiseDetector(random_state=0).fit(table).cells()
                totals[kind].append((found.flagged.sum(), n))
                totals[n].append((found.flagged.sum(), n))
    print(
        f"flagged cells in 1,000 rows of clean tables, {seeds} of each kind and size; the most in one table in brackets"
    )
    for key, values in totals.items():
        flags, rows = np.array(values).T
        print(f"  {key!s:22} {1000.0 * flags.sum() / rows.sum():.2f} ({flags.max()} of {rows[flags.argmax()]} rows)")
    flags, rows = np.array([value for n in sizes for value in totals[n]]).T
    print(
        f"  all tables             {1000.0 * flags.sum() / rows.sum():.2f} (mean of tables {(1000.0 * flags / rows).mean():.2f})"
    )


RIVALS: dict[str, Callable[[pd.DataFrame], np.ndarray]] = {
    "AnomalyDetector": lambda f: -AnomalyDetector(random_state=0).fit(f).training_scores_,
    "IForest": lambda f: -IsolationForest(random_state=0).fit(indicators(f)).score_samples(indicators(f)),
    "LOF": lambda f: -LocalOutlierFactor(20).fit(indicators(f)).negative_outlier_factor_,
    "robust z": lambda f: robust(indicators(f)).max(axis=1),
    "forest residual": of_residuals,
}


def of_rows(scores: np.ndarray, rows: np.ndarray) -> tuple[float, float, float]:
    """Return AUC, average precision, and precision among as many rows as there are errors."""
    truth = np.zeros(len(scores), dtype=bool)
    truth[rows] = True
    first = np.argsort(-scores, kind="stable")[: len(rows)]
    return roc_auc_score(truth, scores), average_precision_score(truth, scores), truth[first].mean()


def study_planted(name: str, frame: pd.DataFrame, seed: int, totals: dict, rivals: bool, share: float = SHARE) -> None:
    """Plant errors in a table, look for them, and print a line."""
    dirty, done = planted(frame, seed, share)
    start = time.process_time()
    detector = CellwiseDetector(random_state=0).fit(dirty)
    seconds = time.process_time() - start
    found = detector.cells()
    rows = np.array([row for row, _, _ in done])
    named = {name: j for j, name in enumerate(found.names)}
    first = np.mean([named.get(column, -1) == found.worst[row] for row, column, _ in done])
    flagged = found.flagged.any(axis=1)
    false_cells = int(flagged.sum() - flagged[rows].sum())
    inside = [
        found.low[row, named[column]] <= frame[column].iloc[row] <= found.high[row, named[column]]
        for row, column, _ in done
        if column in named and pd.api.types.is_numeric_dtype(frame[column])
    ]
    figures = (*of_rows(detector.row_scores_, rows), first, flagged[rows].mean(), 1000.0 * false_cells / len(frame))
    totals["CellwiseDetector"].append((*figures[:3], seconds))
    totals["worst in row"].append(first)
    totals["flagged errors"].append(figures[4])
    totals["false rows of 1,000"].append(figures[5])
    totals["usual holds"].extend(inside)
    for row, _, kind in done:
        totals[f"kind {kind}"].append(row in set(np.argsort(-detector.row_scores_)[: len(rows)].tolist()))
    print(
        f"{name} {len(frame)} x {frame.shape[1]}, {len(done)} errors:",
        *(f"{x:.3f}" for x in figures),
        f"{seconds:.1f} s",
        flush=True,
    )
    for rival, judge in RIVALS.items() if rivals else ():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = judge(dirty)
        totals[rival].append((*of_rows(scores, rows), time.process_time() - start))


def study_pair(name: str, dirty: pd.DataFrame, clean: pd.DataFrame) -> None:
    """Look for the wrong cells of a table whose right values are known, and print the figures."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = CellwiseDetector(random_state=0).fit(dirty)
        found = detector.cells()
    seconds = time.process_time() - start
    old, new = (
        dirty[found.names].astype(object).fillna("").to_numpy(),
        clean[found.names].astype(object).fillna("").to_numpy(),
    )
    wrong, known = old != new, ~np.isnan(found.scores)
    scores = np.where(known, found.scores - found.bounds, -np.inf)
    right = int((wrong & known & (found.usual.astype(str) == new.astype(str))).sum())
    print(
        f"{name}: {wrong.sum()} wrong cells, {(wrong & known).sum()} of them known, {right} with the right usual value"
    )
    for words, truth, flags in (
        ("known cells", wrong & known, found.flagged),
        ("with absent cells", wrong, found.flagged | ~known),
    ):
        hits = (truth & flags).sum()
        bounds = np.quantile(scores[known], np.linspace(0.5, 0.999, 200))
        best = max(_f1(truth, (scores > bound) | (flags & ~known)) for bound in bounds)
        shares = f"precision {hits / max(flags.sum(), 1):.3f}, recall {hits / truth.sum():.3f}"
        print(f"  {words}: {shares}, F1 {_f1(truth, flags):.3f}, at the best bound {best:.3f}")
    ap = average_precision_score(wrong[known], found.scores[known])
    print(f"  average precision of known cells {ap:.3f}, {seconds:.1f} s", flush=True)


def _f1(truth: np.ndarray, flags: np.ndarray) -> float:
    return float(2.0 * (truth & flags).sum() / max(truth.sum() + flags.sum(), 1))


def read(path: Path) -> pd.DataFrame:
    """Read a table as it is, in words where a cell is no number."""
    return pd.read_csv(path)


def main() -> None:
    """Run the study on all tables of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--data", type=Path)
    which.add_argument("--clean", type=int, help="tables without errors of each kind and size")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--most", type=int, default=1000, help="rows that are drawn from longer tables")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--share", type=float, default=SHARE, help="of the rows that get an error")
    options = parser.parse_args()
    print("NAME rows x columns: AUC, AP, precision, worst in row, flagged, false in 1,000 rows, CPU s", flush=True)
    print("Means below, of detectors: AUC, AP, precision, CPU s (tables)\n", flush=True)
    if options.clean:
        study_clean(options.clean)
        return
    paths = [path for folder in (".", "mixed", "cells") for path in (options.data / folder).glob("*.csv*")]
    files = {path.name.partition(".csv")[0]: path for path in sorted(paths, key=lambda path: path.name)}
    if not files:
        parser.error(f"{options.data} has no tables (*.csv), nor have mixed and cells in it")
    totals: dict = defaultdict(list)
    for name, path in files.items():
        if name.endswith("-dirty") and name.replace("-dirty", "-clean") in files:
            pair = [pd.read_csv(p, dtype=str) for p in (path, files[name.replace("-dirty", "-clean")])]
            study_pair(name.removesuffix("-dirty"), *pair)
        elif not name.endswith(("-dirty", "-clean")):
            for seed in range(options.seeds):
                frame = read(path)
                frame = frame[[c for c in frame if frame[c].nunique() > 1]]
                frame = frame.iloc[np.random.default_rng(seed).permutation(len(frame))[: options.most]].reset_index(
                    drop=True
                )
                study_planted(name, frame, seed, totals, not options.no_rivals, options.share)
    for key, values in totals.items():
        means = np.mean(values, axis=0)
        print(f"{key:28}", *(f"{x:.3f}" for x in np.atleast_1d(means)), f"({len(values)})")


if __name__ == "__main__":
    main()
