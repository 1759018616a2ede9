"""Level and power of the Stein goodness-of-fit test.

    python -m experiments.stein_test [--part level|power|fitted] [--family NAME] [--runs 2000] [--quick] [--jobs N] [--out FILE]

level  Shares of p-values up to .05 and .1 of samples that are from the density, with 199 resamples, and the p-values of binomial
       tests that the shares differ from the levels, the smaller of the two. Two settings are Markov chains
       x_t = 0.5 x_{t-1} + noise, tested as if the rows were independent (flip 0.5) and with flip 0.1.
power  Shares of p-values up to .05 of samples from other densities, tested against the standard normal density, by the
       default, by one length scale, the median distance, and in two other frames. In "mapped" settings rows and density are
       mapped by a matrix of condition 1,000.
fitted Shares of p-values up to .05 of families that are fitted to the sample: of samples from a member of the family, with 19
       resamples, and of other samples against the normal family, beside Lilliefors' test in one column and Henze and
       Zirkler's in five, each with the same 499 normal samples.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import binomtest, norm

from isopleth import SOSREP, stein_test
from isopleth.core.budget import ONE_THREAD
from isopleth.core.laws import normal_scores
from isopleth.core.p_values import permutation_pvalue
from isopleth.kernels import get_kernel
from isopleth.tasks.density_families import family_of
from isopleth.tasks.goodness_of_fit import FittedTest

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


FITTED_ROWS = {1: (50, 100, 300), 5: (50, 100, 300)}
FITTED = {
    "Student's t": student,
    "Laplace": laplace,
    "uniform": lambda rng, n, d: rng.uniform(size=(n, d)),
    "gamma, shape 4": lambda rng, n, d: rng.gamma(4.0, size=(n, d)),
    "beta 2, 3": lambda rng, n, d: rng.beta(2.0, 3.0, size=(n, d)),
    "two parts": lambda rng, n, d: normal(rng, n, d) + np.where(rng.random((n, 1)) < 0.3, 2.5, 0.0) / np.sqrt(d),
    "5 % outliers": lambda rng, n, d: normal(rng, n, d) * np.where(rng.random((n, 1)) < 0.05, 3.0, 1.0),
}
NULL_SAMPLES, LEVEL_RESAMPLES = 499, 19


def lilliefors(x: np.ndarray) -> float:
    """Return the Kolmogorov-Smirnov distance of standardised rows in one column from the normal law."""
    share = norm.cdf(np.sort((x[:, 0] - x[:, 0].mean()) / x[:, 0].std(ddof=1)))
    steps = np.arange(len(x) + 1) / len(x)
    return float(max((steps[1:] - share).max(), (share - steps[:-1]).max()))


def henze_zirkler(x: np.ndarray) -> float:
    """Return Henze and Zirkler's statistic over n: a distance of characteristic functions with a Gaussian weight."""
    n, d = x.shape
    z = np.linalg.solve(np.linalg.cholesky(np.cov(x.T, bias=True)), (x - x.mean(axis=0)).T).T
    b = 0.5 * (n * (2 * d + 1) / 4.0) ** (2.0 / (d + 4.0))
    one = np.exp(-b / (2.0 * (1.0 + b)) * (z * z).sum(axis=1)).mean()
    pairs = 2.0 * np.exp(-0.5 * b * pdist(z, "sqeuclidean")).sum() / n**2 + 1.0 / n
    return float(pairs - 2.0 * (1.0 + b) ** (-0.5 * d) * one + (1.0 + 2.0 * b) ** (-0.5 * d))


def of_fitted(task: tuple[str, int, int, int]) -> float:
    """Return the p-value of a family for one sample of a member of it."""
    family, n, d, run = task
    rng = np.random.default_rng([run, n, d])
    if family == "SOSREP":
        x = SOSREP().fit(np.random.default_rng(0).normal(size=(100, d)) ** 3).sample(n, random_state=run)
    else:
        x = (normal if family == "normal" else student_in_a_ball)(rng, n, d)
    how = SOSREP() if family == "SOSREP" else family
    return stein_test(x, how, n_resamples=LEVEL_RESAMPLES, n_jobs=1, random_state=run).pvalue


