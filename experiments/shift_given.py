"""Level and coverage of the shift of one column given others, where the samples differ in these others.

    python -m experiments.shift_given [--runs 200] [--first 0] [--quick]

The target has no shift given the others. Of a setting that is confounded, rows with larger values of the others are more often of
the second sample, so that the means of the target differ: "alone" is how often a t-test of the target by itself has p <= .05.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from isopleth import two_sample_test

SETTINGS = (
    ("numbers", 40, 60),
    ("numbers, confounded", 60, 60),
    ("words, ties, gaps, confounded", 150, 150),
    ("prices, confounded", 150, 150),
)


def samples(setting: str, n: int, m: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw two samples without a shift of y given a, b and c."""
    count = 6 * (n + m)
    z, gaps = rng.normal(size=(count, 3)), rng.random(count) < 0.15
    if "words" in setting:
        z[:, 0], z[:, 1], z[gaps, 2] = np.digitize(z[:, 0], [-1.0, 0.0, 1.0]) - 1.5, np.round(z[:, 1]), 0.0
    odds = 0.8 * z[:, 0] + 0.5 * (z[:, 1] > 0) * z[:, 2] if "confounded" in setting else np.zeros(count)
    second = rng.random(count) < 1.0 / (1.0 + np.exp(-odds))
    y = np.sin(2.0 * z[:, 0]) + z[:, 1] * (z[:, 2] > 0) + 0.7 * z[:, 0]
    noise = rng.normal(size=count) * (0.5 + 0.5 * np.abs(z[:, 0]))
    y = np.exp(0.5 * y + 0.4 * noise) if "prices" in setting else y + noise
    frame = pd.DataFrame({"a": z[:, 0], "b": z[:, 1], "c": z[:, 2], "y": y})
    if "words" in setting:
        frame["a"] = np.array(["r", "s", "t", "u"])[np.rint(z[:, 0] + 1.5).astype(int)]
        frame["c"], frame["y"] = frame["c"].mask(gaps), frame["y"].round()
    return frame[~second][:n], frame[second][:m]


def one_run(setting: str, n: int, m: int, run: int) -> tuple[float, bool, float]:
    """Return the p-value of no shift, whether its interval holds 0, and the p-value of the target by itself."""
    first, second = samples(setting, n, m, np.random.default_rng([7, run, n, len(setting)]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = two_sample_test(first, second, n_resamples=1, n_jobs=1, random_state=0).shift("y", ["a", "b", "c"])
    alone = float(ttest_ind(first["y"], second["y"]).pvalue)
    return found.pvalue, found.low <= 0.0 <= found.high, alone


def main(arguments: list[str] | None = None) -> None:
    """Print a line a setting after every ten runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="pairs of samples a setting")
    parser.add_argument("--first", type=int, default=0, help="number of the first pair")
    parser.add_argument("--quick", action="store_true", help="2 runs")
    options = parser.parse_args(arguments)
    print(f"{'setting':<32}{'rows':>10}{'runs':>6}{'p <= .05':>10}{'p <= .1':>9}{'holds 0':>9}{'alone':>7}")
    found: dict[str, list[tuple[float, bool, float]]] = {name: [] for name, _, _ in SETTINGS}
    runs = 2 if options.quick else options.runs
    for run in range(runs):
        for name, n, m in SETTINGS:
            found[name].append(one_run(name, n, m, options.first + run))
        if run % 10 == 9 or run == runs - 1:
            for name, n, m in SETTINGS:
                p, holds, alone = np.array(found[name]).T
                shares = f"{(p <= 0.05).mean():>10.3f}{(p <= 0.1).mean():>9.3f}{holds.mean():>9.3f}{(alone <= 0.05).mean():>7.2f}"
                print(f"{name:<32}{f'{n}, {m}':>10}{run + 1:>6}{shares}", flush=True)


if __name__ == "__main__":
    main()
