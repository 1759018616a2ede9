"""Certified limits on the number of anomalies: how often one is false, and how high they are, beside two other ways.

    python -m experiments.certificates [--out FILE] [--runs 4000] [--rows 50 200 1000] [--laws ...] [--unsplit]
    python -m experiments.certificates --page FILE [--picture PNG]

Of 100 new rows a tenth are moved by 0, 2 or 6 standard deviations in each column. "violations" is the share of runs in which any
set of new rows, not only the first of the list, has fewer anomalies than its limit, with the upper 99 % limit of that share;
"mean" is the limit for all new rows where the ten are 6 standard deviations off, "first k" for the first k.

Given the scores, limits depend on ranks only, so that 50 sets of calibration rows and new rows are drawn for each fit.
In "groups of five" five reference rows are alike, and n is the number of groups.

Where nonconform is installed (Python 3.12), its bounds (Song, Jin and Candes 2026; truncated higher criticism, 10,000 draws) are
computed from the p-values of the same scores. ``--unsplit`` computes our limits from reference rows that are judged without
themselves, without the conditional laws, for which they are not proved; each run has a fit of its own then.

FILE has a line for each law, number of rows and way; a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from experiments.resumed import resumed
from isopleth import AnomalyDetector
from isopleth.core.budget import Budget
from isopleth.core.p_values import conformal_p_values
from isopleth.results.figures import BLUE, GREY, VERMILLION, new_figure, save_figure
from isopleth.tasks.anomaly.certificate import CONFIDENCE, Certificate, SplitScores
from isopleth.tasks.anomaly.training_table import NEW

try:
    from nonconform.fdr import FDPCertificate
except ImportError:
    FDPCertificate = None

Law = Callable[[np.random.Generator, int], np.ndarray]


def clusters(count: int) -> Law:
    """Tight clusters, far apart."""
    centres = 10.0 * np.random.default_rng(0).normal(size=(count, 3))
    return lambda rng, n: centres[rng.integers(count, size=n)] + 0.01 * rng.normal(size=(n, 3))


GROUPS, GROUP_ROWS, GROUP_NOISE = "groups of five", 5, 0.1
LAWS: dict[str, Law] = {
    "normal, 1 column": lambda rng, n: rng.normal(size=(n, 1)),
    "normal, 3 columns": lambda rng, n: rng.normal(size=(n, 3)),
    "normal, 20 columns": lambda rng, n: rng.normal(size=(n, 20)),
    "Student t3, 20 columns": lambda rng, n: rng.standard_t(3, size=(n, 20)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=(n, 3)),
    "log-normal, 5 columns": lambda rng, n: np.exp(1.5 * rng.normal(size=(n, 5))),
    "Poisson (2)": lambda rng, n: rng.poisson(2.0, size=(n, 3)).astype(float),
    "truth values": lambda rng, n: (rng.random((n, 6)) < 0.3).astype(float),
    "six tight clusters": clusters(6),
    "rounded": lambda rng, n: rng.normal(size=(n, 2)).round(1),
    GROUPS: lambda rng, n: rng.normal(size=(n, 3)) + GROUP_NOISE * rng.normal(size=(n, 3)),
}
NEW_ROWS, ANOMALIES = 100, 10
FAR = (0.0, 2.0, 6.0)
SETS = 50  # sets of calibration rows and new rows for each fit
WAYS = ("isopleth", "nonconform", "unsplit")
LISTED = 30  # rows of the lists in the picture
FIELDS = ["way", "law", "rows", "runs", "violations", "limit", "mean", *(f"first {k}" for k in range(1, LISTED + 1))]


class Verdict(NamedTuple):
    """Whether any set has fewer anomalies than its limit, and the limits for the first rows of the list."""

    false: bool
    limits: np.ndarray


def reference(name: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Reference rows, and their groups where the law has some."""
    if name != GROUPS:
        return LAWS[name](rng, n), None
    labels = np.repeat(np.arange(n), GROUP_ROWS)
    return rng.normal(size=(n, 3))[labels] + GROUP_NOISE * rng.normal(size=(len(labels), 3)), labels


