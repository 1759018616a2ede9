"""Level and power of the two-sample test on tables with words and missing cells.

    python -m experiments.two_sample_mixed [--runs 2000] [--quick] [--jobs N] [--out FILE]

Level: both samples have one law, with 30 % of the cells missing at random, a word column of 50 categories, and numbers of which
one depends on the word; 99 permutations and 40 centres a run. "gaps ignored" is compare_missing=False. "groups" are patients of
1 to 7 rows that share a level. The binomial tests ask whether the share of rejections differs from the level.

Power: ten columns, in which only the share of one category of ten moves, or only the share of missing cells in one column; 200
rows in each sample, level .05, 199 permutations. "that column alone" is Pearson's chi-squared test of the column that moves, with
199 permutations, which knows where to look; "Bonferroni" is the same test of each of the ten columns, at level .05 / 10.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from isopleth import two_sample_test

LEVELS = (0.05, 0.1)
CENTERS = 40
Pair = tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]


def null_tables(n: int, m: int, gaps: tuple[float, float] = (0.3, 0.3), numbers: int = 3, words: int = 50) -> Any:
    """Return a function that draws two samples of one law, with other shares of missing cells if asked for."""

    def draw(rng: np.random.Generator) -> Pair:
        word = rng.integers(0, words, n + m)
        table = pd.DataFrame({f"x{j}": rng.normal(size=n + m) for j in range(numbers)})
        table["x0"] += word % 3
        table.insert(1, "word", [f"w{k}" for k in word])
        lacking = np.where(np.arange(n + m) < n, *gaps)
        table = table.mask(rng.random(table.shape) < lacking[:, None])
        return table[:n], table[n:], {}

    return draw


def null_groups(rng: np.random.Generator) -> Pair:
    """Draw patients whose rows share a level and a favourite word."""
    tables, groups = [], []
    for count, first in ((15, 0), (20, 100)):
        name = np.repeat(np.arange(count), rng.integers(1, 8, count))
        table = pd.DataFrame(
            rng.normal(size=(len(name), 2)) * 0.3 + rng.normal(size=(count, 2))[name], columns=["x", "y"]
        )
        favourite = rng.integers(0, 6, count)[name]
        table["word"] = [
            f"w{k}" for k in np.where(rng.random(len(name)) < 0.7, favourite, rng.integers(0, 6, len(name)))
        ]
        tables.append(table.mask(rng.random(table.shape) < 0.1))
        groups.append(name + first)
    return tables[0], tables[1], {"groups": tuple(groups)}


IGNORED: dict[str, Any] = {"compare_missing": False}
# How samples are drawn, and the options of the test.
NULL: dict[str, tuple[Any, dict[str, Any]]] = {
    "40 v 40": (null_tables(40, 40), {}),
    "40 v 200": (null_tables(40, 200), {}),
    "200 v 200": (null_tables(200, 200), {}),
    "40 v 40, gaps ignored": (null_tables(40, 40), IGNORED),
    "200 v 200, gaps ignored": (null_tables(200, 200), IGNORED),
    "200 v 200, gaps ignored, 10 % and 40 % missing": (null_tables(200, 200, (0.1, 0.4)), IGNORED),
    "15 v 20 groups": (null_groups, {}),
}


def moved(word: float = 0.0, gap: float = 0.0, n: int = 200, missing: float = 0.1) -> Any:
    """Return a function that draws ten columns; the share of one word of ten, or of the gaps in one column, moves by so much."""

    def sample(rng: np.random.Generator, word: float, gap: float) -> pd.DataFrame:
        shares = np.full(10, (0.9 - word) / 9.0)
        shares[0] = 0.1 + word
        table = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(7)})
        table["word"] = [f"w{k}" for k in rng.choice(10, n, p=shares)]
        table["other"] = [f"w{k}" for k in rng.integers(0, 5, n)]
        table["flag"] = rng.random(n) < 0.3
        lacking = np.full(10, missing)
        lacking[2] += gap
        return table.astype(object).mask(rng.random(table.shape) < lacking).infer_objects()

    return lambda rng: (sample(rng, 0.0, 0.0), sample(rng, word, gap), {})


POWER: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a word from 10 % to 20 %": (moved(word=0.1), {}, "word"),
    "a word from 10 % to 25 %": (moved(word=0.15), {}, "word"),
    "a word from 10 % to 25 %, 30 % missing": (moved(word=0.15, missing=0.3), {}, "word"),
    "a word from 10 % to 25 %, 30 % missing, gaps ignored": (moved(word=0.15, missing=0.3), IGNORED, "word"),
    "gaps from 10 % to 20 %": (moved(gap=0.1), {}, "x2"),
    "gaps from 10 % to 25 %": (moved(gap=0.15), {}, "x2"),
    "gaps from 10 % to 25 %, gaps ignored": (moved(gap=0.15), IGNORED, "x2"),
}


def level_of(task: tuple[str, int]) -> float:
    """Return the p-value of one run without a difference."""
    name, run = task
    draw, options = NULL[name]
    x, y, more = draw(np.random.default_rng([run, list(NULL).index(name)]))
    how = {"n_resamples": 99, "centers": CENTERS, "n_jobs": 1, "random_state": run}
    return two_sample_test(x, y, **how, **options, **more).pvalue


def chi_squared(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float:
    """Return the p-value of Pearson's chi-squared test of two columns of codes, by permutations."""
    both = np.concatenate([x, y])
    orders = [np.arange(len(both)), *(rng.permutation(len(both)) for _ in range(199))]
    counts = [np.bincount(both[order[: len(x)]], minlength=both.max() + 1) for order in orders]
    # The other sample has the rest of each category, so the squared deviations of one sample tell all.
    total = np.bincount(both).astype(float)
    expected = total * len(x) / len(both)
    found = ((np.array(counts) - expected) ** 2 / np.maximum(total, 1.0)).sum(axis=1)
    return float((found >= found[0] - 1e-9).mean())