def student_in_a_ball(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Student's t in all columns at once, with 5 degrees of freedom."""
    return normal(rng, n, d) / np.sqrt(rng.chisquare(5.0, size=(n, 1)) / 5.0)


def fitted_levels(pool: ProcessPoolExecutor, runs: int, tell: Callable[[str], None], only: str | None = None) -> None:
    """Print shares of rejections of samples from a member of the family, of all families or of one."""
    tell(f"{'level of fitted families':<34}{'n':>6}{'d':>4}{'p <= .05':>12}{'error':>8}{'runs':>8}")
    for name, n, d in (("normal", 100, 1), ("normal", 100, 5), ("t", 100, 1), ("t", 100, 3), ("SOSREP", 50, 1)):
        if only not in (None, name):
            continue
        few = max(runs // 10, 20) if name == "SOSREP" else runs
        tasks = [(name, n, d, run) for run in range(few)]
        share = np.mean([p <= 0.05 + 1e-9 for p in pool.map(of_fitted, tasks, chunksize=5)])
        tell(f"{name:<34}{n:>6}{d:>4}{share:>12.3f}{np.sqrt(share * (1 - share) / few):>8.3f}{few:>8}")


def against_normal(task: tuple[str, int, int, int]) -> tuple[np.ndarray, float]:
    """Return the discrepancies of one sample from the normal density fitted to it, and the statistic of the other test."""
    name, n, d, run = task
    x = (normal if name == "normal" else FITTED[name])(np.random.default_rng([run, n, d]), n, d)
    test = FittedTest(get_kernel("imq").bind(d), "auto", "balanced", *family_of("normal"))
    return test.discrepancies(x, test.family.fit(x), ONE_THREAD)[1], (lilliefors if d == 1 else henze_zirkler)(x)


def fitted_powers(pool: ProcessPoolExecutor, runs: int, tell: Callable[[str], None]) -> None:
    """Print shares of rejections of other samples by the normal family and by the other test, of the same normal samples."""
    tell(f"{f'power against normal, {runs} runs':<34}{'n':>6}{'d':>4}{'Stein':>8}{'other':>8}")
    for d, sizes in FITTED_ROWS.items():
        for n in sizes:

            def found(name: str, first: int, count: int, n: int = n, d: int = d) -> list[tuple[np.ndarray, float]]:
                return list(pool.map(against_normal, [(name, n, d, first + run) for run in range(count)], chunksize=20))

            null, other = zip(*found("normal", 10**6, NULL_SAMPLES), strict=True)
            powers = []
            for name in FITTED:
                p = []
                for ours, theirs in found(name, 0, runs):
                    scores = normal_scores(np.column_stack([ours, *null]))
                    statistics = scores.max(axis=0) + 1e-6 * scores.mean(axis=0)
                    p.append(
                        [permutation_pvalue(statistics), (1 + np.sum(np.array(other) >= theirs)) / (1 + len(other))]
                    )
                powers.append(np.mean(np.array(p) <= 0.05 + 1e-9, axis=0))
                tell(f"{name:<34}{n:>6}{d:>4}{powers[-1][0]:>8.2f}{powers[-1][1]:>8.2f}")
            mean = np.mean(powers, axis=0)
            tell(f"{'mean':<34}{n:>6}{d:>4}{mean[0]:>8.3f}{mean[1]:>8.3f}")


def p_values(task: tuple[Setting, Sequence[str], int]) -> list[float]:
    """Return the p-values of one sample of a setting by some of TESTS."""
    setting, tests, run = task
    return [pvalue(setting, run, test) for test in tests]


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("level", "power", "fitted"), help="only this one")
    parser.add_argument(
        "--family", choices=("normal", "t", "SOSREP"), help="with fitted: the level of this family only"
    )
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

        if options.part in (None, "level"):
            tell(f"{f'level, {runs} runs':<34}{'p <= .05':>12}{'p <= .1':>12}{'binomial p':>12}")
            for name, setting in LEVEL.items():
                values = found(setting, ["default"])[:, 0]
                counts = [int((values <= level + 1e-9).sum()) for level in LEVELS]
                tests = [binomtest(count, runs, level).pvalue for count, level in zip(counts, LEVELS, strict=True)]
                tell(f"{name:<34}{counts[0] / runs:>12.4f}{counts[1] / runs:>12.4f}{min(tests):>12.2g}")
        if options.part in (None, "power"):
            tell(f"{f'power at level .05, {runs} runs':<40}" + "".join(f"{test:>12}" for test in TESTS))
            for name, setting in POWER.items():
                shares = (found(setting, list(TESTS)) <= 0.05 + 1e-9).mean(axis=0)
                tell(f"{name:<40}" + "".join(f"{share:>12.3f}" for share in shares))
        if options.part in (None, "fitted"):
            fitted_levels(pool, runs, tell, options.family)
            if options.family is None:
                fitted_powers(pool, max(runs // 4, 20), tell)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
