"""Flags, selected rows and probabilities of the default detector on ADBench's tables.

    python -m experiments.adbench_flags --data DIR [--seeds 1 2 3] [--picture FILE]

DIR holds a folder ``adbench``. The training rows of each split are fitted and judged. Printed are the mean Matthews
correlation of the flags over the tables, beside cuts of the same scores and of IsolationForest's; the rows that
:meth:`AnomalyDetector.select` gives; and, for :meth:`AnomalyDetector.anomaly_probability`, how many of the rows of each
probability are anomalies.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import train_test_split

from experiments.adbench_boards import MAX_ROWS, tables
from isopleth import AnomalyDetector
from isopleth.results.figures import BLUE, GREY, check_figure_target, halo, new_figure, save_figure

EDGES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def training_rows(path: Path, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The training rows of the board's split, and their labels."""
    with np.load(path) as file:
        X, y = file["X"].astype(float), file["y"].astype(int).ravel()
    if len(X) > MAX_ROWS:
        chosen = np.random.default_rng(seed).choice(len(X), size=MAX_ROWS, replace=False)
        X, y = X[chosen], y[chosen]
    train, _, y_train, _ = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    return train, y_train


def verdicts(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows called anomalies, rule by rule, and probabilities."""
    detector = AnomalyDetector(random_state=seed).fit(X)
    scores = detector.training_scores_
    forest = IsolationForest(random_state=seed).fit(X)
    called = {
        'contamination="auto"': detector.training_labels_ == -1,
        "select(fdr=0.1)": detector.select(fdr=0.1),
        "its scores, cut at 10 %": scores < np.quantile(scores, 0.1),
        "its scores, cut at the true share": scores < np.quantile(scores, y.mean()),
        "IsolationForest's own rule": forest.predict(X) == -1,
    }
    return called, detector.anomaly_probability()


def reliability(probabilities: list[np.ndarray], labels: list[np.ndarray]) -> list[str]:
    """Mean probability and share of anomalies in each class of probabilities, all tables together."""
    p, y = np.concatenate(probabilities), np.concatenate(labels)
    out = [f"{'probability':<16}{'rows':>9}{'mean said':>12}{'anomalies':>12}"]
    for low, high in pairwise(EDGES):
        inside = (p >= low) & (p < high)
        if inside.any():
            said, true = 100 * p[inside].mean(), 100 * y[inside].mean()
            out.append(f"{low:.2f} to {high:.2f}    {inside.sum():>9}{said:>10.1f} %{true:>10.1f} %")
    return out


def draw(probabilities: list[np.ndarray], labels: list[np.ndarray], path: Path) -> None:
    """Draw the reliability diagram: what was said, and how many of these rows are labelled as anomalies."""
    p, y = np.concatenate(probabilities), np.concatenate(labels)
    classes = ((p >= low) & (p < high) for low, high in pairwise(EDGES))
    inside = [rows for rows in classes if rows.any()]
    said, true = (np.array([100 * values[rows].mean() for rows in inside]) for values in (p, y))
    figure = new_figure(5, 4.4)
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=0.9, linestyle="--", label="as often as said")
    axes.plot(said, true, "o-", color=BLUE, markersize=5, label="all tables")
    rising = [False, *(np.diff(true) > 0.0)]
    for x, height, rows, up in zip(said, true, inside, rising, strict=True):
        # On the side away from the diagonal, unless the line comes from there.
        place = {"xytext": (5, 6), "ha": "right"} if up and height > x else {"xytext": (6, -9)}
        axes.annotate(
            f"{rows.sum():,}", (x, height), textcoords="offset points", fontsize=8, path_effects=halo(), **place
        )
    axes.set(
        xlabel="probability of an anomaly, %",
        ylabel="rows labelled as anomalies, %",
        xlim=(-2, 108),
        ylim=(-2, 104),
    )
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    save_figure(figure, path)


def selected_by_table(selected: dict[str, list[np.ndarray]]) -> list[str]:
    """Return the rows selected in each table with any, all seeds together, and how many of them are labelled ordinary."""
    out = [f"{'select(fdr=0.1), by table':<36}{'selected':>9}{'of these ordinary':>19}"]
    for name, parts in selected.items():
        labels = np.concatenate(parts)
        if len(labels):
            out.append(f"{name:<36}{len(labels):>9}{100 * (labels == 0).mean():>17.1f} %")
    return out


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--picture", type=Path, help="draw the reliability diagram in this file")
    options = parser.parse_args()
    if options.picture:
        check_figure_target(options.picture)
    files = tables(options.data, "adbench")
    if not files:
        sys.exit(f"{options.data / 'adbench'} holds no .npz files; ADBench's classical sets are expected there.")
    found = defaultdict(list)
    probabilities, labels = [], []
    selected = defaultdict(list)
    for path in files:
        for seed in options.seeds:
            X, y = training_rows(path, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                called, probability = verdicts(X, y, seed)
            for name, rows in called.items():
                wrong = 100 * (y[rows] == 0).mean() if rows.any() else np.nan
                found[name].append((100 * matthews_corrcoef(y, rows), 100 * rows.mean(), wrong))
            selected[path.stem].append(y[called["select(fdr=0.1)"]])
            probabilities.append(probability)
            labels.append(y)
    print(f"{len(files)} tables, seeds {' '.join(map(str, options.seeds))}")
    print(f"{'':<36}{'Matthews':>9}{'flagged':>10}{'of these ordinary':>19}")
    for name, values in found.items():
        correlation, flagged, _ = np.mean(values, axis=0)
        wrong = np.nanmean([v[2] for v in values])
        print(f"{name:<36}{correlation:>9.1f}{flagged:>8.1f} %{wrong:>17.1f} %")
    print("\n".join([*selected_by_table(selected), *reliability(probabilities, labels)]))
    if options.picture:
        draw(probabilities, labels, options.picture)


if __name__ == "__main__":
    main()