def power_of(task: tuple[int, int]) -> tuple[float, float, float]:
    """Return the p-values of one run: of the test, of the column that moves, and the smallest of all columns times ten."""
    place, run = task
    draw, options, column = list(POWER.values())[place]
    rng = np.random.default_rng([run, place, 1])
    x, y, _ = draw(rng)
    ours = two_sample_test(x, y, n_resamples=199, n_jobs=1, random_state=run, **options).pvalue
    alone = {}
    for name in x.columns:
        both = pd.concat([x[name], y[name]])
        if name.startswith("x"):  # whether the cell is missing
            codes = both.isna().to_numpy().astype(int)
        else:
            codes = both.astype(str).where(both.notna(), "missing").astype("category").cat.codes.to_numpy()
        alone[name] = chi_squared(codes[: len(x)], codes[len(x) :], rng)
    return ours, alone[column], min(1.0, 10.0 * min(alone.values()))


def main(arguments: list[str] | None = None) -> None:
    """Print a line a setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=int, default=2000, help="pairs of samples a setting; a tenth as many for the power"
    )
    parser.add_argument("--quick", action="store_true", help="20 runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    options = parser.parse_args(arguments)
    runs = 20 if options.quick else options.runs
    heads = [*(f"p <= {level}" for level in LEVELS), "binomial p"]
    lines = [f"rejections over {runs} runs without a difference"]
    lines.append(f"{'setting':<54}" + "".join(f"{head:>12}" for head in heads))
    print("\n".join(lines), flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in NULL:
            found = np.array(list(pool.map(level_of, [(name, run) for run in range(runs)], chunksize=20)))
            counts = [int((found <= level + 1e-9).sum()) for level in LEVELS]
            tests = [binomtest(count, runs, level).pvalue for count, level in zip(counts, LEVELS, strict=True)]
            cells = [*(f"{count / runs:.4f}" for count in counts), f"{min(tests):.3f}"]
            lines.append(f"{name:<54}" + "".join(f"{cell:>12}" for cell in cells))
            print(lines[-1], flush=True)
        fewer = max(2, runs // 10)
        heads = ["this test", "that column alone", "Bonferroni"]
        begun = len(lines)
        lines += [
            "",
            f"power at level .05, {fewer} runs",
            f"{'setting':<54}" + "".join(f"{head:>19}" for head in heads),
        ]
        print("\n".join(lines[begun:]), flush=True)
        for place, name in enumerate(POWER):
            shares = np.mean(np.array(list(pool.map(power_of, [(place, run) for run in range(fewer)]))) <= 0.05, axis=0)
            lines.append(f"{name:<54}" + "".join(f"{share:>19.3f}" for share in shares))
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
