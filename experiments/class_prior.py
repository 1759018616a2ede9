"""Shares of classes among unlabelled rows, and what they do for a classifier (paper, Fig. 10).

    python -m experiments.class_prior --data DIR [--quick] [--runs 100] [--out FIGURE] [--jobs N]
    python -m experiments.class_prior --made-up [--quick] [--runs 100]

DIR holds uci/{australian,pima,german,heart_statlog}.tsv.gz. In each run 20 rows of each class are labelled, and of 50 others
round(50 pi) are of class 1, for pi = 0.1, ..., 0.9. Beside ClassPriorEstimator stand EMQ (with logistic regression) and EDx
(the energy distance) of QuaPy, which see the same rows, standardised by the labelled ones. Printed are the mean squared
errors with their standard errors, the paired difference to the better one of these on the table, how often the 95 % interval
holds the share and how wide it is, and the share of rows that regularised least squares, weighted by these shares, classifies
wrongly; "none" and "true" are no weights and those of the true shares.

With --made-up the classes are normal, around corners so many standard deviations from the origin in five columns, and the classes
of the unlabelled rows are drawn. Printed is how often the interval of each share holds it, and the root mean squared error of the
share.

With --absent a class is rare or missing among the unlabelled rows: three normal classes in the plane, at the corners of a
triangle or on a line, and four at those of a square; the unlabelled rows have the given shares exactly, but for the rare class,
where they are drawn. Printed are the root mean squared errors of all shares, of ours, of EMQ (our own loop, with logistic
regression) and of counting what linear discriminant analysis predicts, and how often our intervals hold each share.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from isopleth import ClassPriorEstimator
from isopleth.errors import InputError, require
from isopleth.plotting import check_figure_target, save_figure
from isopleth.plotting.style import BLUE, GREY, VERMILLION, new_figure

TABLES = ("australian", "pima", "german", "heart_statlog")
PRIORS = tuple(k / 10 for k in range(1, 10))
LABELLED, UNLABELLED = 20, 50
METHODS = ("isopleth", "EMQ", "EDx")
WEIGHTS = (*METHODS, "none", "true")
# Distance of the corners, labelled rows a class, unlabelled rows, and shares.
MADE_UP = (
    (1.0, 20, 50, (0.1, 0.9)),
    (2.0, 20, 50, (0.1, 0.9)),
    (1.5, 20, 500, (0.2, 0.8)),
    (1.5, 5, 500, (0.2, 0.8)),
    (1.0, 100, 500, (0.3, 0.7)),
    (1.0, 20, 50, (0.2, 0.7, 0.1)),
    (2.0, 20, 50, (0.2, 0.8, 0.0)),
    (2.0, 20, 100, (0.4, 0.3, 0.2, 0.1)),
    (1.5, 30, 200, (0.5, 0.2, 0.2, 0.1, 0.0)),
)

TRIANGLE = np.stack([np.cos(np.arange(3) * 2.0 * np.pi / 3.0), np.sin(np.arange(3) * 2.0 * np.pi / 3.0)], axis=1)
SQUARE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
LINE = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
ABSENT = {
    "triangle, 3": (3.0 * TRIANGLE, 60, 300, (0.5, 0.5, 0.0)),
    "triangle, 2": (2.0 * TRIANGLE, 60, 300, (0.5, 0.5, 0.0)),
    "triangle, 1.5": (1.5 * TRIANGLE, 60, 300, (0.5, 0.5, 0.0)),
    "triangle, 3, more": (3.0 * TRIANGLE, 200, 1000, (0.5, 0.5, 0.0)),
    "triangle, 3, rare": (3.0 * TRIANGLE, 60, 300, (0.49, 0.49, 0.02)),
    "square, 3": (3.0 * SQUARE, 60, 300, (0.5, 0.5, 0.0, 0.0)),
    "line, 3, middle": (3.0 * LINE, 60, 300, (0.5, 0.0, 0.5)),
    "line, 3, end": (3.0 * LINE, 60, 300, (0.5, 0.5, 0.0)),
}
# Centres with their distance from the middle, labelled rows of each class, unlabelled rows, and shares.


@cache
def table(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes, the last column."""
    path = data / "uci" / f"{name}.tsv.gz"
    if not path.exists():
        raise InputError(f"{path} is not there; it is the table of that name of the UCI repository, as PMLB has it.")
    values = np.genfromtxt(path, skip_header=1)
    return values[:, :-1], values[:, -1].astype(int)


