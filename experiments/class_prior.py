"""Shares of classes among unlabelled rows, and what they do for a classifier (paper, Fig. 10).

    python -m experiments.class_prior --data DIR --results FILE [--labelled 20 100] [--quick] [--runs 100] [--out FIGURE]
        [--jobs N]
    python -m experiments.class_prior --made-up --results FILE [--quick] [--runs 300] [--jobs N]

DIR holds uci/{australian,pima,german,heart_statlog}.tsv.gz. In each run 20 rows of each class are labelled, and of 50 others
round(50 pi) are of class 1, for pi = 0.1, ..., 0.9; then the same with 100 labelled rows of each class, or as many as the table
leaves. Beside ClassPriorEstimator stand EMQ and KDEy-ML (with logistic regression) and EDx (the energy distance) of QuaPy, with
their defaults, which see the same rows, standardised by the labelled ones. Printed are the mean squared errors with their
standard errors, the paired differences to each other method, how often the 95 % interval holds the share and how wide it is, and
the share of rows that regularised least squares, weighted by these shares, classifies wrongly; "none" and "true" are no weights
and those of the true shares.

With --made-up the classes are normal with covariance 1: in the plane around the corners of a triangle or square or around points
on a line, and in five columns around points on the axes. Some classes are rare or absent among the unlabelled rows. These have
the given shares exactly. Printed are the root mean squared errors of all shares: of ours, of EMQ with logistic regression, of
counting what linear discriminant analysis predicts, and of EMQ with the true densities, which nobody has. Then follows how often
our 95 % intervals hold each share: those for the rows; and those for the population, for other unlabelled rows, whose classes are
drawn.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.special import softmax

from experiments.resumed import resumed
from isopleth import ClassPriorEstimator
from isopleth.core.errors import InputError, require
from isopleth.results.figures import BLACK, BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure

TABLES = ("australian", "pima", "german", "heart_statlog")
PRIORS = tuple(k / 10 for k in range(1, 10))
LABELLED, UNLABELLED = (20, 100), 50
METHODS = ("isopleth", "EMQ", "KDEy-ML", "EDx")
WEIGHTS = (*METHODS, "none", "true")
FIELDS = ["task", "run", "values"]
TRIANGLE = np.stack([np.cos(np.arange(3) * 2.0 * np.pi / 3.0), np.sin(np.arange(3) * 2.0 * np.pi / 3.0)], axis=1)
SQUARE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
LINE = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
PAIR, AXES = SQUARE[[0, 2]], np.eye(5)
# Means of the classes, labelled rows of each class, unlabelled rows, and shares. Numbers in names are distances from the middle.
MADE_UP = {
    "triangle 3": (3.0 * TRIANGLE, 60, 300, (0.5, 0.5, 0.0)),
    "triangle 2.5": (2.5 * TRIANGLE, 60, 300, (0.5, 0.5, 0.0)),
    "triangle 2": (2.0 * TRIANGLE, 60, 300, (0.5, 0.5, 0.0)),
    "triangle 1.5": (1.5 * TRIANGLE, 60, 300, (0.5, 0.5, 0.0)),
    "triangle 3, more rows": (3.0 * TRIANGLE, 200, 1000, (0.5, 0.5, 0.0)),
    "triangle 3, rare": (3.0 * TRIANGLE, 60, 300, (0.49, 0.49, 0.02)),
    "square 3, two absent": (3.0 * SQUARE, 60, 300, (0.5, 0.5, 0.0, 0.0)),
    "line 3, middle absent": (3.0 * LINE, 60, 300, (0.5, 0.0, 0.5)),
    "line 3, end absent": (3.0 * LINE, 60, 300, (0.5, 0.5, 0.0)),
    "pair 2, one absent": (2.0 * PAIR, 60, 300, (0.0, 1.0)),
    "axes 2, one absent": (2.0 * AXES[:3], 20, 50, (0.2, 0.8, 0.0)),
    "axes 1.5, one absent": (1.5 * AXES, 30, 200, (0.5, 0.2, 0.2, 0.1, 0.0)),
    "triangle 3, all": (3.0 * TRIANGLE, 60, 300, (1 / 3, 1 / 3, 1 / 3)),
    "triangle 2, all": (2.0 * TRIANGLE, 60, 300, (0.6, 0.3, 0.1)),
    "triangle 1.5, all": (1.5 * TRIANGLE, 60, 300, (1 / 3, 1 / 3, 1 / 3)),
    "square 2, all": (2.0 * SQUARE, 60, 300, (0.25, 0.25, 0.25, 0.25)),
    "line 3, all": (3.0 * LINE, 60, 300, (1 / 3, 1 / 3, 1 / 3)),
    "pair 2, all": (2.0 * PAIR, 60, 300, (0.3, 0.7)),
    "pair 1, all": (1.0 * PAIR, 60, 300, (0.3, 0.7)),
    "axes 2, all": (2.0 * AXES[:2], 20, 50, (0.1, 0.9)),
    "axes 1, all": (1.0 * AXES[:2], 20, 50, (0.1, 0.9)),
    "axes 1.5, all": (1.5 * AXES[:2], 20, 500, (0.2, 0.8)),
    "axes 1.5, 5 labelled": (1.5 * AXES[:2], 5, 500, (0.2, 0.8)),
    "axes 1, 100 labelled": (1.0 * AXES[:2], 100, 500, (0.3, 0.7)),
    "axes 1, three": (1.0 * AXES[:3], 20, 50, (0.2, 0.7, 0.1)),
    "axes 2, four": (2.0 * AXES[:4], 20, 100, (0.4, 0.3, 0.2, 0.1)),
}


@cache
def table(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes, the last column."""
    path = data / "uci" / f"{name}.tsv.gz"
    if not path.exists():
        raise InputError(f"{path} is not there; it is the table of that name of the UCI repository, as PMLB has it.")
    values = np.genfromtxt(path, skip_header=1)
    return values[:, :-1], values[:, -1].astype(int)


