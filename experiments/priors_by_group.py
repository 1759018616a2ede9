"""How often intervals of the shares of classes in groups of rows hold the shares there.

    python -m experiments.priors_by_group [--runs 40] [--seed 0]

Normal classes in three columns, their centres `gap` apart along columns of their own. Eight settings: two or three classes, two
gaps, and 20 or 60 labelled rows of each class. 25, 50, 100 and 200 unlabelled rows are in four groups with shares of their own,
of which one lacks a class. Printed are the share of 95 % intervals, over runs, groups and classes, that hold the share among the
rows of the group, the standard error over runs, and the median width.
"""

from __future__ import annotations

import argparse

import numpy as np

from isopleth import ClassPriorEstimator

SIZES = (25, 50, 100, 200)
SHARES = {
    2: ((0.5, 0.5), (0.2, 0.8), (0.9, 0.1), (0.0, 1.0)),
    3: ((0.3, 0.3, 0.4), (0.1, 0.2, 0.7), (0.6, 0.4, 0.0), (0.2, 0.7, 0.1)),
}


def one_run(classes: int, gap: float, each: int, seed: int) -> np.ndarray:
    """Return for each group and class whether the interval holds the share, and its width."""
    rng = np.random.default_rng(seed)
    centres = gap / np.sqrt(2.0) * np.eye(classes, 3)
    labels = np.repeat(np.arange(classes), each)
    region = np.repeat(np.arange(len(SIZES)), SIZES)
    hidden = np.concatenate([rng.choice(classes, n, p=p) for n, p in zip(SIZES, SHARES[classes], strict=True)])
    X, new = (rng.normal(size=(len(some), 3)) + centres[some] for some in (labels, hidden))
    found = ClassPriorEstimator(random_state=seed, n_jobs=1).fit(X, labels).estimate(new, by=region)
    out = []
    for name, priors in found.groups.items():
        true = np.bincount(hidden[region == int(name)], minlength=classes) / SIZES[int(name)]
        held = (priors.lower <= true + 1e-9) & (true - 1e-9 <= priors.upper)
        out.append(np.stack([held, priors.upper - priors.lower]))
    return np.array(out)


def main(arguments: list[str] | None = None) -> None:
    """Print one line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(f"{'classes':>8}{'gap':>6}{'labelled':>10}{'held':>7}{'error':>7}{'width':>7}")
    for classes in (2, 3):
        for gap in (1.5, 3.0):
            for each in (20, 60):
                seeds = range(options.seed, options.seed + options.runs)
                found = np.array([one_run(classes, gap, each, seed) for seed in seeds])
                held = found[:, :, 0].mean(axis=(1, 2))
                error, width = held.std() / np.sqrt(len(held)), np.median(found[:, :, 1])
                print(f"{classes:>8}{gap:>6}{each:>10}{held.mean():>7.3f}{error:>7.3f}{width:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