def split(y: np.ndarray, prior: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of labelled and of unlabelled rows."""
    rng = np.random.default_rng(seed)
    ones, zeros = (rng.permutation(np.flatnonzero(y == k)) for k in (1, 0))
    count = round(prior * UNLABELLED)
    unlabelled = (ones[LABELLED : LABELLED + count], zeros[LABELLED : LABELLED + UNLABELLED - count])
    return np.concatenate([ones[:LABELLED], zeros[:LABELLED]]), np.concatenate(unlabelled)


def other_methods(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> list[float]:
    """Shares of class 1 by EMQ and by EDx."""
    aggregative = require("quapy.method.aggregative", "bench", "This study")
    direct = require("quapy.method.non_aggregative", "bench", "This study")
    from sklearn.linear_model import LogisticRegression

    out = []
    for quantifier in (aggregative.EMQ(LogisticRegression()), direct.EDx()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out.append(float(quantifier.fit(x, y).predict(new)[1]))
    return out


def one_run(task: tuple[str, float, int], data: Path) -> np.ndarray:
    """Errors of the shares, whether the interval holds the true one and its width, and the shares of wrong classes."""
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    name, prior, seed = task
    X, y = table(data, name)
    labelled, unlabelled = split(y, prior, seed)
    x, classes, new = X[labelled], y[labelled], X[unlabelled]
    estimator = ClassPriorEstimator(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimator.fit(x, classes).estimate(new)
    scaler = StandardScaler().fit(x)
    shares = [float(found.priors[1]), *other_methods(scaler.transform(x), classes, scaler.transform(new)), 0.5, prior]
    wrong = []
    for share in shares:
        priors = replace(found, priors=np.array([1.0 - share, share]))
        fitted = estimator.reweight(make_pipeline(StandardScaler(), RidgeClassifier(alpha=1.0)), priors)
        wrong.append(float(np.mean(fitted.predict(new) != y[unlabelled])))
    errors = [(share - prior) ** 2 for share in shares[: len(METHODS)]]
    return np.array([*errors, found.lower[1] <= prior <= found.upper[1], found.upper[1] - found.lower[1], *wrong])


def study(data: Path, runs: int, jobs: int) -> dict[str, np.ndarray]:
    """Results by table, of shape (priors, runs, what one run gives), printed as they come."""
    out = {}
    with ProcessPoolExecutor(jobs) as pool:
        for name in TABLES:
            tasks = [(name, prior, run) for prior in PRIORS for run in range(runs)]
            found = np.array(list(pool.map(partial(one_run, data=data), tasks, chunksize=10)))
            out[name] = found.reshape(len(PRIORS), runs, -1)
            report(name, found)
    return out


def report(name: str, found: np.ndarray) -> None:
    """Print what was found on one table."""
    errors = found[:, : len(METHODS)]
    mean, error = errors.mean(axis=0), errors.std(axis=0) / np.sqrt(len(errors))
    best = 1 + int(np.argmin(mean[1:]))
    difference = errors[:, 0] - errors[:, best]
    cells = "  ".join(f"{m} {a:.4f}+-{b:.4f}" for m, a, b in zip(METHODS, mean, error, strict=True))
    print(f"{name}: mean squared error  {cells}")
    print(
        f"    isopleth less {METHODS[best]}: {difference.mean():+.4f}+-{difference.std() / np.sqrt(len(difference)):.4f}; "
        f"interval holds {found[:, 3].mean():.1%}, width {found[:, 4].mean():.2f}"
    )
    wrong = "  ".join(f"{w} {v:.3f}" for w, v in zip(WEIGHTS, found[:, 5:].mean(axis=0), strict=True))
    print(f"    classified wrongly  {wrong}", flush=True)


def made_up(runs: int) -> None:
    """Print how often intervals hold the shares of normal classes."""
    for distance, labelled, unlabelled, shares in MADE_UP:
        corners, held, errors = distance * np.eye(5), [], []
        for run in range(runs):
            rng = np.random.default_rng(run)
            y, hidden = np.repeat(np.arange(len(shares)), labelled), rng.choice(len(shares), unlabelled, p=shares)
            x, new = (rng.normal(size=(len(classes), 5)) + corners[classes] for classes in (y, hidden))
            found = ClassPriorEstimator(random_state=run).fit(x, y).estimate(new)
            held.append((found.lower <= shares) & (shares <= found.upper))
            errors.append(found.priors - shares)
        cells = zip(shares, np.mean(held, axis=0), np.sqrt(np.mean(np.square(errors), axis=0)), strict=True)
        text = "  ".join(f"{share}: {hit:.1%} ({error:.3f})" for share, hit, error in cells)
        print(f"distance {distance}, {labelled} labelled, {unlabelled} not   {text}", flush=True)


def emq(probabilities: np.ndarray, rounds: int = 200) -> np.ndarray:
    """Return shares by expectation maximisation, from probabilities for classes of equal shares."""
    shares = np.full(probabilities.shape[1], 1.0 / probabilities.shape[1])
    for _ in range(rounds):
        weighted = probabilities * shares
        shares = (weighted / weighted.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def absent(runs: int) -> None:
    """Print errors and coverage where a class is rare or missing."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression

    for name, (centers, labelled, unlabelled, shares) in ABSENT.items():
        classes, errors, held = len(centers), [], []
        for run in range(runs):
            rng = np.random.default_rng([run, sum(map(ord, name))])
            y = np.repeat(np.arange(classes), labelled)
            hidden = np.repeat(np.arange(classes), np.round(np.array(shares) * unlabelled).astype(int))
            if min(shares) > 0.0:
                hidden = rng.choice(classes, unlabelled, p=shares)
            x, new = (rng.normal(size=(len(each), 2)) + centers[each] for each in (y, hidden))
            found = ClassPriorEstimator(random_state=run).fit(x, y).estimate(new)
            counted = np.bincount(LinearDiscriminantAnalysis().fit(x, y).predict(new), minlength=classes) / len(new)
            expected = emq(LogisticRegression(max_iter=300).fit(x, y).predict_proba(new))
            errors.append([found.priors - shares, expected - shares, counted - shares])
            held.append((found.lower <= shares) & (shares <= found.upper))
        cells = zip(("ours", "EMQ", "counting"), np.sqrt(np.mean(np.square(errors), axis=(0, 2))), strict=True)
        text = "  ".join(f"{method} {error:.4f}" for method, error in cells)
        print(f"{name:<18} rms {text}   holds {'  '.join(f'{h:.1%}' for h in np.mean(held, axis=0))}", flush=True)


def draw(found: dict[str, np.ndarray], path: Path) -> None:
    """Mean squared errors with standard errors against the share, a panel a table."""
    figure = new_figure(11.0, 3.2)
    panels = figure.subplots(1, len(found))
    for axes, (name, results) in zip(panels, found.items(), strict=True):
        for i, (method, color) in enumerate(zip(METHODS, (BLUE, VERMILLION, GREY), strict=True)):
            errors = results[:, :, i]
            spread = errors.std(axis=1) / np.sqrt(errors.shape[1])
            axes.errorbar(PRIORS, errors.mean(axis=1), spread, fmt="o-", markersize=4, color=color, label=method)
        axes.set(xlabel="share of class 1", title=name)
        axes.set_ylim(bottom=0.0)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("mean squared error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Print the errors and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="folder with uci/ in it")
    source.add_argument("--made-up", action="store_true", help="normal classes instead")
    source.add_argument("--absent", action="store_true", help="normal classes, one of which is rare or missing")
    parser.add_argument("--runs", type=int, default=100, help="splits for each table and share")
    parser.add_argument("--quick", action="store_true", help="ten splits")
    parser.add_argument("--out", type=Path, help="figure of the errors")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(arguments)
    runs = 10 if options.quick else options.runs
    if options.made_up:
        made_up(runs)
        return
    if options.absent:
        absent(runs)
        return
    if options.out:
        check_figure_target(options.out)
    found = study(options.data, runs, options.jobs)
    if options.out:
        draw(found, options.out)


if __name__ == "__main__":
    main()