def split(y: np.ndarray, prior: float, labelled: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of labelled and of unlabelled rows.

    A class with fewer rows than `labelled` and the most unlabelled ones together leaves fewer labelled rows, in both classes.
    """
    rng = np.random.default_rng(seed)
    labelled = min(labelled, int(np.bincount(y).min()) - round(max(PRIORS) * UNLABELLED))
    ones, zeros = (rng.permutation(np.flatnonzero(y == k)) for k in (1, 0))
    count = round(prior * UNLABELLED)
    unlabelled = (ones[labelled : labelled + count], zeros[labelled : labelled + UNLABELLED - count])
    return np.concatenate([ones[:labelled], zeros[:labelled]]), np.concatenate(unlabelled)


def other_methods(x: np.ndarray, y: np.ndarray, new: np.ndarray, seed: int) -> list[float]:
    """Return the shares of class 1 by the methods of QuaPy, with their defaults and logistic regression."""
    aggregative = require("quapy.method.aggregative", "bench", "This study")
    direct = require("quapy.method.non_aggregative", "bench", "This study")
    from sklearn.linear_model import LogisticRegression

    methods = (
        aggregative.EMQ(LogisticRegression()),
        aggregative.KDEyML(LogisticRegression(), random_state=seed),
        direct.EDx(),
    )
    out = []
    for quantifier in methods:
        np.random.seed(seed)  # QuaPy draws the folds of its cross-validation from this state  # noqa: NPY002
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out.append(float(quantifier.fit(x, y).predict(new)[1]))
    return out


def one_share(name: str, rows: int, prior: float, seed: int, data: Path) -> np.ndarray:
    """Return squared errors, whether the interval contains the share and its width, and shares of wrong classes."""
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = table(data, name)
    labelled, unlabelled = split(y, prior, rows, seed)
    x, classes, new = X[labelled], y[labelled], X[unlabelled]
    estimator = ClassPriorEstimator(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimator.fit(x, classes).estimate(new)
    scaler = StandardScaler().fit(x)
    others = other_methods(scaler.transform(x), classes, scaler.transform(new), seed)
    shares = [float(found.priors[1]), *others, 0.5, prior]
    wrong = []
    for share in shares:
        priors = replace(found, priors=np.array([1.0 - share, share]))
        fitted = estimator.reweight(make_pipeline(StandardScaler(), RidgeClassifier(alpha=1.0)), priors)
        wrong.append(float(np.mean(fitted.predict(new) != y[unlabelled])))
    errors = [(share - prior) ** 2 for share in shares[: len(METHODS)]]
    return np.array([*errors, found.lower[1] <= prior <= found.upper[1], found.upper[1] - found.lower[1], *wrong])


def one_split(task: str, run: int, data: Path) -> np.ndarray:
    """Return what :func:`one_share` gives for every share, for a task such as "pima 20"."""
    name, rows = task.split()
    return np.concatenate([one_share(name, int(rows), prior, run, data) for prior in PRIORS])


def collected(
    measure: Callable[[str, int], np.ndarray], tasks: list[str], runs: int, path: Path, jobs: int
) -> dict[str, np.ndarray]:
    """Return the results of each task as an array of shape (runs, ...), after adding the missing ones to the file."""
    with resumed(path, FIELDS, 2) as (finished, add), ProcessPoolExecutor(jobs) as pool:
        missing = [(task, run) for run in range(runs) for task in tasks if (task, str(run)) not in finished]
        if missing:
            values = pool.map(measure, *zip(*missing, strict=True))
            for (task, run), found in zip(missing, values, strict=True):
                add([[task, run, " ".join(f"{value:.9g}" for value in found)]])
    with path.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if int(line["run"]) < runs]
    return {task: np.array([line["values"].split() for line in lines if line["task"] == task], float) for task in tasks}


def report(name: str, found: np.ndarray) -> None:
    """Print what was found on one table."""
    count = len(METHODS)
    errors = found[:, :count]
    mean, error = errors.mean(axis=0), errors.std(axis=0) / np.sqrt(len(errors))
    cells = "  ".join(f"{m} {a:.4f}+-{b:.4f}" for m, a, b in zip(METHODS, mean, error, strict=True))
    print(f"{name}: mean squared error  {cells}")
    differences = errors[:, :1] - errors[:, 1:]
    mean, error = differences.mean(axis=0), differences.std(axis=0) / np.sqrt(len(errors))
    cells = "  ".join(f"{m} {a:+.4f}+-{b:.4f}" for m, a, b in zip(METHODS[1:], mean, error, strict=True))
    print(f"    isopleth less  {cells}")
    print(f"    interval holds {found[:, count].mean():.1%}, width {found[:, count + 1].mean():.2f}")
    wrong = "  ".join(f"{w} {v:.3f}" for w, v in zip(WEIGHTS, found[:, count + 2 :].mean(axis=0), strict=True))
    print(f"    classified wrongly  {wrong}", flush=True)


def emq(probabilities: np.ndarray) -> np.ndarray:
    """Return shares by expectation maximisation, from probabilities for classes of equal shares."""
    shares = np.full(probabilities.shape[1], 1.0 / probabilities.shape[1])
    for _ in range(1000):
        weighted = probabilities * shares
        last, shares = shares, (weighted / weighted.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(shares - last).max() < 1e-6:
            break
    return shares


def one_draw(name: str, run: int, first_seed: int) -> np.ndarray:
    """Return the errors of the four estimates, and whether the intervals for rows and for the population hold, by class."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression

    centers, labelled, unlabelled, given = MADE_UP[name]
    shares, classes = np.array(given), len(centers)
    rng = np.random.default_rng([first_seed + run, *name.encode()])
    y = np.repeat(np.arange(classes), labelled)
    exact = np.repeat(np.arange(classes), np.round(shares * unlabelled).astype(int))
    drawn = rng.choice(classes, unlabelled, p=shares)
    x, new, other = (rng.normal(size=(len(each), centers.shape[1])) + centers[each] for each in (y, exact, drawn))
    estimator = ClassPriorEstimator(random_state=run).fit(x, y)
    found, wider = estimator.estimate(new), estimator.estimate(other, population=True)
    counted = np.bincount(LinearDiscriminantAnalysis().fit(x, y).predict(new), minlength=classes) / len(new)
    expected = emq(LogisticRegression(max_iter=300).fit(x, y).predict_proba(new))
    known = emq(softmax(new @ centers.T - 0.5 * np.square(centers).sum(axis=1), axis=1))
    errors = np.array([found.priors, expected, counted, known]) - shares
    holds = [(each.lower <= shares) & (shares <= each.upper) for each in (found, wider)]
    return np.concatenate([*errors, *holds])


def report_made_up(found: dict[str, np.ndarray]) -> None:
    """Print errors and how often intervals hold the shares of normal classes."""
    width = max(map(len, found))
    print(f"{'':<{width}}  ours    EMQ     counting  true densities  intervals for rows hold; for the population hold")
    for name, values in found.items():
        parts = values.reshape(len(values), 6, -1)
        errors = "  ".join(f"{error:.4f}" for error in np.sqrt(np.square(parts[:, :4]).mean(axis=(0, 2))))
        rows, population = (" ".join(f"{share:.1%}" for share in each) for each in parts[:, 4:].mean(axis=0))
        print(f"{name:<{width}}  {errors}          {rows}; {population}")


def draw(found: dict[str, np.ndarray], path: Path) -> None:
    """Mean squared errors with standard errors against the share, a panel a table."""
    figure = new_figure(11.0, 3.2)
    panels = figure.subplots(1, len(found))
    for axes, (name, results) in zip(panels, found.items(), strict=True):
        for i, (method, color) in enumerate(zip(METHODS, (BLUE, VERMILLION, BLACK, GREY), strict=True)):
            errors = results[:, :, i]
            spread = errors.std(axis=0) / np.sqrt(len(errors))
            axes.errorbar(PRIORS, errors.mean(axis=0), spread, fmt="o-", markersize=4, color=color, label=method)
        axes.set(xlabel="share of class 1", title=name)
        axes.set_ylim(bottom=0.0)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("mean squared error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(METHODS), frameon=False)
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Print the errors and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="folder with uci/ in it")
    source.add_argument("--made-up", action="store_true", help="normal classes instead")
    parser.add_argument(
        "--runs", type=int, help="splits for each table and share (default: 100), or draws (default: 300)"
    )
    parser.add_argument(
        "--labelled", type=int, nargs="+", default=LABELLED, metavar="N", help="labelled rows of each class"
    )
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first draw of made-up classes")
    parser.add_argument("--quick", action="store_true", help="ten splits")
    parser.add_argument(
        "--results", type=Path, required=True, help="CSV file of all runs, to which a run adds what is missing"
    )
    parser.add_argument("--out", type=Path, help="figure of the errors")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(arguments)
    runs = 10 if options.quick else options.runs or (300 if options.made_up else 100)
    if options.made_up:
        measure = partial(one_draw, first_seed=options.first_seed)
        report_made_up(collected(measure, list(MADE_UP), runs, options.results, options.jobs))
        return
    if options.out:
        check_figure_target(options.out)
    tasks = [f"{name} {labelled}" for labelled in options.labelled for name in TABLES]
    splits = collected(partial(one_split, data=options.data), tasks, runs, options.results, options.jobs)
    for task, values in splits.items():
        report(task, values.reshape(runs * len(PRIORS), -1))
    if options.out:
        draw(
            {name: splits[f"{name} {options.labelled[0]}"].reshape(runs, len(PRIORS), -1) for name in TABLES},
            options.out,
        )


if __name__ == "__main__":
    main()