def moved(new: np.ndarray, rng: np.random.Generator, spread: np.ndarray, far: float) -> np.ndarray:
    """New rows with the first of them moved."""
    signs = rng.choice([-1.0, 1.0], size=(ANOMALIES, new.shape[1]))
    return np.concatenate([new[:ANOMALIES] + far * spread * signs, new[ANOMALIES:]])


def ours(calibration: np.ndarray, new: np.ndarray, anomalies: int) -> Verdict:
    """Our limits."""
    certificate = Certificate.of(calibration, new, CONFIDENCE)
    counted = np.bincount(certificate.place[anomalies:], minlength=len(certificate.bounds) + 1)
    order = np.argsort(-new, kind="stable")
    return Verdict(bool((np.cumsum(counted)[:-1] > certificate.bounds).any()), certificate.at_least(order))


def theirs(calibration: np.ndarray, new: np.ndarray, anomalies: int) -> Verdict:
    """Limits of nonconform."""
    p = conformal_p_values(calibration, new)
    bounds = FDPCertificate.from_p_values(
        p, n_calibration=len(calibration), confidence=CONFIDENCE, seed=0, n_resamples=10_000
    )
    ends = np.unique(p)
    counts = np.searchsorted(np.sort(p), ends, side="right")
    ordinary = np.floor(counts * np.asarray(bounds.bound_at(ends)) + 1e-9)
    # A part of a set has no more ordinary rows than the set.
    limits = np.maximum(np.minimum(np.arange(1, len(new) + 1), counts[:, None]) - ordinary[:, None], 0.0).max(axis=0)
    beyond = np.searchsorted(np.sort(p[anomalies:]), ends, side="right")
    return Verdict(bool((beyond > ordinary).any()), limits)


def split(name: str, n: int, fits: Iterable[int]) -> Iterator[tuple[float, dict[str, Verdict]]]:
    """Verdicts on limits by scores of one half of the reference."""
    for fit in fits:
        rng = np.random.default_rng([n, fit])
        X, labels = reference(name, rng, n)
        scores = SplitScores.fit(X, X.shape[1], fit, Budget(2.0**30, 1), labels)
        held_out, spread = len(scores.calibration), X.std(axis=0)
        far = [FAR[i % len(FAR)] for i in range(SETS)]
        sets = [
            np.concatenate([LAWS[name](rng, held_out), moved(LAWS[name](rng, NEW_ROWS), rng, spread, far[i])])
            for i in range(SETS)
        ]
        surprise = scores.surprise(np.concatenate(sets), Budget(2.0**30, 1)).reshape(SETS, -1)
        for i in range(SETS):
            drawn = surprise[i, :held_out], surprise[i, held_out:], ANOMALIES if far[i] else 0
            found = {"isopleth": ours(*drawn)}
            yield far[i], found | ({} if FDPCertificate is None else {"nonconform": theirs(*drawn)})


def unsplit(name: str, n: int, fits: Iterable[int]) -> Iterator[tuple[float, dict[str, Verdict]]]:
    """Verdicts on limits by scores of all rows, by which each is judged without itself."""
    for fit in fits:
        rng = np.random.default_rng([n, fit])
        X, labels = reference(name, rng, n)
        detector = AnomalyDetector(novelty=True, fast=True, n_jobs=1, random_state=fit).fit(X, groups=labels)
        far = FAR[fit % len(FAR)]
        new = detector._frame.enter(moved(LAWS[name](rng, NEW_ROWS), rng, X.std(axis=0), far))
        surprise = detector._rule.surprises(new, np.full(NEW_ROWS, NEW), detector._budget).sum(axis=1)
        calibration = -detector.training_scores_[:: 1 if labels is None else GROUP_ROWS]
        yield far, {"unsplit": ours(calibration, surprise, ANOMALIES if far else 0)}


