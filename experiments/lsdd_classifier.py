"""The sign of pi p - (1 - pi) q as a classifier, and the regions where two samples differ most.

    python -m experiments.lsdd_classifier [--runs 10] [--size 200] [--seed 0] [--quick]

Two samples of 200 rows in 2 and 5 columns: normal distributions shifted in one column, or of different spread, and two pairs of
clusters on opposite corners ("corners", which no plane separates). New rows come from the first distribution with probability
pi, which is given to the classifiers. Printed are the errors, in per cent over the runs, of `LSDD.predict`, logistic regression
with weights for pi, the difference of two kernel density estimates weighted by pi (length scales by held-out likelihood), and
the Bayes rule.

The last two columns are the shares of the excess, counted in fresh rows, that `LSDD.level_set` says are 0.5 and 0.8.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from isopleth import LSDD
from isopleth.difference import KDEDifference

FRESH = 4000
MASSES = (0.5, 0.8)
PRIORS = (0.5, 0.2)
CENTERS = 200


def laws(name: str, dim: int) -> tuple[tuple[np.ndarray, float], tuple[np.ndarray, float]]:
    """Means of the clusters of each distribution, one in each row, and their standard deviation."""
    zero = np.zeros((1, dim))
    if name == "shift":
        return (1.5 * np.eye(1, dim), 1.0), (zero, 1.0)
    if name == "spread":
        return (zero, 0.6), (zero, 1.2)
    corner, other = np.zeros((2, 2, dim))
    corner[:, :2], other[:, :2] = [[1.2, 1.2], [-1.2, -1.2]], [[1.2, -1.2], [-1.2, 1.2]]
    return (corner, 0.8), (other, 0.8)


def draw(law: tuple[np.ndarray, float], n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows of a distribution."""
    means, deviation = law
    return means[rng.integers(len(means), size=n)] + deviation * rng.normal(size=(n, means.shape[1]))


def log_density(law: tuple[np.ndarray, float], rows: np.ndarray) -> np.ndarray:
    """Return the log density up to a constant that is the same for all distributions."""
    means, deviation = law
    squares = ((rows[:, None] - means) ** 2).sum(axis=2)
    size = np.log(len(means)) + means.shape[1] * np.log(deviation)
    return np.asarray(logsumexp(-0.5 * squares / deviation**2, axis=1) - size)


def one_run(name: str, dim: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return errors of shape (priors, classifiers), and shares in the regions, of shape (masses,)."""
    rng = np.random.default_rng([seed, dim])
    both = laws(name, dim)
    x, y = (draw(law, size, rng) for law in both)
    fresh = [draw(law, FRESH, rng) for law in both]
    rows, truth = np.concatenate(fresh), np.repeat([1, -1], FRESH)
    difference = LSDD(centers=CENTERS, random_state=seed, n_jobs=1).fit(x, y)
    densities = [density.score_samples(rows) for density in KDEDifference(frame="scale", n_jobs=1).fit(x, y).densities_]
    table, labels = np.concatenate([x, y]), np.repeat([1, -1], size)
    errors = []
    for prior in PRIORS:
        odds, share = np.log(prior / (1.0 - prior)), np.repeat([prior, 1.0 - prior], FRESH)
        model = LogisticRegression().fit(table, labels, sample_weight=np.repeat([2 * prior, 2 - 2 * prior], size))
        answers = (
            difference.predict(rows, priors=(prior, 1.0 - prior)),
            model.predict(rows),
            np.sign(densities[0] - densities[1] + odds),
            np.sign(log_density(both[0], rows) - log_density(both[1], rows) + odds),
        )
        errors.append([np.average(answer != truth, weights=share) for answer in answers])
    values = difference.difference(rows)
    _, high = difference.level_set(MASSES)
    excess = [truth[values >= threshold].sum() for threshold in high]
    return np.array(errors), np.array(excess) / truth[values > 0].sum()


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="samples for each line")
    parser.add_argument("--size", type=int, default=200, help="rows of each sample")
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the others follow")
    parser.add_argument("--quick", action="store_true", help="two columns only")
    options = parser.parse_args(arguments)
    heads = ("LSDD", "logistic", "KDEs", "Bayes", "region 0.5", "region 0.8")
    print(f"{'laws':<10}{'d':>3}{'pi':>5}" + "".join(f"{head:>12}" for head in heads), flush=True)
    for name in ("shift", "spread", "corners"):
        for dim in (2,) if options.quick else (2, 5):
            found = [one_run(name, dim, options.size, options.seed + run) for run in range(options.runs)]
            errors, regions = (np.mean([part[k] for part in found], axis=0) for k in range(2))
            for prior, line in zip(PRIORS, errors, strict=True):
                cells = "".join(f"{100 * error:>12.1f}" for error in line)
                shares = "".join(f"{share:>12.2f}" for share in regions) if prior == PRIORS[0] else ""
                print(f"{name:<10}{dim:>3}{prior:>5}{cells}{shares}", flush=True)


if __name__ == "__main__":
    main()
