"""Level and power of the Stein goodness-of-fit test.

    python -m experiments.stein_test [--part level|power] [--runs 2000] [--quick] [--jobs N] [--out FILE]

level  Shares of p-values up to .05 and .1 of samples that are from the density, with 199 resamples, and the p-values of binomial
       tests that the shares differ from the levels, the smaller of the two. Two settings are Markov chains
       x_t = 0.5 x_{t-1} + noise, tested as if the rows were independent (flip 0.5) and with flip 0.1.
power  Shares of p-values up to .05 of samples from other densities, tested against the standard normal density, by the
       default, by one length scale, the median distance, and in two other frames. In "mapped" settings rows and density are
       mapped by a matrix of condition 1,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import binomtest

from isopleth import stein_test

LEVELS = (0.05, 0.1)
RESAMPLES = 199
Draw = Callable[[np.random.Generator, int, int], np.ndarray]
Score = Callable[[np.ndarray], np.ndarray]


class Setting(NamedTuple):
    """A sample, and the density that it is tested against."""

    draw: Draw
    score: Score
    rows: int
    columns: int
    flip: float = 0.5
    mapped: bool = False


def normal(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Standard normal rows."""
    return rng.normal(size=(n, d))


def student(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Independent columns of Student's t with 5 degrees of freedom."""
    return rng.standard_t(5, size=(n, d))


def laplace(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Independent Laplace columns of unit variance."""
    return rng.laplace(size=(n, d)) / np.sqrt(2.0)


def shifted(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Normal rows, of which the first column has mean 0.2."""
    return normal(rng, n, d) + 0.2 * np.eye(d)[0]


def wider(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Normal rows, of which the first column has standard deviation 1.4."""
    return normal(rng, n, d) * (1.0 + 0.4 * np.eye(d)[0])


def correlated(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Normal rows, of which the first two columns have correlation 0.5."""
    x = normal(rng, n, d)
    x[:, 1] = 0.5 * x[:, 0] + np.sqrt(0.75) * x[:, 1]
    return x


def chain(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """A stationary autoregressive chain of standard normal rows."""
    x = normal(rng, n, d)
    for t in range(1, n):
        x[t] = 0.5 * x[t - 1] + np.sqrt(0.75) * x[t]
    return x


def normal_score(x: np.ndarray) -> np.ndarray:
    """Score of the standard normal density."""
    return -x


def student_score(x: np.ndarray) -> np.ndarray:
    """Score of independent columns of Student's t with 5 degrees of freedom."""
    return -6.0 * x / (5.0 + x * x)


LEVEL = {
    "normal, n = 30, d = 1": Setting(normal, normal_score, 30, 1),
    "normal, n = 100, d = 2": Setting(normal, normal_score, 100, 2),
    "normal, n = 200, d = 10": Setting(normal, normal_score, 200, 10),
    "Student's t, n = 100, d = 2": Setting(student, student_score, 100, 2),
    "chain, n = 300, d = 1, flip 0.5": Setting(chain, normal_score, 300, 1),
    "chain, n = 300, d = 1, flip 0.1": Setting(chain, normal_score, 300, 1, 0.1),
}
OTHERS = {
    "mean 0.2": shifted,
    "deviation 1.4": wider,
    "correlation 0.5": correlated,
    "Student's t": student,
    "Laplace": laplace,
}
POWER = {
    f"{name}, n = {n}, d = {d}": Setting(draw, normal_score, n, d)
    for n, d in ((100, 2), (200, 5))
    for name, draw in OTHERS.items()
}
POWER |= {
    f"{name}, mapped, n = 100, d = 2": Setting(OTHERS[name], normal_score, 100, 2, mapped=True)
    for name in ("mean 0.2", "correlation 0.5")
}

# Parameters of the tests that are compared. The one length scale is the median distance of the rows before they are mapped.
TESTS: dict[str, dict[str, object]] = {
    "default": {},
    "one scale": {"length_scale": None},
    "scale": {"frame": "scale"},
    "whiten": {"frame": "whiten"},
}


def pvalue(setting: Setting, run: int, test: str = "default") -> float:
    """Return the p-value of one sample by one of TESTS."""
    rng = np.random.default_rng(run)
    x = setting.draw(rng, setting.rows, setting.columns)
    scores, given = setting.score(x), dict(TESTS[test])
    if "length_scale" in given:
        given["length_scale"] = float(np.median(pdist(x)))
    if setting.mapped:
        d = setting.columns
        A = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0] * np.geomspace(1.0, 1000**-0.5, d)
        x, scores = x @ A.T, scores @ np.linalg.inv(A)
    return stein_test(
        x,
        scores,
        n_resamples=RESAMPLES,
        flip=setting.flip,
        n_jobs=1,
        random_state=run,
        **given,  # type: ignore[arg-type]
    ).pvalue


def p_values(task: tuple[Setting, Sequence[str], int]) -> list[float]:
    """Return the p-values of one sample of a setting by some of TESTS."""
    setting, tests, run = task
    return [pvalue(setting, run, test) for test in tests]


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("level", "power"), help="only this one")
    parser.add_argument("--runs", type=int, default=2000, help="samples for each setting")
    parser.add_argument("--quick", action="store_true", help="20 runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    options = parser.parse_args(arguments)
    runs = 20 if options.quick else options.runs
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    with ProcessPoolExecutor(options.jobs) as pool:

        def found(setting: Setting, tests: Sequence[str]) -> np.ndarray:
            return np.array(list(pool.map(p_values, [(setting, tests, run) for run in range(runs)], chunksize=20)))

        if options.part != "power":
            tell(f"{f'level, {runs} runs':<34}{'p <= .05':>12}{'p <= .1':>12}{'binomial p':>12}")
            for name, setting in LEVEL.items():
                values = found(setting, ["default"])[:, 0]
                counts = [int((values <= level + 1e-9).sum()) for level in LEVELS]
                tests = [binomtest(count, runs, level).pvalue for count, level in zip(counts, LEVELS, strict=True)]
                tell(f"{name:<34}{counts[0] / runs:>12.4f}{counts[1] / runs:>12.4f}{min(tests):>12.2g}")
        if options.part != "level":
            tell(f"{f'power at level .05, {runs} runs':<40}" + "".join(f"{test:>12}" for test in TESTS))
            for name, setting in POWER.items():
                shares = (found(setting, list(TESTS)) <= 0.05 + 1e-9).mean(axis=0)
                tell(f"{name:<40}" + "".join(f"{share:>12.3f}" for share in shares))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