def study(name: str, n: int, runs: int, *, whole: bool) -> dict[str, list[float]]:
    """Violations of each way, their upper 99 % limit, and mean limits for all and for the first rows where anomalies are far."""
    found = list(unsplit(name, n, range(runs)) if whole else split(name, n, range(runs // SETS)))
    out = {}
    for way in found[0][1]:
        false = [verdicts[way].false for _, verdicts in found]
        count = int(np.sum(false))
        limits = np.mean([verdicts[way].limits for far, verdicts in found if far == FAR[-1]], axis=0)
        upper = 1.0 if count == len(false) else float(beta.ppf(0.99, count + 1, len(false) - count))
        out[way] = [count / len(false), upper, limits[-1], *limits[:LISTED]]
    return out


def page(lines: list[dict[str, str]]) -> str:
    """The table of a file of results."""
    out = []
    lines.sort(key=lambda line: int(line["rows"]))
    for n, group in groupby(lines, key=lambda line: line["rows"]):
        some = {(line["way"], line["law"]): line for line in group}
        ways = [way for way in WAYS if any(key[0] == way for key in some)]
        runs = {way: next(line["runs"] for key, line in some.items() if key[0] == way) for way in ways}
        out.append(f"{n} reference rows: violations (limit), mean; " + ", ".join(f"{w} {runs[w]} runs" for w in ways))
        out.append(" " * 24 + "".join(f"{way:>24}" for way in ways))
        for law in LAWS:
            cells = [some.get((way, law)) for way in ways]
            texts = [f"{c['violations']} ({c['limit']}) {c['mean']:>5}" if c else "" for c in cells]
            if any(texts):
                out.append((f"{law:<24}" + "".join(f"{text:>24}" for text in texts)).rstrip())
    return "\n".join(out)


def picture(lines: list[dict[str, str]], out: Path) -> None:
    """Draw the mean limits for the first k rows of the list, where ten of 100 new rows are 6 standard deviations off."""
    some = [line for line in lines if line["law"] == "normal, 3 columns"]
    rows = sorted({int(line["rows"]) for line in some})
    figure = new_figure(3.4 * len(rows), 3.4)
    k, shown = np.arange(1, LISTED + 1), {}
    for ax, n in zip(figure.subplots(1, len(rows), sharey=True, squeeze=False)[0], rows, strict=True):
        ax.plot(k, np.minimum(k, ANOMALIES), color=GREY, linestyle="--", label="anomalies, if these come first")
        for way, colour, style in zip(WAYS, (VERMILLION, BLUE, VERMILLION), ("-", "-", ":"), strict=True):
            for line in some:
                if (line["way"], line["rows"]) == (way, str(n)):
                    label = "isopleth, not split: not proved" if way == "unsplit" else way
                    limits = [float(line[f"first {i}"]) for i in k]
                    ax.step(k, limits, color=colour, linestyle=style, where="mid", label=label)
        ax.set(title=f"{n:,} reference rows", xlabel="rows in the list")
        shown |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    figure.axes[0].set_ylabel("mean lower limit on anomalies in it")
    figure.axes[-1].legend(shown.values(), shown.keys(), fontsize=7, loc="lower right")
    save_figure(figure, out)


def main() -> None:
    """Add to the file what is not in it yet, or print its table, or draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unsplit", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--rows", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--out", type=Path, default=Path("certificates.csv"))
    parser.add_argument("--page", type=Path, metavar="CSV", help="print the results in this file")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="with --page: draw mean limits into this file")
    options = parser.parse_args()
    if options.page:
        with options.page.open(newline="") as file:
            lines = list(csv.DictReader(file))
        print(page(lines))
        if options.picture:
            picture(lines, options.picture)
        return
    warnings.simplefilter("ignore")
    if FDPCertificate is not None:  # one envelope for each number of rows: its draws have one seed
        from nonconform._internal import fdp_bounds

        fdp_bounds.prepare_envelope = lru_cache(maxsize=None)(fdp_bounds.prepare_envelope)
    runs = options.runs or (200 if options.unsplit else 4000)
    ways = {"unsplit"} if options.unsplit else {"isopleth"}
    with resumed(options.out, FIELDS, 4) as (finished, add):
        for n in options.rows:
            for name in options.laws:
                if any((way, name, str(n), str(runs)) in finished for way in ways):
                    continue
                found = study(name, n, runs, whole=options.unsplit)
                add(
                    [way, name, n, runs, *(f"{v:.3f}" for v in values[:2]), *(f"{v:.2f}" for v in values[2:])]
                    for way, values in found.items()
                )


if __name__ == "__main__":
    main()
