"""Level of the two-sample test where there is no difference: exact binomial tests over many runs.

    python -m experiments.two_sample_level [--runs 4000] [--quick] [--jobs N] [--out FILE]

99 permutations and 40 centres a run, so that .05 and .1 are levels that the test can have exactly. "columns" is, for one of
the settings, the share of runs in which any column is named at level .05. The binomial tests ask whether the share differs
from the level (for continuous data; ties can only lower it, and then the question is whether the level is exceeded).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from isopleth import two_sample_test

LEVELS = (0.05, 0.1)
CENTERS = 40
Pair = tuple[np.ndarray, np.ndarray]


def normal(n: int, m: int, dim: int) -> Callable[[np.random.Generator], Pair]:
    """Two normal samples of one law."""
    return lambda rng: (rng.normal(size=(n, dim)), rng.normal(size=(m, dim)))


def discrete(rng: np.random.Generator) -> Pair:
    """Two columns with three values each, so that most rows are equal to others."""
    return rng.integers(0, 3, (40, 2)), rng.integers(0, 3, (70, 2))


def heavy(rng: np.random.Generator) -> Pair:
    """Columns without a mean."""
    return rng.standard_cauchy((50, 3)), rng.standard_cauchy((50, 3))


NAMED = "normal, 50 v 50, d = 3"
SETTINGS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "normal, 30 v 200, d = 20": normal(30, 200, 20),
    "discrete, 40 v 70, d = 2": discrete,
    NAMED: normal(50, 50, 3),
    "Cauchy, 50 v 50, d = 3": heavy,
    "normal, 5 v 500, d = 2": normal(5, 500, 2),
    "groups of 2, 4000 v 4000, d = 1": normal(4000, 4000, 1),
}


def p_values(task: tuple[str, int]) -> tuple[float, float]:
    """Return the p-value of the test, and the smallest one of the columns."""
    name, run = task
    x, y = SETTINGS[name](np.random.default_rng([run, list(SETTINGS).index(name)]))
    result = two_sample_test(x, y, n_resamples=99, centers=CENTERS, n_jobs=1, random_state=run)
    return result.pvalue, float(result.witness.p_values.min()) if name == NAMED else np.nan


def main(arguments: list[str] | None = None) -> None:
    """Print a line a setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000, help="pairs of samples a setting")
    parser.add_argument("--quick", action="store_true", help="20 runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="write the table to this file as well")
    options = parser.parse_args(arguments)
    runs = 20 if options.quick else options.runs
    heads = [*(f"p <= {level}" for level in LEVELS), "binomial p", "columns"]
    lines = [f"rejections over {runs} runs", f"{'setting':<34}" + "".join(f"{head:>12}" for head in heads)]
    print("\n".join(lines), flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in SETTINGS:
            found = np.array(list(pool.map(p_values, [(name, run) for run in range(runs)], chunksize=20)))
            counts = [int((found[:, 0] <= level + 1e-9).sum()) for level in LEVELS]
            side = "greater" if name.startswith("discrete") else "two-sided"
            tests = [binomtest(count, runs, level, side).pvalue for count, level in zip(counts, LEVELS, strict=True)]
            columns = f"{(found[:, 1] <= 0.05 + 1e-9).mean():.4f}" if name == NAMED else "-"
            cells = [*(f"{count / runs:.4f}" for count in counts), f"{min(tests):.3f}", columns]
            lines.append(f"{name:<34}" + "".join(f"{cell:>12}" for cell in cells))
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
